"""A kernel between lowering and the back ends: what the passes rewrite."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import Any

from runtime.codegen import cost_model
from runtime.codegen.kernel import call_outs
from runtime.codegen.kernel.names import Names
from runtime.codegen.kernel.source import ErrorSite, Interruption
from runtime.dataclass import dataclass
from runtime.kernel_ir import ir
from runtime.kernel_ir.types import INT64


@dataclass
class Kernel:
    """Its functions, and what the passes need to know about it.

    functions  the kernel itself, recursive functions and, at the end, the parts of nests that threads run
    starts     by function: the variables that it computes first, with their values
    given      by function: the names of its parameters, and of other variables that have a value when it begins
    names      gives new variables
    own        the buffers that hold new memory, and nothing that existed before
    kept       variables whose values an error returns
    sites      the failure sites
    constants  further parameters, with their arguments
    fused      loops of nests that were fused -> the loops that they became part of
    """

    functions: list[ir.Function]
    starts: dict[str, dict[str, ir.Expr]]
    given: dict[str, set[str]]
    names: Names
    own: set[str]
    kept: set[str]
    sites: list[ErrorSite]
    constants: list[tuple[str, Any]]
    fused: dict[ir.For, ir.For] = field(default_factory=dict)

    def fails(self, site: ErrorSite) -> ir.Fail:
        """A statement that leaves a function with an error."""
        self.sites.append(site)
        return ir.Fail(len(self.sites))

    def ticking(self, function: ir.Function, span: Any, cost: ir.Expr | int) -> tuple[ir.Assign, ir.If]:
        """Statements that count the ticks of a loop, or of some of its trips, and that poll for Ctrl-C after enough of
        them. cost: the ticks."""
        self.starts[function.name][ir.TICKS] = ir.ZERO
        ticks = ir.size_variable(ir.TICKS)
        leave = ir.If(ir.call("lib.interrupted"), self._interrupted(span))
        return ir.assign(ir.TICKS, ticks + cost), interrupt_poll(ticks, leave)

    def _interrupted(self, span: Any) -> ir.Block:
        """What follows Ctrl-C: the kernel ends, and is run again if the user's handler raises no error. A kernel that
        has called Python must not do that twice, and calls the handler itself."""
        if not any(isinstance(constant, call_outs.CallOut) for _, constant in self.constants):
            return [self.fails(Interruption("KeyboardInterrupt", "", span))]
        call, name, record = call_outs.of_signals(), self.names.fresh("handler"), self.names.fresh("record")
        self.constants.append((name, call))
        numbers = ir.array_variable(record, INT64)
        failed = ir.load(numbers, call_outs.FAILED).compare("!=", 0)
        return [
            ir.Alloc(record, ir.ONE, INT64),
            ir.store(numbers, call_outs.FAILED, 0),
            ir.Run(ir.call("lib.call_out", ir.size_variable(name), numbers)),
            ir.If(failed, [self.fails(call_outs.Failed("", "", span, call=call))]),
        ]

    def loop_of(self, nest: ir.For | None) -> ir.For | None:
        """The loop that contains a nest after the passes."""
        while nest in self.fused:
            nest = self.fused[nest]
        return nest


def interrupt_poll(ticks: ir.Var | ir.Load, leave: ir.Statement) -> ir.If:
    """After enough ticks, restarts their count and polls. leave: the statement that leaves the function on Ctrl-C."""
    return ir.If(ticks.compare(">", cost_model.POLL_TICKS), [ir.set_to(ticks, 0), leave])


def loops_inside_out(block: ir.Block) -> Iterator[tuple[ir.Block, ir.While]]:
    """The loops of the program in a block, inner loops first, each with the block that contains it."""
    for item in list(block):
        for inner in ir.blocks(item):
            yield from loops_inside_out(inner)
        if isinstance(item, ir.While) and item.loop is not None:
            yield block, item
