"""Loops that copy one array into another, or add to it."""

from __future__ import annotations

from typing import Any, NamedTuple

from runtime.codegen.kernel.names import joined
from runtime.codegen.kernel.values import Array, Dims, Scalar, Vector, Virtual
from runtime.codegen.loops.access import Access
from runtime.codegen.loops.builder import KernelBuilder
from runtime.codegen.loops.loop_nest import Nest
from runtime.graph.ir import Node
from runtime.kernel_ir import ir
from runtime.ops.table import OPS


def copy(low: KernelBuilder, target: Array, ref: Any, add: bool = False, dims: Dims | None = None) -> None:
    """Adds a loop that writes (or adds) the elements of `ref` into those of `target`, whose dimensions they have
    or broadcast to. With `dims`, those of `ref`, the target may be smaller: then it is the one that broadcasts."""
    dims = target.dims if dims is None else dims
    nest = Nest(low, _CopyGroup(dims))
    if isinstance(ref, Scalar):
        number = ref.expr if ref.is_name else low.assign(ref.expr)
        ref = Virtual(ref.dtype, (), lambda indices: number, uniform=True)
    elif isinstance(ref, Vector):
        ref = low.solid(ref)
    source, place = Access(low, ref, dims), Access(low, target, dims)
    nest.accesses = {_SOURCE: source, _TARGET: place}
    nest.plan_loops()

    def body() -> None:
        nest.offsets = {}
        element = source.element(nest.loops, nest.name_offset)
        into = place.element(nest.loops, nest.name_offset)
        assert isinstance(into, ir.Load)
        low.add(ir.Store(into.array, into.index, joined(OPS["add"], into, element, target.dtype) if add else element))

    nest.lower_loops(nest.loops, body)


class _CopyGroup(NamedTuple):
    dims: Dims
    axes: tuple[int, ...] = ()
    nodes: tuple[Node, ...] = ()
    members: frozenset = frozenset()


_SOURCE: Any = object()
_TARGET: Any = object()
