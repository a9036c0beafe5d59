"""Gradients of variables that are only read by gathers: `IndexedSlices`, as in TensorFlow."""

import numpy as np
import pytest

import autograph as ag

WAYS = {
    "eager": lambda f: f,
    "function": ag.function,
    "jit": lambda f: ag.function(f, jit_compile=True),
}
both = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


def table(dtype=ag.float32):
    return ag.Variable(np.arange(12.0).reshape(4, 3), dtype=dtype)


def gradient(f, sources, way=lambda f: f):
    """The gradient of `f`, by a tape inside of what `way` makes."""

    def run():
        with ag.GradientTape() as tape:
            y = f()
        return tape.gradient(y, sources)

    return way(run)()


def parts(slices):
    assert isinstance(slices, ag.IndexedSlices)
    return slices.indices.numpy().tolist(), slices.values.numpy().tolist()


@both
def test_the_rows_that_were_read(way):
    v = table(ag.float64)
    found = gradient(lambda: ag.reduce_sum(ag.gather(v, [2, 0, 2]) ** 2), v, way)
    assert parts(found) == ([2, 0, 2], [[12, 14, 16], [0, 2, 4], [12, 14, 16]])
    assert found.dtype is ag.float64 and found.indices.dtype is ag.int32
    assert found.shape.as_list() == [4, 3] and found.dense_shape.numpy().tolist() == [4, 3]
    whole = ag.convert_to_tensor(found)
    assert whole.numpy().tolist() == [[0, 2, 4], [0, 0, 0], [24, 28, 32], [0, 0, 0]]


@both
@pytest.mark.parametrize(
    "read",
    [
        lambda v: ag.nn.embedding_lookup(v, [[1], [3]]),
        lambda v: ag.gather(v, [[1], [3]], axis=0),
        lambda v: v.sparse_read([1, 3]),
        lambda v: ag.nn.embedding_lookup_sparse(v, ag.SparseTensor([[0, 0], [1, 0]], [1, 3], [2, 1]), None, "sum"),
        lambda v: ag.gather(v.read_value(), [1, 3]),
        lambda v: ag.gather_nd(v, [[1], [3]]),
        lambda v: ag.gather(ag.cast(v, ag.float64), [1, 3]),
        lambda v: ag.gather_nd(ag.cast(ag.cast(v, ag.float16), ag.float64), [[1], [3]]),
    ],
)
def test_ways_to_read_rows(way, read):
    v = table()
    assert parts(gradient(lambda: ag.reduce_sum(read(v)), v, way)) == ([1, 3], [[1, 1, 1], [1, 1, 1]])


@both
def test_behind_a_cast(way):
    v = table()

    def f():
        wide = ag.cast(v, ag.float64)
        rows = ag.reduce_sum(ag.gather(wide, [2, 0]) ** 2) + ag.reduce_sum(ag.gather(wide, [2]))
        return ag.cast(rows, ag.float32) + ag.reduce_sum(ag.gather(v, [3]))

    found = gradient(f, v, way)
    assert found.dtype is ag.float32
    whole = [[0, 2, 4], [0, 0, 0], [13, 15, 17], [1, 1, 1]]
    assert ag.convert_to_tensor(found).numpy().tolist() == whole
    assert isinstance(found, ag.IndexedSlices) and found.values.shape.as_list() == [4, 3]


@both
def test_a_cast_that_is_a_source_itself(way):
    v = table()

    def run():
        with ag.GradientTape() as tape:
            wide = ag.cast(v, ag.float64)
            y = ag.reduce_sum(ag.gather(wide, [1, 1]))
        return tape.gradient(y, [v, wide])

    of_v, of_wide = way(run)()
    expected = [[0, 0, 0], [2, 2, 2], [0, 0, 0], [0, 0, 0]]
    assert ag.convert_to_tensor(of_v).numpy().tolist() == ag.convert_to_tensor(of_wide).numpy().tolist() == expected


@both
def test_one_row(way):
    v = table()
    assert parts(gradient(lambda: ag.reduce_sum(ag.gather(v, 1)), v, way)) == ([1], [[1, 1, 1]])


@both
def test_several_reads_follow_one_another(way):
    v = table()

    def f():
        first, second = ag.gather(v, [1]), ag.gather(v, ag.constant([[0, 3]], ag.int64))
        return ag.reduce_sum(2.0 * first) + ag.reduce_sum(3.0 * second)

    found = gradient(f, v, way)
    assert parts(found) == ([0, 3, 1], [[3, 3, 3], [3, 3, 3], [2, 2, 2]])
    assert found.indices.dtype is ag.int64


@both
@pytest.mark.parametrize(
    "other",
    [
        lambda v: ag.reduce_sum(v),
        lambda v: ag.reduce_sum(v[1]),
        lambda v: ag.reduce_sum(v[ag.constant([1])]),
        lambda v: ag.reduce_sum(ag.gather(v, [1], axis=1)),
        lambda v: ag.reduce_sum(ag.gather_nd(v, [[1, 1]])),
        lambda v: ag.cast(ag.reduce_sum(ag.cast(v, ag.float64)), ag.float32),
        lambda v: ag.reduce_sum(ag.sparse.sparse_dense_matmul(ag.sparse.eye(2, 4), v)),
    ],
)
def test_other_reads_make_it_a_tensor(way, other):
    v = table()
    alone = gradient(lambda: other(v), v, way)
    together = gradient(lambda: ag.reduce_sum(ag.gather(v, [2, 2])) + other(v), v, way)
    assert not isinstance(alone, ag.IndexedSlices) and not isinstance(together, ag.IndexedSlices)
    assert (together - alone).numpy().tolist() == [[0, 0, 0], [0, 0, 0], [2, 2, 2], [0, 0, 0]]


@both
def test_tensors_have_tensors(way):
    x = ag.constant([[1.0], [2.0]])

    def run():
        with ag.GradientTape() as tape:
            tape.watch(x)
            y = ag.reduce_sum(ag.gather(x, [1]))
        return tape.gradient(y, x)

    assert way(run)().numpy().tolist() == [[0], [1]]


@pytest.mark.parametrize("way", [WAYS["function"], WAYS["jit"]], ids=["function", "jit"])
def test_in_staged_loops_it_is_a_tensor(way):
    v = table()

    def f():
        total = ag.reduce_sum(ag.gather(v, [3]))
        for i in ag.range(3):
            total += ag.reduce_sum(ag.gather(v, [i, i]))
        return total

    assert gradient(f, v, way).numpy().tolist() == [[2, 2, 2]] * 3 + [[1, 1, 1]]


@pytest.mark.parametrize("jit_compile", [False, True])
def test_a_tape_round_a_call(jit_compile):
    v, w = table(), table()
    f = ag.function(
        lambda i: ag.reduce_sum(ag.gather(v, i) ** 2) + ag.reduce_sum(ag.gather(w, i)) + ag.reduce_sum(w),
        jit_compile=jit_compile,
    )
    with ag.GradientTape(persistent=True) as tape:
        y = f(ag.constant([2, 0]))
        both_reads = y + ag.reduce_sum(ag.gather(v, [1]))
    of_v, of_w = tape.gradient(y, [v, w])
    assert parts(of_v) == ([2, 0], [[12, 14, 16], [0, 2, 4]])
    assert of_w.numpy().tolist() == [[2, 2, 2], [1, 1, 1], [2, 2, 2], [1, 1, 1]]
    assert parts(tape.gradient(both_reads, v)) == ([1, 2, 0], [[1, 1, 1], [12, 14, 16], [0, 2, 4]])
    # What asks for tensors gets them.
    assert tape.jacobian(y, v).numpy().tolist() == ag.convert_to_tensor(of_v).numpy().tolist()


@both
def test_gradients_of_gradients(way):
    v = table()

    def run():
        with ag.GradientTape() as outer:
            with ag.GradientTape() as inner:
                y = ag.reduce_sum(ag.gather(v, [1, 1]) ** 3)
            total = ag.reduce_sum(ag.convert_to_tensor(inner.gradient(y, v)))
        return outer.gradient(total, v)

    found = way(run)()
    assert ag.convert_to_tensor(found).numpy().tolist() == [[0, 0, 0], [36, 48, 60], [0, 0, 0], [0, 0, 0]]


def test_gradients_of_a_traced_call_to_second_order():
    v = table()
    f = ag.function(lambda: ag.reduce_sum(ag.gather(v, [1, 1]) ** 3))
    with ag.GradientTape() as outer:
        with ag.GradientTape() as inner:
            y = f()
        total = ag.reduce_sum(ag.convert_to_tensor(inner.gradient(y, v)))
    assert ag.convert_to_tensor(outer.gradient(total, v)).numpy().tolist()[1] == [36, 48, 60]


def test_a_saved_model_keeps_it(tmp_path):
    module = ag.Module()
    module.table = table()
    module.read = ag.function(lambda i: ag.gather(module.table, i), input_signature=[ag.TensorSpec([None], ag.int32)])
    ag.saved_model.save(module, str(tmp_path))
    loaded = ag.saved_model.load(str(tmp_path))
    with ag.GradientTape() as tape:
        y = ag.reduce_sum(loaded.read(ag.constant([3, 3])))
    assert parts(tape.gradient(y, loaded.table)) == ([3, 3], [[1, 1, 1], [1, 1, 1]])


def test_gradients_without_a_tape():
    v = table()

    @ag.function
    def f():
        y = ag.reduce_sum(ag.gather(v, [3]))
        return ag.gradients(y, v)[0], ag.gradients(y + ag.reduce_sum(v), v)[0]

    slices, whole = f()
    assert parts(slices) == ([3], [[1, 1, 1]])
    assert whole.numpy().tolist() == [[1, 1, 1]] * 3 + [[2, 2, 2]]


def test_complex_numbers():
    v = ag.Variable([1 + 2j, 3 - 1j])
    found = gradient(lambda: ag.math.real(ag.reduce_sum(ag.gather(v, [1, 1]) ** 2)), v)
    dense = gradient(lambda: ag.math.real(ag.reduce_sum(v[1] ** 2 * 2)), v)
    assert ag.convert_to_tensor(found).numpy().tolist() == dense.numpy().tolist()


@both
def test_unknown_numbers_of_rows(way):
    v = ag.Variable([[1.0], [2.0]], shape=[None, 1])
    found = gradient(lambda: ag.reduce_sum(ag.gather(v, [1])), v, way)
    assert found.dense_shape.numpy().tolist() == [2, 1]
    assert ag.convert_to_tensor(found).numpy().tolist() == [[0], [1]]


def test_forward_mode_and_custom_gradients_use_it():
    v = table()
    with ag.autodiff.ForwardAccumulator(v, ag.ones([4, 3])) as accumulator:
        y = ag.reduce_sum(ag.gather(v, [1, 1]) * 2.0)
    assert float(accumulator.jvp(y)) == 12
    again = ag.recompute_grad(lambda x: x * ag.reduce_sum(ag.gather(v, [1])))
    found = gradient(lambda: again(ag.constant(2.0)), v)
    assert ag.convert_to_tensor(found).numpy().tolist() == [[0, 0, 0], [2, 2, 2], [0, 0, 0], [0, 0, 0]]


@both
def test_scattering_it_equals_the_dense_step(way):
    sliced, dense = table(), table()

    def step(i):
        with ag.GradientTape() as tape:
            y = ag.reduce_sum(ag.gather(sliced, i) ** 2) + ag.reduce_sum(ag.gather(dense, i) ** 2)
        of_sliced, of_dense = tape.gradient(y, [sliced, dense])
        sliced.scatter_sub(ag.math.scalar_mul(0.25, of_sliced))
        dense.assign_sub(0.25 * ag.convert_to_tensor(of_dense))

    run = way(step)
    for _ in range(2):
        run(ag.constant([3, 1, 3]))
    np.testing.assert_allclose(sliced.numpy(), dense.numpy())
    assert sliced.numpy()[0].tolist() == [0, 1, 2] and sliced.numpy()[1].tolist() == [0.75, 1, 1.25]


def test_a_step_of_slices_is_one_kernel():
    v = table()

    @ag.function
    def step(i):
        with ag.GradientTape() as tape:
            y = ag.reduce_sum(ag.gather(v, i) ** 2)
        v.scatter_sub(ag.math.scalar_mul(0.25, tape.gradient(y, v)))
        return y

    from runtime.engine.partition import segments

    graph = step.get_concrete_function(ag.constant([3, 1, 3])).graph
    assert [native for native, _ in segments(graph)] == [True]
    assert not any(node.op.name == "gather_grad" for node in graph.walk())


def test_clipping():
    slices = ag.IndexedSlices([[3.0, 0.0], [0.0, 4.0]], [1, 1], [3, 2])
    assert parts(ag.clip_by_norm(slices, 1.0)) == ([1, 1], [[pytest.approx(0.6), 0], [0, pytest.approx(0.8)]])
    assert parts(ag.clip_by_value(slices, 0.0, 3.5)) == ([1, 1], [[3, 0], [0, 3.5]])
    assert parts(ag.clip_by_value(t=slices, clip_value_min=0.0, clip_value_max=3.5))[1] == [[3, 0], [0, 3.5]]
    assert float(ag.linalg.global_norm([slices, ag.constant([12.0]), None])) == 13
    (clipped, rest, none), norm = ag.clip_by_global_norm([slices, ag.constant([12.0]), None], 6.5)
    assert parts(clipped) == ([1, 1], [[1.5, 0], [0, 2]]) and rest.numpy().tolist() == [6] and none is None
    assert float(norm) == 13 and clipped.dense_shape.numpy().tolist() == [3, 2]
