"""Hash buckets are TensorFlow's: numbers of TensorFlow 2 for strings that take each way through the functions."""

import numpy as np
import pytest

import autograph as ag
from runtime.ops.strings import hashes

STRINGS = [b"", b"abc", b"hello world", b"x" * 20, b"x" * 50, b"x" * 200]
BUCKETS = 1000003


def test_buckets_are_tensorflows():
    strings = ag.constant(STRINGS)
    for function, expected in (
        (lambda x: ag.strings.to_hash_bucket_fast(x, BUCKETS), [377723, 152962, 234754, 268677, 717757, 603131]),
        (lambda x: ag.strings.to_hash_bucket(x, BUCKETS), [598820, 979194, 168296, 56437, 131957, 858057]),
        (
            lambda x: ag.strings.to_hash_bucket_strong(x, BUCKETS, key=[1, 2]),
            [383377, 800593, 598105, 103526, 841299, 915285],
        ),
    ):
        assert function(strings).numpy().tolist() == expected
        assert ag.function(function)(strings).numpy().tolist() == expected
        ragged = function(ag.RaggedTensor.from_row_lengths(strings, [2, 0, 4]))
        assert ragged.to_list() == [expected[:2], [], expected[2:]]


def test_siphash_gives_the_numbers_of_its_paper():
    key = (0x0706050403020100, 0x0F0E0D0C0B0A0908)
    assert hashes.siphash(bytes(range(15)), key) == 0xA129CA6149BE45E5


@pytest.mark.parametrize("name", ["fingerprint64", "murmur64"])
def test_every_byte_counts(name):
    draw = np.random.default_rng(5)
    for size in (1, 3, 4, 7, 8, 16, 17, 32, 33, 64, 65, 128, 130):
        data = draw.bytes(size)
        numbers = {getattr(hashes, name)(data)}
        for place in range(size):
            changed = bytes([*data[:place], data[place] ^ 1, *data[place + 1 :]])
            numbers.add(getattr(hashes, name)(changed))
        assert len(numbers) == size + 1


def test_bad_arguments_are_refused():
    with pytest.raises(ag.errors.InvalidArgumentError, match="num_buckets must be at least 1, got 0"):
        ag.strings.to_hash_bucket(["a"], 0)
    with pytest.raises(ag.errors.InvalidArgumentError, match="Key must have 2 elements, got 3"):
        ag.strings.to_hash_bucket_strong(["a"], 10, key=[1, 2, 3])
