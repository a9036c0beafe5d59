"""What datasets and parsers give for files, in TensorFlow: programs for either library, as in `pipelines.py`.

python tests/data/file_pipelines.py > tests/data/tensorflow_files.json
"""

import base64
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, os.pardir))

from tests.data.pipelines import described, shown

# --- records ---------------------------------------------------------------------------------------------------------

CONTENTS = [
    b"",
    b"short",
    b"a record that is long enough to be checked by tables, not byte by byte: " * 3,
    bytes(range(256)),
]
TEXT = b"one\ntwo\r\n\nthree, \xc3\xa4\nfour"
CSV = b'a,b,c,d\n1,2.5,x,\n-3,,"y, ""z""",7\n4,1e3,"two\nlines",8\n5,nan,,9\n'
LARGE = b"i,j,f,g,s\n1,3000000000,1,1e300,1\n2,1,2.5,2,word\n"


def write(folder, name, content):
    path = os.path.join(folder, name)
    with open(path, "wb") as file:
        file.write(content)
    return path


def write_records(tf, folder, name="records", contents=CONTENTS, compression=""):
    path = os.path.join(folder, name)
    with tf.io.TFRecordWriter(path, compression) as writer:
        for content in contents:
            writer.write(content)
    return path


def elements(dataset):
    return {"spec": described(dataset.element_spec), "elements": [shown_bytes(element) for element in dataset]}


def shown_bytes(value):
    """`shown`, with strings that may be any bytes."""
    if isinstance(value, dict):
        return {key: shown_bytes(value[key]) for key in value}
    if isinstance(value, (tuple, list)):
        return [shown_bytes(part) for part in value]
    if getattr(value, "dtype", None) is not None and value.dtype.name == "string" and hasattr(value, "numpy"):
        found = value.numpy()
        return {"string": found.decode("latin-1") if isinstance(found, bytes) else decoded(found.tolist())}
    return shown(value)


def decoded(value):
    return [decoded(part) for part in value] if isinstance(value, list) else value.decode("latin-1")


def two_files(tf, folder):
    return [write_records(tf, folder, "a", [b"a0", b"a1", b"a2"]), write_records(tf, folder, "b", [b"b0", b"b1"])]


def csv(tf, folder, content=CSV, **options):
    path = write(folder, "table.csv", content)
    return tf.data.experimental.make_csv_dataset(path, 2, num_epochs=1, shuffle=False, **options)


FILES = {
    "a file of records": lambda tf, d: base64.b64encode(open(write_records(tf, d), "rb").read()).decode(),
    "records": lambda tf, d: elements(tf.data.TFRecordDataset(write_records(tf, d))),
    "records, GZIP": lambda tf, d: elements(tf.data.TFRecordDataset(write_records(tf, d, compression="GZIP"), "GZIP")),
    "records, ZLIB": lambda tf, d: elements(tf.data.TFRecordDataset(write_records(tf, d, compression="ZLIB"), "ZLIB")),
    "records of two files": lambda tf, d: elements(tf.data.TFRecordDataset(two_files(tf, d))),
    "records of two files in turns": lambda tf, d: elements(
        tf.data.TFRecordDataset(two_files(tf, d), num_parallel_reads=2)
    ),
    "records of a dataset of files": lambda tf, d: elements(
        tf.data.TFRecordDataset(tf.data.Dataset.from_tensor_slices(two_files(tf, d)))
    ),
    "records, interleaved": lambda tf, d: elements(
        tf.data.Dataset.from_tensor_slices(two_files(tf, d)).interleave(tf.data.TFRecordDataset, cycle_length=2)
    ),
    "lines": lambda tf, d: elements(tf.data.TextLineDataset(write(d, "text", TEXT))),
    "lines of two files": lambda tf, d: elements(
        tf.data.TextLineDataset([write(d, "text", TEXT), write(d, "other", b"x\ny")]).skip(1)
    ),
    "records of a size": lambda tf, d: elements(
        tf.data.FixedLengthRecordDataset(write(d, "fixed", b"hdr0123456789f"), 5, header_bytes=3, footer_bytes=1)
    ),
    "listed files": lambda tf, d: [
        os.path.basename(path.numpy().decode())
        for path in (two_files(tf, d), tf.data.Dataset.list_files(os.path.join(d, "*"), shuffle=False))[1]
    ],
    # --- comma-separated values
    "decode_csv": lambda tf, d: shown_bytes(
        tf.io.decode_csv([b'1,2.5,"a, ""b"""', b",,c", b" -7 , 1e-3 ,"], [[5], 0.5, ""])
    ),
    "decode_csv of a scalar": lambda tf, d: shown_bytes(tf.io.decode_csv(b"1;x;2.5", [0, "", 0.0], field_delim=";")),
    "decode_csv, columns": lambda tf, d: shown_bytes(
        tf.io.decode_csv([b"1,2,3,4", b"5,NA,7,8"], [[0], [9]], na_value="NA", select_cols=[1, 3])
    ),
    "decode_csv without quotes": lambda tf, d: shown_bytes(
        tf.io.decode_csv([b'"a,b"'], ["", ""], use_quote_delim=False)
    ),
    "CsvDataset": lambda tf, d: elements(
        tf.data.experimental.CsvDataset(write(d, "t.csv", CSV), [tf.int32, [0.5], "none", [-1]], header=True)
    ),
    "CsvDataset, columns": lambda tf, d: elements(
        tf.data.experimental.CsvDataset(write(d, "t.csv", CSV), [tf.int64, [0.5]], header=True, select_cols=[0, 1])
    ),
    "make_csv_dataset": lambda tf, d: elements(csv(tf, d)),
    "make_csv_dataset, label": lambda tf, d: elements(csv(tf, d, label_name="d")),
    "make_csv_dataset, columns": lambda tf, d: elements(csv(tf, d, select_columns=["d", "a"])),
    "make_csv_dataset, defaults": lambda tf, d: elements(
        csv(tf, d, column_defaults=[tf.float32, [b"-"], "?", [0]], column_names=["w", "x", "y", "z"])
    ),
    "make_csv_dataset, large numbers": lambda tf, d: elements(csv(tf, d, LARGE)),
    "make_csv_dataset, errors": lambda tf, d: elements(
        csv(tf, d, b"a,b\n1,2\n3\n4,5\n", column_defaults=[tf.int32, tf.int32], ignore_errors=True)
    ),
}  # fmt: skip

# --- messages --------------------------------------------------------------------------------------------------------


def ints(tf, *values):
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def floats(tf, *values):
    return tf.train.Feature(float_list=tf.train.FloatList(value=values))


def strings(tf, *values):
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))


def example(tf, **features):
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString(deterministic=True)


def examples(tf):
    def of(a, s, **more):
        return example(tf, a=ints(tf, *a), s=strings(tf, s), **more)

    return [
        of([1, 2], b"x", f=floats(tf, 0.5, 1.5, 2.5, 3.5), i=ints(tf, 4, 1), v=floats(tf, 1, 2)),
        of([-3, 2**40], b"yy", f=floats(tf), i=ints(tf), v=floats(tf), n=ints(tf, 0)),
        of([5, 6], b"", f=floats(tf, 1.0, -2.0), n=ints(tf, 2, 0, 1, 300, 70000, -1, 9)),
        of([7, 8], b"z\xff", i=ints(tf, 2), v=floats(tf, 5)),
    ]


def ragged_example(tf):
    rows = [
        {"v": [1, 2, 3, 4], "l": [3, 0, 1], "s": [0, 3, 3, 4], "r": [0, 0, 0, 2], "o": [1, 2]},
        {"v": [], "l": [], "s": [0], "r": [], "o": []},
        {"v": [5, 6], "l": [0, 2], "s": [0, 0, 2], "r": [1, 1], "o": [2, 0]},
    ]
    return [example(tf, **{key: ints(tf, *values) for key, values in row.items()}) for row in rows]


def sequence(tf, n, words, marks):
    lists = tf.train.FeatureLists(feature_list={
        "words": tf.train.FeatureList(feature=[ints(tf, *word) for word in words]),
        "marks": tf.train.FeatureList(feature=[floats(tf, *mark) for mark in marks]),
    })  # fmt: skip
    context = tf.train.Features(feature={"n": ints(tf, n)})
    return tf.train.SequenceExample(context=context, feature_lists=lists).SerializeToString(deterministic=True)


def sequences(tf):
    return [
        sequence(tf, 2, [[1], [2, 3]], [[0.5, 1], [2, 3]]),
        sequence(tf, 0, [], []),
        sequence(tf, 1, [[7, 8, 9]], [[4, 5]]),
    ]


def parsed(tf, features, messages=examples):
    return shown_bytes(tf.io.parse_example(messages(tf), features))


def one(tf, features, number=0, messages=examples):
    return shown_bytes(tf.io.parse_single_example(messages(tf)[number], features))


def sequence_features(tf):
    return (
        {"n": tf.io.FixedLenFeature([], tf.int64)},
        {"words": tf.io.VarLenFeature(tf.int64), "marks": tf.io.FixedLenSequenceFeature([2], tf.float32)},
    )


FILES |= {
    "messages": lambda tf, d: [
        base64.b64encode(m).decode() for m in [*examples(tf), *ragged_example(tf), *sequences(tf)]
    ],
    "FixedLenFeature": lambda tf, d: parsed(
        tf, {"a": tf.io.FixedLenFeature([2], tf.int64), "s": tf.io.FixedLenFeature((), tf.string)}
    ),
    "FixedLenFeature, missing": lambda tf, d: parsed(
        tf, {"x": tf.io.FixedLenFeature([2], tf.float32, [1.0, 2.0]), "y": tf.io.FixedLenFeature([], tf.string, "none"),
             "z": tf.io.FixedLenFeature([1, 2], tf.int64, default_value=[[7, 8]])}
    ),
    "FixedLenFeature of one": lambda tf, d: one(
        tf, {"a": tf.io.FixedLenFeature([1, 2], tf.int64), "s": tf.io.FixedLenFeature([], tf.string)}
    ),
    "VarLenFeature": lambda tf, d: parsed(
        tf, {"f": tf.io.VarLenFeature(tf.float32), "n": tf.io.VarLenFeature(tf.int64)}
    ),
    "VarLenFeature of one": lambda tf, d: one(
        tf, {"f": tf.io.VarLenFeature(tf.float32), "q": tf.io.VarLenFeature(tf.int64)}
    ),
    "FixedLenSequenceFeature": lambda tf, d: parsed(
        tf, {"f": tf.io.FixedLenSequenceFeature([2], tf.float32, allow_missing=True),
             "n": tf.io.FixedLenSequenceFeature([], tf.int64, allow_missing=True, default_value=-1)}
    ),
    "FixedLenSequenceFeature of one": lambda tf, d: one(
        tf, {"f": tf.io.FixedLenSequenceFeature([2], tf.float32, allow_missing=True)}
    ),
    "RaggedFeature": lambda tf, d: parsed(
        tf, {"f": tf.io.RaggedFeature(tf.float32), "r": tf.io.RaggedFeature(tf.int64, value_key="n")}
    ),
    "RaggedFeature of one": lambda tf, d: one(tf, {"f": tf.io.RaggedFeature(tf.float32)}),
    "RaggedFeature, partitions": lambda tf, d: parsed(tf, {
        "lengths": tf.io.RaggedFeature(tf.int64, "v", [tf.io.RaggedFeature.RowLengths("l")]),
        "splits": tf.io.RaggedFeature(tf.int64, "v", [tf.io.RaggedFeature.RowSplits("s")]),
        "ids": tf.io.RaggedFeature(tf.int64, "v", [tf.io.RaggedFeature.ValueRowIds("r")]),
        "nested": tf.io.RaggedFeature(
            tf.int64, "v", [tf.io.RaggedFeature.RowLengths("o"), tf.io.RaggedFeature.RowLengths("l")]
        ),
    }, ragged_example),
    "RaggedFeature, partitions of one": lambda tf, d: one(
        tf, {"x": tf.io.RaggedFeature(tf.int64, "v", [tf.io.RaggedFeature.RowLengths("l")])}, 0, ragged_example
    ),
    "SparseFeature": lambda tf, d: parsed(tf, {"x": tf.io.SparseFeature("i", "v", tf.float32, 6)}),
    "SparseFeature of one": lambda tf, d: one(tf, {"x": tf.io.SparseFeature(["i", "a"], "v", tf.float32, [6, 9])}),
    "parse_single_sequence_example": lambda tf, d: [
        shown_bytes(tf.io.parse_single_sequence_example(message, *sequence_features(tf))) for message in sequences(tf)
    ],
    "parse_sequence_example": lambda tf, d: shown_bytes(
        tf.io.parse_sequence_example(sequences(tf), *sequence_features(tf))
    ),
    "parse_sequence_example, ragged": lambda tf, d: shown_bytes(
        tf.io.parse_sequence_example(sequences(tf), None, {"words": tf.io.RaggedFeature(tf.int64)})[1]
    ),
    "a pipeline of messages": lambda tf, d: elements(
        tf.data.TFRecordDataset(write_records(tf, d, contents=examples(tf)))
        .batch(3)
        .map(lambda m: tf.io.parse_example(m, {
            "a": tf.io.FixedLenFeature([2], tf.int64), "f": tf.io.VarLenFeature(tf.float32),
            "n": tf.io.RaggedFeature(tf.int64),
        }))
    ),
    "a pipeline of single messages": lambda tf, d: elements(
        tf.data.TFRecordDataset(write_records(tf, d, contents=examples(tf)))
        .map(lambda m: tf.io.parse_single_example(m, {"a": tf.io.FixedLenFeature([2], tf.int64)}))
        .batch(3)
    ),
    "make_batched_features_dataset": lambda tf, d: elements(
        tf.data.experimental.make_batched_features_dataset(
            write_records(tf, d, contents=examples(tf)), 2,
            {"a": tf.io.FixedLenFeature([2], tf.int64), "s": tf.io.FixedLenFeature([], tf.string)},
            label_key="s", num_epochs=1, shuffle=False,
        )
    ),
}  # fmt: skip


def result(tf, make):
    with tempfile.TemporaryDirectory() as folder:
        return make(tf, folder)


if __name__ == "__main__":
    import tensorflow

    everything = {name: result(tensorflow, make) for name, make in FILES.items()}
    print("{")
    print(",\n".join(f" {json.dumps(name)}: {json.dumps(found)}" for name, found in everything.items()))
    print("}")
