"""Functions written with others or on strings, sets and sequences: values, traced alike, gradients, and errors.

The expected values are TensorFlow's.
"""

import numpy as np
import pytest

import autograph as ag

X = np.array([[1.0, -2.0, 3.0], [0.5, 4.0, -1.0]])
IMAGE = np.sin(np.arange(48.0)).reshape(1, 4, 4, 3)
WORDS = ag.constant(["hello world", "a,b,c", "12"])
Z = ag.constant([[1, 2, 0], [2, 1, 1]])


def both(function, *arguments):
    """The result, the same eagerly and traced with nothing known of the arguments' shapes but their ranks."""
    arguments = [ag.convert_to_tensor(a) for a in arguments]
    specs = [ag.TensorSpec([None] * a.shape.rank, a.dtype) for a in arguments]
    eager, traced = function(*arguments), ag.function(function, input_signature=specs)(*arguments)
    for one, other in zip(ag.nest.flatten(eager), ag.nest.flatten(traced), strict=True):
        assert one.shape == other.shape and one.dtype is other.dtype
        np.testing.assert_array_equal(one.numpy(), other.numpy())
    return eager


def test_strings_format():
    assert both(lambda x: ag.strings.format("x={} n={}", (x, 3)), X).numpy() == b"x=[[1 -2 3]\n [0.5 4 -1]] n=3"
    assert both(lambda s: ag.strings.format("<%>", s, placeholder="%"), WORDS[:1]).numpy() == b'<["hello world"]>'
    assert ag.strings.format("{}", ag.range(9), summarize=1).numpy() == b"[0 ... 8]"
    with pytest.raises(ValueError, match="expects 2 tensors"):
        ag.strings.format("{} {}", X)


def test_strings_ngrams():
    grams = both(lambda s: ag.strings.ngrams(s, [1, 2], separator="-"), WORDS)
    assert list(grams.numpy()) == [b"hello world", b"a,b,c", b"12", b"hello world-a,b,c", b"a,b,c-12"]
    padded = ag.strings.ngrams(WORDS[:1], 3, pad_values=("<", ">"))
    assert list(padded.numpy()) == [b"< < hello world", b"< hello world >", b"hello world > >"]
    ragged = ag.strings.ngrams(ag.RaggedTensor.from_row_lengths(["a", "b", "c", "d"], [3, 0, 1]), 2)
    assert ragged.to_list() == [[b"a b", b"b c"], [], []]
    kept = ag.strings.ngrams(ag.constant([["a", "b"]]), 3, preserve_short_sequences=True)
    assert kept.to_list() == [[b"a b"]]
    with pytest.raises(ValueError, match="greater than 0"):
        ag.strings.ngrams(WORDS, 0)
    with pytest.raises(TypeError, match="pad_values"):
        ag.strings.ngrams(WORDS, 2, pad_values=3)


def test_strings_in_another_encoding():
    text = ag.constant(["h\u00e9".encode(), b"a\xff\x01"])
    wide = both(lambda s: ag.strings.unicode_transcode(s, "UTF-8", "UTF-16-BE"), text)
    assert list(wide.numpy()) == ["h\u00e9".encode("utf-16-be"), "a\ufffd\x01".encode("utf-16-be")]
    plain = ag.strings.unicode_transcode(
        text, "UTF-8", "UTF-8", replacement_char=ord("?"), replace_control_characters=True
    )
    assert list(plain.numpy()) == ["h\u00e9".encode(), b"a??"]
    assert ag.strings.unicode_transcode(b"a\xff", "UTF-8", "UTF-8", errors="ignore").numpy() == b"a"
    with pytest.raises(ag.errors.InvalidArgumentError, match="Invalid formatting"):
        ag.strings.unicode_transcode(text, "UTF-8", "UTF-8", errors="strict")
    with pytest.raises(ValueError, match="output_encoding"):
        ag.strings.unicode_transcode(text, "UTF-8", "latin-1")


@pytest.mark.parametrize(
    "value, options, expected",
    [
        (1.5 - 2j, {}, b"(1.500000,-2.000000)"), (1.5 - 2j, {"precision": 1}, b"(1.5,-2.0)"),
        (1.5 - 2j, {"shortest": True, "width": 5}, b"(  1.5,   -2)"), (-3, {"width": 5}, b"   -3"),
        (-3, {"width": 5, "fill": "0"}, b"-0003"), (-3, {"width": 5, "fill": "-"}, b"-3   "),
        (3, {"width": 5, "fill": "+"}, b"   +3"), (2.5, {"width": 9, "fill": "0"}, b"02.500000"),
        (2.5, {"fill": " "}, b" 2.500000"), (np.inf, {"width": 8, "fill": "0"}, b"     inf"),
        (np.uint8(7), {"fill": "+"}, b"7"), (True, {"width": 8}, b"true"),
    ],
)  # fmt: skip
def test_numbers_as_strings_as_printf_writes_them(value, options, expected):
    x = ag.constant(np.array([value]))
    assert list(both(lambda x: ag.strings.as_string(x, **options), x).numpy()) == [expected]
    with pytest.raises(ValueError, match="Fill argument not supported"):
        ag.strings.as_string(x, width=8, fill="*")


def test_scripts():
    codes = ag.constant([65, 0x3B1, 1072, 0x4E00, 48, 0x0378, 0x10FFFF, -1, 0x110000])
    assert both(ag.strings.unicode_script, codes).numpy().tolist() == [25, 14, 8, 17, 0, 103, 103, -1, -1]
    words = ag.strings.unicode_decode(["a\u0434", "\u05d0"], "UTF-8")
    assert ag.strings.unicode_script(words).to_list() == [[25, 8], [19]]


def test_characters_with_offsets():
    codes, starts = ag.strings.unicode_decode_with_offsets(ag.constant(["a\u00e9\u20acb".encode(), b"a\xffb"]), "UTF-8")
    assert codes.to_list() == [[97, 233, 8364, 98], [97, 65533, 98]] and starts.to_list() == [[0, 1, 3, 6], [0, 1, 2]]
    parts, starts = ag.strings.unicode_split_with_offsets("\u00e9a", "UTF-8")
    assert list(parts.numpy()) == ["\u00e9".encode(), b"a"] and list(starts.numpy()) == [0, 2]
    assert starts.dtype is ag.int64


def test_strings_joined_by_segments():
    joined = both(lambda s, ids: ag.strings.unsorted_segment_join(s, ids, 3, "+"), WORDS, [2, 0, 2])
    assert list(joined.numpy()) == [b"a,b,c", b"", b"hello world+12"]
    with pytest.raises(ag.errors.InvalidArgumentError, match="segment id 2"):
        ag.strings.unsorted_segment_join(WORDS, [0, 1, 2], 2)


def test_substr_with_positions_of_their_own():
    parts = both(lambda s, pos, n: ag.strings.substr(s, pos, n), WORDS, [6, -1, 0], [2, 1, 9])
    assert list(parts.numpy()) == [b"wo", b"c", b"12"]
    with pytest.raises(ag.errors.InvalidArgumentError, match="same shape"):
        ag.strings.substr(WORDS, [0, 0, 0], 2)


def test_segments_of_chosen_rows():
    places, ids = [0, 1, 1], [0, 0, 2]
    cases = {"segment_sum": [1.5, 2, 2], "segment_mean": [0.75, 1, 1], "segment_sqrt_n": np.array([1.5, 2, 2]) / 2**0.5}
    for name, first in cases.items():
        found = both(lambda x: getattr(ag.sparse, name)(x, places, ids), X)
        np.testing.assert_allclose(found, [first, [0, 0, 0], X[1]])
    assert ag.sparse.segment_sum(X, [0], [1], num_segments=4).shape == (4, 3)
    with pytest.raises(ag.errors.InvalidArgumentError, match="not increasing"):
        ag.sparse.segment_sum(X, [0, 1], [1, 0])


def test_sets():
    other = Z + 1
    assert list(ag.sets.intersection(Z, other).values.numpy()) == [1, 2, 2]
    union = ag.sets.union(Z, other)
    assert list(union.values.numpy()) == [0, 1, 2, 3, 1, 2, 3] and list(union.dense_shape.numpy()) == [2, 4]
    assert list(ag.sets.difference(Z, other).values.numpy()) == [0, 1]
    assert list(ag.sets.difference(Z, other, aminusb=False).values.numpy()) == [3, 3]
    assert list(ag.sets.size(ag.sparse.from_dense(Z)).numpy()) == [2, 2]
    traced = ag.function(lambda a, b: ag.sets.union(a, b).values, input_signature=[ag.TensorSpec(None, ag.int32)] * 2)
    assert list(traced(Z, other).numpy()) == list(union.values.numpy())
    with pytest.raises(ag.errors.InvalidArgumentError, match="group shapes"):
        ag.sets.union(Z, Z[:1])


def test_edit_distance():
    def words(*texts):
        return ag.sparse.from_dense([[ord(c) for c in t.ljust(7, "\0")] for t in texts])

    found = ag.edit_distance(words("sitting", "", "ab"), words("kitten", "", "ab"), normalize=False)
    assert list(found.numpy()) == [3, 0, 0]
    np.testing.assert_allclose(ag.edit_distance(words("sitting", "x"), words("kitten", "")), [0.5, np.inf])
    with pytest.raises(TypeError, match="SparseTensor"):
        ag.edit_distance(Z, Z)


def naive_dilation(x, w, step, rate):
    reach = (w.shape[0] - 1) * rate + 1
    count = (x.shape[1] - reach) // step + 1
    result = np.empty((1, count, count, x.shape[3]))
    for i, j in np.ndindex(count, count):
        window = x[:, i * step : i * step + reach : rate, j * step : j * step + reach : rate]
        result[:, i, j] = (window + w).max((1, 2))
    return result


def test_dilation_and_erosion():
    weights = np.cos(np.arange(12.0)).reshape(2, 2, 3)
    for step, rate in [(1, 1), (2, 1), (1, 2)]:
        options = ([1, step, step, 1], "VALID", "NHWC", [1, rate, rate, 1])
        grown = both(lambda x, w: ag.nn.dilation2d(x, w, *options), IMAGE, weights)
        np.testing.assert_allclose(grown, naive_dilation(IMAGE, weights, step, rate))
        shrunk = ag.nn.erosion2d(IMAGE, weights, *options)
        np.testing.assert_allclose(shrunk, -naive_dilation(-IMAGE, weights[::-1, ::-1], step, rate))
    same = ag.nn.dilation2d(IMAGE, weights, [1, 1, 1, 1], "SAME", "NHWC", [1, 1, 1, 1])
    padded = np.pad(IMAGE, [[0, 0], [0, 1], [0, 1], [0, 0]], constant_values=-1e300)
    np.testing.assert_allclose(same, naive_dilation(padded, weights, 1, 1))
    x = ag.constant(IMAGE)
    with ag.GradientTape() as tape:
        tape.watch(x)
        y = ag.reduce_sum(ag.nn.dilation2d(x, weights, [1, 2, 2, 1], "VALID", "NHWC", [1, 1, 1, 1]))
    assert float(ag.reduce_sum(tape.gradient(y, x))) == 12
    with pytest.raises(ValueError, match="NHWC"):
        ag.nn.dilation2d(IMAGE, weights, [1, 1, 1, 1], "SAME", "NCHW", [1, 1, 1, 1])


def test_convolution_with_holes():
    weights = np.cos(np.arange(24.0)).reshape(2, 2, 3, 2)
    expected = ag.nn.conv2d(IMAGE, weights, 1, "VALID", dilations=2)
    np.testing.assert_array_equal(ag.nn.atrous_conv2d(IMAGE, weights, 2, "VALID"), expected)
    with pytest.raises(ValueError, match="less than one"):
        ag.nn.atrous_conv2d(IMAGE, weights, 0, "VALID")


@pytest.mark.parametrize("norm", [None, "ortho"])
def test_modified_cosine_transform_is_inverted(norm):
    signal = np.sin(np.arange(48.0))
    coefficients = both(lambda x: ag.signal.mdct(x, 8, norm=norm), signal)
    assert coefficients.shape == (11, 4)
    back = ag.signal.inverse_mdct(coefficients, norm=norm)
    # The first and the last half frame have no neighbour that takes their aliases away.
    np.testing.assert_allclose(back[4:-4], signal[4:-4], atol=1e-7)
    direct = sum(
        signal[n] * float(ag.signal.vorbis_window(8)[n]) * np.cos(np.pi / 4 * (n + 0.5 + 2) * 0.5) for n in range(8)
    )
    np.testing.assert_allclose(coefficients[0, 0], direct * (2 if norm is None else 0.5**0.5), rtol=1e-5)
    with pytest.raises(ValueError, match="multiple of 4"):
        ag.signal.mdct(signal, 6)


def test_mel_filters_and_cepstra():
    weights = ag.signal.linear_to_mel_weight_matrix(4, 9, 8000.0)
    assert weights.shape == (9, 4) and weights.dtype is ag.float32 and not np.any(weights[0])
    np.testing.assert_allclose(weights[1], [0.895654, 0.104346, 0, 0], atol=2e-5)
    with pytest.raises(ValueError, match="lower_edge_hertz"):
        ag.signal.linear_to_mel_weight_matrix(lower_edge_hertz=4000.0)
    found = both(ag.signal.mfccs_from_log_mel_spectrograms, X)
    np.testing.assert_allclose(found, ag.signal.dct(X) / np.sqrt(6.0))


def test_reciprocal_no_nan():
    np.testing.assert_array_equal(both(ag.math.reciprocal_no_nan, [2.0, 0.0, -4.0]), [0.5, 0, -0.25])
    with pytest.raises(TypeError, match="int32"):
        ag.math.reciprocal_no_nan(3)


def test_polygamma_of_an_order_that_is_no_whole_number_is_not_a_number():
    np.testing.assert_array_equal(np.isnan(ag.math.polygamma([0.5, 1.0, -1.0], [2.0, 2.0, 2.0])), [True, False, True])


def test_tuple_keeps_none():
    one, none, two = ag.tuple([X, None, 2])
    assert none is None and one.shape == (2, 3) and two == 2
    with pytest.raises(ValueError, match="at least one"):
        ag.tuple([None])


def test_dlpack_there_and_back():
    capsule = ag.experimental.dlpack.to_dlpack(ag.constant(X))
    np.testing.assert_array_equal(ag.experimental.dlpack.from_dlpack(capsule), X)
    array = X.copy()
    tensor = ag.experimental.dlpack.from_dlpack(array)
    array[:] = 0
    np.testing.assert_array_equal(tensor, X)


def test_factors_have_names():
    factors = ag.linalg.qr(X)
    np.testing.assert_allclose(factors.q @ factors.r, X, atol=1e-12)


def written_strings():
    array = ag.TensorArray(ag.string, 0, dynamic_size=True)
    for i in ag.range(3):
        array = array.write(i, ag.strings.as_string(i))
    return array.stack()


MOVED_STRINGS = {
    "TensorArray": (written_strings, [b"0", b"1", b"2"]),
    "dynamic_stitch": (lambda: ag.dynamic_stitch([[0, 2], [1]], [["a", "b"], ["c"]]), [b"a", b"c", b"b"]),
    "gather_nd": (lambda: ag.gather_nd(["a", "b"], [1]), b"b"),
    "scatter_nd": (lambda: ag.scatter_nd([[1], [1]], ["q", "r"], [3]), [b"", b"qr", b""]),
    "pad": (lambda: ag.pad([["a"]], [[0, 1], [1, 0]], constant_values="-"), [[b"-", b"a"], [b"-", b"-"]]),
}


@pytest.mark.parametrize("name", MOVED_STRINGS)
@pytest.mark.parametrize("way", [lambda f: f, ag.function, lambda f: ag.function(f, jit_compile=True)])
def test_strings_stay_bytes_when_they_are_moved(name, way):
    function, expected = MOVED_STRINGS[name]
    found = np.asarray(way(function)().numpy(), object)
    assert found.tolist() == expected
    assert {type(leaf) for leaf in found.reshape(-1)} == {bytes}


def test_base64():
    """TensorFlow's strings and errors."""
    encode, decode = ag.io.encode_base64, ag.io.decode_base64
    texts = [b"hello", b"\xff\xfe?", b"", b"ab"]
    assert encode(texts).numpy().tolist() == [b"aGVsbG8", b"__4_", b"", b"YWI"]
    assert encode(texts, pad=True).numpy().tolist() == [b"aGVsbG8=", b"__4_", b"", b"YWI="]
    for pad in (False, True):
        assert decode(encode(texts, pad)).numpy().tolist() == texts
    assert decode("aGVsbG").numpy() == b"hell"
    staged = ag.function(lambda x: decode(encode(x)), input_signature=[ag.TensorSpec(None, ag.string)])
    assert staged(texts).numpy().tolist() == texts
    for wrong, message in (("a*", "Invalid character"), ("+/4_", "Invalid character"), ("aGVsb", "1 modulo 4")):
        with pytest.raises(ag.errors.InvalidArgumentError, match=message):
            decode(wrong)
