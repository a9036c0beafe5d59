"""Makes sure that this Python can run the project, before anything else of it is imported.

This file and `autograph/__init__.py` keep to the syntax of Python 3.6, so that older interpreters report the error
below, not a SyntaxError.
"""

import platform
import sys

OLDEST = (3, 10)  # as `requires-python` in pyproject.toml says


def check() -> None:
    """Raises ImportError on an interpreter or a processor that the project can't run on."""
    oldest = ".".join(map(str, OLDEST))
    if sys.implementation.name != "cpython":
        what = f"the interpreter '{sys.implementation.name}'"
        cause = "compiled code reads the objects of CPython, which other interpreters lay out differently"
        fix = "install autograph-numba in a virtual environment of CPython"
    elif tuple(sys.version_info[:2]) < OLDEST:
        what = f"Python {sys.version_info[0]}.{sys.version_info[1]}"
        cause = f"the project is written in the language of Python {oldest}"
        fix = "install autograph-numba in a virtual environment of a newer Python"
    elif sys.maxsize <= 2**32:
        what = "a 32-bit Python"
        cause = "compiled code computes sizes and addresses with 64 bits"
        fix = "install autograph-numba in a virtual environment of a 64-bit Python, on a 64-bit system"
    elif sys.byteorder != "little":
        what = f"a big-endian processor ({platform.machine()})"
        cause = "compiled code and the project's files store the lowest byte of a number first"
        fix = "use a little-endian processor, such as x86-64 or arm64"
    else:
        return
    raise ImportError(
        f"autograph needs CPython {oldest} or later on a 64-bit little-endian processor, and this is {what}\n"
        f"  cause: {cause}\n"
        f"  fix: {fix}",
        name="autograph",
    )
