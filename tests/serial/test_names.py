"""Saved models name ops and functions. Those names must be understood for ever: what is renamed or moved keeps its
earlier name in `runtime/serial/names.py`. `pytest --update-golden` adds new names to the list; it takes none away."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import autograph as ag
from runtime.ops.late import FUNCTIONS
from runtime.ops.table import OPS
from runtime.serial import names
from tests.saving.test_damaged_models import edit

GOLDEN = Path(__file__).parent.parent / "golden" / "names_in_saved_models.txt"


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
