"""Puts the examples of `examples.txt` into the docstrings of the public names.

They stand in a file of their own because they are made by running them (`python -m docs.make_examples`), and because an
op's docstring is written where its row is, which knows no public name.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("examples.txt")


def examples() -> dict[str, str]:
    """For each public name ("math.log") its example, in doctest's form."""
    if not FILE.exists():
        return {}
    parts = ("\n" + FILE.read_text(encoding="utf-8")).split("\n== ")
    return {name: text for name, _, text in (part.partition("\n") for part in parts if part)}


def add_examples(named: Callable[[str], Any]) -> None:
    """Appends the examples to the docstrings of the public names that have none of their own. named: what has a name,
    or None, which gets none."""
    done: set[int] = set()
    for name, text in examples().items():
        value = named(name)
        doc = getattr(value, "__doc__", None) or ""
        if value is None or id(value) in done or ">>>" in doc:
            continue
        done.add(id(value))
        example = text.rstrip().replace("\n", "\n    ")
        value.__doc__ = f"{doc.rstrip()}\n\n    {example}\n"
