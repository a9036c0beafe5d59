"""A graph as a differentiable function of eager tensors.

`GraphFunction` runs its graph through an `Executable`; when a tape is watching, it runs the forward graph with
residuals instead and records a call whose gradient runs the backward graph. Both are again graph functions, so that
gradients of gradients need nothing more.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from runtime.autodiff import jacobian
from runtime.autodiff.calls import is_differentiable
from runtime.autodiff.vjp import Vjp, build_vjp
from runtime.context import ctx
from runtime.dtypes import as_dtype
from runtime.engine.executable import Executable
from runtime.graph.ir import Graph
from runtime.graph.passes.custom_gradients import without_custom_gradients
from runtime.graph.passes.pipeline import optimize
from runtime.ops.dispatch import apply
from runtime.ops.stack import EagerStack, Stack
from runtime.ops.table import OPS
from runtime.tensor import EagerTensor
from runtime.types import StackType


class GraphFunction:
    """Calls `graph` on eager tensors (and stacks).

    jit_compile  True: compile before the first run; False: always interpret; None: interpret first, compile aside.
    """

    def __init__(self, graph: Graph, jit_compile: bool | None = None) -> None:
        self.graph = graph
        self.name = graph.name
        self.jit_compile = jit_compile
        self.executable = Executable(without_custom_gradients(graph), jit_compile)
        self._dtypes = [getattr(v.type, "dtype", None) for v in graph.outputs]
        self._vjps: dict[tuple, _Gradient] = {}
        self._lock = threading.Lock()

    def __call__(self, inputs: Sequence[EagerTensor]) -> list[EagerTensor]:
        recorders = ctx.recorders
        if recorders:
            recorders = tuple([r for r in recorders if r.builder is None])
            wanted: set[int] = set()
            for recorder in recorders:
                wanted.update([i for i, t in enumerate(inputs) if recorder.is_tracking(t)])
            if wanted:
                return self._call_recorded(inputs, tuple(sorted(wanted)), recorders)
        return self.run(inputs)

    def run(self, inputs: Sequence[EagerTensor]) -> list[EagerTensor]:
        """Like a call, unseen by tapes."""
        results = self.executable([t._array for t in inputs])
        return [_wrap(r, dtype) for r, dtype in zip(results, self._dtypes)]

    def _call_recorded(self, inputs: Sequence[EagerTensor], wanted: tuple, recorders: tuple) -> list[EagerTensor]:
        gradient = self._vjps.get(wanted)
        if gradient is None:
            with self._lock:
                gradient = self._vjps.get(wanted)
                if gradient is None:
                    gradient = self._vjps[wanted] = _Gradient(self, wanted)
        outputs = tuple(gradient.forward.run(inputs))
        for recorder in recorders:
            recorder.record(gradient, tuple(inputs), {}, outputs)
        return list(outputs[: len(self._dtypes)])


class _Gradient:
    """The op that tapes record for a call: `grad` has the signature of an op table row's."""

    multiple = True

    def __init__(self, function: GraphFunction, wanted: tuple[int, ...]) -> None:
        self.function = function
        self.name = f"call of {function.name}"
        self.wanted = wanted
        self.count = len(function.graph.outputs)
        seeds = _differentiable_outputs(function.graph)
        self.vjp: Vjp = build_vjp(function.graph, wanted, seeds)
        self.forward = GraphFunction(optimize(self.vjp.forward), function.jit_compile)
        self.backward = GraphFunction(optimize(self.vjp.backward), function.jit_compile)
        self._of_residuals: tuple[Vjp, GraphFunction, GraphFunction] | None = None

    def grad(self, call: Any, *arrived: Any) -> list[Any]:
        """Cotangents of the call's inputs, from those of its results (and, in higher orders, of its residuals)."""
        if any(c is not None for c in arrived[self.count :]):
            return self._grad_with_residuals(call, arrived)
        extra = iter(call.outputs[self.count :])
        residuals = [next(extra) if source is None else call.inputs[source] for source in self.vjp.sources]
        return self._pull_back(call, arrived, self.vjp, self.backward, residuals)

    def _grad_with_residuals(self, call: Any, arrived: Sequence[Any]) -> list[Any]:
        if self._of_residuals is None:
            graph = self.forward.graph
            vjp = build_vjp(graph, self.wanted, _differentiable_outputs(graph))
            jit = self.function.jit_compile
            self._of_residuals = (
                vjp,
                GraphFunction(optimize(vjp.forward), jit),
                GraphFunction(optimize(vjp.backward), jit),
            )
        vjp, forward, backward = self._of_residuals
        extra = iter(forward(call.inputs)[len(self.forward.graph.outputs) :])
        residuals = [next(extra) if source is None else call.inputs[source] for source in vjp.sources]
        return self._pull_back(call, arrived, vjp, backward, residuals)

    def _pull_back(
        self, call: Any, arrived: Sequence[Any], vjp: Vjp, backward: GraphFunction, residuals: list[Any]
    ) -> list[Any]:
        seeds = [_zeros(call.outputs[i]) if arrived[i] is None else arrived[i] for i in vjp.seeds]
        found: list[Any] = [None] * len(call.inputs)
        builder = ctx.builder
        if builder is not None:  # a gradient taken while tracing: the backward graph becomes part of that trace
            values = builder.inline(backward.graph, [*seeds, *residuals])
            results: list[Any] = [builder.tensor(v) for v in values]
        else:
            results = backward([*seeds, *residuals])
        for index, result in zip(vjp.results, results):
            found[index] = result
        return found


def _run(graph: Graph, inputs: Sequence[Any]) -> list[Any]:
    """Interpreted: the graph of a Jacobian is made for one call."""
    return GraphFunction(optimize(graph), jit_compile=False)(inputs)


jacobian.RUN.append(_run)


def _differentiable_outputs(graph: Graph) -> list[int]:
    return [i for i, v in enumerate(graph.outputs) if is_differentiable(v.type)]


def _zeros(tensor: Any) -> Any:
    if isinstance(tensor.type, StackType):
        return EagerStack(tensor._array.zeros_like(), tensor.dtype)
    return apply(OPS["zeros_like"], [tensor])


def _wrap(result: Any, dtype: Any) -> Any:
    if type(result) is Stack:
        return EagerStack(result, as_dtype(result.store.data.dtype))
    # An order token has no dtype and no value.
    return EagerTensor(result, dtype) if dtype is not None else None
