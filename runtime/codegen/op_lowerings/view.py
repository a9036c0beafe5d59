"""Lowerings of ops that view memory in another way, or whose elements can be computed from their indices.

None of them copies. The result is a rule for finding an element, which becomes part of the loops that use it.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from runtime import dtypes
from runtime.codegen.kernel import scalars
from runtime.codegen.kernel.source import constant_variable
from runtime.codegen.kernel.values import Array, Broadcast, Buffer, Dims, Scalar, Vector, Virtual, product
from runtime.codegen.loops.access import total
from runtime.codegen.loops.loop_nest import broadcast_dims, fail_unless_shapes_fit
from runtime.codegen.lower.state import Lowering, emitter
from runtime.codegen.symbolic.ranges import Atom, number_of
from runtime.dtypes import DType, int64
from runtime.graph.ir import Node, Value
from runtime.kernel_ir import ir
from runtime.kernel_ir.types import INT64
from runtime.ops.rules import brackets

# Numbers of elements that aren't part of the text: LLVM computes with smaller ones, such as a half. float32 has all
# integers below the largest.
_LEAST_COUNT, _MOST_COUNT = 64, 1 << 24
_INFERRED = ir.as_expr(-1)  # stands for a dimension that follows from the others


@emitter("constant")
def _constant(low: Lowering, node: Node) -> None:
    """Scalars are part of the text, arrays are passed as arguments."""
    array = node.attrs["value"].array
    dtype = dtypes.as_dtype(array.dtype)
    if array.ndim == 0:
        number = _of_count(low, array[()], dtype) if dtype.is_floating and not dtype.is_narrow else None
        low.define(node.outputs[0], Scalar(number or scalars.literal(array[()], dtype), dtype))
        return
    constant = (low.names.fresh("c"), np.ascontiguousarray(array))
    low.constants.append(constant)
    buffer = constant[0]
    if array.ndim > 1:
        buffer = low.names.fresh(f"{buffer}_flat")
        low.prologue[buffer] = ir.call("lib.flat", constant_variable(*constant))
    low.define(node.outputs[0], Array(Buffer(buffer, dtype), tuple(low.static_dim(d) for d in array.shape)))


def _of_count(low: Lowering, value: Any, dtype: DType) -> ir.Expr | None:
    """A number of elements of an argument, or its reciprocal, as a float: what a mean divides by. As with sizes, its
    value isn't part of the text, so layers for images of other sizes share a kernel."""
    is_reciprocal = abs(value) < 1
    size = 1 / value if is_reciprocal and value else value
    if not _LEAST_COUNT <= size < _MOST_COUNT:  # or NaN
        return None
    count = round(float(size))
    if count not in low.counts or value != (dtype.np.type(1) / dtype.np.type(count) if is_reciprocal else count):
        return None
    kind = scalars.machine_type(dtype)
    number: ir.Expr = ir.Convert(kind, low.static_dim(count))
    name = low.names.fresh("count")
    low.prologue[name] = scalars.literal(1, dtype) / number if is_reciprocal else number
    return ir.Var(name, kind)


@emitter("identity", "unrecorded", "stop_gradient", "from_replicas", "to_device")
def _identity(low: Lowering, node: Node) -> None:
    low.define(node.outputs[0], low.ref(node.inputs[-1]))


# --- reading shapes --------------------------------------------------------------------------------------------------


@emitter("dim")
def _dim(low: Lowering, node: Node) -> None:
    define_size(low, node, low.dims(node.inputs[0])[node.attrs["axis"]])


@emitter("size")
def _size(low: Lowering, node: Node) -> None:
    define_size(low, node, low.count(low.dims(node.inputs[0])))


@emitter("rank")
def _rank(low: Lowering, node: Node) -> None:
    rank = node.inputs[0].type.rank  # type: ignore[union-attr]
    low.define(node.outputs[0], Scalar(scalars.literal(rank, node.outputs[0].dtype), node.outputs[0].dtype))


@emitter("shape")
def _shape(low: Lowering, node: Node) -> None:
    dtype = node.outputs[0].dtype
    items = tuple(_as_scalar(low, atom, dtype) for atom in low.dims(node.inputs[0]))
    low.define(node.outputs[0], Vector(dtype, items, (low.static_dim(len(items)),)))


def define_size(low: Lowering, node: Node, atom: Atom) -> None:
    """Binds a node's output to a dimension, so that its use as a dimension is recognised as the same one."""
    output = node.outputs[0]
    expr = _as_scalar(low, atom, output.dtype)
    low.define(output, Scalar(expr, output.dtype, low.shape_env.known_size(expr, output.dtype)))


def _as_scalar(low: Lowering, atom: Atom, dtype: DType) -> ir.Expr:
    expr: ir.Expr = scalars.convert(atom, int64, dtype)
    if isinstance(atom, ir.Const):
        expr = scalars.literal(atom.value, dtype)
    low.sizes[expr] = atom
    return expr


# --- reshape and friends ---------------------------------------------------------------------------------------------


def filled(low: Lowering, node: Node, shape: Sequence[int | None], holes: Sequence[Value]) -> Dims:
    """The atoms of a shape attribute, with the given scalars for its None entries; checks that none is negative."""
    rest = iter(holes)
    atoms: list[Atom] = []
    for size in shape:
        if size is None:
            atom = low.size_of(next(rest))
            if not low.is_size(atom):
                message = f"Dimension {{0}} must be >= 0 [Op:{node.op.label}]"
                low.fail_when(atom.compare("<", 0), "InvalidArgumentError", message, node, (atom,), node.op.label)
        else:
            atom = _INFERRED if size == -1 else low.static_dim(size)
        atoms.append(atom)
    return tuple(atoms)


@emitter("reshape")
def _reshape(low: Lowering, node: Node) -> None:
    source = node.inputs[0]
    old = low.dims(source)
    new = _reshaped(low, node, old, _requested(low, node, old))
    ref = low.ref(source)
    if isinstance(ref, Scalar):
        number = low.scalar_name(source)
        ref = Virtual(ref.dtype, (), lambda indices: number, uniform=True)
    if isinstance(ref, Virtual) and ref.uniform:
        bind(low, node, Virtual(ref.dtype, new, ref.element, uniform=True))
        return
    if isinstance(ref, Array) and ref.strides is None:
        bind(low, node, replace(ref, dims=new))
        return
    bind(low, node, replace(low.array(source), dims=new))


def _requested(low: Lowering, node: Node, old: Dims) -> Dims:
    """The requested dimensions. One that is given at run time may be -1; it is computed here."""
    shape = node.attrs["shape"]
    rest = iter(node.inputs[1:])
    atoms: list[Atom] = []
    unknown = []
    for position, size in enumerate(shape):
        if size is not None:
            atoms.append(_INFERRED if size == -1 else low.static_dim(size))
            continue
        atom = low.size_of(next(rest))
        if not low.is_size(atom):
            least = 0 if -1 in shape else -1
            message = f"Size {position} must be non-negative, not {{0}} [Op:Reshape]"
            low.fail_when(atom.compare("<", least), "InvalidArgumentError", message, node, (atom,), "Reshape")
            unknown.append(position)
        atoms.append(atom)
    if -1 in shape or not unknown:
        return tuple(atoms)
    minus = total([atoms[i].compare("==", -1) for i in unknown])
    if len(unknown) > 1:
        message = "Only one input size may be -1 [Op:Reshape]"
        low.fail_when(minus.compare(">", 1), "InvalidArgumentError", message, node, (), "Reshape")
    # The product of the dimensions other than -1.
    part = low.assign(
        product([a.compare("!=", -1).choose(a, 1) if i in unknown else a for i, a in enumerate(atoms)]), "part"
    )
    others = [a.compare("==", -1).choose(1, a) if i in unknown else a for i, a in enumerate(atoms)]
    inferred = low.assign(_size_that_fits(low.atom(product(old)), part, old, others), "n")
    for i in unknown:
        atoms[i] = low.assign(atoms[i].compare("!=", -1).choose(atoms[i], inferred), "n")
    return tuple(atoms)


def _size_that_fits(whole: Atom, part: Atom, old: Sequence[ir.Expr], known: Sequence[ir.Expr]) -> ir.Expr:
    """The dimension that stands as -1: of `whole` elements, beside dimensions whose product is `part`. If that is 0,
    it comes from the dimensions that aren't 0, as in `ops/arrays/shape_ops.py`."""

    def without_zeros(dims: Sequence[ir.Expr]) -> ir.Expr:
        return product([d.compare("!=", 0).choose(d, 1) for d in dims if d != ir.ONE])

    return part.compare("!=", 0).choose(whole // part, without_zeros(old) // without_zeros(known))


def _reshaped(low: Lowering, node: Node, old: Dims, new: Dims) -> Dims:
    """The new dimensions, with -1 replaced; adds a check if the number of elements might differ."""
    static = node.outputs[0].shape
    left, right = (Counter(d for d in dims if d != ir.ONE) for dims in (old, new))
    if _INFERRED in new:
        known = [d for d in new if d not in (_INFERRED, ir.ONE)]
        rest = [d for d in old if d != ir.ONE]
        for d in known:
            if d not in rest:
                break
            rest.remove(d)
        else:
            # The known dimensions are among the old ones, so the rest is the product of the others.
            return tuple(low.count(rest) if d == _INFERRED else d for d in new)
        whole, part = low.atom(product(old)), low.atom(product(known))
        never_empty = low.shape_env.is_nonnegative(low.shape_env.product(known) - 1)
        size = low.assign(whole // part if never_empty else _size_that_fits(whole, part, old, known), "n")
        message = "Input to reshape is a tensor with {0} values, but the requested shape requires a multiple of {1}"
        low.fail_when(
            (size * part).compare("!=", whole),
            "InvalidArgumentError",
            f"{message} [Op:Reshape]",
            node,
            (whole, part),
            "Reshape",
        )
        return tuple(size if d == _INFERRED else d for d in new)
    if left != right and not (None not in static and None not in node.inputs[0].shape):
        whole, wanted = low.count(old), low.count(new)
        if low.shape_env.are_equal(whole, wanted):
            return new
        message = "Input to reshape is a tensor with {0} values, but the requested shape has {1} [Op:Reshape]"
        low.fail_when(whole.compare("!=", wanted), "InvalidArgumentError", message, node, (whole, wanted), "Reshape")
    return new


def bind(low: Lowering, node: Node, ref: Any, index: int = 0) -> None:
    """Binds an output; an output of rank 0 is read from memory now."""
    output = node.outputs[index]
    if output.type.rank == 0 and not isinstance(ref, Scalar):  # type: ignore[union-attr]
        if isinstance(ref, Virtual):
            ref = Scalar(ref.element(()), ref.dtype)
        else:
            # Not as an expression: the memory may be written before the expression is used.
            ref = Scalar(low.assign(ir.load(ref.buffer.variable, ref.offset), output.name), ref.dtype)
    low.define(output, ref)


@emitter("expand_dims")
def _expand_dims(low: Lowering, node: Node) -> None:
    ref: Any = low.ref(node.inputs[0])
    axes = node.attrs["axis"]
    if isinstance(ref, Scalar):
        number = low.scalar_name(node.inputs[0])
        ref = Virtual(ref.dtype, (), lambda indices: number, uniform=True)
    elif isinstance(ref, Broadcast):
        ref = low.array(node.inputs[0])
    dims = list(ref.dims)
    strides = list(ref.strides) if isinstance(ref, Array) and ref.strides is not None else None
    for axis in axes:
        dims.insert(axis, ir.ONE)
        if strides is not None:
            strides.insert(axis, ir.ZERO)
    if isinstance(ref, Virtual):
        element = ref.element

        def inner(indices: Sequence[ir.Expr]) -> ir.Expr:
            return element([index for axis, index in enumerate(indices) if axis not in axes])

        low.define(node.outputs[0], Virtual(ref.dtype, tuple(dims), inner, ref.uniform))
        return
    if isinstance(ref, Vector):
        low.define(node.outputs[0], replace(ref, dims=tuple(dims)))
        return
    low.define(node.outputs[0], replace(ref, dims=tuple(dims), strides=None if strides is None else tuple(strides)))


@emitter("squeeze")
def _squeeze(low: Lowering, node: Node) -> None:
    ref: Any = low.ref(node.inputs[0])
    axes = node.attrs["axis"]
    if not axes:
        low.define(node.outputs[0], ref)
        return
    if isinstance(ref, (Vector, Broadcast)):
        ref = low.array(node.inputs[0])
    for axis in axes:
        atom = ref.dims[axis]
        if atom != ir.ONE:
            message = f"Can not squeeze dim[{axis}], expected a dimension of 1, got {{0}} [Op:Squeeze]"
            low.fail_when(atom.compare("!=", 1), "InvalidArgumentError", message, node, (atom,), "Squeeze")
    kept = [axis for axis in range(len(ref.dims)) if axis not in axes]
    dims = tuple(ref.dims[axis] for axis in kept)
    if isinstance(ref, Virtual):
        element, rank = ref.element, len(ref.dims)

        def inner(indices: Sequence[ir.Expr]) -> ir.Expr:
            rest = iter(indices)
            return element([next(rest) if axis in kept else ir.ZERO for axis in range(rank)])

        bind(low, node, Virtual(ref.dtype, dims, inner, ref.uniform))
        return
    strides = None if ref.strides is None else tuple(ref.strides[axis] for axis in kept)
    bind(low, node, replace(ref, dims=dims, strides=strides))


@emitter("transpose")
def _transpose(low: Lowering, node: Node) -> None:
    ref: Any = low.ref(node.inputs[0])
    perm = node.attrs["perm"]
    if perm == tuple(range(len(perm))):
        low.define(node.outputs[0], ref)
        return
    if isinstance(ref, Virtual):
        element = ref.element
        inverse = sorted(range(len(perm)), key=perm.__getitem__)
        low.define(
            node.outputs[0],
            Virtual(
                ref.dtype,
                tuple(ref.dims[p] for p in perm),
                lambda indices: element([indices[i] for i in inverse]),
                ref.uniform,
            ),
        )
        return
    if not isinstance(ref, Array):
        ref = low.array(node.inputs[0])
    strides = low.strides(ref)
    moved = replace(ref, dims=tuple(ref.dims[p] for p in perm), strides=tuple(strides[p] for p in perm))
    low.define(node.outputs[0], moved)


@emitter("reverse")
def _reverse(low: Lowering, node: Node) -> None:
    array = low.ref(node.inputs[0])
    if not isinstance(array, Array):
        array = low.array(node.inputs[0])
    strides = list(low.strides(array))
    offset: list[ir.Expr] = [] if array.offset == ir.ZERO else [array.offset]
    for axis in node.attrs["axis"]:
        offset.append((array.dims[axis] - 1) * strides[axis])
        strides[axis] = low.assign(-strides[axis], "stride")
    start = low.atom(total(offset), "start")
    low.define(node.outputs[0], replace(array, strides=tuple(strides), offset=start))


# --- other dtypes ----------------------------------------------------------------------------------------------------


@emitter("bitcast")
def _bitcast(low: Lowering, node: Node) -> None:
    """Between dtypes of the same width it is elementwise. Otherwise the last dimension of one side holds the parts of
    the other's elements, lowest bits first."""
    source, output = node.inputs[0], node.outputs[0]
    old, new = source.dtype, output.dtype
    if old.size == new.size:
        low.emit_elementwise(node)
        return
    dims = low.dims(source)
    array = low.solid(low.ref(source)) if not dims else low.array(source)
    narrow, wide = _unsigned(min(old.size, new.size)), _unsigned(max(old.size, new.size))
    parts, step = wide.size // narrow.size, 8 * narrow.size
    is_split = old.size > new.size
    if not is_split and dims[-1] != low.static_dim(parts):
        shown = ",".join(f"{{{k}}}" for k in range(len(dims)))
        message = f"Cannot bitcast from {old.label} to {new.label}: shape [{shown}] must end with {parts} [Op:Bitcast]"
        low.fail_when(dims[-1].compare("!=", parts), "InvalidArgumentError", message, node, dims, "Bitcast")
    found = (*dims, low.static_dim(parts)) if is_split else dims[:-1]
    elements = low.atom(product(dims if is_split else found))
    out, index = low.new_buffer(product(found), new, output.name), low.index_name(0)
    with low.nested() as block:
        if is_split:
            whole = scalars.reinterpret(ir.load(array.buffer.variable, index), old, wide)
            whole = low.assign(scalars.convert(whole, wide, dtypes.uint64), "bits")
            for k in range(parts):
                part = scalars.convert(_shifted(">>", whole, k * step), dtypes.uint64, narrow)
                low.add(ir.store(out.variable, _part(index, parts, k), scalars.reinterpret(part, narrow, new)))
        else:
            pieces = []
            for k in range(parts):
                part = scalars.reinterpret(ir.load(array.buffer.variable, _part(index, parts, k)), old, narrow)
                pieces.append(_shifted("<<", scalars.convert(part, narrow, dtypes.uint64), k * step))
            joined = functools.reduce(lambda a, b: ir.Binary("|", a, b), pieces)
            low.add(
                ir.store(
                    out.variable, index, scalars.reinterpret(scalars.convert(joined, dtypes.uint64, wide), wide, new)
                )
            )
    low.nest(index, elements, block, low.is_large([node]))
    bind(low, node, Array(out, found))


def _unsigned(size: int) -> DType:
    return dtypes.as_dtype(f"uint{8 * size}")


def _part(index: ir.Var, parts: int, k: int) -> ir.Expr:
    return index * parts + k if k else index * parts


def _shifted(op: str, bits: ir.Expr, by: int) -> ir.Expr:
    return ir.Binary(op, bits, scalars.literal(by, dtypes.uint64)) if by else bits


# --- broadcasting ----------------------------------------------------------------------------------------------------


@emitter("broadcast_to")
def _broadcast_to(low: Lowering, node: Node) -> None:
    broadcast(low, node, filled(low, node, node.attrs["shape"], node.inputs[1:]))


@emitter("broadcast_like")
def _broadcast_like(low: Lowering, node: Node) -> None:
    broadcast(low, node, low.dims(node.inputs[1]))


def broadcast(low: Lowering, node: Node, dims: Dims) -> None:
    """Binds a node's output to its first operand, broadcast to `dims`."""
    source = node.inputs[0]
    own = low.dims(source)

    def fail(wrong: ir.Expr) -> None:
        fail_unless_shapes_fit(low, wrong, node, (own, dims))

    wide = broadcast_dims(low, dims, own, node, fail)
    for wanted, got in zip(dims, wide):
        if wanted != got:
            fail(wanted.compare("!=", got))
    ref: Any = low.ref(source)
    if not dims or own == dims:
        low.define(node.outputs[0], ref)
        return
    if isinstance(ref, Scalar):
        number = low.scalar_name(source)
        low.define(node.outputs[0], Virtual(ref.dtype, dims, lambda indices: number, uniform=True))
    elif isinstance(ref, Virtual) and ref.uniform:
        low.define(node.outputs[0], Virtual(ref.dtype, dims, ref.element, uniform=True))
    elif isinstance(ref, Broadcast):
        low.define(node.outputs[0], Broadcast(ref.source, dims))
    elif isinstance(ref, Array) and ref.strides is None:
        low.define(node.outputs[0], Broadcast(ref, dims))
    else:
        low.define(node.outputs[0], Broadcast(low.array(source), dims))


@emitter("zeros_like", "ones_like")
def _constant_like(low: Lowering, node: Node) -> None:
    output = node.outputs[0]
    number = scalars.literal(0 if node.op.name == "zeros_like" else 1, output.dtype)
    if not output.type.rank:  # type: ignore[union-attr]
        low.define(output, Scalar(number, output.dtype))
        return
    low.define(output, Virtual(output.dtype, low.dims(node.inputs[0]), lambda indices: number, uniform=True))


@emitter("ensure_shape")
def _ensure_shape(low: Lowering, node: Node) -> None:
    dims, expected = low.dims(node.inputs[0]), node.attrs["shape"]
    message = f"Shape of tensor input {{}} is not compatible with expected shape {brackets(expected)}."
    for atom, size in zip(dims, expected or ()):
        if size is not None and atom != low.static_dim(size):
            fail_unless_shapes_fit(low, atom.compare("!=", low.static_dim(size)), node, (dims,), message)
    low.define(node.outputs[0], low.ref(node.inputs[0]))


# --- ranges ----------------------------------------------------------------------------------------------------------


def _check_ends(low: Lowering, node: Node, wrong: ir.Expr, is_up: bool) -> None:
    """Adds the check of a range's limit. is_up: whether its step is positive."""
    dtype = node.outputs[0].dtype
    details: list[ir.Expr] = []
    shown: list[str] = []
    for value in node.inputs[:2]:
        number = number_of(low.ref(value))
        shown.append(f"{{{len(details)}}}" if number is None else str(number))
        if number is None:
            expr = low.scalar_name(value)
            details.append(ir.call("lib.bits", expr) if dtype.is_floating else ir.Convert(INT64, expr))
    compared = "Requires start <= limit when delta > 0" if is_up else "Requires start >= limit when delta < 0"
    message = f"{compared}: {'/'.join(shown)} [Op:Range]"
    low.fail_when(wrong, "InvalidArgumentError", message, node, details, "range", [dtype] * len(details))


@emitter("range")
def _range(low: Lowering, node: Node) -> None:
    output = node.outputs[0]
    first, last, by = (number_of(low.ref(v)) for v in node.inputs)
    size: Atom | None = None
    start: ir.Expr
    delta: ir.Expr
    if first is not None and last is not None and by and (last - first) * by >= 0:
        size = low.static_dim(len(range(first, last, by)))
        start, delta = (low.scalar(node.inputs[k]) for k in (0, 2))
    elif (first, by) == (0, 1) and output.shape[0] is None:
        start, delta = (low.scalar(node.inputs[k]) for k in (0, 2))
        size = low.size_of(node.inputs[1])
        if not low.is_size(size):
            _check_ends(low, node, size.compare("<", 0), is_up=True)
    else:
        start, limit, delta = (low.scalar_name(v) for v in node.inputs)
        if not by:
            message = f"Requires delta != 0: {output.dtype.np.type(0)} [Op:Range]"
            low.fail_when(delta.compare("==", 0), "InvalidArgumentError", message, node, (), "range")
    if size is None and output.shape[0] is not None:
        size = low.static_dim(output.shape[0])
    elif size is None:
        for is_up, sign in ((True, ">"), (False, "<")):
            wrong = start.compare(sign, limit)
            if by is None:
                _check_ends(low, node, ir.both(delta.compare(sign, 0), wrong), is_up)
            elif (by > 0) == is_up:
                _check_ends(low, node, wrong, is_up)
        kind = "float" if output.dtype.is_floating else "int"
        size = low.assign(ir.call(f"lib.{kind}_range_length", start, limit, delta), "n")
        if kind == "float":
            message = "Requires a finite number of elements [Op:Range]"
            low.fail_when(size.compare("<", 0), "InvalidArgumentError", message, node, (), "range")
    own = scalars.machine_type(output.dtype)

    def element(indices: Sequence[ir.Expr]) -> ir.Expr:
        return scalars.narrow(start + ir.Convert(own, indices[0]) * delta, output.dtype)

    low.define(output, Virtual(output.dtype, (size,), element))
