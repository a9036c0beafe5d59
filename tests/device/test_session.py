"""The session for a machine with a GPU, as far as it can be tried without one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import gpu as benchmark
from runtime.gpu import cuda
from tests.device.__main__ import session
from tests.device.on_device import gpus


def test_the_benchmark_runs_and_writes_its_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = [each for each in benchmark.WORKLOADS if "2,000 trips over 1e6" not in each.name]
    monkeypatch.setattr(benchmark, "WORKLOADS", chosen)
    with gpus():
        assert benchmark.main(["--emulated", "--out", str(tmp_path), "--seconds", "0.01"]) == 0
    page = (tmp_path / "benchmarks_gpu.md").read_text(encoding="utf-8")
    content = json.loads((tmp_path / "benchmarks_gpu.json").read_text(encoding="utf-8"))
    assert "Emulated GPU, compute capability 9.0" in page
    assert [each["name"] for each in content["results"]] == [each.name for each in chosen]
    for each in content["results"]:
        assert 0 < each["seconds"]["autograph"] <= each["first"]["autograph"] * 10
        assert f"| {each['name']} | {each['size']:,} |" in page


@pytest.mark.skipif(cuda.device_count() > 0, reason="there is a GPU")
def test_the_benchmark_needs_a_gpu(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert benchmark.main(["--out", str(tmp_path)]) == 2
    assert "there is no GPU here" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        benchmark.main(["--emulated"])


def test_the_steps_name_what_there_is() -> None:
    root = Path(__file__).resolve().parents[2]
    for emulated in (False, True):
        steps = session(emulated, "somewhere")
        assert sum(step.most for step in steps) <= 60 * 10
        for step in steps:
            named = [word for word in step.command if word.startswith("tests/")]
            assert all((root / word).exists() for word in named)
