"""Golden files: small cases of input and expected output, which `pytest --update-golden` rewrites.

[case name]
input lines
[out]
expected lines
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[1] / "golden"
_CASE = re.compile(r"^\[case (\w+)\]\n", re.MULTILINE)


@dataclass
class Case:
    path: Path
    name: str
    source: str
    expected: str


def read(path: Path) -> list[Case]:
    pieces = _CASE.split(path.read_text())
    found = []
    for name, text in zip(pieces[1::2], pieces[2::2]):
        source, _, expected = text.partition("[out]\n")
        found.append(Case(path, name, source.strip("\n") + "\n", expected.strip("\n") + "\n"))
    return found


def write(path: Path, cases: list[Case]) -> None:
    texts = [f"[case {case.name}]\n{case.source}[out]\n{case.expected}" for case in cases]
    path.write_text("\n".join(texts))


def compare(case: Case, text: str, request: Any) -> None:
    """Fails unless a text is the expected one; with `--update-golden` it becomes that."""
    if request.config.getoption("--update-golden"):
        cases = read(case.path)
        next(each for each in cases if each.name == case.name).expected = text
        write(case.path, cases)
    else:
        file, test = (path.relative_to(FOLDER.parents[1]) for path in (case.path, request.node.path))
        assert text == case.expected, (
            f"case {case.name} of {file} is another text now. If that is right, run `pytest --update-golden {test}` "
            "and read what has changed"
        )


def all_cases() -> list[Case]:
    return [case for path in sorted(FOLDER.glob("*.test")) for case in read(path)]
