"""Elements, specs and cardinalities are TensorFlow's, which `tensorflow_elements.json` keeps: see `pipelines.py`."""

import json
from pathlib import Path

import pytest

import autograph as ag
from tests.data.pipelines import PIPELINES, results

EXPECTED = json.loads((Path(__file__).parent / "tensorflow_elements.json").read_text())


@pytest.fixture(autouse=True)
def no_seed():
    """No test before has left a global seed, which seeds of datasets are combined with."""
    ag.random.set_seed(None)


@pytest.mark.parametrize("name", PIPELINES)
def test_elements_are_tensorflows(name):
    found = json.loads(json.dumps(results(ag, PIPELINES[name])))
    assert found["elements"] == EXPECTED[name]["elements"]
    assert found["spec"] == EXPECTED[name]["spec"]
    assert found["cardinality"] == EXPECTED[name]["cardinality"]


def test_results_are_of_these_pipelines():
    assert list(EXPECTED) == list(PIPELINES)
