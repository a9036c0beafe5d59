"""examples/quickstart.py: what it prints agrees with plain Python."""

import re

import pytest

import autograph as ag
from examples import quickstart

START = (30.0, 25.0, 2.0)


def test_result_is_plain_pythons():
    distance = quickstart.compiled(*(ag.constant(value) for value in START))
    assert float(distance) == pytest.approx(quickstart.throw(*START), rel=1e-5)


def test_gradient_is_that_of_central_differences():
    slopes = quickstart.gradient(*(ag.constant(value) for value in START))
    for i, slope in enumerate(slopes):
        above, below = list(START), list(START)
        above[i] += 1e-6
        below[i] -= 1e-6
        difference = (quickstart.throw(*above) - quickstart.throw(*below)) / 2e-6
        assert float(slope) == pytest.approx(difference, rel=1e-3)  # thousands of float32 steps


def test_prints_source_result_gradient_and_times(capsys):
    quickstart.main()
    printed = capsys.readouterr().out
    assert "ag__.while_stmt(" in printed
    assert re.search(r"result: .*89\.29", printed)
    assert re.search(r"gradient: .*2\.09", printed)
    assert re.search(r"plain Python [\d,]+ us, compiled [\d,]+ us \(\d+ times faster\), gradient [\d,]+ us", printed)
