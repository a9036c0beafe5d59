"""The benchmark of Keras' `fit` trains, notices that losses differ, and says what is behind."""

from __future__ import annotations

import importlib.util
import sys

import pytest

from benchmarks import training
from benchmarks.training import AUTOGRAPH, Times


@pytest.mark.skipif(importlib.util.find_spec("keras") is None, reason="Keras isn't installed")
def test_trains_in_a_process_of_its_own() -> None:
    (times,) = training.measure("mlp", {AUTOGRAPH: sys.executable}, 2, 0, 1, quick=True).values()
    assert [len(each) for each in (times.first, times.epochs, times.processor, times.losses)] == [1, 2, 2, 3]
    assert times.losses[0] > times.losses[1] > times.losses[2] > 0
    assert times.versions.keys() == {"keras", AUTOGRAPH}


def test_losses_must_agree() -> None:
    ours = Times(losses=[2.0, 1.0])
    training.check("mlp", {AUTOGRAPH: ours, "jax": Times(losses=[2.001, 1.1])})
    for wrong in (2.1, float("nan")):
        with pytest.raises(RuntimeError, match="the loss of the first epoch is 2.0 here and .* on jax"):
            training.check("mlp", {AUTOGRAPH: ours, "jax": Times(losses=[wrong, 1.0])})


def test_tables_compare_with_the_least() -> None:
    ours = Times(first=[1.0], epochs=[0.03, 0.01, 0.02], processor=[0.04])
    found = {"lstm": {AUTOGRAPH: ours, "jax": Times([4.0], [0.04], [0.04]), "torch": Times([2.0], [0.05], [0.02])}}
    lines = [
        line.split(" | ") for line in training.tables(found, [AUTOGRAPH, "jax", "torch"]).splitlines() if "LSTM" in line
    ]
    assert [line[1:] for line in lines] == [
        ["20 ms", "40 ms", "50 ms", "0.50", "0.67 |"],
        ["40 ms", "40 ms", "20 ms", "2.00", " |"],
        ["1 s", "4 s", "2 s", "0.50", "1.00 |"],
    ]
