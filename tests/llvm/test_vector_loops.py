"""Which loops LLVM makes vectors of: what they call and check must not keep it from them."""

from __future__ import annotations

import functools
import re

import numpy as np
import pytest

import autograph as ag
from runtime.llvm import target
from tests.llvm.kernels import needed

pytestmark = needed
SIDE = 40


def in_place(x):
    """Each row from the one before; the gradient goes backwards over rows and elements, and needs sine and cosine."""
    for i in ag.range(1, SIDE):
        for j in ag.range(SIDE):
            for k in ag.range(SIDE):
                x = ag.tensor_scatter_nd_update(x, [[i, j, k]], [ag.sin(x[i - 1, j, k]) * x[i, j, k]])
    return ag.reduce_sum(x * x)


def by_rows(x):
    """The same, a row at once."""
    rows = [x[0]]
    for i in range(1, SIDE):
        rows.append(ag.sin(rows[-1]) * x[i])
    return ag.reduce_sum(ag.stack(rows) ** 2)


def gradient(function, x):
    with ag.GradientTape() as tape:
        tape.watch(x)
        y = function(x)
    return tape.gradient(y, x)


@functools.cache
def optimised():
    staged = ag.function(lambda x: gradient(in_place, x), jit_compile=True)
    return staged.get_concrete_function(ag.TensorSpec([SIDE] * 3, "float32")).as_text("optimized-llvm")


@pytest.mark.skipif(not target.widens_structs(), reason="this LLVM makes no vectors of calls with two results")
def test_sine_and_cosine_come_as_vectors_from_one_call():
    assert re.search(r"call \{ <(\d+) x float>, <\1 x float> \} @autograph_sine_and_cosine_f32_\1", optimised())


def test_checks_of_overlap_may_pass_in_loops_that_run_backwards():
    # Checks for all trips of the loop around refuse negative strides, and the loop always ran as it stood.
    assert "stride.check" not in optimised()


def test_the_gradient_is_that_of_whole_rows():
    x = ag.constant(np.random.default_rng(0).uniform(0.1, 0.9, [SIDE] * 3).astype(np.float32))
    staged = ag.function(lambda x: gradient(in_place, x), jit_compile=True)
    np.testing.assert_allclose(staged(x), gradient(by_rows, x), rtol=1e-4, atol=1e-5)
