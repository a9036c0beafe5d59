"""What operators call: the special methods and setters of the user's classes, converted in a trace.

Otherwise Python's own operators. Which method is asked first, and what is said when none knows the operands, is as in
the Python Language Reference, 3.3.1 and 3.3.8.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from contextlib import _GeneratorContextManager
from types import FunctionType
from typing import Any

from autograph.operators import live
from autograph.operators.absence import none_test
from autograph.operators.calls import converted_form, maker_of
from autograph.operators.choices import Choice
from autograph.operators.items import item
from autograph.operators.logic import compare, is_, not_
from autograph.operators.objects import compares_by_identity
from autograph.operators.property_names import is_generated
from runtime.context import ctx

# For each symbol: Python's operator, the method, and the one of the right operand.
BINARY: dict[str, tuple[Callable[[Any, Any], Any], str, str]] = {
    symbol: (python, f"__{name}__", f"__r{name}__")
    for symbol, python, name in [
        ("+", operator.add, "add"), ("-", operator.sub, "sub"), ("*", operator.mul, "mul"),
        ("/", operator.truediv, "truediv"), ("//", operator.floordiv, "floordiv"), ("%", operator.mod, "mod"),
        ("**", operator.pow, "pow"), ("@", operator.matmul, "matmul"), ("<<", operator.lshift, "lshift"),
        (">>", operator.rshift, "rshift"), ("&", operator.and_, "and"), ("|", operator.or_, "or"),
        ("^", operator.xor, "xor"),
    ]
}  # fmt: skip
BINARY |= {
    "<": (operator.lt, "__lt__", "__gt__"), "<=": (operator.le, "__le__", "__ge__"),
    ">": (operator.gt, "__gt__", "__lt__"), ">=": (operator.ge, "__ge__", "__le__"),
    "==": (operator.eq, "__eq__", "__eq__"), "!=": (operator.ne, "__ne__", "__ne__"),
}  # fmt: skip
COMPARISONS = frozenset({"<", "<=", ">", ">=", "==", "!="})
_IN_PLACE = {
    f"{symbol}=": getattr(operator, f"i{method.strip('_')}")
    for symbol, (_, method, _) in BINARY.items()
    if symbol not in COMPARISONS
}
_ALONE: dict[str, tuple[Callable[[Any], Any], str]] = {
    "-": (operator.neg, "__neg__"), "+": (operator.pos, "__pos__"), "~": (operator.invert, "__invert__")
}  # fmt: skip


def operate(left: Any, symbol: str, right: Any) -> Any:
    """``left + right`` and the like, ``left += right`` and comparisons: the value of it."""
    plain = symbol[:-1] if symbol in _IN_PLACE else symbol
    python, method, reflected = BINARY[plain]
    if ctx.builder is not None:
        if plain is not symbol and _users(left, f"__i{method[2:]}") is not None:
            result = _ask(left, f"__i{method[2:]}", right)
            if result is not NotImplemented:
                return result
        elif symbol == "!=" and _inverts_equality(left) and _users(left, "__eq__") is not None:
            return not_(operate(left, "==", right))
        if _users(left, method) is not None or _users(right, reflected) is not None:
            return _asked_in_turn(left, plain, right)
    if plain is not symbol:
        return _IN_PLACE[symbol](left, right)
    if (
        symbol in ("==", "!=")
        and ctx.builder is not None
        and (compares_by_identity(left) or compares_by_identity(right))
    ):
        found = is_(left, right)
        return found if symbol == "==" else not_(found)
    return compare(left, symbol, right) if symbol in COMPARISONS else python(left, right)


def equals_none(value: Any) -> Any:
    """``value == None``: of what is None on some ways through the program, whether it is."""
    if ctx.builder is not None and not isinstance(value, Choice):
        found = none_test(value)
        if type(found) is not bool:
            return found
    return operate(value, "==", None)


def differs_from_none(value: Any) -> Any:
    """``value != None``."""
    if ctx.builder is not None and not isinstance(value, Choice):
        found = none_test(value)
        if type(found) is not bool:
            return not_(found)
    return operate(value, "!=", None)


def operate_alone(symbol: str, value: Any) -> Any:
    """``-value`` and the like."""
    python, method = _ALONE[symbol]
    function = _users(value, method)
    return python(value) if function is None else function(value)


def get_item(owner: Any, index: Any) -> Any:
    """``owner[index]``."""
    function = _users(owner, "__getitem__")
    return item(owner, index) if function is None else function(owner, index)


def set_item(value: Any, owner: Any, index: Any) -> None:
    """``owner[index] = value``."""
    function = _users(owner, "__setitem__")
    if function is None:
        owner[index] = value
    else:
        function(owner, index, value)


def set_attribute(value: Any, owner: Any, name: str) -> None:
    """``owner.name = value``: the setter of a property of the user's class is converted."""
    member = _member(type(owner), name)
    is_setter = ctx.builder is not None and type(member) is property and type(member.fset) is FunctionType
    if is_setter and type(owner).__setattr__ is object.__setattr__:
        converted_form(member.fset)(owner, value)
    else:
        setattr(owner, name, value)


def manager(owner: Any) -> Any:
    """What a ``with`` statement enters in place of ``owner``."""
    enter, leave = _users(owner, "__enter__"), _users(owner, "__exit__")
    if enter is not None and leave is not None:
        return _Manager(owner, enter, leave)
    return _Generator(owner) if ctx.builder is not None and type(owner) is _GeneratorContextManager else owner


class _Manager:
    """A context manager of the user's, with converted methods."""

    def __init__(self, owner: Any, enter: Callable[..., Any], leave: Callable[..., Any]) -> None:
        self._owner, self._enter, self._leave = owner, enter, leave

    def __enter__(self) -> Any:
        found = self._enter(self._owner)
        live.pending.objects.append(self._owner)
        return found

    def __exit__(self, *error: Any) -> Any:
        live.pending.objects.pop()
        return self._leave(self._owner, *error)


class _Generator:
    """A context manager that a generator function has made, whose rest runs when it is left."""

    def __init__(self, owner: Any) -> None:
        self._owner = owner

    def __enter__(self) -> Any:
        found = self._owner.__enter__()
        live.pending.objects.append(self._owner.gen.gi_frame)
        return found

    def __exit__(self, *error: Any) -> Any:
        live.pending.objects.pop()
        return self._owner.__exit__(*error)


def _member(kind: type, name: str) -> Any:
    """What a class or one of its bases has under a name, as it stands there."""
    return next((vars(each)[name] for each in kind.__mro__ if name in vars(each)), None)


def _users(owner: Any, name: str) -> Any:
    """In a trace the converted form of a special method of the user's, None for any other."""
    if ctx.builder is None:
        return None
    member = _member(type(owner), name)
    if type(member) is not FunctionType or is_generated(member) or maker_of(member) is None:
        return None
    return converted_form(member)


def _ask(owner: Any, name: str, other: Any) -> Any:
    function = _users(owner, name)
    if function is not None:
        return function(owner, other)
    member = _member(type(owner), name)
    if member is None:
        return NotImplemented
    bound = member.__get__(owner, type(owner)) if hasattr(type(member), "__get__") else member
    return bound(other)


def _asked_in_turn(left: Any, symbol: str, right: Any) -> Any:
    _, method, reflected = BINARY[symbol]
    turns = [(left, method, right), (right, reflected, left)]
    one, other = type(left), type(right)
    comes_first = (
        one is not other and issubclass(other, one) and _member(one, reflected) is not _member(other, reflected)
    )
    # The `+` and `*` of C's sequences are asked last.
    if comes_first or (isinstance(left, (list, tuple, str, bytes, bytearray)) and _users(left, method) is None):
        turns.reverse()
    if one is other and symbol not in COMPARISONS:
        turns.pop()
    for owner, name, operand in turns:
        result = _ask(owner, name, operand)
        if result is not NotImplemented:
            return result
    if symbol == "==":
        return left is right
    if symbol == "!=":
        return left is not right
    names = f"'{one.__name__}' and '{other.__name__}'"
    if symbol in COMPARISONS:
        raise TypeError(f"'{symbol}' not supported between instances of {names}")
    raise TypeError(f"unsupported operand type(s) for {symbol}: {names}")


def _inverts_equality(owner: Any) -> bool:
    return _member(type(owner), "__ne__") is object.__ne__
