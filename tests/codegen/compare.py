"""The oracle of these tests: what the interpreter gives, native code must give."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import runtime.ops.api  # noqa: F401  all rows of the table
import runtime.ops.growable  # noqa: F401
import runtime.ops.stack  # noqa: F401
from runtime.codegen.backends.call_stub import NativeCall, load
from runtime.codegen.lower.lower_graph import lower
from runtime.dtypes import DType
from runtime.graph.builder import Builder
from runtime.graph.interpreter import interpret
from runtime.graph.ir import Graph
from runtime.graph.verify import verify
from runtime.ops.stack import Stack
from runtime.types import TensorType


def typed(dtype: DType, *shape: int | None) -> TensorType:
    return TensorType(dtype, shape)


def build(function: Any, types: Sequence[Any], names: Sequence[str] | None = None) -> Graph:
    """The verified graph of `function`, which returns a tensor or a sequence of tensors."""
    builder = Builder(getattr(function, "__name__", "f"))
    inputs = [builder.add_input(t, n) for t, n in zip(types, names or [f"x{i}" for i in range(len(types))])]
    with builder:
        results = function(*map(builder.tensor, inputs))
        results = results if isinstance(results, (list, tuple)) else [results]
        builder.graph.outputs = [builder.use(r) for r in results]
    verify(builder.graph)
    return builder.graph


_latest: tuple[Graph, NativeCall] | None = None


def native_of(graph: Graph) -> NativeCall:
    """The graph's native code. Tests often run one graph on several inputs: it is lowered once for them."""
    global _latest
    if _latest is None or _latest[0] is not graph:
        _latest = graph, load(lower(graph))
    return _latest[1]


def run_both(graph: Graph, inputs: Sequence[Any]) -> tuple[Any, Any]:
    """The outputs, or the exception, of the interpreter and of native code."""

    def attempt(function: Any) -> Any:
        try:
            with np.errstate(all="ignore"):
                return function()
        except Exception as error:
            return error

    # Tokens that effects take are inputs too.
    inputs = [*inputs, *[None] * (len(graph.inputs) - len(inputs))]
    native = native_of(graph)
    return attempt(lambda: interpret(graph, inputs)), attempt(lambda: native(inputs))


def check(graph: Graph, *inputs: Any, rtol: float | None = None) -> list[Any]:
    """Runs a graph both ways; compares values, dtypes and shapes, or classes of errors. Gives the native outputs."""
    expected, actual = run_both(graph, inputs)
    if isinstance(expected, Exception) or isinstance(actual, Exception):
        if type(expected) is not type(actual):
            raise AssertionError(f"interpreter: {expected!r}\nnative: {actual!r}\n{graph}\n{lower(graph).text}")
        return [actual]
    for want, got in zip(expected, actual):
        same(want, got, rtol, graph)
    return actual


def same(want: Any, got: Any, rtol: float | None, graph: Graph) -> None:
    if want is None:
        assert got is None
        return
    if isinstance(want, Stack):
        assert (got.top, got.dims_top, got.rank) == (want.top, want.dims_top, want.rank)
        np.testing.assert_array_equal(got.store.dims[: got.dims_top], want.store.dims[: want.dims_top])
        want, got = want.store.data[: want.top], got.store.data[: got.top]
    want, got = np.asarray(want), np.asarray(got)
    assert (want.dtype, want.shape) == (got.dtype, got.shape), f"{graph}\n{lower(graph).text}"
    if rtol is None:
        rtol = 3e-6 if want.dtype == np.float32 else 1e-12
    try:
        np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol)
    except AssertionError as error:
        raise AssertionError(f"{error}\n{graph}\n{lower(graph).text}") from None
