"""Rows that don't work element by element, and the operands that they are tried on.

The operands come from the samples of a row: the same shapes, with elements that are views which aren't contiguous, with
each dimension in turn of length 0, and with NaN, infinities, zeros with a sign and the ends of the dtype.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import runtime.ops.api  # noqa: F401 - registers the rows
import runtime.ops.growable  # noqa: F401
import runtime.ops.stack  # noqa: F401
from runtime import dtypes
from runtime.dtypes import DType
from runtime.ops.table import OPS, OpDef, Sample
from tests.ops import pointwise
from tests.ops.references import REFERENCES as OTHERS

EFFECTS = "an effect: tests/ops/test_effects.py"
RANDOM = "draws numbers: tests/ops/test_random.py"
STACKS = "a value of backward graphs, not an array: tests/codegen/test_table.py and tests/autodiff"
STRINGS = "has no samples, takes strings: tests/ops/test_more_functions.py"
# Rows that aren't looked at here, with the reason.
ELSEWHERE = {
    **pointwise.ELSEWHERE,
    **dict.fromkeys(("assert", "raise", "print", "host_call", "py_function", "late_effect"), EFFECTS),
    **dict.fromkeys((name for name, op in OPS.items() if op.is_collective), "of several replicas: tests/distribute"),
    **dict.fromkeys((name for name in OPS if name.startswith(("random_", "philox_"))), RANDOM),
    **dict.fromkeys((name for name in OPS if name.startswith("stack_")), STACKS),
    **dict.fromkeys(("string_format", "unsorted_segment_join", "string_ngrams", "unicode_transcode"), STRINGS),
    "unicode_script": "takes code points: tests/ops/test_more_functions.py",
    **dict.fromkeys(("set_operation", "edit_distance"), "of sparse tensors: tests/ops/test_more_functions.py"),
    **dict.fromkeys((name for name in OPS if name.startswith("table_")), "effects: tests/ops/test_lookup.py"),
    **dict.fromkeys(("read_file", "write_file", "matching_files"), "effects: tests/ops/test_files.py"),
    **dict.fromkeys(("decode_wav", "encode_wav"), "takes files: tests/ops/test_files.py"),
    **dict.fromkeys(("serialize_tensor", "parse_tensor"), "takes messages: tests/ops/test_messages.py"),
    "example_features": "takes messages: tests/data/test_examples.py",
    "csv_columns": "takes records: tests/data/test_csv.py",
    **dict.fromkeys(("decode_image", "encode_image"), "takes files: tests/ops/test_files.py"),
    "candidates": "draws: tests/ops/test_sampled_losses.py",
    "distorted_box": "draws: tests/ops/test_images.py",
    "find_constant": "takes keys that don't repeat: tests/ops/test_lookup.py",
    **dict.fromkeys(("sparse_cross", "ctc_beam_search"), "of sparse tensors: tests/ops/test_function_values.py"),
    **dict.fromkeys(("constant", "cond", "while", "assign", "commit"), "structure of graphs: tests/graph"),
    **dict.fromkeys(("letrec", "call"), "structure of graphs: tests/function/test_recursion.py"),
    "custom_gradient": "a region of its own: tests/autodiff",
    "py_function_gradient": "asks a tape: tests/autodiff/test_python_calls.py",
    "late": "calls other rows: tests/ops/test_deferred_calls.py",
    "stop_gradient": "identity, with another gradient: test_table.py",
    "unrecorded": "identity, with another gradient: test_staged_tapes.py",
    "string_hash": "any value will do: test_table.py has its properties",
}  # fmt: skip


def rows() -> list[OpDef]:
    elementwise = {row.name for row in pointwise.rows()}
    return [row for row in OPS.values() if row.name not in elementwise and row.name not in ELSEWHERE]


def drawn(dtype: DType, sample: Sample, shape: tuple[int, ...], random: np.random.Generator) -> np.ndarray:
    """Elements in the range of a sample."""
    if dtype.kind == "O":
        words = random.integers(97, 123, (*shape, 2))
        found = np.empty(shape, object)
        for place in np.ndindex(*shape):
            found[place] = bytes(words[place].tolist())
        return found
    if dtype.is_bool:
        return np.asarray(random.random(shape) > 0.5)
    values = random.uniform(sample.low, sample.high, shape)
    if dtype.kind in "iu":
        values = np.round(np.abs(values) if dtype.kind == "u" else values)
    if dtype.kind == "c":
        values = values + 1j * random.uniform(-0.8, 0.8, shape)
    return np.asarray(values).astype(dtype.np)


def plain(sample: Sample, dtype: DType) -> list[np.ndarray]:
    random = np.random.default_rng(11)
    found = []
    for i, shape in enumerate(sample.shapes):
        fixed = sample.fixed.get(i)
        if fixed is not None and len(sample.fixed) < len(sample.shapes) and np.asarray(fixed).dtype.kind == "f":
            fixed = np.abs(fixed).astype(dtype.np) if dtype.kind == "u" else np.asarray(fixed).astype(dtype.np)
        found.append(drawn(dtype, sample, shape, random) if fixed is None else np.asarray(fixed))
    return found


def same_in_other_memory(array: np.ndarray, how: str) -> np.ndarray:
    """The same elements, not one after the other in memory."""
    if not array.ndim:
        return array
    if how == "transposed":
        return np.ascontiguousarray(array.T).T
    if how == "reversed":
        back = tuple(slice(None, None, -1) for _ in array.shape)
        return np.ascontiguousarray(array[back])[back]
    wide = np.zeros((*array.shape, 2), array.dtype)
    wide[..., 1] = array
    return wide[..., 1]


def spread(array: np.ndarray) -> np.ndarray:
    """Rows that are one row in memory."""
    return np.broadcast_to(array[:1], array.shape) if array.ndim and len(array) else array


def with_awkward(sample: Sample, dtype: DType, shape: tuple[int, ...], ends: bool) -> np.ndarray:
    """Elements of a range, with awkward ones among them."""
    random = np.random.default_rng(13)
    values = drawn(dtype, sample, shape, random)
    if not values.size or dtype.kind == "O":
        return values
    edges = pointwise.awkward(dtype)
    if dtype.kind == "f" and not ends:
        edges = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0]).astype(dtype.np)
    flat = values.reshape(-1)
    places = random.random(flat.shape) < 0.5
    flat[places] = random.permutation(np.resize(edges, flat.shape))[places]
    return flat.reshape(shape)


def emptied(sample: Sample, arrays: list[np.ndarray]) -> Iterator[tuple[str, list[np.ndarray]]]:
    """Each dimension in turn of length 0: alone, and with all dimensions of that length."""
    for i, array in enumerate(arrays):
        for axis, length in enumerate(array.shape):
            if length:
                cut = [*arrays]
                cut[i] = array[(slice(None),) * axis + (slice(0),)]
                yield f"operand {i} without axis {axis}", cut
                begin = [a[:0] if a.ndim and len(a) == length else a for a in arrays]
                yield f"no rows of {length}", begin
                every = [a[(*(slice(0 if d == length else None) for d in a.shape), ...)] for a in arrays]
                if [a.shape for a in every] != [a.shape for a in cut]:
                    yield f"no dimensions of {length}", every


# What these give for the largest numbers depends on the order in which they add.
ADDING = {
    "reduce_sum", "reduce_prod", "reduce_mean", "cumsum", "cumprod", "matmul", "einsum", "sum_to_shape_of", "fftn",
    "ifftn", "rfftn", "irfftn", "dct", "index_add", "gather_grad", "scatter_nd", "tensor_scatter_nd_add", "slice_add",
    "take_along_grad", "unsorted_segment_sum", "unsorted_segment_prod", "patches_grad", "max_pool_grad", "row_add",
    "row_grad", "cumulative_logsumexp", "slice_grad", "adjust_contrast", "convolution", "convolution_input_grad",
    "convolution_filters_grad", "depthwise_convolution", "depthwise_input_grad", "depthwise_filters_grad",
}  # fmt: skip
# Rows that take only some operands: no other elements are tried on them than those of their samples.
MATRICES = (
    "matrix_determinant", "log_matrix_determinant", "matrix_inverse", "matrix_solve", "matrix_triangular_solve",
    "cholesky", "pinv", "qr", "svd", "self_adjoint_eig", "matrix_exponential", "matrix_square_root",
    "matrix_logarithm", "sylvester", "eig", "lu", "tridiagonal_solve", "matrix_cofactors", "change_of_cofactors",
)  # fmt: skip
ONLY_ORDINARY = {
    **dict.fromkeys(MATRICES, "what LAPACK makes of a matrix with NaN isn't said"),
    "check_numerics": "raises for them", "repeated_positions": "takes counts", "searchsorted": "takes sorted sequences",
    "range": "its numbers are counted", "unicode_encode": "takes code points", "fill": "takes dimensions",
}  # fmt: skip


ORDINARY = ("contiguous", "transposed", "strided", "reversed")


def operands(row: OpDef, sample: Sample, dtype: DType) -> Iterator[tuple[str, list[np.ndarray]]]:
    """Names of cases, and the operands. The first is the sample as it is."""
    arrays = plain(sample, dtype)
    yield "contiguous", arrays
    if not any(a.ndim for a in arrays):
        return
    for how in ORDINARY[1:]:
        yield how, [same_in_other_memory(a, how) for a in arrays]
    if row.name not in MATRICES:  # most of which must have an inverse
        yield "spread", [a if i in sample.fixed else spread(a) for i, a in enumerate(arrays)]
    yield from emptied(sample, arrays)
    if row.name in ONLY_ORDINARY:
        return
    for ends in (False, True)[: 1 if row.name in ADDING and dtype.kind == "f" else 2]:
        chosen = [a if i in sample.fixed else with_awkward(sample, dtype, a.shape, ends) for i, a in enumerate(arrays)]
        yield "awkward", chosen
        yield "awkward, reversed", [same_in_other_memory(a, "reversed") for a in chosen]


def extreme(function: Callable[..., Any], sign: float) -> Callable[..., Any]:
    """Where the extreme stands; NaN is never one, as in TensorFlow."""

    def reference(x: Any, axis: int, output_type: Any) -> Any:
        return function(np.where(np.isnan(x), -sign * np.inf, x) if x.dtype.kind == "f" else x, axis=axis)

    return reference


def argsort(x: Any, axis: int, descending: bool) -> Any:
    """Stable; NaN is the largest, as in NumPy."""
    if not descending:
        return np.argsort(x, axis, kind="stable")
    return x.shape[axis] - 1 - np.flip(np.argsort(np.flip(x, axis), axis, kind="stable"), axis)


def top_few(x: Any, k: int) -> Any:
    places = argsort(x, x.ndim - 1, True)[..., :k]
    return np.take_along_axis(x, places, -1), places


def nothing(x: Any) -> Any:
    return np.full(np.shape(x), b"" if x.dtype == object else 0, x.dtype)


def written(buffer: Any, index: Any, value: Any, size: Any, **attrs: Any) -> Any:
    longer = [nothing(value)] * (int(index) + 1 - len(buffer))
    return np.stack([value if i == index else row for i, row in enumerate([*buffer, *longer])])


def in_existing_row(x: Any, index: Any, dy: Any) -> Any:
    return written(nothing(x), index, dy, None) if index < len(x) else nothing(x)


# In place of those of references.py, where these are of ordinary numbers, or where there is none.
REFERENCES = {
    **OTHERS,
    "argmax": extreme(np.argmax, 1), "argmin": extreme(np.argmin, -1), "argsort": argsort,
    "top_few": top_few, "array_write": written,
    "resize_rows": lambda x, size, **attrs: np.stack([x[i] if i < len(x) else nothing(x[:1])[0] for i in range(size)])
    if len(x) else np.full((int(size), *x.shape[1:]), b"" if x.dtype == object else 0, x.dtype),
    "row": lambda x, i, size=None: x[int(i), ...] if i < len(x) else nothing(np.empty(x.shape[1:], x.dtype)),
    "row_grad": in_existing_row,
    "row_add": lambda x, i, dy: x + in_existing_row(x, i, dy),
}  # fmt: skip
# Rows of which the references take ordinary matrices and numbers only: on empty and awkward operands they are compared
# with themselves, on copies that lie one after the other in memory.
BY_THEMSELVES = {
    *MATRICES, "einsum", "irfftn", "rfftn", "dct", "gather_nd", "tensor_scatter_nd_max", "tensor_scatter_nd_min",
    "unique", "patches_grad", "max_pool_grad", "adjust_contrast", "decode_raw", "unicode_encode", "boolean_mask",
    "string_parts", "reduce_join", "convolution_input_grad", "convolution_filters_grad",
    "depthwise_input_grad", "depthwise_filters_grad",
}  # fmt: skip


def reference(row: OpDef) -> Callable[..., Any]:
    """Of a row; fails if it has none."""
    parameters = [*pointwise.operand_names(row), *(row.samples[0].attrs if row.samples else ())]
    return pointwise.reference_in(REFERENCES, row, parameters, "in NumPy", "tests/ops/references.py")


def expected(row: OpDef, case: str, arrays: list[np.ndarray], attrs: dict[str, Any]) -> list[np.ndarray]:
    """What the row should give, in arrays of their own memory."""
    arrays = [np.array(a, order="C") for a in arrays]
    narrow = row.widens and any(a.dtype in dtypes.NARROW for a in arrays)
    if narrow:  # what is computed in float32
        arrays = [a.astype(np.float32) if a.dtype in dtypes.NARROW else a for a in arrays]
    with np.errstate(all="ignore"):
        if row.name in BY_THEMSELVES and case not in ORDINARY:
            found = row.kernel(*arrays, **attrs)
        else:
            found = reference(row)(*arrays, **attrs)
    return [np.asarray(part) for part in (found if isinstance(found, tuple) else (found,))]
