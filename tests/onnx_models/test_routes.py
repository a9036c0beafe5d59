"""The table of routes out of the process: each gives the function's own numbers, and the page says so."""

from __future__ import annotations

import re

import pytest

import autograph as ag
from benchmarks import routes

pytest.importorskip("onnxruntime", reason="ONNX Runtime runs one of the routes; it has no wheel for this Python")

PROGRAMS = {program.name: program for program in routes.programs()}


@pytest.mark.filterwarnings("ignore")
def test_a_program_on_each_route(tmp_path, monkeypatch):
    monkeypatch.setattr(routes, "_seconds", lambda call: float(call() is not None))
    _, found = routes.measure(PROGRAMS["implicit_newton: temperature"], tmp_path)
    assert set(found) == set(routes.ROUTES)
    for route in found.values():
        assert route.refused or (route.difference < 1e-9 and route.size > 1000)


@pytest.mark.filterwarnings("ignore")
def test_a_program_that_assigns_variables(tmp_path, monkeypatch):
    monkeypatch.setattr(routes, "_seconds", lambda call: float(call() is not None))
    _, found = routes.measure(PROGRAMS["dynamic_rnn: step"], tmp_path)
    assert all(route.difference < 1e-5 and not route.refused for route in found.values())


def test_what_a_route_refuses_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(routes, "_seconds", lambda call: float(call() is not None))
    noisy = routes.Program("noise", ag.function(lambda x: x + 0.0 * ag.random.normal([])), (ag.constant(1.0),))
    _, found = routes.measure(noisy, tmp_path)
    assert "random numbers" in found["C library"].refused and "random" in found["ONNX"].refused
    assert not found["saved model"].refused


def test_the_page_has_a_row_for_each_program():
    table = routes.PAGE.read_text(encoding="utf-8").split(routes.BEGIN)[1].split(routes.END)[0]
    assert re.findall(r"^\| (\w+: [^|]+?) \|", table, re.MULTILINE) == [*PROGRAMS, *routes.KERAS]
