"""The reverse walk: from cotangents of results to cotangents of operands, call by call, last call first.

Baydin et al., "Automatic Differentiation in Machine Learning: a Survey" (2018), section 3.2. Each op's own rule is in
its row of the op table; control flow's rules are in `loops.py` and `branches.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any

from runtime.autodiff.buffers import has_longer_cotangents, sum_by_rows
from runtime.autodiff.calls import EagerCall, NodeCall, is_differentiable, key_of, with_casts
from runtime.ops import stack
from runtime.ops.arrays.gather import Slices
from runtime.ops.convert import convert_to_tensor
from runtime.ops.dispatch import apply
from runtime.ops.elementwise.elementary import CAST
from runtime.ops.table import OPS
from runtime.tensor import DeviceTensor, EagerTensor, SymbolicTensor
from runtime.types import StackType

# Adjoints of ops with regions: (call, output cotangents, tracked, sums) -> cotangents of the call's inputs. `sums` are
# the cotangents of the inputs from later calls. A rule that takes one of them (`sums.take`) adds its own contribution
# and returns the new sum.
RegionRule = Callable[[Any, Sequence[Any], Callable[[Any], bool], "Cotangents"], Sequence[Any]]
REGION_RULES: dict[str, RegionRule] = {}
# The key of the rule for ops whose own rule needs a rank but meets an unknown one.
UNRANKED = "unknown rank"


class Cotangents:
    """Sums of cotangents by tensor.

    sliced   the tensors (their `key_of`) whose cotangents may be slices. Slices are kept apart, until the whole sum is
             asked for.
    """

    def __init__(self, sliced: Collection[Hashable] = ()) -> None:
        self.sliced = sliced
        self.sums: dict[Hashable, Any] = {}
        self.slices: dict[Hashable, list[Slices]] = {}

    def add(self, tensor: Any, cotangent: Any) -> None:
        key = key_of(tensor)
        if type(cotangent) is Slices:
            self.slices.setdefault(key, []).append(cotangent)
            return
        known = self.sums.get(key)
        if known is not None:
            longer = type(tensor) is SymbolicTensor and has_longer_cotangents(tensor.value)
            cotangent = accumulate(known, cotangent, sum_by_rows if longer else None)
        self.sums[key] = cotangent

    def get(self, tensor: Any) -> Any:
        total, slices = self.parts(tensor)
        return with_slices(total, slices, tensor) if slices else total

    def take(self, tensor: Any) -> Any:
        """Like `get`, but removes the sum: no call before the defining one needs it."""
        key = key_of(tensor)
        total = self.sums.pop(key, None)
        return with_slices(total, self.slices.pop(key), tensor) if key in self.slices else total

    def parts(self, tensor: Any) -> tuple[Any, Sequence[Slices]]:
        """The sum but for the slices, or None, and the slices."""
        key = key_of(tensor)
        return self.sums.get(key), self.slices.get(key, ())


def with_slices(total: Any, slices: Iterable[Slices], like: Any) -> Any:
    """The sum of a cotangent, if there is one, and some slices, for a tensor `like`."""
    for part in slices:
        total = part.as_tensor(like) if total is None else part.added_to(total)
    return total


def taken_sum(sums: Cotangents, tensor: Any) -> Any:
    """The sum from which a region rule starts for an array that a loop or branch reads, or None.

    Nested loops that read elements of an array thus all add to one array. If each started from zeros and its result was
    added to the sum afterwards, each run of an inner loop would take time proportional to the size of the array.
    """
    return None if isinstance(tensor.type, StackType) else sums.take(tensor)


def accumulate(total: Any, part: Any, add: Callable[[Any, Any], Any] | None = None) -> Any:
    """`total + part`, or `add(total, part)`. A part that was just scattered into zeros is scattered into the total
    instead. So adding the gradient of one row of a matrix costs one row, not the whole matrix."""
    if isinstance(part.type, StackType):
        return apply(stack.ADD, [total, part])
    if type(part) is SymbolicTensor and part.value.node is not None:
        node = part.value.node
        if node.op.add_into is not None:
            return node.op.add_into(NodeCall(node, part.builder), total)
    return apply(OPS["add"], [total, part]) if add is None else add(total, part)


def walk_back(
    calls: Iterable[Any],
    cotangents: Cotangents,
    tracked: Callable[[Any], bool],
    keep: Callable[[Any], bool] = lambda tensor: False,
) -> None:
    """Pulls `cotangents` back through `calls` (in program order; the walk reverses them).

    tracked   whether a tensor depends on a source: others get no cotangent
    keep      whether the cotangent of a call's output is wanted after the walk has passed the call
    For graphs with growable arrays, call `buffers.mark_growing` first.
    Raises LookupError for a call on the path whose op has no gradient.
    """
    calls = list(calls)
    sliced = cotangents.sliced
    if sliced:
        sliced = with_casts(sliced, [(call.node.inputs[0], call.node.outputs[0]) for call in calls if call.op is CAST])
    for call in reversed(calls):
        outputs = call.outputs
        if cotangents.slices and call.op is CAST and not keep(outputs[0]):
            _pass_slices(call, cotangents)
        arrived = [cotangents.get(t) if keep(t) else cotangents.take(t) for t in outputs]
        if all(c is None for c in arrived):
            continue
        inputs = call.inputs
        if not any(tracked(t) for t in inputs):
            continue
        call.sliced = sliced
        for tensor, cotangent in zip(inputs, _pull_back(call, arrived, tracked, cotangents)):
            if cotangent is not None and tracked(tensor):
                if call.masks:
                    cotangent = _masked(call, tensor, cotangent)
                if cotangent is not None:
                    cotangents.add(tensor, cotangent)


def _masked(call: Any, tensor: Any, cotangent: Any) -> Any:
    """A cotangent of an operand of a call that the tape may watch only since later: None, or zeros in the runs that
    don't watch it yet."""
    if tensor.value not in call.masks:
        return cotangent
    flag = call.masks[tensor.value]
    return None if flag is None else where_flag(call.builder.tensor(flag), cotangent)


def where_flag(flag: Any, cotangent: Any) -> Any:
    """The cotangent where a flag holds, else zeros."""
    if type(cotangent) is Slices:
        return Slices(where_flag(flag, cotangent.values), cotangent.indices)
    return apply(OPS["select"], [flag, cotangent, convert_to_tensor(0, cotangent.dtype)])


def _pass_slices(call: Any, cotangents: Cotangents) -> None:
    """Hands the slices that have arrived at the result of a cast on to its operand."""
    for part in cotangents.slices.pop(key_of(call.outputs[0]), ()):
        (values,) = call.op.grad(call, part.values)
        slices = Slices(values, part.indices)
        if call.masks:
            slices = _masked(call, call.inputs[0], slices)
        if slices is not None:
            cotangents.add(call.inputs[0], slices)


def walk_back_eagerly(
    calls: Sequence[tuple], cotangents: Cotangents, tracked: Mapping[int, Any], keep: set[int]
) -> None:
    """`walk_back` for eager calls, as tapes record them, whose tensors are known by `id`: the same steps with as little
    Python as possible, because they run once per op and per training step."""
    sums = cotangents.sums
    add = OPS["add"]
    call = EagerCall(tracked, sliced=cotangents.sliced, calls=calls)
    slices = cotangents.slices
    for record in reversed(calls):
        outputs = record[3]
        if len(outputs) == 1:
            key = id(outputs[0])
            if key in slices:  # of a cast
                call.op, call.inputs, call.attrs, call.outputs, call.span = record
                if key not in keep:
                    _pass_slices(call, cotangents)
                cotangent = cotangents.get(outputs[0]) if key in keep else sums.pop(key, None)
            else:
                cotangent = sums.get(key) if key in keep else sums.pop(key, None)
            if cotangent is None:
                continue
            arrived = [cotangent]
            is_complex = cotangent.dtype.kind == "c"
        else:
            keys = [id(t) for t in outputs]
            arrived = [sums.get(key) if key in keep else sums.pop(key, None) for key in keys]
            if all(c is None for c in arrived):
                continue
            is_complex = _is_complex(arrived)
        op, inputs, call.attrs, call.outputs, call.span = record
        call.op, call.inputs = op, inputs
        rule = op.grad
        if rule is None:
            raise LookupError(f"gradient registry has no entry for: {op.name}")
        parts = _conjugated(call, arrived) if is_complex else rule(call, *arrived)
        for tensor, cotangent in zip(inputs, parts):
            if cotangent is not None:
                key = id(tensor)
                if key in tracked:
                    if type(cotangent) is Slices:  # of a variable's value, or of a cast of one
                        cotangents.add(tensor, cotangent)
                        continue
                    known = sums.get(key)
                    if known is not None:
                        plain = type(cotangent) in (EagerTensor, DeviceTensor)
                        cotangent = apply(add, (known, cotangent)) if plain else accumulate(known, cotangent)
                    sums[key] = cotangent


def _pull_back(call: Any, arrived: Sequence[Any], tracked: Callable[[Any], bool], sums: Cotangents) -> Sequence[Any]:
    rule = REGION_RULES.get(call.op.name)
    if rule is not None:
        return rule(call, arrived, tracked, sums)
    if call.op.grad is None:
        if any(is_differentiable(t.type) and tracked(t) for t in call.inputs):
            raise LookupError(f"gradient registry has no entry for: {call.op.name}")
        return [None] * len(call.inputs)
    try:
        return _conjugated(call, arrived) if _is_complex(arrived) else call.op.grad(call, *arrived)
    except (ValueError, TypeError, LookupError, ArithmeticError, AttributeError):
        if all(getattr(t.type, "shape", ()) is not None for t in (*call.inputs, *call.outputs)):
            raise
        return REGION_RULES[UNRANKED](call, arrived, tracked, sums)


def _is_complex(arrived: Sequence[Any]) -> bool:
    for cotangent in arrived:
        dtype = getattr(cotangent, "dtype", None)  # None for a symbolic stack
        if dtype is not None and dtype.kind == "c":
            return True
    return False


def _conjugated(call: Any, arrived: Sequence[Any]) -> Sequence[Any]:
    """Pulls back complex cotangents, which are dL/dx + i dL/dy of a real L, as in TensorFlow.

    They go back through the conjugate transpose of the Jacobian J of a holomorphic function; a rule that is written for
    real numbers applies the plain transpose T: so conj(T(conj(dy))).
    """
    if not getattr(call.op, "conjugates", False):
        return call.op.grad(call, *arrived)
    found = call.op.grad(call, *[None if dy is None else apply(OPS["conj"], [dy]) for dy in arrived])
    return [part if part is None or part.dtype.kind != "c" else apply(OPS["conj"], [part]) for part in found]
