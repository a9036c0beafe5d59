"""Every row of the op table, by its samples: value, dtype, type rule, scalar text, gradients to second order.

A row without samples fails here unless `structured.ELSEWHERE` says where it is tested; so does one without a reference.
"""

import math
from types import SimpleNamespace

import numpy as np
import pytest

import autograph  # noqa: F401 - registers the rows
from runtime import dtypes
from runtime.autodiff.tape import GradientTape
from runtime.ops.dispatch import apply
from runtime.ops.table import OPS, Sample
from runtime.shapes import covers
from runtime.tensor import EagerTensor
from runtime.types import TensorType
from tests.ops import pointwise, structured
from tests.ops.references import REFERENCES

ROWS = [row for row in OPS.values() if row.samples]
POINTWISE = {*pointwise.rows()}
TESTED_ELSEWHERE = {row.name for row in ROWS if row.name in structured.ELSEWHERE and row.name not in REFERENCES}
TOLERANCE = {
    "bfloat16": 2e-2, "float16": 4e-3, "float32": 2e-6, "float64": 1e-13, "complex64": 4e-6, "complex128": 1e-13,
}  # fmt: skip


def random_array(shape, dtype, low, high, seed):
    rng = np.random.default_rng(seed)
    if dtype.kind == "O":
        letters = rng.integers(97, 123, size=(*shape, 2))
        result = np.empty(shape, object)
        for index in np.ndindex(*shape):
            result[index] = bytes(letters[index].tolist())
        return result
    values = rng.uniform(low, high, size=shape)
    if dtype.kind == "b":
        return rng.integers(0, 2, size=shape).astype(bool)[()]
    if dtype.kind in "iu":
        if dtype.kind == "u":
            low, high = (0, high) if low < 0 < high else sorted((abs(low), abs(high)))
        values = rng.integers(math.ceil(low), math.floor(high) + 1, size=shape)
    if dtype.kind == "c":
        values = values + 1j * rng.uniform(-0.8, 0.8, size=shape)
    return np.asarray(values).astype(dtype.np)


def operands(row, sample, dtype, seed=0):
    arrays = []
    for i, shape in enumerate(sample.shapes):
        fixed = sample.fixed.get(i)
        if fixed is None:
            fixed = random_array(shape, dtype, sample.low, sample.high, 100 * seed + i)
        elif fixed.dtype.kind == "f" and i == 1 and len(sample.fixed) == 1:
            fixed = np.abs(fixed).astype(dtype.np) if dtype.kind == "u" else fixed.astype(dtype.np)
        arrays.append(fixed)
    return arrays


def dtypes_of(row, sample):
    if len(sample.fixed) == len(sample.shapes):
        return [dtypes.float64]
    return [d for d in dtypes.ALL if d.kind in row.kinds and not (row.name in ("complex", "rfftn") and d.size < 4)]


def cases(need=lambda row: True):
    for row in ROWS:
        for number, sample in enumerate(row.samples or ()):
            if need(row):
                for dtype in dtypes_of(row, sample):
                    yield pytest.param(row, sample, dtype, id=f"{row.name}-{number}-{dtype.name}")


def run(row, arrays, attrs):
    result = apply(row, [EagerTensor(a) for a in arrays], attrs)
    return result if isinstance(result, tuple) else (result,)


def by_reference(row, arrays, attrs, result):
    """What the row should give; result: the dtype of its first output."""
    arrays = [np.asarray(a) for a in arrays]
    if row.name not in REFERENCES and row in POINTWISE:
        return (pointwise.expected(row, arrays, result),)
    if row.widens:  # float16 and bfloat16 are computed in float32
        arrays = [a.astype(np.float32) if a.dtype in dtypes.NARROW else a for a in arrays]
    found = structured.reference(row)(*arrays, **attrs)
    return found if isinstance(found, tuple) else (found,)


def test_the_table_is_complete():
    for row in OPS.values():
        if row.name not in structured.ELSEWHERE:
            assert row.doc, f"{row} has no doc: a line on what it does"
            assert row.samples, f"{row} has no samples: give its row some (`Sample` in runtime/ops/table.py)"


@pytest.mark.parametrize("row, sample, dtype", list(cases(lambda row: row.name not in TESTED_ELSEWHERE)))
def test_value_and_type(row, sample, dtype):
    arrays = operands(row, sample, dtype)
    hash(tuple(sample.attrs.items()))
    before = [a.copy() for a in arrays]
    outputs = run(row, arrays, sample.attrs)
    for array, copy in zip(arrays, before):
        np.testing.assert_array_equal(array, copy, err_msg="a kernel wrote to its operand")
    types = row.infer([TensorType(dtypes.as_dtype(a.dtype), a.shape) for a in arrays], sample.attrs)
    assert len(types) == len(outputs)
    with np.errstate(all="ignore"):
        expected = by_reference(row, arrays, sample.attrs, types[0].dtype)
    for output, type_, value in zip(outputs, types, expected):
        assert output._array.dtype == output.dtype.np == type_.dtype.np
        assert covers(type_.shape, output._array.shape), f"{type_} for shape {output._array.shape}"
        assert output._array.shape == np.shape(value)
        if output.dtype.kind in "fc":
            tolerance = TOLERANCE[dtype.name] if dtype.kind in "fc" else 1e-6
            tolerance = max(tolerance, TOLERANCE[output.dtype.name])
            widest = np.float64 if output.dtype.kind == "f" else np.complex128
            expected_here = np.asarray(value).astype(output.dtype.np).astype(widest)
            np.testing.assert_allclose(np.asarray(output._array, widest), expected_here, tolerance, tolerance)
        else:
            np.testing.assert_array_equal(output._array, np.asarray(value).astype(output.dtype.np))


@pytest.mark.parametrize("row, sample, dtype", list(cases(lambda row: row.name not in TESTED_ELSEWHERE)))
def test_type_rule_with_unknown_dimensions(row, sample, dtype):
    arrays = operands(row, sample, dtype)
    outputs = run(row, arrays, sample.attrs)
    known = [TensorType(dtypes.as_dtype(a.dtype), a.shape) for a in arrays]
    variants = [[TensorType(t.dtype, (None,) * len(t.shape)) for t in known]]
    for i, t in enumerate(known):
        for axis in range(len(t.shape)):
            shape = (*t.shape[:axis], None, *t.shape[axis + 1 :])
            variants.append([*known[:i], TensorType(t.dtype, shape), *known[i + 1 :]])
    for variant in variants:
        for type_, output in zip(row.infer(variant, sample.attrs), outputs):
            assert type_.dtype is output.dtype
            assert covers(type_.shape, output._array.shape), f"{variant} -> {type_}, found {output._array.shape}"


# Functions that generated code has beside those of `math` (see `cpu.fast`).
SCALARS = SimpleNamespace(
    **{name: value for name, value in vars(math).items() if not name.startswith("_")},
    sigmoid=lambda x: 1 / (1 + math.exp(-float(x))),
    softplus=lambda x: float(np.logaddexp(0, float(x))),
)


def machine_numbers():
    """Cases of dtypes that machine code computes with: it has narrow floats as float32, complex numbers as pairs (see
    `graph/passes/rewrites`), and no strings."""
    for case in cases(lambda row: row.scalar is not None):
        dtype = case.values[-1]
        if dtype.kind not in "Oc" and not dtype.is_narrow:
            yield case


@pytest.mark.parametrize("row, sample, dtype", list(machine_numbers()))
def test_scalar_text(row, sample, dtype):
    """The text that generated code uses computes what the kernel computes."""
    arrays = operands(row, sample, dtype)
    (output,) = run(row, arrays, sample.attrs)
    spread = np.broadcast_arrays(*arrays) if len(arrays) > 1 else [np.asarray(arrays[0])]
    inputs = [dtypes.as_dtype(a.dtype) for a in arrays]
    names = [f"v{i}" for i in range(len(arrays))]
    text = row.scalar.format(*names) if isinstance(row.scalar, str) else row.scalar(names, inputs, output.dtype)
    code = compile(text, "<scalar>", "eval")
    result = np.zeros(spread[0].shape, output.dtype.np)
    for index in np.ndindex(*spread[0].shape):
        # NumPy's scalars have the dtype's own arithmetic, as machine numbers do.
        scope = {name: array[index] for name, array in zip(names, spread)}
        with np.errstate(all="ignore"):
            result[index] = np.asarray(eval(code, {"math": SCALARS, "np": np, "abs": abs}, scope)).astype(
                output.dtype.np
            )
    if output.dtype.kind == "f":
        tolerance = 2 * TOLERANCE[output.dtype.name]
        np.testing.assert_allclose(
            np.asarray(result, np.float64), np.asarray(output._array, np.float64), tolerance, tolerance
        )
    else:
        np.testing.assert_array_equal(result, output._array)


def differentiable(row, sample):
    wanted = sample.gradient
    if wanted is None:
        wanted = [i for i in range(len(sample.shapes)) if i not in sample.fixed]
    return [i for i in wanted if i not in sample.fixed and i not in row.shape_only]


def gradient_cases():
    for row in ROWS:
        if row.grad is None or "f" not in row.kinds or row.name in TESTED_ELSEWHERE:
            continue
        for number, sample in enumerate(row.samples or ()):
            if (
                differentiable(row, sample)
                and not (row.name == "cast" and not sample.attrs["dtype"].is_floating)
                and sample.attrs.get("dtype", dtypes.float64).name not in ("float16", "bfloat16")
            ):
                yield pytest.param(row, sample, id=f"{row.name}-{number}")


def weighted_sum(outputs, seed):
    total = None
    for k, output in enumerate(outputs):
        if not output.dtype.is_floating:
            continue
        weights = random_array(output._array.shape, output.dtype, 0.5, 1.5, seed + k)
        part = apply(OPS["multiply"], [output, EagerTensor(weights)])
        axis = tuple(range(part.ndim))
        part = apply(OPS["reduce_sum"], [part], {"axis": axis, "keepdims": False})
        part = apply(OPS["cast"], [part], {"dtype": dtypes.float64})
        total = part if total is None else apply(OPS["add"], [total, part])
    return total


def first_order(row, sample, tensors, wanted):
    """Scalar result and its gradients, by the row's own rule."""
    with GradientTape() as tape:
        for i in wanted:
            tape.watch(tensors[i])
        result = apply(row, tensors, sample.attrs)
        total = weighted_sum(result if isinstance(result, tuple) else (result,), 7)
    if total is None:
        return None, [None] * len(wanted)
    return total, tape.gradient(total, [tensors[i] for i in wanted])


def numeric(function, arrays, position, step):
    """Central differences of a scalar function by each element of one operand."""
    base = arrays[position]
    result = np.zeros(base.shape)
    for index in np.ndindex(*base.shape):
        values = []
        for sign in (1, -1):
            moved = base.copy()
            moved[index] += sign * step
            values.append(function([*arrays[:position], moved, *arrays[position + 1 :]]))
        result[index] = (values[0] - values[1]) / (2 * step)
    return result


@pytest.mark.parametrize("row, sample", list(gradient_cases()))
def test_gradient_to_second_order(row, sample):
    arrays = [np.asarray(a) for a in operands(row, sample, dtypes.float64, seed=1)]
    wanted = differentiable(row, sample)
    step = 1e-3 if sample.attrs.get("dtype") is dtypes.float32 else 1e-5
    # A result in float32 (of cast) only differs by whole units in the last place.
    tolerance = 2e-3 if step == 1e-3 else 2e-6

    def value(changed):
        tensors = [EagerTensor(np.asarray(a)) for a in changed]
        total = weighted_sum(run(row, [t._array for t in tensors], sample.attrs), 7)
        return 0.0 if total is None else float(total._array)

    def gradients(changed):
        tensors = [EagerTensor(np.asarray(a)) for a in changed]
        return tensors, first_order(row, sample, tensors, wanted)[1]

    _, found = gradients(arrays)
    for i, gradient in zip(wanted, found):
        expected = numeric(value, arrays, i, step)
        got = np.zeros_like(arrays[i]) if gradient is None else np.asarray(gradient)
        assert got.shape == arrays[i].shape
        np.testing.assert_allclose(got, expected, tolerance, tolerance)

    def projected(changed):
        _, parts = gradients(changed)
        parts = [p for p in parts if p is not None]
        total = weighted_sum(parts, 11)
        return 0.0 if total is None else float(total._array)

    tensors = [EagerTensor(np.asarray(a)) for a in arrays]
    with GradientTape() as outer:
        for i in wanted:
            outer.watch(tensors[i])
        _, inner = first_order(row, sample, tensors, wanted)
        total = weighted_sum([g for g in inner if g is not None], 11)
    if total is None:
        return
    for i, gradient in zip(wanted, outer.gradient(total, [tensors[i] for i in wanted])):
        expected = numeric(projected, arrays, i, step)
        got = np.zeros_like(arrays[i]) if gradient is None else np.asarray(gradient)
        np.testing.assert_allclose(got, expected, 10 * tolerance, 10 * tolerance)


def test_string_add():
    left, right = np.array([b"a", b"bc"], object), np.array(b"x", object)
    (output,) = run(OPS["string_add"], [left, right], {})
    assert list(output._array) == list(REFERENCES["string_add"](left, right)) == [b"ax", b"bcx"]


def test_stop_gradient_stops():
    x = EagerTensor(np.float64(3.0))
    with GradientTape() as tape:
        tape.watch(x)
        y = apply(OPS["stop_gradient"], [x])
        total = y * x
    assert float(tape.gradient(total, x)) == 3.0


def test_samples_are_samples():
    assert all(isinstance(s, Sample) for row in ROWS for s in row.samples or ())
