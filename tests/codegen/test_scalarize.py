"""Small tensors in loops, which are printed element by element: compiled and interpreted runs agree."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import autograph as ag
from runtime import dtypes
from runtime.codegen.loops import scalarize
from runtime.codegen.lower.lower_graph import is_native, lower
from runtime.graph.builder import emit_while, trace_region
from runtime.ops.dispatch import apply, call
from runtime.ops.table import OPS
from tests.autodiff.graphs import integer
from tests.codegen.compare import build, check, typed
from tests.codegen.test_table import operands, traced
from tests.full import FULL

X = np.array([[1.0, -0.4, 2.0], [0.3, 0.7, -1.2], [0.5, 0.2, 0.9]])


def products(x: Any, n: Any) -> Any:
    y = x
    for _ in ag.range(n):
        y = ag.matmul(x, y, transpose_b=True) * 0.3 + ag.matmul(y, x, transpose_a=True) * 0.2
    return y


def slices(x: Any, n: Any) -> Any:
    y, z = x, x[0]
    for i in ag.range(n):
        y = y - y[:, 0:1] * y[1:2, :] + ag.reverse(y, [0]) * 0.1
        z = ag.concat([z[1:], z[:1] + y[2, ::2][1:]], 0) + y[i % 3]
    return y, z


def reductions(x: Any, n: Any) -> Any:
    y = x
    for _ in ag.range(n):
        mean = ag.reduce_mean(y, axis=1, keepdims=True)
        high = ag.reduce_max(y, axis=0)
        y = y - mean + high * 0.1 + ag.reduce_min(y) - ag.reduce_prod(y[0]) * 0.01 + ag.norm(y) * 0.01
    return y, ag.reduce_sum(y)


def moved(x: Any, n: Any) -> Any:
    y = x
    for _ in ag.range(n):
        row = ag.reshape(ag.transpose(y), [9])[:3]
        y = ag.stack([row, y[1], ag.zeros_like(row) + 1.0]) + ag.expand_dims(row, 1) * ag.ones_like(y) * 0.5
        a, b, c = ag.unstack(y)
        y = ag.stack([c, a * 0.5, b]) * 0.7
    return y


def branches(x: Any, n: Any) -> Any:
    y, kept = x, x[0] * 0.0
    for i in ag.range(n):
        if i % 2 == 0:
            y = y * 0.5 + ag.transpose(x)
        else:
            y = y - x
            if ag.reduce_sum(y) > 0.7:
                kept = y[0]
        if ag.reduce_any(y > 5.0):
            break
    return y, kept


def integers(x: Any, n: Any) -> Any:
    y = ag.cast(x * 10.0, ag.int32)
    total = ag.constant([0, 0, 0], ag.int64)
    for i in ag.range(n):
        y = ag.where(y > 3, y - i, y * 2 + 1)
        total += ag.cast(ag.reduce_sum(y, axis=0), ag.int64)
    return y, total, ag.cast(y > 0, ag.float64)


def elements(x: Any, n: Any) -> Any:
    a, b, total = x[0, 0], x[0, 1], 0.0 * x[0, 0]
    for i in ag.range(n):
        row = x[i % 3]
        a, b = a * row[0] + b, b * row[1] - row[-1] * a
        total += a * b
    return total, a


def nested(x: Any, n: Any) -> Any:
    y = x
    for i in ag.range(n):
        z = y[0]
        for _ in ag.range(i):
            z = ag.tanh(ag.linalg.matvec(x, z))
        y = ag.tensor_scatter_nd_update(y, [[1]], [z]) * 0.9
    return y


def indexed_and_sent_away(x: Any, n: Any) -> Any:
    y, picked = x[0], 0.0 * x[0, 0]
    rows = ag.TensorArray(ag.float64, size=n)
    for i in ag.range(n):
        y = y * 1.1 + x[i % 3]
        picked += y[i % 3]
        rows = rows.write(i, y)
    return picked, rows.stack()


def asked_in_the_test(x: Any, n: Any) -> Any:
    y = x[0]
    while ag.reduce_sum(y * y) > 1e-3 * ag.cast(n + 1, ag.float64):
        y = y * 0.5
    return y


def changing_shapes(x: Any, n: Any) -> Any:
    y = x[:1]
    for _ in ag.range(n):
        y = ag.concat([y, y[-1:] * 0.5], 0)
    return y


PROGRAMS = [
    products, slices, reductions, moved, branches, integers, elements, nested, indexed_and_sent_away, asked_in_the_test,
    changing_shapes,
]  # fmt: skip

# Second derivatives take long to compile.
DIFFERENTIATED = [p for p in PROGRAMS if p is not integers] if FULL else [slices, elements]


def flat(result: Any) -> list[Any]:
    return [np.asarray(each) for each in ag.nest.flatten(result)]


@pytest.mark.parametrize("program", PROGRAMS)
def test_values(program: Any) -> None:
    compiled, interpreted = (ag.function(program, jit_compile=each) for each in (True, False))
    for n in (0, 1, 4):
        got, expected = (flat(f(ag.constant(X), ag.constant(n))) for f in (compiled, interpreted))
        for one, other in zip(got, expected):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("program", DIFFERENTIATED)
def test_gradients(program: Any) -> None:
    def gradient(x: Any, n: Any) -> Any:
        with ag.GradientTape() as outer:
            outer.watch(x)
            with ag.GradientTape() as tape:
                tape.watch(x)
                loss = ag.add_n([ag.reduce_sum(ag.sin(each)) for each in ag.nest.flatten(program(x, n))])
            first = tape.gradient(loss, x)
            again = ag.reduce_sum(first * x)
        return loss, first, outer.gradient(again, x)

    compiled, interpreted = (ag.function(gradient, jit_compile=each) for each in (True, False))
    for n in (0, 3):
        got, expected = (flat(f(ag.constant(X), ag.constant(n))) for f in (compiled, interpreted))
        for one, other in zip(got, expected):
            np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)


def test_no_array_is_left_of_a_small_state() -> None:
    text = lower(
        ag.function(products).get_concrete_function(ag.TensorSpec([2, 2]), ag.TensorSpec([], ag.int32)).graph
    ).text
    body = text[text.index("while ") :]
    assert "matmul" not in body
    assert "for " not in body.split("ticks")[0]


def test_no_array_is_made_to_read_a_number_from() -> None:
    """The flags of an extreme, of one element each, which a loop saves as numbers for its gradient."""

    def gradient(x: Any) -> Any:
        with ag.GradientTape() as tape:
            tape.watch(x)
            made = ag.zeros_like(x)
            for i in ag.range(1, 100):
                made = ag.tensor_scatter_nd_max(made, [[i]], [x[i] * x[i - 1]])
            y = ag.reduce_sum(made)
        return tape.gradient(y, x)

    text = lower(ag.function(gradient).get_concrete_function(ag.TensorSpec([100])).graph).text
    assert "lib.grown" in text  # it saves them
    assert "np.empty(1," not in text


def test_large_states_stay_arrays() -> None:
    spec = ag.TensorSpec([8, 8])
    text = lower(ag.function(products).get_concrete_function(spec, ag.TensorSpec([], ag.int32)).graph).text
    assert "lib.matmul" in text


ELEMENTWISE = {"add", "multiply", "select", "tanh", "maximum", "less", "logical_and", "bitwise_and"}


def samples_of_small_tensors(dtype: Any) -> list[tuple[Any, Any, list[Any]]]:
    """(op, attributes, operands) of all samples that would be printed element by element."""
    found = []
    random = np.random.default_rng(3)
    for op in OPS.values():
        own = []
        for sample in op.samples or ():
            if dtype.np.kind not in op.kinds or op.effect or (op.is_elementwise and op.name not in ELEMENTWISE):
                continue
            arrays = operands(sample, dtype, random)
            graph = traced(op, sample.attrs, arrays, unknown=False)
            if graph is not None and scalarize._is_supported(graph.nodes[-1]) and is_native(graph.nodes[-1]):
                own.append((op, sample.attrs, arrays))
        found += own if FULL else own[:1]
    return found


@pytest.mark.parametrize("dtype", [dtypes.float32, *([dtypes.int8, dtypes.bool_] if FULL else [])], ids=str)
def test_rows(dtype: Any) -> None:
    found = samples_of_small_tensors(dtype)
    names = {op.name for op, _, _ in found}
    if dtype is dtypes.float32:
        others = {
            "stop_gradient",
            "ensure_shape",
            "from_replicas",
            "to_device",
            "reduce_any",
            "reduce_all",
        }  # of no samples, or booleans
        moves = {op.name for op in OPS.values() if op.is_move}
        assert moves | scalarize._REDUCED | {"matmul", "slice_add"} <= names | others
    for start in range(0, len(found), 40):
        batch = found[start : start + 40]
        flat_arrays = [array for _, _, arrays in batch for array in arrays]

        def program(*tensors: Any, batch: Any = batch) -> Any:
            def body(i: Any, *carries: Any) -> Any:
                rest, results = iter(tensors), []
                for op, attrs, arrays in batch:
                    made = apply(op, [next(rest) for _ in arrays], attrs)
                    results += made if isinstance(made, tuple) else [made]
                return [i + 1, *results]

            first = body(integer(0))[1:]
            begin = [integer(0), *[call("zeros_like", t) for t in first]]
            types = [t.type for t in begin]
            test = trace_region("test", lambda i, *_: [i < 2], types)
            return emit_while(test, trace_region("body", body, types), begin)[1:]

        graph = build(program, [typed(dtypes.as_dtype(a.dtype), *np.shape(a)) for a in flat_arrays])
        check(graph, *flat_arrays)
