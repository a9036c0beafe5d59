"""pyproject.toml: what the project requires, and the sets of versions in `.ci` that it is tested with."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # pytest needs it there

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
README = (ROOT / "README.md").read_text(encoding="utf-8")
TOOLS = ["mypy", "pyright", "ruff"]
PREFIX = "Programming Language :: Python :: "
PYTHONS = [name.removeprefix(PREFIX) for name in PROJECT["classifiers"] if re.match(rf"{PREFIX}3\.\d", name)]


def installed_by_the_readme() -> dict[str, Requirement]:
    """What the README's second command installs: the dependencies, and the extras that it names."""
    (extras,) = re.findall(r"pip install -e '\.\[([\w,]+)\]' && python -m tests$", README, re.MULTILINE)
    lines = list(PROJECT["dependencies"])
    for extra in extras.split(","):
        lines += PROJECT["optional-dependencies"][extra]
    return {canonicalize_name(found.name): found for found in map(Requirement, lines)}


def constraints(name: str) -> list[Requirement]:
    lines = (ROOT / ".ci" / name).read_text(encoding="utf-8").splitlines()
    return [Requirement(line) for line in lines if not line.startswith("#")]


def version(pinned: Requirement) -> Version:
    (clause,) = pinned.specifier
    assert clause.operator == "==" and "*" not in clause.version, pinned
    return Version(clause.version)


@pytest.mark.parametrize("tool", TOOLS)
def test_tools_that_judge_the_code_are_pinned(tool: str) -> None:
    """A new release of one would otherwise fail `python -m tests` on a day when nothing here has changed."""
    version(installed_by_the_readme()[tool])


def test_the_oldest_set_is_the_lower_bounds() -> None:
    lower = {}
    for name, required in installed_by_the_readme().items():
        if name not in TOOLS:
            (clause,) = [each for each in required.specifier if each.operator == ">="]
            lower[name] = Version(clause.version)
    assert {canonicalize_name(each.name): version(each) for each in constraints("oldest.txt")} == lower


@pytest.mark.parametrize("python", PYTHONS)
def test_the_newest_set_is_allowed_and_complete(python: str) -> None:
    here = {"python_version": python, "python_full_version": f"{python}.0"}
    applied = [each for each in constraints("newest.txt") if each.marker is None or each.marker.evaluate(here)]
    newest = {canonicalize_name(each.name): version(each) for each in applied}
    assert len(newest) == len(applied), "a package has two versions"
    required = {name: each for name, each in installed_by_the_readme().items() if name not in TOOLS}
    assert newest.keys() == required.keys()
    assert {name: str(newest[name]) for name, each in required.items() if newest[name] not in each.specifier} == {}


def test_all_versions_of_python_are_named() -> None:
    numbers = [tuple(map(int, name.split("."))) for name in PYTHONS]
    oldest = tuple(map(int, PROJECT["requires-python"].removeprefix(">=").split(".")))
    assert numbers == [(3, minor) for minor in range(oldest[1], numbers[-1][1] + 1)]
    assert f"Python {PYTHONS[0]} to {PYTHONS[-1]}" in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
