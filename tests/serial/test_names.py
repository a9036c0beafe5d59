"""Saved models name ops and functions. Those names must be understood for ever: what is renamed or moved keeps its
earlier name in `runtime/serial/names.py`. `pytest --update-golden` adds new names to the list; it takes none away."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import autograph as ag
from runtime.ops.deferred_calls import FUNCTIONS, name_in_files, name_of
from runtime.ops.table import OPS
from runtime.serial import names
from tests.saving.test_damaged_models import edit

ROOT = Path(__file__).resolve().parent.parent.parent
GOLDEN = ROOT / "tests" / "golden" / "names_in_saved_models.txt"


def test_each_name_that_files_have_is_known(request):
    current = {*(f"op {name}" for name in OPS), *(f"function {name}" for name in FUNCTIONS)}
    listed = set(GOLDEN.read_text(encoding="utf-8").splitlines()) if GOLDEN.exists() else set()
    if request.config.getoption("--update-golden"):
        GOLDEN.write_text("\n".join(sorted(listed | current)) + "\n", encoding="utf-8")
        return
    find = {"op": names.op_called, "function": names.function_called}
    unknown = [each for each in listed if find[each.partition(" ")[0]](each.partition(" ")[2]) is None]
    assert not unknown, "renamed or moved: give their new names in runtime/serial/names.py"
    assert current <= listed, "new: run `pytest --update-golden tests/serial/test_names.py`"


def test_earlier_names_load(monkeypatch, tmp_path):
    def highest(x, axis):
        return ag.reduce_max(x, axis)

    module = ag.Module()
    module.f = ag.function(highest, input_signature=[ag.TensorSpec(None), ag.TensorSpec([], ag.int32)])
    ag.saved_model.save(module, tmp_path)

    def rename(document):
        program = json.dumps(document["program"])
        assert '"late"' in program and '"arrays.reduce.reduce_max"' in program
        changed = program.replace('"late"', '"put_off"').replace('"arrays.reduce.reduce_max"', '"arrays.old.highest"')
        document["program"] = json.loads(changed)

    edit(tmp_path, rename)
    with pytest.raises(ag.errors.DataLossError, match="no operation 'put_off'"):
        ag.saved_model.load(tmp_path)
    monkeypatch.setitem(names.RENAMED_OPS, "put_off", "late")
    monkeypatch.setitem(names.RENAMED_FUNCTIONS, "arrays.old.highest", "arrays.reduce.reduce_max")
    assert float(ag.saved_model.load(tmp_path).f(ag.constant([1.0, 5.0]), ag.constant(0))) == 5


def test_numpy_functions_mean_the_same_in_each_process(tmp_path):
    """What an earlier trace of the process has deferred doesn't matter to what a file means."""
    unknown = ag.TensorSpec(None)
    for name in ("sum", "prod", "max"):
        reduction = getattr(np, name)
        module = ag.Module()
        module.f = ag.function(
            lambda x, axis: reduction(x, axis=axis), input_signature=[unknown, ag.TensorSpec([], ag.int32)]
        )
        ag.saved_model.save(module, tmp_path / name)
    program = """
import sys
import numpy as np
import autograph as ag

@ag.function(input_signature=[ag.TensorSpec(None), ag.TensorSpec([], ag.int32)])
def mean(x, axis):
    return np.mean(x, axis=axis)

x = ag.constant([[1.0, 2.0], [3.0, 4.0]])
print(mean(x, 1).numpy().tolist())
for name in ("sum", "prod", "max"):
    print(ag.saved_model.load(sys.argv[1] + "/" + name).f(x, 1).numpy().tolist())
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
        cwd=ROOT,
    )
    assert done.stdout.split("\n")[:4] == ["[1.5, 3.5]", "[3.0, 7.0]", "[2.0, 12.0]", "[2.0, 4.0]"]


def test_each_function_that_may_be_deferred_has_a_name_of_its_own():
    assert not [name for name in FUNCTIONS if "<" in name]
    assert name_of(ag.math.segment_sum.__wrapped__) == "arrays.segments.segment_sum"
    with pytest.raises(ValueError, match="two functions are called"):
        name_in_files("arrays.reduce.reduce_max", lambda x: x)
