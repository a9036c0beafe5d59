"""`ag.cond`, `ag.while_loop`, `ag.case`, `ag.switch_case`: control flow written as functions, as in TensorFlow.

Eagerly they are Python's ``if`` and ``while``; in a trace they stage.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

from autograph.operators.calls import CONVERTING
from autograph.operators.changing_conditions import ConditionChangesState, moved_test
from autograph.operators.frame import Frame
from autograph.operators.loop_options import set_loop_options
from autograph.operators.raising import forget_refused
from autograph.operators.staged_if import stage_branches
from autograph.operators.staged_while import stage_while
from autograph.operators.state import CellSlot, LocalSlot, Slot
from autograph.operators.symbolic import condition, symbolic
from runtime import composites, dtypes, nest
from runtime.bytecode import names_written
from runtime.context import ctx
from runtime.ops.control import Assert
from runtime.ops.convert import convert_to_tensor
from runtime.ops.elementwise.compare import equal
from runtime.ops.elementwise.elementary import cast
from runtime.tensor_array import TensorArray


def _blocks(*functions: Any) -> list[Any]:
    """The Python functions among some callables: what they can reach is state.

    None of them where nothing is converted: there Python's values belong to the library's own code.
    """
    if CONVERTING.get() is False:
        return []
    return [
        getattr(each, "__func__", each)
        for each in functions
        if isinstance(getattr(each, "__func__", each), FunctionType)
    ]


def _set_by(functions: Sequence[FunctionType]) -> list[Slot]:
    """The variables around some functions that these set: of a statement's blocks, the statement tells them."""
    found: dict[int, Slot] = {}
    for each in functions:
        for name, cell in zip(each.__code__.co_freevars, each.__closure__ or ()):
            if name in names_written(each.__code__):
                found[id(cell)] = CellSlot(name, cell)
    return list(found.values())


def cond(
    pred: Any,
    true_fn: Callable[[], Any] | None = None,
    false_fn: Callable[[], Any] | None = None,
    name: str | None = None,
) -> Any:
    """The result of `true_fn()` if the scalar `pred` holds, else of `false_fn()`.

    Raises TypeError for arguments that aren't callable, StagingTypeError when the results differ in structure or dtype.
    """
    if not callable(true_fn):
        raise TypeError("'true_fn' must be callable.")
    if not callable(false_fn):
        raise TypeError("'false_fn' must be callable.")
    tensor = symbolic(pred)
    if tensor is None:
        return true_fn() if pred else false_fn()
    functions = _blocks(true_fn, false_fn)
    return stage_branches(condition(tensor, "cond"), [true_fn, false_fn], _set_by(functions), Frame(functions))


def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Any,
    shape_invariants: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    maximum_iterations: Any = None,
    name: str | None = None,
    gradient_memory: int | None = None,
) -> Any:
    """Repeats `loop_vars = body(*loop_vars)` while `cond(*loop_vars)` holds; returns the last `loop_vars`, as tensors.

    loop_vars: a list or tuple of (structures of) tensors. shape_invariants: for each of them the shape that holds in
    all iterations. maximum_iterations: an int or scalar int tensor. gradient_memory: how many bytes the loop's gradient
    may keep, as in `set_loop_options`. The other options are without effect.
    Raises TypeError when `cond` or `body` isn't callable, ValueError for no loop variables.
    """
    if not callable(cond):
        raise TypeError("'cond' must be callable.")
    if not callable(body):
        raise TypeError("'body' must be callable.")
    if not isinstance(loop_vars, (list, tuple)):
        loop_vars = [loop_vars]
    if not nest.flatten(loop_vars):
        raise ValueError("'loop_vars' must be provided.")
    state = loop_vars if ctx.builder is None else _tensors(loop_vars)

    def following(values: Any) -> Any:
        result = body(*values)
        if len(values) == 1 and not (
            (type(result) is type(values) and len(result) == 1) or _holds_it(result, values[0])
        ):
            result = type(values)([result]) if not hasattr(values, "_fields") else type(values)(result)
        elif isinstance(result, (list, tuple)) and type(result) is not type(values) and len(result) == len(values):
            result = nest.rebuild(values, list(result))
        composites.assert_same_structure(values, result)
        if ctx.builder is None:
            return result
        # What tensor arrays and the like are made of may still change, until the types of the loop are found.
        return composites.map_structure(
            lambda new, old: new if composites.is_composite(old) else convert_to_tensor(new, dtype_hint=old.dtype),
            result,
            values,
        )

    if ctx.builder is None:  # as in TensorFlow, numbers are Python's until the end
        count = 0
        while (maximum_iterations is None or count < maximum_iterations) and cond(*state):
            state = following(state)
            count += 1
        return _tensors(state)
    slot = LocalSlot("loop_vars", state)

    def step() -> None:
        values = slot.get()
        shapes = None if shape_invariants is None else _with_shapes(values, shape_invariants)
        set_loop_options(
            maximum_iterations=maximum_iterations, shape_invariants=shapes, gradient_memory=gradient_memory
        )
        slot.set(following(values))

    functions = _blocks(cond, body)
    state = [slot, *_set_by(functions)]

    def going() -> Any:
        return cond(*slot.get())

    try:
        stage_while(going, step, state, functions)
    except ConditionChangesState:
        if maximum_iterations is not None:  # Python doesn't evaluate it any more when the limit is reached
            raise
        forget_refused(ctx.builder)
        go, following_step = moved_test(going(), going, step)
        stage_while(go.get, following_step, [go, *state], functions)
    return slot.get()


def _holds_it(result: Any, value: Any) -> bool:
    """Whether a body's result is a list, or a tuple without fields, of nothing but the only loop variable."""
    if not isinstance(result, (list, tuple)) or nest.is_namedtuple(type(result)) or len(result) != 1:
        return False
    try:
        composites.assert_same_structure(value, result[0])
    except (TypeError, ValueError):
        return False
    return True


def _tensors(value: Any) -> Any:
    """The structure with tensors for its leaves; TensorArrays and the like stay."""
    if composites.is_composite(value):
        return value
    if nest.is_nested(value):
        return nest.rebuild(value, [_tensors(part) for part in nest.children(value)])
    return convert_to_tensor(value)


def _with_shapes(values: Any, shapes: Any) -> list[tuple[Any, Any]]:
    """Each tensor and the shape that is given for it; one that is given for a TensorArray says nothing."""
    leaves: list[Any] = []

    def gather(part: Any) -> None:
        if isinstance(part, TensorArray) or not nest.is_nested(part):
            leaves.append(part)
        else:
            for inner in nest.children(part):
                gather(inner)

    gather(values)
    return [(leaf, shape) for leaf, shape in zip(leaves, nest.flatten(shapes)) if not isinstance(leaf, TensorArray)]


def case(
    pred_fn_pairs: Any,
    default: Callable[[], Any] | None = None,
    exclusive: bool = False,
    strict: bool = False,
    name: str | None = None,
) -> Any:
    """The result of the function whose predicate is the first to hold, else of `default`.

    Raises InvalidArgumentError, when the program runs, if none holds and there is no default, or if several do and
    `exclusive` is set.
    """
    pairs = list(pred_fn_pairs.items()) if isinstance(pred_fn_pairs, dict) else list(pred_fn_pairs)
    if not pairs or not all(isinstance(pair, tuple) and len(pair) == 2 and callable(pair[1]) for pair in pairs):
        raise TypeError("'pred_fn_pairs' must be a list of (predicate, function) pairs.")
    predicates = [pred.deref() if hasattr(pred, "deref") else pred for pred, _ in pairs]
    flags = [convert_to_tensor(pred) for pred in predicates]
    if exclusive and len(flags) > 1:
        Assert(
            sum(cast(flag, dtypes.int32) for flag in flags) < 2,
            ["more than one predicate of an exclusive case holds", *flags],
        )
    if default is None:
        holds: Any = flags[0]
        for flag in flags[1:]:
            holds = holds | flag
        Assert(holds, ["none of the predicates of a case without default holds", *flags])
        pairs, predicates, default = pairs[:-1], predicates[:-1], pairs[-1][1]
    return _first_of(list(zip(predicates, [function for _, function in pairs])), default)


def _first_of(pairs: Sequence[tuple[Any, Callable[[], Any]]], default: Callable[[], Any]) -> Any:
    if not pairs:
        return default()
    pred, function = pairs[0]
    return cond(pred, function, lambda: _first_of(pairs[1:], default))


def switch_case(
    branch_index: Any, branch_fns: Any, default: Callable[[], Any] | None = None, name: str | None = None
) -> Any:
    """The result of the function with the number `branch_index`, a scalar int32.

    branch_fns: functions, (number, function) pairs, or a dict of them. Another index selects `default` or, without one,
    the function with the largest number.
    """
    if isinstance(branch_fns, dict):
        pairs = sorted(branch_fns.items())
    else:
        pairs = [each if isinstance(each, tuple) else (i, each) for i, each in enumerate(branch_fns)]
        pairs.sort(key=lambda pair: pair[0])
    if not pairs or not all(isinstance(number, int) and callable(function) for number, function in pairs):
        raise TypeError("'branch_fns' must be callables, (int, callable) pairs or a dict of them.")
    if default is None:
        default = pairs[-1][1]
        pairs = pairs[:-1]
    index = convert_to_tensor(branch_index)
    return _first_of([(equal(index, number), function) for number, function in pairs], default)


def case_by(
    cond_fn: Callable[..., Any],
    pred_fn_pairs: Sequence[tuple[Any, Callable[[], Any]]],
    default: Callable[[], Any] | None,
    exclusive: bool = False,
    name: str | None = None,
    allow_python_preds: bool = False,
    **options: Any,
) -> Any:
    """`case`, whose branches `cond_fn(predicate, true_fn=..., false_fn=...)` chooses. Without a default, the last
    function is one: its predicate isn't asked."""
    pairs = list(pred_fn_pairs)
    if not pairs or not all(isinstance(pair, tuple) and len(pair) == 2 and callable(pair[1]) for pair in pairs):
        raise TypeError("'pred_fn_pairs' must be a list of (predicate, function) pairs.")
    otherwise = pairs.pop()[1] if default is None else default
    for pred, function in reversed(pairs):
        otherwise = functools.partial(cond_fn, pred, true_fn=function, false_fn=otherwise, **options)
    return otherwise()
