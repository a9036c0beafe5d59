"""Tensors, variables, modules, functions, traces and datasets through pickle, cloudpickle and copy.deepcopy."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import subprocess
import sys
import textwrap
import types
from pathlib import Path

import cloudpickle
import numpy as np
import pytest

import autograph as ag

ROOT = Path(__file__).resolve().parents[2]
WAYS = {
    "pickle": lambda thing: pickle.loads(pickle.dumps(thing)),
    "cloudpickle": lambda thing: cloudpickle.loads(cloudpickle.dumps(thing)),
    "deepcopy": copy.deepcopy,
}
each_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


@ag.function
def double(x):
    return x * 2


class Layer(ag.Module):
    def __init__(self):
        super().__init__(name="layer")
        self.w = ag.Variable([1.0, 2.0], name="w")
        self.shared = {"again": self.w}

    @ag.function
    def __call__(self, x):
        return x * self.w


def is_even(x):
    return x % 2 == 0


def to_range(x):
    return ag.data.Dataset.range(x)


# --- values ----------------------------------------------------------------------------------------------------------


@each_way
@pytest.mark.parametrize(
    "make",
    [
        lambda: ag.constant([[1.0, 2.0]]), lambda: ag.constant(3), lambda: ag.constant([1.5], ag.bfloat16),
        lambda: ag.constant([b"a", b"\0"]), lambda: ag.constant([1 + 2j]), lambda: ag.constant(True),
    ],
)  # fmt: skip
def test_tensors(way, make):
    tensor = make()
    found = way(tensor)
    assert found.dtype is tensor.dtype and found.shape == tensor.shape
    np.testing.assert_array_equal(found.numpy(), tensor.numpy())


@each_way
def test_ragged_and_sparse_tensors(way):
    assert way(ag.ragged.constant([[1], [2, 3]])).to_list() == [[1], [2, 3]]
    sparse = ag.SparseTensor([[0, 1]], [1.0], [2, 2])
    np.testing.assert_array_equal(ag.sparse.to_dense(way(sparse)), ag.sparse.to_dense(sparse))
    assert way(ag.TensorArray(ag.float32, 2).unstack([1.0, 2.0])).stack().numpy().tolist() == [1, 2]
    assert way(ag.RaggedTensorSpec([None, None])) == ag.RaggedTensorSpec([None, None])


@each_way
def test_variables(way):
    variable = ag.Variable(ag.constant([1.0], ag.bfloat16), trainable=False, name="v", shape=[None])
    found = way(variable)
    assert found is not variable and found.name == "v:0" and not found.trainable
    assert found.dtype is ag.bfloat16 and found.shape == [None]
    found.assign([1.0, 2.0])
    assert variable.shape == [None] and variable.numpy().tolist() == [1.0]


@each_way
def test_modules(way):
    layer = Layer()
    layer(ag.constant([1.0, 1.0]))
    found = way(layer)
    assert found.w is found.shared["again"] and found.w is not layer.w and found.name == "layer"
    layer.w.assign([5.0, 5.0])
    np.testing.assert_array_equal(found(ag.constant([1.0, 1.0])), [1, 2])


@each_way
def test_random_generators(way):
    generator = ag.random.Generator.from_seed(7)
    found = way(generator)
    np.testing.assert_array_equal(found.normal([3]), generator.normal([3]))


@each_way
def test_datasets(way):
    dataset = ag.data.Dataset.range(20).filter(is_even).shuffle(5, seed=3).batch(2).prefetch(1).repeat(2).cache()
    expected = [x.numpy().tolist() for x in dataset]
    found = way(ag.data.Dataset.range(20).filter(is_even).shuffle(5, seed=3).batch(2).prefetch(1).repeat(2).cache())
    assert [x.numpy().tolist() for x in found] == expected
    found = way(ag.data.Dataset.range(4).interleave(to_range).map(double))
    assert [int(x) for x in found] == [int(x) for x in ag.data.Dataset.range(4).interleave(to_range).map(double)]


@each_way
def test_iterators(way):
    iterator = iter(ag.data.Dataset.range(20).shuffle(20))
    for _ in range(5):
        next(iterator)
    found = way(iterator)
    assert [int(x) for x in found] == [int(x) for x in iterator]


# --- functions -------------------------------------------------------------------------------------------------------


@each_way
def test_functions_that_can_be_imported_are_themselves(way):
    assert way(double) is double
    assert way(Layer.__call__) is Layer.__call__


@each_way
def test_bound_functions_go_with_their_objects(way):
    layer = Layer()
    call, found = way([layer.__call__, layer])
    np.testing.assert_array_equal(call(ag.constant([1.0, 1.0])), [1, 2])
    found.w.assign([7.0, 7.0])
    np.testing.assert_array_equal(call(ag.constant([1.0, 1.0])), [7, 7])


@pytest.mark.parametrize("way", [WAYS["cloudpickle"], WAYS["deepcopy"]], ids=["cloudpickle", "deepcopy"])
def test_local_functions(way):
    factor = 3.0

    @ag.function(input_signature=[ag.TensorSpec([None])], jit_compile=False)
    def local(x):
        total = x
        while ag.reduce_sum(total) < 100.0:
            total = total * factor
        return total

    local(ag.constant([1.0]))
    found = way(local)
    assert found is not local and found.input_signature == local.input_signature
    np.testing.assert_array_equal(found(ag.constant([1.0])), local(ag.constant([1.0])))
    lambda_ = ag.function(lambda x: x + factor)
    assert float(way(lambda_)(ag.constant(1.0))) == 4.0


def test_pickle_says_that_it_takes_no_local_functions():
    with pytest.raises((AttributeError, pickle.PicklingError), match="Can't pickle|Can't get"):
        pickle.dumps(ag.function(lambda x: x))


@each_way
def test_recursive_functions(way):
    assert way(factorial) is factorial


@ag.function
def factorial(n):
    if n <= 1:
        return ag.constant(1)
    return n * factorial(n - 1)


class TestTraces:
    @each_way
    def test_state_and_results(self, way):
        v = ag.Variable(1.0)

        @ag.function
        def f(x, named, n=2):
            v.assign_add(ag.reduce_sum(x))
            return {"sum": v + x, "nothing": None, "n": named["k"] * n}

        concrete = f.get_concrete_function(ag.TensorSpec([None]), {"k": ag.TensorSpec([])}, 3)
        found, variable = way([concrete, v])
        results = found(ag.constant([1.0, 2.0]), {"k": ag.constant(5.0)})
        np.testing.assert_array_equal(results["sum"], [5, 6])
        assert results["nothing"] is None and float(results["n"]) == 15.0
        assert float(variable) == 4.0 and float(v) == 1.0
        assert found.structured_input_signature == concrete.structured_input_signature
        assert found.function_type is not None and found.graph.as_text() == concrete.graph.as_text()

    @each_way
    def test_gradients(self, way):
        concrete = ag.function(lambda x: ag.reduce_sum(x**3)).get_concrete_function(ag.TensorSpec([None]))
        found = way(concrete)
        x = ag.constant([1.0, 2.0])
        with ag.GradientTape() as tape:
            tape.watch(x)
            y = found(x)
        np.testing.assert_allclose(tape.gradient(y, x), [3, 12])

    @each_way
    def test_captured_tensors_recursion_and_loops(self, way):
        table = ag.constant(np.arange(100.0))

        @ag.function
        def f(n):
            total = table[0]
            for i in ag.range(n):
                total += table[i] * ag.cast(factorial(i), ag.float64)
            return total

        concrete = f.get_concrete_function(ag.constant(4))
        assert float(way(concrete)(ag.constant(4))) == float(f(ag.constant(4)))

    @each_way
    def test_variables_and_objects_as_arguments(self, way):
        layer, v = Layer(), ag.Variable(2.0)

        @ag.function
        def f(layer, variable, x):
            variable.assign_add(1.0)
            return layer.w * variable * x

        concrete = f.get_concrete_function(layer, v, ag.TensorSpec([]))
        found = way(concrete)
        gc.collect()
        np.testing.assert_array_equal(found(x=ag.constant(1.0)), [3, 6])
        np.testing.assert_array_equal(found(x=ag.constant(1.0)), [4, 8])
        assert float(v) == 2.0
        twin = ag.Variable(10.0)
        f(layer, twin, ag.constant(1.0))
        found = way(f.get_concrete_function(layer, twin, ag.TensorSpec([])))
        np.testing.assert_array_equal(found(x=ag.constant(1.0)), [12, 24])

    def test_what_calls_python(self):
        f = ag.function(lambda x: ag.py_function(lambda y: y, [x], ag.float32))
        concrete = f.get_concrete_function(ag.TensorSpec([]))
        with pytest.raises(ag.errors.UnimplementedError, match="calls Python code"):
            pickle.dumps(concrete)

    def test_loaded_functions(self, tmp_path):
        model = Layer()
        model(ag.constant([1.0, 1.0]))
        ag.saved_model.save(model, tmp_path)
        loaded = ag.saved_model.load(tmp_path)
        for way in WAYS.values():
            found = way(loaded)
            found.w.assign([3.0, 3.0])
            np.testing.assert_array_equal(found(ag.constant([1.0, 1.0])), [3, 3])
            with pytest.raises(ValueError, match="Could not find a trace"):
                found(ag.constant([1, 1, 1]))
        np.testing.assert_array_equal(loaded.w, [1, 2])


# --- other processes -------------------------------------------------------------------------------------------------

_ELSEWHERE = """
    import pickle, sys
    import autograph as ag

    with open(sys.argv[1], "rb") as file:
        things = pickle.load(file)
    print(*[float(thing(ag.constant(5.0))) for thing in things])
"""
_MAIN = """
    import pickle, sys
    import cloudpickle
    import autograph as ag

    @ag.function
    def shrink(x):
        while x > 1.0:
            x = x / 2.0
        return halved(x)

    @ag.function
    def halved(x):
        return x / 2.0 if x > 0 else x

    def plain(x):
        while x > 1.0:
            x = x / 2.0
        return x

    class Line:
        def helper(self, x):
            return plain(x) if x > 0 else x

        @ag.function
        def __call__(self, x):
            return self.helper(x)

    things = [shrink, ag.function(lambda x: x + 1 if x > 0 else x), shrink.get_concrete_function(ag.constant(1.0))]
    with open(sys.argv[1], "wb") as file:
        cloudpickle.dump([*things, Line(), ag.function(lambda x: plain(x))], file)
    assert pickle.loads(pickle.dumps(shrink)) is shrink
"""


def python(folder, *arguments):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, *map(str, arguments)]
    done = subprocess.run(command, cwd=folder, env=environment, check=True, timeout=120, capture_output=True, text=True)
    return done.stdout


def test_functions_of_a_script_run_elsewhere_without_the_script(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(_MAIN))
    python(tmp_path, script, tmp_path / "things")
    script.unlink()
    found = python(tmp_path, "-c", textwrap.dedent(_ELSEWHERE), tmp_path / "things")
    assert found == "0.3125 6.0 0.3125 0.625 0.625\n"
    # A worker's folder may hold another version of the script.
    script.write_text("import sys\n" * 50)
    assert python(tmp_path, "-c", textwrap.dedent(_ELSEWHERE), tmp_path / "things") == found


def test_every_public_function_is_found_again():
    """By its name, in a fresh process too: what is pickled is where it is."""
    found, seen = [], set()

    def collect(module):
        seen.add(module)
        for name in module.__all__:
            value = getattr(module, name)
            if isinstance(value, types.ModuleType):
                if value.__name__.startswith("autograph.namespaces.") and value not in seen:
                    collect(value)
            elif isinstance(value, types.FunctionType) and value.__module__ != "numpy":
                found.append(value)

    collect(ag)
    assert len(found) > 500
    assert [each for each in found if pickle.loads(pickle.dumps(each)) is not each] == []


@each_way
def test_a_method_alone_keeps_its_object(way):
    layer = Layer()
    found = way(layer.__call__)
    layer.w.assign([5.0, 6.0])
    gc.collect()
    np.testing.assert_array_equal(found(ag.constant([1.0, 1.0])), [1, 2])
    np.testing.assert_array_equal(way(found)(ag.constant([1.0, 1.0])), [1, 2])
