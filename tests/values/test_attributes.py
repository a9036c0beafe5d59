"""Attributes that a program sets on tensors, as layers' masks are."""

import copy
import pickle

import autograph as ag


def test_attributes_of_eager_tensors():
    x = ag.constant([1.0, 2.0])
    x._mask = "mask"
    assert x._mask == "mask" and copy.copy(x)._mask == "mask"
    assert not hasattr(x + 0.0, "_mask") and not hasattr(pickle.loads(pickle.dumps(x)), "_mask")


def test_attributes_of_symbolic_tensors():
    @ag.function
    def f(x):
        assert not hasattr(x, "_mask")
        x._mask = x > 1.0
        y = x * 2.0
        y._scale = 3.0
        if ag.reduce_any(x._mask):
            y = y * y._scale
        return y

    x = ag.constant([1.0, 2.0])
    x._mask = None
    x_without = ag.constant([0.0, 1.0])
    assert f(x_without).numpy().tolist() == [0.0, 2.0] and f(ag.identity(x)).numpy().tolist() == [6.0, 12.0]
