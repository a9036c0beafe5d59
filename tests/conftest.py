"""What all the tests share."""

import os

# Where users get a warning and the interpreter's answer, tests get the compiler's error.
os.environ["AUTOGRAPH_STRICT"] = "1"


def pytest_addoption(parser):
    parser.addoption(
        "--update-golden", action="store_true", help="rewrite the expected outputs in tests/golden instead of checking"
    )
