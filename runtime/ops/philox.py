"""Philox4x32-10, a counter-based random number generator (Salmon et al., "Parallel random numbers: as easy as
1, 2, 3", SC'11): block i of the stream of a key is a function of (key, i), so any part of it can be made on its own.

    key      64 bits, as a Python int: what seeds are turned into
    counter  the number of the first block; each block has four 32-bit words

Uniform numbers take one word each (float64: two); normal ones are made in pairs by the Box-Muller transform.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_M0, _M1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_W0, _W1 = 0x9E3779B9, 0xBB67AE85
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


def words(key: int, counter: int, count: int) -> np.ndarray:
    """`count` random 32-bit words of the stream of `key`, from block `counter` on."""
    blocks = -(-count // 4)
    numbers = np.arange(blocks, dtype=np.uint64) + np.uint64(counter & 0xFFFFFFFFFFFFFFFF)
    c0, c1 = numbers & _LOW, numbers >> _HALF
    c2, c3 = np.zeros_like(c0), np.zeros_like(c0)
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
    return np.stack([c0, c1, c2, c3], 1).reshape(-1)[:count].astype(np.uint32)


def uniform(key: int, counter: int, count: int, dtype: Any) -> np.ndarray:
    """Uniform in [0, 1), of float16, float32 or float64: multiples of 2**-11, 2**-24, 2**-53."""
    dtype = np.dtype(dtype)
    if dtype == np.float64:
        pairs = words(key, counter, 2 * count).astype(np.uint64).reshape(-1, 2)
        return ((pairs[:, 0] >> np.uint64(5)) * np.uint64(1 << 26) + (pairs[:, 1] >> np.uint64(6))) * 2.0**-53
    bits = 24 if dtype == np.float32 else 11
    kept = words(key, counter, count) >> np.uint32(32 - bits)
    return (kept.astype(np.float32) * np.float32(2.0**-bits)).astype(dtype)


def normal(key: int, counter: int, count: int, dtype: Any) -> np.ndarray:
    """Standard normal numbers. Computed in float64 for float64, else in float32."""
    wide = np.float64 if np.dtype(dtype) == np.float64 else np.float32
    pairs = uniform(key, counter, 2 * -(-count // 2), wide).reshape(-1, 2)
    # 1 - u is in (0, 1], so that the logarithm is finite.
    radius = np.sqrt(-2 * np.log(1 - pairs[:, 0]))
    angle = wide(2 * np.pi) * pairs[:, 1]
    result = np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1).reshape(-1)
    return result[:count].astype(dtype)


def blocks_for(count: int) -> int:
    """How many blocks to move the counter on after drawing `count` numbers of any kind."""
    return -(-count // 2) + 1


def integers(key: int, counter: int, count: int, low: int, high: int, dtype: Any) -> np.ndarray:
    """Integers in [low, high), by multiplying 64 random bits with the range (bias below 2**-32 for 32-bit ranges)."""
    span = high - low
    pairs = words(key, counter, 2 * count).astype(np.uint64).reshape(-1, 2)
    if span <= 1 << 32:
        # (hi * 2**32 + lo) * span >> 64, without 128-bit numbers.
        s = np.uint64(span)
        carry = (pairs[:, 1] * s) >> _HALF if span < 1 << 32 else pairs[:, 1]
        drawn = (pairs[:, 0] * s + carry) >> _HALF if span < 1 << 32 else pairs[:, 0]
    else:
        drawn = ((pairs[:, 0] << _HALF) | pairs[:, 1]) % np.uint64(span)
    return (drawn.astype(np.int64) + np.int64(low)).astype(dtype)


def key_from_seeds(*seeds: int) -> int:
    """A 64-bit key from seeds of any size (splitmix64 finaliser over their 64-bit parts)."""
    key = 0x9E3779B97F4A7C15
    for seed in seeds:
        key = (key ^ (seed & 0xFFFFFFFFFFFFFFFF)) * 0xBF58476D1CE4E5B9 & 0xFFFFFFFFFFFFFFFF
        key = (key ^ (key >> 27)) * 0x94D049BB133111EB & 0xFFFFFFFFFFFFFFFF
        key ^= key >> 31
    return key
