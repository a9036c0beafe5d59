"""The benchmarks run, notice disagreement, and report what they measured."""

import numpy as np
import pytest

from benchmarks import __main__ as command
from benchmarks import harness, peers, report


def case(**implementations):
    return harness.Case("name", "Title", {label: lambda quick, f=f: f for label, f in implementations.items()})


def test_measures_checks_and_notes_who_is_absent():
    def absent(quick):
        raise peers.Absent("nolib is not installed")

    def broken():
        raise RuntimeError("no loops here\nand more")

    timed = case(**{peers.AUTOGRAPH: lambda: 1.0, "fast": lambda: np.float64(1.0), "broken": broken})
    timed.implementations["absent"] = absent
    ours, fast, failed, missing = harness.run(timed, quick=True)
    assert ours.median > 0
    assert fast.median > 0
    assert len(fast.times) == 3
    assert fast.first_call > 0
    assert (failed.median, failed.note) == (None, "fails: RuntimeError: no loops here")
    assert (missing.median, missing.note) == (None, "nolib is not installed")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: 1.1, "other is off by 1.00e-01"),
        (lambda: float("nan"), "other is off by nan"),
        (lambda: [1.0, 1.0], "returns 2 results, not 1"),
        (lambda: np.ones(2), r"has shape \(2,\), not \(\)"),
    ],
)
def test_disagreement_is_an_error(wrong, message):
    with pytest.raises(harness.Disagreement, match=message):
        harness.run(case(autograph=lambda: 1.0, other=wrong), quick=True)


def test_our_own_failure_is_not_noted_but_raised():
    def broken():
        raise RuntimeError("ours")

    with pytest.raises(RuntimeError, match="ours"):
        harness.run(case(autograph=broken), quick=True)


def test_tables():
    rows = [harness.Row("autograph", 2e-6, 0.5), harness.Row("peer", 8e-3, 0.25), harness.Row("gone", note="absent")]
    table = report.cells(rows)
    assert table[1:] == [
        ["autograph", "2 µs", "1.00", "500 ms"],
        ["peer", "8 ms", "0.00025", "250 ms"],
        ["gone", "absent", "", ""],
    ]
    assert "| peer | 8 ms | 0.00025 | 250 ms |" in report.markdown("Title", table)
    assert "  peer       8 ms        0.00025      250 ms\n" in report.plain("Title", table)


@pytest.mark.parametrize("name", ["logistic", "logistic-gradient", "collatz", "elementwise", "rnn", "rnn-gradient"])
def test_workloads_agree(name, monkeypatch, capsys):
    """Beside numba and NumPy only: importing the heavier peers is no business of a test."""
    load = peers.load

    def light(library):
        if library in ("jax", "tensorflow", "torch"):
            raise peers.Absent(f"{library} is left out")
        return load(library)

    monkeypatch.setattr(peers, "load", light)
    assert command.main([name, "--quick"]) == 0
    printed = capsys.readouterr().out
    assert "autograph " in printed
    assert "torch is left out" in printed


def test_writes_the_page(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(report, "import_times", lambda: {"numpy": 0.1, "jax": None})
    path = tmp_path / "page.md"
    assert command.main(["call", "--quick", "--output", str(path)]) == 0
    page = path.read_text(encoding="utf-8")
    assert "# Benchmarks" in page
    assert "| autograph | " in page
    assert "| jax | not installed |" in page


def test_unknown_workloads_are_told(capsys):
    with pytest.raises(SystemExit) as exit_:
        command.main(["sorting"])
    assert exit_.value.code == 2
    assert "no workload named sorting; there are logistic, logistic-gradient, collatz" in capsys.readouterr().err
