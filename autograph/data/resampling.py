"""Datasets drawn from at random: `sample_from_datasets` and `rejection_resample`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np

from autograph.data import mixing
from autograph.data.arguments import known_tensor
from runtime import dtypes
from runtime.context import init_scope
from runtime.generator import stateless_categorical
from runtime.ops.api import assert_op, log, logical_and, maximum, one_hot, reduce_max, reduce_min, reduce_sum, where
from runtime.ops.convert import convert_to_tensor, static_value
from runtime.ops.elementwise.elementary import cast
from runtime.ops.random.stateful import uniform
from runtime.tensor import SymbolicTensor

# Classes of which none has come yet aren't impossible.
_SMALLEST = float(np.finfo(np.float32).tiny)


def sampled(kind: Any, datasets: list, weights: Any, seed: Any, stop: bool, rerandomize: Any) -> Any:
    """See `Dataset.sample_from_datasets`; ``kind`` is `Dataset`."""
    if weights is not None and not isinstance(weights, kind):
        given = known_tensor(weights)
        if given.shape != (len(datasets),):
            raise ValueError(
                f"`weights` should have one number for each of {len(datasets)} datasets, got shape {given.shape}"
            )
        if given.dtype not in (dtypes.float32, dtypes.float64):
            raise TypeError(f"`weights` should be of type `float32` or `float64`, got {given.dtype.name}")
        if isinstance(given, SymbolicTensor):
            valid = logical_and(reduce_min(given) >= 0, reduce_max(given) > 0)
            assert_op(valid, "`weights` must not be negative, and at least one must be positive", "ValueError")
            weights = kind.from_tensors(given).repeat()
        else:
            weights = given.numpy()
            if (weights < 0).any() or not (weights > 0).any():
                raise ValueError(f"`weights` must not be negative, and at least one must be positive, got {weights}")
            kept = np.flatnonzero(weights)
            datasets, weights = [datasets[number] for number in kept], weights[kept]
    if isinstance(weights, kind):
        words = kind.random(seed, rerandomize).batch(2)
        choice = kind.zip(weights, words).map(lambda w, word: _drawn(log(w), word))
    else:
        if len(datasets) == 1:
            return datasets[0]
        logits = np.ones(len(datasets), np.float32) if weights is None else np.log(weights)
        choice = kind.random(seed, rerandomize).batch(2).map(lambda word: _drawn(logits, word))
    return kind(mixing.Directed(choice._plan, [each._plan for each in datasets], stop))


def _drawn(logits: Any, word: Any) -> Any:
    """A class by the logarithms of how frequent they are, and a seed of two numbers."""
    return stateless_categorical(convert_to_tensor(logits)[None], 1, word)[0, 0]


def resampled(
    kind: Any, dataset: Any, class_of: Callable[..., Any], target: Any, initial: Any, seed: int | None
) -> Any:
    """See `Dataset.rejection_resample`. As often as all classes allow, an element is taken as it comes; otherwise the
    next one that is accepted, which each class is with a probability of its own."""
    wanted = known_tensor(target)

    def shares(given: Any) -> tuple[Any, Any]:
        """For each class how likely it is accepted, and how often elements are taken as they come."""
        ratios = wanted / maximum(given, convert_to_tensor(_SMALLEST, wanted.dtype))
        least, most = reduce_min(ratios), reduce_max(ratios)
        spread = most - least
        accepted = where(spread > 0, (ratios - least) / where(spread > 0, spread, 1), 1)
        return accepted, where(spread > 0, least, 1)

    def with_class(*element: Any) -> Any:
        return class_of(*element), element if len(element) != 1 else element[0]

    pairs = dataset.map(with_class)
    if initial is not None:
        first = known_tensor(initial, wanted.dtype)
        scope = nullcontext() if any(isinstance(each, SymbolicTensor) for each in (wanted, first)) else init_scope()
        with scope:
            known = shares(first)
            share = static_value(known[1])  # of elements that are taken as they come, where it is known
        if share is not None and share >= 1:
            return pairs
        described = kind.from_tensors(known).repeat()
    else:
        classes = dataset.map(class_of)

        def counted(counts: Any, which: Any) -> Any:
            counts = counts + one_hot(cast(which, dtypes.int64), int(wanted.shape[0]), dtype=wanted.dtype)
            return counts, shares(counts / reduce_sum(counts))

        described = classes.scan(known_tensor(np.ones(wanted.shape), wanted.dtype), counted)
    accepted = (
        kind.zip(pairs, described)
        .filter(lambda pair, each: uniform([], seed=seed, dtype=wanted.dtype) < each[0][cast(pair[0], dtypes.int64)])
        .map(lambda pair, each: pair)
    )
    if initial is not None and share is not None and share <= 0:
        return accepted
    weights = described.map(lambda chances, as_it_comes: [as_it_comes, 1 - as_it_comes])
    return kind.sample_from_datasets([pairs, accepted], weights, seed, stop_on_empty_dataset=True)
