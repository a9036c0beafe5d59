"""The command line: `autograph to-code FILE.py:function` prints what a function is rewritten to.

The file is parsed, never run. Exit codes: 0 done; 1 the function can't be converted (the message says where and why);
2 the command line, the file or the name is wrong.
"""

from __future__ import annotations

import argparse
import difflib
import os
import sys
import tokenize
from collections.abc import Sequence
from importlib import metadata
from typing import Any

from autograph.convert.pipeline import convert_tree
from autograph.errors import AutographError
from autograph.syntax.definitions import Definition, definitions
from autograph.syntax.parse import parse
from autograph.syntax.unparse import unparse

_EXAMPLES = """\
examples:
  autograph to-code model.py:train_step               a function
  autograph to-code model.py:Cell.call                a method
  autograph to-code model.py:make.inner               a function inside a function
  autograph to-code --each-pass model.py:train_step   the text after each pass of the conversion that changes it
"""


class UsageError(Exception):
    """Something that the person at the keyboard can correct, told in one line."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.command is None:
        parser.print_help()
        return 0
    try:
        print(to_code(options.function, each_pass=options.each_pass), flush=True)
    except UsageError as error:
        print(f"autograph: {error}", file=sys.stderr)
        return 2
    except AutographError as error:
        print(f"autograph: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # The reader (`head`, a pager) has seen enough. Python would complain when it flushes stdout at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def to_code(target: str, *, each_pass: bool = False) -> str:
    """The converted source of ``FILE.py:function``. Raises UsageError, or AutographError if it can't be converted."""
    path, colon, name = target.rpartition(":")
    if not (colon and path and name):
        raise UsageError(f"expected FILE.py:function, got {target!r}")
    text = _read(path)
    try:
        module = parse(text, path)
    except SyntaxError as error:
        raise UsageError(f"{path}:{error.lineno}: syntax error: {error.msg}") from error
    except (ValueError, RecursionError) as error:  # null bytes (before Python 3.12); absurd nesting
        raise UsageError(f"{path}: not Python source: {error}") from error
    found = _find(module, name, path)
    texts: dict[str, str] = {}

    def after_pass(pass_name: str, tree: Any) -> None:
        if each_pass and (text := unparse(tree).strip()) not in texts.values():
            texts[pass_name] = text

    tree = convert_tree(
        found.node, filename=path, class_name=found.class_name, shadowed=found.outer_names, after_pass=after_pass
    )
    if each_pass:
        return "\n\n".join(f"# after {pass_name}\n{text}" for pass_name, text in texts.items())
    return unparse(tree).strip()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="autograph",
        description="Shows how autograph rewrites Python functions.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"autograph {_version()}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    convert = commands.add_parser(
        "to-code",
        help="print the converted source of a function",
        description="Prints the converted source of a function. The file is parsed, never run.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    convert.add_argument("function", metavar="FILE.py:function", help="a file and a dotted name in it")
    convert.add_argument("--each-pass", action="store_true", help="print the text after each pass that changes it")
    return parser


def _version() -> str:
    try:
        return metadata.version("autograph-numba")
    except metadata.PackageNotFoundError:
        return "(not installed)"


def _read(path: str) -> str:
    try:
        with tokenize.open(path) as file:  # honours a coding cookie and a byte-order mark
            return file.read()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from error
    except (SyntaxError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot decode {path}: {error}") from error


def _find(module: Any, name: str, path: str) -> Definition:
    wanted = name.replace(".<locals>", "")
    known = {found.name: found for found in definitions(module)}  # of two, the last one counts, as in Python
    if wanted in known:
        return known[wanted]
    if not known:
        raise UsageError(f"no function {name!r} in {path}: it defines none")
    same_ending = [other for other in known if other.endswith(f".{wanted}")]
    close = same_ending or difflib.get_close_matches(wanted, known, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(close)}?" if close else f"it has {_some([*known])}"
    raise UsageError(f"no function {name!r} in {path}: {hint}")


def _some(names: list[str], most: int = 8) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


if __name__ == "__main__":
    sys.exit(main())
