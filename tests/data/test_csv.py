"""Comma-separated values: what is refused, and pipelines. `test_files.py` has what TensorFlow gives."""

import gzip

import pytest

import autograph as ag

E = ag.errors.InvalidArgumentError
experimental = ag.data.experimental


@pytest.mark.parametrize(
    "record, defaults, options, message",
    [
        ("1,2", [0], {}, "Expect 1 fields but have 2 in record 0"),
        ("1", [0, 0], {}, "Expect 2 fields but have 1"),
        ("x", [0], {}, "Field 0 in record 0 is not a valid int32: x"),
        ("1.5", [0], {}, "not a valid int32"),
        ("1_000", [0], {}, "not a valid int32"),
        ("1_0.5", [0.0], {}, "not a valid float32"),
        ("3000000000", [0], {}, "not a valid int32"),
        ("", [ag.constant([], ag.int32)], {}, "Field 0 is required but missing"),
        ('"a', [""], {}, "Quoted field has to end"),
        ('"a"b', [""], {}, "Quoted field has to end"),
        ('a"b', [""], {}, "Unquoted fields cannot have quotes"),
        ("a\nb", [""], {}, "Unquoted fields cannot have quotes"),
        ("1", [0], {"select_cols": [2]}, "Expect 1 fields but have 0"),
    ],
)
def test_records_that_do_not_fit(record, defaults, options, message):
    with pytest.raises(E, match=message):
        ag.io.decode_csv([record], defaults, **options)


@pytest.mark.parametrize(
    "options, message, error",
    [
        ({"field_delim": ";;"}, "one character", ValueError),
        ({"select_cols": [1, 0]}, "increasing", ValueError),
        ({"select_cols": [0]}, "do not match", ValueError),
        ({"record_defaults": [True, 1]}, "float32, float64", TypeError),
        ({"record_defaults": [[1, 2], 1]}, "at most 1-dimensional", E),
    ],
)
def test_arguments_that_do_not_fit(options, message, error):
    with pytest.raises(error, match=message):
        ag.io.decode_csv("1,2", **{"record_defaults": [0, 0], **options})


def test_in_a_function():
    @ag.function
    def total(lines):
        words, numbers = ag.io.decode_csv(lines, ["", 0.0])
        return ag.strings.join([words, words]), ag.reduce_sum(numbers)

    words, numbers = total(ag.constant(["a,1.5", "b,2"]))
    assert (words.numpy().tolist(), float(numbers)) == ([b"aa", b"bb"], 3.5)


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("name,height,grade\n" + "".join(f"n{k},{k / 2},{k % 3}\n" for k in range(10)))
    return str(path)


class TestTables:
    def test_rows_are_shuffled_and_repeated(self, table):
        batches = experimental.make_csv_dataset(table, 4, label_name="grade", shuffle_seed=1)
        seen = []
        for features, label in batches.take(5):
            assert set(features) == {"name", "height"} and label.shape == [4]
            seen += features["name"].numpy().tolist()
        assert sorted(seen) == sorted([b"n%d" % k for k in range(10)] * 2)
        assert seen[:10] != [b"n%d" % k for k in range(10)]

    def test_several_files_in_turns(self, tmp_path):
        for name in "ab":
            (tmp_path / f"{name}.csv").write_text("x\n" + "".join(f"{name}{k}\n" for k in range(2)))
        batches = experimental.make_csv_dataset(
            str(tmp_path / "*.csv"), 4, num_epochs=1, shuffle=False, num_parallel_reads=2
        )
        assert next(iter(batches))["x"].numpy().tolist() == [b"a0", b"b0", b"a1", b"b1"]

    def test_in_a_staged_loop(self, table):
        @ag.function
        def total(ds):
            s = 0.0
            for features, grade in ds:
                s += ag.reduce_sum(features["height"]) * ag.cast(ag.reduce_max(grade), ag.float32)
            return s

        batches = experimental.make_csv_dataset(table, 5, label_name="grade", num_epochs=1, shuffle=False)
        assert float(total(batches)) == (0 + 0.5 + 1 + 1.5 + 2) * 2 + (2.5 + 3 + 3.5 + 4 + 4.5) * 2

    def test_compressed(self, tmp_path):
        path = tmp_path / "t.csv.gz"
        path.write_bytes(gzip.compress(b"a,b\n1,x\n2,y\n"))
        (batch,) = experimental.make_csv_dataset(str(path), 2, num_epochs=1, shuffle=False, compression_type="GZIP")
        assert batch["b"].numpy().tolist() == [b"x", b"y"]

    @pytest.mark.parametrize(
        "options, message",
        [
            ({"label_name": "weight"}, "label_name"),
            ({"select_columns": ["weight"]}, "weight"),
            ({"select_columns": [7]}, "from 0 to 2"),
            ({"select_columns": [1, 1]}, "duplicate"),
            ({"column_names": ["a", "a", "b"]}, "duplicate"),
            ({"column_defaults": [0]}, "1 entries for the 3 columns"),
            ({"header": False}, "header"),
        ],
    )
    def test_what_does_not_fit(self, table, options, message):
        with pytest.raises(ValueError, match=message):
            experimental.make_csv_dataset(table, 2, **options)

    def test_files_of_other_columns(self, tmp_path):
        for name in "ab":
            (tmp_path / f"{name}.csv").write_text(f"{name}\n1\n")
        with pytest.raises(ValueError, match="same column names"):
            experimental.make_csv_dataset(str(tmp_path / "*.csv"), 2)
        with pytest.raises(ValueError, match="No files match"):
            experimental.make_csv_dataset(str(tmp_path / "*.txt"), 2)

    def test_excluded_columns(self, table):
        rows = experimental.CsvDataset(table, [ag.float32], header=True, exclude_cols=[0, 2])
        assert [float(x) for (x,) in rows][:3] == [0.0, 0.5, 1.0]
        with pytest.raises(E, match="should be empty"):
            experimental.CsvDataset(table, [ag.float32], select_cols=[1], exclude_cols=[0, 2])
