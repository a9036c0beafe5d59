"""Connectionist temporal classification: the probability of a labelling of frames, and the best labellings.

Graves et al., "Connectionist Temporal Classification" (2006). The loss is a loop over frames, staged and differentiated
as any other.
"""

from __future__ import annotations

import math
from typing import Any

from autograph.functional import foldl
from runtime import dtypes, errors
from runtime.ops.api import (
    argmax,
    assert_op,
    boolean_mask,
    cast,
    concat,
    convert_to_tensor,
    cumsum,
    equal,
    exp,
    expand_dims,
    gather,
    gather_nd,
    log,
    logical_and,
    not_equal,
    one_hot,
    pad,
    reduce_all,
    reduce_max,
    reduce_sum,
    reshape,
    scatter_nd,
    stack,
    stop_gradient,
    transpose,
    where,
    zeros_like,
)
from runtime.ops.api import range as range_
from runtime.ops.api import shape as shape_of
from runtime.ops.arrays.miscellaneous import sequence_mask
from runtime.ops.arrays.segments import unsorted_segment_sum
from runtime.ops.arrays.sorting import unique
from runtime.ops.nn.beam_search import beam_search
from runtime.ops.nn.nn_ops import log_softmax
from runtime.ops.rules import dims
from runtime.sparse import SparseTensor
from runtime.tensor import Tensor

# The logarithm of 0 in sums: so small that nothing adds to it, and finite, so that differences have a meaning.
_NEVER = -1e30
# TensorFlow's logarithm of the probability to end in another state than a labelling does. Labels that don't fit
# into the frames have a loss of about 707 by it, not an infinite one, and gradients.
_UNLIKELY = math.log(1e-307)
_INT = dtypes.int32


def _log_sum(*terms: Tensor) -> Tensor:
    """log(exp(a) + exp(b) + ...) of tensors that are finite."""
    top = stop_gradient(reduce_max(stack(list(terms)), 0))
    total: Any = None
    for term in terms:
        power = exp(term - top)
        total = power if total is None else total + power
    return top + log(total)


def _dense(labels: SparseTensor) -> tuple[Tensor, Tensor]:
    """The labels of each row one after the other, and how many there are."""
    rows, batch = labels.indices[:, 0], labels.dense_shape[0]
    counts = unsorted_segment_sum(zeros_like(rows) + 1, rows, batch)
    before = cumsum(counts, exclusive=True)
    columns = cast(range_(shape_of(rows)[0]), dtypes.int64) - gather(before, rows)
    width = reduce_max(concat([counts, convert_to_tensor([0], dtypes.int64)], 0))
    found = scatter_nd(stack([rows, columns], 1), labels.values, stack([batch, width]))
    return cast(found, _INT), cast(counts, _INT)


def _position(blank_index: int, classes: int | None) -> int:
    """The class that stands for none, counted from the front. Raises ValueError if that isn't known."""
    if blank_index >= 0:
        return blank_index
    if classes is None:
        raise ValueError("a negative blank_index needs logits with a known number of classes")
    return blank_index + classes


def ctc_loss(
    labels: Any, logits: Any, label_length: Any, logit_length: Any, logits_time_major: bool = True, unique: Any = None,
    blank_index: int | None = None, name: str | None = None,
) -> Tensor:  # fmt: skip
    """The negative log probability of the labels, summed over all ways to align them and blanks with the frames.

    labels: integers, shape (batch, most labels), or a sparse tensor of them, which gives their number (`label_length`
    may be None) and requires a `blank_index`. logits: floats, shape (frames, batch, classes), or
    (batch, frames, classes) unless `logits_time_major`. label_length, logit_length: how many of these count, shape
    (batch,). unique: accepted, without effect: gradients are as fast without it. blank_index: the blank's class, 0 by
    default; negative ones count from the end.
    Shape: (batch,). Dense labels that don't fit into the frames have a loss of about 707, as in TensorFlow.
    Raises ValueError for sparse labels without `blank_index`, InvalidArgumentError for labels that aren't classes, and
    for sparse ones that don't fit into the frames.
    """
    x = convert_to_tensor(logits)
    if x.dtype.kind != "f":
        raise errors.DTypeError(f"logits must be floats, got {x.dtype.name} [Op:CTCLoss]", "ctc_loss")
    if isinstance(labels, SparseTensor):
        if blank_index is None:
            raise ValueError("Argument `blank_index` must be provided when `labels` is a `SparseTensor`.")
        targets, counts = _dense(labels)
        again = equal(targets[:, 1:], targets[:, :-1])
        repeats = cast(logical_and(again, sequence_mask(counts - 1, dims(targets)[1] - 1)), _INT)
        assert_op(
            reduce_all(counts + reduce_sum(repeats, 1) <= cast(convert_to_tensor(logit_length), _INT)),
            "Not enough time for target transition sequence [Op:CTCLoss]",
        )
    else:
        targets, counts = convert_to_tensor(labels), cast(convert_to_tensor(label_length), _INT)
        if targets.dtype.kind not in "iu":
            raise errors.DTypeError(
                f"labels must be integers, got {targets.dtype.name}: cast them [Op:CTCLoss]", "ctc_loss"
            )
        targets = cast(targets, _INT)
    own = x.dtype
    if own in (dtypes.float16, dtypes.bfloat16):
        x = cast(x, dtypes.float32)
    frames = x if not logits_time_major else transpose(x, [1, 0, 2])  # batch first, in which labels are looked up
    blank = _position(0 if blank_index is None else blank_index, x._shape and x._shape[-1])  # type: ignore[arg-type]
    loss = _loss(frames, targets, counts, cast(convert_to_tensor(logit_length), _INT), blank)
    return cast(loss, own)


def _loss(frames: Tensor, labels: Tensor, counts: Tensor, lengths: Tensor, blank: int) -> Tensor:
    """States of a labelling are its labels with a blank before, between and behind them: a path starts at the first
    blank, stays or goes on by one state with each frame, or by two, to another label."""
    batch, width = dims(labels)
    steps = dims(frames)[1]
    states = reshape(stack([zeros_like(labels) + blank, labels], 2), [batch, width * 2])
    states = pad(states, [[0, 0], [0, 1]], constant_values=blank)
    leaps = not_equal(states[:, 2:], states[:, :-2])
    leaps = pad(cast(leaps, _INT), [[0, 0], [2, 0]]) > 0  # never to a blank: that is the same as two states before
    observed = transpose(gather(log_softmax(frames), states, axis=2, batch_dims=1), [1, 0, 2])
    running = transpose(sequence_mask(lengths, steps), [1, 0])
    never = convert_to_tensor(_NEVER, frames.dtype)
    start = (1.0 - one_hot(zeros_like(counts), width * 2 + 1, dtype=frames.dtype)) * never

    def step(before: Tensor, frame: tuple[Tensor, Tensor]) -> Tensor:
        here, goes_on = frame
        one = pad(before[:, :-1], [[0, 0], [1, 0]], constant_values=_NEVER)
        two = where(leaps, pad(one[:, :-1], [[0, 0], [1, 0]], constant_values=_NEVER), never)
        return where(expand_dims(goes_on, 1), _log_sum(before, one, two) + here, before)

    paths = foldl(step, (observed, running), start)
    place, last = expand_dims(range_(width * 2 + 1), 0), expand_dims(counts * 2, 1)
    final = where(logical_and(place <= last, place >= last - 1), paths, paths + _UNLIKELY)
    top = stop_gradient(reduce_max(final, 1, keepdims=True))
    return -(reduce_sum(top, 1) + log(reduce_sum(exp(final - top), 1)))


def ctc_unique_labels(labels: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
    """The distinct labels of each row, int64, filled up with 0, and the place of each label among them, int32.

    labels: integers, shape (batch, most labels).
    """
    x = convert_to_tensor(labels)
    count, width = dims(x)
    if not isinstance(count, int):
        raise ValueError("ctc_unique_labels needs to know the number of rows while tracing")
    found, places = [], []
    for i in range(count):
        values, ids = unique(x[i])
        found.append(pad(cast(values, dtypes.int64), [[0, width - dims(values)[0]]]))
        places.append(ids)
    return stack(found), stack(places)


def collapse_repeated(labels: Any, seq_length: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Merges equal labels that follow each other: returns the remaining labels, padded with 0, and their number per
    row.

    labels: shape (batch, most labels). seq_length: how many labels of each row count.
    """
    x, lengths = convert_to_tensor(labels), convert_to_tensor(seq_length)
    changed = not_equal(x[:, 1:], x[:, :-1])
    kept = logical_and(pad(changed, [[0, 0], [1, 0]], constant_values=True), sequence_mask(lengths, dims(x)[1]))
    counts = reduce_sum(cast(kept, _INT), 1)
    found = _packed(kept, x)
    return scatter_nd(found.indices, found.values, found.dense_shape), cast(counts, lengths.dtype)


def _packed(kept: Tensor, values: Tensor) -> SparseTensor:
    """A sparse tensor of the kept values of each row, moved to the row's beginning. kept: bool [rows, columns]."""
    places = where(kept)
    columns = cumsum(cast(kept, dtypes.int64), 1) - 1
    indices = stack([places[:, 0], gather_nd(columns, places)], 1)
    counts = reduce_sum(cast(kept, dtypes.int64), 1)
    width = reduce_max(concat([counts, convert_to_tensor([0], dtypes.int64)], 0))
    return SparseTensor(indices, boolean_mask(values, kept), stack([shape_of(kept, dtypes.int64)[0], width]))


def ctc_greedy_decoder(
    inputs: Any, sequence_length: Any, merge_repeated: bool = True, blank_index: int | None = None
) -> tuple[list[SparseTensor], Tensor]:
    """The labels of the likeliest class of each frame, and minus the sum of these classes' logits, (batch, 1).

    inputs: logits, shape (frames, batch, classes). sequence_length: frames of each, shape (batch,). merge_repeated:
    whether equal labels in a row become one. blank_index: the blank's class, by default the last.
    Raises ValueError for logits of another rank.
    """
    x, lengths = convert_to_tensor(inputs), convert_to_tensor(sequence_length)
    if x._shape is not None and len(x._shape) != 3:
        raise errors.InvalidArgumentError(f"inputs is not a 3-Tensor: {x.shape} [Op:CTCGreedyDecoder]")
    steps, _, classes = dims(x)
    blank = -1 if blank_index is None else blank_index
    blank = blank if blank >= 0 else blank + classes
    best = transpose(argmax(x, 2), [1, 0])
    running = sequence_mask(lengths, steps)
    kept = logical_and(running, not_equal(best, cast(convert_to_tensor(blank), dtypes.int64)))
    if merge_repeated:
        changed = not_equal(best[:, 1:], best[:, :-1])
        kept = logical_and(kept, pad(changed, [[0, 0], [1, 0]], constant_values=True))
    largest = transpose(reduce_max(x, 2), [1, 0])
    scores = reduce_sum(where(running, largest, zeros_like(largest)), 1, keepdims=True)
    return [_packed(kept, best)], -scores


def ctc_beam_search_decoder(
    inputs: Any, sequence_length: Any, beam_width: int = 100, top_paths: int = 1
) -> tuple[list[SparseTensor], Tensor]:
    """The likeliest labellings, and the logarithms of their probabilities, shape (batch, top_paths).

    inputs: logits, shape (frames, batch, classes), float32 or float64; the last class is the blank. sequence_length:
    frames of each, shape (batch,). beam_width: how many prefixes are followed. top_paths: how many labellings are
    returned, the best first.
    Raises InvalidArgumentError for other shapes and for more paths than prefixes, FailedPreconditionError for sequence
    lengths beyond the frames.
    """
    if top_paths > beam_width:
        raise errors.InvalidArgumentError(f"Requested more paths than the beam width: {top_paths} > {beam_width}")
    lengths = cast(convert_to_tensor(sequence_length), _INT)
    *parts, logs = beam_search(convert_to_tensor(inputs), lengths, int(beam_width), int(top_paths))
    return [SparseTensor(*parts[i : i + 3]) for i in range(0, len(parts), 3)], logs
