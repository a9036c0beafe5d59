"""Make a function object from a syntax tree, in place of the function that the tree was made from.

The new function has its own code only. All else is the original's: the closure cells themselves (so late binding and
``nonlocal`` hold), globals, the default values (not evaluated again), annotations, attributes, names. Decorators are
not applied again. The code is compiled under the user's file name, with the positions of the tree's nodes.

Example::

    >>> def scale(x, by=2):
    ...     return x * by
    >>> source = find(scale)
    >>> tripled = load(scale, parse("def scale(x, by=0): return 3 * x * by").body[0], {})
    >>> tripled(5)
    30
"""

from __future__ import annotations

import types
import weakref
from collections.abc import Collection, Mapping
from typing import Any

from autograph.syntax.compiled import class_of, compile_like, is_class_body, requalified
from autograph.syntax.parse import to_ast
from runtime.signatures import share_annotations

_loaded: dict[int, weakref.ref[types.CodeType]] = {}

_INFER = object()


def load(
    fn: Any, node: Any, extra: Mapping[str, object], class_name: Any = _INFER, blocks: Collection[str] = ()
) -> Any:
    """A function like ``fn`` whose code comes from ``node``, a gast function definition or lambda.

    ``extra`` are names that the code may use besides, with their values; they live in closure cells of their own.
    ``class_name`` is the class for mangling private names; without it, the class that ``fn`` is written in. ``blocks``
    names functions inside it that are pieces of the function around them: tracebacks, profiles and logs show them under
    that function's name. Raises ValueError when a name is both extra and a closure variable of ``fn``.
    """
    fn = getattr(fn, "__func__", fn)
    original = fn.__code__
    clash = extra.keys() & set(original.co_freevars)
    if clash:
        raise ValueError(f"{', '.join(sorted(clash))}: already a closure variable of {fn.__qualname__}")
    owner: str | None = class_of(fn) if class_name is _INFER else class_name
    code = _with_blocks_named(compile_like(to_ast(node), fn, owner, extra), blocks, fn.__qualname__)
    cells = dict(zip(original.co_freevars, fn.__closure__ or ()))
    closure = tuple(cells[name] if name in cells else types.CellType(extra[name]) for name in code.co_freevars)
    made = types.FunctionType(code, fn.__globals__, fn.__name__, fn.__defaults__, closure)
    made.__kwdefaults__ = fn.__kwdefaults__
    share_annotations(made, fn)
    made.__qualname__ = fn.__qualname__
    made.__module__ = fn.__module__
    made.__doc__ = fn.__doc__
    made.__dict__.update(fn.__dict__)
    if hasattr(fn, "__type_params__"):
        setattr(made, "__type_params__", fn.__type_params__)  # noqa: B010  (Python 3.12 on)
    adopt(code)
    return made


def _with_blocks_named(code: types.CodeType, blocks: Collection[str], qualname: str) -> types.CodeType:
    """The code with the blocks in it called what the function around them is called, also in names below them."""
    qualname = getattr(code, "co_qualname", qualname)  # Python 3.11 on
    inside = qualname if is_class_body(code) else f"{qualname}.<locals>"
    changed = False
    constants = []
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            made, its_name = const, f"{inside}.{const.co_name}"
            if const.co_name in blocks:
                made = requalified(const, its_name, qualname).replace(co_name=code.co_name)
                its_name = qualname
            made = _with_blocks_named(made, blocks, its_name)
            changed = changed or made is not const
            const = made
        constants.append(const)
    return code.replace(co_consts=tuple(constants)) if changed else code


def is_loaded_code(code: types.CodeType) -> bool:
    """Whether this very code object, or one that it is nested in, was made by ``load``."""
    known = _loaded.get(id(code))
    return known is not None and known() is code


def adopt(code: types.CodeType) -> None:
    """Notes that code, and all that is nested in it, was made by ``load``: here, or by another process."""
    # By identity: code objects compare equal by value, and an equal one may be the user's own.
    key = id(code)
    _loaded[key] = weakref.ref(code, lambda _, key=key: _loaded.pop(key, None))  # type: ignore[misc]
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            adopt(const)
