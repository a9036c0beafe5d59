"""The session for a machine with a GPU, as far as it can be tried without one."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks import gpu as benchmark
from runtime.gpu import cuda
from tests import cuda as session
from tests.cuda import Result, Session, Step, steps
from tests.device.on_device import gpus
from tests.device.outcomes import known

ROOT = Path(__file__).resolve().parents[2]


def test_the_benchmark_runs_and_writes_its_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = [each for each in benchmark.WORKLOADS if "2,000 trips over 1e6" not in each.name]
    monkeypatch.setattr(benchmark, "WORKLOADS", chosen)
    arguments = ["--emulated", "--out", str(tmp_path), "--seconds", "0.01"]
    with gpus():
        assert benchmark.main(arguments) == 0
    page = (tmp_path / "benchmarks_gpu.md").read_text(encoding="utf-8")
    content = json.loads((tmp_path / "benchmarks_gpu.json").read_text(encoding="utf-8"))
    assert "Emulated GPU, compute capability 9.0" in page
    assert "? / 0.35 of JAX" in page
    assert [each["name"] for each in content["results"]] == [each.name for each in chosen]
    for each in content["results"]:
        assert 0 < each["seconds"]["autograph"] <= each["first"]["autograph"] * 10
        assert all(0 < part <= each["first"]["autograph"] for part in each["parts"].values())
        assert f"| {each['name']} | {each['size']:,} |" in page
    # A crash in the third: what is begun isn't begun again.
    third = content["results"][2]
    del third["seconds"]["autograph"]
    content["results"][3]["begun"] = []
    (tmp_path / "benchmarks_gpu.json").write_text(json.dumps(content))
    with gpus():
        assert benchmark.main([*arguments, "--resume"]) == 0
    page = (tmp_path / "benchmarks_gpu.md").read_text(encoding="utf-8")
    assert f"{third['name']}: autograph wasn't finished" in page


@pytest.mark.skipif(cuda.device_count() > 0, reason="there is a GPU")
def test_the_benchmark_needs_a_gpu(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert benchmark.main(["--out", str(tmp_path)]) == 2
    assert "there is no GPU here" in capsys.readouterr().err
    for command in (benchmark.main, session.main):
        with pytest.raises(SystemExit):
            command(["--emulated"])


def test_the_steps_name_what_there_is() -> None:
    for kind in ("cuda", "emulated", "pretended"):
        for step in steps(kind, Path("somewhere")):
            named = [word for word in step.command if word.startswith("tests/")]
            assert all((ROOT / word).exists() for word in named)


def _results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chosen: list[Step], whole: float = 100) -> list[Any]:
    monkeypatch.setattr(session, "steps", lambda kind, folder: chosen)
    monkeypatch.setattr(session, "_WHOLE", whole)
    assert Session("emulated", tmp_path).run() == 1
    content = json.loads((tmp_path / "cuda_results.json").read_text(encoding="utf-8"))
    return content["steps"]  # type: ignore[no-any-return]


def _step_of(path: Path, processes: int = 1) -> Step:
    """Runs the tests of a file, without the rules of the folders around it (`conftest.py` and so on)."""
    command = [*session._pytest(str(path)), "--rootdir", str(path.parent), "-c", os.devnull]
    return Step("some", command, 60, processes=processes)


def test_a_crash_loses_one_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The step goes on behind the test that ended the process; others' results are there."""
    path = tmp_path / "test_some.py"
    path.write_text(
        "import os\n"
        "def test_one(): pass\n"
        "def test_two(): os.abort()\n"
        "def test_three(): assert 1 == 2\n"
        "def test_four(): pass\n"
    )
    step = _step_of(path)
    slow = Step("slow", [sys.executable, "-c", "import time; time.sleep(60)"], 1, tests=False)
    late = Step("late", [sys.executable, "-c", ""], 60, tests=False)
    some, other, last = _results(tmp_path, monkeypatch, [step, slow, late])
    assert some["counts"] == {"begun": 1, "failed": 1, "passed": 2}
    assert [test.rpartition("::")[2] for test in some["crashes"]] == ["test_two"]
    ((name, text),) = some["failures"].items()
    assert name.endswith("::test_three") and "assert 1 == 2" in text
    assert other["code"] is None and not other["passed"]
    assert last["passed"] and last["code"] == 0
    assert "Fatal Python error: Aborted" in (tmp_path / some["output"][0]).read_text(encoding="utf-8")


def test_processes_share_the_tests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "test_some.py"
    path.write_text(
        "import os, pytest\n"
        "@pytest.mark.parametrize('i', range(7))\n"
        "def test_some(i):\n"
        "    if i == 4: os.abort()\n"
        "    assert i != 5\n"
    )
    step = _step_of(path, processes=3)
    (some,) = _results(tmp_path, monkeypatch, [step])
    assert some["counts"] == {"begun": 1, "failed": 1, "passed": 5} and len(some["output"]) == 3
    assert [test.rpartition("::")[2] for test in some["crashes"]] == ["test_some[4]"]
    assert [test.rpartition("::")[2] for test in some["failures"]] == ["test_some[5]"]


def test_chosen_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Those left out keep their earlier results."""
    one = Step("one", [sys.executable, "-c", "raise SystemExit(3)"], 60, tests=False)
    two = Step("two", [sys.executable, "-c", ""], 60, tests=False)
    first, second = _results(tmp_path, monkeypatch, [one, two])
    assert (first["code"], second["code"]) == (3, 0)
    monkeypatch.setattr(session, "steps", lambda kind, folder: [two, one])
    assert session.main(["--emulated", "--out", str(tmp_path), "--only", "two"]) == 0
    content = json.loads((tmp_path / "cuda_results.json").read_text(encoding="utf-8"))
    assert content["steps"][1] == first
    assert content["steps"][0]["date"] >= second["date"] and content["steps"][0]["passed"]
    with pytest.raises(SystemExit):
        session.main(["--emulated", "--out", str(tmp_path), "--only", "tow"])
    assert "no step tow; there are: two, one" in capsys.readouterr().err


def test_what_the_time_does_not_suffice_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    step = Step("late", [sys.executable, "-c", ""], 60, tests=False)
    (late,) = _results(tmp_path, monkeypatch, [step], whole=4)
    assert late["code"] is None and not late["passed"]
    assert not Result("never", "").passed


def test_outcomes(tmp_path: Path) -> None:
    path = tmp_path / "some.jsonl"
    assert known(path) == []
    lines = [
        {"test": "a", "outcome": "begun"}, {"test": "a", "outcome": "passed"}, {"test": "a", "outcome": "failed"},
        {"test": "b", "outcome": "begun"},
    ]  # fmt: skip
    path.write_text("\n".join(map(json.dumps, lines)) + "\n")
    assert [(each["test"], each["outcome"]) for each in known(path)] == [("a", "failed"), ("b", "begun")]
