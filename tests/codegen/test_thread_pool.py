"""The pool of threads: every part once, on no more threads than wanted, from many callers, in a fork's child, and
without threads that are late."""

from __future__ import annotations

import ctypes
import functools
import os
import signal
import subprocess
import sys
import threading
from unittest import mock

import pytest

from runtime import system
from runtime.codegen.native_runtime import thread_pool
from runtime.llvm import target
from runtime.llvm.threads import RUN

pytestmark = [
    pytest.mark.skipif(not system.has_posix_threads(), reason="the threads are POSIX threads"),
    pytest.mark.skipif(not target.available(), reason="LLVM's linker isn't known to work here"),
]

ENTRY = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)


@functools.cache
def pool(late=1 << 60):
    """A pool of the tests' own. late: nanoseconds; by default a busy machine makes nobody late."""
    with mock.patch.object(thread_pool, "_LATE", late), mock.patch.object(thread_pool, "_IN_VAIN", late):
        code = target.machine_code(thread_pool.code(), (), level=0)
    (address,) = target.link(code, [RUN], {})
    return ctypes.CFUNCTYPE(None, ENTRY, ctypes.c_void_p, *[ctypes.c_int64] * 3)(address)


def run(each, count, limit, function=None):
    """Calls each(number) for all parts; gives what the calls gave, in the order of their ends."""
    function = pool() if function is None else function
    records = (ctypes.c_int64 * max(count, 1))(*range(count))
    found = []

    def entry(place):
        found.append(each(ctypes.cast(place, ctypes.POINTER(ctypes.c_int64))[0]))

    function(ENTRY(entry), ctypes.addressof(records), 8, count, limit)
    return found


@pytest.mark.parametrize("limit", [1, 2, 3, 300])
@pytest.mark.parametrize("count", [0, 1, 2, 7, 100, thread_pool.MOST_PARTS, thread_pool.MOST_PARTS + 1])
def test_every_part_runs_once(count, limit):
    assert sorted(run(lambda number: number, count, limit)) == list(range(count))


def test_nests_follow_each_other():
    for turn in range(2000):
        assert sorted(run(lambda number, turn=turn: (turn, number), 5, 4)) == [(turn, k) for k in range(5)]


def test_no_more_threads_than_wanted():
    gate = threading.Event()

    def slow(number):
        gate.wait(0.002)
        return threading.get_native_id()

    run(slow, 40, 8)  # the pool has eight from now on
    assert threading.get_native_id() in run(slow, 40, 8)
    assert 1 < len(set(run(slow, 40, 3))) <= 3
    assert set(run(slow, 40, 1)) == {threading.get_native_id()}


def test_callers_at_the_same_time():
    found = []

    def call():
        for _ in range(200):
            found.append(sorted(run(lambda number: number, 6, 3)) == list(range(6)))

    threads = [threading.Thread(target=call) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 1600


def test_a_part_that_runs_parts():
    """The pool is busy then: the inner ones run where they are."""
    assert run(lambda number: sorted(run(lambda inner: inner, 3, 2)), 4, 2) == [[0, 1, 2]] * 4


def test_signals_stay_with_python():
    blocked = run(lambda number: signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ()), 4, 1)
    assert blocked == [False] * 4
    gate = threading.Event()

    def slow(number):
        gate.wait(0.01)
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        return threading.get_native_id(), signal.SIGINT in mask

    found = run(slow, 20, 2)
    assert {blocked for thread, blocked in found if thread != threading.get_native_id()} == {True}


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="asks where a thread may run")
def test_threads_keep_off_the_callers_processor():
    everywhere = os.sched_getaffinity(0)
    if len(everywhere) < 2:
        pytest.skip("there is one processor")
    gate = threading.Event()

    def slow(number):
        gate.wait(0.01)
        return threading.get_native_id(), frozenset(os.sched_getaffinity(0))

    def places():
        run(slow, 20, 3)  # makes the threads, and tells them
        return {places for thread, places in run(slow, 20, 3) if thread != threading.get_native_id()}

    for each in places():
        assert each < everywhere
        assert len(each) == len(everywhere) - 1
    try:
        # A caller that has one processor alone leaves its threads where they were.
        os.sched_setaffinity(0, {min(everywhere)})
        assert all(places())
    finally:
        os.sched_setaffinity(0, everywhere)
    assert os.sched_getaffinity(0) == everywhere


def test_callers_do_without_threads_that_were_late():
    own, begun = threading.get_native_id(), threading.Event()

    def held_up(number):
        if threading.get_native_id() == own:
            begun.wait(10)
        else:
            begun.set()
            threading.Event().wait(0.1)

    def threads():
        return set(run(lambda number: threading.Event().wait(0.002) or threading.get_native_id(), 20, 2, pool(1)))

    found = []
    for _ in range(20):
        begun.clear()
        run(held_up, 3, 2, pool(1))
        found.append(threads())
    assert {own} in found  # not always: the time may be over
    assert any(len(threads()) == 2 for _ in range(500))  # and then they are asked again


PROGRAM = """
import os, sys
sys.path[:0] = [{root!r}]
import warnings
warnings.simplefilter("ignore")  # Python 3.12 and later warn of forks with threads
from tests.codegen.test_thread_pool import run
def total(): return sum(run(lambda number: number, 50, 3))
assert total() == 1225
child = os.fork()
if child == 0:
    os._exit(0 if [total() for _ in range(20)] == [1225] * 20 else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert total() == 1225
print("done")
"""


def test_a_fork_and_an_exit():
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(root=root)], capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


BEFORE = """
import numpy as np
import autograph as ag
from runtime.codegen.native_runtime import thread_pool
from runtime.engine import background, wait_for_background
jobs, submit = [], background.worker.submit
background.worker.submit = lambda step, **options: jobs.append((step, options)) or True
f = ag.function(ag.nn.softmax, jit_compile=True)
x = ag.constant(np.random.default_rng(0).normal(size=(512, 1024)).astype(np.float32))
first = f(x).numpy()
assert thread_pool.is_awaited()
background.worker.submit = submit
for step, options in jobs:
    submit(step, **options)
wait_for_background()
assert not thread_pool.is_awaited()
assert (f(x).numpy() == first).all()
print("done")
"""


def test_kernels_run_before_there_is_a_pool(tmp_path):
    environment = {**os.environ, "AUTOGRAPH_CACHE_DIR": str(tmp_path)}
    for _ in range(2):  # compiled, and from the cache
        done = subprocess.run(
            [sys.executable, "-c", BEFORE], capture_output=True, text=True, timeout=120, env=environment
        )
        assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
