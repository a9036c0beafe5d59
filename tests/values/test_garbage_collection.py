"""While graphs are built the garbage collector rarely looks, and is as it was afterwards."""

import gc
import subprocess
import sys
import threading

import pytest

import autograph as ag
from runtime.engine.settings import wait_for_background
from runtime.garbage_collection import raised_threshold


@pytest.fixture(autouse=True)
def usual():
    wait_for_background()  # which puts collections off too, while it compiles for other tests
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield
    gc.set_threshold(*before)


def test_nested_blocks_and_errors_restore_the_thresholds():
    with raised_threshold():
        assert gc.get_threshold()[0] > 10_000
        with pytest.raises(ZeroDivisionError), raised_threshold():
            1 / 0
        assert gc.get_threshold()[0] > 10_000
    assert gc.get_threshold() == (700, 10, 10)


def test_blocks_in_two_threads_end_in_any_order():
    inside, end = threading.Event(), threading.Event()

    def other():
        with raised_threshold():
            inside.set()
            end.wait(10)

    thread = threading.Thread(target=other)
    with raised_threshold():
        thread.start()
        assert inside.wait(10)
    assert gc.get_threshold()[0] > 10_000
    end.set()
    thread.join()
    assert gc.get_threshold() == (700, 10, 10)


@pytest.mark.parametrize("mine", [(0, 10, 10), (1_000_000, 5, 5)])
def test_what_the_user_has_switched_off_or_set_higher_stays(mine):
    gc.set_threshold(*mine)
    with raised_threshold():
        assert gc.get_threshold() == mine
    assert gc.get_threshold() == mine


def test_what_the_user_sets_inside_stays():
    with raised_threshold():
        gc.set_threshold(900, 8, 8)
    assert gc.get_threshold() == (900, 8, 8)


def run(script: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120
    ).stdout


def test_nobody_looks_through_what_the_import_has_made():
    script = """
import gc, sys
import numpy
looks = []
gc.callbacks.append(lambda phase, info: looks.append(info["generation"]) if phase == "start" else None)
before = gc.get_threshold()
import autograph
assert gc.get_threshold() == before
assert gc.get_freeze_count() == 0
young = sum(len(gc.get_objects(generation)) for generation in (0, 1))
gc.collect(1)
print(len(looks) < 3 and 2 not in looks, young < 5000, any(thing is autograph.function for thing in gc.get_objects(2)))
"""
    assert run(script).split() == ["True"] * 3


def test_nobody_looks_through_what_the_first_kernel_has_made():
    script = """
import gc
import autograph as ag
looked_through = []
gc.callbacks.append(
    lambda phase, info: looked_through.append(len(gc.get_objects(info["generation"]))) if phase == "start" else None
)
ag.function(lambda x: x + 1, jit_compile=True)(ag.constant([1.0]))
print(gc.get_freeze_count() == 0, all(objects < 5000 for objects in looked_through))
"""
    assert run(script).split() == ["True"] * 2


def test_what_somebody_has_frozen_before_the_import_stays_so():
    assert run("import gc; gc.freeze(); import autograph; print(gc.get_freeze_count() > 0)").strip() == "True"


def test_tracing_is_such_a_block():
    seen = []

    @ag.function
    def f(x):
        seen.append(gc.get_threshold()[0])
        return x + 1

    f(ag.constant(1.0))
    assert seen[0] > 10_000
    assert gc.get_threshold() == (700, 10, 10)


def test_the_first_trace_counts_what_was_imported_before_it_as_old() -> None:
    program = """
import gc
import subprocess
import sys
import autograph as ag
for _ in range(10):
    gc.collect(1)
before = gc.get_count()[2]
ag.function(lambda x: x + 1)(ag.constant(1))
print(before, gc.get_count()[2])
"""
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    before, after = map(int, printed.split())
    assert before >= 10
    assert after == 0
