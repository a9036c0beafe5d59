"""Batches of extension types: in datasets and `map_fn`, also with an encoder of one's own."""

import numpy as np
import pytest

import autograph as ag
from tests.extension_types.kinds import Masked


class Network(ag.experimental.BatchableExtensionType):
    shape: ag.TensorShape
    work: ag.Tensor

    def __init__(self, work):
        self.work = ag.convert_to_tensor(work)
        self.shape = self.work.shape[:-1]


class Whole(ag.experimental.BatchableExtensionType):
    """One of all kinds of parts."""

    x: ag.Tensor
    ragged: ag.RaggedTensor
    sparse: ag.SparseTensor
    network: Network
    name: str = "a"


class _Transposed(ag.experimental.ExtensionTypeBatchEncoder):
    """Batches along the last axis."""

    def batch(self, spec, batch_size):
        return Columns.Spec(ag.TensorSpec([*spec.x.shape, batch_size], spec.x.dtype))

    def unbatch(self, spec):
        return Columns.Spec(ag.TensorSpec(spec.x.shape[:-1], spec.x.dtype))

    def encode(self, spec, value, minimum_rank=0):
        return [ag.transpose(value.x)]

    def decode(self, spec, encoded_value):
        return Columns(ag.transpose(encoded_value[0]))

    def encoding_specs(self, spec):
        return [ag.TensorSpec(spec.x.shape[::-1], spec.x.dtype)]


class Columns(ag.experimental.BatchableExtensionType):
    x: ag.Tensor
    __batch_encoder__ = _Transposed()


NETWORKS = Network([[8.0, 5.0], [3.0, 2.0], [1.0, 0.0]])
WHOLE = Whole(
    [1, 2, 3], ag.ragged.constant([[1], [2, 3], []]), ag.sparse.from_dense([[1, 0], [0, 2], [0, 0]]), NETWORKS
)


def test_rows_and_batches():
    rows = ag.data.Dataset.from_tensor_slices(NETWORKS)
    assert rows.element_spec == Network.Spec([], ag.TensorSpec([2]))
    assert [(row.shape, row.work.numpy().tolist()) for row in rows] == [([], [8, 5]), ([], [3, 2]), ([], [1, 0])]
    batches = rows.batch(2)
    assert batches.element_spec == Network.Spec([None], ag.TensorSpec([None, 2]))
    assert [(batch.shape, batch.work.shape) for batch in batches] == [([2], [2, 2]), ([1], [1, 2])]
    assert [row.work.numpy().tolist() for row in batches.unbatch()] == [[8, 5], [3, 2], [1, 0]]
    both = rows.concatenate(rows).shuffle(6, seed=1).batch(6, drop_remainder=True)
    assert sorted(next(iter(both)).work.numpy()[:, 0]) == [1, 1, 3, 3, 8, 8]


def test_all_kinds_of_parts():
    rows = ag.data.Dataset.from_tensor_slices(WHOLE)
    first, second, _ = rows
    assert first.x.numpy() == 1 and first.network.work.numpy().tolist() == [8, 5] and first.name == "a"
    assert second.ragged.numpy().tolist() == [2, 3] and ag.sparse.to_dense(second.sparse).numpy().tolist() == [0, 2]
    batch, _ = rows.batch(2)
    assert batch.ragged.to_list() == [[1], [2, 3]] and batch.network.shape == [2]
    assert ag.sparse.to_dense(batch.sparse).numpy().tolist() == [[1, 0], [0, 2]]
    sums = [float(v) for v in rows.map(lambda row: ag.reduce_sum(row.network.work) + ag.cast(row.x, ag.float32))]
    assert sums == [14, 7, 4]


def test_pipelines():
    def values():
        for i in range(3):
            yield Network([i, i + 1.0])

    made = ag.data.Dataset.from_generator(values, output_signature=Network.Spec([], ag.TensorSpec([2])))
    mapped = made.map(lambda network: Network(network.work * 2.0)).filter(lambda network: network.work[0] > 0)
    assert [network.work.numpy().tolist() for network in mapped] == [[2, 4], [4, 6]]
    whole = iter(ag.data.Dataset.from_tensors(NETWORKS))
    assert bool(whole.next() == NETWORKS)
    with pytest.raises(StopIteration):
        whole.next()


@pytest.mark.parametrize("size", [None, 2])
def test_loops_of_traced_functions(size):
    @ag.function
    def total(networks):
        result = 0.0
        for network in networks:
            result += ag.reduce_sum(network.work * 2.0)
        return result

    rows = ag.data.Dataset.from_tensor_slices(NETWORKS)
    assert float(total(rows if size is None else rows.batch(size))) == 38


def test_an_encoder_of_ones_own():
    columns = Columns([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    rows = ag.data.Dataset.from_tensor_slices(columns)
    assert [row.x.numpy().tolist() for row in rows] == [[1, 4], [2, 5], [3, 6]]
    assert [batch.x.numpy().tolist() for batch in rows.batch(2)] == [[[1, 2], [4, 5]], [[3], [6]]]
    mapped = ag.map_fn(lambda row: Columns(row.x + 1.0), columns)
    assert mapped.x.numpy().tolist() == [[2, 3, 4], [5, 6, 7]]


@pytest.mark.parametrize("run", [lambda f: f, ag.function])
def test_map_fn(run):
    f = run(lambda networks: ag.map_fn(lambda network: Network(network.work + 1.0), networks))
    assert f(NETWORKS).work.numpy().tolist() == [[9, 6], [4, 3], [2, 1]] and f(NETWORKS).shape == [3]
    sums = run(lambda pair: ag.map_fn(lambda row: ag.reduce_sum(row[0].work) * row[1], pair, ag.float32))
    assert sums((NETWORKS, ag.constant([1.0, 2.0, 3.0]))).numpy().tolist() == [13, 10, 3]
    spec = Network.Spec([], ag.TensorSpec([2]))
    made = run(lambda x: ag.map_fn(lambda row: Network(ag.stack([row, row])), x, fn_output_signature=spec))
    assert made(ag.constant([1.0, 2.0])).work.numpy().tolist() == [[1, 1], [2, 2]]


def test_gradients_of_map_fn():
    with ag.GradientTape() as tape:
        tape.watch(NETWORKS.work)
        mapped = ag.function(lambda x: ag.map_fn(lambda row: Network(row.work * row.work), x))(NETWORKS)
    np.testing.assert_array_equal(tape.gradient(mapped.work, NETWORKS.work), 2 * NETWORKS.work.numpy())


def test_what_has_no_rows():
    with pytest.raises(TypeError, match="Masked can't be batched or split into rows: derive it from"):
        ag.data.Dataset.from_tensor_slices(Masked([1], [True]))
    with pytest.raises(TypeError, match="Masked can't be batched"):
        ag.data.Dataset.from_tensors(Masked([1], [True])).batch(2)
    with pytest.raises(ValueError, match="first axis"):
        ag.data.Dataset.from_tensor_slices(Network([1.0, 2.0]))
    with pytest.raises(TypeError, match="same sequence type"):
        ag.data.Dataset.from_tensors(NETWORKS).concatenate(ag.data.Dataset.from_tensors(Masked([1], [True])))
