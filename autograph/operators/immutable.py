"""What is said where Python code would change a tensor in place, or look something up by a tensor.

Tensors don't change, so `x[i] = v` has no meaning for them. The error shows the user's statement, and the one that does
what was meant. It is the same in eager code and while a function is traced.
"""

from __future__ import annotations

import ast
import sys
from types import FrameType
from typing import Any, NoReturn

from autograph.errors import Location, is_own_file, location_of
from autograph.operators.swallowing import tree_of
from runtime.errors import keep_refusal
from runtime.ops.host_array import HostArray
from runtime.ops.staged_number import StagedNumber
from runtime.tensor import SymbolicTensor, Tensor
from runtime.tensor_array import TensorArray
from runtime.tracebacks import shows_no_frames, user_frame
from runtime.variable import Variable

_IMMUTABLE = "tensors are immutable; operations make new ones"
_FUNCTIONS: dict[Any, str] = {ast.Add: "tensor_scatter_nd_add", ast.Sub: "tensor_scatter_nd_sub"}


@shows_no_frames
def _set_item(self: Any, key: Any, value: Any) -> NoReturn:
    """Raises TypeError: tensors, and what is made of them, don't change in place."""
    frame = user_frame(sys._getframe(1))
    location, statement = _statement(frame)
    ag = _alias(frame)
    target = statement.targets[0] if isinstance(statement, ast.Assign) else getattr(statement, "target", None)
    if not isinstance(target, ast.Subscript):
        target = ast.parse("x[i] = v").body[0].targets[0]  # type: ignore[attr-defined]
        statement = None
    old = ast.unparse(target.value)
    if isinstance(statement, (ast.Assign, ast.AugAssign)):
        given = ast.unparse(statement.value)
    else:
        given = "v"  # `x[i], y = ...`, `for x[i] in ...`
    operator = statement.op if isinstance(statement, ast.AugAssign) else None
    if isinstance(self, Variable):
        text = ast.unparse(target)
        assigned = given if operator is None else _combined(text, operator, given)
        fixes = [f"{text}.assign({assigned})"]
    elif isinstance(self, TensorArray):
        fixes = [f"{old} = {old}.write({ast.unparse(target.slice)}, {given})"]
    else:
        fixes = [
            *_rewritten(ag, self, key, value, target, operator, given),
            f"if a loop makes all elements, use a list, or an {ag}.TensorArray: `array = array.write(i, v)`, then "
            "`array.stack()`",
            f"for state that changes, use an {ag}.Variable made outside of functions: "
            f"`{_of_variable(target, operator, given)}`",
        ]
    cause = {
        Variable: "variables change through their methods",
        TensorArray: "`write` returns an array that holds the value",
    }
    _raise(
        f"'{type(self).__name__}' object does not support item assignment",
        location,
        cause.get(type(self), _IMMUTABLE),
        fixes,
    )


@shows_no_frames
def _delete_item(self: Any, key: Any) -> NoReturn:
    """Raises TypeError: tensors don't change in place."""
    frame = user_frame(sys._getframe(1))
    location, statement = _statement(frame)
    target = statement.targets[0] if isinstance(statement, ast.Delete) else None
    old, index = "x", "i"
    if isinstance(target, ast.Subscript):
        old, index = ast.unparse(target.value), ast.unparse(target.slice)
    after = int(index) + 1 if index.isdecimal() else f"{index} + 1"
    fix = f"{old} = {_alias(frame)}.concat([{old}[:{index}], {old}[{after}:]], 0)"
    _raise(f"'{type(self).__name__}' object doesn't support item deletion", location, _IMMUTABLE, [fix])


class _Unsupported:
    """A method of lists or arrays that changes them in place: tensors have none such."""

    def __init__(self, name: str, fixes: tuple[str, ...]) -> None:
        self.name = name
        self.fixes = fixes

    @shows_no_frames
    def __get__(self, tensor: Any, owner: Any = None) -> NoReturn:
        """Raises AttributeError."""
        message = f"'{(owner if tensor is None else type(tensor)).__name__}' object has no attribute '{self.name}'"
        frame = user_frame(sys._getframe(1))
        ag = _alias(frame)
        location = None if frame is None else location_of(frame.f_code, frame.f_lineno, frame.f_lasti)
        text = _text(message, location, _IMMUTABLE, [fix.format(ag=ag) for fix in self.fixes])
        raise AttributeError(text, name=self.name, obj=tensor)


_GROWING = (
    "collect the values in a Python list, `values = []`, `values.append(v)`, and {ag}.stack(values) at the end",
    "x = {ag}.concat([x, [v]], 0), which copies x",
)
_SHRINKING = ("use a Python list, which may hold tensors", "take a slice: `x, last = x[:-1], x[-1]`")
_UNSUPPORTED = {
    **dict.fromkeys(["append", "extend", "insert"], _GROWING),
    **dict.fromkeys(["pop", "remove", "clear"], _SHRINKING),
    "sort": ("x = {ag}.sort(x)",),
    "reverse": ("x = {ag}.reverse(x, [0])",),
    "fill": ("x = {ag}.fill(x.shape, v)",),
    "put": ("x = {ag}.tensor_scatter_nd_update(x, [[i]], [v])",),
}

_NO_VALUE = "a dictionary or set finds a key by its value, and {} has one only at run time"
_UNHASHABLE = "Tensor is unhashable. Instead, use tensor.ref() as the key."


@shows_no_frames
def _hash(self: Any) -> NoReturn:
    """Raises TypeError: tensors are equal or not element by element."""
    frame = _asker()
    if is_own_file(frame.f_code.co_filename):
        raise TypeError(_UNHASHABLE)
    ag = _alias(frame)
    location = location_of(frame.f_code, frame.f_lineno, frame.f_lasti)
    if isinstance(self, SymbolicTensor):
        cause = _NO_VALUE.format("a symbolic tensor")
        fixes = _instead_of_keys(ag)
    else:
        cause = "`==` compares tensors element by element, so a dictionary or set can't find one by its value"
        fixes = ["use its value as the key, `int(t)` or `float(t)`, or its identity, `t.ref()`"]
    _raise(_UNHASHABLE, location, cause, fixes)


@shows_no_frames
def _hash_of_number(self: StagedNumber) -> NoReturn:
    """Raises TypeError: the number has no value while it is traced."""
    frame = _asker()
    message = (
        f"a Python {self.kind.__name__} that is known only at run time can't be the key of a dictionary "
        "or the element of a set"
    )
    if is_own_file(frame.f_code.co_filename):
        raise TypeError(message)
    location = location_of(frame.f_code, frame.f_lineno, frame.f_lasti)
    cause = _NO_VALUE.format("a number that a loop or branch on tensors changes")
    fixes = [
        "give a dictionary all keys that may come before that: `{k: 0 for k in range(n)}`",
        *_instead_of_keys(_alias(frame)),
    ]
    _raise(message, location, cause, fixes, is_refusal=True)


def _asker() -> Any:
    """The frame that asks for a hash: behind the wrapper of `__hash__`, and behind what stands for ``d[k]``."""
    frame: Any = sys._getframe(3)
    while frame.f_globals.get("__name__") == "autograph.operators.items":
        frame = frame.f_back
    return frame


def _instead_of_keys(ag: str) -> list[str]:
    return [
        f"for values of one type, use a list or tensor and an index: `{ag}.stack(values)[i]`",
        f"for others, use {ag}.switch_case(i, functions), or `if` and `elif`",
    ]


class _Refusal(TypeError):
    """A TypeError whose text dictionaries and sets don't put into one of their own, as they do since Python 3.14."""

    def __reduce__(self) -> tuple[Any, ...]:
        return TypeError, self.args


_Refusal.__module__, _Refusal.__qualname__ = "builtins", "TypeError"  # what tracebacks show


def _raise(message: str, location: Location | None, cause: str, fixes: list[str], is_refusal: bool = False) -> NoReturn:
    """is_refusal: eagerly there is no error."""
    error = _Refusal(_text(message, location, cause, fixes))
    if is_refusal:
        keep_refusal(error)
    raise error


def _text(message: str, location: Location | None, cause: str, fixes: list[str]) -> str:
    lines = [message] if location is None else [message, *location.describe().splitlines()]
    return "\n  ".join([*lines, f"cause: {cause}", f"fix: {fixes[0]}", *[f"  or {each}" for each in fixes[1:]]])


def _rewritten(
    ag: str, x: Tensor, key: Any, value: Any, target: ast.Subscript, operator: ast.operator | None, given: str
) -> list[str]:
    """The statement that makes a tensor with some elements replaced; nothing where that takes several."""
    old, item = ast.unparse(target.value), ast.unparse(target)
    rank = _rank_of_item(x, key)
    if isinstance(key, Tensor) and key.dtype.is_bool:
        mask = ast.unparse(target.slice)
        return [f"{old} = {ag}.where({mask}, {given if operator is None else _combined(old, operator, given)}, {old})"]
    combined = given if operator is None else _combined(item, operator, given)
    if operator is None and rank and _rank(value) == 0:  # one number for many elements
        combined = f"{ag}.zeros_like({item}) + {_operand(given)}"
    if isinstance(target.slice, ast.Slice) and target.slice.step is None:
        start, stop = target.slice.lower, target.slice.upper
        parts = [
            *([f"{old}[:{ast.unparse(start)}]"] if start is not None else []),
            combined,
            *([f"{old}[{ast.unparse(stop)}:]"] if stop is not None else []),
        ]
        return [f"{old} = {ag}.concat([{', '.join(parts)}], 0)" if len(parts) > 1 else f"{old} = {combined}"]
    parts_of_index = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
    keys = key if isinstance(key, tuple) else (key,)
    if any(each is None or each is ... or isinstance(each, slice) or _rank(each) for each in keys):
        return []  # columns, steps, several indices
    index = ", ".join(_from_the_start(old, axis, *each) for axis, each in enumerate(zip(parts_of_index, keys)))
    function = "tensor_scatter_nd_update"
    if rank == 0 and type(operator) in _FUNCTIONS:
        function, combined = _FUNCTIONS[type(operator)], given
    return [f"{old} = {ag}.{function}({old}, [[{index}]], [{combined}])"]


def _from_the_start(old: str, axis: int, node: ast.expr, key: Any) -> str:
    """An index as text; a negative one counted from the start, as scattering does."""
    text = ast.unparse(node)
    if isinstance(key, SymbolicTensor) or not int(key) < 0:
        return text
    length = f"len({old})" if axis == 0 else f"{old}.shape[{axis}]"
    return f"{length} - {-int(key)}" if isinstance(node, ast.UnaryOp) else f"{length} + {text}"


def _of_variable(target: ast.Subscript, operator: ast.operator | None, given: str) -> str:
    """The assignment to the same part of a variable."""
    item = ast.unparse(ast.Subscript(ast.Name("state", ast.Load()), target.slice, ast.Load()))
    return f"{item}.assign({given if operator is None else _combined(item, operator, given)})"


def _combined(left: str, operator: ast.operator, right: str) -> str:
    """`left + right` as text."""
    made = ast.parse("a + b", mode="eval").body
    assert isinstance(made, ast.BinOp)
    made.op = operator
    made.left, made.right = ast.parse(left, mode="eval").body, ast.parse(right, mode="eval").body
    return ast.unparse(made)


def _operand(text: str) -> str:
    node = ast.parse(text, mode="eval").body
    return text if isinstance(node, (ast.Name, ast.Constant, ast.Call, ast.Subscript, ast.Attribute)) else f"({text})"


def _rank(value: Any) -> int | None:
    shape = getattr(value, "_shape", getattr(value, "shape", ()))
    if isinstance(value, (list, tuple)):
        return 1 + (_rank(value[0]) or 0) if value else 1
    return None if shape is None else len(shape)


def _rank_of_item(x: Tensor, key: Any) -> int | None:
    """The rank of `x[key]` for indices of rank 0; None where it isn't known."""
    if x._shape is None:
        return None
    keys = key if isinstance(key, tuple) else (key,)
    return len(x._shape) - sum(not isinstance(each, slice) for each in keys)


def _statement(frame: FrameType | None) -> tuple[Location | None, Any]:
    """Where a frame is, and the assignment or deletion there; None for that where it can't be found."""
    if frame is None:
        return None, None
    location = location_of(frame.f_code, frame.f_lineno, frame.f_lasti)
    found = None
    for node in ast.walk(tree_of(location.filename)):
        if isinstance(node, (ast.Assign, ast.AugAssign, ast.Delete)):
            first, last = node.lineno, node.end_lineno or node.lineno
            targets = [node.target] if isinstance(node, ast.AugAssign) else node.targets
            here = first <= location.line <= last and any(isinstance(each, ast.Subscript) for each in targets)
            # Several in one line: the one whose target stands at the column.
            if here and (found is None or any(each.col_offset == location.column for each in targets)):
                found = node
    return location, found


def _alias(frame: FrameType | None) -> str:
    """What the user calls this package."""
    names = frame.f_globals if frame is not None else {}
    return next((name for name, value in names.items() if getattr(value, "__name__", "") == "autograph"), "ag")


def install() -> None:
    """Gives tensors, variables and arrays of tensors these methods, which need to know the user's code."""
    tensor: Any = Tensor
    number: Any = StagedNumber
    number.__hash__ = _hash_of_number
    tensor.__setitem__, tensor.__delitem__, tensor.__hash__ = _set_item, _delete_item, _hash
    for name, fixes in _UNSUPPORTED.items():
        setattr(tensor, name, _Unsupported(name, fixes))
    tensor.__dir__ = lambda self: [name for name in object.__dir__(self) if name not in _UNSUPPORTED]
    for kind in (Variable, TensorArray, HostArray):
        owner: Any = kind
        owner.__setitem__ = _set_item
