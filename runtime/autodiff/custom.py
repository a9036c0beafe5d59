"""`custom_gradient`: a function with a gradient of its own.

Eagerly the tape records one call whose gradient is the user's function. In a graph the gradient is traced too, when the
function is: it becomes the region of a node that stands between the function's results and whoever uses them.

    y' = custom_gradient(x, y, r): gradient(dy, r): dx        forward it is y; backward it is the region

`r` are the forward values that the gradient uses. They are ordinary operands, so loops save them, and derivatives of
the gradient flow through them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from runtime import nest
from runtime.autodiff.calls import EagerCall, NodeCall
from runtime.autodiff.reverse import REGION_RULES
from runtime.autodiff.zeros import zeros_for
from runtime.context import ctx
from runtime.graph.builder import trace_region, user_span
from runtime.ops.convert import convert_to_tensor
from runtime.ops.dispatch import call as run
from runtime.ops.table import OpDef, register
from runtime.tensor import EagerTensor

CUSTOM = register(
    OpDef(
        "custom_gradient",
        lambda inputs, attrs: tuple(inputs[attrs["sources"] : attrs["sources"] + attrs["results"]]),
        lambda *arrays, sources, results, given: arrays[sources : sources + results],
        multiple=True,
        doc="Its results, with a gradient of the user's own in its region.",
    )
)


def custom_gradient(f: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates a function that returns `(result, grad_fn)`.

    `grad_fn(*dys)` gets a cotangent for each tensor of the result and returns one for each tensor argument (None where
    there is none).

    Raises TypeError when `f` doesn't return a pair, ValueError when `grad_fn` returns another number of cotangents.

    >>> @custom_gradient
    ... def log1pexp(x):
    ...     e = ag.exp(x)
    ...     return ag.math.log(1 + e), lambda dy: dy * (1 - 1 / (1 + e))
    """

    @functools.wraps(f)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        leaves = [convert_to_tensor(a) for a in nest.flatten(args)]
        returned = f(*nest.pack_sequence_as(args, leaves), **kwargs)
        if not (isinstance(returned, tuple) and len(returned) == 2 and callable(returned[1])):
            raise TypeError(
                f"The function {f.__name__!r} decorated with custom_gradient must return (result, gradient function), "
                f"not {returned!r}"
            )
        result, grad_fn = returned
        flat = [convert_to_tensor(r) for r in nest.flatten(result)]
        if ctx.builder is not None:
            outputs = _emit(f.__name__, leaves, flat, grad_fn)
        else:
            outputs = _record(f.__name__, leaves, flat, grad_fn)
        return nest.pack_sequence_as(result, outputs)

    return wrapper


def _cotangents(name: str, grad_fn: Callable[..., Any], count: int, arrived: Sequence[Any]) -> list[Any]:
    found = nest.flatten(grad_fn(*arrived))
    if len(found) != count:
        raise ValueError(
            f"custom_gradient function {name!r} expected to return {count} gradients, but returned {len(found)}."
        )
    return [None if g is None else convert_to_tensor(g) for g in found]


class _EagerCustom:
    """Looks to a tape like a row of the op table."""

    multiple = True
    effect = False

    def __init__(self, name: str, grad_fn: Callable[..., Any], count: int) -> None:
        self.name = name
        self.grad_fn = grad_fn
        self.count = count

    def grad(self, call: EagerCall, *arrived: Any) -> list[Any]:
        seeds = [run("zeros_like", y) if dy is None else dy for y, dy in zip(call.outputs, arrived)]
        return _cotangents(self.name, self.grad_fn, self.count, seeds)


def _record(name: str, inputs: list[Any], results: list[Any], grad_fn: Callable[..., Any]) -> list[Any]:
    # New tensors, so that tapes know them by this call alone and not by the ops inside the function.
    outputs = [EagerTensor(t._array, t.dtype) for t in results]
    op = _EagerCustom(name, grad_fn, len(inputs))
    for recorder in ctx.recorders:
        if recorder.builder is None:
            recorder.record(op, tuple(inputs), {}, tuple(outputs))
    return outputs


def _emit(name: str, inputs: list[Any], results: list[Any], grad_fn: Callable[..., Any]) -> list[Any]:
    builder = ctx.builder
    given: list[bool] = []

    def gradient(*arrived: Any) -> list[Any]:
        found = _cotangents(name, grad_fn, len(inputs), arrived)
        given[:] = [g is not None for g in found]
        return [g for g in found if g is not None]

    values = [builder.use(t) for t in (*inputs, *results)]
    region = trace_region(f"gradient of {name}", gradient, [v.type for v in values[len(inputs) :]])
    graph = region.builder.graph
    graph.outputs = region.outputs
    captured = region.builder.captured
    graph.inputs = [*region.carries, *captured.values()]
    attrs = {"sources": len(inputs), "results": len(results), "given": tuple(given)}
    operands = [*values, *captured]
    types = CUSTOM.infer([v.type for v in operands], attrs)
    node = builder.graph.add_node(CUSTOM, operands, attrs, types, (graph,), user_span())
    outputs = [builder.tensor(v) for v in node.outputs]
    for recorder in ctx.recorders:
        if recorder.builder is builder:
            recorder.record(CUSTOM, tuple(builder.tensor(v) for v in operands), attrs, tuple(outputs))
    return outputs


def adjoint_of_custom(call: NodeCall, arrived: Sequence[Any], tracked: Callable[[Any], bool]) -> list[Any]:
    """Runs the region in place of walking back."""
    inputs, attrs = call.inputs, call.attrs
    first = attrs["sources"] + attrs["results"]
    seeds = [zeros_for(y) if dy is None else dy for y, dy in zip(call.outputs, arrived)]
    values = iter(ctx.builder.inline(call.node.regions[0], [*seeds, *inputs[first:]]))
    found: list[Any] = [ctx.builder.tensor(next(values)) if g else None for g in attrs["given"]]
    return found + [None] * (len(inputs) - len(found))


REGION_RULES["custom_gradient"] = adjoint_of_custom
