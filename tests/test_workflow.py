"""`.github/workflows/ci.yml`: it runs the README's commands on each system and each Python that is supported."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.test_readme import commands
from tests.test_requirements import PYTHONS

yaml = pytest.importorskip("yaml", reason="needs the docs extra: pip install -e '.[docs]'")
ROOT = Path(__file__).resolve().parent.parent
WORKFLOW = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))
(JOB,) = WORKFLOW["jobs"].values()
MATRIX = JOB["strategy"]["matrix"]


def test_it_runs_the_commands_of_the_readme() -> None:
    assert [step["run"] for step in JOB["steps"] if "run" in step] == commands()
    assert JOB["defaults"]["run"]["shell"] == "bash", "PowerShell reads the quotes of the commands in another way"


def test_it_runs_them_on_each_system_processor_and_python() -> None:
    systems = {(name.partition("-")[0], name.endswith("arm") or name == "macos-15") for name in MATRIX["system"]}
    assert systems == {(name, is_arm) for name in ("ubuntu", "macos", "windows") for is_arm in (False, True)}
    assert MATRIX["python"] == PYTHONS


def test_what_it_leaves_out_is_among_these() -> None:
    """A pair with a typing error would leave out nothing, and nobody would notice."""
    for pair in MATRIX["exclude"]:
        assert pair.keys() == {"system", "python"}
        assert pair["system"] in MATRIX["system"] and pair["python"] in MATRIX["python"]
