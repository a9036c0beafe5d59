"""What conversion costs: linear in the length of the source, once per function, and nothing that stays behind."""

from __future__ import annotations

import gc
import linecache
import subprocess
import sys
from pathlib import Path

import pytest

from autograph.convert.api import converted
from autograph.operators import calls
from autograph.operators.calls import converted_form
from autograph.syntax import load
from runtime.engine import wait_for_background

ROOT = Path(__file__).resolve().parents[2]
BLOCK = """\
    for x{n} in xs:
        if x{n} > k and not total == {n}:
            continue
        while total < 0 < x{n}:
            total += x{n} if k else 1
            if total == 3:
                break
"""


# What follows an early return goes into its `else`: each one nests what comes after it deeper.
RETURNING = (
    BLOCK
    + """\
    if total == {n}:
        return x{n}
"""
)


def function_of(blocks, block=BLOCK):
    text = (
        "def work(xs, k):\n    total = 0\n" + "".join(block.format(n=n) for n in range(blocks)) + "    return total\n"
    )
    filename = f"<{blocks} blocks of {len(block)}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    namespace = {"__name__": "cost"}
    exec(compile(text, filename, "exec"), namespace)
    return namespace["work"]


def calls_made(action):
    """How many Python functions an action calls: a measure of work that doesn't depend on the machine."""
    count = 0

    def profile(frame, event, argument):
        nonlocal count
        count += event == "call"

    sys.setprofile(profile)
    try:
        action()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("block", [BLOCK, RETURNING], ids=["side by side", "nested"])
def test_conversion_is_linear(block):
    converted(function_of(3, block))  # templates are parsed once
    functions = {blocks: function_of(blocks, block) for blocks in (10, 20, 40)}
    made = {blocks: calls_made(lambda: converted(function)) for blocks, function in functions.items()}
    assert made[10] > 1000
    # Each level of nesting costs a little: the home of a variable is looked for outwards.
    assert made[40] - made[20] < 2.4 * (made[20] - made[10])


def test_nothing_is_collected_while_trees_grow():
    function, runs = function_of(60), []
    converted(function_of(3))

    def watch(phase, info):
        runs.append(phase)

    gc.callbacks.append(watch)
    try:
        converted(function)
    finally:
        gc.callbacks.remove(watch)
    assert gc.isenabled()
    assert len(runs) <= 4


def test_the_second_conversion_is_a_look_up():
    function = function_of(10)
    converted(function)
    assert calls_made(lambda: converted(function)) < 20
    converted_form(function)
    assert calls_made(lambda: converted_form(function)) < 10


def test_functions_made_and_dropped_leave_nothing():
    def make(k):
        def step(x):
            if x > k:
                return x - k
            return x

        return step

    def use(count):
        for k in range(count):
            assert converted(make(k))(k + 1) == 1
            assert converted_form(make(k))(k) == k
        gc.collect()

    def state():
        texts = [name for name in linecache.cache if name.startswith("<")]  # compilers look into files
        return len(gc.get_objects()), len(calls._makers), len(calls._forced), len(load._loaded), len(texts)

    wait_for_background(120)
    use(100)
    before = state()
    use(100_000)
    after = state()
    # What other tests have left may go meanwhile; nothing may come.
    assert all(now <= then for now, then in zip(after[1:], before[1:]))
    # Compilers that other tests have started work on in the background; a leak would be of 100,000 at least.
    assert after[0] - before[0] < 10_000


def test_code_made_and_dropped_leaves_nothing():
    def use(count):
        for _ in range(count):
            function = function_of(1)
            converted(function)
        linecache.cache.pop(function.__code__.co_filename)
        gc.collect()

    use(3)
    more = []
    while not more or (more[-1] >= 100 and len(more) < 5):  # a thread that compiles for another test makes objects, too
        before = len(gc.get_objects())
        use(30)
        more.append(len(gc.get_objects()) - before)
    assert min(more) < 100, more


def test_a_soak_stays_flat():
    # In a process of its own: compilers at work in the background allocate too.
    found = subprocess.run([sys.executable, "-m", "tests.soak", "600"], cwd=ROOT, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout + found.stderr
    assert "600 times" in found.stdout
