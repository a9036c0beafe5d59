"""`autograph.testing`: checks for users' own suites, and the plugin that has them as fixtures."""

import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import numpy as np
import pytest

import autograph as ag
from autograph import testing

ROOT = Path(__file__).resolve().parent.parent


def halve(x):
    total = ag.reduce_sum(x)
    while total > 1.0:
        total = total / 2.0
    return {"total": total, "sign": ag.sign(x), "nothing": None}


class TestModes:
    def test_what_agrees_is_given(self):
        result = testing.check_modes(halve, [np.array([3.0, 4.0])])
        assert float(result["total"]) == 0.875
        assert testing.check_modes(ag.function(halve), [ag.constant([3.0, 4.0])])["nothing"] is None
        assert testing.check_modes(lambda x, k: x * k["scale"], [ag.constant(2)], {"k": {"scale": 3}}) == 6

    def test_a_value_that_differs_is_shown(self):
        def odd(x):
            return x, x * (2.0 if ag.executing_eagerly() else 3.0)

        with pytest.raises(AssertionError) as caught:
            testing.check_modes(odd, [np.array([0.0, 1.0, 2.0])])
        assert str(caught.value).splitlines() == [
            "the modes of odd differ:",
            "  result_1: at [1], eager 2.0, traced 3.0 (2 of 3 numbers differ)",
            "  gradient by tensor 0 of the arguments: at [0], eager 3.0, traced 4.0 (3 of 3 numbers differ)",
            "  result_1: at [1], eager 2.0, compiled 3.0 (2 of 3 numbers differ)",
            "  gradient by tensor 0 of the arguments: at [0], eager 3.0, compiled 4.0 (3 of 3 numbers differ)",
        ]

    def test_a_gradient_that_differs_is_shown(self):
        def odd(x):
            return x * 2.0 if ag.executing_eagerly() else ag.stop_gradient(x) * 2.0

        with pytest.raises(AssertionError, match="arguments: eager a value, compiled None"):
            testing.check_modes(odd, [np.array(1.0)])
        testing.check_modes(odd, [np.array(1.0)], gradients=False)

    def test_structures_shapes_and_dtypes_that_differ_are_shown(self):
        def structure(x):
            return (x, x) if ag.executing_eagerly() else {"x": x}

        def shape(x):
            return x if ag.executing_eagerly() else ag.reshape(x, [1])

        with pytest.raises(AssertionError, match="eager gives result_0, result_1.*; traced gives x"):
            testing.check_modes(structure, [np.array(1.0)])
        with pytest.raises(AssertionError, match=r"float64 of shape \(\), traced float64 of shape \(1,\)"):
            testing.check_modes(shape, [np.array(1.0)])

    def test_tolerances(self):
        def near(x):
            return x if ag.executing_eagerly() else x + 1e-9

        x = [np.array([1.0, np.nan, np.inf])]
        with pytest.raises(AssertionError, match=r"1 of 3 numbers differ"):
            testing.check_modes(near, x)
        testing.check_modes(near, x, rtol=1e-8)
        testing.check_modes(near, x, atol=1e-8)

    def test_errors(self):
        def checked(x):
            ag.debugging.assert_positive(x)
            return x

        with pytest.raises(ag.errors.InvalidArgumentError):
            testing.check_modes(checked, [np.array(-1.0)])

        def only_eager(x):
            if not ag.executing_eagerly():
                raise KeyError("traced")
            return x

        with pytest.raises(AssertionError, match="eager: no error\n  traced: KeyError: 'traced'"):
            testing.check_modes(only_eager, [np.array(1.0)])
        assert not ag.config.functions_run_eagerly()


class TestRetraces:
    def test_another_trace_is_named_with_its_reason_and_place(self):
        f, other = ag.function(lambda x: x + 1), ag.function(lambda x: x + 2)
        with testing.no_retrace():
            f(ag.zeros(3))
            f(ag.ones(3))
        with pytest.raises(AssertionError, match="1 function call") as caught, testing.no_retrace():
            f(ag.zeros(4))
        assert f"{__file__}:" in str(caught.value)
        assert "argument 'x': shape (3,) → (4,)" in str(caught.value)
        other(1)
        with testing.no_retrace(f):
            other(2)
        with pytest.raises(AssertionError, match="2 function calls"), testing.no_retrace(other):
            other(3), f(ag.zeros(5)), other(4)

    def test_a_function_that_machine_code_answers_counts(self):
        f = ag.function(lambda x: x + 1)
        for _ in range(5):
            f(ag.zeros(3))
        with pytest.raises(AssertionError, match="caused another trace"), testing.no_retrace(f):
            f(ag.zeros(4))

    def test_other_threads_count(self):
        f = ag.function(lambda x: x + 1)
        f(1)
        with pytest.raises(AssertionError, match="caused another trace"), testing.no_retrace():
            thread = threading.Thread(target=f, args=(2,))
            thread.start()
            thread.join()

    def test_an_error_in_the_block_comes_first(self):
        f = ag.function(lambda x: x + 1)
        f(1)
        with pytest.raises(KeyError), testing.no_retrace():
            f(2)
            raise KeyError


SUITE = """
    import numpy as np, pytest
    import autograph as ag

    f = ag.function(lambda x: x * x)
    f(1.0)

    def test_fixtures(check_gradients, check_modes, no_retrace):
        assert check_gradients(f, [np.array(2.0)]).passed
        assert float(check_modes(f, [np.array(3.0)])) == 9.0
        with no_retrace():
            f(1.0)

    @pytest.mark.no_retrace
    def test_that_keeps_to_its_traces():
        f(1.0)

    @pytest.mark.no_retrace
    def test_that_does_not():
        f(5.0)
"""


def test_the_plugin(tmp_path):
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["autograph.testing.plugin"]\n', encoding="utf-8")
    (tmp_path / "test_suite.py").write_text(textwrap.dedent(SUITE), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--strict-markers", "-q", str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert "1 failed, 2 passed" in done.stdout, done.stdout + done.stderr
    assert "was traced again, since argument 'x'" in done.stdout
