"""`custom_gradient`: a function with a gradient of its own.

Eagerly the tape records one call whose gradient is the user's function. In a graph the gradient is traced too, when the
function is: it becomes the region of a node between the function's results and their users.

    y' = custom_gradient(x, y, r): gradient(dy, r): dx        forward it is y; backward it is the region

`r` are the forward values that the gradient uses. They are ordinary operands, so loops save them, and derivatives of
the gradient flow through them. Variables that the function reads are operands like `x`.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
from collections.abc import Callable, Iterator, Sequence
from types import CellType
from typing import Any
from weakref import WeakKeyDictionary

from runtime import composites, nest
from runtime.autodiff.calls import EagerCall, NodeCall
from runtime.autodiff.reverse import REGION_RULES, Cotangents
from runtime.autodiff.zeros import zeros_for
from runtime.context import PassiveRecorder, ctx
from runtime.errors import UnimplementedError
from runtime.graph.builder import trace_region
from runtime.graph.callers import user_span
from runtime.ops.arrays.scatter import IndexedSlices
from runtime.ops.convert import convert_to_tensor
from runtime.ops.dispatch import call as run
from runtime.ops.table import OpDef, register
from runtime.signatures import signature_of
from runtime.tensor import eager, held_by
from runtime.tracebacks import shows_no_frames

CUSTOM = register(
    OpDef(
        "custom_gradient",
        lambda inputs, attrs: tuple(inputs[attrs["sources"] : attrs["sources"] + attrs["results"]]),
        lambda *arrays, sources, results, given: arrays[sources : sources + results],
        multiple=True,
        doc="Its results, with a gradient of the user's own in its region.",
        is_quiet=True,
        regions=None,
    )
)

# Functions made by a decorator of this package, with the decorator. `operators.calls` converts the function inside.
DECORATED: WeakKeyDictionary[Callable[..., Any], Callable[..., Any]] = WeakKeyDictionary()


def custom_gradient(f: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates a function that returns `(result, grad_fn)`.

    `grad_fn(*dys)` gets a cotangent for each tensor of the result and returns one for each tensor argument (or None).
    If `f` reads trainable variables, the function is `grad_fn(*dys, variables=None)`: it gets a list of them, and
    returns a pair of the cotangents above and a list with a cotangent for each variable.

    Raises TypeError when `f` doesn't return a pair, or reads variables and `grad_fn` has no `variables`; ValueError
    when `grad_fn` returns the wrong number of cotangents.

    >>> @custom_gradient
    ... def log1pexp(x):
    ...     e = ag.exp(x)
    ...     return ag.math.log(1 + e), lambda dy: dy * (1 - 1 / (1 + e))
    """

    @functools.wraps(f)
    @shows_no_frames
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        leaves = [convert_to_tensor(a) for a in nest.flatten(args)]
        with watched_variables() as reads:
            returned = f(*nest.pack_sequence_as(args, leaves), **kwargs)
        if not (isinstance(returned, tuple) and len(returned) == 2 and callable(returned[1])):
            raise TypeError(
                f"The function {f.__name__!r} decorated with custom_gradient must return (result, gradient function), "
                f"not {returned!r}"
            )
        result, grad_fn = returned
        gradient = _Gradient(f, grad_fn, len(leaves), list(reads.values()))
        inputs = [*leaves, *[v.read_value() for v in gradient.variables]]
        flat = [convert_to_tensor(r) for r in nest.flatten(result)]
        outputs = (_record if ctx.builder is None else _emit)(gradient, inputs, flat)
        return nest.pack_sequence_as(result, outputs)

    DECORATED[wrapper] = custom_gradient
    return wrapper


class _VariableWatcher(PassiveRecorder):
    """Records which trainable variables are read, and nothing else."""

    def __init__(self) -> None:
        self.builder = ctx.builder
        self.variables: dict[int, Any] = {}

    def record_read(self, variable: Any, value: Any) -> None:
        if variable.trainable and variable.dtype.is_differentiable:
            self.variables[id(variable)] = variable

    def mark(self) -> Callable[[], None]:
        before = dict(self.variables)

        def rewind() -> None:
            self.variables.clear()
            self.variables.update(before)

        return rewind


@contextlib.contextmanager
def watched_variables() -> Iterator[dict[int, Any]]:
    """The trainable variables that the block reads, by identity, in the order of their first reads."""
    watcher = _VariableWatcher()
    ctx.recorders = (*ctx.recorders, watcher)
    try:
        yield watcher.variables
    finally:
        ctx.recorders = tuple([r for r in ctx.recorders if r is not watcher])


class _Gradient:
    """The user's gradient function of one call: cotangents of results -> cotangents of arguments and variables."""

    def __init__(self, of: Callable[..., Any], function: Callable[..., Any], count: int, variables: list[Any]) -> None:
        self.name = name = getattr(of, "__name__", "f")
        self.text = _text_of(of)
        self.function = function
        self.count = count
        self.variables = variables
        if variables and not _takes_variables(function):
            names = ", ".join(v.name for v in variables)
            raise TypeError(
                f"custom_gradient function {name!r}: its grad_fn must accept keyword argument 'variables', since the "
                f"function uses variables: {names}. It then returns (gradients, gradients of the variables)."
            )

    def __call__(self, *arrived: Any) -> list[Any]:
        if not self.variables:
            return self._checked(self.function(*arrived), self.count, "gradients")
        returned = self.function(*arrived, variables=list(self.variables))
        if not (isinstance(returned, (tuple, list)) and len(returned) == 2):
            raise TypeError(
                f"custom_gradient function {self.name!r} uses variables, so that its grad_fn must return a pair "
                f"(gradients, gradients of the variables), not {returned!r}"
            )
        found = self._checked(returned[0], self.count, "gradients")
        return found + self._checked(returned[1], len(self.variables), "gradients of variables")

    def _checked(self, returned: Any, count: int, what: str) -> list[Any]:
        leaves = composites.flatten(returned) if count or returned is not None else []
        found = nest.flatten([convert_to_tensor(g) if isinstance(g, IndexedSlices) else g for g in leaves])
        if len(found) != count:
            raise ValueError(
                f"custom_gradient function {self.name!r} expected to return {count} {what}, but returned {len(found)}."
            )
        return [None if g is None else convert_to_tensor(g) for g in found]


def _text_of(function: Callable[..., Any]) -> tuple[Any, ...]:
    """What tells a function's text: its code, and that of the functions in its closure, which wrappers have."""
    filled = [cell.cell_contents for cell in getattr(function, "__closure__", None) or () if cell != _EMPTY]
    return tuple([getattr(each, "__code__", None) for each in (function, *filled)])


_EMPTY = CellType()


def _takes_variables(function: Callable[..., Any]) -> bool:
    parameters = signature_of(function).parameters
    return "variables" in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())


class _EagerCustom:
    """Has the interface of an op table row, for tapes."""

    multiple = True
    effect = False

    def __init__(self, gradient: _Gradient) -> None:
        self.name = gradient.name
        self.gradient = gradient

    def grad(self, call: EagerCall, *arrived: Any) -> list[Any]:
        seeds = [run("zeros_like", y) if dy is None else dy for y, dy in zip(call.outputs, arrived)]
        return self.gradient(*seeds)


def _record(gradient: _Gradient, inputs: list[Any], results: list[Any]) -> list[Any]:
    # New tensors, so that tapes know them by this call alone and not by the ops inside the function.
    outputs = [eager(held_by(t), t.dtype) for t in results]
    op = _EagerCustom(gradient)
    for recorder in ctx.recorders:
        if recorder.builder is None:
            recorder.record(op, tuple(inputs), {}, tuple(outputs))
    return outputs


# The functions whose gradients are being traced, one in another. A gradient that calls its own function would be traced
# forever, so that traced functions have that many derivatives of it.
_TRACED: contextvars.ContextVar[tuple[Any, ...]] = contextvars.ContextVar("traced gradients", default=())
_ORDERS = 3


def _emit(gradient: _Gradient, inputs: list[Any], results: list[Any]) -> list[Any]:
    around = _TRACED.get()
    if around.count(gradient.text) == _ORDERS:
        attrs = {"sources": len(inputs), "results": len(results), "given": ()}
        return _add_node([ctx.builder.use(t) for t in (*inputs, *results)], attrs, ())
    before = _TRACED.set((*around, gradient.text))
    try:
        return _emit_with_gradient(gradient, inputs, results)
    finally:
        _TRACED.reset(before)


def _emit_with_gradient(gradient: _Gradient, inputs: list[Any], results: list[Any]) -> list[Any]:
    builder = ctx.builder
    given: list[bool] = []

    def traced(*arrived: Any) -> list[Any]:
        found = gradient(*arrived)
        given[:] = [g is not None for g in found]
        return [g for g in found if g is not None]

    values = [builder.use(t) for t in (*inputs, *results)]
    region = trace_region(f"gradient of {gradient.name}", traced, [v.type for v in values[len(inputs) :]])
    if region.builder.written:
        raise UnimplementedError(
            f"the gradient of {gradient.name!r} assigns variables, prints or draws numbers inside a function. It "
            "runs only when a gradient is taken. Do that outside of the gradient."
        )
    graph = region.builder.graph
    graph.outputs = region.outputs
    # What a variable held when the function ran.
    state = {builder.read_state(key): own for key, own in region.builder.state_inputs.items()}
    captured = region.builder.captured
    graph.inputs = [*region.carries, *captured.values(), *state.values()]
    attrs = {"sources": len(inputs), "results": len(results), "given": tuple(given)}
    return _add_node([*values, *captured, *state], attrs, (graph,))


def _add_node(operands: list[Any], attrs: dict[str, Any], regions: tuple[Any, ...]) -> list[Any]:
    builder = ctx.builder
    types = CUSTOM.infer([v.type for v in operands], attrs)
    node = builder.graph.add_node(CUSTOM, operands, attrs, types, regions, user_span())
    outputs = [builder.tensor(v) for v in node.outputs]
    for recorder in ctx.recorders:
        if recorder.builder is builder:
            recorder.record(CUSTOM, tuple(builder.tensor(v) for v in operands), attrs, tuple(outputs))
    return outputs


def adjoint_of_custom(
    call: NodeCall, arrived: Sequence[Any], tracked: Callable[[Any], bool], sums: Cotangents
) -> list[Any]:
    """Runs the region instead of walking back through the function."""
    if not call.node.regions:
        raise UnimplementedError(
            f"a custom_gradient whose gradient calls its own function has {_ORDERS} derivatives in a traced function, "
            "and this is one more: take it outside of functions, or write the gradient without that call"
        )
    inputs, attrs = call.inputs, call.attrs
    first = attrs["sources"] + attrs["results"]
    seeds = [zeros_for(y) if dy is None else dy for y, dy in zip(call.outputs, arrived)]
    values = iter(ctx.builder.inline(call.node.regions[0], [*seeds, *inputs[first:]]))
    found: list[Any] = [ctx.builder.tensor(next(values)) if g else None for g in attrs["given"]]
    return found + [None] * (len(inputs) - len(found))


REGION_RULES["custom_gradient"] = adjoint_of_custom
