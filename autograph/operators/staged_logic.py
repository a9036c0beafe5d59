"""``and``, ``or``, ``not`` and ``in`` on symbolic tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from autograph.errors import StagingTypeError, user_location
from autograph.operators.deciding import decided
from autograph.operators.elements import settle_elements
from autograph.operators.frame import Frame
from autograph.operators.iterators import taking_all_from
from autograph.operators.objects import compares_by_identity
from autograph.operators.objects import same as identical
from autograph.operators.raising import is_of_program, keeps_refusals
from autograph.operators.staged_if import stage_branches
from autograph.operators.state import Block
from autograph.operators.symbolic import (
    common_dtype,
    common_number,
    condition,
    describe,
    is_tensorable,
    symbolic,
    truth,
    type_of,
)
from autograph.operators.unbound import run
from runtime import dtypes
from runtime.context import ctx
from runtime.dtypes import DType
from runtime.graph.builder import Region, emit_cond, trace_region
from runtime.ops.arrays.reduce import reduce_all, reduce_any
from runtime.ops.convert import convert_to_tensor, is_tensor_like
from runtime.ops.elementwise.compare import equal, logical_and, logical_not, logical_or
from runtime.ops.flags import flagged, is_flag
from runtime.ops.staged_number import StagedNumber, is_text, staged_value, storage
from runtime.staged_list import StagedList


@keeps_refusals
def stage_and(first: Any, others: Sequence[Block]) -> Any:
    """``first and others[0]() and ...`` for a ``first`` that a tensor decides."""
    return _chain(first if type(first) is StagedNumber or is_text(first) else truth(first), others, is_and=True)


@keeps_refusals
def stage_or(first: Any, others: Sequence[Block]) -> Any:
    """``first or others[0]() or ...`` for a ``first`` that a tensor decides."""
    return _chain(first if type(first) is StagedNumber or is_text(first) else truth(first), others, is_and=False)


@keeps_refusals
def stage_not(value: Any) -> Any:
    """``not value`` for a tensor; a number holds when it isn't zero."""
    return flagged(logical_not(condition(value, "not")), value)


@keeps_refusals
def stage_contains(item: Any, container: Any) -> Any:
    """``item in container`` where one of them is a tensor."""
    if getattr(container, "is_iterator", False) or getattr(container, "is_generator", False):
        taking_all_from(container)
    if symbolic(container) is not None:
        return reduce_any(equal(container, item))
    found: Any = False
    for each in container:
        by_identity = each is None or item is None or compares_by_identity(each) or compares_by_identity(item)
        same = each is item or (by_identity and identical(each, item))
        if same is True:
            return True
        if same is False and not by_identity:
            same = decided(lambda each=each: each == item, "in")  # type: ignore[misc]
        if symbolic(same) is not None:
            same = reduce_all(same)
            found = same if found is False else logical_or(found, same)
        elif same:
            return True
    return found


def _chain(first: Any, others: Sequence[Block], is_and: bool) -> Any:
    word = "and" if is_and else "or"
    result = first
    for other in others:
        # Only what is called can change variables.
        frame = Frame((other,)) if "converted_call" in other.__code__.co_names else None
        settle_elements()
        operand = _Operand(result, other, word)
        try:
            region = trace_region(word, operand.traced)
            in_branch = frame is not None and bool(frame.changes())
        except Exception as error:  # as in a branch: the program raises it where the ones before ask for the operand
            if not is_of_program(error):
                raise
            in_branch = True
        if in_branch:
            frame = Frame((other,)) if frame is None else frame
            frame.restore()
            result = _with_changes(result, other, word, frame)
            continue
        if operand.dtype is not None:
            # As in Python: one of the two numbers.
            kept = trace_region("kept", lambda: [convert_to_tensor(result, operand.dtype)])  # noqa: B023  it runs at once
            branches = (region, kept) if is_and else (kept, region)
            (made,) = emit_cond(condition(truth(result), word), *branches)
            result = made if operand.number is None else staged_value(made, operand.number)
            continue
        before, is_flags = result, is_flag(result) and operand.is_flag
        result = _boolean(truth(result), word)
        with region.builder:
            tensor = region.builder.tensor(region.outputs[0])
            region.outputs = [region.builder.use(_boolean(tensor, word))]
        if _is_cheap(region):
            builder = ctx.builder
            outer = list(region.builder.captured)
            region.builder.graph.outputs = region.outputs
            (value,) = builder.inline(region.builder.graph, outer)
            tensor = builder.tensor(value)
            result = logical_and(result, tensor) if is_and else logical_or(result, tensor)
            result = flagged(result, before) if is_flags else result
        else:
            # Whatever the operand does happens only when the ones before it ask for it.
            known = trace_region("known", lambda: [convert_to_tensor(not is_and)])
            branches = (region, known) if is_and else (known, region)
            (result,) = emit_cond(result, *branches)
            result = flagged(result, before) if is_flags else result
    return result


class _Operand:
    """An operand of ``and`` and ``or``, traced by itself.

    dtype    what both it and the result before it are stored in, if the expression gives one of the two
    number   if they are numbers, the default of the one that it gives
    is_flag  whether it is a Python bool
    """

    def __init__(self, before: Any, function: Block, word: str) -> None:
        self.before = before
        self.function = function
        self.word = word
        self.dtype: DType | None = None
        self.number: DType | None = None
        self.is_flag = False

    def traced(self) -> list[Any]:
        value = _or_truth(run(self.function))
        self.is_flag = is_flag(value)
        if is_tensorable(value) and type_of(value).shape == () == type_of(self.before).shape:
            self.number = common_number(self.before, value)
            dtype = common_dtype(self.before, value) if self.number is None else storage(self.number)
            self.dtype = None if dtype is dtypes.bool_ else dtype
        return [_operand(value, self.word) if self.dtype is None else convert_to_tensor(value, self.dtype)]


def _with_changes(first: Any, other: Block, word: str, frame: Frame) -> Any:
    """An operand that changes variables, objects or lists where the ones before it ask for it."""
    branches: list[Callable[[], Any]] = [
        lambda: _boolean(_operand(run(other), word), word),
        lambda: convert_to_tensor(word == "or"),
    ]
    if word == "or":
        branches.reverse()
    return stage_branches(condition(truth(first), word), branches, (), frame)


def _operand(value: Any, word: str) -> Any:
    if isinstance(value, (bool, int, float)):
        return convert_to_tensor(value)
    value = _or_truth(value)
    if not is_tensor_like(value):
        raise StagingTypeError(
            f"an operand of `{word}` is {describe(value)} beside a tensor",
            location=user_location(),
            cause=f"which operand `{word}` returns is known only at run time",
            fix="compare it with something, so that every operand is a boolean",
        )
    return convert_to_tensor(value)


def _or_truth(value: Any) -> Any:
    """Whether a list or deque of the program has elements; any other value itself."""
    if isinstance(value, list | StagedList) or hasattr(type(value), "__staged_size__"):
        decided = truth(value)
        return value if decided is None else decided
    return value


def _boolean(tensor: Any, word: str) -> Any:
    is_decided = tensor.dtype is dtypes.bool_ and tensor.type.shape == () and tensor.guard is None
    return tensor if is_decided else condition(tensor, word)


def _is_cheap(region: Region) -> bool:
    """Whether a region may as well run always: elementwise on scalars, and nothing in it can fail or be seen."""
    if region.builder.state_inputs:
        return False
    for node in region.builder.graph.nodes:
        if node.op.name == "constant":
            continue
        # What can fail may be guarded by what stands before.
        if not node.op.is_elementwise or node.op.effect or any(value.shape != () for value in node.outputs):
            return False
        if node.op.checks_numbers(node.outputs[0].dtype):
            return False
    return True
