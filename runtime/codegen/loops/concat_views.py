"""Arrays joined from others (concatenations, padded arrays), and the nests that read them without a copy.

    %p = pad(%x, 1)                                y[0] = 0.0 + u[0]
    %y = add(%p, %u)                    →          for i in range(1, n_1):
                                                       y[i] = x[i - 1] + u[i]
                                                   y[n_1] = 0.0 + u[n_1]

A concatenated view is not lowered at its node. A nest over its dimensions, elementwise or with reductions, is split
where segments meet, if the order of these boundaries is known: each part of the nest reads one segment. So a stencil,
which reads an array and the same array shifted by one element, is one nest. A segment that only the concatenated view
uses is computed in its part of the nest, or directly in its place in memory. For every other use, the array is written
to memory first (`written`).

    %r = roll(%x, 1, axis=0)                       for i in range(n):
    %y = add(%r, ...)                                  at = (n - 1) * m if i < 1 else -m
                                        →              for j in range(m):
                                                           y[i * m + j] = x[at + i * m + j] + ...

A stencil in several dimensions has many parts. Where they would be too many, an operand whose segments lie in one array
is read through an offset that depends on the row, and the nest is split along its innermost axis only. So is one with
a number around the array: `v = x[at_1]`, from the nearest row, then `v if i < n else 0.0`.

An elementwise group that was taken over in this way, and the memory of the segments, must not change until the last
read of the array. So everything pending is lowered before any write to memory (`Fusion.flush_all`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

from runtime.codegen import cost_model
from runtime.codegen.kernel.values import Array, Broadcast, Dims, Scalar, Vector, Virtual, product
from runtime.codegen.loops.access import Access, Loop, total
from runtime.codegen.loops.builder import Bounds, KernelBuilder
from runtime.codegen.symbolic.ranges import Atom
from runtime.dataclass import dataclass
from runtime.dtypes import DType
from runtime.graph.ir import Value
from runtime.kernel_ir import ir
from runtime.kernel_ir.analysis.polynomial import ZERO, Polynomial


@dataclass(frozen=True, eq=False)
class ConcatView:
    """Segments along `axis`: (length, ref)."""

    dtype: DType
    dims: Dims
    axis: int
    segments: tuple[tuple[Polynomial, Any], ...]


@dataclass(frozen=True, eq=False)
class Computed:
    """A value of an elementwise group that nothing else uses and that isn't lowered yet."""

    value: Value
    group: Any
    dims: Dims


def segment_of(low: KernelBuilder, value: Value) -> Any:
    """The ref of a value as a segment of a concatenated view, without a copy if possible."""
    found = low.region.env[value]
    if isinstance(found, ConcatView):
        return found
    group = low.fusion.taken(value)
    if group is not None:
        return Computed(value, group, group.dims)
    ref = low.ref(value)
    return low.array(value) if isinstance(ref, (Scalar, Broadcast, Vector)) else ref


def sliced(low: KernelBuilder, segment: Any, box: _Box) -> Any:
    """The block of a segment that a box selects, which lies within the segment; None if the segment must be in memory
    first."""
    dims = tuple(low.shape_env.atom(end - begin) for begin, end in box)
    if isinstance(segment, Scalar) or (isinstance(segment, Virtual) and segment.uniform):
        return segment if isinstance(segment, Scalar) else replace(segment, dims=dims)
    if box == whole(low, segment.dims):
        return segment
    if isinstance(segment, ConcatView):
        return _sliced(low, segment, box, dims)
    if not isinstance(segment, Array):
        return None
    for axis, (begin, end) in enumerate(box):
        if (begin, end) != (ZERO, low.shape_env.of(segment.dims[axis])):
            segment = part(low, segment, axis, low.shape_env.atom(begin, "start"), dims[axis])
    return segment


def _sliced(low: KernelBuilder, view: ConcatView, box: _Box, dims: Dims) -> Any:
    segments, start = [], ZERO
    try:
        for length, segment in view.segments:
            stop = start + length
            begin, end = box[view.axis]
            if not (_is_before(low, stop, begin) or _is_before(low, end, start)):
                first, last = _in_order(low, (begin, start))[1], _in_order(low, (end, stop))[0]
                own = [*box[: view.axis], (first - start, last - start), *box[view.axis + 1 :]]
                found = sliced(low, segment, own)
                if found is None:
                    return None
                segments.append((last - first, found))
            start = stop
    except _Undecided:
        return None
    if len(segments) == 1 and not isinstance(segments[0][1], Computed):
        return segments[0][1]
    return ConcatView(view.dtype, dims, view.axis, tuple(segments)) if segments else None


# --- in memory -------------------------------------------------------------------------------------------------------


def written(low: KernelBuilder, view: ConcatView, base: str | None) -> Array:
    """Writes the concatenated view to memory of its own."""
    out = Array(low.new_buffer(product(view.dims), view.dtype, base), view.dims)
    _write(low, out, view)
    return out


def _write(low: KernelBuilder, place: Array, segment: Any) -> None:
    if isinstance(segment, ConcatView):
        start, atom = ZERO, low.shape_env.atom
        for length, each in segment.segments:
            _write(low, part(low, place, segment.axis, atom(start, "start"), atom(length)), each)
            start = start + length
    elif isinstance(segment, Computed):
        low.fusion.lower_into(segment.group, segment.value, place)
    else:
        low.copy_into(place, segment)


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


class _Leaf(NamedTuple):
    """An operand that isn't joined: element i of the nest is element i - shift of `ref`, which broadcasts to `dims`."""

    ref: Any
    dims: Dims
    shift: tuple[Polynomial, ...]
    inner: dict[Value, _Tree] | None = None  # of a computed segment: what its group reads


class _Split(NamedTuple):
    """An operand that is joined along `axis`: (start, stop, operand) in the nest's indices, in order."""

    axis: int
    parts: tuple[tuple[Polynomial, Polynomial, _Tree], ...]


_Tree = _Leaf | _Split


def can_read(nest: Any, view: ConcatView) -> bool:
    """Whether a nest may be split into parts for this operand."""
    if nest.low.for_device and nest.group.axes is not None:
        return False  # each part would need a barrier of its own
    return view.dims == nest.dims and _is_simple(nest.low, view)


def _is_simple(low: KernelBuilder, segment: Any) -> bool:
    """Whether everything that a segment is computed from can be read with other indices."""
    if isinstance(segment, ConcatView):
        return all(_is_simple(low, each) for _, each in segment.segments)
    if isinstance(segment, Computed):
        found = _outside(low, segment.group).values()
        return all(_broadcasts(ref, segment.dims) and _is_simple(low, ref) for ref in found)
    return isinstance(segment, (Array, Virtual, Scalar))


def _broadcasts(ref: Any, dims: Dims) -> bool:
    """Whether tracing knew along which dimensions a value is repeated."""
    if isinstance(ref, ConcatView):
        return ref.dims == dims
    return isinstance(ref, Scalar) or all(own in (ir.ONE, d) for own, d in zip(ref.dims[::-1], dims[::-1]))


def _outside(low: KernelBuilder, group: Any) -> dict[Value, Any]:
    """The values that a fusion group reads from outside, with their refs."""
    found: dict[Value, Any] = {}
    for node in group.nodes:
        for value in node.inputs:
            if value not in group.members and value not in found:
                ref = low.region.env[value]
                ref = ref if isinstance(ref, ConcatView) else low.ref(value)
                ref = low.array(value) if isinstance(ref, Vector) else ref
                found[value] = ref.source if isinstance(ref, Broadcast) else ref
    return found


def split(nest: Any, operands: dict[Value, ConcatView]) -> Parts | None:
    """How a nest is split, None where the order of boundaries isn't known or all parts together are too long."""
    for wraps in (False, True):
        parts = Parts(nest, operands, wraps)
        if parts.fit():
            return parts
    return None


class Parts:
    """The parts of a nest between the boundaries of its operands, outer loops first.

    wraps: along all axes but the innermost one, an operand that is one array, rolled or padded, doesn't split the nest.
    That takes some time in each row, but there are three parts instead of three for each axis.
    """

    def __init__(self, nest: Any, operands: dict[Value, ConcatView], wraps: bool) -> None:
        self._nest, self._low, self._wraps = nest, nest.low, wraps
        self._box = whole(nest.low, nest.dims)
        self._trees = _bind(nest.low, operands, nest.dims, (ZERO,) * len(self._box))
        self._axes = self._axes_of_loops()
        running = [position for position, axis in enumerate(self._axes) if _runs(self._box[axis])]
        self._innermost = self._axes[running[-1] if running else -1]

    def _axes_of_loops(self) -> list[int]:
        """The axes as their loops are nested: the loops that accumulate are inner ones, if reductions are of rows (see
        `reduction_nest.py`)."""
        axes, reduced = list(range(len(self._box))), self._nest.group.axes or ()
        are_reduced = [axis in reduced for axis in axes if _runs(self._box[axis])]
        if are_reduced == sorted(are_reduced):
            axes.sort(key=lambda axis: axis in reduced)
        return axes

    def fit(self) -> bool:
        """Whether it is known where to split the nest, and all parts together are short enough."""
        try:
            if self._is_narrow():
                return False
            count = self._count(self._trees, self._axes)
        except _Undecided:
            return False
        return count * (len(self._nest.group.nodes) + 1) <= cost_model.CONCAT_VIEW_NODES

    def _is_narrow(self) -> bool:
        """Whether rows are too short for a loop each although no boundary splits them. If the operands are copied, one
        loop goes over all rows."""
        begin, end = self._box[self._innermost]
        length = (end - begin).number
        if length is None or length > cost_model.CONCAT_VIEW_SHORT_ROW or self._innermost == self._axes[0]:
            return False
        return next(self._boundaries(self._trees.values(), self._innermost), None) is None

    def _count(self, trees: dict[Value, _Tree], axes: Sequence[int]) -> int:
        """How many bodies are lowered."""
        if axes[0] == self._innermost:
            return sum(1 for _ in self._inner(trees, self._box, axes))
        return sum(self._count(chosen, axes[1:]) for _, _, chosen in self._cut(trees, axes[0]))

    # --- lowering ----------------------------------------------------------------------------------------------------

    def loops(self) -> list[Loop]:
        """A loop for each axis, as it is before the nest is split."""
        reduced = self._nest.group.axes or ()
        loops = [Loop((axis,), size, axis in reduced) for axis, size in enumerate(self._nest.dims)]
        for axis, loop in enumerate(loops):
            if _runs(self._box[axis]):
                loop.index = self._low.index_name(axis)
        return loops

    def lower(self, loops: Sequence[Loop], body: Callable[[], None], large: bool | None = None) -> None:
        """Lowers some of the loops around `body`, the outer ones first: `body` may lower the others. Inside of the
        innermost loop, `nest.elements` has the operands. large: whether the first of them is worth threads; None inside
        of another loop."""
        self._along(sorted((loop.axes[0] for loop in loops), key=self._axes.index), body, large)

    def _along(self, axes: Sequence[int], body: Callable[[], None], large: bool | None) -> None:
        if not axes or self._is_within(axes[0]):
            body()
            return
        axis, trees = axes[0], self._trees
        if axis == self._innermost:
            self._along_innermost(body, large)
            return
        for begin, end, chosen in self._cut(trees, axis):
            self._trees = chosen
            runs = self._set_index(axis, (begin, end))
            own = large and self._is_most(axis, (begin, end))
            with self._low.nested() as block:
                self._along(axes[1:], body, None if runs else own)
            self._add_loop(axis, (begin, end), block, own)
        self._trees = trees

    def _along_innermost(self, body: Callable[[], None], large: bool | None) -> None:
        """Lowers the innermost loop; along the axes after it there is none."""
        low, nest, axis = self._low, self._nest, self._innermost
        outside = nest.elements
        axes = self._axes[self._axes.index(axis) :]
        for box, chosen in self._inner(self._trees, self._box, axes):
            for each in axes:
                self._set_index(each, box[each])
            nest.elements = dict(outside)
            readers = {value: _reader(nest, tree) for value, tree in chosen.items()}
            with low.nested() as block:
                nest.offsets = {}
                for value, reader in readers.items():
                    nest.elements[value] = reader()
                body()
            self._add_loop(axis, box[axis], block, large and self._is_most(axis, box[axis]))
        nest.elements = outside

    def _is_within(self, axis: int) -> bool:
        """Whether an axis comes after the innermost loop."""
        return self._axes.index(axis) > self._axes.index(self._innermost)

    def _set_index(self, axis: int, part: _Interval) -> bool:
        """Sets the index along an axis in a part of it: a variable, or a place where there is no loop. Returns whether
        there is one."""
        low, runs = self._low, self._has_loop(axis, part)
        self._nest.loops[axis].index = low.index_name(axis) if runs else low.shape_env.atom(part[0], "start")
        return runs

    def _has_loop(self, axis: int, part: _Interval) -> bool:
        """Whether there is a loop along an axis in a part of it. A single element needs one too if the axis is
        chunked: a chunk may lack it."""
        return _runs(part) or bool(self._nest.loops[axis].bounds)

    def _is_most(self, axis: int, part: _Interval) -> bool:
        """Whether a part of an axis of known length is at least half of it."""
        lengths = [(end - begin).number for begin, end in (self._box[axis], part)]
        return None not in lengths and 2 * lengths[1] >= lengths[0]  # type: ignore[operator]

    def _add_loop(self, axis: int, part: _Interval, block: ir.Block, large: bool | None) -> None:
        """Adds the loop over a part of an axis around a block; the block alone where there is none."""
        low, (begin, end), loop = self._low, part, self._nest.loops[axis]
        if not self._has_loop(axis, part):
            low.add(*block)
            return
        assert isinstance(loop.index, ir.Var)
        stop: ir.Expr = low.shape_env.atom(end, "stop")
        start: ir.Expr = ir.ZERO if begin == ZERO else low.shape_env.atom(begin, "start")
        if loop.bounds:  # of a chunk: what it shares with the part
            first, last = loop.bounds
            start = first if begin == ZERO else low.atom(ir.call("max", first, start), "start")
            stop = last if end == self._box[axis][1] else low.atom(ir.call("min", last, stop), "stop")
        bounds: Bounds = (stop,) if start == ir.ZERO else (start, stop)
        if large is None:
            low.loop(loop.index, bounds, block)
        else:
            low.nest(loop.index, bounds, block, large, may_join=False)

    # --- splitting ---------------------------------------------------------------------------------------------------

    def _inner(
        self, trees: dict[Value, _Tree], box: _Box, axes: Sequence[int]
    ) -> Iterator[tuple[_Box, dict[Value, _Tree]]]:
        """The parts between all boundaries along these axes, with the operands there."""
        if not axes:
            yield box, trees
            return
        axis = axes[0]
        for begin, end, chosen in self._cut(trees, axis):
            yield from self._inner(chosen, [*box[:axis], (begin, end), *box[axis + 1 :]], axes[1:])

    def _cut(self, trees: dict[Value, _Tree], axis: int) -> Iterator[tuple[Polynomial, Polynomial, dict[Value, _Tree]]]:
        """The ranges between all boundaries along an axis, with the operands there."""
        low, (begin, end) = self._low, self._box[axis]
        cuts = dict.fromkeys((begin, end))
        for place in self._boundaries(trees.values(), axis):
            if place not in cuts and not (_is_before(low, place, begin) or _is_before(low, end, place)):
                cuts[place] = None
        for first, last in pairwise(_in_order(low, cuts)):
            yield first, last, {value: self._chosen(each, axis, first, last) for value, each in trees.items()}

    def _is_kept_whole(self, tree: _Tree, axis: int) -> bool:
        """Whether an operand isn't split along an axis although it is a concatenated view."""
        is_outer = axis != self._innermost and not self._is_within(axis)
        return self._wraps and is_outer and isinstance(tree, _Split) and _is_one_array(self._low, tree)

    def _boundaries(self, trees: Iterable[_Tree], axis: int) -> Iterator[Polynomial]:
        for tree in trees:
            if not self._is_kept_whole(tree, axis):
                if isinstance(tree, _Split) and tree.axis == axis:
                    yield from (stop for _, stop, _ in tree.parts)
                yield from self._boundaries(_children(tree), axis)

    def _chosen(self, tree: _Tree, axis: int, first: Polynomial, last: Polynomial) -> _Tree:
        """An operand in the part from `first` to `last`, which may be empty."""
        if self._is_kept_whole(tree, axis):
            return tree
        if isinstance(tree, _Leaf):
            if tree.inner is None:
                return tree
            inner = {value: self._chosen(each, axis, first, last) for value, each in tree.inner.items()}
            return tree._replace(inner=inner)
        if tree.axis != axis:
            parts = ((start, stop, self._chosen(each, axis, first, last)) for start, stop, each in tree.parts)
            return tree._replace(parts=tuple(parts))
        for start, stop, each in tree.parts:
            if _is_before(self._low, start, first) and _is_before(self._low, last, stop):
                return self._chosen(each, axis, first, last)
        raise _Undecided


def _runs(part: _Interval) -> bool:
    """Whether there is a loop over a part of an axis: it isn't one element."""
    begin, end = part
    return (end - begin).number != 1


def _bind(
    low: KernelBuilder, operands: dict[Value, Any], dims: Dims, shift: tuple[Polynomial, ...]
) -> dict[Value, _Tree]:
    return {value: _tree(low, ref, dims, shift) for value, ref in operands.items()}


def _tree(low: KernelBuilder, ref: Any, dims: Dims, shift: tuple[Polynomial, ...]) -> _Tree:
    if not isinstance(ref, ConcatView):
        inner = _bind(low, _outside(low, ref.group), ref.dims, shift) if isinstance(ref, Computed) else None
        return _Leaf(ref, dims, shift, inner)
    parts, start = [], shift[ref.axis]
    for length, segment in ref.segments:
        own = segment.dims if isinstance(segment, (ConcatView, Computed)) else _dims_of_segment(low, ref, length)
        tree = _tree(low, segment, own, (*shift[: ref.axis], start, *shift[ref.axis + 1 :]))
        parts.append((start, start + length, tree))
        start = start + length
    return _Split(ref.axis, tuple(parts))


def _children(tree: _Tree) -> Iterator[_Tree]:
    yield from (each for _, _, each in tree.parts) if isinstance(tree, _Split) else (tree.inner or {}).values()


_Interval = tuple[Polynomial, Polynomial]
_Box = list[_Interval]


class _Undecided(Exception):
    """It isn't known which of two positions comes first."""


def whole(low: KernelBuilder, dims: Dims) -> _Box:
    """The range of an array of these dimensions along each axis."""
    return [(ZERO, low.shape_env.of(d)) for d in dims]


def _is_before(low: KernelBuilder, a: Polynomial, b: Polynomial) -> bool:
    """Whether a position is at most another one."""
    env = low.shape_env
    if env.is_nonnegative(b - a, assume=False):
        return True
    if env.is_nonnegative(a - b, assume=False):
        return False
    if env.is_nonnegative(b - a):
        return True
    if env.is_nonnegative(a - b):
        return False
    raise _Undecided


def _in_order(low: KernelBuilder, places: Iterable[Polynomial]) -> list[Polynomial]:
    found: list[Polynomial] = []
    for place in places:
        found.insert(sum(_is_before(low, each, place) for each in found), place)
    return found


def _is_one_array(low: KernelBuilder, split: _Split) -> bool:
    """Whether all segments are parts of one array, with the same strides, or one number around them, as in an array
    that is rolled or padded. Then a part only decides the offset, and whether the number is read."""
    leaves = list(_leaves(split))
    arrays = [each for each in leaves if isinstance(each.ref, Array)]
    numbers = [each.ref for each in leaves if isinstance(each.ref, Virtual) and each.ref.uniform]
    if not arrays or len(arrays) + len(numbers) < len(leaves):
        return False
    if len({(each.ref.buffer, _strides(low, each.ref)) for each in arrays}) > 1:
        return False
    if len({each.element(()) for each in numbers}) > 1 or (numbers and not _has_elements(low, split)):
        return False
    return not any(own == ir.ONE != wide for each in arrays for own, wide in zip(each.ref.dims, each.dims))


def _has_elements(low: KernelBuilder, tree: _Tree) -> bool:
    """Whether no part is empty, so that there is a row of the array for each row of the numbers around it."""
    if isinstance(tree, _Leaf):
        return True
    return all(
        low.shape_env.is_nonnegative(stop - start - 1, assume=False) and _has_elements(low, each)
        for start, stop, each in tree.parts
    )


def _leaves(tree: _Tree) -> Iterator[_Leaf]:
    if isinstance(tree, _Leaf):
        yield tree
    else:
        for _, _, each in tree.parts:
            yield from _leaves(each)


def _strides(low: KernelBuilder, array: Array) -> tuple[Polynomial, ...]:
    if array.strides is not None:
        return tuple(map(low.shape_env.of, array.strides))
    return tuple(low.shape_env.product(array.dims[axis + 1 :]) for axis in range(len(array.dims)))


def _dims_of_segment(low: KernelBuilder, view: ConcatView, length: Polynomial) -> Dims:
    return (*view.dims[: view.axis], low.shape_env.atom(length), *view.dims[view.axis + 1 :])


def _reader(nest: Any, tree: _Tree) -> Any:
    """Lowers what is invariant over a part. Returns a function that adds the remaining statements and returns the
    element."""
    low = nest.low
    if isinstance(tree, _Split):
        return _row_reader(nest, tree)
    if tree.inner is not None:
        inner = type(nest)(low, tree.ref.group)
        inner.loops = nest.loops
        readers = {value: _reader(nest, each) for value, each in tree.inner.items()}

        def computed() -> ir.Expr:
            inner.elements = {value: reader() for value, reader in readers.items()}
            inner.lower_body({}, {})
            found: ir.Expr = inner.elements[tree.ref.value]
            return found

        return computed
    if isinstance(tree.ref, Scalar):
        return lambda: tree.ref.expr
    access = Access(low, _moved(low, tree, nest.dims), nest.dims)
    return lambda: access.element(nest.loops, nest.name_offset)


def _row_reader(nest: Any, split: _Split) -> Any:
    """A reader of the operand's elements by row, for an operand that is one array, perhaps padded with one number. In
    rows of padding an element of the array's nearest row is loaded but not used."""
    low, refs = nest.low, [each.ref for each in _leaves(split)]
    number = next((each.element(()) for each in refs if isinstance(each, Virtual)), None)
    array = next((each for each in refs if isinstance(each, Array)), None)
    if array is None:  # in this range of the innermost axis
        return lambda: number
    strides = low.strides(array)
    at, is_inside = _row(nest, split, strides)
    access = Access(low, Array(array.buffer, nest.dims, strides, low.atom(at, "at"), whole=False), nest.dims)
    if is_inside == ir.TRUE:
        return lambda: access.element(nest.loops, nest.name_offset)
    inside = low.assign(is_inside, "inside")
    return lambda: inside.choose(low.assign(access.element(nest.loops, nest.name_offset), "v"), number)


def _row(nest: Any, tree: _Tree, strides: Sequence[Atom]) -> tuple[ir.Expr, ir.Expr]:
    """Where an operand that is one array begins in the current row, and whether the row is one of the array."""
    low, atom = nest.low, nest.low.shape_env.atom
    if isinstance(tree, _Leaf):
        if isinstance(tree.ref, Virtual):
            return ir.ZERO, ir.FALSE
        return low.atom(_from_shift(low, tree.ref.offset, tree.shift, strides), "at"), ir.TRUE
    index, stride = nest.loops[tree.axis].index, strides[tree.axis]
    rows = [_row(nest, each, strides) for _, _, each in tree.parts]
    arrays = [number for number, (_, is_inside) in enumerate(rows) if is_inside != ir.FALSE]
    if not arrays:
        return ir.ZERO, ir.FALSE
    places: list[ir.Expr] = []
    tests: list[ir.Expr] = []
    for number, ((start, stop, _), (at, is_inside)) in enumerate(zip(tree.parts, rows)):
        if number in arrays:
            places.append(at)
            bounds = [index.compare(">=", atom(start, "start"))] if number else []
            bounds += [index.compare("<", atom(stop, "stop"))] if number < len(rows) - 1 else []
            bounds += [is_inside] if is_inside != ir.TRUE else []
            tests.append(ir.both(*bounds) if bounds else ir.TRUE)
            continue
        nearest = min(arrays, key=lambda each: abs(each - number))
        row = tree.parts[nearest][0] if nearest > number else tree.parts[nearest][1] - 1
        places.append(rows[nearest][0] + (atom(row, "row") - index) * stride)
    found = low.atom(places[-1], "at")
    for (_, stop, _), place in reversed(list(zip(tree.parts, places))[:-1]):
        found = low.atom(index.compare("<", atom(stop, "stop")).choose(low.atom(place, "at"), found), "at")
    return found, ir.TRUE if all(is_inside == ir.TRUE for _, is_inside in rows) else ir.either(*tests)


def _moved(low: KernelBuilder, leaf: _Leaf, dims: Dims) -> Any:
    """An operand as an array over the dimensions of a nest; it covers a part of them."""
    ref, atom = leaf.ref, low.shape_env.atom
    lead = len(dims) - len(ref.dims)
    repeated = [own == ir.ONE and wide != ir.ONE for own, wide in zip(ref.dims, leaf.dims[lead:])]
    shift = [ZERO if fixed else each for fixed, each in zip(repeated, leaf.shift[lead:])]
    if isinstance(ref, Virtual):
        element = ref.element

        def moved(indices: Sequence[ir.Expr]) -> ir.Expr:
            places = zip(indices[lead:], repeated, shift)
            found = [ir.ZERO if fixed else i - atom(s) if s != ZERO else i for i, fixed, s in places]
            return element(found)

        return Virtual(ref.dtype, dims, element if ref.uniform else moved, ref.uniform)
    strides = [ir.ZERO if fixed else stride for fixed, stride in zip(repeated, low.strides(ref))]
    at = low.atom(_from_shift(low, ref.offset, shift, strides), "at")
    return Array(ref.buffer, dims, (ir.ZERO,) * lead + tuple(strides), at, whole=False)


def _from_shift(
    low: KernelBuilder, offset: ir.Expr, shift: Sequence[Polynomial], strides: Sequence[ir.Expr]
) -> ir.Expr:
    """The offset of the element at index 0 of a nest, of an array whose own first element is at `shift`."""
    for each, stride in zip(shift, strides):
        if each != ZERO and stride != ir.ZERO:
            place = low.shape_env.atom(each)
            back = place if stride == ir.ONE else place * stride
            offset = _minus(back) if offset == ir.ZERO else offset - back
    return offset


def _minus(expr: ir.Expr) -> ir.Expr:
    """The negative, its first factor's sign changed."""
    if isinstance(expr, ir.Binary):
        return ir.Binary(expr.op, -expr.left, expr.right)
    return -expr
