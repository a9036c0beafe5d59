"""The part of the library that makes random numbers: blocks of Philox4x32-10 (`ops/random/philox.py`) as machine
integers. Imported by kernel files only.

low, high: the two halves of the number of a stream's block; key: the stream's. All uint64.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from runtime.codegen.kernel_library.algorithms import place_in


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
    """Writes 4,096 random words, or as many as fit, from out[begin] on. Their first block is number begin / 4."""
    end = min(begin + 4096, out.size)
    blocks = (end - begin) // 4
    mask = np.uint64(0xFFFFFFFF)
    half = np.uint64(32)
    first = low + np.uint64(begin // 4)
    carried = high + np.uint64(first < low)
    for i in range(blocks):
        number = first + np.uint64(i)
        upper = carried + np.uint64(number < first)
        # The rounds are written out, because LLVM vectorises them over several blocks, but not calls.
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


@njit(nogil=True)
def normal_float32(first: Any, second: Any, cosine: bool) -> Any:
    """One of the two normal numbers that two words make, rounded where `ops.philox.normal_of` rounds."""
    low = np.float32(first & np.uint64(0x7FFFFF)) * np.float32(1.1920928955078125e-07)
    low = low if low > np.float32(1e-07) else np.float32(1e-07)
    radius = math.sqrt(np.float32(-2.0) * np.float32(math.log(np.float64(low))))
    turn = np.float32(second & np.uint64(0x7FFFFF)) * np.float32(1.1920928955078125e-07)
    angle = np.float64(np.float32(6.283185307179586 * np.float64(turn)))
    return np.float32(math.cos(angle) if cosine else math.sin(angle)) * radius


@njit(nogil=True)
def fraction_float64(pair: Any) -> Any:
    """A number in [0, 1) from two words; the first has the upper bits."""
    bits = ((pair & np.uint64(0xFFFFF)) << np.uint64(32)) | (pair >> np.uint64(32))
    return np.float64(bits) * 2.220446049250313e-16


@njit(nogil=True)
def normal_float64(first: Any, second: Any, cosine: bool) -> Any:
    """One of the two normal numbers that two pairs of words make."""
    low = fraction_float64(first)
    low = low if low > 1e-07 else 1e-07
    radius = math.sqrt(-2.0 * math.log(low))
    angle = 6.283185307179586 * fraction_float64(second)
    return (math.cos(angle) if cosine else math.sin(angle)) * radius


@njit(nogil=True)
def fill_truncated(out: Any, group: int, wide: bool, low: Any, high: Any, key: Any) -> None:
    """Writes a group of normal numbers between -2 and 2: four, or two of float64. Each group has 256 blocks of its own
    for each of its numbers, and takes the first numbers that lie in the range."""
    size = 2 if wide else 4
    begin = group * size
    end = min(begin + size, out.size)
    mask = np.uint64(0xFFFFFFFF)
    half = np.uint64(32)
    number = low + np.uint64(group * size * 64)
    upper = high + np.uint64(number < low)
    place = begin
    while place < end:
        a = random_words(number, upper, key, False)
        b = random_words(number, upper, key, True)
        for k in range(size):
            if wide:
                x = normal_float64(a, b, k == 1)
            elif k < 2:
                x = np.float64(normal_float32(a & mask, a >> half, k == 1))
            else:
                x = np.float64(normal_float32(b & mask, b >> half, k == 3))
            if abs(x) < 2.0 and place < end:
                out[place] = x
                place = place + 1
        number = number + np.uint64(1)
        upper = upper + np.uint64(number == np.uint64(0))


@njit(nogil=True)
def fill_permutation(out: Any, low: Any, high: Any, key: Any) -> None:
    """0, 1, ... in random order, by the shuffle of Fisher and Yates: each element is exchanged with itself or a later
    one, chosen by a word of its own."""
    for i in range(out.size):
        out[i] = i
    for i in range(out.size - 1):
        number = low + np.uint64(i // 4)
        pair = random_words(number, high + np.uint64(number < low), key, i % 4 >= 2)
        word = pair >> np.uint64(32) if i % 2 == 1 else pair & np.uint64(0xFFFFFFFF)
        other = i + np.int64(word % np.uint64(out.size - i))
        kept = out[i]
        out[i] = out[other]
        out[other] = kept


@njit(nogil=True)
def draw_classes(
    logits: Any, begin: int, classes: int, sums: Any, out: Any, at: int, count: int, low: Any, high: Any, key: Any
) -> None:
    """Draws `count` classes with the probabilities of a row of logits: looks up a stream's numbers from `at` on in the
    cumulative sums of the classes' weights. A class whose logit isn't finite is never drawn. sums: scratch memory for a
    row."""
    top = -np.inf
    for j in range(begin, begin + classes):
        here = np.float64(logits[j])
        top = here if np.isfinite(here) and here > top else top
    total = 0.0
    for j in range(begin, begin + classes):
        here = np.float64(logits[j])
        total = total + (math.exp(here - top) if np.isfinite(here) else 0.0)
        sums[j] = total
    for j in range(at, at + count):
        number = low + np.uint64(j // 2)
        pair = random_words(number, high + np.uint64(number < low), key, j % 2 == 1)
        out[j] = place_in(sums, begin, classes, fraction_float64(pair) * total, True)
