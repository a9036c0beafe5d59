"""The table of routes out of the process: each gives the function's own numbers, and the page says so."""

from __future__ import annotations

import re

import pytest

from benchmarks import routes

PROGRAMS = {program.name: program for program in routes.programs()}


@pytest.mark.filterwarnings("ignore")
def test_a_program_on_each_route(tmp_path, monkeypatch):
    monkeypatch.setattr(routes, "_seconds", lambda call: float(call() is not None))
    _, found = routes.measure(PROGRAMS["implicit_newton: temperature"], tmp_path)
    assert set(found) == set(routes.ROUTES)
    for route in found.values():
        assert route.refused or (route.difference < 1e-9 and route.size > 1000)


@pytest.mark.filterwarnings("ignore")
def test_what_a_route_refuses_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(routes, "_seconds", lambda call: float(call() is not None))
    _, found = routes.measure(PROGRAMS["dynamic_rnn: step"], tmp_path)
    assert "keeps no state" in found["C library"].refused
    assert found["ONNX"].difference < 1e-5


def test_the_page_has_a_row_for_each_program():
    table = routes.PAGE.read_text(encoding="utf-8").split(routes.BEGIN)[1].split(routes.END)[0]
    assert re.findall(r"^\| (\w+: [^|]+?) \|", table, re.MULTILINE) == list(PROGRAMS)
