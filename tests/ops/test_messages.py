"""Tensors as protocol buffers: messages that TensorFlow has written, and ours."""

import pytest

import autograph as ag

# What `tf.io.serialize_tensor` of TensorFlow 2.21 gives.
MESSAGES = {
    "int32": (ag.constant([1, -2], ag.int32), b'\x08\x03\x12\x04\x12\x02\x08\x02"\x08\x01\x00\x00\x00\xfe\xff\xff\xff'),
    "float32": (
        ag.constant([[1.5, 2.0, 3.0]], ag.float32),
        b'\x08\x01\x12\x08\x12\x02\x08\x01\x12\x02\x08\x03"\x0c\x00\x00\xc0?\x00\x00\x00@\x00\x00@@',
    ),
    "string": (ag.constant([b"a", b"", b"bc"], ag.string), b"\x08\x07\x12\x04\x12\x02\x08\x03B\x01aB\x00B\x02bc"),
    "bool": (ag.constant(True, ag.bool), b'\x08\n\x12\x00"\x01\x01'),
    "float64": (
        ag.constant([0.0, 1.0], ag.float64),
        b'\x08\x02\x12\x04\x12\x02\x08\x02"\x10\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xf0?',
    ),
    "int64": (ag.constant([], ag.int64), b"\x08\t\x12\x02\x12\x00"),
    "complex64": (
        ag.constant([1 + 2j], ag.complex64),
        b'\x08\x08\x12\x04\x12\x02\x08\x01"\x08\x00\x00\x80?\x00\x00\x00@',
    ),
    "uint8": (ag.constant([255], ag.uint8), b'\x08\x04\x12\x04\x12\x02\x08\x01"\x01\xff'),
    "bfloat16": (ag.constant([1.0], ag.bfloat16), b'\x08\x0e\x12\x04\x12\x02\x08\x01"\x02\x80?'),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_messages_are_tensorflows(name):
    value, message = MESSAGES[name]
    assert ag.io.serialize_tensor(value).numpy() == message
    found = ag.io.parse_tensor(message, value.dtype)
    assert found.dtype is value.dtype
    assert found.numpy().tolist() == value.numpy().tolist()


# Tensors with one field for each element, as programs in other languages write them; the last element is repeated.
ONE_BY_ONE = {
    "float32": (b"\x08\x01\x12\x04\x12\x02\x08\x03*\x08\x00\x00\x80?\x00\x00\x00@", [1.0, 2.0, 2.0], ag.float32),
    "int32, unpacked": (b"\x08\x03\x12\x04\x12\x02\x08\x02\x38\x05\x38\x07", [5, 7], ag.int32),
    "int64, negative": (b"\x08\x09\x12\x04\x12\x02\x08\x02R\x0a" + b"\xff" * 9 + b"\x01", [-1, -1], ag.int64),
    "bool": (b"\x08\x0a\x12\x04\x12\x02\x08\x02Z\x02\x01\x00", [True, False], ag.bool),
    "float16": (b"\x08\x13\x12\x04\x12\x02\x08\x01j\x02\x80x", [1.0], ag.float16),
    "no elements given": (b"\x08\x01\x12\x04\x12\x02\x08\x02", [0.0, 0.0], ag.float32),
}


@pytest.mark.parametrize("name", ONE_BY_ONE)
def test_elements_one_by_one(name):
    message, expected, dtype = ONE_BY_ONE[name]
    assert ag.io.parse_tensor(message, dtype).numpy().tolist() == expected


def test_in_a_function():
    @ag.function
    def there_and_back(x):
        return ag.io.parse_tensor(ag.io.serialize_tensor(x * 2), ag.float32)

    assert there_and_back(ag.constant([[1.0, 2.0]])).numpy().tolist() == [[2.0, 4.0]]


@pytest.mark.parametrize(
    "message",
    [
        b"no message",
        b"\x08",
        b"",
        b"\x08\x01\x12\x04\x12\x02\x08\x03\x22\x01a",
        b"\x08\x01\x12\x04\x12\x02\x08\x01*\x08" + b"\0" * 8,
    ],
)
def test_other_bytes(message):
    with pytest.raises(ag.errors.InvalidArgumentError, match="TensorProto"):
        ag.io.parse_tensor(message, ag.float32)


def test_another_dtype():
    with pytest.raises(ag.errors.InvalidArgumentError, match="Type mismatch"):
        ag.io.parse_tensor(ag.io.serialize_tensor([1]), ag.float32)
