"""Strip-mining: loops run in chunks of trips, with checks once per chunk instead of once per trip.

Counted loops poll for Ctrl-C between chunks:

    while i < n:                                while i < limit:
        x = x * x                                   part = min(limit - i, 5592405)
        i = i + 1                                   ticks = ticks + part * 3
                                                    stop = i + part
                                           →        while i < stop:
                                                        x = x * x
                                                        i = i + 1
                                                    if ticks > 16777216:
                                                        ticks = 0
                                                        if lib.interrupted():
                                                            return 1, ...

The inner loop has one exit and a trip count that is known when it begins, so LLVM can unroll or vectorise it. A loop
that surely has few trips gets no outer loop. Where a trip may leave the loop, its ticks are counted afterwards.

Other loops that push one number per trip check the capacity of the stacks once, for as many trips as fit:

    while i < n:                                    while True:
        if s_top + 1 > s_data.size:                     room = min(s_data.size - s_top, 4194304)
            s_data = lib.grown(s_data, ...)             while room > 0 and i < n:
        s_data[s_top] = x                    →              s_data[s_top] = x
        ...                                                 ...
                                                            room = room - 1
                                                        if room > 0:
                                                            break
                                                        s_data = lib.grown(s_data, s_top, s_top + 1)

A buffer that may be replaced inside the loop costs two nanoseconds per trip, as much as a short loop body, because its
address and size are loaded again in each trip. In the inner loop they are invariant.
"""

from __future__ import annotations

from runtime.codegen import cost_model
from runtime.codegen.passes.kernel import Kernel, loops_inside_out
from runtime.kernel_ir import ir, simplify


def run(kernel: Kernel) -> None:
    """Strip-mines counted loops and loops that push on stacks."""
    for function in kernel.functions:
        for block, item in loops_inside_out(function.body):
            assert item.loop is not None
            position = block.index(item)
            if item.loop.stacks:
                block[position] = _with_room(kernel, function, item, item.loop)
            elif item.loop.counter is not None:
                block[position : position + 1] = _counted(kernel, function, item, item.loop, item.loop.counter)
            else:
                continue
            item.loop = None


def _with_room(kernel: Kernel, function: ir.Function, item: ir.While, loop: ir.Loop) -> ir.While:
    """The loop inside an outer loop that grows the stacks."""
    room = ir.size_variable(kernel.names.fresh("room"))
    has_room = room.compare(">", 0)
    test = has_room if item.test == ir.TRUE else ir.both(has_room, item.test)
    inner = ir.While(test, [*item.body, ir.assign(room, room - 1)])
    free = [ir.Size(data) - top for data, top in loop.stacks]
    outer: ir.Block = [
        ir.assign(room, ir.call("min", *free, cost_model.STRIP_TRIPS)),
        inner,
        ir.If(has_room, [ir.Break()]),
    ]
    for data, top in loop.stacks:
        growth = ir.assign(data, ir.call("lib.grown", data, top, top + 1))
        outer.append(ir.If(top.compare("==", ir.Size(data)), [growth]))
    ticking = kernel.ticking(function, loop.span, cost_model.STRIP_TRIPS * loop.cost)
    return ir.While(ir.TRUE, [*outer, *ticking])


def _counted(
    kernel: Kernel, function: ir.Function, item: ir.While, loop: ir.Loop, counter: ir.Induction
) -> ir.Block:  # fmt: skip
    """The loop in chunks; if it surely has few trips, the loop followed by a poll."""
    variable, limit, step = counter.variable, counter.limit, counter.step
    distance = simplify.difference(*((limit, variable) if counter.is_up else (variable, limit)))
    cost = -(-loop.cost // counter.least_step)
    if counter.most * cost <= cost_model.POLL_TICKS:
        if not loop.is_inner:
            return [item]
        spent: ir.Expr
        if counter.leaves:
            first = ir.size_variable(kernel.names.fresh("first"))
            spent = (variable - first if counter.is_up else first - variable) * cost
            count, poll = kernel.ticking(function, loop.span, spent)
            return [ir.assign(first, variable), item, count, poll]
        if counter.exact is not None:
            spent = ir.as_expr(counter.exact * cost)
        elif isinstance(step, ir.Const):
            spent = ir.call("max", distance, 0) * cost
        else:
            spent = ir.call("max", distance, 0) // (step if counter.is_up else -step) * loop.cost
        count, poll = kernel.ticking(function, loop.span, spent)
        return [count, item, poll]
    part, end = (ir.size_variable(kernel.names.fresh(name)) for name in ("part", "stop"))
    goes_on = variable.compare("<" if counter.is_up else ">", end)
    left = (end - variable if counter.is_up else variable - end) if counter.leaves else None
    count, poll = kernel.ticking(function, loop.span, (part if left is None else part - left) * cost)
    chunk: ir.Block = [
        ir.assign(part, ir.call("min", distance, cost_model.POLL_TICKS // cost)),
        ir.assign(end, ir.Binary("+" if counter.is_up else "-", variable, part)),
        ir.While(goes_on, item.body),
        poll,
    ]
    if left is None:
        chunk.insert(1, count)
    else:
        chunk[3:3] = [count, ir.If(goes_on, [ir.Break()])]
    return [ir.While(item.test, chunk)]
