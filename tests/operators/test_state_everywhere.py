"""What a program changes in staged code, wherever that is kept, is what it is in Python, or is refused with its place.

Every thirteenth program of the product in `state_programs.py` runs.
"""

from __future__ import annotations

import importlib.util
import sys

import numpy as np
import pytest

import autograph as ag
from autograph.errors import StagingError
from tests.operators.state_programs import BLOCKS, HOLDERS, STATE_MODULE, VALUES, programs

GIVEN = [3.0, 0.0, 2.0, 5.0, 1.0]
_EACH = 13


def loaded(path, text):
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def state_module(tmp_path, monkeypatch):
    module = loaded(tmp_path / "state_module.py", STATE_MODULE)
    monkeypatch.setitem(sys.modules, "state_module", module)


def may_be_refused(words):
    """Whether a program exchanges objects in a call of a function to itself, or by calls that change a container."""
    return words.endswith("object") and ("recursion" in words or "(" in words or ":" in words)


@pytest.mark.usefixtures("state_module")
@pytest.mark.parametrize("name", HOLDERS)
def test_as_in_python_or_refused(name, tmp_path):
    start = list(HOLDERS).index(name)
    for number, (words, text) in enumerate(programs(name)):
        if (number + start) % _EACH:
            continue
        right = float(loaded(tmp_path / f"python{number}.py", text).program(GIVEN))
        file = f"traced{number}.py"
        try:
            got = float(ag.function(loaded(tmp_path / file, text).program)(ag.constant(GIVEN)))
        except Exception as error:
            lines = str(error).splitlines()
            assert any(file in line for line in lines), (words, str(error))
            assert any("fix: " in line for line in lines), (words, str(error))
            assert HOLDERS[name].refuses or may_be_refused(words), (words, str(error))
        else:
            assert got == right, (words, text)


def test_the_choice_of_programs_meets_all_blocks_and_values():
    assert len(BLOCKS) % _EACH
    assert len(VALUES) % _EACH


class Total:
    count = 0

    def add(self):
        self.count += 1


def test_a_class_keeps_its_default_when_objects_change():
    @ag.function
    def run(t):
        one = Total()
        for v in t:
            if v > 1.0:
                one.add()
        return one.count, Total().count

    assert [int(each) for each in run(ag.constant(GIVEN))] == [3, 0]
    assert Total.count == 0


def test_an_attribute_that_is_made_and_changed_in_a_loop_is_refused():
    def count():
        if not hasattr(count, "n"):
            count.n = 0
        count.n += 1

    @ag.function
    def run(t):
        for _ in t:
            count()
        return count.n

    with pytest.raises(StagingError, match=r"'count\.n' gets its first value in a loop") as caught:
        run(ag.constant(GIVEN))
    assert "give 'count.n' a value before the loop" in str(caught.value)


def test_an_attribute_that_is_made_once_in_a_loop_stays():
    class Scale:
        def of(self, v):
            if not hasattr(self, "factor"):
                self.factor = 2
            return v * self.factor

    @ag.function
    def run(t):
        scale, total = Scale(), 0.0
        for v in t:
            total += scale.of(v)
        return total

    assert float(run(ag.constant(GIVEN))) == 22.0


def test_an_attribute_that_a_branch_makes_is_missing_where_the_branch_was_not_taken():
    class Box:
        pass

    @ag.function
    def run(x, has_default):
        box = Box()

        def put():
            box.n = 5

        if x > 0.0:
            put()
        return getattr(box, "n", 0) if has_default else box.n

    for has_default in (False, True):
        assert int(run(ag.constant(1.0), has_default)) == 5
    assert int(run(ag.constant(-1.0), True)) == 0
    with pytest.raises(AttributeError, match=r"'box\.n' has no value"):
        run(ag.constant(-1.0), False)


def test_a_numpy_array_that_a_helper_writes_to_is_refused_at_its_line():
    totals = np.zeros(2)

    def add(v):
        np.add(totals, v, out=totals)

    @ag.function
    def run(t):
        for v in t:
            if v > 1.0:
                add(1.0)
        return totals[0]

    with pytest.raises(StagingError, match="a NumPy array is written to") as caught:
        run(ag.constant(GIVEN))
    assert caught.value.location.function == "add"
    assert caught.value.location.line == add.__code__.co_firstlineno + 1


def test_functions_that_are_given_count_as_often_as_they_are_called():
    def program(t):
        calls = 0

        def one(*values):
            nonlocal calls
            calls += 1
            return values[0]

        def ten(*values):
            nonlocal calls
            calls += 10
            return values[0]

        for v in t:
            ag.cond(v > 1.0, lambda: one(v), lambda: ten(v))
            ag.switch_case(ag.cast(v, ag.int32), [lambda: one(v), lambda: ten(v)])
        ag.map_fn(one, ag.convert_to_tensor(t))
        ag.foldl(lambda a, b: one(a) + b, ag.convert_to_tensor(t))
        ag.while_loop(lambda v: v > 0.0, lambda v: (one(v) - 1.0,), (t[3],))
        return calls

    assert int(ag.function(program)(ag.constant(GIVEN))) == program(ag.constant(GIVEN))


class Counting(type):
    made = 0

    def __call__(cls):
        Counting.made += 1
        return super().__call__()


class Made(metaclass=Counting):
    pass


def test_what_a_metaclass_counts_is_state():
    @ag.function
    def run(t):
        Counting.made = 0
        for v in t:
            if v > 1.0:
                Made()
        return Counting.made

    assert int(run(ag.constant(GIVEN))) == 3
