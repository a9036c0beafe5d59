"""Compile one function in the surroundings of another: same free variables, same class, same ``__future__``.

The function is never run in its new surroundings; only its code object is taken out.

Example::

    >>> code = compile_like(ast.parse("def f(x): return x + k").body[0], fn, class_of(fn))
    >>> code.co_freevars  # when k is a closure variable of fn
    ('k',)
"""

from __future__ import annotations
import __future__

import ast
import inspect
import types
from collections.abc import Iterable
from typing import Any

from runtime.python_text import without_syntax_warnings

_FUTURE_FLAGS = 0
for _name in __future__.all_feature_names:
    _FUTURE_FLAGS |= getattr(__future__, _name).compiler_flag

# Since Python 3.14 a flag of functions that stand directly in a class.
_METHOD: int = getattr(inspect, "CO_METHOD", 0)

# Can't be a name in a program, so it can't shadow one, and it is easy to find in qualified names.
_FACTORY = "<autograph>"


def class_of(fn: Any) -> str | None:
    """The innermost class that a function is written in, by its qualified name, or None."""
    qualname = getattr(fn.__code__, "co_qualname", fn.__qualname__)
    *outer, own = qualname.split(".")
    if own != fn.__code__.co_name:  # renamed by functools.wraps, so the name tells nothing (Python 3.10 only)
        return None
    for index in range(len(outer) - 1, -1, -1):
        followed_by = outer[index + 1] if index + 1 < len(outer) else own
        if outer[index] != "<locals>" and followed_by != "<locals>":
            return outer[index]
    return None


def future_flags(code: types.CodeType) -> int:
    """The compiler flags of the ``__future__`` imports that a code object was compiled under."""
    return code.co_flags & _FUTURE_FLAGS


def compile_like(
    node: Any, fn: Any, class_name: str | None, extra: Iterable[str] = (), imported: Iterable[str] = ()
) -> types.CodeType:
    """The code object of an ast function definition or lambda, compiled as if written where ``fn`` was.

    The names in ``extra`` become free variables too. ``imported`` are names that the module imports: the compiler
    calls their attributes by other instructions, which matters only where code objects are compared. Defaults,
    decorators, annotations and type parameters of the function itself don't count; the node isn't changed. Missing
    positions are filled in from the nodes around.
    """
    code = fn.__code__
    stripped = _stripped(node, code.co_firstlineno)
    outside = [name for name in (*code.co_freevars, *extra) if class_name is None or name != "__class__"]
    if isinstance(stripped, ast.Lambda):
        body: list[Any] = [ast.Expr(stripped)]
    else:
        body = [stripped]
        if class_name is None and node.name not in outside:
            # The definition must not hide a module variable of the same name (the function itself, when it recurses).
            body.insert(0, ast.Global([node.name]))
    if class_name is not None:
        body = [_class(class_name, body)]
        if class_name not in outside:
            # Nor must the class hide a module variable of the same name (the class itself, when a method names it).
            body.insert(0, ast.Global([class_name]))
    factory = _function(_FACTORY, outside, body)
    tree = ast.copy_location(factory, node)
    imports: list[Any] = [ast.Import([ast.alias(name) for name in sorted(imported)])] if imported else []
    module = ast.fix_missing_locations(ast.Module([*imports, tree], []))
    with without_syntax_warnings():
        compiled = compile(module, code.co_filename, "exec", flags=future_flags(code), dont_inherit=True)
    inner = _only_code(compiled)
    if class_name is not None:
        inner = _only_code(inner)
    inner = _only_code(inner)
    inner = inner.replace(co_flags=(inner.co_flags & ~_METHOD) | (code.co_flags & _METHOD))
    scope = "" if isinstance(body[0], ast.Global) else f"{_FACTORY}.<locals>."
    if class_name is not None:
        scope += f"{class_name}."
    return requalified(inner, scope + inner.co_name, getattr(code, "co_qualname", fn.__qualname__))


def is_class_body(code: types.CodeType) -> bool:
    """Whether code nested in other code is that of a class rather than a function."""
    return not code.co_flags & inspect.CO_OPTIMIZED


def same_code(one: types.CodeType, other: types.CodeType) -> bool:
    """Whether two code objects do the same: names, constants and instructions, not where they come from."""
    return (
        one.co_code == other.co_code
        and one.co_names == other.co_names
        and one.co_varnames == other.co_varnames
        and one.co_freevars == other.co_freevars
        and one.co_cellvars == other.co_cellvars
        and len(one.co_consts) == len(other.co_consts)
        and all(_same_constant(*pair) for pair in zip(one.co_consts, other.co_consts))
    )


def _same_constant(one: Any, other: Any) -> bool:
    if isinstance(one, types.CodeType) and isinstance(other, types.CodeType):
        return same_code(one, other)
    if isinstance(one, str) and isinstance(other, str) and "<locals>" in one and "<locals>" in other:
        return True  # the qualified name of a nested function, which tells where it comes from
    return type(one) is type(other) and repr(one) == repr(other)


def _stripped(node: Any, first_line: int) -> Any:
    """A shallow copy without what is evaluated where the function is defined rather than when it is called."""
    args = node.args
    plain = ast.arguments(
        posonlyargs=[ast.copy_location(ast.arg(arg.arg, None), arg) for arg in args.posonlyargs],
        args=[ast.copy_location(ast.arg(arg.arg, None), arg) for arg in args.args],
        vararg=args.vararg and ast.copy_location(ast.arg(args.vararg.arg, None), args.vararg),
        kwonlyargs=[ast.copy_location(ast.arg(arg.arg, None), arg) for arg in args.kwonlyargs],
        kw_defaults=[None for _ in args.kwonlyargs],
        kwarg=args.kwarg and ast.copy_location(ast.arg(args.kwarg.arg, None), args.kwarg),
        defaults=[],
    )
    if isinstance(node, ast.Lambda):
        return ast.copy_location(ast.Lambda(plain, node.body), node)
    made = _definition(type(node), node.name, plain, node.body, [], None, None)
    ast.copy_location(made, node)
    if first_line < made.lineno:
        # A decorated function begins, for tracebacks and `inspect`, at its first decorator.
        made.decorator_list = [
            ast.Constant(None, lineno=first_line, col_offset=0, end_lineno=first_line, end_col_offset=0)
        ]
    return made


def _function(name: str, parameters: Iterable[str], body: list[Any]) -> Any:
    args = ast.arguments(
        posonlyargs=[],
        args=[ast.arg(name, None) for name in parameters],
        vararg=None,
        kwonlyargs=[],
        kw_defaults=[],
        kwarg=None,
        defaults=[],
    )
    return _definition(ast.FunctionDef, name, args, body, [], None, None)


def _class(name: str, body: list[Any]) -> Any:
    return _definition(ast.ClassDef, name, [], [], body, [])


def _definition(kind: Any, *fields: Any) -> Any:
    """A node of a function or class without type parameters."""
    node = kind(*fields)
    if "type_params" in kind._fields:  # Python 3.12 on; there the field must not be missing
        node.type_params = []
    return node


def _only_code(outer: types.CodeType) -> types.CodeType:
    found = [const for const in outer.co_consts if isinstance(const, types.CodeType)]
    if len(found) != 1:
        raise ValueError("this Python doesn't keep the code of a nested function among the constants around it")
    return found[0]


def requalified(code: types.CodeType, old: str, new: str) -> types.CodeType:
    """The code object with the qualified names in it (its own and those of nested functions) moved."""
    if old == new:
        return code

    def moved(name: str) -> str:
        return new + name[len(old) :] if name.startswith(prefix) else name

    def moved_constant(const: Any) -> Any:
        if isinstance(const, types.CodeType):
            changed = const.replace(co_consts=moved_constants(const))
            return changed.replace(co_qualname=moved(const.co_qualname)) if has_qualname else changed
        # Up to Python 3.10 the qualified name of a nested function is a constant of the code that makes it.
        return moved(const) if isinstance(const, str) and not has_qualname else const

    def moved_constants(code: types.CodeType) -> tuple[Any, ...]:
        if has_qualname and is_class_body(code):  # it sets its qualified name
            return tuple(moved(each) if isinstance(each, str) else moved_constant(each) for each in code.co_consts)
        return tuple(map(moved_constant, code.co_consts))

    has_qualname = hasattr(code, "co_qualname")
    prefix = old + ".<locals>."
    made = code.replace(co_consts=moved_constants(code))
    return made.replace(co_qualname=new) if has_qualname else made
