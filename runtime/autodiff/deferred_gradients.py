"""Gradients of calls that are deferred until the program runs (`runtime.ops.deferred_calls`). An eager tape computes
them at run time.

    late(x; f)  ⇒  dx = late(x, dy; pull back f)

The adjoint is a deferred call itself, so it can be differentiated again. An op whose gradient rule needs an unknown
rank is treated in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from runtime import nest
from runtime.autodiff.calls import is_differentiable
from runtime.autodiff.reverse import REGION_RULES, UNRANKED, Cotangents
from runtime.autodiff.tape import GradientTape
from runtime.ops.deferred_calls import DEFERRED, Applied
from runtime.ops.dispatch import apply


class PulledBack:
    """Computes the cotangents of the operands `wanted` from all operands and the cotangents of the results `seeds`."""

    def __init__(self, call: Callable[..., Any], count: int, wanted: list[int], seeds: list[int]) -> None:
        self.call = call
        self.count = count
        self.wanted = wanted
        self.seeds = seeds

    def __call__(self, *tensors: Any) -> list[Any]:
        operands, arrived = tensors[: self.count], tensors[self.count :]
        sources = [operands[i] for i in self.wanted]
        # Persistent, so that derivatives of this call are taken through it in turn.
        with GradientTape(persistent=True, watch_accessed_variables=False) as tape:
            tape.watch(sources)
            results = nest.flatten(self.call(*operands))
        targets = [results[i] for i in self.seeds]
        return tape.gradient(targets, sources, output_gradients=list(arrived), unconnected_gradients="zero")

    def __repr__(self) -> str:
        return f"gradient of {self.call!r}"


def _pull_back(call: Any, function: Callable[..., Any], arrived: Sequence[Any], tracked: Callable) -> Sequence[Any]:
    inputs = call.inputs
    wanted = [i for i, t in enumerate(inputs) if is_differentiable(t.type) and tracked(t)]
    seeds = [i for i, dy in enumerate(arrived) if dy is not None]
    pulled = PulledBack(function, len(inputs), wanted, seeds)
    types = tuple([inputs[i].type for i in wanted])
    found = apply(DEFERRED, [*inputs, *[arrived[i] for i in seeds]], {"call": pulled, "types": types})
    result: list[Any] = [None] * len(inputs)
    for i, cotangent in zip(wanted, found):
        result[i] = cotangent
    return result


def adjoint_of_deferred_call(
    call: Any, arrived: Sequence[Any], tracked: Callable[[Any], bool], sums: Cotangents
) -> Sequence[Any]:
    """The adjoint of a `late` node. Raises LookupError for one that draws random numbers, because the call can't be
    repeated."""
    if not call.attrs.get("again", True):
        raise LookupError(
            f"{call.attrs['call']!r} was deferred until the program runs, because a rank or shape is unknown. It "
            "has a side effect, so it has no gradient then. Give its tensors a known rank."
        )
    return _pull_back(call, call.attrs["call"], arrived, tracked)


def adjoint_of_unranked(
    call: Any, arrived: Sequence[Any], tracked: Callable[[Any], bool], sums: Cotangents
) -> Sequence[Any]:
    """The adjoint of an op that met a tensor of unknown rank."""
    return _pull_back(call, Applied(call.op, call.attrs), arrived, tracked)


REGION_RULES["late"] = REGION_RULES["late_effect"] = adjoint_of_deferred_call
REGION_RULES[UNRANKED] = adjoint_of_unranked
