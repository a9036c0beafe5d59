"""What LLVM makes of kernels is no longer than it has to be: most of the time of a compilation goes with its length."""

import pytest
from llvmlite import binding as llvm

import autograph as ag
from runtime.llvm import target

pytestmark = pytest.mark.skipif(not target.available(), reason="our own compiler doesn't work here")


def optimised(function, *shapes):
    specs = [ag.TensorSpec(shape, ag.float32) for shape in shapes]
    return ag.function(function).get_concrete_function(*specs).as_text("optimized-llvm")


def test_what_vectors_leave_over_is_not_unrolled():
    def moved(x, y):
        for _ in ag.range(3):
            x = ag.concat([x[:, 1:] * y[:, 1:], y[:, :1]], 1)
        return x

    text = optimised(moved, [None, None], [None, None])
    assert "vector.body:" in text
    assert ".prol:" not in text


def test_products_that_are_known_to_be_large_bring_no_loops_along():
    def product(x, w):
        return x @ w

    assert "vector.body:" in optimised(product, [None, None], [None, None])
    assert "vector.body:" not in optimised(product, [64, 64], [64, 64])


def test_layers_share_their_code():
    def layers(count):
        def network(x, w):
            for _ in range(count):
                x = ag.tanh(x @ w)
            return x

        return network

    lengths = [len(optimised(layers(count), [512, 512], [512, 512])) for count in (2, 3, 6)]
    assert lengths[2] - lengths[1] < lengths[0]  # three layers more


@pytest.mark.skipif(llvm.llvm_version_info < (22,), reason="before LLVM 22 it does grow")
def test_what_an_array_costs_does_not_grow_with_their_number():
    def arrays(count):
        return lambda x: [ag.cumsum(x * float(k)) for k in range(count)]

    phis = [optimised(arrays(count), [None]).count("[ ") for count in (6, 12, 24)]
    assert phis[2] - phis[1] <= 2.5 * (phis[1] - phis[0])
