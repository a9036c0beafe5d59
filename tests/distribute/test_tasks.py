"""Functions and models as tasks of Dask and Ray, on real local clusters."""

import importlib.util
import pickle

import numpy as np
import pytest

import autograph as ag
from tests.distribute.launch import run_alone


@ag.function
def newton(a):
    x = a
    while ag.abs(x * x - a) > 1e-6 * a:
        x = 0.5 * (x + a / x)
    return x


# --- without an engine -----------------------------------------------------------------------------------------------


def test_tasks_are_plain_functions_of_arrays():
    run = ag.distribute.task(newton)
    assert type(run) is type(lambda: 0) and run.__name__ == "newton"
    found = run(ag.constant(4.0))
    assert isinstance(found, np.float32) and found == pytest.approx(2.0)
    pair = ag.distribute.task(ag.function(lambda x: {"a": x + 1, "b": (x, None)}))(np.arange(3.0))
    assert pair["a"].tolist() == [1.0, 2.0, 3.0] and pair["b"][1] is None
    with pytest.raises(ValueError, match="read-only"):
        pair["a"][0] = 5.0
    with pytest.raises(TypeError, match="function"):
        ag.distribute.task(3)


def test_arrays_that_nobody_writes_to_are_not_copied():
    shared = np.arange(1000.0)
    shared.flags.writeable = False
    assert np.shares_memory(ag.distribute.task(ag.identity)(shared), shared)
    own = np.arange(1000.0)
    assert not np.shares_memory(ag.distribute.task(ag.identity)(own), own)


def test_tensors_travel_by_their_memory():
    tensor = ag.constant(np.arange(100_000.0))
    buffers = []
    text = pickle.dumps(tensor, protocol=5, buffer_callback=buffers.append)
    assert len(text) < 1000 and sum(b.raw().nbytes for b in buffers) == 800_000
    assert (pickle.loads(text, buffers=buffers).numpy() == tensor.numpy()).all()


# --- with engines, whose clusters are real processes ---------------------------------------------------------------


@pytest.mark.parametrize("engine, module", [("Dask", "distributed"), ("Ray", "ray")])
def test_functions_and_models_as_tasks(engine, module):
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"needs {engine}: pip install -e '.[{engine.lower()}]'")
    assert run_alone(f"{engine.lower()}_tasks.py")[-1] == f"all tasks of {engine} are done"


def test_map_blocks_wants_dask_arrays():
    pytest.importorskip("dask.array", reason="needs Dask: pip install -e '.[dask]'")
    with pytest.raises(TypeError, match="from_array"):
        ag.distribute.map_blocks(lambda a: a, np.ones(3))
