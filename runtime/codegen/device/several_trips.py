"""Loops that threads share take several of a thread's trips at a time, so that it waits for what they load at once.

    trip = thread                                trip = thread
    while trip < stop:                           while trip < stop - 3 * threads:
        v = x[trip]                                  v = x[trip]
        a[trip] = v * 2.0              →             v_1 = x[trip + threads]
        trip = trip + threads                        …
                                                     a[trip] = v * 2.0
                                                     a[trip + threads] = v_1 * 2.0
                                                     …
                                                     trip = trip + 4 * threads
                                                 while trip < stop:
                                                     …

The trips are independent, so that the statements of several may be mixed; to a total they add in their order.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from runtime.codegen import cost_model
from runtime.codegen.device.counted_loops import fresh
from runtime.kernel_ir import ir


def run(function: ir.Function, shared: Mapping[ir.Statement, Collection[str]]) -> None:
    """Changes a function in SPMD form. shared: the loops that threads share, each with
    the variables that it adds to."""
    names = ir.mentioned(function.body).union(function.parameters)
    for block in list(ir.walk_blocks(function.body)):
        for item in [each for each in block if each in shared]:
            assert isinstance(item, ir.While)
            count = _count(item.body)
            if count > 1:
                block.insert(block.index(item), _several(item, shared[item], count, names))


def _count(body: ir.Block) -> int:
    """How many trips are worth taking at a time."""
    if not all(isinstance(item, (ir.Assign, ir.Store)) for item in body):
        return 1
    parts = [each for item in body for each in ir.expressions(item)]
    work = len(parts) + cost_model.DEVICE_CALL * sum(isinstance(each, ir.Call) for each in parts)
    return max(1, min(cost_model.DEVICE_TRIPS, cost_model.DEVICE_TRIP_WORK // work))


def _several(loop: ir.While, totals: Collection[str], count: int, names: set[str]) -> ir.While:
    """The loop over `count` trips at a time; the loop itself does the rest."""
    *body, step = loop.body
    test = loop.test
    assert isinstance(test, ir.Compare)
    assert isinstance(step, ir.Assign)
    assert isinstance(step.value, ir.Binary)
    trip, threads = step.value.left, step.value.right
    assert isinstance(trip, ir.Var)
    own = sorted(ir.assigned(body) - set(totals))
    found: ir.Block = []
    renamed: list[dict[str, ir.Var]] = [{}]
    for _ in range(1, count):
        values = {trip.name: ir.Var(fresh(trip.name, names))}
        values.update((name, ir.Var(fresh(name, names))) for name in own)
        before = renamed[-1].get(trip.name, trip)
        found.append(ir.assign(values[trip.name].name, before + threads))
        renamed.append(values)
    for item in body:
        for values in renamed:
            (other,) = ir.copied([item])
            ir.map_operands(other, lambda each, values=values: ir.substituted(each, values))  # type: ignore[misc]
            if isinstance(other, ir.Assign):
                other.targets = tuple(values[name].name if name in values else name for name in other.targets)
            found.append(other)
    found.append(ir.assign(trip.name, trip + threads * count))
    return ir.While(ir.Compare("<", trip, test.right - threads * (count - 1)), found, loop.loop)
