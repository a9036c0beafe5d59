"""`autograph run`: a script that says `import tensorflow as tf`, on this project."""

from __future__ import annotations

import importlib.machinery
import os
import runpy
import sys
from collections.abc import Callable, Sequence
from types import ModuleType, TracebackType
from typing import Any

from autograph.facade.installation import install
from runtime.progress import progress


def run_file(path: str, arguments: Sequence[str]) -> int:
    """Runs a file as `python path arguments...` does, after `install`; gives the exit code.

    The script is `__main__`, its folder the first to import from, and what it raises is printed as Python prints it.
    Raises OSError when the file can't be read.
    """
    with open(path, "rb") as file:
        source = file.read()
    with progress("loading autograph in tensorflow's place"):
        install()
    module = ModuleType("__main__")
    module.__file__ = path
    module.__loader__ = importlib.machinery.SourceFileLoader("__main__", path)
    module.__builtins__ = __builtins__  # type: ignore[attr-defined]
    sys.argv = [path, *arguments]
    sys.path.insert(0, os.path.dirname(os.path.realpath(path)))
    sys.modules["__main__"] = module
    return _guarded(lambda: exec(compile(source, path, "exec"), module.__dict__))


def run_module(name: str, arguments: Sequence[str]) -> int:
    """Runs a module as `python -m name arguments...` does, after `install`; gives the exit code."""
    with progress("loading autograph in tensorflow's place"):
        install()
    sys.argv = [name, *arguments]
    sys.path.insert(0, os.getcwd())
    return _guarded(lambda: runpy.run_module(name, run_name="__main__", alter_sys=True))


def _guarded(program: Callable[[], Any]) -> int:
    try:
        program()
    except SystemExit:
        raise
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        error.__traceback__ = _of_program(error.__traceback__)
        sys.excepthook(type(error), error, error.__traceback__)
        return 1
    return 0


def _of_program(traceback: TracebackType | None) -> TracebackType | None:
    """A traceback without the frames that start the program."""
    own = (__file__, runpy.__file__, "<frozen runpy>")
    while traceback is not None and traceback.tb_frame.f_code.co_filename in own:
        traceback = traceback.tb_next
    return traceback
