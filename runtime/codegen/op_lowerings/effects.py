"""Lowerings of assertions, errors and commits. Random numbers are in `random.py`; other effects (print, host calls) are
calls of Python."""

from __future__ import annotations

from typing import Any

from runtime import errors
from runtime.codegen.kernel.scalars import variable_of
from runtime.codegen.kernel.source import Kept, Raised, Slot, slot_of
from runtime.codegen.kernel.values import TOKEN, Array, Scalar
from runtime.codegen.loops.buffer_reuse import commits_in_step
from runtime.codegen.lower.state import Lowering, emitter
from runtime.dtypes import DType
from runtime.graph.ir import Node, Value
from runtime.kernel_ir import ir
from runtime.kernel_ir.types import BOOL
from runtime.types import TensorType


@emitter("assert")
def _assert(low: Lowering, node: Node) -> None:
    condition, *data = node.inputs[:-1]
    # Pending nodes are lowered first, so that their errors come first.
    low.fusion.flush_all()
    ref = low.ref(condition)
    if isinstance(ref, Scalar):
        holds = ref.expr
    else:
        holds = ir.call("lib.all_true", low.array(condition).buffer.variable)
    shown: list[str] = []
    details: list[ir.Expr] = []
    dtypes: list[DType] = []
    for value in data:
        if isinstance(value.type.rank, int) and value.type.rank == 0:  # type: ignore[union-attr]
            details.append(low.bits(value))
            shown.append(f"{{{len(dtypes)}}}")
            dtypes.append(value.dtype)
        else:
            shown.append(f"<{value.type}>")
    attrs = node.attrs
    message = attrs["message"] or ("assertion failed" if _is_op_error(attrs["error"]) else "")
    if shown and not attrs.get("formatted"):  # else the message contains them
        separator = ": " if message and not message.endswith("=") else " "
        message = (message + separator + ", ".join(shown)).lstrip()
    low.fail_when(ir.negated(holds), attrs["error"], message, node, details, None, dtypes, attrs["summarize"])
    for value in node.outputs:
        low.define(value, TOKEN)


@emitter("raise")
def _raise(low: Lowering, node: Node) -> None:
    condition, *data = node.inputs[:-1]
    if any(slot_of(value.type).kind != "scalar" for value in data):
        low.call_out(node)
        return
    low.fusion.flush_all()  # errors of nodes before this one come first
    holds = low.scalar(condition)
    site = Raised("", "", node.span, dtypes=tuple(value.dtype for value in data), template=node.attrs["error"])
    low.leave_when(ir.negated(holds), site, [low.bits(value) for value in data])
    for value in node.outputs:
        low.define(value, TOKEN)


@emitter("commit")
def _commit(low: Lowering, node: Node) -> None:
    # A later failure returns the value. Pending nodes may fail too, and must do so before the commit.
    low.fusion.flush_all()
    (value,) = node.inputs
    if isinstance(low.ref(value), Scalar):
        kept = _kept_for(low, node.attrs["variable"], value)
        low.add(ir.assign(kept.value, low.scalar(value)), ir.assign(kept.flag, ir.TRUE))
        return
    array = low.array(value)
    memory, is_kept = low.in_step.get(node, ("", False))
    if memory != array.buffer.name:
        # Its buffer may be overwritten before the next commit, also by code around this region.
        mine = array.buffer.owned or bool(array.buffer.origins)
        array = low.copied(array, _kept_for(low, node.attrs["variable"], value).value.name) if mine else array
    elif is_kept:
        return
    _keep(low, node.attrs["variable"], value, array)


def keep_in_step(low: Lowering, node: Node, k: int, start: Array) -> ir.Var | None:
    """If the memory of a carry always holds the value of a variable, notes before the loop that an error returns this
    memory, and returns the kernel's variable for it."""
    commits = commits_in_step(node.regions[1], k)
    low.in_step.update({commit: (start.buffer.name, len(commits) == 1) for commit in commits})
    return _keep(low, commits[0].attrs["variable"], node.inputs[k], start) if commits else None


def _keep(low: Lowering, variable: Any, value: Value, array: Array) -> ir.Var:
    """Notes that an error returns the array's content at that time as the value of the variable; returns the kernel's
    variable for it."""
    kept = _kept_for(low, variable, value)
    low.add(ir.assign(kept.value, array.buffer.variable))
    for own, dim in zip(kept.dims, array.dims):
        low.add(ir.assign(own, dim))
    low.add(ir.assign(kept.flag, ir.TRUE))
    return kept.value


def _kept_for(low: Lowering, variable: Any, value: Value) -> Kept:
    kept = low.kept.get(variable)
    if kept is None:
        assert isinstance(value.type, TensorType)
        assert value.type.rank is not None
        rank = value.type.rank
        name = low.names.fresh("kept")
        dims = tuple(ir.size_variable(low.names.fresh(f"{name}_d{axis}")) for axis in range(rank))
        slot = Slot("array" if rank else "scalar", value.dtype, rank)
        flag = ir.Var(low.names.fresh(f"{name}_set"), BOOL)
        kept = low.kept[variable] = Kept(flag, variable_of(name, value.dtype, rank), dims, slot)
    return kept


def _is_op_error(name: str) -> bool:
    return issubclass(errors.BY_NAME[name], errors.OpError)
