"""What ops do with arguments that don't fit: TensorFlow's error class, with a message that shows the shapes or values.

Each case runs eagerly and traced. Eagerly the class is TensorFlow's; while tracing a ValueError or TypeError does as
well, as there.
"""

import re

import numpy as np
import pytest

import autograph as ag

INVALID = ag.errors.InvalidArgumentError
F, I = ag.float32, ag.int32
x1, x2 = np.float32([1, 2]), np.float32([[1, 2], [3, 4]])
i3 = np.int32([1, 2, 3])

# (function, operands, error class, piece of the message)
CASES = {
    "add_n": (lambda a, b: ag.add_n([a, b]), (x1, x1[:1]), INVALID, r"\[2\] != input 1: \[1\]"),
    "split negative": (lambda a: ag.split(a, [-1, -1]), (i3,), INVALID, r"\[-1, -1\]"),
    "split too long": (lambda a: ag.split(a, [5, -1]), (i3,), INVALID, r"dimension 0 of shape \[3\]"),
    "split rank 0": (lambda a: ag.split(a, ag.constant(3)), (i3,), ValueError, "Rank-0"),
    "concat nothing": (lambda a: ag.concat([], 0), (i3,), INVALID, "at least one tensor"),
    "expand_dims twice": (lambda a: ag.expand_dims(a, [0, 1]), (i3,), INVALID, "single value"),
    "reshape floats": (lambda a: ag.reshape(a, [3.0]), (i3,), INVALID, "must be an integer"),
    "pad shape": (lambda a: ag.pad(a, [1, 1]), (i3,), INVALID, r"2 columns: \[2\]"),
    "pad negative": (lambda a: ag.pad(a, [[-1, 0]]), (i3,), INVALID, "non-negative"),
    "pad reflect": (lambda a: ag.pad(a, [[3, 0]], "REFLECT"), (i3,), INVALID, "3, 0 not less than 3"),
    "pad reflect, late": (lambda a, p: ag.pad(a, p, "REFLECT"), (i3, np.int32([[3, 0]])), INVALID, "3, 0"),
    "pad negative, late": (lambda a, p: ag.pad(a, p), (i3, np.int32([[0, -1]])), INVALID, "non-negative"),
    "roll": (lambda a: ag.roll(a, [1, 2], [0]), (i3,), INVALID, "2 and 1"),
    "reverse_sequence": (lambda a, n: ag.reverse_sequence(a, n), (x2, np.int32([2])), INVALID, "1 vs. 2"),
    "gather floats": (lambda a, i: ag.gather(a, i), (i3, x1), INVALID, "float32"),
    "gather batch_dims": (lambda a, i: ag.gather(a, i, batch_dims=2), (x2, i3), INVALID, r"\[3\] and \[2,2\]"),
    "one_hot floats": (lambda a: ag.one_hot(a, 3), (x1,), INVALID, "float"),
    "boolean_mask scalar": (lambda a: ag.boolean_mask(a, True), (x1,), ValueError, "scalar"),
    "ones of strings": (lambda a: ag.ones([1], ag.string), (x1,), TypeError, "string"),
    "unravel_index": (lambda a: ag.unravel_index(a, [1, 2]), (i3,), INVALID, r"\[1, 2\].*\[1 2 3\]"),
    "invert_permutation": (lambda a: ag.math.invert_permutation(a), (np.int32([2, 0, 0]),), INVALID, r"\[2 0 0\]"),
    "strided_slice lengths": (lambda a: ag.strided_slice(a, [0, 1], [4]), (i3,), INVALID, r"\[2\], \[1\]"),
    "strided_slice step": (lambda a: ag.strided_slice(a, [0], [4], [0]), (i3,), INVALID, "non-zero"),
    "strided_slice rank": (lambda a: ag.strided_slice(a, [0, 0], [4, 4]), (i3,), INVALID, "only 1 dims"),
    "slice lengths": (lambda a: ag.slice(a, [1, 0], [-1]), (i3,), INVALID, r"\[2\] and \[1\]"),
    "einsum sizes": (lambda a, b: ag.einsum("ij,jk->ik", a, b), (x2, x2[:1]), INVALID, r"dimension 2 .*\[1,2\]"),
    "diag of a scalar": (lambda a: ag.linalg.diag(a), (np.float32(1),), INVALID, r"shape: \[\]"),
    "band_part of a vector": (lambda a: ag.linalg.band_part(a, 0, 0), (x1,), INVALID, r"shape: \[2\]"),
    "conv2d stride": (
        lambda a, f: ag.nn.conv2d(a, f, 0, "VALID"), (np.ones((1, 3, 3, 1)), np.ones((2, 2, 1, 1))), INVALID,
        "strides.*0",
    ),
    "logsumexp of ints": (lambda a: ag.reduce_logsumexp(a), (i3,), INVALID, "int32"),
    "gelu of ints": (lambda a: ag.nn.gelu(a), (i3,), ValueError, "int32"),
    "dropout of ints": (lambda a: ag.nn.dropout(a, 0.5), (i3,), ValueError, "int32"),
    "sigmoid loss": (
        lambda a, b: ag.nn.sigmoid_cross_entropy_with_logits(a, b), (x1, x2), ValueError, r"\(2, 2\) vs \(2,\)",
    ),
    "class loss, rank": (
        lambda a, b: ag.nn.sparse_softmax_cross_entropy_with_logits(a, b), (np.int32([[0], [1]]), x2), ValueError,
        r"\(2, 1\) of rank 2 and .*\(2, 2\)",
    ),
    "class loss, shape": (
        lambda a, b: ag.nn.sparse_softmax_cross_entropy_with_logits(a, b), (i3, x2), ValueError,
        r"\(3,\) and .*\(2, 2\)",
    ),
    "class loss, floats": (
        lambda a, b: ag.nn.sparse_softmax_cross_entropy_with_logits(a, b), (x1, x2), INVALID, "float",
    ),
}  # fmt: skip


@pytest.mark.parametrize("traced", [False, True], ids=["eager", "traced"])
@pytest.mark.parametrize("name", CASES)
def test_error(name, traced):
    function, operands, kind, message = CASES[name]
    tensors = [ag.constant(o) for o in operands]
    run = ag.function(function, autograph=False) if traced else function
    with pytest.raises((kind, ValueError, TypeError) if traced else kind) as caught:
        run(*tensors)
    assert re.search(message, str(caught.value), re.DOTALL), str(caught.value)


@pytest.mark.parametrize(
    "function",
    [
        lambda a, axis: ag.reduce_sum(a, axis), lambda a, axis: ag.expand_dims(a, axis),
        lambda a, axis: ag.cumsum(a, axis), lambda a, axis: ag.concat([a, a], axis),
        lambda a, axis: ag.roll(a, 1, axis),
        lambda a, axis: ag.gather(a, [0], axis=axis), lambda a, axis: ag.transpose(a, [axis, 0]),
        lambda a, axis: ag.reverse(a, [axis]), lambda a, axis: ag.split(a, 2, axis),
    ],
    ids=["reduce", "expand_dims", "cumsum", "concat", "roll", "gather", "transpose", "reverse", "split"],
)  # fmt: skip
def test_axis_as_a_tensor(function):
    """Its value is used where it is known: eagerly, while tracing if it is a constant, else when the program runs."""
    a = ag.constant(x2)
    want, got = function(a, 1), function(a, ag.constant(1))
    known = ag.function(lambda a: function(a, ag.constant(1)), autograph=False)(a)
    late = ag.function(function, autograph=False)(a, ag.constant(1))
    for one, *others in zip(*(r if isinstance(r, list) else [r] for r in (want, got, known, late)), strict=True):
        assert all(np.array_equal(one, other) for other in others)


@pytest.mark.parametrize("mode", ["CONSTANT", "REFLECT", "SYMMETRIC"])
def test_pad_with_widths_known_late(mode):
    spec = [ag.TensorSpec((None, None), F), ag.TensorSpec((2, 2), I)]
    pad = ag.function(lambda a, widths: ag.pad(a, widths, mode), input_signature=spec, autograph=False)
    a = np.float32([[1, 2, 3], [4, 5, 6]])
    widths = [[1, 0], [1, 2]]
    assert np.array_equal(pad(a, widths), np.pad(a, widths, mode.lower()))
    assert np.array_equal(pad(a, [[0, 0], [0, 0]]), a)
    with ag.GradientTape() as tape:
        x = ag.constant(a)
        tape.watch(x)
        y = ag.pad(x, ag.Variable(widths), mode)
        total = ag.reduce_sum(y * y)
    outside = {"constant_values": 6} if mode == "CONSTANT" else {}
    places = np.pad(np.arange(6).reshape(2, 3), widths, mode.lower(), **outside)
    counts = np.bincount(places.reshape(-1), minlength=6)[:6].reshape(2, 3)
    assert np.allclose(tape.gradient(total, x), 2 * a * counts)


def test_strided_slice_takes_bounds_and_masks():
    a = np.arange(24).reshape(2, 3, 4)
    t = ag.constant(a)
    same = np.testing.assert_array_equal
    same(ag.strided_slice(t, [0], [1]), a[0:1])
    same(ag.strided_slice(t, [1, 2, 3], [0, 0, 0], [-1, -1, -2]), a[1:0:-1, 2:0:-1, 3:0:-2])
    same(ag.strided_slice(t, [1, 1], [9, 2], begin_mask=1, end_mask=2), a[:9, 1:])
    same(ag.strided_slice(t, [1, 0], [2, 1], shrink_axis_mask=1), a[1, 0:1])
    same(ag.strided_slice(t, [0, 1], [0, 3], ellipsis_mask=1), a[..., 1:3])
    same(ag.strided_slice(t, [0, 1], [0, 2], new_axis_mask=1), a[None, 1:2])
    late = ag.function(lambda t, b, e, s: ag.strided_slice(t, b, e, s), autograph=False)
    same(late(t, ag.constant([0, 2]), ag.constant([2, -4]), ag.constant([1, -1])), a[0:2, 2:-4:-1])


def test_numbers_that_were_wrong():
    same = np.testing.assert_array_equal
    z = ag.constant([[1 + 1j, 2]])
    same(ag.transpose(z, conjugate=True), np.array([[1 + 1j, 2]]).conj().T)
    same(ag.boolean_mask([[1, 2, 3]], [1, 0, 1], axis=1), [[1, 3]])
    same(ag.math.divide_no_nan(ag.constant([1, 2]), ag.constant([0, 1])), [0, 2])
    assert ag.function(ag.math.divide_no_nan)(ag.constant([1]), ag.constant([2])).dtype is ag.float64
    same(ag.add_n(ag.constant([1.0, 2.0])), 3)
    assert ag.stack([]).shape == (0,)
    mean, variance = ag.nn.moments(ag.constant([[1, 2], [3, 5]]), [0])
    same(mean, [2, 3])
    same(variance, [1, 2])


@pytest.mark.parametrize(
    "value, dtype",
    [
        ([1, np.float64(2)], "float32"), ([np.float64(1), 2], "float64"), ([np.float32(1), np.float64(2)], "float32"),
        ([np.int64(1), 2], "int32"), ([np.int64(2**40), 1], "int64"), ([np.int8(1), np.int8(2)], "int32"),
        ([np.float16(1), 2], "float16"), ([1.0, np.int64(2)], "float32"), ([np.int32(2), 1.5], "float32"),
        ([np.complex64(1), 2], "complex128"), ([[3, 4], np.array([1.0, 2.0])], "float32"),
        ([np.array([1.0, 2.0]), [3, 4]], "float64"), ([True, np.bool_(False)], "bool"),
    ],
)  # fmt: skip
def test_numpy_scalars_in_lists_count_as_python_numbers(value, dtype):
    tensor = ag.constant(value)
    assert tensor.dtype.name == dtype
    np.testing.assert_array_equal(tensor, np.array(value))


UNFIT = {
    "pad": (lambda x: ag.pad(x, [[1, 1]]), "first dimension of paddings|not compatible"),
    "repeat": (lambda x: ag.repeat(x, [1, 2], axis=0), "not compatible"),
    "repeat of all": (lambda x: ag.repeat(x, [1, 2]), "not compatible"),
    "in_top_k": (lambda x: ag.math.in_top_k([0], x, 1), "must match length|different lengths"),
    "slice": (lambda x: ag.slice(x, [0], [1]), "begin and size arguments|not compatible"),
    "bool": (lambda x: bool(x > 1.0), "ambiguous|can't decide|Input to reshape"),
    "not": (lambda x: not x, "ambiguous|can't decide|Input to reshape"),
    "if": (lambda x: 1.0 if x else 2.0, "ambiguous|can't decide|Input to reshape"),
}


@pytest.mark.parametrize("name", UNFIT)
@pytest.mark.parametrize("shape", ["eager", (3, 4), (None, None), None])
def test_what_does_not_fit_raises_whatever_is_known_of_the_shape(name, shape):
    function, message = UNFIT[name]
    if shape != "eager":
        function = ag.function(function, input_signature=[ag.TensorSpec(shape)])
    with pytest.raises((ValueError, ag.errors.InvalidArgumentError), match=message):
        function(ag.constant(np.arange(12, dtype=np.float32).reshape(3, 4)))


def test_the_truth_of_one_element_of_unknown_rank():
    truth = ag.function(lambda x: (bool(x), not x, 1.0 if x else 2.0), input_signature=[ag.TensorSpec(None)])
    for x in (3.0, [3.0], [[0.0]]):
        holds = bool(np.asarray(x))
        assert [t.numpy() for t in truth(ag.constant(x))] == [holds, not holds, 1.0 if holds else 2.0]
        assert [t.shape for t in truth(ag.constant(x))] == [()] * 3


@pytest.mark.parametrize("name", ["inv", "cholesky", "det", "logdet", "slogdet", "expm", "lu"])
def test_a_matrix_that_is_not_square_is_told_so(name):
    """And not that it is singular, which is what NumPy notices."""
    for function in (getattr(ag.linalg, name), ag.function(getattr(ag.linalg, name))):
        with pytest.raises((ValueError, ag.errors.InvalidArgumentError), match=r"must be square, got shape \[1,3\]"):
            function(ag.constant([[1.0, 2.0, 3.0]]))


@pytest.mark.parametrize(
    ("program", "says"),
    [
        (lambda: ag.constant("a") + 1, "ag.as_string(x) would convert it"),
        (lambda: ag.constant(1.0) + ag.constant("a"), "ag.strings.to_number(x) would convert it"),
        (lambda: ag.logical_not(1), "x != 0 would convert it"),
        (lambda: ag.constant(1.0) + ag.constant(1), "ag.cast(x, ag.float32) would convert it"),
        (
            lambda: ag.constant(1) + ag.constant(1.0),
            "fix: ag.cast the int32 tensor to ag.float32; or let NumPy's rules hold",
        ),
        (lambda: 0.3 * ag.constant(1), "cause: operands have one dtype, which the first tensor gives: int32"),
        (lambda: ag.constant(3, "int64") * 1j, "fix: ag.cast the int64 tensor to ag.complex128; or"),
    ],
)
def test_dtypes_that_differ_say_what_converts(program, says):
    with pytest.raises(ag.errors.InvalidArgumentError) as caught:
        program()
    assert says in str(caught.value)
