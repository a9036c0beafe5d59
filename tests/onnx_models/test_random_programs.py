"""Random programs as ONNX models, a few of those that `python -m tests.onnx_models.fuzz` goes through."""

from __future__ import annotations

import pytest

from tests.onnx_models.fuzz import array_program, python_program


@pytest.mark.parametrize("seed", range(30))
def test_array_programs(seed):
    assert array_program(f"test-{seed}").partition(" ")[0] in ("agree", "raises", "can't")


@pytest.mark.parametrize("seed", range(10))
def test_python_programs(seed):
    assert python_program(seed).partition(":")[0] in ("agree", "raises", "can't be traced")


def test_most_of_them_are_compared():
    verdicts = [array_program(f"test-{seed}") for seed in range(12)] + [python_program(seed) for seed in range(4)]
    assert verdicts.count("agree") >= 8
