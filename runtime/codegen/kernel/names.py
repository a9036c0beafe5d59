"""Pieces of kernel text: literals, assignments, and Python identifiers made from the user's names.

>>> names = Names()
>>> names.fresh("x"), names.fresh("x"), names.fresh("self.h"), names.fresh("lambda")
('x', 'x_1', 'self_h', 'lambda_1')
"""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Sequence
from typing import Any

from runtime.dtypes import DType

# What kernel text refers to besides its own variables.
_OWN = {"np", "math", "kernel", "lib", "ticks", "threads", "first", "last"}
_RESERVED = frozenset({*_OWN, *keyword.kwlist, *keyword.softkwlist, *dir(builtins)})
_WORD = re.compile(r"[A-Za-z_]\w*")


class Names:
    """Hands out identifiers that are used once in a kernel."""

    def __init__(self) -> None:
        self._next: dict[str, int] = {}
        self._taken: set[str] = set()

    def fresh(self, base: str | None) -> str:
        """A new identifier that reads like `base`."""
        base = re.sub(r"\W+", "_", base or "").strip("_")
        # Other scripts are legal in identifiers, but a file that everybody can read and diff is worth more.
        if not base or not base.isascii() or base[0].isdigit():
            base = "t"
        number = self._next.get(base, 0)
        name = base if number == 0 and base not in _RESERVED and base != "t" else f"{base}_{max(number, 1)}"
        while name in self._taken:
            number += 1
            name = f"{base}_{number}"
        self._next[base] = max(number, 1)
        self._taken.add(name)
        return name

    def snapshot(self) -> tuple:
        return dict(self._next), set(self._taken)

    def restore(self, saved: tuple) -> None:
        self._next, self._taken = dict(saved[0]), set(saved[1])


def words(text: str) -> set[str]:
    """The identifiers in an expression."""
    return set(_WORD.findall(text))


def fill(rule: Any, operands: Sequence[str], sources: Sequence[DType], output: DType) -> str:
    """The text of an op's scalar rule with the given operands."""
    return rule.format(*operands) if isinstance(rule, str) else rule(operands, sources, output)


def assigned(block: Sequence[Any]) -> set[str]:
    """The variables that the lines of a block assign."""
    found: set[str] = set()
    for item in block:
        if isinstance(item, list):
            found |= assigned(item)
        elif isinstance(item, str) and " = " in item:
            found.update(item.split(" = ", 1)[0].split(", "))
    return found


def is_literal(text: str) -> bool:
    """Whether a text is a number or a truth value: `np.int32(3)`, `2.5`, `True`."""
    if text in ("True", "False"):
        return True
    inner = text[text.find("(") + 1 : -1] if text.startswith("np.") and text.endswith(")") else text.strip("()")
    try:
        float(inner)
    except ValueError:
        return inner in ("np.nan", "np.inf", "-np.inf")
    return True
