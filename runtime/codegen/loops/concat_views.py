"""Arrays joined from others (concatenations, padded arrays), and the nests that read them without a copy.

    %p = pad(%x, 1)                                y[0] = 0.0 + u[0]
    %y = add(%p, %u)                    →          for i in range(1, n_1):
                                                       y[i] = x[i - 1] + u[i]
                                                   y[n_1] = 0.0 + u[n_1]

A joined array is not lowered at its node. An elementwise nest over its dimensions is split where pieces meet, if the
order of these boundaries is known: each part of the nest reads one piece. So a stencil, which reads an array and the
same array shifted by one element, is one nest. A piece that only the joined array uses is computed in its part of the
nest, or directly in its place in memory. For every other use, the array is written to memory first (`written`).

An elementwise group that was taken over in this way, and the memory of the pieces, must not change until the last read
of the array. So everything pending is lowered before any write to memory (`Fusion.flush_all`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from runtime.codegen import cost_model
from runtime.codegen.kernel.values import Array, Dims, Scalar, Spread, Vector, Virtual, product
from runtime.codegen.loops.access import Access, Loop, total
from runtime.codegen.loops.builder import KernelBuilder
from runtime.codegen.symbolic.polynomial import ZERO, Polynomial
from runtime.codegen.symbolic.ranges import Atom
from runtime.dtypes import DType
from runtime.graph.ir import Value
from runtime.kernel_ir import ir


@dataclass(frozen=True, eq=False)
class Joined:
    """Pieces along `axis`: (length, ref)."""

    dtype: DType
    dims: Dims
    axis: int
    pieces: tuple[tuple[Polynomial, Any], ...]


@dataclass(frozen=True, eq=False)
class Computed:
    """A value of an elementwise group that nothing else uses and that isn't lowered yet."""

    value: Value
    group: Any
    dims: Dims


def piece_of(low: KernelBuilder, value: Value) -> Any:
    """The ref of a value as a piece of a joined array, without a copy if possible."""
    found = low.region.env[value]
    if isinstance(found, Joined):
        return found
    group = low.fusion.taken(value)
    if group is not None:
        return Computed(value, group, group.dims)
    ref = low.ref(value)
    return low.array(value) if isinstance(ref, (Scalar, Spread, Vector)) else ref


def sliced(low: KernelBuilder, piece: Any, box: _Box) -> Any:
    """The block of a piece that a box selects, which lies within the piece; None if the piece must be in memory
    first."""
    dims = tuple(low.extents.atom(end - begin) for begin, end in box)
    if isinstance(piece, Scalar) or (isinstance(piece, Virtual) and piece.uniform):
        return piece if isinstance(piece, Scalar) else replace(piece, dims=dims)
    if box == whole(low, piece.dims):
        return piece
    if isinstance(piece, Joined):
        return _sliced(low, piece, box, dims)
    if not isinstance(piece, Array):
        return None
    for axis, (begin, end) in enumerate(box):
        if (begin, end) != (ZERO, low.extents.of(piece.dims[axis])):
            piece = part(low, piece, axis, low.extents.atom(begin, "start"), dims[axis])
    return piece


def _sliced(low: KernelBuilder, joined: Joined, box: _Box, dims: Dims) -> Any:
    pieces, start = [], ZERO
    try:
        for length, piece in joined.pieces:
            stop = start + length
            begin, end = box[joined.axis]
            if not (_is_before(low, stop, begin) or _is_before(low, end, start)):
                first, last = _in_order(low, (begin, start))[1], _in_order(low, (end, stop))[0]
                own = [*box[: joined.axis], (first - start, last - start), *box[joined.axis + 1 :]]
                found = sliced(low, piece, own)
                if found is None:
                    return None
                pieces.append((last - first, found))
            start = stop
    except _Undecided:
        return None
    if len(pieces) == 1 and not isinstance(pieces[0][1], Computed):
        return pieces[0][1]
    return Joined(joined.dtype, dims, joined.axis, tuple(pieces)) if pieces else None


# --- in memory -------------------------------------------------------------------------------------------------------


def written(low: KernelBuilder, joined: Joined, base: str | None) -> Array:
    """Writes the joined array to memory of its own."""
    out = Array(low.new_buffer(product(joined.dims), joined.dtype, base), joined.dims)
    _write(low, out, joined)
    return out


def _write(low: KernelBuilder, place: Array, piece: Any) -> None:
    if isinstance(piece, Joined):
        start, atom = ZERO, low.extents.atom
        for length, each in piece.pieces:
            _write(low, part(low, place, piece.axis, atom(start, "start"), atom(length)), each)
            start = start + length
    elif isinstance(piece, Computed):
        low.fusion.lower_into(piece.group, piece.value, place)
    else:
        low.copy_into(place, piece)


def part(low: KernelBuilder, whole: Array, axis: int, start: Atom, size: Atom) -> Array:
    """The block of `size` from `start` on along an axis."""
    strides = low.strides(whole)
    dims = (*whole.dims[:axis], size, *whole.dims[axis + 1 :])
    terms: list[ir.Expr] = [] if whole.offset == ir.ZERO else [whole.offset]
    if start != ir.ZERO:
        terms.append(start if strides[axis] == ir.ONE else start * strides[axis])
    contiguous = whole.strides is None and all(d == ir.ONE for d in whole.dims[:axis])
    return Array(whole.buffer, dims, None if contiguous else strides, low.atom(total(terms), "at"), whole=False)


# --- in nests --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Bound:
    """An operand in one part of a nest: element i of the nest is element i - shift of `ref`, which broadcasts to
    `dims`."""

    ref: Any
    dims: Dims
    shift: tuple[Polynomial, ...]
    inner: dict[Value, _Bound] | None = None  # of a computed piece: what its group reads


def can_read(nest: Any, joined: Joined) -> bool:
    """Whether a nest may be split into parts for this operand."""
    low, nodes = nest.low, nest.group.nodes
    if nest.group.axes is not None or joined.dims != nest.dims or low.is_large(nodes):
        return False
    return _is_simple(low, joined)


def _is_simple(low: KernelBuilder, piece: Any) -> bool:
    """Whether everything that a piece is computed from can be read with other indices."""
    if isinstance(piece, Joined):
        return all(_is_simple(low, each) for _, each in piece.pieces)
    if isinstance(piece, Computed):
        found = _outside(low, piece.group).values()
        return all(_broadcasts(ref, piece.dims) and _is_simple(low, ref) for ref in found)
    return isinstance(piece, (Array, Virtual, Scalar))


def _broadcasts(ref: Any, dims: Dims) -> bool:
    """Whether it is known while tracing along which dimensions a value is repeated."""
    if isinstance(ref, Joined):
        return ref.dims == dims
    return isinstance(ref, Scalar) or all(own in (ir.ONE, d) for own, d in zip(ref.dims[::-1], dims[::-1]))


def _outside(low: KernelBuilder, group: Any) -> dict[Value, Any]:
    """What a group reads."""
    found: dict[Value, Any] = {}
    for node in group.nodes:
        for value in node.inputs:
            if value not in group.members and value not in found:
                ref = low.region.env[value]
                ref = ref if isinstance(ref, Joined) else low.ref(value)
                ref = low.array(value) if isinstance(ref, Vector) else ref
                found[value] = ref.source if isinstance(ref, Spread) else ref
    return found


def fits(nest: Any, operands: dict[Value, Joined]) -> bool:
    """Whether it is known where to split the nest, and all its parts together are short enough."""
    low = nest.low
    bound = _bind(low, operands, nest.dims, (ZERO,) * len(nest.dims))
    try:
        parts = sum(1 for _ in _parts(low, bound, whole(low, nest.dims)))
    except _Undecided:
        return False
    return parts * (len(nest.group.nodes) + 1) <= cost_model.CONCAT_VIEW_NODES


def lower_parts(nest: Any, operands: dict[Value, Joined], stores: Any) -> None:
    """Lowers the parts of a nest, each with its loops. `stores` lowers the body."""
    low = nest.low
    everywhere, atom = whole(low, nest.dims), low.extents.atom
    known = dict(nest.elements)
    bound = _bind(low, operands, nest.dims, (ZERO,) * len(everywhere))
    for box, found in _parts(low, bound, everywhere):
        nest.elements = dict(known)
        nest.loops = loops = []
        for axis, (begin, end) in enumerate(box):
            loop = Loop((axis,), nest.dims[axis], False, atom(begin, "start"))
            if (end - begin).number != 1:
                loop.index = low.index_name(axis)
                if (begin, end) != everywhere[axis]:
                    loop.bounds = (atom(begin, "start"), atom(end, "stop"))
            loops.append(loop)
        running = [loop for loop, (begin, end) in zip(loops, box) if (end - begin).number != 1]
        readers = {value: _reader(nest, each) for value, each in found.items()}

        def body() -> None:
            nest.offsets = {}
            for value, reader in readers.items():  # noqa: B023
                nest.elements[value] = reader()
            stores()

        _lower_loops(low, running, body)


def _lower_loops(low: KernelBuilder, loops: Sequence[Loop], body: Any) -> None:
    if not loops:
        body()
        return
    with low.nested() as block:
        _lower_loops(low, loops[1:], body)
    low.loop(loops[0].index, loops[0].range, block)


def _bind(
    low: KernelBuilder, operands: dict[Value, Any], dims: Dims, shift: tuple[Polynomial, ...]
) -> dict[Value, _Bound]:
    return {value: _bound(low, ref, dims, shift) for value, ref in operands.items()}


def _bound(low: KernelBuilder, ref: Any, dims: Dims, shift: tuple[Polynomial, ...]) -> _Bound:
    inner = _bind(low, _outside(low, ref.group), ref.dims, shift) if isinstance(ref, Computed) else None
    return _Bound(ref, dims, shift, inner)


def _all(bound: dict[Value, _Bound]) -> Iterator[_Bound]:
    for each in bound.values():
        yield each
        yield from _all(each.inner or {})


_Box = list[tuple[Polynomial, Polynomial]]


class _Undecided(Exception):
    """It isn't known which of two positions comes first."""


def whole(low: KernelBuilder, dims: Dims) -> _Box:
    """The range of an array of these dimensions along each axis."""
    return [(ZERO, low.extents.of(d)) for d in dims]


def _is_before(low: KernelBuilder, a: Polynomial, b: Polynomial) -> bool:
    """Whether a position is at most another one."""
    extents = low.extents
    if extents.is_least(b - a, assume=False):
        return True
    if extents.is_least(a - b, assume=False):
        return False
    if extents.is_least(b - a):
        return True
    if extents.is_least(a - b):
        return False
    raise _Undecided


def _in_order(low: KernelBuilder, places: Iterable[Polynomial]) -> list[Polynomial]:
    found: list[Polynomial] = []
    for place in places:
        found.insert(sum(_is_before(low, each, place) for each in found), place)
    return found


def _parts(low: KernelBuilder, bound: dict[Value, _Bound], box: _Box) -> Iterator[tuple[_Box, dict[Value, _Bound]]]:
    """The parts in which no operand is joined any more, with the operands there."""
    axis = next((each.ref.axis for each in _all(bound) if isinstance(each.ref, Joined)), None)
    if axis is None:
        yield box, bound
        return
    begin, end = box[axis]
    cuts = dict.fromkeys((begin, end))
    for each in _all(bound):
        if isinstance(each.ref, Joined) and each.ref.axis == axis:
            place = each.shift[axis]
            for length, _ in each.ref.pieces:
                place = place + length
                if not (_is_before(low, place, begin) or _is_before(low, end, place)):
                    cuts[place] = None
    for first, last in pairwise(_in_order(low, cuts)):
        chosen = {value: _chosen(low, each, axis, first, last) for value, each in bound.items()}
        yield from _parts(low, chosen, [*box[:axis], (first, last), *box[axis + 1 :]])


def _chosen(low: KernelBuilder, bound: _Bound, axis: int, first: Polynomial, last: Polynomial) -> _Bound:
    """An operand in the part from `first` to `last`, which may be empty."""
    if bound.inner is not None:
        return replace(bound, inner={v: _chosen(low, each, axis, first, last) for v, each in bound.inner.items()})
    if not isinstance(bound.ref, Joined) or bound.ref.axis != axis:
        return bound
    start = bound.shift[axis]
    for length, piece in bound.ref.pieces:
        if _is_before(low, start, first) and _is_before(low, last, start + length):
            shift = (*bound.shift[:axis], start, *bound.shift[axis + 1 :])
            own = piece.dims if isinstance(piece, (Joined, Computed)) else _dims_of_piece(low, bound.ref, length)
            return _bound(low, piece, own, shift)  # if the piece is joined itself, the part is split again
        start = start + length
    raise _Undecided


def _dims_of_piece(low: KernelBuilder, joined: Joined, length: Polynomial) -> Dims:
    return (*joined.dims[: joined.axis], low.extents.atom(length), *joined.dims[joined.axis + 1 :])


def _reader(nest: Any, bound: _Bound) -> Any:
    """Lowers what is invariant over a part. Returns a function that adds the other statements and returns an
    element."""
    low = nest.low
    if bound.inner is not None:
        inner = type(nest)(low, bound.ref.group)
        inner.loops = nest.loops
        readers = {value: _reader(nest, each) for value, each in bound.inner.items()}

        def computed() -> ir.Expr:
            inner.elements = {value: reader() for value, reader in readers.items()}
            inner.lower_body({}, {})
            found: ir.Expr = inner.elements[bound.ref.value]
            return found

        return computed
    if isinstance(bound.ref, Scalar):
        return lambda: bound.ref.expr
    access = Access(low, _moved(low, bound, nest.dims), nest.dims)
    return lambda: access.element(nest.loops, nest.name_offset)


def _moved(low: KernelBuilder, bound: _Bound, dims: Dims) -> Any:
    """An operand as an array over the dimensions of a nest; it covers a part of them."""
    ref, atom = bound.ref, low.extents.atom
    lead = len(dims) - len(ref.dims)
    repeated = [own == ir.ONE and wide != ir.ONE for own, wide in zip(ref.dims, bound.dims[lead:])]
    shift = [ZERO if fixed else each for fixed, each in zip(repeated, bound.shift[lead:])]
    if isinstance(ref, Virtual):
        element = ref.element

        def moved(indices: Sequence[ir.Expr]) -> ir.Expr:
            places = zip(indices[lead:], repeated, shift)
            found = [ir.ZERO if fixed else i - atom(s) if s != ZERO else i for i, fixed, s in places]
            return element(found)

        return Virtual(ref.dtype, dims, element if ref.uniform else moved, ref.uniform)
    strides = [ir.ZERO if fixed else stride for fixed, stride in zip(repeated, low.strides(ref))]
    place: ir.Expr = ref.offset
    for each, stride in zip(shift, strides):
        if each != ZERO and stride != ir.ZERO:
            back = atom(each) if stride == ir.ONE else atom(each) * stride
            place = _minus(back) if place == ir.ZERO else place - back
    at = low.atom(place, "at")
    return Array(ref.buffer, dims, (ir.ZERO,) * lead + tuple(strides), at, whole=False)


def _minus(expr: ir.Expr) -> ir.Expr:
    """The negative, its first factor's sign changed."""
    if isinstance(expr, ir.Binary):
        return ir.Binary(expr.op, -expr.left, expr.right)
    return -expr
