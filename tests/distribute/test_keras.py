"""Keras' `fit`, `evaluate` and `predict` under strategies: the weights and figures of one process."""

import importlib.util
import json

import numpy as np
import pytest

from tests.distribute.launch import check, needs_mpi

pytestmark = [
    needs_mpi,
    pytest.mark.skipif(importlib.util.find_spec("keras") is None, reason="needs Keras: pip install -e '.[keras]'"),
]


def trained(workers, *arguments):
    (line,) = [line for line in check("keras_fit.py", workers, *arguments) if line.startswith("{")]
    return json.loads(line)


def test_fit_on_several_workers_gives_the_weights_of_one_process():
    alone, together = trained(1, "alone", "96", "24"), trained(3, "workers", "96", "24")
    assert alone["steps"] == together["steps"] == 12
    for ours, theirs in zip(together["weights"], alone["weights"]):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)
    for name, values in alone["history"].items():
        np.testing.assert_allclose(together["history"][name], values, rtol=1e-5)
    np.testing.assert_allclose(together["scores"], alone["scores"], rtol=1e-5)
    np.testing.assert_allclose(together["predicted"], alone["predicted"], rtol=1e-4, atol=1e-6)


def test_the_guide_on_distributed_training():
    alone, together = ([line for line in check("guide.py", n) if line.startswith("results")] for n in (1, 2))
    assert len(alone) == 1 and alone == together
