"""Lowerings of ops that join or split arrays: segments are copied into views of the result, or are views."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from runtime.codegen import cost_model
from runtime.codegen.kernel import scalars
from runtime.codegen.kernel.values import Array, Broadcast, Dims, Scalar, Vector, Virtual, product
from runtime.codegen.loops.access import total as total_of
from runtime.codegen.loops.concat_views import ConcatView, part, segment_of
from runtime.codegen.loops.loop_nest import fail_unless_shapes_fit
from runtime.codegen.lower.state import Lowering, emitter
from runtime.codegen.op_lowerings.view import bind
from runtime.codegen.symbolic.ranges import Atom
from runtime.graph.ir import Node
from runtime.kernel_ir import ir
from runtime.kernel_ir.analysis.polynomial import ZERO, Polynomial


def _need_equal(low: Lowering, node: Node, shapes: Sequence[Dims], axis: int | None, message: str) -> None:
    """Adds checks that shapes are equal, but for an axis. message: `{dim}` and `{position}` in it stand for the
    dimension and the operand that differ, `{}` for the shapes of the first operand and of that one."""
    for position, shape in enumerate(shapes[1:], 1):
        for dim, (got, wanted) in enumerate(zip(shape, shapes[0])):
            if dim != axis and not low.shape_env.are_equal(got, wanted):
                text = message.replace("{dim}", str(dim)).replace("{position}", str(position))
                fail_unless_shapes_fit(low, got.compare("!=", wanted), node, (shapes[0], shape), text)


_CONCAT = "ConcatOp : Dimension {dim} in both shapes must be equal: shape[0] = {} vs. shape[{position}] = {}"
_STACK = "Shapes of all inputs must match: values[0].shape = {} != values[{position}].shape = {}"


def _small_items(refs: Sequence[Any]) -> tuple[ir.Expr, ...] | None:
    """The elements of vectors in order, if none of them has to be stored."""
    if not all(isinstance(ref, Vector) for ref in refs):
        return None
    items = tuple(item for ref in refs for item in ref.items)
    return items if len(items) <= cost_model.VECTOR_IN_VARIABLES else None


def _is_static(node: Node) -> bool:
    """Whether all sizes are static and positive."""
    if not node.outputs[0].type.rank or 0 in (node.outputs[0].shape or (0,)):  # type: ignore[union-attr]
        return False
    return all(None not in v.shape for v in (*node.inputs, *node.outputs))


def _may_wait(low: Lowering, node: Node) -> bool:
    """Whether the concatenated view may stay a concatenated view for now."""
    return _is_static(node) or (low.shape_env.assuming and not _has_nothing(node))


def _has_nothing(node: Node) -> bool:
    return any(not v.type.rank or 0 in v.shape for v in (*node.inputs, *node.outputs))  # type: ignore[union-attr]


def _added(low: Lowering, atoms: Dims) -> Atom:
    """The sum of dimensions."""
    return low.shape_env.atom(sum(map(low.shape_env.of, atoms), ZERO), expr=low.of_arguments(total_of(atoms)))


@emitter("concat")
def _concat(low: Lowering, node: Node) -> None:
    axis = node.attrs["axis"]
    few = all(isinstance(low.region.env[v], Vector) for v in node.inputs)
    if _may_wait(low, node) and len(node.inputs) <= cost_model.CONCAT_VIEW_SEGMENTS and not few:
        shapes = [low.dims(v) for v in node.inputs]
        _need_equal(low, node, shapes, axis, _CONCAT)
        lengths = [low.shape_env.of(shape[axis]) for shape in shapes]
        total = _added(low, tuple(shape[axis] for shape in shapes))
        sizes = low.type_dims(node.outputs[0].type, (*shapes[0][:axis], total, *shapes[0][axis + 1 :]))  # type: ignore[arg-type]
        segments = tuple((length, segment_of(low, v)) for length, v in zip(lengths, node.inputs) if length != ZERO)
        low.wait(node.outputs[0], ConcatView(node.outputs[0].dtype, sizes, axis, segments))
        return
    refs: list[Any] = [low.ref(v) for v in node.inputs]
    dims = list(refs[0].dims)
    _need_equal(low, node, [ref.dims for ref in refs], axis, _CONCAT)
    items = _small_items(refs) if axis == 0 else None
    if items is not None:
        rows = sum(v.shape[0] for v in node.inputs)
        low.define(node.outputs[0], Vector(refs[0].dtype, items, (low.static_dim(rows), *dims[1:])))
        return
    dims[axis] = _added(low, tuple(ref.dims[axis] for ref in refs))
    out = Array(low.new_buffer(product(dims), node.outputs[0].dtype, node.outputs[0].name), tuple(dims))
    start: Atom = ir.ZERO
    for position, ref in enumerate(refs):
        low.copy_into(part(low, out, axis, start, ref.dims[axis]), ref)
        if position < len(refs) - 1:
            start = ref.dims[axis] if start == ir.ZERO else low.atom(start + ref.dims[axis], "start")
    low.define(node.outputs[0], out)


@emitter("stack")
def _stack(low: Lowering, node: Node) -> None:
    axis = node.attrs["axis"]
    output = node.outputs[0]
    refs: list[Any] = [low.ref(v) for v in node.inputs]
    count = low.static_dim(len(refs))
    if isinstance(refs[0], Scalar):
        items = tuple(low.scalar_name(v) for v in node.inputs)
        vector = Vector(output.dtype, items, (count,))
        low.define(output, vector if len(items) <= cost_model.VECTOR_IN_VARIABLES else low.solid(vector, output.name))
        return
    _need_equal(low, node, [ref.dims for ref in refs], None, _STACK)
    together = _small_items(refs) if axis == 0 else None
    if together is not None:
        low.define(output, Vector(output.dtype, together, (count, *refs[0].dims)))
        return
    dims = (*refs[0].dims[:axis], count, *refs[0].dims[axis:])
    out = Array(low.new_buffer(product(dims), output.dtype, output.name), dims)
    for index, ref in enumerate(refs):
        low.copy_into(_slice_at(low, out, axis, index), ref)
    low.define(output, out)


def _slice_at(low: Lowering, array: Array, axis: int, index: int) -> Array:
    found = part(low, array, axis, ir.as_expr(index), ir.ONE)
    dims = found.dims[:axis] + found.dims[axis + 1 :]
    strides = None if found.strides is None else found.strides[:axis] + found.strides[axis + 1 :]
    return replace(found, dims=dims, strides=strides)


@emitter("unstack")
def _unstack(low: Lowering, node: Node) -> None:
    axis, number = node.attrs["axis"], node.attrs["num"]
    ref: Any = low.ref(node.inputs[0])
    if isinstance(ref, Vector) and len(ref.dims) == 1:
        for output, item in zip(node.outputs, ref.items):
            low.define(output, Scalar(item, output.dtype))
        return
    array = ref if isinstance(ref, Array) else low.array(node.inputs[0])
    wanted = low.static_dim(number)
    if not low.shape_env.are_equal(array.dims[axis], wanted):
        message = f"Input shape axis {axis} must equal {number}, got shape {{}}"
        fail_unless_shapes_fit(low, array.dims[axis].compare("!=", wanted), node, (array.dims,), message)
    for index in range(number):
        bind(low, node, _slice_at(low, array, axis, index), index)


@emitter("split")
def _split(low: Lowering, node: Node) -> None:
    axis, sizes = node.attrs["axis"], node.attrs["sizes"]
    ref: Any = low.ref(node.inputs[0])
    array = ref if isinstance(ref, Array) else low.array(node.inputs[0])
    atoms = [low.static_dim(size) for size in sizes]
    if node.inputs[0].shape[axis] is None:
        total = low.atom(total_of(atoms))
        message = "The sizes of a split add up to {1}, but the dimension is {0} [Op:Split]"
        wrong = array.dims[axis].compare("!=", total)
        low.fail_when(wrong, "InvalidArgumentError", message, node, (array.dims[axis], total), "split")
    start: Atom = ir.ZERO
    for index, atom in enumerate(atoms):
        low.define(node.outputs[index], part(low, array, axis, start, atom))
        if index < len(atoms) - 1:
            start = atom if start == ir.ZERO else low.atom(start + atom, "start")


@emitter("tile")
def _tile(low: Lowering, node: Node) -> None:
    """Repetitions along each dimension: the operand broadcast to (m0, d0, m1, d1, ...)."""
    source, output = node.inputs[0], node.outputs[0]
    ref = low.ref(source)
    if isinstance(ref, Scalar):
        low.define(output, ref)
        return
    holes = iter(node.inputs[1:])
    old = low.dims(source)
    factors: list[Atom] = []
    for factor in node.attrs["multiples"]:
        if factor is None:
            atom = low.size_of(next(holes))
            message = f"Expected multiples[{len(factors)}] >= 0, but got {{0}} [Op:Tile]"
            low.fail_when(atom.compare("<", 0), "InvalidArgumentError", message, node, (atom,), "tile")
            factors.append(atom)
        else:
            factors.append(low.static_dim(factor))
    dims = tuple(low.atom(product((f, d))) for f, d in zip(factors, old))
    if isinstance(ref, Virtual) and ref.uniform:
        low.define(output, Virtual(ref.dtype, dims, ref.element, uniform=True))
        return
    wide = tuple(atom for pair in zip(factors, old) for atom in pair)
    narrow = tuple(atom for d in old for atom in (ir.ONE, d))
    buffer = low.new_buffer(product(dims), output.dtype, output.name)
    low.copy_into(Array(buffer, wide), Broadcast(replace(low.array(source), dims=narrow), wide))
    low.define(output, Array(buffer, dims))


def _join_padded(low: Lowering, node: Node) -> None:
    (source,), output = node.inputs, node.outputs[0]
    number = scalars.literal(node.attrs["constant_values"], output.dtype)
    found, sizes, atom = segment_of(low, source), list(map(low.shape_env.of, low.dims(source))), low.shape_env.atom
    for axis, (before, after) in reversed(list(enumerate(node.attrs["paddings"]))):
        lengths = (Polynomial.of(before), sizes[axis], Polynomial.of(after))
        sizes[axis] = sum(lengths, ZERO)
        rows = [tuple(atom(d) for d in (*sizes[:axis], n, *sizes[axis + 1 :])) for n in lengths]
        edge = [Virtual(output.dtype, dims, lambda indices: number, uniform=True) for dims in rows]
        segments = zip(lengths, (edge[0], found, edge[2]))
        dims = low.type_dims(output.type, [atom(d) for d in sizes])  # type: ignore[arg-type]
        if before or after:
            found = ConcatView(output.dtype, dims, axis, tuple((n, each) for n, each in segments if n != ZERO))
    if isinstance(found, ConcatView):
        low.wait(output, found)
    else:
        low.define(output, low.ref(source))


@emitter("pad")
def _pad(low: Lowering, node: Node) -> None:
    source, output = node.inputs[0], node.outputs[0]
    paddings = node.attrs["paddings"]
    if _may_wait(low, node) and 0 not in source.shape:
        _join_padded(low, node)
        return
    ref = low.ref(source)
    if isinstance(ref, Scalar):
        low.define(output, ref)
        return
    old = low.dims(source)
    dims = tuple(
        d if (a, b) == (0, 0) else _added(low, (low.static_dim(a), d, low.static_dim(b)))
        for d, (a, b) in zip(old, paddings)
    )
    dims = low.type_dims(output.type, dims)  # type: ignore[arg-type]
    number = scalars.literal(node.attrs["constant_values"], output.dtype)
    out = low.solid(Virtual(output.dtype, dims, lambda indices: number, uniform=True), output.name)
    view = out
    for axis, (before, _) in enumerate(paddings):
        view = part(low, view, axis, low.static_dim(before), old[axis])
    strides = low.strides(out)
    low.copy_into(replace(view, strides=strides), ref)
    low.define(output, out)
