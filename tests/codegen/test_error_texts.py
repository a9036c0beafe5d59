"""Every error of a running graph names the op, the user's line and its text, interpreted and compiled.

One program for each way in which a graph can go wrong at run time, with dimensions that only the call knows.
"""

import numpy as np
import pytest

import autograph as ag


def ints(*shape):
    return ag.TensorSpec(shape, ag.int32)


def floats(*shape):
    return ag.TensorSpec(shape, ag.float32)


def ramp(*shape):
    return np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)


def i32(value):
    return np.array(value, np.int32)


N = None
# name: (program, signature, arguments)
PROGRAMS = {
    "index": (lambda x, i: x[i], [floats(N), ints()], [ramp(3), i32(5)]),
    "negative index": (lambda x, i: x[i], [floats(N), ints()], [ramp(3), i32(-5)]),
    "column index": (lambda x, i: x[:, i], [floats(N, N), ints()], [ramp(3, 2), i32(5)]),
    "gather": (lambda x, i: ag.gather(x, i), [floats(N), ints(N)], [ramp(3), i32([0, 5])]),
    "gather columns": (lambda x, i: ag.gather(x, i, axis=1), [floats(N, N), ints(N)], [ramp(3, 2), i32([0, 5])]),
    "gather_nd": (lambda x, i: ag.gather_nd(x, i), [floats(N, N), ints(N, 2)], [ramp(3, 2), i32([[0, 5]])]),
    "scatter": (
        lambda x, i: ag.tensor_scatter_nd_update(x, [[i, 0]], [1.0]), [floats(N, N), ints()], [ramp(3, 2), i32(5)],
    ),
    "scatter of many": (
        lambda x, i: ag.tensor_scatter_nd_add(x, i, ag.ones([2, 2])), [floats(N, N), ints(2, 1)],
        [ramp(3, 2), i32([[0], [-5]])],
    ),
    "scatter_nd of many": (
        lambda x, i: ag.scatter_nd(i, x, [4]), [floats(2, 2), ints(2, 2, 1)],
        [ramp(2, 2), i32([[[0], [1]], [[2], [4]]])],
    ),
    "updates that don't fit": (
        lambda x, i: ag.tensor_scatter_nd_add(x, i, x), [floats(N, N), ints(N, 1)], [ramp(3, 2), i32([[0]])],
    ),
    "updates of other rows": (
        lambda x, i: ag.scatter_nd(i, x, [4, 3]), [floats(N, N), ints(N, 1)], [ramp(2, 2), i32([[0], [1]])],
    ),
    "embedding": (lambda x, i: ag.nn.embedding_lookup(x, i), [floats(N, N), ints(N)], [ramp(3, 2), i32([7])]),
    "add": (lambda x, y: x + y, [floats(N), floats(N)], [ramp(3), ramp(2)]),
    "fused": (lambda x, y: ag.exp(x) * 2 + ag.sin(y), [floats(N), floats(N)], [ramp(3), ramp(2)]),
    "where": (lambda x, y: ag.where(x > 0, x, y), [floats(N), floats(N)], [ramp(3), ramp(2)]),
    "maximum": (lambda x, y: ag.maximum(x, y), [floats(N, N), floats(N, N)], [ramp(3, 2), ramp(3, 3)]),
    "segments of other rows": (
        lambda x, i: ag.math.unsorted_segment_sum(x, i, 4), [floats(N, N), ints(N)], [ramp(3, 2), i32([1, 2])],
    ),
    "extreme of nothing": (lambda x: ag.argmin(x, 1), [floats(N, N)], [ramp(3, 0)]),
    "integer division": (lambda x, y: x // y, [ints(), ints()], [i32(3), i32(0)]),
    "remainder": (lambda x, y: x % y, [ints(N), ints(N)], [i32([3]), i32([0])]),
    "integer power": (lambda x, y: x**y, [ints(N), ints(N)], [i32([3]), i32([-1])]),
    "reshape": (lambda x, n: ag.reshape(x, [n, 2]), [floats(N), ints()], [ramp(3), i32(2)]),
    "reshape -1": (lambda x, n: ag.reshape(x, [n, -1]), [floats(N), ints()], [ramp(3), i32(2)]),
    "matmul": (lambda x, y: x @ y, [floats(N, N), floats(N, N)], [ramp(3, 2), ramp(3, 2)]),
    "products of other batches": (
        lambda x, y: x @ y, [floats(N, 2, 2), floats(3, 2, 2)], [ramp(2, 2, 2), ramp(3, 2, 2)],
    ),
    "batch matmul": (lambda x, y: x @ y, [floats(N, N, N), floats(N, N, N)], [ramp(1, 3, 2), ramp(1, 3, 2)]),
    "concat": (lambda x, y: ag.concat([x, y], 1), [floats(N, N), floats(N, N)], [ramp(3, 2), ramp(2, 2)]),
    "stack": (lambda x, y: ag.stack([x, y]), [floats(N), floats(N)], [ramp(3), ramp(2)]),
    "ensure_shape": (lambda x: ag.ensure_shape(x, [2]), [floats(N)], [ramp(3)]),
    "squeeze": (lambda x: ag.squeeze(x, [0]), [floats(N, N)], [ramp(3, 2)]),
    "broadcast_to": (lambda x, n: ag.broadcast_to(x, [n, 2]), [floats(N), ints()], [ramp(3), i32(2)]),
    "tile": (lambda x, n: ag.tile(x, [n]), [floats(N), ints()], [ramp(3), i32(-2)]),
    "fill": (lambda n: ag.fill([n], 1.0), [ints()], [i32(-2)]),
    "range step": (lambda n: ag.range(0, 5, n), [ints()], [i32(0)]),
    "range down": (lambda n: ag.range(0, n, -1), [ints()], [i32(5)]),
    "range of floats": (lambda x: ag.range(x, 0.5, 1.0), [floats()], [np.float32(2.25)]),
    "range direction": (lambda n: ag.range(5, n, 1), [ints()], [i32(0)]),
    "slice": (lambda x, n: ag.slice(x, [n], [2]), [floats(N), ints()], [ramp(3), i32(2)]),
    "slice size": (lambda x, n: ag.slice(x, [0], [n]), [floats(N), ints()], [ramp(3), i32(4)]),
    "size -1 beside 0": (lambda x, n: ag.reshape(x, [n, -1]), [floats(N), ints()], [ramp(3), i32(0)]),
    "column step": (lambda x, n: x[ag.newaxis, :, ::n], [floats(N, N), ints()], [ramp(3, 2), i32(0)]),
    "slice step": (lambda x, n: x[::n], [floats(N), ints()], [ramp(3), i32(0)]),
    "scatter_nd": (lambda n: ag.scatter_nd([[n]], [1.0], [3]), [ints()], [i32(7)]),
    "scatter update": (
        lambda x, n: ag.tensor_scatter_nd_update(x, [[n]], [1.0]), [floats(N), ints()], [ramp(3), i32(7)]
    ),
    "split": (lambda x: ag.split(x, 2)[0], [floats(N)], [ramp(3)]),
    "unstack": (lambda x: ag.unstack(x, 2)[0], [floats(N)], [ramp(3)]),
    "argmax": (lambda x: ag.argmax(x), [floats(N)], [ramp(0)]),
    "cholesky": (lambda x: ag.linalg.cholesky(x), [floats(N, N)], [-np.eye(2, dtype=np.float32)]),
    "inverse": (lambda x: ag.linalg.inv(x), [floats(N, N)], [np.zeros((2, 2), np.float32)]),
    "unsorted segments": (
        lambda x, s: ag.math.unsorted_segment_sum(x, s, 2), [floats(N), ints(N)], [ramp(3), i32([0, 1, 5])]
    ),
    "segments": (lambda x, s: ag.math.segment_sum(x, s), [floats(N), ints(N)], [ramp(3), i32([1, 0, 0])]),
    "boolean_mask": (lambda x, m: ag.boolean_mask(x, m > 0), [floats(N), floats(N)], [ramp(3), ramp(2)]),
    "top_k": (lambda x: ag.math.top_k(x, 5)[0], [floats(N)], [ramp(3)]),
    "cross entropy": (
        lambda y, x: ag.nn.sparse_softmax_cross_entropy_with_logits(y, x),
        [ints(N), floats(N, N)],
        [i32([7]), ramp(1, 3)],
    ),
    "to_number": (lambda x: ag.strings.to_number(ag.as_string(x) + "a"), [floats()], [np.float32(0)]),
    "partition": (lambda x, p: ag.dynamic_partition(x, p, 2)[0], [floats(N), ints(N)], [ramp(2), i32([0, 5])]),
    "TensorArray": (
        lambda x, n: ag.TensorArray(ag.float32, 2).unstack(x).read(n), [floats(N), ints()], [ramp(2), i32(5)]
    ),
    "elements of TensorArray": (
        lambda x, y: ag.TensorArray(ag.float32, 2).write(0, x).write(1, y).stack(),
        [floats(N), floats(N)], [ramp(2), ramp(3)],
    ),
    "mean of nothing": (lambda x: ag.reduce_mean(x), [ints(N)], [i32([])]),
    "tensordot": (lambda x, y: ag.tensordot(x, y, 1), [floats(N, N), floats(N, N)], [ramp(3, 2), ramp(3, 2)]),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_both_tiers_say_the_same_and_name_the_op_and_the_line(name):
    program, signature, arguments = PROGRAMS[name]
    said = set()
    for jit in (False, True):
        function = ag.function(program, input_signature=signature, jit_compile=jit)
        with pytest.raises(ag.errors.OpError) as caught:
            function(*map(ag.constant, arguments))
        text = str(caught.value)
        said.add((type(caught.value), text.split("\n")[0]))
        assert "[Op:" in text.split("\n")[0], text
        assert f"\n  at {__file__}:" in text, text
        assert f"{program.__code__.co_firstlineno}, in <lambda>" in text, text
        assert "lambda" in text.split("\n")[-1], text
    assert len(said) == 1, said


@pytest.mark.parametrize("jit", [False, True])
def test_the_users_name_of_an_operation_is_shown(jit):
    @ag.function(jit_compile=jit, input_signature=[floats(N), floats(N)])
    def f(x, y):
        total = ag.constant(0.0)
        for _ in ag.range(2):
            with ag.name_scope("inner"):
                total += ag.reduce_sum(ag.add(x, y, name="both"))
        return total

    with pytest.raises(ag.errors.InvalidArgumentError) as caught:
        f(ramp(3), ramp(2))
    assert "[Op:AddV2] name: inner/both" in str(caught.value) or "[Op:Add] name: inner/both" in str(caught.value)
    assert 'total += ag.reduce_sum(ag.add(x, y, name="both"))' in str(caught.value)


def test_assertions_show_the_values_of_arrays():
    def negative(x):
        y = x * 2
        ag.debugging.assert_positive(y)
        return y

    def condition(x, y):
        ag.debugging.Assert(ag.reduce_all(x > 0), [x, y])
        return x

    for program, arguments in ((negative, [ramp(2) - 1]), (condition, [ramp(3), i32([4, 5])])):
        texts = []
        for jit in (False, True):
            with pytest.raises(ag.errors.InvalidArgumentError) as caught:
                ag.function(program, jit_compile=jit)(*map(ag.constant, arguments))
            texts.append(str(caught.value))
        assert texts[0] == texts[1]
        assert "[-2 0]" in texts[0] or "[0 1 2], [4 5]" in texts[0]


@pytest.mark.parametrize("jit", [False, True])
def test_assertions_that_show_tensors_name_the_line(jit):
    @ag.function(jit_compile=jit)
    def f(x, y):
        assert ag.reduce_all(x > 0), y
        return x

    with pytest.raises(AssertionError) as caught:
        f(ag.constant([-1.0]), ag.constant([3, 4]))
    text = str(caught.value)
    assert "[3 4]" in text and f"\n  at {__file__}:" in text and "assert ag.reduce_all(x > 0), y" in text


@pytest.mark.parametrize(
    "error",
    [
        ValueError, TypeError, IndexError, KeyError, ZeroDivisionError, OverflowError, ArithmeticError, RuntimeError,
        AttributeError, AssertionError, StopIteration, LookupError, NotImplementedError, OSError,
    ],
)  # fmt: skip
def test_what_a_program_raises_reads_the_same_on_both_tiers(error):
    def f(n):
        i = 0
        while i < n:
            if i > 5:
                raise error("too far")
            i += 1
        return i

    told = []
    for jit in (False, True):
        with pytest.raises(error) as caught:
            ag.function(f, jit_compile=jit)(ag.constant(8))
        told.append((type(caught.value), caught.value.args))
    assert told[0] == told[1]
    assert "too far" in str(told[0][1][0])
