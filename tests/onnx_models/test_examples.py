"""The programs of the examples as ONNX models: the numbers that the functions themselves give."""

from __future__ import annotations

import pytest

import autograph as ag
from benchmarks.routes import programs
from tests.onnx_models.running import check, run

PROGRAMS = {program.name: program for program in programs()}


@pytest.mark.parametrize("name", list(PROGRAMS))
def test_program(name, tmp_path):
    program = PROGRAMS[name]
    concrete = program.trace()
    made = ag.onnx.export(concrete, tmp_path / "model.onnx")
    inputs = {name: argument.numpy() for name, argument in zip(made.inputs, program.arguments, strict=True)}
    found = run(made.path, inputs)
    results = [each.numpy() for each in ag.nest.flatten(concrete(*program.arguments))]
    after = [each.numpy() for each in concrete.assigned_variables]
    # Thousands of steps in float32 move the last places.
    tolerance = 1e-4 if any(each.dtype == "float32" for each in results) else 1e-9
    for expected, got in zip([*results, *after], found.values(), strict=True):
        check(expected, got, tolerance)
