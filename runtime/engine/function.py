"""A graph as a differentiable function of eager tensors.

`GraphFunction` runs its graph through an `Executable`; when a tape is watching, it runs the forward graph with
residuals instead and records a call whose gradient runs the backward graph. Both are graph functions too, so gradients
of gradients need no further mechanism.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from runtime.autodiff import jacobian
from runtime.autodiff.calls import is_differentiable
from runtime.autodiff.recursive_results import keep_results_of_calls
from runtime.autodiff.vjp import Vjp, build_vjp
from runtime.context import ctx, placing
from runtime.device import on_first_use
from runtime.dtypes import as_dtype
from runtime.engine.executable import Executable
from runtime.errors import UnimplementedError
from runtime.garbage_collection import raised_threshold
from runtime.gpu.memory import DeviceArray
from runtime.graph.ir import Graph
from runtime.graph.passes import options
from runtime.graph.passes.pipeline import optimize, rewrite
from runtime.graph.passes.rewrites.silence import has_unrepeatable_results
from runtime.ops.arrays.gather import Slices
from runtime.ops.dispatch import apply
from runtime.ops.stack import EagerStack, Stack
from runtime.ops.table import OPS
from runtime.profiling import span
from runtime.recursion import room
from runtime.tensor import DeviceTensor, EagerTensor
from runtime.types import StackType, TensorType

if TYPE_CHECKING:
    from runtime.engine.placed_graph import PlacedGraph

# The inputs that have gradients, and those of them whose gradients may be slices.
_Wanted = tuple[tuple[int, ...], frozenset[int]]


class GraphFunction:
    """Calls `graph` on eager tensors (and stacks).

    jit_compile  True: compile before the first run; False: always interpret; None: interpret, and compile in the
                 background
    warned         see `Executable`
    """

    def __init__(self, graph: Graph, jit_compile: bool | None = None, warned: set[str] | None = None) -> None:
        self.graph = graph
        self.name = graph.name
        self.jit_compile = jit_compile
        self.device = graph.device
        self.executable = Executable(to_run(graph), jit_compile, warned)
        self._dtypes = [getattr(v.type, "dtype", None) for v in graph.outputs]
        self._gradients: dict[_Wanted, _Gradient] = {}
        self._lock = threading.Lock()

    def __call__(self, inputs: Sequence[EagerTensor]) -> list[EagerTensor]:
        recorders = ctx.recorders
        if recorders:
            recorders = tuple([r for r in recorders if r.builder is None])
            wanted: set[int] = set()
            sliced: set[int] = set()
            order = 0
            for recorder in recorders:
                tracked = [i for i, t in enumerate(inputs) if recorder.is_tracking(t)]
                if tracked:
                    wanted.update(tracked)
                    sliced.update(i for i in tracked if recorder.takes_slices(inputs[i]))
                    order += 2 if getattr(recorder, "is_persistent", False) else 1
            if wanted:
                return self._call_recorded(inputs, (tuple(sorted(wanted)), frozenset(sliced)), recorders, order)
        return self.run(inputs)

    def direct(self) -> Callable[[list[Any]], list[Any]] | None:
        """The callable from arrays to arrays that all further calls run; None until it is decided, or if not all
        results are tensors."""
        plain = all(isinstance(v.type, TensorType) for v in self.graph.outputs)
        return self.executable.settled if plain else None

    def placed_on(self, place: Any) -> PlacedGraph | None:
        """The graph on a GPU, if calls may run its kernel there without looking at anything but their inputs."""
        found = self.executable.placed.get(place) if self.device is None else None
        return found if found is not None and found.direct is not None else None

    def run(self, inputs: Sequence[EagerTensor]) -> list[EagerTensor]:
        """Like a call, but not recorded by tapes."""
        if placing:
            found = placing[0].run(self.executable, inputs, self.device)
            if found is not None:
                return self.wrapped(found)
        return self.wrapped(self.executable([t._array for t in inputs]))

    def wrapped(self, results: Sequence[Any]) -> list[Any]:
        """The first results of the executable as tensors (and stacks)."""
        return [
            DeviceTensor(r, dtype) if r.__class__ is DeviceArray else _wrap(r, dtype)
            for r, dtype in zip(results, self._dtypes)
        ]

    def _call_recorded(
        self, inputs: Sequence[EagerTensor], wanted: _Wanted, recorders: tuple, order: int
    ) -> list[EagerTensor]:
        gradient = self.gradient(*wanted)
        while order > 1 and gradient.acts:
            # A graph with effects can't run again for the residuals of the next order.
            gradient, order = gradient.with_more(), order - 1
        outputs = tuple(gradient.forward.run(inputs))
        for recorder in recorders:
            recorder.record(gradient, tuple(inputs), {}, outputs)
        return list(outputs[: len(self._dtypes)])

    def gradient(self, wanted: tuple[int, ...], sliced: frozenset[int] = frozenset()) -> _Gradient:
        """The op that tapes record for calls whose tracked inputs are `wanted`; the gradients of the inputs `sliced`
        may be slices."""
        key = wanted, sliced
        found = self._gradients.get(key)
        if found is None:
            with self._lock:
                found = self._gradients.get(key)
                if found is None:
                    found = self._gradients[key] = _Gradient(self, key)
        return found

    @property
    def compile_seconds(self) -> float:
        """The seconds spent so far on compiling the function and its gradients."""
        parts = [part.compile_seconds for each in self.gradients() for part in (each.forward, each.backward)]
        return self.executable.compile_seconds + sum(parts)

    def gradients(self) -> list[_Gradient]:
        """The ops that were recorded so far."""
        return list(self._gradients.values())


class _Gradient:
    """The op that tapes record for a call: `grad` has the signature of an op table row's.

    The call's outputs are those of `forward`, which are, in this order: the function's results, residuals of their
    gradient, residuals of the second-order gradient, and so on. `before` is the gradient of the previous order.
    """

    multiple = True

    def __init__(self, function: GraphFunction, wanted: _Wanted, before: _Gradient | None = None) -> None:
        self.function = function
        self.name = f"call of {function.name}"
        self.wanted = wanted
        self.before = before
        graph = function.graph
        self.count = len(graph.outputs)
        with raised_threshold(), room(), span("differentiate", f"differentiate {function.name}"):
            self.acts = any(node.op.effect for node in graph.walk())
            self.has_unrepeatable_results = any(map(has_unrepeatable_results, graph.nodes))
            self.vjp: Vjp = build_vjp(graph, wanted[0], _differentiable_outputs(graph), wanted[1])
            mode, warned = function.jit_compile, function.executable.warned
            self.forward = GraphFunction(optimize(self.vjp.forward), mode, warned)
            self.backward = GraphFunction(optimize(self.vjp.backward), mode, warned)
            self.forward.device = self.backward.device = function.device
        self._more: _Gradient | None = None

    def with_more(self) -> _Gradient:
        """The gradient whose forward graph also returns the residuals that differentiating it once more needs."""
        if self._more is None:
            self._more = _Gradient(self.forward, self.wanted, self)
        return self._more

    def grad(self, call: Any, *arrived: Any) -> list[Any]:
        """Cotangents of the call's inputs, from those of its results (and, in higher orders, of its residuals)."""
        gradient, outputs = self, call.outputs
        while gradient.before is not None and all(c is None for c in arrived[gradient.before.count :]):
            gradient = gradient.before
        if any(c is not None for c in arrived[gradient.count :]):
            if self.has_unrepeatable_results:
                raise UnimplementedError(
                    f"a gradient of higher order through {self.function.name!r}, whose random numbers or Python calls "
                    "would have to run a second time. Nest one tape for each order around the call."
                )
            gradient = self.with_more()
            outputs = gradient.forward(call.inputs)
        extra = iter(outputs[gradient.count :])
        residuals = [next(extra) if source is None else call.inputs[source] for source in gradient.vjp.sources]
        return self._pull_back(call, arrived, gradient.vjp, gradient.backward, residuals)

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
        rest = iter(results)
        for index in vjp.results:
            if index not in vjp.sliced:
                found[index] = next(rest)
                continue
            slices = Slices(next(rest), next(rest))
            found[index] = slices if call.takes_slices(index) else slices.as_tensor(call.inputs[index])
        return found


def to_run(graph: Graph) -> Graph:
    """The graph as it runs, once nobody differentiates it any more."""
    kept = keep_results_of_calls(graph)  # differentiates, so custom gradients must still be there
    graph = graph if kept is graph else optimize(kept)
    graph = rewrite("custom gradients", graph)
    return rewrite("overlap", graph) if options.get("communication_overlap") else graph


def _run(graph: Graph, inputs: Sequence[Any]) -> list[Any]:
    """Interprets a graph that is called only once, such as that of a Jacobian."""
    return GraphFunction(optimize(graph), jit_compile=False)(inputs)


jacobian.RUN.append(_run)


def _start_placing() -> None:
    from runtime.engine import placement  # loads the code generator

    placement.start()


on_first_use.append(_start_placing)


def _differentiable_outputs(graph: Graph) -> list[int]:
    return [i for i, v in enumerate(graph.outputs) if is_differentiable(v.type)]


def _zeros(tensor: Any) -> Any:
    if isinstance(tensor.type, StackType):
        return EagerStack(tensor._array.zeros_like(), tensor.dtype)
    return apply(OPS["zeros_like"], [tensor])


def _wrap(result: Any, dtype: Any) -> Any:
    if result.__class__ is Stack:
        return EagerStack(result, as_dtype(result.store.data.dtype))
    # An order token has no dtype and no value.
    return EagerTensor(result, dtype) if dtype is not None else None
