"""Lowerings of stacks: growing flat buffers with their tops in integer variables.

    %s2 = stack_push(%s, %x)            if s_top + n > s_data.size:
                                            s_data = lib.grown(s_data, s_top, s_top + n)
                                →       for i in range(n):
                                            s_data[s_top + i] = x[i]
                                        s_top = s_top + n

A handle's variables are reused only if no other handle uses them (`StackRef.shared`), since a push overwrites elements
above the top that an older handle may still have.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from runtime.codegen.kernel import scalars
from runtime.codegen.kernel.values import NO_VARIABLE, Array, Buffer, Scalar, StackRef, Vector, product
from runtime.codegen.loops.scalarize import is_small
from runtime.codegen.lower.state import Lowering, emitter
from runtime.codegen.op_lowerings.control_flow import handle, own_stack
from runtime.codegen.symbolic.ranges import Atom
from runtime.dtypes import DType, int64
from runtime.graph.ir import Node
from runtime.kernel_ir import ir
from runtime.shapes import element_count, is_static
from runtime.types import StackType


@emitter("stack_empty")
def _empty(low: Lowering, node: Node) -> None:
    output = node.outputs[0]
    assert isinstance(output.type, StackType)
    element = output.type.element
    rank = element.rank or 0
    base = output.name or "saved"
    size: Atom = ir.ZERO
    room: Atom = ir.ZERO
    if node.inputs and is_static(element.shape):
        count = low.scalar_name(node.inputs[0])
        room = low.assign(ir.call("max", count, 0), f"{base}_room")
        size = low.atom(product((room, *[low.static_dim(d) for d in element.shape or () if d is not None])))
    data = _allocated(low, size, element.dtype, f"{base}_data")
    top = low.assign(ir.ZERO, f"{base}_top")
    dims = _allocated(low, low.atom(product((room, ir.as_expr(rank)))), int64, f"{base}_dims") if rank else NO_VARIABLE
    dims_top = low.assign(ir.ZERO, f"{base}_dims_top") if rank else NO_VARIABLE
    low.define(output, StackRef(element.dtype, rank, data, dims, top, dims_top))


def _allocated(low: Lowering, size: ir.Expr, dtype: DType, base: str) -> ir.Var:
    """A variable for the memory of a stack, which pushes may replace."""
    element = scalars.machine_type(dtype)
    variable = ir.array_variable(low.names.fresh(base), element)
    low.add(ir.Alloc(variable.name, size, element))
    return variable


@emitter("stack_push")
def _push(low: Lowering, node: Node) -> None:
    value = node.inputs[1]
    stack = handle(low, node.inputs[0])
    ref: Any = low.ref(value)
    # The buffers of a region's input get new variables: the input may be a carry, whose variables change only at the
    # end of a trip.
    is_own = stack.shared or node.inputs[0].node is not None
    if stack.shared:
        stack = own_stack(low, stack)
    top = stack.top
    if isinstance(ref, Scalar) and stack.reserved:
        low.add(ir.store(stack.data, top, ref.expr))
        new_top = low.assign(top + 1, stack.top.name)
        low.define(node.outputs[0], replace(stack, top=new_top, reserved=False))
        return
    data = stack.data if is_own else low.assign(stack.data, stack.data.name)
    if isinstance(ref, Scalar):
        _reserve(low, data, top, top + 1)
        low.add(ir.store(data, top, ref.expr))
        new_top = low.assign(top + 1, stack.top.name)
        low.define(node.outputs[0], replace(stack, data=data, top=new_top))
        return
    size = low.atom(product(ref.dims))
    new_top = low.assign(top + size, stack.top.name)
    _reserve(low, data, top, new_top)
    if isinstance(ref, Vector):
        for number, item in enumerate(ref.items):
            low.add(ir.store(data, top + number, item))
    else:
        low.copy_into(Array(Buffer(data.name, stack.dtype), ref.dims, None, top), ref)
    dims = stack.dims if is_own else low.assign(stack.dims, stack.dims.name)
    old_top = stack.dims_top
    dims_top = low.assign(old_top + stack.rank, stack.dims_top.name)
    _reserve(low, dims, old_top, dims_top)
    for axis, atom in enumerate(ref.dims):
        low.add(ir.store(dims, old_top + axis, atom))
    low.define(node.outputs[0], replace(stack, data=data, top=new_top, dims=dims, dims_top=dims_top))


def _reserve(low: Lowering, buffer: ir.Var, used: ir.Expr, needed: ir.Expr) -> None:
    growth = ir.assign(buffer, ir.call("lib.grown", buffer, used, needed))
    low.branch(needed.compare(">", ir.Size(buffer)), [growth])


@emitter("stack_pop")
def _pop(low: Lowering, node: Node) -> None:
    stack = handle(low, node.inputs[0])
    rest, value = node.outputs
    message = "pop from an empty stack"
    if not stack.rank:
        if not stack.reserved:
            low.fail_when(stack.top.compare("==", 0), "IndexError", message, node)
        top = low.assign(stack.top - 1, stack.top.name)
        low.define(rest, replace(stack, top=top, reserved=False))
        low.define(value, Scalar(low.assign(ir.load(stack.data, top), value.name), stack.dtype))
        return
    low.fail_when(stack.dims_top.compare("==", 0), "IndexError", message, node)
    dims_top = low.assign(stack.dims_top - stack.rank, stack.dims_top.name)
    assert value.is_tensor
    atoms: list[Atom] = []
    for axis, size in enumerate(value.shape):
        kept = ir.load(stack.dims, dims_top + axis)
        atoms.append(low.static_dim(size) if size is not None else low.assign(kept, "n"))
    size = low.atom(product(atoms))
    top = low.assign(stack.top - size, stack.top.name)
    if low.region.in_loop and is_small(value):
        places = [ir.load(stack.data, top + number) for number in range(math.prod(value.shape))]
        low.define(rest, replace(stack, top=top, dims_top=dims_top))
        low.define(value, Vector(stack.dtype, tuple(low.assign(each, value.name) for each in places), tuple(atoms)))
        return
    # A copy, since the next push overwrites elements above the top.
    taken = low.new_buffer(size, stack.dtype, value.name)
    view = Array(Buffer(stack.data.name, stack.dtype), tuple(atoms), None, top)
    low.copy_into(Array(taken, tuple(atoms)), view)
    low.define(rest, replace(stack, top=top, dims_top=dims_top))
    low.define(value, Array(taken, tuple(atoms)))


@emitter("stack_size")
def _size(low: Lowering, node: Node) -> None:
    stack: Any = low.ref(node.inputs[0])
    size = stack.dims_top // stack.rank if stack.rank else stack.top
    low.define(node.outputs[0], Scalar(low.assign(size, "size"), int64))


@emitter("stack_join")
def _join(low: Lowering, node: Node) -> None:
    stack, segment = (handle(low, v) for v in node.inputs)
    if stack.shared:
        stack = own_stack(low, stack)
    joined: dict[str, Any] = {}
    for buffer, used, dtype in _buffers(stack):
        old, count = getattr(stack, used), getattr(segment, used)
        top = low.assign(old + count, used)
        memory = low.assign(getattr(stack, buffer), getattr(stack, buffer).name)
        _reserve(low, memory, old, top)
        part = Array(Buffer(getattr(segment, buffer).name, dtype), (count,))
        low.copy_into(Array(Buffer(memory.name, dtype), (count,), None, old), part)
        joined |= {buffer: memory, used: top}
    low.define(node.outputs[0], replace(stack, **joined))
    size = stack.dims_top // stack.rank if stack.rank else stack.top
    low.define(node.outputs[1], Scalar(low.assign(size, "size"), int64))


@emitter("stack_split")
def _split(low: Lowering, node: Node) -> None:
    stack, size = handle(low, node.inputs[0]), low.scalar_name(node.inputs[1])
    rest, segment = node.outputs
    assert isinstance(rest.type, StackType)
    counted = stack.dims_top if stack.rank else stack.top
    first = low.assign(size * stack.rank if stack.rank else ir.as_expr(size), counted.name)
    outside = ir.either(first.compare("<", 0), first.compare(">", counted))
    low.fail_when(outside, "IndexError", "split of a stack beyond its end", node)
    lowest = {"top": first}
    if stack.rank:
        length = element_count(rest.type.element.shape)
        above = ir.call("lib.scalar_count", stack.dims, stack.rank, first, counted)
        top = stack.top - above if length is None else size * length
        lowest = {"top": low.assign(top, stack.top.name), "dims_top": first}
    low.define(rest, replace(stack, **lowest))  # type: ignore[arg-type]
    if not low.region.uses[segment]:
        return
    parts: dict[str, Any] = {}
    for buffer, used, dtype in _buffers(stack):
        count = low.assign(getattr(stack, used) - lowest[used], "count")
        memory = _allocated(low, count, dtype, getattr(stack, buffer).name)
        part = Array(Buffer(getattr(stack, buffer).name, dtype), (count,), None, lowest[used])
        low.copy_into(Array(Buffer(memory.name, dtype), (count,)), part)
        parts |= {buffer: memory, used: count}
    low.define(segment, replace(stack, **parts, shared=False))


@emitter("stack_zeros")
def _zeros(low: Lowering, node: Node) -> None:
    stack = own_stack(low, handle(low, node.inputs[0]))
    zero = Scalar(scalars.literal(0, stack.dtype), stack.dtype)
    low.copy_into(Array(Buffer(stack.data.name, stack.dtype), (stack.top,)), zero)
    low.define(node.outputs[0], stack)


@emitter("stack_add")
def _add(low: Lowering, node: Node) -> None:
    stack, other = (handle(low, v) for v in node.inputs)
    top, others = stack.top, other.top
    low.fail_when(top.compare("!=", others), "IndexError", "sum of stacks of different sizes", node)
    if stack.shared:
        stack = own_stack(low, stack)
    part = Array(Buffer(other.data.name, stack.dtype), (others,))
    low.copy_into(Array(Buffer(stack.data.name, stack.dtype), (others,)), part, add=True)
    low.define(node.outputs[0], stack)


def _buffers(stack: StackRef) -> list[tuple[str, str, DType]]:
    """For each buffer of a stack: the names of the fields for the buffer and its top, and its dtype."""
    return [("data", "top", stack.dtype), *([("dims", "dims_top", int64)] if stack.rank else [])]


@emitter("stack_room")
def _room(low: Lowering, node: Node) -> None:
    share, size = (low.scalar_name(v) for v in node.inputs)
    if node.attrs["message"]:
        low.fail_when(size.compare(">", share), "InvalidArgumentError", node.attrs["message"], node)
    count = low.assign(ir.call("max", share // ir.call("max", size, 1), 1), "room")
    low.define(node.outputs[0], Scalar(count, int64))
