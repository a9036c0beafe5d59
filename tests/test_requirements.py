"""pyproject.toml: what the project requires."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # pytest needs it there

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = {
    name: [Requirement(line) for line in lines] for name, lines in PROJECT["optional-dependencies"].items()
}  # fmt: skip


@pytest.mark.parametrize("tool", ["mypy", "pyright", "ruff"])
def test_tools_that_judge_the_code_are_pinned(tool: str) -> None:
    """A new release of one would otherwise fail `python -m tests` on a day when nothing here has changed."""
    (found,) = [each for each in EXTRAS["test"] if each.name == tool]
    (clause,) = found.specifier
    assert clause.operator == "==" and "*" not in clause.version
