"""The benchmarks run, notice disagreement, and report what they measured."""

import importlib.util
import shutil
from pathlib import Path

import numpy as np
import pytest

import autograph as ag
from benchmarks import __main__ as command
from benchmarks import build, calibrate, first_calls, harness, peers, report, targets, workloads
from benchmarks.loops import kalman, newton, ode
from benchmarks.networks import convolution, gru
from benchmarks.overheads import first
from runtime.codegen import cost_model


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


CASES = workloads.cases()
REFERENCES = (peers.PYTHON, peers.NUMPY, peers.NUMBA)


@pytest.fixture(scope="module", autouse=True)
def kernels(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AUTOGRAPH_CACHE_DIR", str(tmp_path_factory.mktemp("kernels")))
        yield


@pytest.mark.parametrize("name", CASES)
def test_workloads_agree(name):
    """Ours against plain Python or NumPy; the other peers are no business of a test."""
    case = CASES[name]
    with build.setting(False):
        ours = harness.arrays(case.implementations[peers.AUTOGRAPH](True)())
    assert all(np.isfinite(array).all() for array in ours)
    for label in REFERENCES:
        if label in case.implementations:
            harness.check(case, label, harness.arrays(case.implementations[label](True)()), ours)
            break


@pytest.mark.parametrize(
    ("name", "program", "given", "index"),
    [
        ("newton-gradient", newton.machine_kepler, newton.kepler_arguments, 1),
        ("ode-gradient", ode.machine_integrate, ode.arguments, 0),
        ("kalman-gradient", kalman.numpy_likelihood, kalman.arguments, 1),
    ],
)
def test_gradients_agree_with_differences(name, program, given, index):
    given, step = [*given(True)], 1e-5
    with build.setting(False):
        (ours,) = harness.arrays(CASES[name].implementations[peers.AUTOGRAPH](True)())
    ends = []
    for change in (step, -step):
        moved = given.copy()
        moved[index] = moved[index] + change
        ends.append(program(*moved))
    assert ours == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-4)


@pytest.mark.parametrize("name", ["logistic-gradient", "edit-distance", "rnn", "variance"])
def test_compiled_workloads_agree(name, monkeypatch, capsys):
    load = peers.load

    def light(library):
        if library in ("jax", "tensorflow", "torch"):
            raise peers.Absent(f"{library} is left out")
        return load(library)

    monkeypatch.setattr(peers, "load", light)
    assert command.main(["--only", name, "--quick"]) == 0
    printed = capsys.readouterr().out
    assert "autograph " in printed
    assert "torch is left out" in printed


def test_writes_the_page(tmp_path, capsys, monkeypatch):
    line = {"seconds": 0.1, "native": 2.0, "compiled": 0}
    labels = (*first.OURS, peers.JAX)
    firsts = {label: {"call-1": {**line, "seconds": 0.2} if label == first.COMPILED else line} for label in labels}
    deep = {"first": 0.1, "native": 7.0, "kernels": 2, "more": 0}
    apart = report.Processes({"autograph": 0.1, "numpy": 0.1, "jax": None}, firsts, deep, quick=True)
    monkeypatch.setattr(report, "processes", lambda quick: apart)
    path = tmp_path / "page.md"
    assert command.main(["call-1", "--alone", "--quick", "--output", str(path)]) == 0
    page = path.read_text(encoding="utf-8")
    assert "# Benchmarks" in page
    assert "| autograph | " in page
    assert "| jax | not installed |" in page
    assert "| training step of 60 layers: native after | ≤ 6 s | 7 s | **no** |" in page
    assert "| kernels that a second process compiles | 0 | 0 | yes |" in page
    assert "| first result in a fresh process: the fastest peer | ≤ 1.00 | 1 of 1 meet it | yes |" in page
    assert (
        "| first compiled result (`jit_compile=True`): JAX | ≤ 1.00 | 0 of 1 meet it; not: call-1 2.00 | **no** |"
        in page
    )
    assert "| call-1 | 100 ms | 100 ms | 200 ms | 100 ms | 2 s | 0 |" in page


def test_targets():
    def results(ours, numba, jax):
        rows = [harness.Row(peers.AUTOGRAPH, ours), harness.Row(peers.NUMBA, numba), harness.Row(peers.JAX, jax)]
        return [(harness.Case("loop", "Loop", {}, kind="scalar loop"), rows)]

    assert [(v.limit, v.met) for v in targets.verdicts(results(1.0, 1.0, 4.0))] == [("≤ 1.20", True), ("≤ 0.33", True)]
    slow = targets.verdicts(results(2.0, 1.0, 4.0))
    assert [v.measured for v in slow] == ["0 of 1 meet it; not: loop 2.00", "0 of 1 meet it; not: loop 0.50"]
    assert targets.summary(slow) == "0 of 2 targets are met.\n"
    assert targets.verdicts(results(None, 1.0, 4.0)) == []


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
@pytest.mark.parametrize("name", [name for name, case in CASES.items() if peers.C in case.implementations])
def test_c_agrees(name):
    implementations = CASES[name].implementations
    with build.setting(False):
        ours = harness.arrays(implementations[peers.AUTOGRAPH](True)())
    harness.check(CASES[name], peers.C, harness.arrays(implementations[peers.C](True)()), ours)


def test_unknown_workloads_are_told(capsys):
    with pytest.raises(SystemExit) as exit_:
        command.main(["sorting"])
    assert exit_.value.code == 2
    assert "no workload named sorting; there are logistic, logistic-gradient, collatz, gcd" in capsys.readouterr().err


def test_fresh_processes_find_bytecode():
    command.write_bytecode()
    assert Path(importlib.util.cache_from_source(harness.__file__)).exists()


def test_calibration_knows_every_entry_of_the_cost_model(capsys):
    entries = {name for name in vars(cost_model) if name.isupper() and not name.startswith("DEVICE_")}
    assert set(calibrate.PROBES) == entries, "PROBES in benchmarks/calibrate.py: programs that depend on the entry"
    before = cost_model.EXTREME_BLOCK
    assert calibrate.main(["EXTREME_BLOCK", "CALL_TICKS", "--quick"]) == 0
    assert cost_model.EXTREME_BLOCK == before
    _, swept, timed = capsys.readouterr().out.splitlines()
    assert swept.startswith("EXTREME_BLOCK") and f"{before:,}: 1.00" in swept
    assert timed.startswith("CALL_TICKS")


def test_calibration_compiles_with_the_value_it_tries():
    x = np.ones((40, 700), np.float32)
    texts = set()
    for value in (32, 128):
        with calibrate.value_of("EXTREME_BLOCK", value):
            traced = ag.function(calibrate.largest, jit_compile=True).get_concrete_function(ag.constant(x))
            texts.add(traced.as_text("kernel"))
    assert len(texts) == 2


@pytest.mark.parametrize(
    ("name", "value", "given", "source"),
    [
        ("convolution-gradient", lambda x, f: np.sum(convolution.numpy_convolve(x, f) ** 2), convolution.arguments, 1),
        ("gru-gradient", gru.numpy_gru, gru.arguments, 1),
    ],
)
def test_gradients_of_layers_agree_with_differences(name, value, given, source):
    """Along one direction, in float64: ours is float32."""
    arrays = [array.astype(np.float64) for array in given(True)]
    direction, step = np.random.default_rng(1).normal(size=arrays[source].shape), 1e-5
    with build.setting(False):
        results = harness.arrays(CASES[name].implementations[peers.AUTOGRAPH](True)())
    ours = next(array for array in results if array.shape == direction.shape)
    ends = []
    for change in (step, -step):
        moved = arrays.copy()
        moved[source] = moved[source] + change * direction
        ends.append(value(*moved))
    assert np.sum(ours * direction) == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-4)


def test_first_calls_agree_in_all_ways():
    names = list(first_calls.programs())
    assert len(names) == 12
    for name in names:
        program = first_calls.programs()[name]
        _, expected = first_calls.times(program, "plain", 1)
        for mode in ("jit", "default"):
            spent, found = first_calls.times(program, mode, 1)
            assert len(spent) == 1 and found == pytest.approx(expected, rel=1e-4), (name, mode)
