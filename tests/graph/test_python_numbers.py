"""Numbers of loops on the interpreter, Python's where they can be: the bits are those of the ops' kernels."""

import itertools

import numpy as np
import pytest

import autograph as ag
from runtime import dtypes
from runtime.graph import interpreter
from runtime.graph.hot_loops import HotLoop
from runtime.ops.dispatch import call
from runtime.ops.table import OPS
from runtime.types import TensorType

FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 1e-310, 1e300, -1e300, np.inf, -np.inf, np.nan, 2.0**31, -(2.0**63)]
VALUES = {
    "bool": [False, True],
    "int32": [0, 1, -1, 2, 7, -8, 31, 2**31 - 1, -(2**31)],
    "int64": [0, 1, -1, 3, 31, 2**31, -(2**31) - 1, 2**63 - 1, -(2**63)],
    "float32": FLOATS,
    "float64": FLOATS,
}


def cases():
    """Elementwise ops with the dtypes of single numbers that they take, and the attributes of their samples."""
    for op in OPS.values():
        if op.scalar is None:
            continue
        attributes = {tuple(sample.attrs.items()): len(sample.shapes) for sample in op.samples or ()}
        for (attrs, count), name in itertools.product(attributes.items(), VALUES):
            kinds = ("bool", name, name) if op.name == "select" else (name,) * count
            try:
                op.infer([TensorType(dtypes.as_dtype(kind), ()) for kind in kinds], dict(attrs))
            except (TypeError, ValueError):
                continue
            if dtypes.as_dtype(name).kind in op.kinds and all(str(getattr(v, "name", v)) in VALUES for _, v in attrs):
                yield pytest.param(op, kinds, dict(attrs), id="-".join([op.name, *kinds, *(str(v) for _, v in attrs)]))


def graph_of(op, kinds, attrs):
    """A loop that applies an op to each element of the operands, and writes down the results."""
    dtype = op.infer([TensorType(dtypes.as_dtype(kind), ()) for kind in kinds], attrs)[0].dtype

    def f(*operands):
        count = ag.shape(operands[0])[0]
        results = ag.TensorArray(dtype, size=count, element_shape=[])
        for i in ag.range(count):
            results = results.write(i, call(op.name, *[operand[i] for operand in operands], **attrs))
        return results.stack()

    specs = [ag.TensorSpec([None], kind) for kind in kinds]
    return ag.function(f, jit_compile=False).get_concrete_function(*specs).graph


def outcome(graph, arrays, until):
    before = interpreter.TRIPS_UNTIL_HOT
    interpreter.TRIPS_UNTIL_HOT = until
    try:
        return interpreter.interpret(graph, arrays)[0]
    except (ag.errors.OpError, OverflowError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    finally:
        interpreter.TRIPS_UNTIL_HOT = before


def columns(kinds):
    """All pairs of special values."""
    pairs = list(itertools.product(VALUES[kinds[-1]], repeat=min(len(kinds), 2)))
    found = [np.array(column, kinds[-1]) for column in zip(*pairs)]
    return found if len(kinds) < 3 else [np.arange(len(pairs)) % 2 == 0, *found]


@pytest.mark.parametrize("op, kinds, attrs", list(cases()))
@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
def test_bits_are_those_of_the_kernels(op, kinds, attrs):
    graph, arrays = graph_of(op, kinds, attrs), columns(kinds)
    if isinstance(outcome(graph, arrays, 1 << 60), str):  # an error ends the loop
        chosen = [[a[row : row + 1] for a in arrays] for row in range(len(arrays[0]))]
    else:
        chosen = [arrays]
    for operands in chosen:
        expected, found = outcome(graph, operands, 1 << 60), outcome(graph, operands, 0)
        if isinstance(expected, str):
            assert found == expected
            continue
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
        if found.dtype.kind == "f" and op.name not in ("maximum", "minimum"):  # of two zeros, either is right
            known = ~np.isnan(found)
            np.testing.assert_array_equal(np.signbit(found[known]), np.signbit(expected[known]))


def text_of(function, *arguments):
    graph = ag.function(function, jit_compile=False).get_concrete_function(*arguments).graph
    node = next(node for node in graph.nodes if node.op.name == "while")
    return "\n".join(HotLoop(node, interpreter._executor).text)


def test_most_ops_on_numbers_are_expressions():
    """Otherwise the test above compares kernels with themselves."""

    def f(a, b, x, y, n):
        for _ in ag.range(n):
            a, b = ag.where(a < b, a + b, a - b * 2), a // 3 + (b & 7)
            x, y = ag.maximum(x * y, x / y), abs(x - y) ** 1.5
        return a, b, x, y

    number, real = ag.constant(1, ag.int64), ag.constant(1.0, ag.float64)
    text = text_of(f, number, number, real, real, ag.constant(3))
    lines = [line for line in text.split("\n") if "(np_" in line and " if " not in line and "if not" not in line]
    assert not [line for line in lines if "finish" not in line and "return" not in line], text


def test_ranges_make_checks_needless():
    def counts(n):
        total = ag.constant(0.0)
        for i in ag.range(n):
            total += ag.cast(i + 1, ag.float32)
        return total

    assert "2147483647" not in text_of(counts, ag.constant(3))

    def grows(n):
        total = ag.constant(0)
        for i in ag.range(n):
            total += i
        return total

    assert text_of(grows, ag.constant(3)).count("2147483647") == 1
