"""The likeliest labellings of frames whose classes include a blank, by search with a beam of prefixes.

Graves, "Supervised Sequence Labelling with Recurrent Neural Networks" (2012), section 7.5.3; Hwang, Sung, "Character-
level incremental speech recognition with recurrent neural networks" (2016).
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from runtime import dtypes, errors
from runtime.ops.dispatch import apply
from runtime.ops.rules import brackets
from runtime.ops.table import OpDef, register
from runtime.tensor import Tensor
from runtime.types import TensorType

_NEVER = -math.inf


class _Prefix:
    """A prefix of labellings. The numbers are logarithms of probabilities: `blank` when the last frame is blank,
    `label` when it is the last label, `total` of both; those with `old` are of the frame before."""

    __slots__ = ("blank", "children", "label", "last", "old_blank", "old_total", "parent", "total")

    def __init__(self, parent: _Prefix | None, last: int) -> None:
        self.parent, self.last = parent, last
        self.children: dict[int, _Prefix] = {}
        self.leave()
        self.old_total = self.old_blank = _NEVER

    def leave(self) -> None:
        """The prefix isn't in the beam (any more)."""
        self.total = self.blank = self.label = _NEVER

    def text(self) -> list[int]:
        """Its labels."""
        found: list[int] = []
        prefix = self
        while prefix.parent is not None:
            found.append(prefix.last)
            prefix = prefix.parent
        return found[::-1]


class _Beam:
    """The best prefixes, at most `width`."""

    def __init__(self, width: int) -> None:
        self.width = width
        self._heap: list[tuple[float, int, _Prefix]] = []
        self._count = itertools.count()

    @property
    def bottom(self) -> float:
        """The score that a prefix must exceed to be kept."""
        return self._heap[0][0] if len(self._heap) == self.width else _NEVER

    def add(self, prefix: _Prefix) -> None:
        """Adds one that is better than the worst, which it takes the place of when there are enough."""
        entry = (prefix.total, next(self._count), prefix)
        if len(self._heap) == self.width:
            heapq.heapreplace(self._heap, entry)[2].leave()
        else:
            heapq.heappush(self._heap, entry)

    def best_first(self) -> list[_Prefix]:
        return [entry[2] for entry in sorted(self._heap, key=lambda entry: (-entry[0], entry[1]))]


def _search(frames: np.ndarray, width: int, count: int) -> tuple[list[list[int]], list[float]]:
    """The `count` best labellings of one sequence of logits, whose last class is blank, and their log probabilities."""
    root = _Prefix(None, -1)
    root.total = root.blank = 0.0
    leaves = [root]
    for frame in frames.astype(np.float64):
        top = frame.max()
        leaves = _step(leaves, frame - top - np.log(np.exp(frame - top).sum()), width)
    if len(leaves) < count:
        raise errors.InvalidArgumentError(
            f"Less leaves in the beam search than requested: {len(leaves)} < {count} [Op:CTCBeamSearchDecoder]"
        )
    best = leaves[:count]
    return [prefix.text() for prefix in best], [prefix.total for prefix in best]


def _step(leaves: list[_Prefix], logs: np.ndarray, width: int) -> list[_Prefix]:
    """The beam after a frame with these log probabilities, the best first."""
    beam = _Beam(width)
    for prefix in leaves:
        prefix.old_total, prefix.old_blank = prefix.total, prefix.blank
    for prefix in leaves:
        parent = prefix.parent
        if parent is not None:
            if parent.total > _NEVER:  # in the beam: it goes on by the last label
                before = parent.old_blank if prefix.last == parent.last else parent.old_total
                prefix.label = float(np.logaddexp(prefix.label, before))
            prefix.label += float(logs[prefix.last])
        prefix.blank = prefix.old_total + float(logs[-1])
        prefix.total = float(np.logaddexp(prefix.blank, prefix.label))
        beam.add(prefix)
    for prefix in leaves:
        if prefix.old_total > beam.bottom:
            _grow(prefix, logs, beam)
    return beam.best_first()


def _grow(prefix: _Prefix, logs: np.ndarray, beam: _Beam) -> None:
    """Adds the prefixes with a label more that are good enough."""
    scores = prefix.old_total + logs[:-1]
    if prefix.last >= 0:  # a repeated label needs a blank in between
        scores[prefix.last] = prefix.old_blank + logs[prefix.last]
    for label in sorted({*prefix.children, *np.flatnonzero(scores > beam.bottom).tolist()}):
        child = prefix.children.get(label)
        if child is not None and child.total > _NEVER:
            continue
        if scores[label] > beam.bottom:  # which rises
            if child is None:
                child = prefix.children[label] = _Prefix(prefix, label)
            child.total = child.label = float(scores[label])
            child.blank = _NEVER
            beam.add(child)
        elif child is not None:  # it has left the beam, and no longer prefix comes from it
            child.old_total = child.old_blank = _NEVER


def _kernel(inputs: Any, lengths: Any, beam_width: int, top_paths: int) -> tuple:
    steps, batch, classes = inputs.shape
    if lengths.shape != (batch,):
        raise errors.FailedPreconditionError(f"len(sequence_length) != batch_size: {list(lengths.shape)} and {batch}")
    if (lengths > steps).any() or (lengths < 0).any():
        raise errors.FailedPreconditionError(f"sequence_length must be in [0, {steps}], got {lengths.tolist()}")
    if classes == 0:
        raise errors.InvalidArgumentError("inputs must have classes")
    logs = np.zeros((batch, top_paths), inputs.dtype)
    paths: list[list[list[int]]] = []
    with np.errstate(all="ignore"):
        for b in range(batch):
            texts, logs[b] = _search(inputs[: lengths[b], b], beam_width, top_paths)
            paths.append(texts)
    results: list[Any] = []
    for k in range(top_paths):
        rows = [texts[k] for texts in paths]
        indices = [(b, at) for b, row in enumerate(rows) for at in range(len(row))]
        results += [
            np.array(indices, np.int64).reshape(-1, 2), np.array([n for row in rows for n in row], np.int64),
            np.array([batch, max(map(len, rows), default=0)], np.int64),
        ]  # fmt: skip
    return (*results, logs)


def _infer(inputs: Sequence[Any], attrs: dict) -> tuple:
    x, shape = inputs[0], inputs[0].shape
    if x.dtype not in (dtypes.float32, dtypes.float64):
        raise TypeError(f"inputs must be float32 or float64, got {x.dtype.name}")
    if shape is not None and len(shape) != 3:
        raise ValueError(f"inputs is not a 3-Tensor: {brackets(shape)}")
    path = (TensorType(dtypes.int64, (None, 2)), TensorType(dtypes.int64, (None,)), TensorType(dtypes.int64, (2,)))
    return (*path * attrs["top_paths"], TensorType(x.dtype, (shape and shape[1], attrs["top_paths"])))


BEAM_SEARCH = register(
    OpDef(
        "ctc_beam_search", _infer, _kernel, multiple=True, kinds="f", label="CTCBeamSearchDecoder",
        doc="The most likely label sequences for frames, found by a beam search over prefixes.",
    )
)  # fmt: skip


def beam_search(inputs: Tensor, lengths: Tensor, beam_width: int, top_paths: int) -> tuple[Tensor, ...]:
    """Indices, values and shape of each of the best labellings, then their log probabilities (batch, top_paths)."""
    found: tuple[Tensor, ...] = apply(
        BEAM_SEARCH, (inputs, lengths), {"beam_width": beam_width, "top_paths": top_paths}
    )
    return found
