"""Variables: assignment, reading, shapes, text, copies, and what a trace makes of them."""

import copy
import pickle
import tracemalloc

import numpy as np
import pytest

import autograph as ag
from runtime.graph.builder import Builder


def test_assigning():
    v = ag.Variable([1.0, 2.0])
    assert v.assign([3, 4]) is v
    v.assign_add([1.0, 1.0])
    v.assign_sub(ag.constant([0.5, 0.5]))
    assert v.numpy().tolist() == [3.5, 4.5]
    assert v.assign([0.0, 0.0], read_value=False) is None


def test_a_tensor_read_before_keeps_its_value():
    v = ag.Variable([1.0, 2.0])
    before, view = v.read_value(), v[:1]
    v.assign([9.0, 9.0])
    assert before.numpy().tolist() == [1, 2]
    assert view.numpy().tolist() == [1]
    assert v.value().numpy().tolist() == [9, 9]


def test_the_initial_value_is_not_shared():
    source = np.array([1.0, 2.0])
    tensor = ag.constant([1.0, 2.0])
    v, w = ag.Variable(source), ag.Variable(tensor)
    source[0] = 5
    w.assign_add([1.0, 1.0])
    assert v.numpy()[0] == 1
    assert tensor.numpy()[0] == 1
    taken = v.numpy()
    taken[0] = 7
    assert v.numpy()[0] == 1


@pytest.mark.parametrize(
    "value, error, message",
    [
        ([1.0, 2.0, 3.0], ValueError, "Shape mismatch. The variable shape (2,) and the assigned value shape (3,)"),
        (ag.constant([1, 2]), ValueError, "Tensor conversion requested dtype float32 for Tensor with dtype int32"),
        ("a", TypeError, "Cannot convert 'a' to EagerTensor of dtype float"),
    ],
)  # fmt: skip
def test_refused_assignments(value, error, message):
    v = ag.Variable([1.0, 2.0])
    for assign in (v.assign, v.assign_add):
        with pytest.raises(error) as caught:
            assign(value)
        assert message in str(caught.value)
    assert v.numpy().tolist() == [1, 2]


def test_facts():
    v = ag.Variable(3, name="steps", trainable=False, dtype=ag.int64)
    assert (v.name, v.dtype, v.shape, v.trainable) == ("steps:0", ag.int64, (), False)
    assert ag.Variable(1.0).trainable
    assert int(v) == 3 and float(v) == 3.0 and bool(v) and list(range(5))[v] == 3
    assert len(ag.Variable([1, 2])) == 2 and [int(e) for e in ag.Variable([1, 2])] == [1, 2]
    assert ag.Variable(lambda: [1.0]).numpy().tolist() == [1]
    with pytest.raises(ValueError, match="initial_value"):
        ag.Variable()


def test_shape_may_be_wider_than_the_value():
    v = ag.Variable([0.0, 0.0], shape=(None,))
    v.assign([1.0, 2.0, 3.0])
    assert v.shape == [None]
    assert v.numpy().tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match="not compatible with the explicitly supplied"):
        ag.Variable([0.0, 0.0], shape=(3,))


def test_text():
    assert repr(ag.Variable(1.0)) == "<tf.Variable 'Variable:0' shape=() dtype=float32, numpy=1.0>"
    assert repr(ag.Variable([1, 2], name="w")) == (
        "<tf.Variable 'w:0' shape=(2,) dtype=int32, numpy=array([1, 2], dtype=int32)>"
    )
    assert repr(ag.Variable("a")) == "<tf.Variable 'Variable:0' shape=() dtype=string, numpy=b'a'>"


def test_copies_and_pickles_are_independent():
    v = ag.Variable([1.0, 2.0], name="w", trainable=False)
    for twin in (copy.deepcopy(v), pickle.loads(pickle.dumps(v))):
        v.assign_add([1.0, 1.0])
        assert twin.numpy().tolist() != v.numpy().tolist()
        assert (twin.name, twin.trainable, twin.dtype) == ("w:0", False, ag.float32)


def test_identity():
    v, w = ag.Variable(1.0), ag.Variable(1.0)
    assert {v.ref(): "v", w.ref(): "w"}[v.ref()] == "v"
    assert v.ref().deref() is v
    with pytest.raises(TypeError, match="unhashable. Instead, use variable.ref"):
        {v: 1}


def test_tapes_watch_trainable_variables_only():
    v, fixed = ag.Variable(3.0), ag.Variable(2.0, trainable=False)
    with ag.GradientTape() as tape:
        y = v * v * fixed
        v.assign_add(1.0)
    assert [None if g is None else float(g) for g in tape.gradient(y, [v, fixed])] == [12.0, None]


def address(v):
    return v._array.__array_interface__["data"][0]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "complex64"])
def test_adding_reuses_the_memory_if_nothing_else_holds_it(dtype):
    v = ag.Variable(np.ones([1000]), dtype=dtype)
    before, expected = address(v), np.ones([1000], dtype)
    for _ in range(3):
        v.assign_add(ag.ones([1000], dtype))
        v.assign_sub(ag.fill([1000], ag.constant(3, dtype)))
        expected = expected + np.array(1, dtype) - np.array(3, dtype)
    assert address(v) == before
    np.testing.assert_array_equal(v, expected)


def test_adding_leaves_what_was_read_alone():
    v = ag.Variable([1.0, 2.0, 3.0])
    read, view, array = v.read_value(), v[1:], np.asarray(v)
    v.assign_add([1.0, 1.0, 1.0])
    for kept, value in [(read, [1, 2, 3]), (view, [2, 3]), (array, [1, 2, 3]), (v, [2, 3, 4])]:
        np.testing.assert_array_equal(kept, value)
    given = ag.constant([5.0, 5.0, 5.0])
    v.assign(given)
    v.assign_add([1.0, 1.0, 1.0])
    np.testing.assert_array_equal(given, [5, 5, 5])
    with ag.GradientTape() as tape:
        y = v * v
        v.assign_add([1.0, 1.0, 1.0])
    np.testing.assert_array_equal(tape.gradient(y, v), [12, 12, 12])
    v.assign_add(v)
    np.testing.assert_array_equal(v, [14, 14, 14])


def test_a_step_of_a_function_keeps_two_buffers_at_most():
    v = ag.Variable(np.zeros([1 << 18]))

    @ag.function(jit_compile=True)
    def step(x):
        v.assign_add(x)

    x = ag.ones([1 << 18], ag.float64)
    step(x)
    tracemalloc.start()
    try:
        for _ in range(10):
            step(x)
        # The old value, which stays if the step fails, and the new one.
        assert tracemalloc.get_traced_memory()[1] < 2.5 * 8 * (1 << 18)
    finally:
        tracemalloc.stop()
    assert float(v[5]) == 11.0


def test_a_shallow_copy_is_the_variable_itself():
    v = ag.Variable([1.0])
    assert copy.copy(v) is v and copy.copy([v])[0] is v


def test_in_a_trace():
    v = ag.Variable(1.0, name="v")
    builder = Builder("f")
    with builder:
        assert v.read_value().graph is builder.graph
        v.assign(v + 1.0)
        assert repr(v) == "<tf.Variable 'v:0' shape=() dtype=float32>"
        with pytest.raises(NotImplementedError, match="eager"):
            v.numpy()
        with pytest.raises(ValueError, match="tried to create variables"):
            ag.Variable(2.0)
        with ag.init_scope():
            w = ag.Variable(2.0)
    assert (v.numpy(), w.numpy()) == (1.0, 2.0)
    assert list(builder.written) == [v.ref()]
