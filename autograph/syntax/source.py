"""Find the source of a function: its syntax tree, at its place in the user's file.

Works for functions in files, in ``exec``-ed text, the interactive prompt and notebooks (wherever ``linecache`` knows
the text), nested, decorated, methods, and lambdas, several on a line too, and for functions from other processes whose
file came along (`carry`). Nothing is unwrapped: for a decorated function give the function inside. The cost goes with
the length of the function (of a lambda with that of the statement at the top level that it stands in), not of the file.

Example::

    >>> source = find(function)
    >>> source.filename, source.node.name, source.line(source.node.lineno)
    ('.../model.py', 'step', 'def step(x):\\n')
"""

from __future__ import annotations

import ast
import collections
import contextlib
import dataclasses
import functools
import inspect
import itertools
import linecache
import os
import sys
import time
import types
from collections.abc import Iterator
from typing import Any

from autograph.syntax.compiled import class_of, compile_like, same_code
from autograph.syntax.parse import UnknownSyntaxError, from_ast, positions_from_line
from autograph.syntax.prompt import typed_lines
from runtime.dataclass import dataclass
from runtime.python_text import python_ast

_HEADS = ("def", "async", "@")
_FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

# A file that changed since then may differ from what was imported.
_STARTED = time.time()


class SourceUnavailable(Exception):
    """The source of a function can't be found, or isn't what the function was compiled from."""


@dataclass(frozen=True)
class FunctionSource:
    """A function's source.

    node: a new gast FunctionDef, AsyncFunctionDef (decorators still on it) or Lambda; its positions are the file's.
    filename: as in the function's code object.
    lines: the lines of the whole file or cell, each with its line end; ``line(n)`` counts from 1.
    class_name: the innermost class around the function, whose private names (``__x``) Python mangles, or None.
    module: the name of the function's module.
    """

    node: Any
    filename: str
    lines: list[str]
    class_name: str | None
    module: str | None

    def line(self, number: int) -> str:
        """Line ``number`` of the file, counted from 1; empty when there is none."""
        return self.lines[number - 1] if 0 < number <= len(self.lines) else ""

    @property
    def text(self) -> str:
        """The function's own source lines, decorators included."""
        first = min([self.node.lineno, *(each.lineno for each in getattr(self.node, "decorator_list", ()))])
        return "".join(self.lines[first - 1 : self.node.end_lineno])


def find(fn: Any) -> FunctionSource:
    """The source of a Python function or bound method.

    Raises SourceUnavailable, which says why, and UnknownSyntaxError, with the file and line, if gast can't express it.
    """
    fn, code = _function(fn)
    if code.co_filename == _UNNAMED and any(written_in(fn, filename) for filename in reversed(_carried)):
        code = fn.__code__
    lines = _lines(fn, code)
    class_name = class_of(fn)
    seen = _unchanged.pop(id(code), None)
    if seen is not None and seen[0] is code and seen[1].lines is lines and seen[1].class_name == class_name:
        return dataclasses.replace(seen[1], module=fn.__module__)
    found = _definition(fn, code, lines, class_name)
    if _changed_lately(code.co_filename) and not _is_source_of(found, fn, class_name, lines):
        raise _stale(code)
    try:
        node = from_ast(found)
    except UnknownSyntaxError as error:
        error.filename = code.co_filename
        raise
    return FunctionSource(node, code.co_filename, lines, class_name, fn.__module__)


def _definition(fn: Any, code: types.CodeType, lines: list[str], class_name: str | None) -> Any:
    return _find_lambda(fn, code, lines, class_name) if code.co_name == "<lambda>" else _find_def(code, lines)


_unchanged: collections.OrderedDict[int, tuple[types.CodeType, FunctionSource]] = collections.OrderedDict()


def give_back(fn: Any, source: FunctionSource) -> None:
    """Leaves what `find` gave, and nobody has changed or keeps, for the next `find` of the function."""
    code = _function(fn)[1]
    _unchanged[id(code)] = code, source
    if len(_unchanged) > 16:
        _unchanged.popitem(last=False)


def _function(fn: Any) -> tuple[Any, types.CodeType]:
    fn = getattr(fn, "__func__", fn)
    code = getattr(fn, "__code__", None)
    if not isinstance(code, types.CodeType):
        raise SourceUnavailable(f"{fn!r} is not a Python function")
    return fn, code


def _lines(fn: Any, code: types.CodeType) -> list[str]:
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename, fn.__globals__) or typed_lines(code) or _registered_lines(fn, code)
    if not lines:
        raise SourceUnavailable(
            f"no source text is known for {code.co_name} (file {code.co_filename!r}): the file is missing, or the code"
            " was made by exec() without registering its text with linecache"
        )
    if code.co_firstlineno > len(lines):
        raise _stale(code)
    return lines


def _registered_lines(fn: Any, code: types.CodeType) -> list[str]:
    """The text that Python's prompt kept with the code alone, which it does in files called `<stdin-1>` and so on."""
    plain = types.FunctionType(code, fn.__globals__, closure=fn.__closure__)
    try:
        return inspect.findsource(plain)[0]
    except (OSError, TypeError):
        return []


def _stale(code: types.CodeType) -> SourceUnavailable:
    return SourceUnavailable(
        f"the text at line {code.co_firstlineno} of {code.co_filename!r} is not that of {code.co_name}: it has changed"
        " since the function was defined; reload the module or run the cell again"
    )


def _changed_lately(filename: str) -> bool:
    try:
        return os.stat(filename).st_mtime > _STARTED
    except OSError:
        return False  # not a file: a cell, the prompt, an archive


def _is_source_of(node: _FunctionNode, fn: Any, class_name: str | None, lines: list[str]) -> bool:
    """Whether a function definition compiles to the code that ``fn`` has."""
    imported = _parsed_file(fn.__code__.co_filename, lines).imported
    return same_code(compile_like(node, fn, class_name, imported=imported), fn.__code__)


# Functions from other processes

# The file that cloudpickle, from 3.1.3 on, names in the code of every function that it has carried here.
_UNNAMED = "<dynamic-code>"
# The files that have come along with functions, as a set in order.
_carried: dict[str, None] = {}


def carry(filename: str, text: str) -> str:
    """Takes in the text of a file that functions from another process were written in; gives its name in this one.

    It has another name here if this process has another file of that name.
    """
    here = "".join(linecache.getlines(filename))
    if here and here != text:
        filename = f"{filename} (of another process)"
    if here != text:
        linecache.cache[filename] = len(text), None, text.splitlines(keepends=True), filename
    _carried.pop(filename, None)
    _carried[filename] = None
    return filename


def written_in(fn: types.FunctionType, filename: str) -> bool:
    """Whether a function was compiled from the text of a file. If so, its code names that file from then on."""
    code = _with_filename(fn.__code__, filename)
    lines = linecache.getlines(filename)
    if code.co_firstlineno > len(lines):
        return False
    tried = types.FunctionType(code, fn.__globals__, fn.__name__, None, fn.__closure__)
    tried.__qualname__ = fn.__qualname__
    class_name = class_of(tried)
    try:
        if not _is_source_of(_definition(tried, code, lines, class_name), tried, class_name, lines):
            return False
    except SourceUnavailable:
        return False
    fn.__code__ = code
    return True


def _with_filename(code: types.CodeType, filename: str) -> types.CodeType:
    constants = tuple([_with_filename(c, filename) if isinstance(c, types.CodeType) else c for c in code.co_consts])
    return code.replace(co_filename=filename, co_consts=constants)


# Functions made by def


def _find_def(code: types.CodeType, lines: list[str]) -> Any:
    first = _first_line(code.co_firstlineno, lines)
    indented = lines[first - 1][:1].isspace()
    # A block under an `if` parses as it stands: no dedenting, which would change strings that span lines.
    head = "if 1:\n" if indented else ""
    for end in itertools.islice(_ends(lines, first, _last_line(code)), 8):
        try:
            tree = python_ast(head + "".join(lines[first - 1 : end]))
        except (SyntaxError, ValueError):
            continue  # the line is inside a string or brackets, so the block goes on
        outer: Any = tree.body[0]
        node = positions_from_line(outer.body[0] if indented else outer, first - 1 if indented else first)
        if _describes(node, code):
            return node
        raise _stale(code)
    # A long text that only looks like the end of the block over and over: let the whole file tell.
    for node in _parsed_file(code.co_filename, lines).functions(code.co_firstlineno):
        if _describes(node, code):
            return node
    raise _stale(code)


def _first_line(first: int, lines: list[str]) -> int:
    """Where the function's text begins: Python counts from its first decorator, but not from a lonely ``@(``."""
    for number in range(first, max(first - 10, 0), -1):
        if lines[number - 1].lstrip().startswith(_HEADS):
            return number
    return first


def _ends(lines: list[str], first: int, last: int) -> Iterator[int]:
    """The lines where the block that begins at ``first`` and reaches ``last`` at least may end."""
    indent = _indent(lines[first - 1])
    for number in range(last, len(lines)):
        text = lines[number]
        if text.strip() and not text.lstrip().startswith("#") and _indent(text) <= indent:
            yield number
    yield len(lines)


def _indent(line: str) -> int:
    expanded = line.expandtabs(8)
    return len(expanded) - len(expanded.lstrip())


def _last_line(code: types.CodeType) -> int:
    """The last line that has code; the text may go on after it."""
    last = code.co_firstlineno
    for _, _, line in code.co_lines():
        if line is not None and line > last:
            last = line
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            last = max(last, _last_line(const))
    return last


def _describes(node: Any, code: types.CodeType) -> bool:
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) or node.name != code.co_name:
        return False
    first = node.decorator_list[0].lineno if node.decorator_list else node.lineno
    return first == code.co_firstlineno and _last_line(code) <= (node.end_lineno or 0) and _same_parameters(node, code)


def _same_parameters(node: _FunctionNode, code: types.CodeType) -> bool:
    args = node.args
    names = [arg.arg for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs)]
    names += [arg.arg for arg in (args.vararg, args.kwarg) if arg is not None]
    # Private names of parameters are mangled in the code object.
    return len(names) == _parameter_count(code) and all(
        there == here or (here.startswith("__") and there.endswith(here))
        for here, there in zip(names, code.co_varnames)
    )


def _parameter_count(code: types.CodeType) -> int:
    stars = bool(code.co_flags & 0x04) + bool(code.co_flags & 0x08)  # CO_VARARGS, CO_VARKEYWORDS
    return code.co_argcount + code.co_kwonlyargcount + stars


# Lambdas


def _find_lambda(fn: Any, code: types.CodeType, lines: list[str], class_name: str | None) -> Any:
    found: list[ast.Lambda] = []
    for file in _parsed_around(code, lines):
        here = file.functions(code.co_firstlineno)
        found = [node for node in here if isinstance(node, ast.Lambda) and _same_parameters(node, code)]
        if found:
            break
    if len(found) > 1:
        found = _by_position(found, code) or found
    if len(found) > 1:
        # Lambdas that compile to the same code mean the same: any will do.
        found = [node for node in found if _is_source_of(node, fn, class_name, lines)][:1]
    if not found:
        raise _stale(code)
    return found[0]


@dataclass(frozen=True)
class _File:
    """A parsed file."""

    lines: list[str]
    tree: ast.Module

    def functions(self, line: int) -> list[Any]:
        """The functions and lambdas whose first line this is, outer ones first."""
        found: list[Any] = []
        level: list[ast.AST] = [self.tree]
        while level:
            inner: list[ast.AST] = []
            for node in level:
                if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                    decorators = getattr(node, "decorator_list", None)
                    if line == (decorators[0].lineno if decorators else node.lineno):
                        found.append(node)
                inner += [child for child in ast.iter_child_nodes(node) if _holds(child, line)]
            level = inner
        return found

    @functools.cached_property
    def imported(self) -> frozenset[str]:
        """The names that its top level imports."""
        return frozenset(_imported(self.tree))


def _holds(node: Any, line: int) -> bool:
    """Whether there may be something on this line in a node, so that what is not there need not be walked through."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and node.decorator_list:
        return node.decorator_list[0].lineno <= line <= (node.end_lineno or line)
    return not hasattr(node, "lineno") or node.lineno <= line <= (node.end_lineno or line)


# By file, and the number of lines before the part of it that was parsed; None: all of it.
_parsed: collections.OrderedDict[tuple[str, int | None], _File] = collections.OrderedDict()


def _parsed_file(filename: str, lines: list[str]) -> _File:
    """A whole file, remembered until its text changes."""
    try:
        return _parsed_part(filename, lines, None, len(lines))
    except (SyntaxError, ValueError) as error:
        raise SourceUnavailable(f"the text of {filename!r} can't be parsed: {error}") from error


def _parsed_part(filename: str, lines: list[str], first: int | None, last: int) -> _File:
    known = _parsed.get((filename, first))
    if known is None or known.lines != lines:
        text = "".join(lines) if first is None else "\n" * first + "".join(lines[first:last])
        known = _parsed[filename, first] = _File(lines, python_ast(text))
        if len(_parsed) > 64:
            _parsed.popitem(last=False)
    return known


def _parsed_around(code: types.CodeType, lines: list[str]) -> Iterator[_File]:
    """What is known of a file that may hold a lambda: the statement of its top level alone, where that parses by
    itself, which is less than the whole; then the whole."""
    first, last = code.co_firstlineno - 1, code.co_firstlineno
    while first > 0 and not _begins(lines[first]):
        first -= 1
    while last < len(lines) and not _begins(lines[last]):
        last += 1
    with contextlib.suppress(SyntaxError, ValueError):  # the middle of a string, or of an `if` with an `else`
        yield _parsed_part(code.co_filename, lines, first, last)
    yield _parsed_file(code.co_filename, lines)


def _begins(line: str) -> bool:
    """Whether a line looks like the first one of a statement of the top level."""
    return not line[:1].isspace() and line[:1] not in ("", "#", ")", "]", "}")


def _imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.alias):
            name = node.asname or node.name.partition(".")[0]
            if name != "*":
                yield name
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.expr)):
            yield from _imported(node)


def _by_position(nodes: list[ast.Lambda], code: types.CodeType) -> list[ast.Lambda]:
    """The lambda whose body the instructions come from, where Python (3.11 on) records their columns."""
    if sys.version_info < (3, 11):
        return []
    # Instructions without a width belong to entering the function, not to its body.
    spans = {
        (line, column, end_line, end_column)
        for line, end_line, column, end_column in code.co_positions()
        if None not in (line, end_line, column, end_column) and end_column
    }
    if not spans:
        return []

    def holds(node: ast.Lambda) -> bool:
        first, last = _span(node.body)[:2], _span(node.body)[2:]
        return all(first <= span[:2] and span[2:] <= last for span in spans)

    # Of lambdas inside each other the innermost that holds all instructions.
    return sorted(filter(holds, nodes), key=lambda node: _span(node.body)[:2], reverse=True)[:1]


def _span(node: Any) -> tuple[int, int, int, int]:
    return node.lineno, node.col_offset, node.end_lineno, node.end_col_offset
