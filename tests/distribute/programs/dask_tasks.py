"""Functions and models as tasks of Dask, on a real local cluster: asserts what becomes of them."""

import dask.array as da
import numpy as np
import pytest
from dask.distributed import Client, LocalCluster

import autograph as ag
from examples import epidemic_sweep


@ag.function
def newton(a):
    x = a
    while ag.abs(x * x - a) > 1e-6 * a:
        x = 0.5 * (x + a / x)
    return x


class Line(ag.Module):
    def __init__(self):
        self.slope = ag.Variable(3.0)

    @ag.function
    def __call__(self, x):
        return self.slope * x


def functions_and_models_as_tasks_of_dask(dask_client):
    values = [ag.constant(float(n)) for n in range(1, 9)]
    found = dask_client.gather(dask_client.map(newton, values))
    np.testing.assert_allclose([float(x) for x in found], np.sqrt(np.arange(1, 9)), rtol=1e-6)
    model = Line()
    model.slope.assign(5.0)
    assert float(dask_client.submit(model, ag.constant(2.0)).result()) == 10.0
    concrete = newton.get_concrete_function(ag.TensorSpec([], ag.float32))
    assert float(dask_client.submit(concrete, ag.constant(9.0)).result()) == pytest.approx(3.0)
    big = dask_client.scatter(ag.ones([1000, 100]))
    assert float(dask_client.submit(ag.reduce_sum, big).result()) == 100_000.0
    failing = dask_client.submit(ag.function(lambda x: ag.reshape(x, [7])), ag.ones([3]))
    with pytest.raises(ValueError, match="7"):
        failing.result()


def a_sweep_over_ten_thousand_sets_of_parameters(dask_client):
    results = epidemic_sweep.sweep(10_000, 1_000)
    assert results.shape == (10_000, 3) and results.dtype == np.float64 and results.chunks == ((1_000,) * 10, (3,))
    found = results.compute()
    here = epidemic_sweep.simulate(epidemic_sweep.parameters(10_000)[:200]).numpy()
    np.testing.assert_allclose(found[:200], here, rtol=1e-9)
    # Who infects less than one other infects hardly anybody.
    beta, gamma = epidemic_sweep.parameters(10_000).T
    assert found[beta < 0.9 * gamma, 0].max() < 0.01 < found[beta > 1.5 * gamma, 0].min()


def blocks_through_a_function(dask_client):
    x = np.random.default_rng(0).normal(size=(7, 10)).astype(np.float32)
    blocks = da.from_array(x, chunks=(3, 4))

    def halves(block):
        return ag.cast(block[:, ::2] > 0, ag.int32) if block.shape[1] % 2 == 0 else block

    found = ag.distribute.map_blocks(halves, blocks)
    assert found.chunks == ((3, 3, 1), (2, 2, 1)) and found.dtype == np.int32
    expected = np.concatenate([x[:, 0:4:2], x[:, 4:8:2], x[:, 8:10:2]], axis=1) > 0
    assert (found.compute() == expected).all()
    two = ag.distribute.map_blocks(lambda a, b: a * ag.cast(b, a.dtype), blocks, blocks.astype("float64"))
    np.testing.assert_allclose(two.sum().compute(), (x * x).sum(), rtol=1e-5)
    sums = ag.distribute.map_blocks(lambda a: ag.reduce_sum(a, axis=1, keepdims=True), blocks)
    assert sums.shape == (7, 3)
    np.testing.assert_allclose(sums.compute()[:, 0], x[:, :4].sum(1), rtol=1e-5)
    positive = ag.distribute.map_blocks(lambda a: ag.expand_dims(a[a > 0], 1), da.from_array(x, chunks=(3, 10)))
    assert np.isnan(positive.shape[0]) and positive.compute().shape == ((x > 0).sum(), 1)
    with pytest.raises(ValueError, match="keepdims"):
        ag.distribute.map_blocks(lambda a: ag.reduce_sum(a, axis=1), blocks)
    with pytest.raises(ValueError, match="numbers of blocks"):
        ag.distribute.map_blocks(lambda a, b: a, blocks, blocks.rechunk((7, 4)))
    with pytest.raises(TypeError, match="from_array"):
        ag.distribute.map_blocks(lambda a: a, x)
    with pytest.raises(ValueError, match="one tensor"):
        ag.distribute.map_blocks(lambda a: (a, a), blocks)


def main():
    cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, host="127.0.0.1")
    with cluster, Client(cluster) as client:
        functions_and_models_as_tasks_of_dask(client)
        a_sweep_over_ten_thousand_sets_of_parameters(client)
        blocks_through_a_function(client)
    print("all tasks of Dask are done")


if __name__ == "__main__":
    main()
