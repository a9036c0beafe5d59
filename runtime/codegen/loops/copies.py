"""Prints the loops that copy one array into another, or add to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from runtime.codegen.kernel import spelling
from runtime.codegen.kernel.values import Array, Dims, Scalar, Vector, Virtual
from runtime.codegen.loops.access import Access
from runtime.codegen.loops.loop_nest import Nest
from runtime.graph.ir import Node


def copy(low: Any, target: Array, ref: Any, add: bool = False, dims: Dims | None = None) -> None:
    """Prints a loop that writes (or adds) the elements of `ref` into those of `target`, whose dimensions they have
    or broadcast to. With `dims`, those of `ref`, the target may be smaller: then it is the one that broadcasts."""
    dims = target.dims if dims is None else dims
    nest = Nest(low, _CopyGroup(dims))
    if isinstance(ref, Scalar):
        text = ref.text if ref.is_name else low.assign(ref.text)
        ref = Virtual(ref.dtype, (), lambda indices: text, uniform=True)
    elif isinstance(ref, Vector):
        ref = low.solid(ref)
    source, place = Access(low, ref, dims), Access(low, target, dims)
    nest.accesses = {_SOURCE: source, _TARGET: place}
    nest.plan_loops()

    def body() -> None:
        nest.offsets = {}
        text = source.text(nest.loops, nest.name_offset)
        into = place.text(nest.loops, nest.name_offset)
        low.line(f"{into} = {spelling.strip(spelling.narrow(f'({into} + {text})', target.dtype) if add else text)}")

    nest.print_loops(nest.loops, body)


@dataclass
class _CopyGroup:
    dims: Dims
    axes: tuple[int, ...] = ()
    nodes: tuple[Node, ...] = ()
    members: frozenset = frozenset()


_SOURCE: Any = object()
_TARGET: Any = object()
