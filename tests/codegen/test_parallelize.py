"""Large nests on threads: the same bits whatever their number, small nests as ever, and calls from many threads."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import autograph as ag
from runtime.codegen.lower.lower_graph import lower
from runtime.codegen.passes import parallelize


@pytest.fixture(autouse=True)
def restored():
    yield
    parallelize.set_thread_count(0)


def chain(x, y):
    return ag.tanh(x * 2.0 + y) * ag.exp(-x * x), ag.abs(x) - y


def softmax(x, y):
    return (ag.nn.softmax(x), ag.reduce_sum(x * y, axis=-1), ag.reduce_max(x, axis=0))


def loop(x, y):
    for _ in ag.range(3):
        x = ag.sin(x) * 0.5 + y
    return (x,)


def integers(x, y):
    n = ag.cast(x * 100.0, ag.int32)
    return (n * n + 7, ag.cast(n % 5, ag.float32) + y)


def text_of(function, *specs):
    return lower(ag.function(function).get_concrete_function(*specs).graph).text


def arrays(shape, dtype=np.float32):
    rng = np.random.default_rng(0)
    return [ag.constant(rng.normal(size=shape).astype(dtype)) for _ in range(2)]


@pytest.mark.parametrize("program", [chain, softmax, loop, integers], ids=lambda p: p.__name__)
@pytest.mark.parametrize("shape", [(1021, 1031), (2**20 + 3, 1)])
def test_results_do_not_depend_on_the_number_of_threads(program, shape):
    f = ag.function(program, jit_compile=True)
    given = arrays(shape)
    found = []
    for count in (1, 2, 3, 64, 1000):
        parallelize.set_thread_count(count)
        found.append([r.numpy().tobytes() for r in f(*given)])
    assert all(each == found[0] for each in found)
    for ours, eager in zip(f(*given), program(*given)):
        np.testing.assert_allclose(ours.numpy(), eager.numpy(), 1e-5, 1e-4)


def test_only_large_nests_of_known_size_are_split():
    spec = ag.TensorSpec([1000, 1000], ag.float32)
    assert "lib.in_threads(part, threads, " in text_of(chain, spec, spec)
    for shape in ([100, 100], [None, 1000], [], [0]):
        spec = ag.TensorSpec(shape, ag.float32)
        assert "in_threads" not in text_of(chain, spec, spec)


def test_a_batch_of_small_products_is_split_and_not_each_product():
    def text(*shape):
        spec = ag.TensorSpec(shape, ag.float32)
        return text_of(lambda x, y: ag.matmul(x, y, transpose_b=True), spec, spec)

    shared = text(16, 8, 32, 32)
    assert "lib.in_threads(part, threads, " in shared and "False, True, 1)" in shared
    for shape in ([4, 32, 32], [None, 32, 32], [2, 300, 300], [512, 512]):
        assert "in_threads" not in text(*shape) and "False, True, threads)" in text(*shape)


def test_batches_of_products_have_the_same_bits():
    f = ag.function(lambda x, y: (ag.matmul(x, y, transpose_a=True), ag.matmul(x, y[:1, :1])), jit_compile=True)
    given = arrays((33, 5, 24, 24))
    found = []
    for count in (1, 2, 7, 300):
        parallelize.set_thread_count(count)
        found.append([r.numpy().tobytes() for r in f(*given)])
    assert all(each == found[0] for each in found)
    x, y = (each.numpy() for each in given)
    np.testing.assert_allclose(f(*given)[0], np.swapaxes(x, -1, -2) @ y, 1e-4, 1e-4)
    np.testing.assert_allclose(f(*given)[1], x @ y[:1, :1], 1e-4, 1e-4)


def test_a_check_keeps_a_nest_on_one_thread():
    spec = ag.TensorSpec([2**20], ag.int32)
    assert "in_threads" not in text_of(lambda x, y: x // y, spec, spec)  # leaves the kernel where y is 0
    assert "in_threads" in text_of(lambda x, y: x * y, spec, spec)


def test_sizes_are_not_part_of_the_text():
    one, two = (ag.TensorSpec([n], ag.float32) for n in (2**20, 2**21))
    assert text_of(chain, one, one) == text_of(chain, two, two)


def test_calls_from_many_threads():
    f = ag.function(chain, jit_compile=True)
    given = arrays((2**20,))
    expected = [r.numpy().tobytes() for r in f(*given)]
    found = []

    def call():
        found.extend([r.numpy().tobytes() for r in f(*given)] == expected for _ in range(5))

    workers = [threading.Thread(target=call) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert found == [True] * 40


def test_negative_counts_are_refused():
    with pytest.raises(ValueError, match="must not be negative"):
        ag.config.threading.set_intra_op_parallelism_threads(-1)
    ag.config.threading.set_intra_op_parallelism_threads(3)
    assert ag.config.threading.get_intra_op_parallelism_threads() == 3
