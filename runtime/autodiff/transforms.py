"""Gradient transformations: `gradients` without a tape, `recompute_grad`, `grad_pass_through`."""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable
from typing import Any

from runtime import nest
from runtime.autodiff.buffers import mark_growing
from runtime.autodiff.calls import NodeCall, is_differentiable
from runtime.autodiff.custom import DECORATED, custom_gradient, watched_variables
from runtime.autodiff.reverse import Cotangents, walk_back
from runtime.autodiff.tape import GradientTape, gradient_of
from runtime.autodiff.zeros import zeros_for
from runtime.context import ctx
from runtime.ops.convert import convert_to_tensor
from runtime.ops.dispatch import call
from runtime.tracebacks import shows_no_frames
from runtime.variable import Variable, variable_of


class UnconnectedGradients(enum.Enum):
    """The gradient of a target that doesn't depend on a source: None or zero."""

    NONE = "none"
    ZERO = "zero"


def gradients(
    ys: Any,
    xs: Any,
    grad_ys: Any = None,
    name: str | None = None,
    gate_gradients: bool = False,
    aggregation_method: Any = None,
    stop_gradients: Any = None,
    unconnected_gradients: Any = UnconnectedGradients.NONE,
) -> list[Any]:
    """The gradient of the sum of `ys` with respect to each of `xs`, in a function that is being traced, without a tape.

    It sees the whole graph so far, so `xs` may be arguments or intermediate values. Of a variable that is only read by
    `gather` and the like it gives `IndexedSlices`, as a tape does.

    grad_ys: cotangents of `ys`; ones by default and for None. stop_gradients: tensors that count as constants.
    gate_gradients, aggregation_method: accepted, without effect.

    Raises RuntimeError outside of a function, as TensorFlow does: there is no graph.
    """
    builder = ctx.builder
    if builder is None:
        raise RuntimeError(
            "ag.gradients is not supported when eager execution is enabled. Use ag.GradientTape instead."
        )
    flat = [variable_of(x) for x in nest.flatten(xs)]
    sources = [builder.use(convert_to_tensor(x)) for x in flat]
    of_variables = {v for v, x in zip(sources, flat) if isinstance(x, Variable)}
    varied = {v for v in sources if is_differentiable(v.type)}
    nodes = list(builder.graph.nodes)
    stopped = {
        builder.use(convert_to_tensor(x)) for x in nest.flatten(() if stop_gradients is None else stop_gradients)
    }
    for node in nodes:
        if any(v in varied for v in node.inputs):
            varied.update(v for v in node.outputs if is_differentiable(v.type))
    targets = [builder.tensor(builder.use(convert_to_tensor(y))) for y in nest.flatten(ys)]
    seeds = [None] * len(targets) if grad_ys is None else nest.flatten(grad_ys)
    if len(seeds) != len(targets):
        raise ValueError(f"{len(targets)} ys but {len(seeds)} grad_ys")
    cotangents = Cotangents(of_variables)
    for target, seed in zip(targets, seeds):
        cotangents.add(target, call("ones_like", target) if seed is None else convert_to_tensor(seed, target.dtype))
    kept = set(sources)
    mark_growing(nodes)
    calls = [NodeCall(n, builder) for n in nodes if stopped.isdisjoint(n.outputs)]
    walk_back(calls, cotangents, lambda t: builder.use(t) in varied, lambda t: builder.use(t) in kept)
    found = [gradient_of([builder.tensor(v)], cotangents) for v in sources]
    if getattr(unconnected_gradients, "value", unconnected_gradients) == "zero":
        found = [zeros_for(builder.tensor(v)) if g is None else g for v, g in zip(sources, found)]
    return found


def recompute_grad(f: Callable[..., Any]) -> Callable[..., Any]:
    """`f`, which runs again in the backward pass instead of storing its intermediate values.

    >>> block = recompute_grad(lambda x: ag.tanh(ag.matmul(x, w)))
    """

    @functools.wraps(f)
    @shows_no_frames
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        @custom_gradient
        def run(*tensors: Any) -> Any:
            packed = nest.pack_sequence_as(args, tensors)
            with GradientTape.paused_all(), watched_variables() as reads:
                result = f(*packed, **kwargs)
            for variable in reads.values():
                variable.read_value()  # for custom_gradient to see

            def grad(*cotangents: Any, variables: Any = ()) -> Any:
                with GradientTape() as tape:
                    tape.watch([t for t in tensors if t.dtype.is_differentiable])
                    again = f(*packed, **kwargs)
                seeds = nest.pack_sequence_as(again, cotangents)
                sources = [list(tensors), list(variables)]
                found, of_variables = tape.gradient(again, sources, output_gradients=seeds)
                return (found, of_variables) if variables else found

            return result, grad

        return run(*nest.flatten(args))

    DECORATED[wrapper] = recompute_grad
    return wrapper


def grad_pass_through(f: Callable[..., Any]) -> Callable[..., Any]:
    """`f` with the identity as its gradient: a straight-through estimator. `f` takes and returns one tensor; the
    variables that it reads get no gradient."""

    def wrapper(x: Any) -> Any:
        def grad(dy: Any, variables: Any = ()) -> Any:
            return (dy, [None] * len(variables)) if variables else dy

        return f(x), grad

    result = functools.wraps(f)(custom_gradient(wrapper))
    DECORATED[result] = grad_pass_through
    return result
