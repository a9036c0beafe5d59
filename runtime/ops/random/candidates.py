"""Classes drawn at random, as examples of wrong ones: for losses over few of many classes."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from runtime import dtypes, errors
from runtime.ops.arrays.creation import fill, ones
from runtime.ops.arrays.creation import range as range_
from runtime.ops.arrays.reduce import reduce_all
from runtime.ops.control import assert_op
from runtime.ops.convert import convert_to_tensor
from runtime.ops.deferred_calls import deferrable
from runtime.ops.dispatch import apply
from runtime.ops.elementwise.elementary import cast, expm1, log, log1p
from runtime.ops.random import philox, stateful, stateless
from runtime.ops.rules import brackets, dims
from runtime.ops.table import OpDef, register
from runtime.tensor import Tensor, TensorLike
from runtime.types import TensorType

_LONG, _FLOAT = dtypes.int64, dtypes.float32


def _drawn(words: philox.Words, kind: str, limit: int) -> int:
    if kind == "log_uniform":
        return (int(math.exp(words.fraction() * math.log1p(limit))) - 1) % limit
    return words.below(limit, 64)


def _kernel(state: Any, kind: str, k: int, limit: int, unique: bool) -> tuple:
    """The classes, and how many were drawn to find them."""
    words = philox.Words(*stateless.stream_of(state))
    if not unique:
        return np.array([_drawn(words, kind, limit) for _ in range(k)], np.int64), np.int64(k)
    found: dict[int, None] = {}
    tries = 0
    while len(found) < k:
        found[_drawn(words, kind, limit)] = None
        tries += 1
    return np.array(list(found), np.int64), np.int64(tries)


CANDIDATES = register(
    OpDef(
        "candidates", lambda inputs, attrs: (TensorType(_LONG, (attrs["k"],)), TensorType(_LONG, ())), _kernel,
        multiple=True, kinds="iu", label="CandidateSampler",
        cuts_gradient="classes drawn at random have no gradient",
        doc="Classes drawn from a state, and how many were drawn until there were as many different ones.",
    )
)  # fmt: skip


class CandidateSampler(NamedTuple):
    """The results of the samplers."""

    sampled_candidates: Tensor
    true_expected_count: Tensor
    sampled_expected_count: Tensor


def _true(true_classes: Any, num_true: int) -> Tensor:
    known = convert_to_tensor(true_classes, None if isinstance(true_classes, Tensor) else _LONG)
    if known._shape is None:
        raise ValueError("true_classes must have a known rank")
    if len(known._shape) != 2:
        raise errors.InvalidArgumentError(f"true_classes must be a matrix, got shape {brackets(known._shape)}")
    if known._shape[1] not in (num_true, None):
        raise errors.InvalidArgumentError(
            f"true_classes must have num_true columns, expected: {num_true} was: {known._shape[1]}"
        )
    return cast(known, _LONG)


def _sampled(
    kind: str, true_classes: Any, num_true: int, num_sampled: int, unique: bool, range_max: int, seed: int | None
) -> CandidateSampler:  # fmt: skip
    known, count, limit = _true(true_classes, int(num_true)), int(num_sampled), int(range_max)
    if count < 1 or limit < 1:
        raise errors.InvalidArgumentError(f"num_sampled and range_max must be at least 1, got {count} and {limit}")
    if unique and count > limit:
        raise errors.InvalidArgumentError(f"Sampler's range is too small: {count} different classes of {limit}.")
    assert_op(reduce_all((known >= 0) & (known < limit)), f"`true_candidate` out of range [0, {limit})")
    # The stream moves on as TensorFlow's does, which reserves 2048 words for each class.
    state = stateful.state_for(2 * count, f"{kind} {num_true} {count} {limit} {bool(unique)}", seed)
    attrs = {"kind": kind, "k": count, "limit": limit, "unique": bool(unique)}
    found, tries = apply(CANDIDATES, (state,), attrs)

    def expected(classes: Tensor) -> Tensor:
        """How often each is among the drawn ones on average."""
        if kind == "uniform":
            chance = fill(dims(classes), np.float32(1 / limit))
        else:
            place = cast(classes, _FLOAT)
            chance = log((place + 2.0) / (place + 1.0)) / np.float32(math.log1p(limit))
        return -expm1(cast(tries, _FLOAT) * log1p(-chance)) if unique and limit > 1 else chance * float(count)

    return CandidateSampler(found, expected(known), expected(found))


@deferrable
def uniform_candidate_sampler(
    true_classes: TensorLike, num_true: int, num_sampled: int, unique: bool, range_max: int, seed: int | None = None,
    name: str | None = None,
) -> CandidateSampler:  # fmt: skip
    """Draws classes, each equally likely. They are `sampled_candidates`, int64, shape (num_sampled).

    true_classes: int64, shape (batch, num_true). unique: whether no class is drawn twice. range_max: the number of
    classes. seed: see `ag.random.set_seed`; the numbers are TensorFlow's. `true_expected_count` and
    `sampled_expected_count`, float32: how often these classes are drawn on average. Raises InvalidArgumentError for
    other shapes, classes out of range, and more unique classes than there are.
    """
    return _sampled("uniform", true_classes, num_true, num_sampled, unique, range_max, seed)


@deferrable
def log_uniform_candidate_sampler(
    true_classes: TensorLike, num_true: int, num_sampled: int, unique: bool, range_max: int, seed: int | None = None,
    name: str | None = None,
) -> CandidateSampler:  # fmt: skip
    """`uniform_candidate_sampler` where a class is drawn with the chance log((class + 2) / (class + 1)) /
    log(range_max + 1): for classes in the order of their frequency, as words in a vocabulary are (Zipf's law)."""
    return _sampled("log_uniform", true_classes, num_true, num_sampled, unique, range_max, seed)


@deferrable
def all_candidate_sampler(
    true_classes: TensorLike, num_true: int, num_sampled: int, unique: bool, seed: int | None = None,
    name: str | None = None,
) -> CandidateSampler:  # fmt: skip
    """All of `num_sampled` classes, each expected once; see `uniform_candidate_sampler`."""
    known = _true(true_classes, int(num_true))
    return CandidateSampler(cast(range_(int(num_sampled)), _LONG), ones(dims(known)), ones([int(num_sampled)]))
