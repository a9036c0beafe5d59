"""Values of a row that stay in registers.

    total = np.empty(n, np.float32)
    for i in range(n):                              for i in range(n):
        sum = 0.0                                       sum = 0.0
        for j in range(m):                              for j in range(m):
            sum = lib.add(sum, x[i * m + j])                sum = lib.add(sum, x[i * m + j])
        total[i] = sum                       →          total_1 = sum
        for j in range(m):                              for j in range(m):
            y[i * m + j] /= total[i]                        y[i * m + j] /= total_1

When neighbouring nests have become one loop (`loop_fusion.py`), what the first computed for each row is often read
nowhere else. Then it needs no array: and in the inner loops no load that might see what they store, which keeps loops
from being vectorised. The text is changed when the kernel is complete, since only then it's known who reads what.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from runtime.codegen.kernel.names import words

_ALLOCATION = re.compile(r"(\w+) = np\.empty\(.*\)")
_LOOP = re.compile(r"for (\w+) in range\(.*\):")
_SPLIT = re.compile(r"lib\.in_threads\((\w+), (.*), \((.*),\)\)")


def keep_in_registers(low: Any) -> None:
    """Changes the block and the parts of a kernel that is printed."""
    users: dict[str, list[tuple[list, int]]] = {}
    allocations: dict[str, list[tuple[list, int]]] = {}
    for block, position in _lines(low.block):
        item = block[position]
        found = _ALLOCATION.fullmatch(item) if isinstance(item, str) else None
        if found is not None and found[1] in low.fresh:
            allocations.setdefault(found[1], []).append((block, position))
            continue
        for name in words(item if isinstance(item, str) else " ".join(item.details)):
            users.setdefault(name, []).append((block, position))
    gone: list[tuple[list, int]] = []
    for name, places in allocations.items():
        if len(places) == 1 and name in users and _replace(low, name, users[name]):
            gone += places
    for block, position in sorted(gone, key=lambda place: -place[1]):
        del block[position]


def _lines(block: list) -> Iterator[tuple[list, int]]:
    for position, item in enumerate(block):
        if isinstance(item, list):
            yield from _lines(item)
        else:
            yield block, position


def _replace(low: Any, name: str, users: list[tuple[list, int]]) -> bool:
    """Makes the elements of the buffer `name` a variable. False, and nothing, where it is more than a row's value."""
    block, position = users[0]
    split = _SPLIT.fullmatch(block[position]) if isinstance(block[position], str) else None
    if split is not None and len(users) == 1:
        return _replace_in_part(low, name, block, position, split)
    found = _loop_around(low.block, users)
    if found is None:
        return False
    index, body = found
    texts = [b[p] for b, p in users]
    if not all(isinstance(text, str) for text in texts) or block is not body:
        return False
    element = re.compile(rf"\b{name}\[{index}\]")
    if not _is_value(name, element, texts) or not _keeps(index, body):
        return False
    variable = low.names.fresh(name)
    for inner, place in users:
        inner[place] = element.sub(variable, inner[place])
    return True


def _replace_in_part(low: Any, name: str, block: list, position: int, split: re.Match[str]) -> bool:
    number = next(k for k, text in enumerate(low.parts) if f"def {split[1]}(" in text)
    head, start, loop, *body = low.parts[number].split("\n")
    index = _LOOP.fullmatch(loop.strip())[1]  # type: ignore[index]
    element = re.compile(rf"\b{name}\[np\.uint64\({index}\)\]")
    users = [text for text in body if name in words(text)]
    depth = len(loop) - len(loop.lstrip()) + 4
    if not users or len(users[0]) - len(users[0].lstrip()) != depth:
        return False
    if not _is_value(name, element, [text.strip() for text in users]) or not _keeps(index, body):
        return False
    variable = low.names.fresh(name)
    start = re.sub(rf", {name}\b", "", start)
    low.parts[number] = "\n".join([head, start, loop, *[element.sub(variable, text) for text in body]])
    arguments = [text for text in split[3].split(", ") if text != name]
    block[position] = f"lib.in_threads({split[1]}, {split[2]}, ({', '.join(arguments)},))"
    return True


def _is_value(name: str, element: re.Pattern[str], texts: list[str]) -> bool:
    """Whether the lines read and write this element alone, and write it before they read it."""
    store = element.match(texts[0])
    if store is None or not texts[0].startswith(" = ", store.end()) or name in words(texts[0][store.end() :]):
        return False
    return all(name not in words(element.sub("", text)) for text in texts)


def _keeps(index: str, body: list) -> bool:
    """Whether no loop in the body counts with the same variable."""
    texts = [b[p] for b, p in _lines(body)]
    return all(not isinstance(text, str) or not text.strip().startswith(f"for {index} in ") for text in texts)


def _loop_around(block: list, users: list[tuple[list, int]]) -> tuple[str, list] | None:
    """The variable and the body of the loop whose body the first user stands in, where the others do too."""
    body = users[0][0]
    inside = {id(inner) for inner, _ in _lines(body)}
    if not all(id(inner) in inside for inner, _ in users):
        return None
    head = _head(block, body)
    found = _LOOP.fullmatch(head) if head is not None else None
    return None if found is None else (found[1], body)


def _head(block: list, body: list) -> str | None:
    """The line that a block belongs to."""
    for position, item in enumerate(block):
        if item is body:
            before = block[position - 1]
            return before if isinstance(before, str) else None
        if isinstance(item, list):
            found = _head(item, body)
            if found is not None:
                return found
    return None
