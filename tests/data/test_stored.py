"""Elements in files: save and load, snapshots, and caches with a file name."""

import collections

import numpy as np
import pytest

import autograph as ag

Dataset = ag.data.Dataset


def rows():
    return Dataset.from_tensor_slices({
        "x": np.arange(6, dtype=np.float32).reshape(3, 2), "y": (np.array([1, -2, 3], np.int8), [b"a", b"", b"\xff\n"]),
    })  # fmt: skip


def shown(dataset):
    return [
        ag.nest.map_structure(lambda leaf: np.asarray(leaf.numpy(), leaf.dtype.as_numpy_dtype).tolist(), element)
        for element in dataset
    ]


class TestSaveAndLoad:
    @pytest.mark.parametrize("compression", [None, "GZIP"])
    def test_round_trip(self, tmp_path, compression):
        rows().save(str(tmp_path / "rows"), compression=compression)
        loaded = Dataset.load(str(tmp_path / "rows"), compression=compression)
        assert loaded.element_spec == rows().element_spec
        assert shown(loaded) == shown(rows()) == shown(loaded)

    def test_all_dtypes(self, tmp_path):
        names = "float16 float32 float64 bfloat16 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool complex64"
        values = tuple(ag.cast([0, 1], getattr(ag, name)) for name in [*names.split(), "complex128"])
        Dataset.from_tensors(values).save(tmp_path / "d")
        (loaded,) = Dataset.load(tmp_path / "d")
        for one, other in zip(values, loaded):
            assert one.dtype is other.dtype and one.numpy().tolist() == other.numpy().tolist()

    def test_ragged_sparse_and_unknown_shapes(self, tmp_path):
        source = Dataset.range(4).map(lambda x: ag.range(x))
        source.save(tmp_path / "unknown")
        assert shown(Dataset.load(tmp_path / "unknown")) == [[], [0], [0, 1], [0, 1, 2]]
        source.ragged_batch(2).save(tmp_path / "ragged")
        assert [x.to_list() for x in Dataset.load(tmp_path / "ragged")] == [[[], [0]], [[0, 1], [0, 1, 2]]]
        source.sparse_batch(4, [3]).save(tmp_path / "sparse")
        (loaded,) = Dataset.load(tmp_path / "sparse")
        assert ag.sparse.to_dense(loaded).numpy().tolist() == [[0, 0, 0], [0, 0, 0], [0, 1, 0], [0, 1, 2]]

    def test_in_a_staged_loop(self, tmp_path):
        Dataset.range(1, 4).save(tmp_path / "d")

        @ag.function
        def digits(ds):
            s = ag.constant(0, ag.int64)
            for x in ds:
                s = s * 10 + x
            return s

        assert int(digits(Dataset.load(tmp_path / "d"))) == 123

    def test_reader_func(self, tmp_path):
        Dataset.range(3).save(tmp_path / "d")
        loaded = Dataset.load(tmp_path / "d", reader_func=lambda sets: sets.flat_map(lambda each: each.skip(1)))
        assert shown(loaded) == [1, 2]

    def test_what_is_not_there_and_what_is_something_else(self, tmp_path):
        with pytest.raises(ag.errors.NotFoundError, match="no saved dataset"):
            Dataset.load(tmp_path / "none")
        Dataset.range(3).save(tmp_path / "d")
        with pytest.raises(ag.errors.InvalidArgumentError, match="int64"):
            Dataset.load(tmp_path / "d", element_spec=ag.TensorSpec([], ag.float32))
        with pytest.raises(ag.errors.InvalidArgumentError, match="compression"):
            Dataset.load(tmp_path / "d", compression="ZIP")
        with pytest.raises(ag.errors.DataLossError):
            Dataset.load(tmp_path / "d", compression="GZIP")
        (file,) = (tmp_path / "d").iterdir()
        for content in (b"", b"something else, which is no dataset", file.read_bytes()[:40]):
            file.write_bytes(content)
            with pytest.raises(ag.errors.DataLossError):
                Dataset.load(tmp_path / "d")

    def test_a_damaged_element(self, tmp_path):
        Dataset.range(3).save(tmp_path / "d")
        (file,) = (tmp_path / "d").iterdir()
        content = bytearray(file.read_bytes())
        content[-8] ^= 1
        file.write_bytes(content)
        loaded = iter(Dataset.load(tmp_path / "d"))
        assert [int(next(loaded)), int(next(loaded))] == [0, 1]
        with pytest.raises(ag.errors.DataLossError, match="corrupted"):
            next(loaded)

    def test_a_save_that_fails_leaves_nothing(self, tmp_path):
        def rows():
            yield 1
            raise KeyError("no more")

        dataset = Dataset.from_generator(rows, output_signature=ag.TensorSpec([], ag.int32))
        with pytest.raises(KeyError, match="no more"):
            dataset.save(tmp_path / "d")
        assert list((tmp_path / "d").iterdir()) == []

    def test_structures_that_have_no_name(self, tmp_path):
        Point = collections.namedtuple("Point", "x y")
        with pytest.raises(TypeError, match="tuples"):
            Dataset.from_tensors(Point(1, 2)).save(tmp_path / "d")


class Counting:
    """A function of elements that counts its calls."""

    def __init__(self):
        self.calls = 0

    def __call__(self, x):
        def count(value):
            self.calls += 1
            return value * 2

        return ag.ensure_shape(ag.numpy_function(count, [x], ag.int64), [])


def cached(source, path):
    return source.cache(str(path / "cache"))


def snapshot(source, path):
    return source.snapshot(str(path / "snapshot"))


@pytest.mark.parametrize("keep", [cached, snapshot])
class TestKept:
    def test_the_source_runs_once(self, tmp_path, keep):
        function = Counting()
        dataset = keep(Dataset.range(3).map(function), tmp_path)
        assert [shown(dataset) for _ in range(3)] == [[0, 2, 4]] * 3
        assert function.calls == 3
        assert shown(keep(Dataset.range(3).map(function), tmp_path)) == [0, 2, 4]
        assert function.calls == 3

    def test_a_run_that_is_left_keeps_nothing(self, tmp_path, keep):
        function = Counting()
        dataset = keep(Dataset.range(3).map(function), tmp_path)
        for _ in dataset.take(2):
            pass
        assert shown(dataset) == [0, 2, 4]
        assert not [path for path in tmp_path.rglob("*") if "writing" in path.name]

    def test_repeated(self, tmp_path, keep):
        function = Counting()
        dataset = keep(Dataset.range(3).map(function), tmp_path).repeat(3).batch(9)
        assert shown(dataset) == [[0, 2, 4] * 3]
        assert function.calls == 3

    def test_in_a_staged_loop(self, tmp_path, keep):
        function = Counting()
        dataset = keep(Dataset.range(1, 4).map(function), tmp_path)

        @ag.function
        def digits(ds):
            s = ag.constant(0, ag.int64)
            for x in ds:
                s = s * 10 + x
            return s

        assert [int(digits(dataset)) for _ in range(2)] == [246, 246]
        assert function.calls == 3

    def test_elements_of_another_dataset(self, tmp_path, keep):
        list(keep(Dataset.range(3), tmp_path))
        with pytest.raises(ag.errors.InvalidArgumentError, match="another dataset"):
            list(keep(Dataset.from_tensors(1.5), tmp_path))
