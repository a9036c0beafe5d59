"""What all the tests share."""

import os
import signal

import pytest

# Where users get a warning and the interpreter's answer, tests get the compiler's error.
os.environ["AUTOGRAPH_STRICT"] = "1"
# What a shell runs in its background ignores Ctrl-C, and so would the programs of tests that send it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


pytest.register_assert_rewrite("tests.convert.golden")  # whose `compare` shows the lines that differ


def pytest_addoption(parser):
    parser.addoption(
        "--update-golden", action="store_true", help="rewrite the expected outputs in tests/golden instead of checking"
    )


@pytest.fixture(autouse=True, scope="session")
def fast_calls():
    """Compiles the machine code of inline caches first, so that functions of tests are answered by it from their third
    call on; users' are when the background compiler has come to it."""
    from runtime.engine.fastcall import inline_cache

    inline_cache.prepare()


@pytest.fixture(autouse=True)
def no_options():
    """Options of graph passes hold for the whole process."""
    yield
    from runtime.graph.passes import options

    options._chosen.clear()
