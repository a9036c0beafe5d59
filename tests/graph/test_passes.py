"""Each graph pass on a small graph, before and after, and on graphs with regions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import runtime.ops.arrays.shape_ops
import runtime.ops.elementwise.elementary
import runtime.ops.operators  # noqa: F401 - the three register the ops used here
from runtime.context import ctx
from runtime.graph.builder import Builder, emit_cond, emit_while, trace_region
from runtime.graph.interpreter import interpret
from runtime.graph.ir import Graph, copy_graph
from runtime.graph.passes.common_subexpressions import merge_common_subexpressions
from runtime.graph.passes.constant_folding import fold_constants
from runtime.graph.passes.control_flow.array_rows import reserve_rows
from runtime.graph.passes.control_flow.late_operands import put_late_operands_last
from runtime.graph.passes.control_flow.reduction_order import gather_reductions
from runtime.graph.passes.dead_code import remove_dead_code
from runtime.graph.passes.pipeline import optimize
from runtime.graph.printer import as_text
from runtime.graph.verify import VerificationError, verify
from runtime.ops.control import assert_op
from runtime.ops.convert import convert_to_tensor
from runtime.ops.dispatch import apply, call
from runtime.ops.growable import ARRAY_WRITE
from runtime.types import TensorType
from tests.autodiff.graphs import F64, I32, integer, number, while_loop


def trace(function: Callable[..., list], *types: TensorType) -> Graph:
    builder = Builder("f")
    inputs = [builder.add_input(t, name) for t, name in zip(types, "xyz")]
    with builder:
        builder.graph.outputs = [builder.use(t) for t in function(*map(builder.tensor, inputs))]
    verify(builder.graph)
    return builder.graph


def lines(graph: Graph) -> list[str]:
    return [line.strip() for line in as_text(graph).splitlines()]


def test_dead_code() -> None:
    def f(x: Any) -> list:
        call("exp", x)
        return [call("sin", x)]

    graph = trace(f, F64)
    remove_dead_code(graph)
    assert lines(graph) == ["graph f(%x: float64[]):", "%sin: float64[] = sin(%x)", "return %sin"]


def test_dead_code_prunes_carries_and_captures() -> None:
    def f(x: Any, n: Any) -> list:
        def body(i: Any, y: Any, z: Any) -> list:
            return [i + 1, y * x, z + x]

        types = [I32, F64, F64]
        test = trace_region("test", lambda i, y, z: [i < n], types)
        return emit_while(test, trace_region("body", body, types), [integer(0), number(1), number(0)])[1:2]

    graph = trace(f, F64, I32)
    remove_dead_code(graph)
    verify(graph, "dead code")
    loop = next(n for n in graph.nodes if n.op.name == "while")
    assert loop.attrs["carries"] == 2
    assert interpret(graph, [np.float64(3), np.int32(4)]) == [81]


def test_dead_code_keeps_a_carry_that_feeds_the_test_through_another() -> None:
    def f(x: Any) -> list:
        types = [F64, F64]
        test = trace_region("test", lambda a, b: [a < 100.0], types)
        return emit_while(test, trace_region("body", lambda a, b: [a + b, b * 2.0], types), [x, number(1)])[:1]

    graph = trace(f, F64)
    remove_dead_code(graph)
    verify(graph, "dead code")
    assert interpret(graph, [np.float64(0)]) == [127]


def test_dead_code_prunes_the_outputs_of_a_branch() -> None:
    def f(x: Any) -> list:
        then = trace_region("then", lambda: [call("exp", x), x])
        other = trace_region("else", lambda: [call("sin", x), x])
        return emit_cond(x > 0.0, then, other)[1:]

    graph = trace(f, F64)
    remove_dead_code(graph)
    verify(graph, "dead code")
    assert [n.op.name for n in graph.walk()] == ["constant", "greater", "cond"]


def test_constant_folding() -> None:
    graph = trace(lambda x: [x * (number(2) * number(3))], F64)
    optimize(graph)
    assert lines(graph) == [
        "graph f(%x: float64[]):",
        "%constant: float64[] = constant() {value=6.}",
        "%multiply: float64[] = multiply(%x, %constant)",
        "return %multiply",
    ]


def test_folding_takes_the_known_branch() -> None:
    def f(x: Any) -> list:
        pred = number(1) < number(2)
        return emit_cond(pred, trace_region("then", lambda: [x * x]), trace_region("else", lambda: [call("exp", x)]))

    graph = optimize(trace(f, F64))
    assert [n.op.name for n in graph.nodes] == ["multiply"]
    assert interpret(graph, [np.float64(3)]) == [9]


def test_folding_leaves_failures_to_run_time() -> None:
    def f(x: Any) -> list:
        bad = call("floordiv", integer(1), integer(0))
        return emit_cond(x > 0.0, trace_region("then", lambda: [bad]), trace_region("else", lambda: [integer(7)]))

    graph = trace(f, F64)
    fold_constants(graph)
    verify(graph, "folding")
    assert "floordiv" in as_text(graph)


def test_folding_does_not_make_large_constants() -> None:
    graph = trace(lambda x: [call("broadcast_to", number(1), shape=(1000,)) + x], F64)
    fold_constants(graph)
    assert "broadcast_to" in as_text(graph)


def test_arrays_have_their_rows_before_the_loop_that_writes_them() -> None:
    def nested(x: Any, n: Any) -> list:
        def row(i: Any, a: Any) -> list:
            inner = [I32, a.type]
            test = trace_region("test", lambda j, a: [j < i], inner)
            body = trace_region("body", lambda j, a: [j + 1, apply(ARRAY_WRITE, (a, j, x, n), {"fixed": True})], inner)
            return [i + 1, emit_while(test, body, [integer(0), a])[1]]

        types = [I32, TensorType(F64.dtype, (None,))]
        test = trace_region("test", lambda i, a: [i < n], types)
        start = convert_to_tensor(np.zeros(0))
        return emit_while(test, trace_region("body", row, types), [integer(0), start])[1:]

    graph = trace(nested, F64, I32)
    before = interpret(graph, [1.5, np.int32(4)])
    reserve_rows(graph)
    verify(graph)
    rows = next(node for node in graph.nodes if node.op.name == "broadcast_to")
    loop = next(node for node in graph.nodes if node.op.name == "while")
    assert rows.inputs[1] is graph.inputs[1] and loop.inputs[1] is rows.outputs[0]
    np.testing.assert_array_equal(interpret(graph, [1.5, np.int32(4)])[0], before[0])


def test_arrays_that_may_grow_get_no_rows() -> None:
    def f(x: Any, n: Any) -> list:
        types = [I32, TensorType(F64.dtype, (None,))]
        test = trace_region("test", lambda i, a: [i < n], types)
        body = trace_region("body", lambda i, a: [i + 1, apply(ARRAY_WRITE, (a, i, x, n), {"fixed": False})], types)
        return emit_while(test, body, [integer(0), convert_to_tensor(np.zeros(0))])[1:]

    graph = trace(f, F64, I32)
    reserve_rows(graph)
    assert not any(node.op.name == "broadcast_to" for node in graph.nodes)


def test_reductions_of_one_tensor_stand_together_in_loops() -> None:
    def f(x: Any, n: Any) -> list:
        def body(i: Any, y: Any) -> list:
            first = call("reduce_sum", y, axis=(0,), keepdims=True)
            apart = call("reduce_sum", call("exp", first), axis=(0,), keepdims=True)
            return [i + 1, y * apart - call("reduce_max", y, axis=(0,), keepdims=True)]

        types = [I32, TensorType(F64.dtype, (3,))]
        test = trace_region("test", lambda i, y: [i < n], types)
        return emit_while(test, trace_region("body", body, types), [integer(0), x])[1:]

    graph = trace(f, TensorType(F64.dtype, (3,)), I32)
    before = interpret(graph, [np.arange(3.0), np.int32(2)])
    gather_reductions(graph)
    verify(graph)
    loop = next(node for node in graph.nodes if node.op.name == "while")
    order = [node.op.name for node in loop.regions[1].nodes if node.op.name != "constant"]
    assert order[:4] == ["reduce_sum", "reduce_max", "exp", "reduce_sum"]
    np.testing.assert_array_equal(interpret(graph, [np.arange(3.0), np.int32(2)])[0], before[0])


def least_of_three(op: str, read: str) -> Callable[..., list]:
    """A loop that writes the op of three numbers, of which `read` says where the second comes from."""

    def f(x: Any, n: Any) -> list:
        def body(i: Any, row: Any, last: Any) -> list:
            late = {"row": lambda: call("row", row, i), "x": lambda: call("row", x, i), "last": lambda: last}[read]()
            least = call(op, call(op, call("row", x, i) + 3, late + 1), call("row", x, i) * 2)
            return [i + 1, apply(ARRAY_WRITE, (row, i + 1, least, n), {"fixed": True}), least]

        return list(while_loop(lambda i, row, last: i < n - 1, body, [integer(0), x + 1, n])[1:])

    return f


@pytest.mark.parametrize("op", ["minimum", "maximum"])
@pytest.mark.parametrize("read", ["row", "x", "last"])
def test_what_the_trip_before_wrote_comes_last(op: str, read: str) -> None:
    graph = trace(least_of_three(op, read), TensorType(I32.dtype, (5,)), I32)
    inputs = [np.array([4, -1, 7, 0, 2], np.int32), np.int32(5)]
    before = interpret(graph, inputs)
    put_late_operands_last(graph)
    verify(graph)
    body = next(node for node in graph.nodes if node.op.name == "while").regions[1]
    inner, outer = (node for node in body.nodes if node.op.name == op)
    assert inner.outputs[0] in outer.inputs
    late = next(v.node for v in outer.inputs if v.node is not inner)
    assert late is not None and (late.op.name == "add") == (read == "row")
    for want, got in zip(before, interpret(graph, inputs)):
        np.testing.assert_array_equal(got, want)


def test_common_subexpressions() -> None:
    graph = trace(lambda x: [call("exp", x) + call("exp", x)], F64)
    merge_common_subexpressions(graph)
    assert lines(graph)[1:] == ["%exp: float64[] = exp(%x)", "%add: float64[] = add(%exp, %exp)", "return %add"]


def test_what_is_asserted_twice_is_asserted_once() -> None:
    def body(x: Any) -> Any:
        assert_op(x > 0.0, "first")
        assert_op(x > 0.0, "second")
        assert_op(x > 1.0, "third")
        return [x]

    graph = trace(body, F64)
    merge_common_subexpressions(graph)
    verify(graph)
    assert [n.attrs["message"] for n in graph.nodes if n.op.name == "assert"] == ["first", "third"]


def test_common_subexpressions_tell_attributes_apart() -> None:
    graph = trace(lambda x: [call("cast", x, dtype=I32.dtype) + call("cast", call("floor", x), dtype=I32.dtype)], F64)
    merge_common_subexpressions(graph)
    assert as_text(graph).count("= cast(") == 2


def test_a_copy_is_independent() -> None:
    graph = trace(lambda x: [call("exp", x)], F64)
    copy = copy_graph(graph)
    copy.nodes.clear()
    copy.outputs = list(copy.inputs)
    verify(copy)
    assert len(graph.nodes) == 1 and interpret(graph, [np.float64(0)]) == [1]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda g: g.nodes.reverse(), "isn't defined before it"),
        (lambda g: g.nodes.append(g.nodes[0]), "defined twice"),
        (lambda g: g.outputs.append(g.nodes[0].outputs[0].__class__(F64, g)), "isn't defined in this graph"),
        (lambda g: setattr(g.nodes[0].outputs[0], "type", I32), "the type rule"),
    ],
)
def test_the_verifier_names_what_is_broken(damage: Callable[[Graph], Any], message: str) -> None:
    graph = trace(lambda x: [call("exp", call("sin", x))], F64)
    damage(graph)
    with pytest.raises(VerificationError, match=message) as caught:
        verify(graph, "test pass")
    assert "test pass" in str(caught.value)


def test_a_symbolic_tensor_of_another_function_is_refused() -> None:
    kept: list[Any] = []
    trace(lambda x: kept.append(x) or [x], F64)
    with pytest.raises(ValueError, match="can't see it"):
        trace(lambda x: [x + kept[0]], F64)
    assert ctx.builder is None
