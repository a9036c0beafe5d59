"""Messages in records: the classes, errors of parsers, and traced functions. `test_files.py` has what TensorFlow
gives."""

import copy
import pickle

import numpy as np
import pytest

import autograph as ag
from runtime.storage.records import crc32c
from tests.data.file_pipelines import example, examples, floats, ints, sequences, strings

train, io = ag.train, ag.io
E = ag.errors.InvalidArgumentError


class TestMessages:
    def test_fields_are_made_when_they_are_looked_at(self):
        message = train.Example()
        assert not message.HasField("features")
        assert not message.features.feature
        assert not message.HasField("features")
        message.features.feature["a"].int64_list.value.extend([1, 2])
        message.features.feature["a"].int64_list.value.append(3)
        assert message.HasField("features")
        assert message == train.Example.FromString(example(ag, a=ints(ag, 1, 2, 3)))

    def test_a_feature_has_one_list(self):
        feature = train.Feature(int64_list=train.Int64List(value=[1]))
        assert feature.WhichOneof("kind") == "int64_list"
        assert not feature.float_list.value and feature.WhichOneof("kind") == "int64_list"
        feature.float_list.value.append(0.5)
        assert feature.WhichOneof("kind") == "float_list"
        assert not feature.HasField("int64_list")
        assert train.Feature().WhichOneof("kind") is None

    def test_text(self):
        message = train.Example.FromString(example(ag, b=floats(ag, 0.5, 1 / 3), a=strings(ag, b'x"\n\xff')))
        assert str(message).split() == (
            r"""features { feature { key: "a" value { bytes_list { value: "x\"\n\377" } } }
            feature { key: "b" value { float_list { value: 0.5 value: 0.333333343 } } } }""".split()
        )
        assert str(message).startswith('features {\n  feature {\n    key: "a"\n')

    def test_there_and_back(self):
        for content in examples(ag):
            message = train.Example.FromString(content)
            assert message.SerializeToString() == content
            assert message.ByteSize() == len(content)
            for other in (copy.copy(message), copy.deepcopy(message), pickle.loads(pickle.dumps(message))):
                assert other == message and other is not message
        for content in sequences(ag):
            assert train.SequenceExample.FromString(content).SerializeToString() == content

    def test_changes(self):
        message = train.SequenceExample()
        message.feature_lists.feature_list["w"].feature.add(int64_list={"value": [1]})
        message.feature_lists.feature_list["w"].feature.add().bytes_list.value.append(b"x")
        steps = message.feature_lists.feature_list["w"].feature
        assert [step.WhichOneof("kind") for step in steps] == ["int64_list", "bytes_list"]
        other = train.SequenceExample()
        other.CopyFrom(message)
        assert other == message
        other.context.feature["n"].float_list.value[:] = [2, 3]
        assert list(other.context.feature) == ["n"] and other != message
        other.ClearField("context")
        assert other == message
        other.Clear()
        assert other == train.SequenceExample()

    @pytest.mark.parametrize(
        "bad, error",
        [
            (lambda: train.Int64List(value=[1.5]), TypeError),
            (lambda: train.Int64List(value=[1 << 63]), ValueError),
            (lambda: train.BytesList(value=["text"]), TypeError),
            (lambda: train.FloatList(value=["1"]), TypeError),
            (lambda: train.Example(feature=1), ValueError),
            (lambda: train.Example().nothing, AttributeError),
            (lambda: setattr(train.Example(), "features", train.Features()), AttributeError),
            (lambda: train.Features().feature.__setitem__("a", train.Feature()), ValueError),
            (lambda: train.Example().CopyFrom(train.Feature()), TypeError),
            (lambda: train.Example.FromString(b"nope"), ValueError),
            (lambda: train.Feature().WhichOneof("sort"), ValueError),
            (lambda: train.Int64List().HasField("value"), ValueError),
        ],
    )
    def test_what_messages_refuse(self, bad, error):
        with pytest.raises(error):
            bad()

    def test_numbers_of_all_sizes(self):
        numbers = [0, 1, -1, 127, 128, -(2**63), 2**63 - 1, *(2**k for k in range(0, 63, 7)), *range(-40, 40)]
        message = train.Example.FromString(example(ag, n=ints(ag, *numbers)))
        assert list(message.features.feature["n"].int64_list.value) == numbers
        found = io.parse_single_example(message.SerializeToString(), {"n": io.VarLenFeature(ag.int64)})["n"]
        assert found.values.numpy().tolist() == numbers

    def test_lists_that_are_not_packed(self):
        # value: 5, value: -1; 0.5 and 2.0, each a field of its own
        integers = b"\x1a\x0d" + b"\x08\x05" + b"\x08" + b"\xff" * 9 + b"\x01"
        reals = b"\x12\x0a" + b"\x0d\x00\x00\x00\x3f" + b"\x0d\x00\x00\x00\x40"

        def entry(key, feature):
            content = b"\x0a\x01" + key + b"\x12" + bytes([len(feature)]) + feature
            return b"\x0a" + bytes([len(content)]) + content

        features = entry(b"i", integers) + entry(b"f", reals)
        message = b"\x0a" + bytes([len(features)]) + features
        found = io.parse_single_example(
            message, {"i": io.FixedLenFeature([2], ag.int64), "f": io.FixedLenFeature([2], ag.float32)}
        )
        assert found["i"].numpy().tolist() == [5, -1] and found["f"].numpy().tolist() == [0.5, 2.0]
        assert list(train.Example.FromString(message).features.feature["i"].int64_list.value) == [5, -1]


class TestParsing:
    @pytest.mark.parametrize(
        "features, message, error",
        [
            ({"a": io.FixedLenFeature([3], ag.int64)}, "Key: a, Index: 0", E),
            ({"a": io.FixedLenFeature([2], ag.float32)}, "Data types don't match", E),
            ({"q": io.FixedLenFeature([2], ag.float32)}, "Key: q, Index: 0.*required", E),
            ({"n": io.FixedLenSequenceFeature([2], ag.int64, allow_missing=True)}, "not a multiple", E),
            ({"n": io.FixedLenSequenceFeature([], ag.int64)}, "allow_missing", ValueError),
            ({"a": io.FixedLenFeature([None], ag.int64)}, "must be known", ValueError),
            ({"a": io.FixedLenFeature([2], ag.int64, default_value=[1, 2, 3])}, "3 elements", ValueError),
            ({"a": io.FixedLenFeature([], ag.int32)}, "cast the result", TypeError),
            ({"a": "int64"}, "use FixedLenFeature", TypeError),
            ({"a": io.RaggedFeature(ag.int64, partitions=["n"])}, "not one of RaggedFeature's", TypeError),
            (
                {"a": io.RaggedFeature(ag.int64, partitions=[io.RaggedFeature.RowLengths("n")])},
                "don't fit 2 values",
                E,
            ),
            ({"a": io.RaggedFeature(ag.int64, partitions=[io.RaggedFeature.UniformRowLength(3)])}, "rows of 3", E),
            ({}, "empty", ValueError),
            ([], "empty", ValueError),
        ],
    )
    def test_what_does_not_fit(self, features, message, error):
        with pytest.raises(error, match=message):
            io.parse_example(examples(ag), features)

    @pytest.mark.parametrize("content", [b"nope", b"\x0a", b"\x0a\x05ab", b"\xff" * 11])
    def test_other_bytes(self, content):
        with pytest.raises(E, match="Could not parse example input 1"):
            io.parse_example([b"", content], {"a": io.VarLenFeature(ag.int64)})

    def test_all_kinds_of_partitions(self):
        message = example(
            ag, v=ints(ag, 1, 2, 3, 4), starts=ints(ag, 0, 1, 1), limits=ints(ag, 1, 1, 4), splits=ints(ag, 0, 1, 1, 4)
        )
        kinds = io.RaggedFeature
        found = io.parse_single_example(message, {
            "starts": kinds(ag.int64, "v", [kinds.RowStarts("starts")]),
            "limits": kinds(ag.int64, "v", [kinds.RowLimits("limits")]),
            "splits": kinds(ag.int64, "v", [kinds.RowSplits("splits")]),
            "uniform": kinds(ag.int64, "v", [kinds.UniformRowLength(2)]),
        })  # fmt: skip
        for name in ("starts", "limits", "splits"):
            assert found[name].to_list() == [[1], [], [2, 3, 4]]
        assert found["uniform"].to_list() == [[1, 2], [3, 4]]

    def test_no_messages(self):
        found = io.parse_example([], {"a": io.FixedLenFeature([2], ag.int64), "n": io.VarLenFeature(ag.int64),
                                      "f": io.RaggedFeature(ag.float32)})  # fmt: skip
        assert found["a"].shape == [0, 2]
        assert found["n"].dense_shape.numpy().tolist() == [0, 0]
        assert found["f"].to_list() == []

    def test_in_a_function(self):
        features = {
            "a": io.FixedLenFeature([2], ag.int64),
            "f": io.VarLenFeature(ag.float32),
            "n": io.RaggedFeature(ag.int64),
        }
        shapes = []

        @ag.function(input_signature=[ag.TensorSpec([None], ag.string)])
        def sums(messages):
            found = io.parse_example(messages, features)
            shapes.append(found["a"].shape.as_list())
            return ag.reduce_sum(found["a"]), ag.sparse.reduce_sum(found["f"]), ag.reduce_sum(found["n"])

        for messages in (examples(ag), examples(ag)[2:3]):
            expected = io.parse_example(messages, features)
            total, f, n = sums(messages)
            assert int(total) == expected["a"].numpy().sum()
            assert float(f) == expected["f"].values.numpy().sum()
            assert int(n) == expected["n"].flat_values.numpy().sum()
        assert shapes == [[None, 2]]

    def test_a_program_of_it_is_saved(self, tmp_path):
        class Reader(ag.Module):
            @ag.function(input_signature=[ag.TensorSpec([], ag.string)])
            def read(self, message):
                return io.parse_single_example(message, {
                    "a": io.FixedLenFeature([2], ag.int64),
                    "s": io.FixedLenFeature([], ag.string, default_value="none"),
                })  # fmt: skip

        ag.saved_model.save(Reader(), str(tmp_path / "reader"))
        loaded = ag.saved_model.load(str(tmp_path / "reader"))
        found = loaded.read(examples(ag)[0])
        assert found["a"].numpy().tolist() == [1, 2] and found["s"].numpy() == b"x"

    def test_in_a_staged_loop_over_records(self, tmp_path):
        path = str(tmp_path / "records")
        with io.TFRecordWriter(path) as writer:
            for content in examples(ag):
                writer.write(content)

        @ag.function
        def total(ds):
            s = ag.constant(0, ag.int64)
            for message in ds:
                s += ag.reduce_sum(io.parse_single_example(message, {"a": io.FixedLenFeature([2], ag.int64)})["a"])
            return s

        assert int(total(ag.data.TFRecordDataset(path))) == 1 + 2 - 3 + 2**40 + 5 + 6 + 7 + 8


class TestRecords:
    def test_check_sums(self):
        assert crc32c(b"123456789") == 0xE3069283  # of RFC 3720
        assert crc32c(bytes(32)) == 0x8A9136AA
        assert crc32c(b"\xff" * 32) == 0x62A8AB43

    def test_check_sums_of_any_length(self):
        def byte_by_byte(content):
            remainder = 0xFFFFFFFF
            for byte in content:
                remainder ^= byte
                for _ in range(8):
                    remainder = remainder >> 1 ^ (0x82F63B78 if remainder & 1 else 0)
            return remainder ^ 0xFFFFFFFF

        random = np.random.default_rng(0)
        for length in [*range(0, 300, 7), 96, 97, 128, 4095, 4096, 4160, 9001]:
            content = random.bytes(length)
            assert crc32c(content) == byte_by_byte(content)

    @pytest.mark.parametrize("compression", ["", "GZIP", "ZLIB"])
    def test_large_records(self, tmp_path, compression):
        contents = [np.random.default_rng(n).bytes(n) for n in (0, 70_000, 5, 200_000)]
        options = io.TFRecordOptions(compression_type=compression, compression_level=1)
        with io.TFRecordWriter(tmp_path / "r", options) as writer:
            for content in contents:
                writer.write(content)
            writer.flush()
        found = ag.data.TFRecordDataset(tmp_path / "r", compression)
        assert list(found.as_numpy_iterator()) == contents

    def test_damage(self, tmp_path):
        with io.TFRecordWriter(str(tmp_path / "r")) as writer:
            for content in (b"first", b"second"):
                writer.write(content)
        whole = (tmp_path / "r").read_bytes()
        for place in range(len(whole)):
            (tmp_path / "r").write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
            with pytest.raises(ag.errors.DataLossError):
                list(ag.data.TFRecordDataset(tmp_path / "r"))
        for length in range(1, len(whole)):
            if length != len(b"first") + 16:
                (tmp_path / "r").write_bytes(whole[:length])
                with pytest.raises(ag.errors.DataLossError, match="truncated"):
                    list(ag.data.TFRecordDataset(tmp_path / "r"))

    def test_files_that_are_not_there_or_of_another_kind(self, tmp_path):
        with pytest.raises(ag.errors.NotFoundError, match="none"):
            list(ag.data.TFRecordDataset(str(tmp_path / "none")))
        with pytest.raises(ag.errors.NotFoundError):
            io.TFRecordWriter(str(tmp_path / "none" / "r"))
        (tmp_path / "t").write_text("hello, this is text")
        for kind in ("", "GZIP", "ZLIB"):
            with pytest.raises(ag.errors.DataLossError):
                list(ag.data.TFRecordDataset(tmp_path / "t", kind))
        with pytest.raises(E, match="compression_type"):
            ag.data.TFRecordDataset(tmp_path / "t", "ZIP")
        with pytest.raises(TypeError):
            ag.data.TFRecordDataset(5)
        writer = io.TFRecordWriter(str(tmp_path / "w"))
        with pytest.raises(TypeError, match="bytes"):
            writer.write(5)
        writer.close()
        with pytest.raises(ag.errors.FailedPreconditionError, match="closed"):
            writer.write(b"")

    def test_a_dataset_of_records_is_written(self, tmp_path):
        records = ag.data.Dataset.range(5).map(ag.strings.as_string)
        ag.data.experimental.TFRecordWriter(str(tmp_path / "r"), "GZIP").write(records)
        assert list(ag.data.TFRecordDataset(tmp_path / "r", "GZIP").as_numpy_iterator()) == [
            b"%d" % n for n in range(5)
        ]
        with pytest.raises(TypeError, match="scalar"):
            ag.data.experimental.TFRecordWriter(str(tmp_path / "r")).write(ag.data.Dataset.range(3))

    def test_sizes_that_do_not_fit(self, tmp_path):
        (tmp_path / "f").write_bytes(b"0123456789")
        with pytest.raises(E, match="not an exact multiple"):
            list(ag.data.FixedLengthRecordDataset(str(tmp_path / "f"), 3))
        with pytest.raises(E, match="greater than zero"):
            ag.data.FixedLengthRecordDataset(str(tmp_path / "f"), 0)
