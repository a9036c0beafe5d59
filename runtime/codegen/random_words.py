"""The part of the library that makes random numbers: blocks of Philox4x32-10 (`ops/philox.py`) as machine integers.
Imported by kernel files only.

low, high: the two halves of the number of a stream's block; key: the stream's. All uint64.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


@njit(nogil=True)
def random_words(low: Any, high: Any, key: Any, second: bool) -> Any:
    """Two of the four words of a block, the first of them below: words 0 and 1, or 2 and 3."""
    mask = np.uint64(0xFFFFFFFF)
    half = np.uint64(32)
    a = low & mask
    b = low >> half
    c = high & mask
    d = high >> half
    k = key & mask
    m = key >> half
    for _ in range(10):
        x = a * np.uint64(0xD2511F53)
        y = c * np.uint64(0xCD9E8D57)
        a = (y >> half) ^ b ^ k
        b = y & mask
        c = (x >> half) ^ d ^ m
        d = x & mask
        k = (k + np.uint64(0x9E3779B9)) & mask
        m = (m + np.uint64(0xBB67AE85)) & mask
    return c | (d << half) if second else a | (b << half)


@njit(nogil=True)
def fill_words(out: Any, begin: int, low: Any, high: Any, key: Any) -> None:
    """Writes 4,096 random words (or what there is room for) from out[begin] on, whose blocks begin at begin / 4."""
    end = min(begin + 4096, out.size)
    blocks = (end - begin) // 4
    mask = np.uint64(0xFFFFFFFF)
    half = np.uint64(32)
    first = low + np.uint64(begin // 4)
    carried = high + np.uint64(first < low)
    for i in range(blocks):
        number = first + np.uint64(i)
        upper = carried + np.uint64(number < first)
        a = number & mask
        b = number >> half
        c = upper & mask
        d = upper >> half
        k = key & mask
        m = key >> half
        for _ in range(10):
            x = a * np.uint64(0xD2511F53)
            y = c * np.uint64(0xCD9E8D57)
            a = (y >> half) ^ b ^ k
            b = y & mask
            c = (x >> half) ^ d ^ m
            d = x & mask
            k = (k + np.uint64(0x9E3779B9)) & mask
            m = (m + np.uint64(0xBB67AE85)) & mask
        at = begin + i * 4
        out[at] = np.uint32(a)
        out[at + 1] = np.uint32(b)
        out[at + 2] = np.uint32(c)
        out[at + 3] = np.uint32(d)
    for j in range(begin + blocks * 4, end):
        number = first + np.uint64(blocks)
        upper = carried + np.uint64(number < first)
        pair = random_words(number, upper, key, j % 4 >= 2)
        out[j] = np.uint32(pair >> half if j % 2 == 1 else pair & mask)
