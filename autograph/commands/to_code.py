"""`autograph to-code`: what functions are rewritten to."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from typing import Any

from autograph.commands.files import File, UsageError, read, split
from autograph.commands.side_by_side import side_by_side
from autograph.convert.pipeline import convert_tree
from autograph.errors import AutographError, ConversionError, Location
from autograph.syntax.definitions import Definition
from autograph.syntax.unparse import unparse
from runtime.python_text import without_syntax_warnings


def run(options: Any) -> int:
    """Prints what the command line asks for and returns the exit code. Raises UsageError, AutographError."""
    targets = [split(target) for target in options.targets]
    wants_whole_files = options.all or options.check
    for target, (_, name) in zip(options.targets, targets):
        if name is None and not wants_whole_files:
            raise UsageError(f"expected FILE.py:function, got {target!r} (--all converts the whole file)")
    parts, bad = [], 0
    for path, name in targets:
        file = read(path)
        for definition in [file.definition(name)] if name is not None else file.outermost():
            try:
                parts.append(_shown(file, definition, options, titled=name is None))
            except AutographError as error:
                if not wants_whole_files:
                    raise
                bad += 1
                print(f"autograph: {error}", file=sys.stderr)
    if not options.check:
        print("\n\n".join(parts), flush=True)
    return 1 if bad else 0


def _shown(file: File, definition: Definition, options: Any, titled: bool) -> str:
    # Conversion changes the tree, so the text comes first.
    original = textwrap.dedent(file.source_of(definition))
    if options.passes:
        text = _passes(file, definition)
    else:
        text = _converted(file, definition)
        if options.diff:
            width = options.width or shutil.get_terminal_size().columns
            text = side_by_side(original, text, width, _colour(options.color))
    return f"# {definition.name}\n{text}" if titled else text


def _converted(file: File, definition: Definition) -> str:
    """The converted text; raises ConversionError also where it would not be valid Python."""
    tree = _convert(file, definition, None)
    text = unparse(tree).strip()
    try:
        with without_syntax_warnings():
            compile(text, file.path, "exec")
    except SyntaxError as error:
        raise ConversionError(
            f"the converted form of {definition.name} is not valid Python",
            location=Location(file.path, definition.node.lineno, definition.name),
            cause=str(error),
            fix="decorate the function with @ag.autograph.experimental.do_not_convert, and please report this",
        ) from error
    return text


def _passes(file: File, definition: Definition) -> str:
    texts: dict[str, str] = {}

    def after_pass(name: str, tree: Any) -> None:
        text = unparse(tree).strip()
        if text not in texts.values():
            texts[name] = text

    _convert(file, definition, after_pass)
    return "\n\n".join(f"# after {name}\n{text}" for name, text in texts.items())


def _convert(file: File, definition: Definition, after_pass: Any) -> Any:
    return convert_tree(
        definition.node,
        filename=file.path,
        class_name=definition.class_name,
        shadowed=definition.outer_names,
        after_pass=after_pass,
    )


def _colour(choice: str) -> bool:
    if choice == "auto":
        return sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    return choice == "always"
