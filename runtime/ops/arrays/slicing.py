"""Basic indexing: `strided_slice`, its adjoint `slice_grad`, and `slice_add`, which accumulates into a slice.

    spec ::= tuple of items, one per dimension of the operand, with `newaxis` items in between:
             ('index', i)  ('slice', start, stop, step)  ('newaxis',)  ('ellipsis',)
    i, start, stop, step ::= int | None (slices only) | '?': the next of the scalar int inputs that follow

An ellipsis, and the dimensions after the last item, are written out as full slices when the rank is known.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from runtime import dtypes, errors
from runtime.context import ctx, placing
from runtime.ops.convert import convert_to_tensor, fill_holes, is_tensor_like, scalar_int
from runtime.ops.deferred_calls import deferrable
from runtime.ops.dispatch import apply, call
from runtime.ops.rules import dims, shape_attr
from runtime.ops.table import OpDef, Sample, register
from runtime.shapes import Shape
from runtime.tensor import EagerTensor, SymbolicTensor, Tensor
from runtime.types import TensorType

Spec = tuple[tuple[Any, ...], ...]
HOLE = "?"
FULL = ("slice", None, None, None)
_BAD_INDEX = (
    "Only integers, slices (`:`), ellipsis (`...`), tf.newaxis (`None`) and scalar tf.int32/tf.int64 tensors are valid "
    "indices, got {!r}"
)


# --- from a Python key to a spec -----------------------------------------------------------------------------------


@deferrable
def getitem(tensor: Any, key: Any) -> Tensor:
    """`tensor[key]`: ints, slices, `...`, `None`, scalar int tensors; int arrays or tensors pick elements, and bool
    ones mask, by NumPy's rules for advanced indexing.

    Raises TypeError for other keys, InvalidArgumentError for an index out of bounds or too many of them.
    """
    if tensor.__class__ is EagerTensor and ctx.builder is None and not ctx.recorders and not placing:
        kind = key.__class__
        if kind is EagerTensor and key.dtype.kind in "iu" and not key._array.shape:
            key, kind = int(key._array), int
        if kind is int or (kind is slice and _is_plain(key)):
            try:
                return EagerTensor(tensor._array[key])
            except (IndexError, ValueError, TypeError, AttributeError):
                pass  # the general way words the error, and makes a tensor of a string
    if not isinstance(key, (tuple, list)):
        special = _array_key(tensor, key)
        if special is not None:
            return special
    elif any(_is_index_array(part) for part in key):
        return _advanced(tensor, key)
    spec, holes = parse_key(key, tensor._shape)
    return apply(STRIDED_SLICE, (tensor, *holes), {"spec": spec})


def _is_plain(key: slice) -> bool:
    return all(part is None or part.__class__ is int for part in (key.start, key.stop, key.step))


def _array_key(tensor: Any, key: Any) -> Tensor | None:
    if isinstance(key, (Tensor, np.ndarray)) or is_tensor_like(key):
        index = convert_to_tensor(key)
        if index.dtype.kind == "b":
            if index._shape == ():  # the tensor itself, along a new axis of length 1 or 0
                tensor, index = call("expand_dims", tensor, axis=(0,)), call("reshape", index, shape=(1,))
            return call("boolean_mask", tensor, index)
        if index._shape != () and index.dtype.kind in "iu":
            return call("gather", tensor, index, axis=0)
    return None


def _is_index_array(part: Any) -> bool:
    if isinstance(part, (Tensor, np.ndarray)) or is_tensor_like(part):
        return part.dtype == dtypes.bool_ or tuple(part.shape) != ()
    return isinstance(part, (list, tuple))


def _advanced(tensor: Tensor, key: Sequence[Any]) -> Tensor:
    """NumPy's advanced indexing: integers and index arrays broadcast, a mask stands for the indices where it is True.

    The slices are taken first, then the elements are gathered. The dimensions of the indices replace the indexed ones
    where those are neighbours, and stand in front otherwise.
    """
    if tensor._shape is None:
        raise TypeError("Indexing by several arrays needs a tensor whose rank is known while tracing.")
    masks = {id(part): convert_to_tensor(part) for part in key if _is_index_array(part)}
    used = sum(_dimensions_used(part, masks) for part in key)
    rest = len(tensor._shape) - used
    if sum(part is Ellipsis for part in key) > 1 or rest < 0:
        raise errors.InvalidArgumentError(
            f"Too many indices, or ellipses: {len(key)} for a tensor of {len(tensor._shape)} dimensions "
            "[Op:StridedSlice]"
        )
    basic: list[Any] = []
    indices: list[Tensor] = []
    at: list[int] = []  # the axes of the sliced tensor that the indices are of
    full = slice(None)
    for part in key if any(part is Ellipsis for part in key) else (*key, Ellipsis):
        if part is Ellipsis:
            basic += [full] * rest
        elif part is None or isinstance(part, slice):
            basic.append(part)
        else:
            for index in _index_arrays(part, masks):
                at.append(len(basic))
                indices.append(index)
                basic.append(full)
    sliced = getitem(tensor, tuple(basic))
    size = [dims(sliced)[axis] for axis in at]
    shared: Any = sum((call("zeros_like", index) for index in indices[1:]), call("zeros_like", indices[0]))
    places = []
    for index, length in zip(indices, size):
        count = (
            convert_to_tensor(length, dtypes.int64)
            if isinstance(length, int)
            else call("cast", convert_to_tensor(length), dtype=dtypes.int64)
        )
        places.append(call("select", index < 0, index + count, index) + shared)
    rank, many = len(sliced._shape or ()), len(shared._shape)
    others = [axis for axis in range(rank) if axis not in at]
    gathered = call("gather_nd", call("transpose", sliced, perm=(*at, *others)), call("stack", *places, axis=many))
    if at[-1] - at[0] + 1 != len(at):
        return gathered
    before = sum(axis < at[0] for axis in others)
    order = (*range(many, many + before), *range(many), *range(many + before, many + len(others)))
    return gathered if order == tuple(range(len(order))) else call("transpose", gathered, perm=order)


def _dimensions_used(part: Any, masks: dict[int, Tensor]) -> int:
    if part is None or part is Ellipsis:
        return 0
    mask = masks.get(id(part))
    return len(mask._shape or ()) if mask is not None and mask.dtype is dtypes.bool_ else 1


def _index_arrays(part: Any, masks: dict[int, Tensor]) -> list[Tensor]:
    """The int64 indices that a part of a key stands for."""
    index = masks.get(id(part))
    if index is None:
        index = convert_to_tensor(part)
    if index.dtype is dtypes.bool_:
        coordinates = call("where_true", index)
        return [coordinates[:, axis] for axis in range(len(index._shape or ()))]
    if not index.dtype.is_integer:
        raise TypeError(_BAD_INDEX.format(part))
    return [call("cast", index, dtype=dtypes.int64)]


def parse_key(key: Any, shape: Shape) -> tuple[Spec, list[Tensor]]:
    """The spec of a Python key, and the tensors for its holes."""
    keys = key if isinstance(key, (tuple, list)) else (key,)
    items: list[tuple[Any, ...]] = []
    holes: list[Tensor] = []

    def part(value: Any) -> Any:
        try:
            known = scalar_int(value)
        except TypeError:
            raise TypeError(_BAD_INDEX.format(value)) from None
        if isinstance(known, int):
            return known
        holes.append(known)
        return HOLE

    for entry in keys:
        if isinstance(entry, slice):
            bounds = [None if p is None else part(p) for p in (entry.start, entry.stop, entry.step)]
            if bounds[2] == 0:
                raise errors.InvalidArgumentError(f"strides[{len(items)}] must be non-zero [Op:StridedSlice]")
            items.append(("slice", *bounds))
        elif entry is None:
            items.append(("newaxis",))
        elif entry is Ellipsis:
            items.append(("ellipsis",))
        else:
            items.append(("index", part(entry)))
    return expand(items, shape), holes


def expand(items: Sequence[tuple[Any, ...]], shape: Shape) -> Spec:
    """Writes out the ellipsis and the trailing dimensions. Raises InvalidArgumentError for too many indices."""
    ellipses = sum(item[0] == "ellipsis" for item in items)
    if ellipses > 1:
        raise errors.InvalidArgumentError("Multiple ellipses in slice spec not allowed [Op:StridedSlice]")
    if shape is None:
        return tuple(items) if ellipses else (*items, ("ellipsis",))
    used = sum(item[0] in ("index", "slice") for item in items)
    if used > len(shape):
        raise errors.InvalidArgumentError(
            "Attempting to slice scalar input. [Op:StridedSlice]"
            if not shape
            else f"Index out of range using input dim {len(shape)}; input has only {len(shape)} dims [Op:StridedSlice]"
        )
    rest = (FULL,) * (len(shape) - used)
    if not ellipses:
        return (*items, *rest)
    at = next(i for i, item in enumerate(items) if item[0] == "ellipsis")
    return (*items[:at], *rest, *items[at + 1 :])


# --- kernels -------------------------------------------------------------------------------------------------------


def _index(spec: Spec, holes: Sequence[Any]) -> tuple[Any, ...]:
    """The NumPy index that the spec and the values of its holes stand for."""
    return _filled(spec, holes) if holes else _static_index(spec)


@functools.lru_cache(maxsize=4096)
def _static_index(spec: Spec) -> tuple[Any, ...]:
    return _filled(spec, ())


def _filled(spec: Spec, holes: Sequence[Any]) -> tuple[Any, ...]:
    values: Iterator[Any] = iter(holes)

    def value(part: Any) -> Any:
        return int(next(values)) if part == HOLE else part

    index: list[Any] = []
    for item in spec:
        if item[0] == "index":
            index.append(value(item[1]))
        elif item[0] == "slice":
            index.append(slice(value(item[1]), value(item[2]), value(item[3])))
        else:
            index.append(None if item[0] == "newaxis" else Ellipsis)
    return tuple(index)


def _static_part(item: tuple[Any, ...]) -> Any:
    return item[1] if item[0] == "index" else slice(*[None if p == HOLE else p for p in item[1:]])


def _check_bounds(shape: Sequence[int | None], spec: Spec, index: Sequence[Any]) -> None:
    dim = 0
    for item, part in zip(spec, index):
        if item[0] == "newaxis":
            continue
        size = shape[dim] if dim < len(shape) else None
        if item[0] == "index" and size is not None and isinstance(part, int) and not -size <= part < size:
            shown = part + size if part < 0 else part
            raise errors.IndexOutOfBoundsError(
                f"slice index {shown} of dimension {dim} out of bounds. [Op:StridedSlice]", "strided_slice"
            ) from None
        if item[0] == "slice" and part.step == 0:
            message = f"strides[{dim}] must be non-zero [Op:StridedSlice]"
            raise errors.InvalidArgumentError(message, "strided_slice") from None
        dim += 1


_AT = (("index", HOLE),)  # x[i], which loops read elements with


def _slice_kernel(x: Any, *holes: Any, spec: Spec) -> Any:
    index = (int(holes[0]),) if spec == _AT else _index(spec, holes)
    try:
        result = x[index]
    except (IndexError, ValueError):
        _check_bounds(x.shape, spec, index)
        raise
    if x.dtype.hasobject and not isinstance(result, np.ndarray):
        scalar = np.empty((), object)
        scalar[()] = result
        return scalar
    return result


def _prepared_slice(spec: Spec) -> Callable[..., Any]:
    """The kernel for one spec, which is read once. Where something is special, `_slice_kernel` says what."""
    if spec == _AT:

        def element(x: Any, place: Any) -> Any:
            try:
                result = x[int(place)]
            except (IndexError, ValueError):
                return _slice_kernel(x, place, spec=spec)
            return _slice_kernel(x, place, spec=spec) if x.dtype.hasobject else result

        return element
    if any(HOLE in item for item in spec):
        return functools.partial(_slice_kernel, spec=spec)
    index = _static_index(spec)

    def part(x: Any) -> Any:
        try:
            result = x[index]
        except (IndexError, ValueError):
            return _slice_kernel(x, spec=spec)
        return _slice_kernel(x, spec=spec) if x.dtype.hasobject else result

    return part


def _grad_kernel(dy: Any, *rest: Any, spec: Spec, shape: tuple[int | None, ...]) -> Any:
    count = shape.count(None)
    result = np.zeros(fill_holes(shape, rest[:count]), dy.dtype)
    result[_index(spec, rest[count:])] = dy
    return result if result.ndim else result[()]


def _add_kernel(acc: Any, dy: Any, *holes: Any, spec: Spec) -> Any:
    result = np.array(acc)
    index = _index(spec, holes)
    _check_bounds(result.shape, spec, index)
    result[index] += dy
    return result if result.ndim else result[()]


# --- type rules ----------------------------------------------------------------------------------------------------


def slice_shape(shape: Shape, spec: Spec) -> Shape:
    """The static shape of a slice."""
    if shape is None or any(item[0] == "ellipsis" for item in spec):
        return None
    result: list[int | None] = []
    dim = 0
    for item in spec:
        if item[0] == "newaxis":
            result.append(1)
            continue
        size = shape[dim]
        if item[0] == "slice":
            parts = item[1:]
            if size is None or HOLE in parts:
                result.append(0 if size == 0 else None)
            else:
                result.append(len(range(*slice(*parts).indices(size))))
        dim += 1
    return tuple(result)


def _infer_slice(inputs: Sequence[Any], attrs: dict) -> tuple:
    x = inputs[0]
    spec = attrs["spec"]
    if x.shape is not None:
        _check_bounds(x.shape, spec, [None if item[0] == "newaxis" else _static_part(item) for item in spec])
    return (TensorType(x.dtype, slice_shape(x.shape, spec)),)


def _infer_grad(inputs: Sequence[Any], attrs: dict) -> tuple:
    return (TensorType(inputs[0].dtype, attrs["shape"]),)


def _infer_add(inputs: Sequence[Any], attrs: dict) -> tuple:
    return (inputs[0],)


# --- rows ----------------------------------------------------------------------------------------------------------


def _grad_slice(op: Any, dy: Any) -> Sequence[Any]:
    x, *holes = op.inputs
    shape, extra = shape_attr(dims(x))
    return (call("slice_grad", dy, *extra, *holes, spec=op.attrs["spec"], shape=shape), *[None] * len(holes))


def _grad_slice_grad(op: Any, dy: Any) -> Sequence[Any]:
    count = op.attrs["shape"].count(None)
    holes = op.inputs[1 + count :]
    return (call("strided_slice", dy, *holes, spec=op.attrs["spec"]), *[None] * (len(op.inputs) - 1))


def _grad_slice_add(op: Any, dy: Any) -> Sequence[Any]:
    holes = op.inputs[2:]
    return (dy, call("strided_slice", dy, *holes, spec=op.attrs["spec"]), *[None] * len(holes))


def _add_into(op: Any, total: Any) -> Any:
    holes = op.inputs[1 + op.attrs["shape"].count(None) :]
    return add_at(total, op.inputs[0], op.attrs["spec"], holes)


def add_at(total: Any, value: Any, spec: Spec, holes: Sequence[Any]) -> Any:
    """`total` with `value` added in a slice. Of a value that is zeros but for some slices only those are added, so that
    the gradient of `x[i][j]` doesn't cost a row."""
    parts = _parts(value)
    found = [_within(spec, holes, own, own_holes) for _, own, own_holes in parts]
    places = [place for place in found if place is not None]
    if not parts or len(places) < len(parts):
        return call("slice_add", total, value, *holes, spec=spec)
    for (part, _, _), place in zip(parts, places):
        total = add_at(total, part, *place)
    return total


def index_of_axis(axis: int, rank: int) -> Spec:
    """The spec of one slice along an axis of a tensor."""
    return tuple(("index", HOLE) if a == axis else FULL for a in range(rank))


def _parts(value: Any) -> list[tuple[Any, Spec, Sequence[Any]]]:
    """What was added to zeros to make a cotangent in a graph, each with its slice; nothing where that isn't known."""
    node = value.value.node if type(value) is SymbolicTensor else None
    if node is None or value._shape is None or not node.inputs:
        return []
    first, *rest = [value.builder.tensor(v) for v in node.inputs]
    name, attrs = node.op.name, node.attrs
    if name == "slice_grad":
        return [(first, attrs["spec"], rest[attrs["shape"].count(None) :])]
    if name == "gather_grad" and rest[0]._shape == ():
        return [(first, index_of_axis(attrs["axis"], len(value._shape)), rest[:1])]
    if name == "slice_add":
        part = (rest[0], attrs["spec"], rest[1:])
    elif name == "index_add" and rest[0]._shape == ():
        part = (rest[1], index_of_axis(attrs["axis"], len(value._shape)), rest[:1])
    else:
        return []
    before = _parts(first)
    return [*before, part] if before else []


def _within(
    outer: Spec, outer_holes: Sequence[Any], inner: Spec, inner_holes: Sequence[Any]
) -> tuple[Spec, list[Any]] | None:
    """The spec and holes of `x[outer][inner]`, where `outer` only has indices and whole dimensions."""
    if any(item[0] not in ("index", "slice") for item in (*outer, *inner)):
        return None
    if any(item[0] == "slice" and item != FULL for item in outer) or outer.count(FULL) != len(inner):
        return None
    sources = iter(outer_holes), iter(inner_holes)
    items, own = iter(inner), []
    holes: list[Any] = []
    for item in outer:
        source = sources[item == FULL]
        chosen = next(items) if item == FULL else item
        own.append(chosen)
        holes += [next(source) for part in chosen[1:] if part == HOLE]
    return tuple(own), holes


_ROW = (("index", 1), FULL)
_STEPS = (("slice", None, None, -1), ("slice", 0, 3, 2))
_NEW = (("newaxis",), ("index", -1), ("slice", 1, None, None))
_HOLES = (("index", HOLE), ("slice", HOLE, None, 2))
_ONE, _TWO = np.int32(1), np.int32(2)

STRIDED_SLICE = register(
    OpDef(
        "strided_slice", _infer_slice, _slice_kernel, prepared=_prepared_slice, grad=_grad_slice, cheap=True,
        doc="x[key] for ints, slices, `...` and `None`.",
        samples=(
            Sample(((3, 4),), {"spec": _ROW}), Sample(((3, 4),), {"spec": _STEPS}), Sample(((3, 4),), {"spec": _NEW}),
            Sample(((3, 4), (), ()), {"spec": _HOLES}, fixed={1: _TWO, 2: _ONE}, gradient=(0,)),
            Sample(((0, 2),), {"spec": (FULL, ("index", 0))}),
            Sample(((2, 3),), {"spec": (("index", 0), ("index", -1))}),
            Sample(((3,),), {"spec": (("slice", -2, -9, -1),)}),
        ),
        is_move=True,
        is_view=True,
        reads_part=True,
        needs_no_constants=True,
        numbers_after=1,
        cost=0,
    )
)  # fmt: skip
SLICE_GRAD = register(
    OpDef(
        "slice_grad", _infer_grad, _grad_kernel, grad=_grad_slice_grad, kinds="biufc", complex_rule=True,
        add_into=_add_into,
        doc="Zeros of a shape, with dy in a slice: the adjoint of strided_slice.",
        samples=(
            Sample(((4,),), {"spec": _ROW, "shape": (3, 4)}), Sample(((3, 2),), {"spec": _STEPS, "shape": (3, 4)}),
            Sample(
                ((2,), (), (), ()), {"spec": _HOLES, "shape": (3, None)},
                fixed={1: np.int32(4), 2: _TWO, 3: _ONE}, gradient=(0,),
            ),
        ),
        is_move=True,
        needs_no_constants=True,
        numbers_after=1,
    )
)  # fmt: skip
SLICE_ADD = register(
    OpDef(
        "slice_add", _infer_add, _add_kernel, grad=_grad_slice_add, kinds="iufc", complex_rule=True,
        doc="acc with dy added to a slice.",
        samples=(
            Sample(((3, 4), (4,)), {"spec": _ROW}), Sample(((3, 4), (3, 2)), {"spec": _STEPS}),
            Sample(((3, 4), (2,), (), ()), {"spec": _HOLES}, fixed={2: _TWO, 3: _ONE}, gradient=(0, 1)),
        ),
        is_update=True,
        joins="add",
        rounds_once=lambda node: True,
        fails_first=True,
        is_quiet=True,
        by_parts=True,
        needs_no_constants=True,
    )
)  # fmt: skip


@deferrable
def strided_slice(
    input_: Any, begin: Any, end: Any, strides: Any = None, begin_mask: int = 0, end_mask: int = 0,
    ellipsis_mask: int = 0, new_axis_mask: int = 0, shrink_axis_mask: int = 0, var: Any = None, name: str | None = None,
) -> Tensor:  # fmt: skip
    """`input_[begin[0]:end[0]:strides[0], ...]`; strides are 1 by default, dimensions without an entry are taken whole.

    Bit i of a mask changes entry i: `begin_mask` and `end_mask` leave out that bound, `ellipsis_mask` makes it `...`,
    `new_axis_mask` a new dimension of size 1, and `shrink_axis_mask` the index `begin[i]`, which drops the dimension.
    Raises InvalidArgumentError for a stride of 0, an index out of bounds and too many entries. `var` is without effect.
    """
    from runtime.ops.convert import int_list

    starts, stops = int_list(begin, "begin"), int_list(end, "end")
    steps: list[Any] = [1] * len(starts) if strides is None else list(int_list(strides, "strides"))
    if not len(starts) == len(stops) == len(steps):
        raise errors.InvalidArgumentError(
            "Expected begin, end, and strides to be 1D equal size tensors, but got shapes "
            f"[{len(starts)}], [{len(stops)}], and [{len(steps)}] instead. [Op:StridedSlice]", "strided_slice"
        )  # fmt: skip
    key: list[Any] = []
    for i, (start, stop, step) in enumerate(zip(starts, stops, steps)):
        if ellipsis_mask >> i & 1:
            key.append(Ellipsis)
        elif new_axis_mask >> i & 1:
            key.append(None)
        elif shrink_axis_mask >> i & 1:
            key.append(start)
        else:
            key.append(slice(None if begin_mask >> i & 1 else start, None if end_mask >> i & 1 else stop, step))
    return getitem(convert_to_tensor(input_), tuple(key))


def _check_block(tensor: Tensor, axis: int, begin: Any, size: Any) -> None:
    """Indexing would cut off what leaves the tensor, `slice` must not."""
    dim = call("dim", tensor, axis=axis)
    first, count, last = [call("cast", convert_to_tensor(part), dtype=dtypes.int64) for part in (begin, size, dim)]
    inside = [call("less_equal", zero, part) for zero, part in ((first * 0, first), (first * 0 - 1, count))]
    fits = call("logical_and", call("logical_and", *inside), call("less_equal", first + count, last))
    message = f"Expected a block inside of dimension {axis} [Op:Slice], got begin, size and dimension ="
    call("assert", fits, first, count, last, message=message, error="InvalidArgumentError", summarize=3)


@deferrable
def slice_(input_: Any, begin: Any, size: Any, name: str | None = None) -> Tensor:
    """The block of `input_` from `begin` of `size` elements in each dimension; a size of -1 takes the rest.

    Raises InvalidArgumentError if the block extends beyond the tensor.
    """
    from runtime.ops.convert import int_list

    tensor = convert_to_tensor(input_)
    starts, sizes = int_list(begin, "begin"), int_list(size, "size")
    shape = tensor._shape
    if len(starts) != len(sizes) or (shape is not None and len(shape) != len(starts)):
        raise errors.InvalidArgumentError(
            f"Expected begin and size arguments to be 1-D tensors of size {len(shape or starts)}, but got shapes "
            f"[{len(starts)}] and [{len(sizes)}] instead. [Op:Slice]", "slice"
        )  # fmt: skip
    if shape is None:
        tensor = call("ensure_shape", tensor, shape=(None,) * len(starts))
    for axis, (start, count) in enumerate(zip(starts, sizes)):
        dim = None if shape is None else shape[axis]
        if isinstance(start, int) and isinstance(count, int) and dim is not None:
            end = dim if count == -1 else start + count
            if not 0 <= start <= end <= dim:
                raise errors.InvalidArgumentError(
                    f"Expected size[{axis}] in [0, {dim - start}], but got {count} [Op:Slice]", "slice"
                )
        else:
            _check_block(tensor, axis, start, count)
    key = tuple(slice(b, None if isinstance(s, int) and s == -1 else b + s) for b, s in zip(starts, sizes))  # type: ignore[operator]
    return getitem(tensor, key)
