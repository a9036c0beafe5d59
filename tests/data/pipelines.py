"""Pipelines whose elements, specs and cardinalities are TensorFlow's: programs for either library.

Run with TensorFlow installed, this file writes what it gives, which `test_pipelines.py` compares ours with:

    python tests/data/pipelines.py > tests/data/tensorflow_elements.json
"""

import json
import sys

import numpy as np

MOST = 200


def numbers(tf, n=10):
    return tf.data.Dataset.range(n)


def ragged_rows(tf, n=9):
    """Rows of 0, 1, 2, 0, 1, 2, ... elements."""
    return tf.data.Dataset.range(n).map(lambda x: tf.fill([tf.cast(x % 3, tf.int32)], x))


def datasets_of(tf, *lengths):
    return [tf.data.Dataset.range(100 * k, 100 * k + n) for k, n in enumerate(lengths)]


def structures(tf):
    return tf.data.Dataset.from_tensor_slices(
        {"a": np.arange(5), "b": (np.arange(5) * 1.5, [b"v", b"w", b"x", b"y", b"z"])}
    )


PIPELINES = {
    # windows
    "window": lambda tf: numbers(tf).window(3).flat_map(lambda w: w.batch(3)),
    "window of one": lambda tf: numbers(tf, 4).window(1).flat_map(lambda w: w.batch(3)),
    "window, shift": lambda tf: numbers(tf).window(4, shift=1).flat_map(lambda w: w.batch(4)),
    "window, shift, whole": lambda tf: numbers(tf).window(4, 2, drop_remainder=True).flat_map(lambda w: w.batch(4)),
    "window, stride": lambda tf: numbers(tf).window(3, 2, 2).flat_map(lambda w: w.batch(3)),
    "window, stride, whole": lambda tf: numbers(tf).window(3, 1, 3, True).flat_map(lambda w: w.batch(3)),
    "window, large shift": lambda tf: numbers(tf).window(2, 5, 1).flat_map(lambda w: w.batch(2)),
    "window, larger shift": lambda tf: numbers(tf).window(2, 12, 1).flat_map(lambda w: w.batch(2)),
    "window, too large": lambda tf: numbers(tf, 3).window(5, 1, 1, True).flat_map(lambda w: w.batch(5)),
    "windows of tuples": lambda tf: (
        tf.data.Dataset.zip((numbers(tf), numbers(tf).map(lambda x: x * 2.0 if False else x * 2)))
        .window(3)
        .flat_map(lambda a, b: tf.data.Dataset.zip((a.batch(3), b.batch(2))))
    ),
    "windows reduced": lambda tf: numbers(tf).window(4).map(lambda w: w.reduce(np.int64(0), lambda s, x: s + x)),
    "windows counted": lambda tf: numbers(tf).window(4, 3).map(lambda w: w.batch(9).get_single_element()),
    "datasets as elements": lambda tf: numbers(tf, 4).map(tf.data.Dataset.range).flat_map(lambda d: d),
    "window cardinality": lambda tf: tf.data.Dataset.from_tensors([
        int(numbers(tf, n).window(s, sh, st, drop).cardinality())
        for n in (0, 1, 5, 10) for s in (1, 3) for sh in (1, 2, 7) for st in (1, 2) for drop in (False, True)
    ]),
    # groups
    "group_by_window": lambda tf: numbers(tf).group_by_window(lambda x: x % 3, lambda k, d: d.batch(2), 2),
    "group_by_window, large": lambda tf: numbers(tf).group_by_window(lambda x: -x % 4, lambda k, d: d.batch(9), 7),
    "group_by_window, size": lambda tf: numbers(tf, 20).group_by_window(
        lambda x: x % 2, lambda k, d: d.batch(9).map(lambda b: b * 0 + k), window_size_func=lambda k: k + 2
    ),
    "buckets": lambda tf: ragged_rows(tf).bucket_by_sequence_length(lambda x: tf.shape(x)[0], [1, 2], [2, 2, 2]),
    "buckets, boundary": lambda tf: ragged_rows(tf).bucket_by_sequence_length(
        lambda x: tf.shape(x)[0], [2, 5], [3, 2, 2], pad_to_bucket_boundary=True, padding_values=np.int64(-1)
    ),
    "buckets, whole": lambda tf: ragged_rows(tf, 10).bucket_by_sequence_length(
        lambda x: tf.shape(x)[0], [2], [3, 2], drop_remainder=True
    ),
    "buckets of pairs": lambda tf: tf.data.Dataset.zip((ragged_rows(tf), numbers(tf))).bucket_by_sequence_length(
        lambda x, y: tf.shape(x)[0], [1, 2], [2, 3, 2]
    ),
    # in turns
    **{
        f"interleave {cycle} {block}": lambda tf, cycle=cycle, block=block: numbers(tf, 6).interleave(
            lambda x: tf.data.Dataset.range(x * 10, x * 10 + x % 4 + 1), cycle_length=cycle, block_length=block
        )
        for cycle in (1, 2, 3, 7)
        for block in (1, 2, 3)
    },
    **{
        f"interleave in parallel {cycle} {block}": lambda tf, cycle=cycle, block=block: numbers(tf, 6).interleave(
            lambda x: tf.data.Dataset.range(x * 10, x * 10 + x % 4 + 1), cycle_length=cycle, block_length=block,
            num_parallel_calls=min(2, cycle), deterministic=True,
        )
        for cycle in (1, 2, 3, 7)
        for block in (1, 2, 3)
    },
    "interleave of nothing": lambda tf: numbers(tf, 6).interleave(
        lambda x: tf.data.Dataset.range(x % 2 * 2), cycle_length=2, block_length=2
    ),
    "flat_map": lambda tf: numbers(tf, 4).flat_map(lambda x: tf.data.Dataset.from_tensors(x).repeat(x)),
    # chosen
    "choose": lambda tf: tf.data.Dataset.choose_from_datasets(
        datasets_of(tf, 3, 4), tf.data.Dataset.from_tensor_slices(np.array([0, 1, 1, 0, 1, 0, 0, 1]))
    ),
    "choose, go on": lambda tf: tf.data.Dataset.choose_from_datasets(
        datasets_of(tf, 1, 4), tf.data.Dataset.from_tensor_slices(np.array([0, 1, 1, 0, 1, 0, 0, 1, 1, 1])), False
    ),
    "sample": lambda tf: tf.data.Dataset.sample_from_datasets(datasets_of(tf, 5, 9, 7), seed=3),
    "sample, weights": lambda tf: tf.data.Dataset.sample_from_datasets(datasets_of(tf, 9, 20), [0.3, 0.7], seed=11),
    "sample, zero": lambda tf: tf.data.Dataset.sample_from_datasets(datasets_of(tf, 3, 9, 7), [0.5, 0.0, 0.5], seed=1),
    "sample, stop": lambda tf: tf.data.Dataset.sample_from_datasets(
        datasets_of(tf, 5, 9), [0.5, 0.5], seed=3, stop_on_empty_dataset=True
    ),
    "sample, one": lambda tf: tf.data.Dataset.sample_from_datasets(datasets_of(tf, 3), [1.0]),
    "sample, twice": lambda tf: tf.data.Dataset.sample_from_datasets(
        datasets_of(tf, 5, 5), seed=2, rerandomize_each_iteration=True
    ).repeat(2),
    # random
    "random": lambda tf: tf.data.Dataset.random(seed=4).take(5),
    "random again": lambda tf: tf.data.Dataset.random(seed=4).take(3).repeat(2),
    "random, new": lambda tf: tf.data.Dataset.random(seed=4, rerandomize_each_iteration=True).take(3).repeat(3),
    "shuffle": lambda tf: numbers(tf).shuffle(4, seed=7),
    "shuffle all": lambda tf: numbers(tf, 50).shuffle(50, seed=1).batch(7),
    "shuffle again": lambda tf: numbers(tf).shuffle(10, seed=7).repeat(3),
    "shuffle the same": lambda tf: numbers(tf).shuffle(10, seed=7, reshuffle_each_iteration=False).repeat(2),
    "shuffle and prefetch": lambda tf: numbers(tf).shuffle(10, seed=7).prefetch(2).repeat(2),
    # one for one
    "strings filtered and batched": lambda tf: (
        tf.data.Dataset.from_tensor_slices(["a", "bb", "", "c"]).filter(lambda s: tf.strings.length(s) < 2).batch(2)
    ),
    "strings cached": lambda tf: (
        tf.data.Dataset.from_tensor_slices(["a", "bb"]).cache().map(lambda s: s + "!").repeat(2).batch(3)
    ),
    "unique": lambda tf: tf.data.Dataset.from_tensor_slices([1, 37, 2, 37, 2, 1]).unique(),
    "unique strings": lambda tf: tf.data.Dataset.from_tensor_slices(["a", "b", "a"]).unique(),
    "counter": lambda tf: tf.data.Dataset.counter(3, 2).take(4),
    "counter down": lambda tf: tf.data.Dataset.counter(0.5, -1, dtype=tf.float32).take(3),
    "ignore_errors": lambda tf: (
        tf.data.Dataset.from_tensor_slices([1.0, 2.0, 0.0, 4.0])
        .map(lambda x: tf.debugging.check_numerics(1.0 / x, "bad"))
        .ignore_errors()
    ),
    "scan": lambda tf: numbers(tf, 5).scan(np.int64(1), lambda s, x: (s + x, s * x)),
    "take_while": lambda tf: numbers(tf).take_while(lambda x: x < 4),
    "prefetch": lambda tf: numbers(tf).map(lambda x: x * x).prefetch(2),
    "map in parallel": lambda tf: numbers(tf).map(lambda x: x * x, num_parallel_calls=4),
    "map with Python": lambda tf: numbers(tf).map(
        lambda x: tf.ensure_shape(tf.numpy_function(lambda v: v * v, [x], tf.int64), []), num_parallel_calls=4
    ),
    "cache": lambda tf: numbers(tf, 3).map(lambda x: x + 1).cache().repeat(2),
    # batches
    "ragged_batch": lambda tf: ragged_rows(tf).ragged_batch(4),
    "ragged_batch, whole": lambda tf: ragged_rows(tf).ragged_batch(4, drop_remainder=True),
    "padded_batch": lambda tf: ragged_rows(tf).padded_batch(4),
    "padded_batch to a size": lambda tf: ragged_rows(tf).padded_batch(4, [5], np.int64(-1), drop_remainder=True),
    "sparse_batch": lambda tf: ragged_rows(tf, 5).sparse_batch(2, [4]),
    "unbatch": lambda tf: numbers(tf).batch(4).unbatch(),
    "unbatch pairs": lambda tf: structures(tf).batch(2).unbatch(),
    "rebatch": lambda tf: numbers(tf).batch(3).rebatch(4),
    "rebatch, whole": lambda tf: numbers(tf).batch(3).rebatch(4, drop_remainder=True),
    "rebatch in turns": lambda tf: numbers(tf).batch(3).rebatch([2, 1]),
    "rebatch in turns, whole": lambda tf: numbers(tf).batch(4).rebatch([2, 3], drop_remainder=True),
    "rebatch in equal turns": lambda tf: structures(tf).batch(2).rebatch([2, 2], True),
    "rebatch with empty batches": lambda tf: numbers(tf).batch(3).rebatch([0, 4, 0]),
    "rebatch with empty batches at the end": lambda tf: numbers(tf, 8).batch(3).rebatch([4, 0, 0]),
    "structures": structures,
    "structures in batches": lambda tf: structures(tf).batch(2),
    "structures zipped": lambda tf: tf.data.Dataset.zip({"x": structures(tf), "y": numbers(tf, 3)}),
    "shard": lambda tf: numbers(tf).shard(3, 1),
    "enumerate": lambda tf: structures(tf).enumerate(5),
    "concatenate": lambda tf: numbers(tf, 2).concatenate(numbers(tf, 3)),
    "repeat and batch": lambda tf: numbers(tf, 3).repeat(3).batch(2),
    "batch and repeat": lambda tf: numbers(tf, 3).batch(2).repeat(2),
    "skip and take": lambda tf: numbers(tf).skip(2).take(5).skip(1),
    "from_generator": lambda tf: tf.data.Dataset.from_generator(
        lambda: ((i, [i] * i) for i in range(3)),
        output_signature=(tf.TensorSpec((), tf.int32), tf.TensorSpec((None,), tf.float32)),
    ),
    "from_generator, types": lambda tf: tf.data.Dataset.from_generator(
        lambda n: iter(range(n)), output_types=tf.int64, args=[4]
    ),
    "from_generator of ragged": lambda tf: tf.data.Dataset.from_generator(
        lambda: iter([tf.ragged.constant([[1], [2, 3]])]),
        output_signature=tf.RaggedTensorSpec(shape=(2, None), dtype=tf.int32),
    ),
    "rejection_resample, nothing to do": lambda tf: (
        numbers(tf, 6).map(lambda x: x % 2).rejection_resample(lambda x: x, [0.5, 0.5], [0.5, 0.5], seed=1)
    ),
    "assert_cardinality": lambda tf: numbers(tf).filter(lambda x: x < 4).apply(
        tf.data.experimental.assert_cardinality(4)
    ),
}  # fmt: skip


def shown(value):
    """A value as JSON: its dtype, and its elements."""
    if isinstance(value, dict):
        return {key: shown(part) for key, part in value.items()}
    if isinstance(value, (tuple, list)):
        return [shown(part) for part in value]
    if hasattr(value, "to_list"):
        return {"ragged": value.to_list()}
    if hasattr(value, "dense_shape"):
        return {"sparse": [shown(value.indices), shown(value.values), shown(value.dense_shape)]}
    array = np.asarray(value.numpy() if hasattr(value, "numpy") else value)
    if array.dtype.kind in "OS":
        return {"string": np.vectorize(lambda v: v.decode(), otypes=[object])(array).tolist()}
    return {array.dtype.name: array.tolist()}


def described(spec):
    """A spec as JSON: kind, shape and dtype of each leaf."""
    if isinstance(spec, dict):
        return {key: described(part) for key, part in spec.items()}
    if isinstance(spec, (tuple, list)):
        return [described(part) for part in spec]
    shape = spec.shape.as_list() if spec.shape.rank is not None else None
    return [type(spec).__name__, shape, spec.dtype.name]


def results(tf, make):
    """What a pipeline gives, twice: the second time on a new iterator of the same dataset."""
    dataset = make(tf)
    found = [[shown(element) for element in dataset.take(MOST)] for _ in range(2)]
    return {"spec": described(dataset.element_spec), "cardinality": int(dataset.cardinality()), "elements": found}


if __name__ == "__main__":
    import tensorflow

    everything = {name: results(tensorflow, make) for name, make in PIPELINES.items()}
    print("{")
    print(",\n".join(f" {json.dumps(name)}: {json.dumps(found)}" for name, found in everything.items()))
    print("}")
    sys.stdout.flush()
