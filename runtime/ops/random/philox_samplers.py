"""Gamma, Poisson and categorical numbers of a Philox stream: TensorFlow's numbers for the same key and counter.

Gamma and Poisson numbers are found by rejection, so that nobody knows how many words one takes: number i has
`philox.BLOCKS` blocks for itself, from block `BLOCKS * i` on. They are independent of each other, so all are tried at
once, and those that were rejected once more.

    parameters   float64, one for each distribution; `count` numbers of each come as a row of the result
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from runtime.ops.random import philox

# How many numbers are looked for at once: what is kept of each stream is some 100 bytes.
_CHUNK = 1 << 16
# Blocks from one binomial number of few successes to the next.
_APART = 42


class _Streams:
    """The streams of the numbers `first ..`, of which uniform and normal doubles are taken.

    A block gives two doubles, taken from the last to the first; uniform and normal ones come from blocks of their own.
    apart: how many blocks one number begins behind the last.
    """

    def __init__(self, key: int, counter: int, first: int, count: int, apart: int = philox.BLOCKS) -> None:
        self.key, self.counter = key, counter
        self.next = np.arange(first, first + count, dtype=np.uint64) * np.uint64(apart)
        self._kept = {kind: np.zeros((count, 2)) for kind in ("uniform", "normal")}
        self._left = {kind: np.zeros(count, np.int64) for kind in ("uniform", "normal")}

    def take(self, kind: str, which: np.ndarray) -> np.ndarray:
        """One double from each of the streams `which`."""
        kept, left = self._kept[kind], self._left[kind]
        empty = which[left[which] == 0]
        if len(empty):
            words = philox.blocks(self.key, self.counter, self.next[empty]).reshape(-1)
            make = philox.normal_of if kind == "normal" else philox.fractions
            kept[empty] = make(words, np.dtype(np.float64)).reshape(-1, 2)
            left[empty] = 2
            self.next[empty] += np.uint64(1)
        left[which] -= 1
        return kept[which, left[which]]


def _in_chunks(sample: Any, key: int, counter: int, parameters: np.ndarray, count: int) -> np.ndarray:
    each = np.repeat(np.asarray(parameters, np.float64).reshape(-1), count)
    result = np.empty(len(each))
    for first in range(0, len(each), _CHUNK):
        part = each[first : first + _CHUNK]
        result[first : first + _CHUNK] = sample(_Streams(key, counter, first, len(part)), part)
    return result.reshape(-1, count)


def gamma(key: int, counter: int, alphas: np.ndarray, count: int) -> np.ndarray:
    """Gamma numbers of scale 1, by the method of Marsaglia and Tsang ("A simple method for generating gamma
    variables", TOMS 2000); below 1 the number for alpha + 1 times u ** (1 / alpha)."""
    return _in_chunks(_gamma, key, counter, alphas, count)


def _gamma(streams: _Streams, alpha: np.ndarray) -> np.ndarray:
    result = np.full(alpha.shape, np.nan)
    exponential = np.flatnonzero(alpha == 1.0)
    result[exponential] = -np.log1p(-streams.take("uniform", exponential))
    small = alpha < 1.0
    d = alpha + np.where(small, 2.0 / 3, -1.0 / 3)
    with np.errstate(invalid="ignore", divide="ignore"):
        c = 1.0 / 3 / np.sqrt(d)
        open_ = np.flatnonzero((alpha != 1.0) & (alpha > 0.0))
        while len(open_):
            x = streams.take("normal", open_)
            v = 1 + c[open_] * x
            positive = v > 0  # a number without is rejected before it takes a uniform one
            tried, x, v = open_[positive], x[positive], v[positive] ** 3
            u = streams.take("uniform", tried)
            scale = d[tried]
            inside = u < 1 - 0.0331 * (x * x) * (x * x)
            inside |= np.log(u) < 0.5 * x * x + scale * (1 - v + np.log(v))
            found = tried[inside]
            result[found] = (scale * v)[inside]
            low = found[small[found]]
            result[low] *= streams.take("uniform", low) ** (1 / alpha[low])
            open_ = np.setdiff1d(open_, found, assume_unique=True)
    return result


def poisson(key: int, counter: int, rates: np.ndarray, count: int, most: float) -> np.ndarray:
    """Poisson numbers up to `most`: for rates below 10 by multiplying uniform numbers (Knuth), else by transformed
    rejection (Hörmann, "The transformed rejection method for generating Poisson random variables", 1993)."""
    return _in_chunks(lambda streams, rate: _poisson(streams, rate, most), key, counter, rates, count)


def _poisson(streams: _Streams, rate: np.ndarray, most: float) -> np.ndarray:
    result = np.full(rate.shape, np.nan)
    slow = np.flatnonzero((rate >= 0) & (rate < 10))
    limit, product, number = np.exp(-rate), np.ones(rate.shape), 0
    while len(slow):
        product[slow] *= streams.take("uniform", slow)
        done = product[slow] <= limit[slow]
        result[slow[done]] = number
        slow, number = slow[~done], number + 1
    _transformed(streams, np.flatnonzero((rate >= 10) & np.isfinite(rate)), rate, most, result)
    return result


def _transformed(streams: _Streams, open_: np.ndarray, rate: np.ndarray, most: float, result: np.ndarray) -> None:
    lgamma = importlib.import_module("scipy.special").gammaln
    while len(open_):
        mean = rate[open_]
        b = 0.931 + 2.53 * np.sqrt(mean)
        a = -0.059 + 0.02483 * b
        u = streams.take("uniform", open_) - 0.5
        v = streams.take("uniform", open_)
        from_edge = 0.5 - np.abs(u)
        with np.errstate(divide="ignore", invalid="ignore"):
            k = np.floor((2 * a / from_edge + b) * u + mean + 0.43)
            simple = (from_edge >= 0.07) & (v <= 0.9277 - 3.6224 / (b - 2))
            hopeless = (k < 0) | ((from_edge < 0.013) & (v > from_edge))
            density = np.log(v * (1.1239 + 1.1328 / (b - 3.4)) / (a / (from_edge * from_edge) + b))
            under = density <= -mean + k * np.log(mean) - lgamma(k + 1)
        accepted = (k <= most) & (simple | (~hopeless & under))
        result[open_[accepted]] = k[accepted]
        open_ = open_[~accepted]


def binomial(key: int, counter: int, trials: np.ndarray, odds: np.ndarray, count: int) -> np.ndarray:
    """How many of `trials` succeed: where few do by the geometric distances between them (Devroye, "Generating the
    maximum of independent identically distributed random variables", 1980), else by transformed rejection (Hörmann,
    "The generation of binomial random variates", 1993). NaN where the odds are."""
    both = np.stack([np.asarray(each, np.float64).reshape(-1) for each in (trials, odds)], 1)
    each = np.repeat(both, count, 0)
    result = np.empty(len(each))
    for first in range(0, len(each), _CHUNK):
        part = each[first : first + _CHUNK]
        streams = [_Streams(key, counter, first, len(part), apart) for apart in (_APART, philox.BLOCKS)]
        result[first : first + _CHUNK] = _binomial(streams, part[:, 0], part[:, 1])
    return result.reshape(-1, count)


def _binomial(streams: list[_Streams], trials: np.ndarray, odds: np.ndarray) -> np.ndarray:
    result = np.where(np.isnan(odds), np.nan, 0.0)
    certain = np.minimum(odds, 1.0)
    # The rarer of success and failure is counted.
    rarer = np.where(certain <= 0.5, certain, 1 - certain)
    drawn = np.flatnonzero((trials > 0) & (rarer > 0) & np.isfinite(trials * rarer))
    many = trials[drawn] * rarer[drawn] >= 10
    _by_distances(streams[0], drawn[~many], trials, rarer, result)
    _by_rejection(streams[1], drawn[many], trials, rarer, result)
    return np.where(certain <= 0.5, result, np.maximum(trials, 0) - result)


def _by_distances(streams: _Streams, open_: np.ndarray, trials: Any, odds: Any, result: np.ndarray) -> None:
    reached, number = np.zeros(trials.shape), 0
    while len(open_):
        with np.errstate(divide="ignore"):
            steps = np.ceil(np.log(streams.take("uniform", open_)) / np.log1p(-odds[open_]))
        reached[open_] += steps
        done = reached[open_] > trials[open_]
        result[open_[done]] = number
        open_, number = open_[~done], number + 1


def _tail(k: np.ndarray) -> np.ndarray:
    """log(k!) less Stirling's formula."""
    after = k + 1
    series = (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / after**2) / after**2) / after
    exact = np.array([
        0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.0207906721037650, 0.0166446911898211,
        0.0138761288230707, 0.0118967099458917, 0.0104112652619720, 0.0092554621827127, 0.0083305634333629,
    ])  # fmt: skip
    return np.where(k <= 9, exact[np.clip(k, 0, 9).astype(np.int64)], series)


def _by_rejection(streams: _Streams, open_: np.ndarray, trials: Any, odds: Any, result: np.ndarray) -> None:
    while len(open_):
        n, p = trials[open_], odds[open_]
        deviation = np.sqrt(n * p * (1 - p))
        b = 1.15 + 2.53 * deviation
        a = -0.0873 + 0.0248 * b + 0.01 * p
        ratio, mode = p / (1 - p), np.floor((n + 1) * p)
        u = streams.take("uniform", open_) - 0.5
        v = streams.take("uniform", open_)
        from_edge = 0.5 - np.abs(u)
        with np.errstate(divide="ignore", invalid="ignore"):
            k = np.floor((2 * a / from_edge + b) * u + n * p + 0.5)
            simple = (from_edge >= 0.07) & (v <= 0.92 - 4.2 / b)
            possible = (k >= 0) & (k <= n)
            density = np.log(v * (2.83 + 5.1 / b) * deviation / (a / (from_edge * from_edge) + b))
            bound = (
                (mode + 0.5) * np.log((mode + 1) / (ratio * (n - mode + 1)))
                + (n + 1) * np.log((n - mode + 1) / (n - k + 1))
                + (k + 0.5) * np.log(ratio * (n - k + 1) / (k + 1))
                + _tail(mode) + _tail(n - mode) - _tail(k) - _tail(n - k)
            )  # fmt: skip
        accepted = simple | (possible & (density <= bound))
        result[open_[accepted]] = k[accepted]
        open_ = open_[~accepted]


def categorical(key: int, counter: int, logits: np.ndarray, count: int) -> np.ndarray:
    """Classes of the distributions softmax(logits), of shape (rows, classes): `count` for each row, int64.

    A uniform number is looked up in the sums of the classes' weights. Not finite logits count as no class.
    """
    wide = np.asarray(logits, np.float64)
    finite = np.isfinite(wide)
    top = np.max(np.where(finite, wide, -np.inf), axis=1, keepdims=True, initial=-np.inf)
    with np.errstate(invalid="ignore", over="ignore"):
        sums = np.cumsum(np.where(finite, np.exp(wide - top), 0.0), axis=1)
    drawn = philox.uniform(key, counter, wide.shape[0] * count, np.float64).reshape(wide.shape[0], count)
    rows = [np.searchsorted(s, u * s[-1], side="right") if len(s) else u for s, u in zip(sums, drawn)]
    return np.array(rows, np.int64).reshape(wide.shape[0], count)
