"""The symbols that an object file takes from elsewhere: ELF, Mach-O and COFF, of 64 bits, the lowest byte first."""

from __future__ import annotations

import struct
from collections.abc import Iterator


def undefined(code: bytes) -> set[str]:
    """The names as they stand in C, without the underscore that Mach-O puts before each."""
    magic = code[:4]
    if magic == b"\x7fELF":
        return set(_elf(code))
    if magic == b"\xcf\xfa\xed\xfe":
        return {name.removeprefix("_") for name in _mach_o(code)}
    assert struct.unpack_from("<H", code)[0] in (0x8664, 0xAA64), "COFF for x86-64 or arm64"
    return set(_coff(code))


def _text(code: bytes, at: int) -> str:
    return code[at : code.index(b"\0", at)].decode()


def _elf(code: bytes) -> Iterator[str]:
    first, size, count = struct.unpack_from("<Q", code, 40)[0], *struct.unpack_from("<HH", code, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", code, first + number * size) for number in range(count)]
    for _, kind, _, _, at, length, names, *_ in sections:
        if kind == 2:  # SHT_SYMTAB
            for entry in range(at, at + length, 24):
                name, _, _, section = struct.unpack_from("<IBBH", code, entry)
                if name and not section:
                    yield _text(code, sections[names][4] + name)


def _mach_o(code: bytes) -> Iterator[str]:
    at = 32
    for _ in range(struct.unpack_from("<I", code, 16)[0]):
        command, size, symbols, count, names = struct.unpack_from("<IIIII", code, at)
        if command == 2:  # LC_SYMTAB
            for entry in range(symbols, symbols + 16 * count, 16):
                name, kind = struct.unpack_from("<IB", code, entry)
                if kind & 0x0F == 1:  # external, undefined
                    yield _text(code, names + name)
        at += size


def _coff(code: bytes) -> Iterator[str]:
    table, count = struct.unpack_from("<II", code, 8)
    number = 0
    while number < count:
        entry = table + 18 * number
        name, value, section, _, kind, more = struct.unpack_from("<8sIhHBB", code, entry)
        if kind == 2 and not section and not value:  # external, undefined
            is_long = name[:4] == b"\0\0\0\0"
            far = table + 18 * count + struct.unpack("<I", name[4:])[0]
            yield _text(code, far) if is_long else name.rstrip(b"\0").decode()
        number += 1 + more
