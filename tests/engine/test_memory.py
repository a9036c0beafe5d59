"""No memory left is an error with the user's line on the interpreter and in native code, and the process lives."""

from __future__ import annotations

import resource

import numpy as np
import pytest

import autograph as ag
from runtime import freed_memory

LOTS = 2_000_000_000_000  # elements


def wide(n):
    return ag.tile([1.5], [n])


def in_a_loop(n):
    x = ag.zeros([1])
    for _ in ag.range(3):
        x = ag.concat([x, ag.zeros([n])], 0)
    return x


@pytest.mark.parametrize("program", [wide, in_a_loop])
@pytest.mark.parametrize("jit", [None, False, True], ids=["eager", "interpreted", "compiled"])
def test_out_of_memory(program, jit):
    f = program if jit is None else ag.function(program, jit_compile=jit)
    small = f(ag.constant(2, ag.int64)).numpy()
    with pytest.raises(MemoryError) as caught:
        f(ag.constant(LOTS, ag.int64))
    if jit is not None or program is wide:
        assert isinstance(caught.value, ag.errors.ResourceExhaustedError) and "Out of memory" in str(caught.value)
    if jit is not None:
        assert "test_memory.py" in str(caught.value) and "()" not in str(caught.value)
        line = "ag.tile([1.5], [n])" if program is wide else "ag.zeros([n])"
        assert line in str(caught.value)
    np.testing.assert_array_equal(f(ag.constant(2, ag.int64)).numpy(), small)


@pytest.mark.parametrize("jit", [False, True], ids=["interpreted", "compiled"])
def test_variables_keep_what_was_assigned_before(jit):
    v = ag.Variable(1.0)

    @ag.function(jit_compile=jit)
    def f(n):
        v.assign_add(1.0)
        x = ag.tile([2.0], [n])
        v.assign_add(ag.reduce_sum(x[:1]))
        return x

    f(ag.constant(2, ag.int64))
    before = float(v)
    with pytest.raises(ag.errors.ResourceExhaustedError):
        f(ag.constant(LOTS, ag.int64))
    assert float(v) in (before, before + 1.0)


def nested(depth, x):
    if depth == 0:
        return x + 1.0
    if x > depth:
        x = nested(depth - 1, x)
    return x


@pytest.mark.parametrize("jit", [False, True], ids=["interpreted", "compiled"])
def test_branches_nested_too_deep(jit):
    """Two thousand branches, each inside the other: either it works or it is an error that can be caught."""
    f = ag.function(nested, jit_compile=jit)
    with pytest.raises((RecursionError, ag.errors.OpError)) as caught:
        f(2000, ag.constant(1e9))
    assert str(caught.value)
    assert float(ag.function(nested, jit_compile=False)(20, ag.constant(1e9))) == 1e9


def layers(x):
    """Keeps twenty arrays of 1 MiB until its end, as a training step does for its gradients."""
    kept = [x]
    for _ in range(20):
        kept.append(ag.tanh(kept[-1]))
    return ag.add_n([ag.reduce_sum(each) for each in reversed(kept)])


@pytest.mark.skipif(not freed_memory.keep(), reason="the C library has no such setting, or the environment has it")
def test_interpreted_steps_use_the_memory_of_the_steps_before():
    f = ag.function(layers, jit_compile=False)
    x = ag.ones([512, 512])
    for _ in range(3):
        f(x)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(5):
        f(x)
    pages = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
    assert pages < 5 * 256, "one new array of a step's twenty takes 256 pages"
