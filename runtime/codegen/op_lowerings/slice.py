"""Printed forms of basic indexing: slices are views, their adjoints write through views.

%y = strided_slice(%x, %i) {spec: x[i, 1:]}   →   if not (-n <= i < n): return …
                                                  y: offset i * m + 1, one dimension less
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from runtime.codegen.kernel import spelling
from runtime.codegen.kernel.source import NotNative
from runtime.codegen.kernel.values import Array, Buffer, Dims, Scalar, Vector, Virtual, product
from runtime.codegen.loops.concat_views import Joined, sliced, whole
from runtime.codegen.lower.state import Lowering, emitter
from runtime.codegen.op_lowerings.view import bind, filled
from runtime.codegen.symbolic.polynomial import Polynomial
from runtime.codegen.symbolic.ranges import form_of, index_of, known_of, learn_inside, outside
from runtime.graph.ir import Node, Value

_HOLE = "?"


@emitter("strided_slice")
def _strided_slice(low: Lowering, node: Node) -> None:
    spec = node.attrs["spec"]
    found = low.region.env[node.inputs[0]]
    if isinstance(found, Joined):
        part = _part_of_joined(low, node, found)
        if part is not None:
            low.wait(node.outputs[0], part)
            return
    ref: Any = low.ref(node.inputs[0])
    if isinstance(ref, Vector) and len(ref.dims) == 1:
        if len(spec) == 1 and spec[0][0] == "index" and isinstance(spec[0][1], int):
            output = node.outputs[0]
            text = ref.items[spec[0][1]]
            low.define(output, Scalar(text, output.dtype, low.extents.known_size(text, output.dtype)))
            return
        if len(spec) == 1 and spec[0][0] == "slice" and _HOLE not in spec[0]:
            items = ref.items[slice(*spec[0][1:])]
            low.define(node.outputs[0], Vector(ref.dtype, items, (low.static_dim(len(items)),)))
            return
    if isinstance(ref, Virtual) and ref.uniform:
        # Only the dimensions change; the view of a fictitious array finds them and checks the indices.
        view = slice_view(low, node, _fictitious(ref), spec, node.inputs[1:])
        bind(low, node, Virtual(ref.dtype, view.dims, ref.element, uniform=True))
        return
    if not isinstance(ref, Array):
        ref = low.array(node.inputs[0])
    bind(low, node, slice_view(low, node, ref, spec, node.inputs[1:]))


def _part_of_joined(low: Lowering, node: Node, joined: Joined) -> Any:
    """What stands for a slice in single steps of an array that isn't put together yet; None where it has to be."""
    spec = node.attrs["spec"]
    if any(item[0] != "slice" or item[3] not in (None, 1) for item in spec):
        return None
    values: Iterator[Value] = iter(node.inputs[1:])
    ranges = []
    for item, size in zip(spec, joined.dims):
        inside, values = _inside(low, item[1:], values, size)
        if inside is None:
            return None
        ranges.append(inside)
    return sliced(low, joined, [*ranges, *whole(low, joined.dims[len(spec) :])])


def _fictitious(ref: Virtual) -> Array:
    return Array(Buffer("", ref.dtype), ref.dims)


@emitter("slice_grad")
def _slice_grad(low: Lowering, node: Node) -> None:
    count = node.attrs["shape"].count(None)
    dims = filled(low, node, node.attrs["shape"], node.inputs[1 : 1 + count])
    total = zeros(low, node, dims)
    view = slice_view(low, node, total, node.attrs["spec"], node.inputs[1 + count :])
    write(low, node, view, node.inputs[0])
    low.define(node.outputs[0], total)


@emitter("slice_add", "slice_update")
def _write_slice(low: Lowering, node: Node) -> None:
    total = writable(low, node)
    view = slice_view(low, node, total, node.attrs["spec"], node.inputs[2:])
    write(low, node, view, node.inputs[1], add=node.op.name == "slice_add")
    low.define(node.outputs[0], total)


# --- writing through views -------------------------------------------------------------------------------------------


def zeros(low: Lowering, node: Node, dims: Dims) -> Array:
    """A new array of zeros for the node's output."""
    output = node.outputs[0]
    if not dims:
        raise NotNative(f"op '{node.op.name}' on a rank-0 tensor has no native form", node)
    text = spelling.literal(0, output.dtype)
    ref = Virtual(output.dtype, dims, lambda indices: text, uniform=True)
    return low.solid(ref, output.name)


def writable(low: Lowering, node: Node) -> Array:
    """The first operand as an array to write into: its own memory when nobody needs that afterwards, else a copy."""
    source = node.inputs[0]
    if not low.dims(source):
        raise NotNative(f"op '{node.op.name}' on a rank-0 tensor has no native form", node)
    ref = low.ref(source)
    # Groups that are still to be printed may read this memory.
    low.fusion.flush_all()
    if not (isinstance(ref, Array) and ref.is_plain):
        return low.solid(ref, node.outputs[0].name)
    if low.frees_memory_of(source):
        return replace(ref)
    return low.copied(ref, node.outputs[0].name or source.name)


def write(low: Lowering, node: Node, view: Array, value: Value, add: bool = False) -> None:
    """Prints the assignment of `value` to the elements of `view`, to whose dimensions it broadcasts."""
    own = low.dims(value)
    lead = len(view.dims) - len(own)
    for got, wanted in zip(own, view.dims[lead:] if lead >= 0 else ()):
        if got not in (wanted, "1"):
            message = f"Incompatible shapes: dimensions {{0}} and {{1}} [Op:{node.op.label}]"
            low.fail_when(
                f"{got} != {wanted} and {got} != 1", "InvalidArgumentError", message, node, (got, wanted), node.op.label
            )
    ref = low.ref(value)
    if not view.dims:
        text = ref.text if isinstance(ref, Scalar) else f"{low.solid(ref).buffer.name}[0]"
        place = f"{view.buffer.name}[{view.offset}]"
        low.line(f"{place} = {spelling.strip(spelling.narrow(f'({place} + {text})', view.dtype) if add else text)}")
        return
    low.copy_into(view, ref, add)


# --- the view of a slice ---------------------------------------------------------------------------------------------


def slice_view(low: Lowering, node: Node, array: Array, spec: Sequence[tuple], holes: Sequence[Value]) -> Array:
    """The part of `array` that a spec (see runtime/ops/arrays/slicing.py) selects; prints the checks of its indices."""
    values: Iterator[Value] = iter(holes)
    strides = low.strides(array)
    dims: list[str] = []
    steps: list[str] = []
    offset = [] if array.offset == "0" else [array.offset]
    # Whole trailing dimensions behind a contiguous range of rows leave the elements contiguous.
    contiguous = array.strides is None
    open_rows = False
    axis = 0
    for item in spec:
        if item[0] == "newaxis":
            dims.append("1")
            steps.append("0")
            contiguous = contiguous and not steps[:-1]
            continue
        size, stride = array.dims[axis], strides[axis]
        if item[0] == "index":
            index = checked_index(low, node, item[1], values, size, axis)
            if index != "0":
                offset.append(index if stride == "1" else f"{index} * {stride}")
            contiguous = contiguous and not open_rows
        else:
            start, count, step = _range(low, node, item[1:], values, size)
            whole = (start, count, step) == ("0", size, "1")
            contiguous = contiguous and step == "1" and (whole or not open_rows)
            open_rows = True
            if start != "0":
                offset.append(start if stride == "1" else f"{start} * {stride}")
            dims.append(count)
            steps.append(stride if step == "1" else low.atom(_times(step, stride), "stride"))
        axis += 1
    place = low.atom(" + ".join(offset) or "0", "at")
    whole = array.whole and [d for d in dims if d != "1"] == [d for d in array.dims if d != "1"]
    return Array(array.buffer, tuple(dims), None if contiguous else tuple(steps), place, whole)


def _times(a: str, b: str) -> str:
    return a if b == "1" else f"{a} * {b}"


def checked_index(low: Lowering, node: Node, part: Any, values: Iterator[Value], size: str, axis: int) -> str:
    """The offset of an index that may count from the end, as a name or literal; prints its check."""
    static = node.inputs[0].shape
    message = f"slice index {{0}} of dimension {axis} out of bounds. [Op:StridedSlice]"
    if part == _HOLE:
        value = next(values)
        known = known_of(low.ref(value))
        seen = low.region.indices.get((value, size))
        if seen is not None:
            return seen
        if known is not None and known.is_nonnegative:
            index, _ = index_of(low, value, "at")
        else:
            index = low.assign(f"np.int64({low.scalar_name(value)})", "at")
            low.branch(f"{index} < 0", low.lines(f"{index} += {size}"))
        wrong = outside(low, index, known, size)
        if wrong is not None:
            low.fail_when(wrong, "InvalidArgumentError", message, node, (index,), "strided_slice")
        low.region.indices[value, size] = index
        if known is not None and known.is_nonnegative:
            learn_inside(low, value, size)
        return index
    fits = static is not None and node.op.name == "strided_slice" and static[axis] is not None
    if part >= 0:
        if not fits:
            if low.extents.is_below(Polynomial.of(part), size):
                return str(part)
            low.fail_when(f"{part} >= {size}", "InvalidArgumentError", message, node, (str(part),), "strided_slice")
        return str(part)
    place = low.extents.of(size) + part
    if not fits and low.extents.is_least(place):
        return low.extents.atom(place, "at")
    index = low.assign(f"{size} - {-part}", "at")
    if not fits:
        low.fail_when(f"{index} < 0", "InvalidArgumentError", message, node, (index,), "strided_slice")
    return index


def _range(low: Lowering, node: Node, parts: Sequence[Any], values: Iterator[Value], size: str) -> tuple[str, str, str]:
    """Start, count and step of a slice of a dimension."""
    if parts == (None, None, None) or parts == (None, None, 1) or parts == (0, None, None):
        return "0", size, "1"
    number = low.static_size(size)
    if number is not None and _HOLE not in parts and parts[2] in (None, 1):
        least, most, _ = slice(*parts).indices(number)
        place = str(least) if least == (parts[0] or 0) else low.static_dim(least)
        return place, low.static_dim(max(most - least, 0)), "1"
    if parts[2] in (None, 1):
        inside, values = _inside(low, parts, values, size)
        if inside is not None:
            first, count = inside[0], inside[1] - inside[0]
            place = str(first.number) if first.number is not None else low.extents.atom(first, "start")
            # Sizes known while tracing aren't to be numbers in the text.
            text = f"{size} - {place}" if inside[1] == low.extents.of(size) else None
            return place, low.extents.atom(count, text=text), "1"
    texts = [
        None if p is None else low.size_of(next(values)) if p == _HOLE else str(p) if p >= 0 else f"({p})"
        for p in parts
    ]
    start, stop, step = texts
    if step is None or step == "1":
        # Constants and sizes read off the same dimension need no run-time clamping.
        begin = "0" if start in (None, "0") else low.assign(f"lib.clamped({start}, {size})", "start")
        end = size if stop in (None, size) else low.assign(f"lib.clamped({stop}, {size})", "stop")
        if begin == "0":
            return begin, end, "1"
        return begin, low.assign(f"max({end} - {begin}, 0)", "n"), "1"
    if parts[2] == _HOLE:
        message = "strides must be non-zero [Op:StridedSlice]"
        low.fail_when(f"{step} == 0", "InvalidArgumentError", message, node, (), "strided_slice")
    begin = low.assign(f"lib.slice_start({start or 0}, {start is None}, {step}, {size})", "start")
    return begin, low.assign(f"lib.slice_count({begin}, {stop or 0}, {stop is None}, {step}, {size})", "n"), step


def _inside(
    low: Lowering, parts: Sequence[Any], values: Iterator[Value], size: str
) -> tuple[tuple[Polynomial, Polynomial] | None, Iterator[Value]]:
    """Where a slice in single steps begins and ends, if it is sure that this lies in the dimension; the other result
    gives the values of the slice once more."""
    extents, whole = low.extents, low.extents.of(size)
    taken = [next(values) for part in parts[:2] if part == _HOLE]
    again = itertools.chain(taken, values)
    forms = iter([form_of(known_of(low.ref(value))) for value in taken])
    ends: list[Polynomial] = []
    for part, default in zip(parts, (Polynomial.of(0), whole)):
        form = default if part is None else next(forms) if part == _HOLE else Polynomial.of(part)
        if form is None:
            return None, again
        if form.number is not None and form.number < 0:
            form = whole + form
        if not extents.is_least(form) or not extents.is_least(whole - form):
            return None, again
        ends.append(form)
    return ((ends[0], ends[1]) if extents.is_least(ends[1] - ends[0]) else None), again


def row_view(low: Lowering, array: Array, index: str) -> Array:
    """Row `index` (checked already) of an array."""
    if array.strides is None:
        length = product(array.dims[1:])
        text = index if length == "1" else f"{index} * {length if length.isidentifier() else f'({length})'}"
    else:
        text = index if array.strides[0] == "1" else f"{index} * {array.strides[0]}"
    if array.offset != "0":
        text = f"{array.offset} + {text}"
    strides = None if array.strides is None else array.strides[1:]
    return Array(array.buffer, array.dims[1:], strides, low.atom(text, "at"), whole=False)
