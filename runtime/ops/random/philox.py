"""Philox4x32-10, a counter-based random number generator (Salmon et al., "Parallel random numbers: as easy as
1, 2, 3", SC'11): block i of the stream of a key is a function of (key, i), so any part of it can be made on its own.

    key      64 bits, as a Python int
    counter  128 bits, as a Python int: the number of the first block; each block has four 32-bit words

What the words become is TensorFlow's choice, so that the same seeds give the same numbers: uniform floats keep as many
of the low bits as the mantissa has; normal ones are made in pairs by the Box-Muller transform; integers are the rest of
a division by the range; and a draw of `count` numbers uses up `BLOCKS * count` blocks, however many it needs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

_M0, _M1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_W0, _W1 = 0x9E3779B9, 0xBB67AE85
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_MASK = (1 << 64) - 1
# What each number drawn moves the counter on by.
BLOCKS = 256
# What the seeds of stateless functions are enciphered with.
STATELESS_KEY = 0x3EC8F720 | 0x02461E29 << 32
# Box-Muller takes smaller uniform numbers for this one, so that the logarithm is finite.
SMALLEST = 1e-7
_FEW = 16
# Pairs of normal numbers that are made at once.
_CHUNK = 1 << 14
# Mantissa bits of the dtypes narrower than float64, by name: bfloat16 isn't one of NumPy's own.
_MANTISSA = {"float32": 23, "float16": 10, "bfloat16": 7}


# Numbers: below the first the call of compiled code isn't worth it. NumPy takes some 20 ms for as many as the second.
_MANY, _WORTH_COMPILING = 1 << 12, 1 << 20
Draw = Callable[[int, int, int], np.ndarray]  # (key, counter, count) -> numbers


class _Native:
    """Compiled code in place of NumPy's, which takes a tenth of the time or less, once a program has drawn many
    numbers.

    It gives the same bits, whoever computes logarithms, sines and cosines: normal numbers of float32 are made from
    2**23 uniform ones, for none of which the functions of float64 come closer to the middle between two numbers of
    float32 than some of float64's last places. Those of float64 differ, so there is no compiled code for them here.

    functions: by the names of functions below. request: has one compiled.
    """

    def __init__(self) -> None:
        self.functions: dict[str, Draw] = {}
        self.request: Callable[[str], None] | None = None
        self._missed: dict[str, int] = {}  # how many numbers it could have made

    def function(self, kind: str, count: int) -> Draw | None:
        """What makes `count` numbers of a kind; None if NumPy has to."""
        if count < _MANY:
            return None
        found = self.functions.get(kind)
        if found is None and self.request is not None:
            self._missed[kind] = self._missed.get(kind, 0) + count
            if self._missed[kind] >= _WORTH_COMPILING:
                self.request(kind)
        return found


native = _Native()


def words(key: int, counter: int, count: int) -> np.ndarray:
    """`count` random 32-bit words of the stream of `key`, from block `counter` on."""
    if count <= _FEW:
        return _few(key, counter, count)
    compiled = native.function("words", count)
    if compiled is not None:
        return compiled(key, counter, count)
    return blocks(key, counter, np.arange(-(-count // 4), dtype=np.uint64)).reshape(-1)[:count]


def _few(key: int, counter: int, count: int) -> np.ndarray:
    """A few random words, computed with Python's integers: for few words that takes a tenth of NumPy's time."""
    found: list[int] = []
    while len(found) < count:
        c0, c1, c2, c3 = (counter >> shift & 0xFFFFFFFF for shift in (0, 32, 64, 96))
        k0, k1 = key & 0xFFFFFFFF, (key >> 32) & 0xFFFFFFFF
        for _ in range(10):
            low, high = 0xD2511F53 * c0, 0xCD9E8D57 * c2
            c0, c1, c2, c3 = (high >> 32) ^ c1 ^ k0, high & 0xFFFFFFFF, (low >> 32) ^ c3 ^ k1, low & 0xFFFFFFFF
            k0, k1 = (k0 + _W0) & 0xFFFFFFFF, (k1 + _W1) & 0xFFFFFFFF
        found += (c0, c1, c2, c3)
        counter += 1
    return np.array(found[:count], np.uint32)


def blocks(key: int, counter: int, offsets: np.ndarray) -> np.ndarray:
    """The blocks `counter + offsets` of the stream of `key`, uint32 of shape (len(offsets), 4)."""
    start = np.uint64(counter & _MASK)
    numbers = offsets + start
    upper = np.uint64(counter >> 64 & _MASK) + (numbers < start)  # with the carry
    c0, c1, c2, c3 = numbers & _LOW, numbers >> _HALF, upper & _LOW, upper >> _HALF
    k0, k1 = key & 0xFFFFFFFF, (key >> 32) & 0xFFFFFFFF
    for _ in range(10):
        low, high = _M0 * c0, _M1 * c2
        c0, c1, c2, c3 = (
            (high >> _HALF) ^ c1 ^ np.uint64(k0),
            high & _LOW,
            (low >> _HALF) ^ c3 ^ np.uint64(k1),
            low & _LOW,
        )
        k0, k1 = (k0 + _W0) & 0xFFFFFFFF, (k1 + _W1) & 0xFFFFFFFF
    return np.stack([c0, c1, c2, c3], 1).astype(np.uint32)


def uniform(key: int, counter: int, count: int, dtype: Any) -> np.ndarray:
    """Uniform in [0, 1): multiples of 2**-7 (bfloat16), 2**-10 (float16), 2**-23 (float32), 2**-52 (float64)."""
    dtype = np.dtype(dtype)
    return fractions(words(key, counter, 2 * count if dtype == np.float64 else count), dtype)


def fractions(drawn: np.ndarray, dtype: Any) -> np.ndarray:
    """Numbers in [0, 1) from the low bits of each word; float64 takes two words, the upper one first."""
    if dtype == np.float64:
        pairs = drawn.astype(np.uint64).reshape(-1, 2)
        return ((pairs[:, 0] & np.uint64(0xFFFFF)) << _HALF | pairs[:, 1]) * 2.0**-52
    bits = _MANTISSA[dtype.name]
    return ((drawn & np.uint32((1 << bits) - 1)).astype(np.float32) * np.float32(2.0**-bits)).astype(dtype)


def normal(key: int, counter: int, count: int, dtype: Any) -> np.ndarray:
    """Standard normal numbers. Computed from the uniform ones of float64 for float64, else from those of float32."""
    wide = np.dtype(dtype) == np.float64
    compiled = None if wide else native.function("normal", count)
    if compiled is not None:
        return compiled(key, counter, count).astype(dtype, copy=False)
    kind = np.dtype(np.float64 if wide else np.float32)
    even = count + count % 2
    return normal_of(words(key, counter, 2 * even if wide else even), kind)[:count].astype(dtype)


def normal_of(drawn: np.ndarray, dtype: Any) -> np.ndarray:
    """A pair of normal numbers for each pair of uniform ones, which are float64 or float32."""
    kind, size = dtype.type, 2 if dtype == np.float64 else 1  # words of a number
    result = np.empty((len(drawn) // (2 * size), 2), dtype)
    for at in range(0, len(result), _CHUNK):  # what stays in the processor's cache
        part = drawn[2 * size * at : 2 * size * (at + _CHUNK)].reshape(-1, 2 * size)
        first, second = (fractions(half.reshape(-1), dtype) for half in (part[:, :size], part[:, size:]))
        # Steps round as TensorFlow's do; functions of float32 are computed wider, which is what C's come to.
        logarithm = np.log(np.maximum(first, kind(SMALLEST)), dtype=np.float64).astype(kind, copy=False)
        radius = np.sqrt(-2 * logarithm)
        angle = (2 * np.pi * second.astype(np.float64, copy=False)).astype(kind, copy=False)
        angle = angle.astype(np.float64, copy=False)
        pairs = result[at : at + _CHUNK]
        np.multiply(np.sin(angle).astype(kind, copy=False), radius, out=pairs[:, 0])
        np.multiply(np.cos(angle).astype(kind, copy=False), radius, out=pairs[:, 1])
    return result.reshape(-1)


def truncated_normal(key: int, counter: int, count: int, dtype: Any) -> np.ndarray:
    """Standard normal numbers closer than 2 to 0, by drawing again.

    Each group of as many numbers as a block gives has `BLOCKS` blocks for each of them, of which it takes the first
    numbers that are small enough.
    """
    wide = np.dtype(dtype) == np.float64
    compiled = None if wide else native.function("truncated_normal", count)
    if compiled is not None:
        return compiled(key, counter, count).astype(dtype, copy=False)
    size = 2 if wide else 4
    groups = -(-count // size)
    stride = np.uint64(BLOCKS * size // 4)
    result = np.zeros((groups, size), np.float64 if wide else np.float32)
    # Groups that aren't full yet, how many numbers they have, and the next of their blocks. Two blocks at a time are
    # enough for nearly all; each pair of normal numbers takes a whole number of them.
    open_: np.ndarray = np.arange(groups, dtype=np.uint64)
    filled, block = np.zeros(groups, np.int64), 0
    while len(open_):
        offsets = (open_ * stride)[:, None] + np.arange(block, block + 2, dtype=np.uint64)
        candidates = normal_of(blocks(key, counter, offsets.reshape(-1)).reshape(-1), result.dtype).reshape(
            len(open_), -1
        )
        small = np.abs(candidates) < 2
        place = filled[open_][:, None] + np.cumsum(small, 1) - 1
        row, column = np.nonzero(small & (place < size))
        result[open_[row], place[row, column]] = candidates[row, column]
        filled[open_] += small.sum(1)
        open_, block = open_[filled[open_] < size], block + 2
    return result.reshape(-1)[:count].astype(dtype)


def integers(key: int, counter: int, count: int, low: int, high: int, dtype: Any) -> np.ndarray:
    """Integers in [low, high): words modulo the range, two of them for 64-bit dtypes.

    The bias is at most the range over 2**32, or over 2**64.
    """
    drawn = full_integers(key, counter, count, dtype)
    return (drawn % drawn.dtype.type(high - low) + drawn.dtype.type(low & _limit(dtype))).astype(dtype)


def _limit(dtype: Any) -> int:
    return _MASK if np.dtype(dtype).itemsize == 8 else 0xFFFFFFFF


def full_integers(key: int, counter: int, count: int, dtype: Any) -> np.ndarray:
    """Unsigned integers of all the bits of a 32-bit or 64-bit dtype; narrower ones get 32 bits."""
    if np.dtype(dtype).itemsize < 8:
        return words(key, counter, count)
    pairs = words(key, counter, 2 * count).astype(np.uint64).reshape(-1, 2)
    return pairs[:, 0] | pairs[:, 1] << _HALF


def permutation(key: int, counter: int, count: int) -> np.ndarray:
    """0 .. count - 1 in random order (int32), by the shuffle of Fisher and Yates."""
    order = list(range(count))
    left = np.arange(count, 1, -1, dtype=np.uint32)
    for i, step in enumerate((words(key, counter, len(left)) % left).tolist()):
        order[i], order[i + step] = order[i + step], order[i]
    return np.array(order, np.int32)


class Words:
    """The random 32-bit words of a stream one after another, from the start of the stream on."""

    _AT_ONCE = 1024

    def __init__(self, key: int, counter: int) -> None:
        self._key, self._counter = key, counter
        self._ready: np.ndarray = np.empty(0, np.int64)
        self.used = 0  # how many words have been taken

    def skip(self, count: int) -> None:
        """Leaves out the first `count` words; only before any is taken."""
        self._counter += count // 4
        self.take(count % 4)
        self.used = count

    def __next__(self) -> int:
        return int(self.take(1)[0])

    def take(self, count: int) -> np.ndarray:
        """The next `count` words, as int64."""
        missing = count - len(self._ready)
        if missing > 0:
            blocks = -(-max(missing, self._AT_ONCE) // 4)
            found = words(self._key, self._counter, blocks * 4)
            self._counter += blocks
            self._ready = np.concatenate([self._ready, found])
        taken, self._ready = self._ready[:count], self._ready[count:]
        self.used += count
        return taken

    def below(self, limit: int, bits: int = 32) -> int:
        """An integer in [0, limit), each equally likely: numbers that would favour some are drawn again."""
        drawn = self._number(bits)
        if limit & (limit - 1) == 0:
            return drawn & (limit - 1)
        unfair = (1 << bits) % limit
        while drawn < unfair:
            drawn = self._number(bits)
        return drawn % limit

    def _number(self, bits: int) -> int:
        return next(self) if bits == 32 else next(self) | next(self) << 32

    def fraction(self) -> float:
        """A number in [0, 1) of 52 bits."""
        return ((next(self) & 0xFFFFF) << 32 | next(self)) / (1 << 52)


def stateless_start(first: int, second: int) -> tuple[int, int]:
    """Key and counter for a pair of 64-bit seeds: the seeds enciphered, so that any of their bits matters."""
    mixed = [int(w) for w in words(STATELESS_KEY, (first & _MASK) | (second & _MASK) << 64, 4)]
    return mixed[0] | mixed[1] << 32, (mixed[2] | mixed[3] << 32) << 64
