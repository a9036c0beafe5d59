"""Every row of the op table, compiled against interpreted: all samples of a row and dtype in one kernel.

The lists below are the whole truth about what stays on the interpreter; a row that gets a lowering must leave them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import autograph  # noqa: F401  all rows of the table
from runtime import dtypes
from runtime.codegen.lower.lower_graph import EMITTERS, is_native
from runtime.graph.builder import Builder
from runtime.graph.interpreter import interpret
from runtime.graph.ir import Graph
from runtime.ops.dispatch import apply
from runtime.ops.table import OPS, OpDef, Sample
from runtime.types import TensorType
from tests.codegen.compare import check
from tests.full import FULL
from tests.ops.library import FAMILIES

NOT_NATIVE = {
    # effects of the outside world
    "print", "host_call", "py_function", "read_file", "write_file", "matching_files",
    # what replicas do together
    "all_reduce", "all_reduce_again", "all_gather", "all_gather_again", "all_gather_own_part", "broadcast",
    "broadcast_again", "all_reduce_start", "all_reduce_start_again", "all_reduce_wait",
    # answers of a tape
    "py_function_gradient",
    # calls put off until their operands have values
    "late", "late_effect",
    # running logarithms of sums of exponentials
    "cumulative_logsumexp",
    # strings, and sets in sparse tensors
    "string_add", "string_format", "string_ngrams", "unicode_transcode", "unsorted_segment_join", "set_operation",
    "edit_distance", "sparse_cross",
    # messages, and tables of text
    "example_features", "parse_tensor", "serialize_tensor", "csv_columns",
    # files of sound and images
    "decode_wav", "encode_wav", "decode_image", "encode_image",
    # tables of Python
    "find_constant", "table_find", "table_insert", "table_remove", "table_size", "table_export",
    # searches whose steps depend on values
    "ctc_beam_search", "distorted_box", "candidates",
    # results whose shape depends on values
    "fill",
    # taken apart before execution: runtime/graph/passes/rewrites/custom_gradients.py
    "custom_gradient",
}  # fmt: skip

DTYPES = [dtypes.float32, dtypes.int32, dtypes.bool_, dtypes.uint8, dtypes.float64]


# Rows whose kernel is a call of a library; those with a scalar text are native all the same.
LIBRARY = {op.name for op in OPS.values() if op.infer.__module__.rpartition(".")[2] in FAMILIES}
LIBRARY |= {op.name for op in OPS.values() if op.infer.__module__.endswith(".rules") and not op.is_elementwise}


def test_the_list_of_rows_without_native_form_is_exact() -> None:
    missing = {name for name, op in OPS.items() if not op.is_elementwise and name not in EMITTERS}
    new = missing - LIBRARY - NOT_NATIVE
    assert not new, (
        "give these a lowering in runtime/codegen/op_lowerings (lower/lower_graph.py imports its files), or a line of "
        f"NOT_NATIVE here: {new}"
    )
    native = NOT_NATIVE & OPS.keys() - missing
    assert not native, f"these can be compiled now, so delete them from NOT_NATIVE: {native}"


def cases() -> list[Any]:
    found = []
    for name, op in OPS.items():
        if not op.samples or (not op.is_elementwise and name not in EMITTERS):
            continue
        usable = [d for d in DTYPES if d.np.kind in op.kinds]
        # float64 only where the row takes nothing but floats: what is true of float32 mostly is of float64.
        chosen = [d for d in usable if d is not dtypes.float64 or usable[0] is d or len(usable) == 2][:3]
        found += [pytest.param(op, dtype, id=f"{name}-{dtype.name}") for dtype in chosen]
    return found


def operands(sample: Sample, dtype: Any, random: Any) -> list[Any]:
    arrays = []
    for index, shape in enumerate(sample.shapes):
        if index in sample.fixed:
            array = np.asarray(sample.fixed[index])
        elif dtype.is_bool:
            array = random.random(shape) > 0.5
        elif dtype.is_integer:
            low = max(int(np.ceil(sample.low)), 0 if dtype.is_unsigned else -100)
            array = random.integers(low, max(int(sample.high), low) + 1, shape).astype(dtype.np)
        else:
            array = random.uniform(sample.low, sample.high, shape).astype(dtype.np)
        is_text = np.asarray(array).dtype == object  # a string of its own would have no dtype
        arrays.append(array if np.ndim(array) or is_text else np.asarray(array)[()])
    return arrays


def traced(op: OpDef, attrs: dict, arrays: list[Any], unknown: bool) -> Graph | None:
    """The graph of one call; None where the row refuses it."""
    builder = Builder(op.name)
    inputs = []
    for array in arrays:
        shape = tuple(None if unknown else d for d in np.shape(array))
        inputs.append(builder.add_input(TensorType(dtypes.as_dtype(array.dtype), shape)))
    with builder:
        try:
            results = apply(op, [builder.tensor(v) for v in inputs], attrs)
        except (TypeError, ValueError):
            return None
        results = results if isinstance(results, tuple) else (results,)
        builder.graph.outputs = [builder.use(r) for r in results]
    return builder.graph


def chosen_samples(op: OpDef, dtype: Any) -> list[tuple[Sample, bool]]:
    """Samples, and whether their dimensions are unknown while tracing. Compiling takes its time, so the usual run has
    all samples with known dimensions for the first dtype and a few for the rest; AUTOGRAPH_FULL_TESTS=1 has all."""
    samples = list(op.samples or ())
    everything = [(s, unknown) for s in samples for unknown in (False, True)]
    if FULL:
        return everything
    arrays = [s for s in samples if any(s.shapes)] or samples
    first = next(d for d in DTYPES if d.np.kind in op.kinds)
    if dtype is first:
        return [(s, False) for s in samples[:12]] + [(s, True) for s in arrays[-2:]]
    return [(s, index == 1) for index, s in enumerate(arrays[:2])]


@pytest.mark.parametrize(("op", "dtype"), cases())
def test_row(op: OpDef, dtype: Any) -> None:
    random = np.random.default_rng(7)
    whole = Builder(op.name)
    everything: list[Any] = []
    for sample, unknown in chosen_samples(op, dtype):
        arrays = operands(sample, dtype, random)
        graph = traced(op, sample.attrs, arrays, unknown)
        if graph is None or not all(map(is_native, graph.nodes)):
            continue
        inputs = [*arrays, *[None] * (len(graph.inputs) - len(arrays))]
        try:
            with np.errstate(all="ignore"):
                interpret(graph, inputs)
        except Exception:
            # An error ends a kernel, so it gets one of its own.
            check(graph, *inputs)
            continue
        if len(graph.inputs) > len(arrays):
            check(graph, *inputs)
            continue
        own = [whole.add_input(v.type) for v in graph.inputs]
        with whole:
            whole.graph.outputs += whole.inline(graph, own)
        everything += inputs
    if whole.graph.outputs:
        check(whole.graph, *everything)
