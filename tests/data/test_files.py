"""Datasets of files, and what parsers make of records: what TensorFlow gives, and errors."""

import json
from pathlib import Path

import pytest

import autograph as ag
from tests.data.file_pipelines import FILES, result

EXPECTED = json.loads((Path(__file__).parent / "tensorflow_files.json").read_text())


@pytest.mark.parametrize("name", FILES)
def test_results_are_tensorflows(name):
    found = json.loads(json.dumps(result(ag, FILES[name])))
    assert text_of_nan(found) == text_of_nan(EXPECTED[name])


def text_of_nan(value):
    """The same with text for NaN, which isn't equal to itself."""
    return json.dumps(value, sort_keys=True)


def test_results_are_of_these_programs():
    assert list(EXPECTED) == list(FILES)
