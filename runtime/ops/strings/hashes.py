"""Hashes of byte strings: the numbers that TensorFlow's `to_hash_bucket` and its like take.

FarmHash: Geoff Pike, https://github.com/google/farmhash (Fingerprint64). MurmurHash64A: Austin Appleby,
https://github.com/aappleby/smhasher. SipHash-2-4: Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012.
"""

from __future__ import annotations

_MASK = (1 << 64) - 1
_K0, _K1, _K2 = 0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F
_MURMUR = 0xC6A4A7935BD1E995
_MURMUR_SEED = 0xDECAFCAFFE


def _word(data: bytes, at: int, size: int = 8) -> int:
    return int.from_bytes(data[at : at + size], "little")


def _right(value: int, by: int) -> int:
    """Rotated to the right."""
    value &= _MASK
    return (value >> by | value << (64 - by)) & _MASK


def _mixed(value: int) -> int:
    value &= _MASK
    return value ^ value >> 47


def _pair(u: int, v: int, factor: int) -> int:
    a = _mixed((u ^ v) * factor)
    return _mixed((v ^ a) * factor) * factor & _MASK


def _weak(data: bytes, at: int, a: int, b: int) -> tuple[int, int]:
    """Two numbers for 32 bytes and two seeds."""
    w, x, y, z = (_word(data, at + step) for step in (0, 8, 16, 24))
    a = a + w & _MASK
    b = _right(b + a + z, 21)
    c = a
    a = a + x + y & _MASK
    b = b + _right(a, 44)
    return a + z & _MASK, b + c & _MASK


def _up_to_16(data: bytes) -> int:
    size = len(data)
    factor = _K2 + size * 2
    if size >= 8:
        a, b = _word(data, 0) + _K2 & _MASK, _word(data, size - 8)
        return _pair(_right(b, 37) * factor + a & _MASK, (_right(a, 25) + b) * factor & _MASK, factor)
    if size >= 4:
        return _pair(size + (_word(data, 0, 4) << 3), _word(data, size - 4, 4), factor)
    if size:
        y, z = data[0] + (data[size >> 1] << 8), size + (data[-1] << 2)
        return _mixed(y * _K2 & _MASK ^ z * _K0 & _MASK) * _K2 & _MASK
    return _K2


def _up_to_64(data: bytes) -> int:
    size = len(data)
    factor = _K2 + size * 2
    head = _word(data, 0) * (_K1 if size <= 32 else _K2) & _MASK
    second, last, before = _word(data, 8), _word(data, size - 8) * factor & _MASK, _word(data, size - 16) * _K2
    y = _right(head + second, 43) + _right(last, 30) + before & _MASK
    z = _pair(y, head + _right(second + _K2, 18) + last & _MASK, factor)
    if size <= 32:
        return z
    e, f = _word(data, 16) * factor & _MASK, _word(data, 24)
    g, h = (y + _word(data, size - 32)) * factor & _MASK, (z + _word(data, size - 24)) * factor & _MASK
    return _pair(_right(e + f, 43) + _right(g, 30) + h & _MASK, e + _right(f + head, 18) + g & _MASK, factor)


def fingerprint64(data: bytes) -> int:
    """FarmHash's Fingerprint64.

    >>> fingerprint64(b"")
    11160318154034397263
    """
    size = len(data)
    if size <= 16:
        return _up_to_16(data)
    if size <= 64:
        return _up_to_64(data)
    y = 81 * _K1 + 113 & _MASK
    z = _mixed(y * _K2 + 113) * _K2 & _MASK
    x = 81 * _K2 + _word(data, 0) & _MASK
    state = (x, y, z, (0, 0), (0, 0))
    for at in range(0, (size - 1) // 64 * 64, 64):
        state = _step(data, at, state, _K1, 1)
    x, y, z, v, w = state
    factor = _K1 + ((z & 0xFF) << 1)
    rest = (size - 1) & 63
    first = v[0] + w[0] + rest & _MASK
    v, w = (first, v[1]), (w[0] + rest + first & _MASK, w[1])
    x, y, z, v, w = _step(data, size - 64, (x, y, z, v, w), factor, 9)
    return _pair(_pair(v[0], w[0], factor) + _mixed(y) * _K0 + z & _MASK, _pair(v[1], w[1], factor) + x & _MASK, factor)


def _step(data: bytes, at: int, state: tuple, factor: int, weight: int) -> tuple:
    """The state after 64 bytes."""
    x, y, z, v, w = state
    x = _right(x + y + v[0] + _word(data, at + 8), 37) * factor & _MASK
    y = _right(y + v[1] + _word(data, at + 48), 42) * factor & _MASK
    x ^= w[1] * weight & _MASK
    y = y + v[0] * weight + _word(data, at + 40) & _MASK
    z = _right(z + w[0], 33) * factor & _MASK
    v = _weak(data, at, v[1] * factor & _MASK, x + w[0] & _MASK)
    w = _weak(data, at + 32, z + w[1] & _MASK, y + _word(data, at + 16) & _MASK)
    return z, y, x, v, w


def murmur64(data: bytes) -> int:
    """MurmurHash64A with the seed that TensorFlow gives it.

    >>> murmur64(b"") == murmur64(b"a")
    False
    """
    size = len(data)
    result = _MURMUR_SEED ^ size * _MURMUR & _MASK
    whole = size // 8 * 8
    for at in range(0, whole, 8):
        word = _mixed(_word(data, at) * _MURMUR) * _MURMUR & _MASK
        result = (result ^ word) * _MURMUR & _MASK
    if size > whole:
        result = (result ^ _word(data, whole)) * _MURMUR & _MASK
    return _mixed(_mixed(result) * _MURMUR)


def siphash(data: bytes, key: tuple[int, int]) -> int:
    """SipHash-2-4 under a key of two 64-bit numbers.

    >>> hex(siphash(bytes(range(15)), (0x0706050403020100, 0x0F0E0D0C0B0A0908)))
    '0xa129ca6149be45e5'
    """
    k0, k1 = (part & _MASK for part in key)
    state = [k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573]

    def rounds(count: int) -> None:
        a, b, c, d = state
        for _ in range(count):
            a, c = a + b & _MASK, c + d & _MASK
            b, d = _right(b, 51) ^ a, _right(d, 48) ^ c
            a = _right(a, 32)
            a, c = a + d & _MASK, c + b & _MASK
            b, d = _right(b, 47) ^ c, _right(d, 43) ^ a
            c = _right(c, 32)
        state[:] = a, b, c, d

    whole = len(data) // 8 * 8
    words = [_word(data, at) for at in range(0, whole, 8)]
    for word in [*words, _word(data, whole) | (len(data) & 0xFF) << 56]:
        state[3] ^= word
        rounds(2)
        state[0] ^= word
    state[2] ^= 0xFF
    rounds(4)
    return state[0] ^ state[1] ^ state[2] ^ state[3]


def joined_fingerprint(first: int, second: int) -> int:
    """One fingerprint of two, as TensorFlow's FingerprintCat64."""
    result = (first ^ _MURMUR) & _MASK
    result ^= _mixed(second * _MURMUR) * _MURMUR & _MASK
    result = _mixed(result * _MURMUR) * _MURMUR
    return _mixed(result)
