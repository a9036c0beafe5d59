"""Ops that several workers run together: what each has becomes what all have. They are effects: they keep their order.

all_reduce(*tensors; group, mean, pack, place)   sums or means of the workers' tensors, of the same types
all_gather(*tensors; group, axis, place)         their tensors one after the other along an axis
broadcast(*tensors; group, root, place)          the tensors of one worker

all_reduce_start(*tensors; group, mean, pack, place)
                                                 begins an all-reduce; gives a handle, an object in a string tensor
all_reduce_wait(handle, *tensors; the same)      the results of the all-reduce of these tensors

attr group: what the workers talk through (`runtime.collectives.group.Group`, or what has its methods)
attr pack: how many bytes travel together, None: as the group sees fit; attr place: the user's line, for errors

Tensors that are reduced together are one op, which sends them together. Gradients are collective too: a worker's loss
counts as its own, and the gradient of its part is that of the sum of all losses.

Programs call `all_reduce`. Where other work can be done meanwhile, `passes/rewrites/overlap.py` replaces it by starts
and waits. A wait takes the tensors too: the gradient flows through them, and they can't be overwritten before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from runtime.dtypes import string
from runtime.ops.convert import convert_to_tensor
from runtime.ops.dispatch import apply
from runtime.ops.elementwise.elementary import cast
from runtime.ops.table import OpDef, register
from runtime.profiling import timed
from runtime.tensor import Tensor
from runtime.types import TensorType

_HANDLE = TensorType(string, ())


def _arrays(results: Sequence[np.ndarray]) -> tuple:
    return tuple([array if array.ndim else array[()] for array in results])


def check_numbers(value: Any) -> None:
    """Raises TypeError if a tensor, or a type of one, can't be reduced: booleans and strings."""
    if value.dtype.kind in "bO":
        raise TypeError(
            f"only numbers can be reduced over replicas, not {value.dtype.name}; cast bools with ag.cast(x, ag.int32)"
        )


def _same(inputs: Sequence[Any], attrs: dict) -> tuple:
    for each in inputs:
        check_numbers(each)
    return tuple(inputs)


def _longer(inputs: Sequence[Any], attrs: dict) -> tuple:
    axis = attrs["axis"]
    found = []
    for each in inputs:
        if each.dtype.kind == "O":
            raise TypeError("strings can't be gathered from replicas")
        if each.shape is not None and not 0 <= axis < len(each.shape):
            raise ValueError(f"axis {axis} is out of range for a tensor of rank {len(each.shape)}")
        known = each.shape is not None
        found.append(TensorType(each.dtype, (*each.shape[:axis], None, *each.shape[axis + 1 :]) if known else None))
    return tuple(found)


def _pick(dy: Sequence[Any]) -> tuple[list[int], list[Any]]:
    """The cotangents that arrived, and of which outputs: the same at all workers, whose graphs are equal."""
    there = [i for i, each in enumerate(dy) if each is not None]
    return there, [dy[i] for i in there]


def _spread(op: Any, there: Sequence[int], cotangents: Sequence[Any]) -> list[Any]:
    found: list[Any] = [None] * len(op.inputs)
    for i, each in zip(there, cotangents):
        found[i] = each
    return found


def _grad_all_reduce(op: Any, *dy: Any) -> Sequence[Any]:
    there, arrived = _pick(dy)
    return _spread(op, there, apply(ALL_REDUCE_AGAIN, arrived, _backwards(op))) if there else [None] * len(op.inputs)


def _start(*arrays: Any, group: Any, mean: bool, pack: int | None, place: str) -> tuple:
    handle = np.empty((), object)
    handle[()] = group.start_all_reduce(arrays, mean, pack, place)
    return (handle,)


def _grad_wait(op: Any, *dy: Any) -> Sequence[Any]:
    there, arrived = _pick(dy)
    return _spread(op, [i + 1 for i in there], apply(ALL_REDUCE_AGAIN, arrived, _backwards(op)) if there else ())


def _grad_all_gather(op: Any, *dy: Any) -> Sequence[Any]:
    there, arrived = _pick(dy)
    if not there:
        return [None] * len(op.inputs)
    parts = apply(_OWN_PART, [*[op.inputs[i] for i in there], *arrived], _backwards(op))
    return _spread(op, there, parts)


def _own_part(*arrays: Any, group: Any, axis: int, place: str) -> tuple:
    """This worker's parts of sums over all workers.

    arrays: first the worker's own arrays, whose lengths along `axis` say how long its parts are; then the arrays to be
    summed.
    """
    own, whole = arrays[: len(arrays) // 2], arrays[len(arrays) // 2 :]
    summed = group.all_reduce(whole, False, None, place)
    (lengths,) = group.all_gather([np.array([[np.shape(a)[axis] for a in own]])], 0, place)
    ends = np.cumsum(lengths, axis=0)[group.rank]
    return tuple(
        [np.moveaxis(np.moveaxis(s, axis, 0)[e - np.shape(a)[axis] : e], 0, axis) for a, s, e in zip(own, summed, ends)]
    )


def _grad_own_part(op: Any, *dy: Any) -> Sequence[Any]:
    there, arrived = _pick(dy)
    count = len(op.inputs) // 2
    found = [None] * len(op.inputs)
    gathered = apply(_ALL_GATHER_AGAIN, arrived, _backwards(op)) if there else ()
    for i, each in zip(there, gathered):
        found[count + i] = each
    return found


def _grad_broadcast(op: Any, *dy: Any) -> Sequence[Any]:
    there, arrived = _pick(dy)
    if not there:
        return [None] * len(op.inputs)
    summed = _summed(op.attrs["group"], arrived, _backwards(op)["place"])
    mine = int(op.attrs["group"].rank == op.attrs["root"])
    return _spread(op, there, [each * cast(convert_to_tensor(mine), each.dtype) for each in summed])


def _summed(group: Any, tensors: Sequence[Tensor], place: str) -> list[Tensor]:
    return list(apply(ALL_REDUCE_AGAIN, tensors, {"group": group, "mean": False, "pack": None, "place": place}))


def _backwards(op: Any) -> dict[str, Any]:
    place = op.attrs["place"]
    return {**op.attrs, "place": place if place.startswith("the gradient of ") else f"the gradient of {place}"}


def _rows(name: str, infer: Any, kernel: Any, grad: Any, kinds: str, label: str, doc: str) -> tuple[OpDef, OpDef]:
    """The op, and the same without an order token. That is for gradients, and for what they run a second time: there
    results follow from the operands, and the order is that of the graph, which is the same for all workers."""
    kernel = timed("collective", name, kernel)
    facts: dict[str, Any] = {
        "grad": grad, "multiple": True, "kinds": kinds, "label": label, "doc": doc, "is_collective": True,
        "reads_bits": True,
    }  # fmt: skip
    again = register(OpDef(f"{name}_again", infer, kernel, **facts))
    return register(OpDef(name, infer, kernel, effect=True, again=again, **facts)), again


ALL_REDUCE, ALL_REDUCE_AGAIN = _rows(
    "all_reduce", _same, lambda *arrays, group, mean, pack, place: _arrays(group.all_reduce(arrays, mean, pack, place)),
    _grad_all_reduce, "iufc", "CollectiveReduceV2", "Sums or means of the tensors of all replicas.",
)  # fmt: skip
ALL_REDUCE_START, ALL_REDUCE_START_AGAIN = _rows(
    "all_reduce_start", lambda inputs, attrs: (_HANDLE,), _start,
    lambda op, *dy: [None] * len(op.inputs), "iufc", "CollectiveReduceV2", "Begins an `all_reduce`; gives a handle.",
)  # fmt: skip
ALL_REDUCE_WAIT = register(
    OpDef(
        "all_reduce_wait", lambda inputs, attrs: tuple(inputs[1:]),
        timed("collective", "all_reduce_wait", lambda handle, *arrays, **attrs: _arrays(handle.item().results())),
        grad=_grad_wait, multiple=True, is_collective=True, reads_bits=True, label="CollectiveReduceV2",
        doc="The results of an `all_reduce` that has begun.",
    )
)  # fmt: skip
ALL_GATHER, _ALL_GATHER_AGAIN = _rows(
    "all_gather", _longer, lambda *arrays, group, axis, place: _arrays(group.all_gather(arrays, axis, place)),
    _grad_all_gather, "biufc", "CollectiveGatherV2", "The tensors of all replicas, one after the other along an axis.",
)  # fmt: skip
_OWN_PART = register(
    OpDef(
        "all_gather_own_part", lambda inputs, attrs: tuple(inputs[: len(inputs) // 2]), _own_part,
        grad=_grad_own_part, multiple=True, kinds="iufc", is_collective=True,
        doc="The gradient of `all_gather`: sums over all replicas, of which each replica gets its own parts.",
    )
)  # fmt: skip
BROADCAST, _ = _rows(
    "broadcast", lambda inputs, attrs: tuple(inputs),
    lambda *arrays, group, root, place: _arrays(group.broadcast(arrays, root, place)),
    _grad_broadcast, "biufc", "CollectiveBcastRecvV2", "The tensors of one replica.",
)  # fmt: skip


def _grad_from_replicas(op: Any, dy: Any) -> Sequence[Any]:
    cotangent = op.attrs["pull_back"](op.inputs[0], dy)
    # Outside of replicas, tapes have recorded the ops that the result was computed by.
    return (None, dy) if cotangent is None else (cotangent, None)


FROM_REPLICAS = register(
    OpDef(
        "from_replicas", lambda inputs, attrs: (inputs[1],), lambda own, result, pull_back: result,
        grad=_grad_from_replicas, kinds="iufc", is_move=True, can_fail=False, is_collective=True,
        doc="The result that the replicas of one process computed together, from one tensor each. In a replica, its "
        "gradient is `pull_back(own, dy)`, which waits for the other replicas; elsewhere, it is that of the second "
        "tensor.",
    )
)  # fmt: skip


def all_reduce(
    group: Any, tensors: Sequence[Tensor], mean: bool = False, pack: int | None = None, place: str = ""
) -> list[Tensor]:
    """Sums or means of the workers' tensors. Raises TypeError for booleans and strings."""
    # The last ones first: backward passes make gradients in that order. When each was in fact made doesn't count: that
    # may differ between workers whose batches have other sizes.
    attrs = {"group": group, "mean": mean, "pack": pack, "place": place}
    return list(apply(ALL_REDUCE, tensors[::-1], attrs))[::-1]


def all_gather(group: Any, tensors: Sequence[Tensor], axis: int, place: str = "") -> list[Tensor]:
    """The workers' tensors one after the other along an axis, counted from the front.

    Raises ValueError for an axis that isn't there, TypeError for strings.
    """
    return list(apply(ALL_GATHER, tensors, {"group": group, "axis": axis, "place": place}))


def broadcast(group: Any, tensors: Sequence[Tensor], root: int = 0, place: str = "") -> list[Tensor]:
    """The tensors of the worker of rank `root`."""
    return list(apply(BROADCAST, tensors, {"group": group, "root": root, "place": place}))
