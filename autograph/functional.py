"""Loops over the rows of tensors as functions: `map_fn`, `scan`, `foldl`, `foldr`; and `group` and its kin.

They run Python functions on Python values and eager tensors, and are staged on symbolic ones, by the operators that
converted code calls: a loop here is the loop that `while` would be, with its state in closure cells. The functions they
take are converted, as TensorFlow does, when a function is being traced.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from autograph.operators.calls import converted_argument
from autograph.operators.frame import Frame
from autograph.operators.loops import while_stmt
from runtime import composites, dtypes, nest
from runtime.context import ctx
from runtime.dtypes import DType
from runtime.extension_types.values import batch_encoder
from runtime.graph.builder import trace_region
from runtime.ops.arrays.creation import range as range_op
from runtime.ops.arrays.creation import zeros
from runtime.ops.arrays.joining import concat, stack
from runtime.ops.arrays.shape_ops import shape
from runtime.ops.convert import convert_to_tensor, is_tensor_like
from runtime.ops.elementwise.elementary import cast
from runtime.ragged.api import RaggedTensor, RaggedTensorSpec, ragged_stack
from runtime.shapes import is_static
from runtime.sparse import SparseTensor, sparse_row
from runtime.spec import TensorSpec
from runtime.tensor import Tensor
from runtime.tensor_array import TensorArray
from runtime.types import TensorType

# --- over the rows of tensors --------------------------------------------------------------------------------------


def _rows(elems: Any) -> tuple[list[Any], Any]:
    """The tensors and sparse tensors to go along, and the number of rows: an int where it is known."""
    leaves = [e if isinstance(e, SparseTensor) else convert_to_tensor(e) for e in composites.flatten(elems)]
    if not leaves:
        raise ValueError("elems must hold at least one tensor")
    for leaf in leaves:
        if leaf.shape.rank == 0:
            raise ValueError("Elements of elems must have rank 1 or more, got a scalar.")
    known = [leaf.shape[0] for leaf in leaves if leaf.shape.rank is not None]
    count = next((n for n in known if n is not None), None)
    if count is not None:
        return leaves, count
    first = leaves[0]
    return leaves, (cast(first.dense_shape, dtypes.int32) if isinstance(first, SparseTensor) else shape(first))[0]


def _row(elems: Any, leaves: list[Any], i: Any) -> Any:
    rows = [sparse_row(leaf, i) if isinstance(leaf, SparseTensor) else leaf[i] for leaf in leaves]
    return composites.pack_sequence_as(elems, rows)


def _row_types(leaves: list[Any]) -> list[TensorType]:
    """The types of the tensors that a row consists of."""
    found = []
    for leaf in leaves:
        if isinstance(leaf, SparseTensor):
            rank = None if leaf.shape.rank is None else leaf.shape.rank - 1
            shapes = [(None, rank), (None,), (rank,)]
            found += [TensorType(part.dtype, s) for part, s in zip(nest.flatten(leaf), shapes)]
        else:
            found.append(TensorType(leaf.dtype, None if leaf._shape is None else leaf._shape[1:]))
    return found


def _result_types(fn: Callable[..., Any], elems: Any, tensors: list[Tensor], signature: Any) -> tuple[Any, list]:
    """Structure and types (dtypes, or specs) of the results, from the signature or by a trace that is thrown away.

    Outside of traced functions too, where there is no row to call the function with.
    """
    if signature is not None:
        leaves = composites.flatten(signature)
        return signature, [s.dtype if isinstance(s, TensorSpec) else s for s in leaves]  # RaggedTensorSpec: as it is
    found: list[Any] = []

    def probe(*row: Any) -> list[Tensor]:
        result = converted_argument(fn)(nest.pack_sequence_as(elems, list(row)))
        found.append(result)
        return [convert_to_tensor(v) for v in nest.flatten(result)]

    frame = None if ctx.builder is None else Frame.of(fn)  # what the function changes, it changes for the rows alone
    try:
        with contextlib.nullcontext() if frame is None else frame.tracing():
            region = trace_region("map_fn", probe, _row_types(tensors))
    finally:
        if frame is not None:
            frame.restore()
    return found[0], [TensorSpec(v.type.shape, v.type.dtype) for v in region.outputs]  # type: ignore[union-attr]


def _array(kind: Any, count: Any) -> Any:
    """Where the results of `count` rows go. Memory for elements of a known shape is there from the start: a loop whose
    state is complete before it is traced once."""
    if isinstance(kind, RaggedTensorSpec):
        return _RaggedRows.of(kind)
    if not isinstance(kind, TensorSpec):
        return TensorArray(kind, size=count, dynamic_size=False)
    array = TensorArray(kind.dtype, size=count, dynamic_size=False)
    return array.allocated(kind.shape) if is_static(kind._shape) else array


def map_fn(
    fn: Callable[..., Any], elems: Any, dtype: Any = None, parallel_iterations: int | None = None,
    back_prop: bool = True, swap_memory: bool = False, infer_shape: bool = True, name: str | None = None,
    fn_output_signature: Any = None,
) -> Any:  # fmt: skip
    """Calls `fn` with each row of `elems` (a tensor, or a structure of tensors), and stacks the results.

    fn_output_signature: dtypes or TensorSpecs of what `fn` returns; by default those of its results. With a
        RaggedTensorSpec, lengths may differ from row to row, and the result is ragged.
    Raises ValueError for scalars.
    """
    signature = fn_output_signature if fn_output_signature is not None else dtype
    if isinstance(elems, RaggedTensor):
        return _map_ragged(fn, elems, signature)
    if any(map(batch_encoder, [*composites.flatten(elems), *composites.flatten(signature)])):
        return _map_encoded(fn, elems, signature)
    function = converted_argument(fn)
    tensors, count = _rows(elems)
    if ctx.builder is None and int(count) > 0:
        results = [function(_row(elems, tensors, i)) for i in range(int(count))]
        return _stacked(results, fn_output_signature or dtype)
    structure, kinds = _result_types(fn, elems, tensors, fn_output_signature or dtype)
    arrays = tuple([_array(kind, count) for kind in kinds])
    total = convert_to_tensor(count)
    i: Any = convert_to_tensor(0)

    def loop_test() -> Any:
        return i < total

    def loop_body() -> None:
        nonlocal arrays, i
        parts = nest.flatten(function(_row(elems, tensors, i)))
        arrays = tuple([array.write(i, part) for array, part in zip(arrays, parts)])
        i = i + 1

    while_stmt(loop_test, loop_body, ("arrays", "i"))
    return composites.pack_sequence_as(structure, [array.stack() for array in arrays])


def _map_encoded(fn: Callable[..., Any], elems: Any, signature: Any) -> Any:
    """`fn` of each row of extension types, which are mapped as the tensors that stand for them."""
    results: Any = None

    def encoded(value: Any, rank: int = 0) -> Any:
        encoder = batch_encoder(value)
        return value if encoder is None else tuple(encoder.encode(value._type_spec, value, rank))

    def encoding(kind: Any) -> Any:
        encoder = batch_encoder(kind)
        return kind if encoder is None else tuple(encoder.encoding_specs(kind))

    def decoded(like: Any, made: Any, spec: Callable[[Any, Any], Any]) -> Any:
        encoder = batch_encoder(like)
        return made if encoder is None else encoder.decode(spec(encoder, like._type_spec), made)

    def function(row: tuple) -> tuple:
        nonlocal results
        given = [decoded(like, part, lambda encoder, spec: encoder.unbatch(spec)) for like, part in zip(leaves, row)]
        results = converted_argument(fn)(composites.pack_sequence_as(elems, given))
        return tuple(map(encoded, composites.flatten(results)))

    leaves = composites.flatten(elems)
    rows = tuple([encoded(leaf, 1) for leaf in leaves])
    kinds = None
    if signature is not None:
        kinds = tuple(map(encoding, composites.flatten(signature)))
    stacked = map_fn(function, rows, fn_output_signature=kinds)
    count = composites.flatten(rows)[0].shape[0]
    found = [
        decoded(like, made, lambda encoder, spec: encoder.batch(spec, count))
        for like, made in zip(composites.flatten(results), stacked)
    ]
    return composites.pack_sequence_as(results, found)


def _stacked(results: list[Any], signature: Any) -> Any:
    """The results of all rows as the rows of one; those of which the signature says so of a ragged tensor."""
    parts = [list(p) for p in zip(*map(composites.flatten, results))]
    specs = [None] * len(parts) if signature is None else composites.flatten(signature)
    return composites.pack_sequence_as(results[0], [_joined(p, s) for p, s in zip(parts, specs)])


def _joined(rows: list[Any], spec: Any) -> Any:
    if isinstance(rows[0], RaggedTensor) or (isinstance(spec, RaggedTensorSpec) and spec.ragged_rank):
        return ragged_stack(rows)
    if isinstance(spec, RaggedTensorSpec):
        lengths = [shape(row, dtypes.int64)[0] for row in rows]
        return RaggedTensor.from_row_lengths(concat(rows, 0), stack(lengths), validate=False)
    return stack(rows)


class _RaggedRows:
    """The rows of a ragged tensor while a staged loop makes them: their values one after another, and their lengths."""

    def __init__(self, values: Tensor, lengths: TensorArray) -> None:
        self.values, self.lengths = values, lengths

    @classmethod
    def of(cls, spec: RaggedTensorSpec) -> _RaggedRows:
        inner = None if spec.shape.rank is None else spec.shape.as_list()[1:]
        if spec.ragged_rank or inner is None or None in inner:
            raise ValueError(
                f"in a traced function, map_fn can only return a ragged tensor of tensors that are known in all "
                f"dimensions but the first, got fn_output_signature {spec}"
            )
        return cls(zeros([0, *inner], spec.dtype), TensorArray(dtypes.int64, size=0, dynamic_size=True))

    def __tf_flatten__(self) -> tuple[Any, tuple]:
        return (), (self.values, self.lengths)

    @classmethod
    def __tf_unflatten__(cls, metadata: Any, components: Sequence[Any]) -> _RaggedRows:
        return cls(*components)

    def write(self, index: Any, row: Tensor) -> _RaggedRows:
        lengths = self.lengths.write(index, shape(row, dtypes.int64)[0])
        return _RaggedRows(concat([self.values, row], 0), lengths)

    def stack(self) -> Any:
        return RaggedTensor.from_row_lengths(self.values, self.lengths.stack(), validate=False)


def _map_ragged(fn: Callable[..., Any], elems: RaggedTensor, signature: Any) -> Any:
    """`fn` of each row of a ragged tensor, outside of traced functions. The results are rows of a ragged tensor, unless
    they are scalars or `signature` (a dtype or TensorSpec) says that they all have one shape."""
    results = [fn(row) for row in elems]
    if not results:
        raise ValueError("map_fn needs at least one row: without rows, the shape of the result is unknown")
    if isinstance(signature, (DType, TensorSpec)):
        return stack(results)
    return nest.map_structure(lambda *parts: ragged_stack(list(parts)), *results)


def vectorized_map(fn: Callable[..., Any], elems: Any, fallback_to_while_loop: bool = True, warn: bool = True) -> Any:
    """Calls `fn` with each row, and stacks the results. Like `map_fn`, it runs as a native loop."""
    return map_fn(fn, elems)


def pfor(loop_fn: Callable[[Any], Any], iters: Any, **options: Any) -> Any:
    """Stacks what `loop_fn` gives for each of the numbers from 0 to `iters` - 1."""
    return vectorized_map(loop_fn, range_op(convert_to_tensor(iters)))


def scan(
    fn: Callable[..., Any], elems: Any, initializer: Any = None, parallel_iterations: int = 10, back_prop: bool = True,
    swap_memory: bool = False, infer_shape: bool = True, reverse: bool = False, name: str | None = None,
) -> Any:  # fmt: skip
    """Computes `acc = fn(acc, row)` for each row in turn, and stacks all accumulators.

    Without an initializer the first row is the first accumulator. reverse: from the last row to the first.
    """
    function = converted_argument(fn)
    tensors, count = _rows(elems)
    total = convert_to_tensor(count)
    last = total - 1
    has_start = initializer is not None
    acc: Any = nest.map_structure(convert_to_tensor, initializer) if has_start else _row(
        elems, tensors, last if reverse else 0
    )  # fmt: skip
    structure = acc
    arrays = tuple([TensorArray(t.dtype, size=count, dynamic_size=False) for t in nest.flatten(acc)])
    if not has_start:
        arrays = tuple([a.write(last if reverse else 0, t) for a, t in zip(arrays, nest.flatten(acc))])
    i: Any = convert_to_tensor(0 if has_start else 1)

    def loop_test() -> Any:
        return i < total

    def loop_body() -> None:
        nonlocal arrays, acc, i
        at = last - i if reverse else i
        result = function(acc, _row(elems, tensors, at))
        acc = nest.pack_sequence_as(structure, [convert_to_tensor(v) for v in nest.flatten(result)])
        arrays = tuple([array.write(at, part) for array, part in zip(arrays, nest.flatten(acc))])
        i = i + 1

    while_stmt(loop_test, loop_body, ("arrays", "acc", "i"))
    return nest.pack_sequence_as(structure, [array.stack() for array in arrays])


def _fold(fn: Callable[..., Any], elems: Any, initializer: Any, reverse: bool) -> Any:
    function = converted_argument(fn)
    tensors, count = _rows(elems)
    total = convert_to_tensor(count)
    last = total - 1
    if initializer is None:
        acc, i = _row(elems, tensors, last if reverse else 0), convert_to_tensor(1)
    else:
        acc, i = nest.map_structure(convert_to_tensor, initializer), convert_to_tensor(0)
    structure = acc

    def loop_test() -> Any:
        return i < total

    def loop_body() -> None:
        nonlocal acc, i
        result = function(acc, _row(elems, tensors, last - i if reverse else i))
        acc = nest.pack_sequence_as(structure, [convert_to_tensor(v) for v in nest.flatten(result)])
        i = i + 1

    while_stmt(loop_test, loop_body, ("acc", "i"))
    return acc


def foldl(
    fn: Callable[..., Any], elems: Any, initializer: Any = None, parallel_iterations: int = 10, back_prop: bool = True,
    swap_memory: bool = False, name: str | None = None,
) -> Any:  # fmt: skip
    """The last accumulator: computes `acc = fn(acc, row)` for each row in turn.

    Without an initializer the first row is the first accumulator.
    """
    return _fold(fn, elems, initializer, False)


def foldr(
    fn: Callable[..., Any], elems: Any, initializer: Any = None, parallel_iterations: int = 10, back_prop: bool = True,
    swap_memory: bool = False, name: str | None = None,
) -> Any:  # fmt: skip
    """`foldl` from the last row to the first."""
    return _fold(fn, elems, initializer, True)


# --- order ---------------------------------------------------------------------------------------------------------


def group(*inputs: Any, **kwargs: Any) -> None:
    """Does nothing, because effects run in program order anyway; for programs written for TensorFlow."""
    if kwargs.keys() - {"name"}:
        raise ValueError(f"Unknown keyword arguments: {', '.join(sorted(kwargs))}")


def no_op(name: str | None = None) -> None:
    """Does nothing; for programs written for TensorFlow."""


@contextlib.contextmanager
def control_dependencies(control_inputs: Any) -> Iterator[None]:
    """A block whose operations run after `control_inputs`. All effects keep program order anyway."""
    if isinstance(control_inputs, Iterator):  # what a generator does to give them happens here
        control_inputs = list(control_inputs)
    for value in nest.flatten(control_inputs) if control_inputs is not None else ():
        if value is not None and not is_tensor_like(value) and callable(value):
            value()
    yield
