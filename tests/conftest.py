"""What all the tests share."""

import gc
import os
import signal
import sys

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


@pytest.fixture
def empty_cache(monkeypatch, tmp_path_factory):
    """A folder of its own for compiled kernels: everything is compiled, whatever ran before."""
    monkeypatch.setenv("AUTOGRAPH_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture(autouse=True)
def no_options():
    """Options of graph passes hold for the whole process."""
    yield
    from runtime.graph.passes import options

    options._chosen.clear()


@pytest.fixture(autouse=True)
def no_compilations_left():
    """Takes back what the background thread was asked to compile for the functions of a test that has ended: most of
    them are never called again, and they took up to 40 % of the suite's time. One that is called again asks again."""
    yield
    from runtime.engine import background
    from runtime.engine.executable import Executable

    def is_compilation(step):
        return isinstance(getattr(step, "__self__", None), Executable)

    for step in background.worker.withdraw(is_compilation):
        step.__self__._requested = False


# --- the facade ------------------------------------------------------------------------------------------------------

# The modules called `tensorflow` and `keras`, while `import tensorflow` doesn't give this project. Tests that were
# imported together may share one Keras, which `uninstall` would take apart.
_put_away = {}


def _put_facade_away():
    """Ends `compat.install` until `_put_facade_back`."""
    import autograph as ag

    modules = dict(sys.modules)
    ag.compat.uninstall()
    taken = {name: module for name, module in modules.items() if name not in sys.modules}
    if "keras" not in _put_away or taken.get("keras") is _put_away["keras"]:
        _put_away.update(taken)


def _put_facade_back():
    import autograph as ag

    ag.compat.install()
    sys.modules.update(_put_away)
    if "autograph.keras" in _put_away:
        ag.keras = _put_away["autograph.keras"]


def pytest_collection_finish():
    # Some hundred tests collect garbage: not among pytest's own objects, of which there are millions by now.
    gc.collect()
    gc.freeze()
    if "autograph" in sys.modules:
        _put_facade_away()


@pytest.fixture(autouse=True, scope="module")
def facade_of_module():
    """A file of tests starts and ends without the facade."""
    yield
    _put_facade_away()


@pytest.fixture(scope="module")
def tensorflow(facade_of_module):
    """`import tensorflow` gives this project, and `ag.keras` is the same in all files of tests."""
    _put_facade_back()
    import tensorflow

    return tensorflow


@pytest.fixture
def no_facade():
    """A test that installs the facade itself."""
    import autograph as ag

    was_installed = ag.compat.is_installed()
    _put_facade_away()
    yield
    ag.compat.uninstall()
    if was_installed:
        _put_facade_back()
