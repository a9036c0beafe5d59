"""Text that Python has warned of is parsed and compiled without another warning, and without a trace in the filters."""

import threading
import warnings

import pytest

import autograph as ag
from runtime.python_text import python_ast, without_syntax_warnings

DOUBTFUL = ["'\\d'", "x is 1", "1if x else 2", "assert (x, 'text')", "'a'(x)", "x[1]['a', 'b'](2)['c'].d is 'e'"]


PROGRAM = """
def doubtful(x):
    if x is 1:
        return -x
    return x, "\\d"
"""


@pytest.mark.parametrize("action", ["always", "error"])
@pytest.mark.parametrize("text", DOUBTFUL)
def test_nothing_is_said(text, action):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter(action)
        before = list(warnings.filters)
        with without_syntax_warnings():
            compile(python_ast(text), "<text>", "exec")
        assert list(warnings.filters) == before
    assert said == []


def test_other_warnings_are_shown():
    with without_syntax_warnings(), pytest.warns(UserWarning, match="heard"):
        warnings.warn("heard", UserWarning)


def test_warnings_that_have_been_shown_are_not_shown_again():
    space = {"warnings": warnings, "__name__": "space"}
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("default")
        for _ in range(3):
            exec("warnings.warn('once')", space)
            python_ast("'\\d'")
    assert [str(each.message) for each in said] == ["once"]


def test_conversion_says_nothing(tmp_path):
    path, space = tmp_path / "program.py", {}
    path.write_text(PROGRAM)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        exec(compile(PROGRAM, str(path), "exec"), space)
    assert len(said) == 2
    doubtful = space["doubtful"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ag.autograph.to_graph(doubtful)(2) == (2, "\\d")
        assert "ag__.is_(x, 1)" in ag.autograph.to_code(doubtful)
        value, _ = ag.function(doubtful)(ag.constant(2.0))
    assert float(value) == 2.0


def test_threads_leave_no_filter_behind():
    before = list(warnings.filters)

    def parse():
        for _ in range(200):
            python_ast("x is 1")

    threads = [threading.Thread(target=parse) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert list(warnings.filters) == before
