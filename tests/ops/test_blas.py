"""Small products keep to their thread, and leave NumPy's library as they found it."""

import contextlib
import os
import threading

import numpy as np
import pytest

import autograph as ag
from runtime.engine.settings import wait_for_background
from runtime.ops import blas


@pytest.fixture
def setting():
    found = blas._setting()
    if found is None:
        pytest.skip("NumPy has another library for products")
    wait_for_background()  # the compiler puts the setting down, too
    before = found[0]()
    found[1](2)
    yield found
    found[1](before)


def test_small_products_use_one_thread_and_others_all(setting, monkeypatch):
    seen = []

    def watched(a, b):
        seen.append(setting[0]())
        return a @ b

    monkeypatch.setattr(blas.np, "matmul", watched)
    small, large = np.ones([100, 100], np.float32), np.ones([500, 500], np.float32)
    assert (blas.matmul(small, small) == 100).all() and (blas.matmul(large, large) == 500).all()
    assert seen == [1, 2]
    assert setting[0]() == 2


def test_products_that_the_library_leaves_to_one_thread_leave_its_setting_alone(setting, monkeypatch):
    monkeypatch.setattr(blas.one_thread, "_inside", None)  # entering would fail
    few = np.ones([64, 64])
    assert (blas.matmul(few, few) == 64).all()
    assert (blas.matmul(few[None], few) == 64).all()
    with pytest.raises(TypeError):
        blas.matmul(np.ones([100, 100]), np.ones([100, 100]))


def test_a_product_that_fails_puts_the_threads_back(setting):
    with pytest.raises(ag.errors.InvalidArgumentError):
        ag.matmul(ag.ones([64, 64]), ag.ones([63, 64]))
    with pytest.raises(ValueError):
        blas.matmul(np.ones([64, 64]), np.ones([63, 64]))
    assert setting[0]() == 2


@contextlib.contextmanager
def another_thread_inside():
    """A thread that has put the threads down meanwhile."""
    inside, leave = threading.Event(), threading.Event()

    def other():
        with blas.one_thread:
            inside.set()
            leave.wait(30)

    thread = threading.Thread(target=other)
    thread.start()
    assert inside.wait(30)
    yield
    leave.set()
    thread.join()


def test_contexts_that_overlap_put_the_threads_back_once(setting):
    with another_thread_inside():
        with blas.one_thread:
            assert setting[0]() == 1
        assert setting[0]() == 1  # the other thread is still inside
    assert setting[0]() == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_gets_the_threads_back_that_another_thread_of_its_parent_had_put_down(setting):
    with another_thread_inside():
        child = os.fork()
        if child == 0:
            os._exit(0 if setting[0]() == 2 and blas.one_thread._inside == 0 else 1)
        status = os.waitpid(child, 0)[1]
    assert status == 0


@pytest.mark.parametrize("shape", [(3, 4, 5), (2, 3, 40, 50), (0, 4, 5), (3, 4, 0)])
def test_a_batch_times_one_matrix(shape):
    a = np.arange(np.prod(shape), dtype=np.float64).reshape(shape) % 7
    b = np.arange(shape[-1] * 6, dtype=np.float64).reshape(shape[-1], 6) % 5
    for each in (a, a[::-1], np.asfortranarray(a)):
        np.testing.assert_array_equal(blas.matmul(each, b), np.matmul(each, b))


@pytest.fixture
def functions(monkeypatch):
    """No products by compiled code; `requests` are noted."""
    native = blas._Native()
    native.requests = []
    native.request = native.requests.append
    monkeypatch.setattr(blas, "native", native)
    return native


@pytest.mark.parametrize("kind", ["f", "d"])
def test_interpreted_graphs_use_products_of_compiled_code_once_there_are_any(functions, kind, monkeypatch):
    a, b = np.ones([100, 90], kind), np.ones([90, 80], kind)
    monkeypatch.setattr(blas, "_WORTH_COMPILING", 3 * 100 * 90 * 80)
    with functions:
        for _ in range(2):
            assert (blas.matmul(a, b) == 90).all()
        assert functions.requests == []  # compiling takes more than it would have saved
        assert (blas.matmul(a, b) == 90).all()
        assert functions.requests == [kind]
        functions.functions[kind] = lambda a, b: "compiled"
        assert blas.matmul(a, b) == "compiled"
        with functions:
            pass
        assert blas.matmul(a, b) == "compiled"
    assert (blas.matmul(a, b) == 90).all()  # elsewhere bits mustn't depend on what else the machine does


def test_other_products_are_numpys(functions):
    functions.functions["f"] = None  # a call would fail
    ones = np.ones([90, 90], np.float32)
    with functions:
        assert (blas.matmul(ones[:10], ones) == 90).all()  # small
        assert (blas.matmul(np.stack([ones, ones]), np.stack([ones, ones])) == 90).all()
        assert blas.matmul(ones, ones.astype(np.float64)).dtype == np.float64
        assert (blas.matmul(ones.astype(np.complex64), ones.astype(np.complex64)) == 90).all()
        with pytest.raises(ValueError):
            blas.matmul(ones, ones[1:])
    assert functions.requests == []
