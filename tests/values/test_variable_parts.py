"""Parts of variables: slices that are assigned, scatters; eager, staged and in staged loops."""

import numpy as np
import pytest

import autograph as ag

START = np.arange(6.0).reshape(3, 2)


def delta(values, indices):
    return ag.IndexedSlices(ag.constant(values, ag.float64), ag.constant(indices))


UPDATES = {
    "slice": lambda v: v[1:].assign([[9.0, 8.0], [7.0, 6.0]]), "row": lambda v: v[0].assign([5.0, 4.0]),
    "element": lambda v: v[2, 1].assign(-1.0), "step": lambda v: v[::-2].assign(np.ones((2, 2))),
    "broadcast": lambda v: v[:, 0].assign(3.0), "ellipsis": lambda v: v[..., 1].assign([1.0, 2.0, 3.0]),
    "add": lambda v: v[1:].assign_add([[1.0, 1.0], [2.0, 2.0]]), "sub": lambda v: v[0, 0].assign_sub(10.0),
    "tensor index": lambda v: v[ag.constant(1)].assign([0.0, 0.0]),
    "scatter_update": lambda v: v.scatter_update(delta([[1.0, 1.0]], [2])),
    "scatter_add": lambda v: v.scatter_add(delta([[1.0, 1.0], [2.0, 2.0]], [1, 1])),
    "scatter_sub": lambda v: v.scatter_sub(delta([[1.0, 1.0]], [0])),
    "scatter_max": lambda v: v.scatter_max(delta([[1.0, 9.0]], [1])),
    "scatter_min": lambda v: v.scatter_min(delta([[1.0, 9.0]], [1])),
    "scatter_mul": lambda v: v.scatter_mul(delta([[2.0, 3.0], [2.0, 1.0]], [1, 1])),
    "scatter_div": lambda v: v.scatter_div(delta([[2.0, 4.0]], [2])),
    "scatter_nd_update": lambda v: v.scatter_nd_update([[0, 1], [2, 0]], [7.0, 8.0]),
    "scatter_nd_add": lambda v: v.scatter_nd_add([[0, 1], [0, 1]], [7.0, 8.0]),
}  # fmt: skip


def by_numpy(name):
    a = START.copy()
    if name == "slice":
        a[1:] = [[9, 8], [7, 6]]
    elif name == "row":
        a[0] = [5, 4]
    elif name == "element":
        a[2, 1] = -1
    elif name == "step":
        a[::-2] = 1
    elif name == "broadcast":
        a[:, 0] = 3
    elif name == "ellipsis":
        a[..., 1] = [1, 2, 3]
    elif name == "add":
        a[1:] += [[1, 1], [2, 2]]
    elif name == "sub":
        a[0, 0] -= 10
    elif name == "tensor index":
        a[1] = 0
    elif name == "scatter_update":
        a[2] = 1
    elif name == "scatter_add":
        a[1] += 3
    elif name == "scatter_sub":
        a[0] -= 1
    elif name == "scatter_max":
        a[1] = np.maximum(a[1], [1, 9])
    elif name == "scatter_min":
        a[1] = np.minimum(a[1], [1, 9])
    elif name == "scatter_mul":
        a[1] *= [4, 3]
    elif name == "scatter_div":
        a[2] /= [2, 4]
    elif name == "scatter_nd_update":
        a[0, 1], a[2, 0] = 7, 8
    elif name == "scatter_nd_add":
        a[0, 1] += 15
    return a


@pytest.mark.parametrize("name", UPDATES)
def test_update(name):
    v = ag.Variable(START)
    before = v.read_value()
    assert UPDATES[name](v) is v
    np.testing.assert_array_equal(v.numpy(), by_numpy(name))
    np.testing.assert_array_equal(before.numpy(), START)


@pytest.mark.parametrize("name", UPDATES)
def test_staged_update(name):
    v = ag.Variable(START)

    @ag.function
    def update():
        UPDATES[name](v)
        return v.read_value()

    np.testing.assert_array_equal(update().numpy(), by_numpy(name))
    np.testing.assert_array_equal(v.numpy(), by_numpy(name))


def test_in_a_staged_loop():
    v = ag.Variable(np.zeros(5))

    @ag.function
    def squares(n):
        i = 0
        while i < n:
            v[i].assign(ag.cast(i * i, ag.float64))
            i += 1

    squares(ag.constant(5))
    assert v.numpy().tolist() == [0, 1, 4, 9, 16]


def test_slices_of_tensors_cannot_be_assigned():
    t = ag.constant([1.0, 2.0])
    assert not hasattr(t[0], "assign")
    with pytest.raises(AttributeError, match="tensors are immutable"):
        t[0].assign(1.0)


def test_errors():
    v = ag.Variable(START)
    with pytest.raises(ag.errors.InvalidArgumentError, match="doesn't fit a slice of shape"):
        v[1:].assign([1.0, 2.0, 3.0])
    with pytest.raises(TypeError, match="IndexedSlices"):
        v.scatter_add([1.0])
    with pytest.raises(ag.errors.InvalidArgumentError):
        v.scatter_nd_add([[5, 0]], [1.0])
    np.testing.assert_array_equal(v.numpy(), START)


def test_reading_parts():
    v = ag.Variable(START)
    assert v.sparse_read([2, 0]).numpy().tolist() == [[4, 5], [0, 1]]
    assert v.gather_nd([[1, 1]]).numpy().tolist() == [3]
    with ag.GradientTape() as tape:
        y = v[1, 0] * v[2, 1]
    assert tape.gradient(y, v).numpy().tolist() == [[0, 0], [5, 0], [0, 2]]


def test_batches_of_rows():
    v = ag.Variable([[1, 2, 3], [4, 5, 6]])
    v.batch_scatter_update(ag.IndexedSlices([[10, 30], [50, 60]], [[0, 2], [1, 2]]))
    np.testing.assert_array_equal(v, [[10, 2, 30], [4, 50, 60]])
    staged = ag.function(lambda: v.batch_scatter_update(ag.IndexedSlices([[7], [8]], [[1], [0]])))
    staged()
    np.testing.assert_array_equal(v, [[10, 7, 30], [8, 50, 60]])


def test_counting_up():
    v = ag.Variable(1)
    count = ag.function(lambda: v.count_up_to(3))
    assert [int(count()), int(v.count_up_to(3))] == [1, 2]
    for call in (count, lambda: v.count_up_to(3)):
        with pytest.raises(ag.errors.OutOfRangeError, match="Reached limit of 3"):
            call()


def test_arguments_of_distribution_are_kept():
    v = ag.Variable(1.0, aggregation=ag.VariableAggregation.MEAN, constraint=abs)
    assert v.aggregation is ag.VariableAggregation.MEAN and v.constraint is abs
    assert v.synchronization is ag.VariableSynchronization.AUTO
    with pytest.raises(ValueError, match="aggregation"):
        ag.Variable(1.0, aggregation="mean")
    with pytest.raises(RuntimeError, match="initial_value"):
        v.initial_value


def test_shapes_that_may_change():
    v = ag.Variable([1.0], shape=ag.TensorShape(None))
    v.assign([[1.0, 2.0]])
    assert v.numpy().shape == (1, 2) and v.shape.rank is None
    v.set_shape([None, 2])
    with pytest.raises(ValueError, match="incompatible"):
        v.assign([1.0])


def test_an_assigning_loop_does_not_grow():
    """Compiled steps reuse memory: what the process holds stays bounded however often a large variable is assigned."""
    import gc
    import tracemalloc

    v = ag.Variable(np.zeros(200_000, np.float32))

    @ag.function(jit_compile=True)
    def step(n):
        for _ in ag.range(n):
            v.assign_add(ag.ones_like(v))

    step(ag.constant(3))
    gc.collect()
    tracemalloc.start()
    try:
        for _ in range(5):
            step(ag.constant(200))
        current, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert float(v[0]) == 1003
    assert current < 4 * v.numpy().nbytes, current
    assert peak < 10 * v.numpy().nbytes, peak
