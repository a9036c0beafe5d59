"""Why a function was traced again: what differs between a call and the trace that was made before it."""

from __future__ import annotations

import collections
import contextlib
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

from autograph.function.concrete import ConcreteFunction
from autograph.function.guards import AnyGuard
from autograph.function.signature import Arguments, WeakArgument, is_tensor_like, recalled
from runtime import nest
from runtime.errors import RetracingWarning
from runtime.shapes import as_shape
from runtime.tracebacks import user_frame, warn
from runtime.variable import Variable

# What to do about a trace for each variable.
_VARIABLES = (
    "which the function tells from the one before (by its options or name, or because it reaches one of them otherwise "
    "than through this argument): pass the value (variable.read_value()) where it is only read"
)
# A function that has been traced this often, and again at each doubling, says so.
_WARN_AT = 8


def explain(
    before: ConcreteFunction, broken: AnyGuard | None, args: tuple, kwargs: dict[str, Any], arguments: Arguments
) -> str:
    """One line: what changed since the trace `before`."""
    if broken is not None:
        return f"{broken.label} changed from {broken.value!r} to {broken.read()!r}"
    old_args, old_kwargs = before.arguments
    differences = []
    pairs = [(arguments.name_of(i), a, b) for i, (a, b) in enumerate(zip(old_args, args))]
    pairs += [(name, old_kwargs[name], kwargs[name]) for name in sorted(old_kwargs.keys() & kwargs.keys())]
    for name, old, new in pairs:
        differences += _differences(f"argument '{name}'", old, new)
    if len(old_args) != len(args) or old_kwargs.keys() != kwargs.keys():
        differences.append(
            f"it was called with {len(args) + len(kwargs)} arguments, not {len(old_args) + len(old_kwargs)}"
        )
    return "; ".join(differences) or "it was called with another object of the same kind"


def _differences(label: str, old: Any, new: Any) -> list[str]:
    if nest.is_nested(old) or nest.is_nested(new):
        try:
            nest.assert_same_structure(old, new)
        except (TypeError, ValueError):
            return [f"{label} changed its structure"]
        pairs = zip(nest.flatten(old), nest.flatten(new))
        return [d for i, (a, b) in enumerate(pairs) for d in _differences(f"{label} (element {i})", a, b)]
    if is_tensor_like(old) and is_tensor_like(new):
        found = []
        if old.dtype != new.dtype:
            found.append(f"dtype {_name(old.dtype)} → {_name(new.dtype)}")
        if as_shape(old.shape) != as_shape(new.shape):
            found.append(f"shape {_shape(old)} → {_shape(new)}")
        return [f"{label}: {', '.join(found)}"] if found else []
    if isinstance(new, Variable):
        before = recalled(old)
        if before is new:
            return []
        if isinstance(before, Variable) and (before.dtype, before.shape) != (new.dtype, new.shape):
            kinds = [f"{v.dtype.name} {v.shape}" for v in (before, new)]
            return [f"{label}: a variable of {kinds[0]} → one of {kinds[1]}"]
        return [f"{label}: another variable, {new.name!r}, {_VARIABLES}"]
    if isinstance(old, WeakArgument) and old.get() is None:
        return [f"{label}: {old!r}, which is gone, → {new!r}"]
    if type(recalled(old)) is not type(new):
        return [f"{label}: {_kind(recalled(old))} → {_kind(new)}"]
    old = recalled(old)
    if is_tensor_like(old) or old is new:
        return []
    try:
        same = bool(old == new)
    except Exception:  # any object may refuse to be compared; then it counts as another one
        same = False
    return [] if same else [f"{label}: the Python value {old!r} → {new!r}; pass it as a tensor to trace once"]


def _name(dtype: Any) -> str:
    return getattr(dtype, "name", str(dtype))


def _shape(value: Any) -> str:
    known = as_shape(value.shape)
    return "unknown" if known is None else str(known)


def _kind(value: Any) -> str:
    return "a tensor" if is_tensor_like(value) else f"a Python {type(value).__name__}"


class Reasons:
    """Why the second trace of a function was made, the third, ...: the latest, and how many there were."""

    _KEPT = 256

    def __init__(self) -> None:
        self.count = 0
        self.latest: collections.deque[str] = collections.deque(maxlen=self._KEPT)

    def add(self, reason: str) -> None:
        self.count += 1
        self.latest.append(reason)

    def lines(self) -> list[str]:
        """A line for each trace after the first."""
        dropped = self.count - len(self.latest)
        lines = [f"  trace {i}: {reason}" for i, reason in enumerate(self.latest, dropped + 2)]
        return [f"  the reasons of {dropped} traces before are no longer kept", *lines] if dropped else lines


class Retrace(NamedTuple):
    """A trace of a function that had one. where: the user's line that called it."""

    function: Any
    name: str
    reason: str
    where: str


_watchers: list[list[Retrace]] = []


@contextlib.contextmanager
def watched() -> Iterator[list[Retrace]]:
    """A block, and the traces made in it, in all threads, of functions that had one."""
    found: list[Retrace] = []
    _watchers.append(found)
    try:
        yield found
    finally:
        _watchers[:] = [each for each in _watchers if each is not found]


def tell(function: Any, name: str, reason: str) -> None:
    """Tells those who watch of another trace of a function."""
    if _watchers:
        frame = user_frame(sys._getframe())
        where = "another thread" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"
        for each in _watchers:
            each.append(Retrace(function, name, reason, where))


def warn_when_frequent(name: str, reasons: Reasons) -> None:
    """Warns at the 8th, 16th, 32nd, … trace of a function, with the latest reasons."""
    count = reasons.count + 1
    if count >= _WARN_AT and count & (count - 1) == 0:
        latest = "\n  ".join([*reasons.latest][-3:])
        warn(
            f"'{name}' has been traced {count} times, which costs far more than running it. The latest reasons:\n  "
            f"{latest}\nPass numbers that change as tensors, or use input_signature or reduce_retracing=True.",
            RetracingWarning,
        )
