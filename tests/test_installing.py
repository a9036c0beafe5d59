"""docs/installing.md: its tables have the form that readers of them rely on, and name what there is."""

from __future__ import annotations

import datetime
import re
from pathlib import Path

import pytest

from tests.test_readme import commands
from tests.test_requirements import PROJECT, PYTHONS

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "installing.md").read_text(encoding="utf-8")
COLUMNS = ["Python", "packages", "system", "processor", "date", "command"]


def table(title: str) -> list[list[str]]:
    """The rows of the table under a heading, with its head."""
    (text,) = re.findall(rf"^## {title}\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]
    assert set(rows.pop(1)) == {"---"}
    return rows


TESTED = table("What was tested")


def test_the_columns() -> None:
    assert TESTED[0] == COLUMNS and len(TESTED) > 1


@pytest.mark.parametrize("row", TESTED[1:], ids=" ".join)
def test_a_row_of_what_was_tested(row: list[str]) -> None:
    python, packages, system, processor, date, command = row
    assert re.fullmatch(r"3\.\d+\.\d+t?", python) and python.rpartition(".")[0] in PYTHONS
    assert packages in ("oldest", "newest")
    assert system and processor in ("x86-64", "arm64", "arm64 (emulated)")
    assert datetime.date.fromisoformat(date) >= datetime.date(2026, 11, 29)
    known = [part for each in commands() for part in each.split(" && ")]
    base = command.strip("`")
    assert base in known or base.startswith(("python -m tests --quick", "python -m pytest "))


def test_all_extras_that_users_need_are_named() -> None:
    named = {name for row in table("Extras")[1:] for name in re.findall(r"`(\w+)`", row[0])}
    # The others are for developers: benchmarks, another simulator and an assembler for the tests.
    assert named == PROJECT["optional-dependencies"].keys() - {"bench", "cuda", "ptxas"}


def test_the_range_of_pythons() -> None:
    assert table("Which versions")[1] == ["Python", f"{PYTHONS[0]} to {PYTHONS[-1]}"]
