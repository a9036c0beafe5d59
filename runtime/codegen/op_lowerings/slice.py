"""Lowerings of basic indexing: slices are views, their adjoints write through views.

%y = strided_slice(%x, %i) {spec: x[i, 1:]}   →   if not (-n <= i < n): return …
                                                  y: offset i * m + 1, one dimension less
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from runtime.codegen.kernel import scalars
from runtime.codegen.kernel.names import joined
from runtime.codegen.kernel.source import NotNative
from runtime.codegen.kernel.values import Array, Buffer, Dims, Scalar, Vector, Virtual, product
from runtime.codegen.loops.access import total as total_of
from runtime.codegen.loops.concat_views import ConcatView, sliced, whole
from runtime.codegen.loops.loop_nest import fail_unless_shapes_fit
from runtime.codegen.lower.state import Lowering, emitter
from runtime.codegen.op_lowerings.view import bind, filled
from runtime.codegen.symbolic.ranges import Atom, index_of, known_range, learn_inside, outside, polynomial_of
from runtime.graph.ir import Node, Value
from runtime.kernel_ir import ir
from runtime.kernel_ir.analysis.polynomial import Polynomial
from runtime.kernel_ir.types import INT64
from runtime.ops.table import OPS

_HOLE = "?"


@emitter("strided_slice")
def _strided_slice(low: Lowering, node: Node) -> None:
    spec = node.attrs["spec"]
    found = low.region.env[node.inputs[0]]
    if isinstance(found, ConcatView):
        part = _part_of_joined(low, node, found)
        if part is not None:
            low.wait(node.outputs[0], part)
            return
    ref: Any = low.ref(node.inputs[0])
    if isinstance(ref, Vector) and len(ref.dims) == 1:
        if len(spec) == 1 and spec[0][0] == "index" and isinstance(spec[0][1], int):
            output = node.outputs[0]
            item = ref.items[spec[0][1]]
            low.define(output, Scalar(item, output.dtype, low.shape_env.known_size(item, output.dtype)))
            return
        if len(spec) == 1 and spec[0][0] == "slice" and _HOLE not in spec[0]:
            items = ref.items[slice(*spec[0][1:])]
            low.define(node.outputs[0], Vector(ref.dtype, items, (low.static_dim(len(items)),)))
            return
    if isinstance(ref, Virtual) and ref.uniform:
        # Only the dimensions change. A view of a fictitious array determines them and checks the indices.
        view = slice_view(low, node, _fictitious(ref), spec, node.inputs[1:])
        bind(low, node, Virtual(ref.dtype, view.dims, ref.element, uniform=True))
        return
    if not isinstance(ref, Array):
        ref = low.array(node.inputs[0])
    bind(low, node, slice_view(low, node, ref, spec, node.inputs[1:]))


def _part_of_joined(low: Lowering, node: Node, joined: ConcatView) -> Any:
    """A slice with step 1 of a concatenated view that isn't stored; None if it has to be stored."""
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
        raise NotNative(f"op '{node.op.name}' on a rank-0 tensor can't be compiled", node)
    zero = scalars.literal(0, output.dtype)
    ref = Virtual(output.dtype, dims, lambda indices: zero, uniform=True)
    return low.solid(ref, output.name)


def writable(low: Lowering, node: Node) -> Array:
    """The first operand as an array to write into: its own memory if that has no later user, else a copy."""
    source = node.inputs[0]
    if not low.dims(source):
        raise NotNative(f"op '{node.op.name}' on a rank-0 tensor can't be compiled", node)
    ref = low.ref(source)
    # Pending groups may read this memory.
    low.fusion.flush_all()
    if not (isinstance(ref, Array) and ref.is_plain):
        return low.solid(ref, node.outputs[0].name)
    if low.frees_memory_of(source):
        return replace(ref)
    return low.copied(ref, node.outputs[0].name or source.name)


def write(low: Lowering, node: Node, view: Array, value: Value, add: bool = False) -> None:
    """Adds the assignment of `value` to the elements of `view`; it is broadcast to the view's dimensions."""
    own = low.dims(value)
    lead = len(view.dims) - len(own)
    for got, wanted in zip(own, view.dims[lead:] if lead >= 0 else ()):
        if got not in (wanted, ir.ONE):
            wrong = ir.both(got.compare("!=", wanted), got.compare("!=", 1))
            fail_unless_shapes_fit(low, wrong, node, (own, view.dims))
    ref = low.ref(value)
    if not view.dims:
        found = ref.expr if isinstance(ref, Scalar) else ir.load(low.solid(ref).buffer.variable, 0)
        place = ir.load(view.buffer.variable, view.offset)
        low.add(ir.set_to(place, joined(OPS["add"], place, found, view.dtype) if add else found))
        return
    low.copy_into(view, ref, add)


# --- the view of a slice ---------------------------------------------------------------------------------------------


def slice_view(low: Lowering, node: Node, array: Array, spec: Sequence[tuple], holes: Sequence[Value]) -> Array:
    """The part of `array` that a spec (see runtime/ops/arrays/slicing.py) selects; adds the checks of its indices."""
    values: Iterator[Value] = iter(holes)
    strides = low.strides(array)
    dims: list[Atom] = []
    steps: list[Atom] = []
    offset: list[ir.Expr] = [] if array.offset == ir.ZERO else [array.offset]
    # A range of rows with whole trailing dimensions is contiguous.
    contiguous = array.strides is None
    open_rows = False
    axis = 0
    for item in spec:
        if item[0] == "newaxis":
            dims.append(ir.ONE)
            steps.append(ir.ZERO)
            contiguous = contiguous and not steps[:-1]
            continue
        size, stride = array.dims[axis], strides[axis]
        if item[0] == "index":
            index = checked_index(low, node, item[1], values, size, axis)
            if index != ir.ZERO:
                offset.append(index if stride == ir.ONE else index * stride)
            contiguous = contiguous and not open_rows
        else:
            start, count, step = _range(low, node, item[1:], values, size, axis)
            whole = (start, count, step) == (ir.ZERO, size, ir.ONE)
            contiguous = contiguous and step == ir.ONE and (whole or not open_rows)
            open_rows = True
            if start != ir.ZERO:
                offset.append(start if stride == ir.ONE else start * stride)
            dims.append(count)
            steps.append(stride if step == ir.ONE else low.atom(step if stride == ir.ONE else step * stride, "stride"))
        axis += 1
    place = low.atom(total_of(offset), "at")
    whole = array.whole and [d for d in dims if d != ir.ONE] == [d for d in array.dims if d != ir.ONE]
    return Array(array.buffer, tuple(dims), None if contiguous else tuple(steps), place, whole)


def checked_index(low: Lowering, node: Node, part: Any, values: Iterator[Value], size: Atom, axis: int) -> ir.Expr:
    """The offset of an index that may count from the end, as a variable or constant; adds its check."""
    static = node.inputs[0].shape
    message = f"slice index {{0}} of dimension {axis} out of bounds. [Op:StridedSlice]"
    if part == _HOLE:
        value = next(values)
        known = known_range(low.ref(value))
        seen = low.region.indices.get((value, size))
        if seen is not None:
            return seen
        if known is not None and known.is_nonnegative:
            index, _ = index_of(low, value, "at")
        else:
            index = low.assign(ir.Convert(INT64, low.scalar_name(value)), "at")
            low.branch(index.compare("<", 0), [ir.assign(index, index + low.size_in_check(size))])
        wrong = outside(low, index, known, size)
        if wrong is not None:
            low.fail_when(wrong, "IndexOutOfBoundsError", message, node, (index,), "strided_slice")
        low.region.indices[value, size] = index
        if known is not None and known.is_nonnegative:
            learn_inside(low, value, size)
        return index
    fits = static is not None and node.op.name == "strided_slice" and static[axis] is not None
    if part >= 0:
        place = ir.as_expr(part)
        if not fits and not low.shape_env.is_below(Polynomial.of(part), size):
            wrong = place.compare(">=", size)
            low.fail_when(wrong, "IndexOutOfBoundsError", message, node, (place,), "strided_slice")
        return place
    from_start = low.shape_env.of(size) + part
    if not fits and low.shape_env.is_nonnegative(from_start):
        return low.shape_env.atom(from_start, "at")
    index = low.assign(size - -part, "at")
    if not fits:
        low.fail_when(index.compare("<", 0), "IndexOutOfBoundsError", message, node, (index,), "strided_slice")
    return index


def _range(
    low: Lowering, node: Node, parts: Sequence[Any], values: Iterator[Value], size: Atom, axis: int
) -> tuple[Atom, Atom, Atom]:
    """Start, count and step of a slice of a dimension."""
    if parts == (None, None, None) or parts == (None, None, 1) or parts == (0, None, None):
        return ir.ZERO, size, ir.ONE
    number = low.static_size(size)
    if number is not None and _HOLE not in parts and parts[2] in (None, 1):
        least, most, _ = slice(*parts).indices(number)
        place: Atom = ir.as_expr(least) if least == (parts[0] or 0) else low.static_dim(least)
        return place, low.static_dim(max(most - least, 0)), ir.ONE
    if parts[2] in (None, 1):
        inside, values = _inside(low, parts, values, size)
        if inside is not None:
            first, count = inside[0], inside[1] - inside[0]
            place = ir.as_expr(first.number) if first.number is not None else low.shape_env.atom(first, "start")
            # Static sizes mustn't become numbers in the kernel.
            rest = size - place if inside[1] == low.shape_env.of(size) else None
            return place, low.shape_env.atom(count, expr=rest), ir.ONE
    start, stop, step = (
        None if p is None else low.size_of(next(values)) if p == _HOLE else ir.as_expr(p) for p in parts
    )
    if step is None or step == ir.ONE:
        # Constants and sizes of the same dimension need no clamping at run time.
        begin: Atom = ir.ZERO
        if start is not None and start != ir.ZERO:
            begin = low.assign(ir.call("lib.clamped", start, size), "start")
        end = size if stop is None or stop == size else low.assign(ir.call("lib.clamped", stop, size), "stop")
        if begin == ir.ZERO:
            return begin, end, ir.ONE
        return begin, low.assign(ir.call("max", end - begin, 0), "n"), ir.ONE
    if parts[2] == _HOLE:
        message = f"strides[{axis}] must be non-zero [Op:StridedSlice]"
        low.fail_when(step.compare("==", 0), "InvalidArgumentError", message, node, (), "strided_slice")
    first_given = (ir.ZERO, ir.TRUE) if start is None else (start, ir.FALSE)
    last_given = (ir.ZERO, ir.TRUE) if stop is None else (stop, ir.FALSE)
    begin = low.assign(ir.call("lib.slice_start", *first_given, step, size), "start")
    return begin, low.assign(ir.call("lib.slice_count", begin, *last_given, step, size), "n"), step


def _inside(
    low: Lowering, parts: Sequence[Any], values: Iterator[Value], size: Atom
) -> tuple[tuple[Polynomial, Polynomial] | None, Iterator[Value]]:
    """The begin and end of a slice with step 1, if they surely lie in the dimension; and the values again."""
    env, whole = low.shape_env, low.shape_env.of(size)
    taken = [next(values) for part in parts[:2] if part == _HOLE]
    again = itertools.chain(taken, values)
    polynomials = iter([polynomial_of(known_range(low.ref(value))) for value in taken])
    ends: list[Polynomial] = []
    for part, default in zip(parts, (Polynomial.of(0), whole)):
        polynomial = default if part is None else next(polynomials) if part == _HOLE else Polynomial.of(part)
        if polynomial is None:
            return None, again
        if polynomial.number is not None and polynomial.number < 0:
            polynomial = whole + polynomial
        if not env.is_nonnegative(polynomial) or not env.is_nonnegative(whole - polynomial):
            return None, again
        ends.append(polynomial)
    return ((ends[0], ends[1]) if env.is_nonnegative(ends[1] - ends[0]) else None), again


def row_view(low: Lowering, array: Array, index: ir.Expr) -> Array:
    """Row `index` of an array; the index has been checked."""
    if array.strides is None:
        length = product(array.dims[1:])
        place = index if length == ir.ONE else index * length
    else:
        place = index if array.strides[0] == ir.ONE else index * array.strides[0]
    if array.offset != ir.ZERO:
        place = array.offset + place
    strides = None if array.strides is None else array.strides[1:]
    return Array(array.buffer, array.dims[1:], strides, low.atom(place, "at"), whole=False)
