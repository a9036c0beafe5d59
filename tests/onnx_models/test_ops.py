"""Each lowering: a graph of the op alone, run by ONNX Runtime, gives what our interpreter gives."""

from __future__ import annotations

import numpy as np
import pytest

import autograph  # noqa: F401  with all rows of the op table
from runtime import dtypes
from runtime.errors import OpError, UnimplementedError
from runtime.graph.interpreter import interpret
from runtime.graph.ir import Graph
from runtime.onnx_export.emitter import LOWERINGS
from runtime.onnx_export.model import Argument, model_of
from runtime.ops.table import OPS
from runtime.types import TensorType
from tests.full import FULL
from tests.onnx_models.running import check, run

DTYPES = [
    dtypes.float32, dtypes.float64, dtypes.float16, dtypes.int32, dtypes.int64, dtypes.int8, dtypes.int16,
    dtypes.uint8, dtypes.uint32, dtypes.bool_, dtypes.string,
]  # fmt: skip


# What ONNX Runtime (1.32) can't run: (op, number of the sample) -> why.
NOT_RUN = {
    ("string_upper", 0): "its StringNormalizer needs the locale en_US, which few machines have",
}
# Ops over windows, whose number depends on the sizes of the space.
WINDOWED = (
    "patches", "max_pool", "convolution", "convolution_filters_grad", "depthwise_convolution", "depthwise_filters_grad",
)  # fmt: skip
# Samples whose attributes are refused: (op, number) -> what the error says.
REFUSED = {("as_string", 0): "writes numbers in another format"}


def one_op(op, sample, dtype, is_open):
    """A graph of an op alone; is_open: no size of an operand is known."""
    graph = Graph("f")
    types = [TensorType(dtype, shape) for shape in sample.shapes]
    for index, array in sample.fixed.items():
        types[index] = TensorType(dtypes.as_dtype(np.asarray(array).dtype), np.shape(array))
    if is_open:
        types = [TensorType(t.dtype, (None,) * len(t.shape)) for t in types]
    outputs = op.infer(types, sample.attrs)
    inputs = [graph.add_input(each) for each in types]
    graph.outputs = list(graph.add_node(op, inputs, dict(sample.attrs), outputs).outputs)
    return graph


def operands(sample, dtype, seed=0):
    random = np.random.default_rng(seed)
    arrays = []
    for index, shape in enumerate(sample.shapes):
        if index in sample.fixed:
            arrays.append(np.asarray(sample.fixed[index]))
        elif dtype is dtypes.string:
            array = np.empty(shape, object)
            array.reshape(-1)[:] = [f"{random.integers(9)}".encode() for _ in range(array.size)]
            arrays.append(array)
        elif dtype is dtypes.bool_:
            arrays.append(np.asarray(random.integers(0, 2, shape), bool))
        elif dtype.is_floating:
            arrays.append(np.asarray(random.uniform(sample.low, sample.high, shape), dtype.np))
        else:
            low = max(sample.low, -3 if dtype.kind == "i" else 0)
            numbers = random.integers(int(low), int(max(low + 1, min(sample.high, 5))) + 1, shape)
            arrays.append(np.asarray(np.where(numbers == 0, 1, numbers), dtype.np))
    return arrays


def can_be_seen(value):
    """Whether NumPy has the dtype, and ONNX numbers of it."""
    return not (value.dtype.is_narrow or value.dtype.is_complex)


def cases():
    for name in sorted(LOWERINGS):
        for number, sample in enumerate(OPS[name].samples or ()):
            if (name, number) not in {**NOT_RUN, **REFUSED}:
                yield pytest.param(name, number, id=f"{name}-{number}")


@pytest.mark.parametrize("is_open", [False, True], ids=["known", "open"])
@pytest.mark.parametrize(("name", "number"), list(cases()))
def test_op(name, number, is_open):
    """All dtypes for the first sample of a row, the first that works for the others: AUTOGRAPH_FULL_TESTS=1 has all."""
    sample = OPS[name].samples[number]
    tried = 0
    for dtype in DTYPES:
        if tried and number and not FULL:
            break
        if dtype.kind not in OPS[name].kinds and len(sample.fixed) < len(sample.shapes):
            continue
        try:
            graph = one_op(OPS[name], sample, dtype, is_open)
            arrays = operands(sample, dtype)
            expected = interpret(graph, arrays)
        except (TypeError, ValueError, OpError):
            continue  # an op that doesn't take the dtype
        if any(output.shape is None for output in graph.outputs):
            continue  # models say what ranks their results have
        if not all(map(can_be_seen, graph.outputs)):
            return
        if name == "argsort" and dtype is dtypes.string:
            continue  # refused, below
        names = [f"x{k}" for k in range(len(arrays))]
        given, made_names = [Argument(each) for each in names], [f"y{k}" for k in range(len(expected))]
        if is_open and name in WINDOWED:
            with pytest.raises(UnimplementedError, match="sizes of the space dimensions aren't known"):
                model_of(graph, given, made_names, "test")
            return
        made = model_of(graph, given, made_names, "test")
        found = run(made.model, dict(zip(names, arrays)))
        for wanted, got in zip(expected, found.values(), strict=True):
            check(wanted, got)
        tried += 1
    if not is_open:
        assert tried


def test_what_is_refused():
    for (name, number), message in REFUSED.items():
        sample = OPS[name].samples[number]
        with pytest.raises(UnimplementedError, match=message):
            model_of(one_op(OPS[name], sample, dtypes.float32, False), [Argument("x")], ["y"], "test")
    with pytest.raises(UnimplementedError, match="doesn't sort strings"):
        graph = one_op(OPS["argsort"], OPS["argsort"].samples[0], dtypes.string, False)
        model_of(graph, [Argument("x")], ["y"], "test")


def test_lowerings_are_of_rows():
    assert set(LOWERINGS) <= set(OPS)
