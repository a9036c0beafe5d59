"""`saved_model.save` and `load`: functions, variables, files and structure come back, without the source."""

from __future__ import annotations

import collections
import gc
import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import autograph as ag
from tests.saving import golden_models

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = sorted((ROOT / "tests" / "golden" / "saved_models").iterdir())


def saved(thing, folder, signatures=None):
    ag.saved_model.save(thing, folder, signatures)
    return ag.saved_model.load(folder)


def module(**attributes):
    made = ag.Module()
    for name, value in attributes.items():
        setattr(made, name, value)
    return made


@pytest.fixture()
def words(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("one two three")
    return path


# --- the large example -----------------------------------------------------------------------------------------------


def test_a_model_with_much_in_it(tmp_path, words):
    model = golden_models.make(words)
    loaded = saved(model, tmp_path / "model")
    words.write_text("changed")
    expected, found = golden_models.use(model), golden_models.use(loaded)
    assert expected.pop("file") == "changed" and found.pop("file") == "one two three"
    assert found == expected
    again = saved(loaded, tmp_path / "again")
    expected, found = golden_models.use(loaded), golden_models.use(again)
    assert found == expected


def test_functions_have_other_names(tmp_path):
    @ag.function(input_signature=[ag.TensorSpec([None])])
    def double(x):
        return x * 2.0

    model = module(double=double)
    ag.saved_model.save(model, tmp_path, options=ag.saved_model.SaveOptions(function_aliases={"twice": double}))
    loaded = ag.saved_model.load(tmp_path, options=ag.saved_model.LoadOptions(experimental_load_function_aliases=True))
    assert loaded.function_aliases["twice"] is loaded.double
    assert loaded.function_aliases["twice"]([1.0, 2.0]).numpy().tolist() == [2.0, 4.0]
    assert not hasattr(ag.saved_model.load(tmp_path), "function_aliases")
    with pytest.raises(TypeError, match="function_aliases are functions of ag.function by name, got 'twice': 3"):
        ag.saved_model.save(model, tmp_path, options=ag.saved_model.SaveOptions(function_aliases={"twice": 3}))


@pytest.mark.parametrize("folder", GOLDEN, ids=lambda path: path.name)
def test_models_of_all_versions_load(folder):
    found = golden_models.use(ag.saved_model.load(folder))
    expected = json.loads((folder / "expected.json").read_text())
    assert found.keys() == expected.keys()
    for key, value in expected.items():
        if key in ("loss", "call", "draw"):
            np.testing.assert_allclose(found[key], value, atol=1e-4)
        else:
            assert found[key] == value, key


def test_the_golden_model_is_of_the_present_version():
    document = json.loads((GOLDEN[-1] / "saved_model.json").read_text())
    assert GOLDEN[-1].name == f"version_{document['version']}"


_ELSEWHERE = """
    import sys
    import numpy as np
    import autograph as ag

    model = ag.saved_model.load(sys.argv[1])
    x = ag.constant(np.load(sys.argv[2]))
    np.save(sys.argv[3], model(x).numpy())
    with ag.GradientTape() as tape:
        loss = ag.reduce_sum(model(x) ** 2)
    np.save(sys.argv[4], tape.gradient(loss, model.layers[0].kernel).numpy())
"""


def test_in_a_process_without_the_source(tmp_path, words):
    model = golden_models.make(words)
    ag.saved_model.save(model, tmp_path / "model")
    x = np.linspace(-2, 2, 12, dtype=np.float32).reshape(4, 3)
    np.save(tmp_path / "x.npy", x)
    names = [str(tmp_path / name) for name in ("model", "x.npy", "y.npy", "g.npy")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", textwrap.dedent(_ELSEWHERE), *names]
    subprocess.run(command, cwd=tmp_path, env=environment, check=True, timeout=120)
    with ag.GradientTape() as tape:
        loss = ag.reduce_sum(model(ag.constant(x)) ** 2)
    np.testing.assert_allclose(np.load(names[2]), model(ag.constant(x)), rtol=1e-6)
    np.testing.assert_allclose(np.load(names[3]), tape.gradient(loss, model.layers[0].kernel), rtol=1e-5)


# --- functions -------------------------------------------------------------------------------------------------------


@ag.function
def polymorphic(x, training=True, scale=1.5):
    return x * scale if training else -x


def test_all_traces_are_kept(tmp_path):
    polymorphic(ag.constant([1.0, 2.0]))
    polymorphic(ag.constant(3), False)
    loaded = saved(module(f=polymorphic), tmp_path)
    np.testing.assert_array_equal(loaded.f(ag.constant([1.0, 2.0])), [1.5, 3.0])
    np.testing.assert_array_equal(loaded.f([1.0, 4.0]), [1.5, 6.0])
    assert int(loaded.f(ag.constant(3), training=False)) == -3
    assert int(loaded.f(ag.constant(3), False, 1.5)) == -3
    known, unknown = ag.constant([1.0, 2.0]), ag.constant([1.0, 2.0, 3.0])
    for arguments in ([unknown], [known, False], [known, True, 2.0]):
        with pytest.raises(ValueError, match=r"Could not find a trace of the function 'polymorphic'[^$]*float32"):
            loaded.f(*arguments)
    with pytest.raises(TypeError, match=r"polymorphic\(\) .*unexpected keyword"):
        loaded.f(ag.constant([1.0, 2.0]), other=3)


def test_traces_for_any_size(tmp_path):
    f = ag.function(lambda x: ag.reduce_sum(x, 0))
    f.get_concrete_function(ag.TensorSpec([None, 2], ag.float32))
    loaded = saved(module(f=f), tmp_path)
    for rows in (1, 5):
        np.testing.assert_array_equal(loaded.f(ag.ones([rows, 2])), [rows, rows])
    with pytest.raises(ValueError, match="Could not find a trace"):
        loaded.f(ag.ones([2, 3]))


def test_an_input_signature_is_kept(tmp_path):
    f = ag.function(lambda x, y: x + y, input_signature=[ag.TensorSpec([None]), ag.TensorSpec([])])
    loaded = saved(module(f=f), tmp_path)
    np.testing.assert_array_equal(loaded.f([1, 2], 3), [4, 5])
    with pytest.raises(TypeError, match="incompatible with input_signature"):
        loaded.f([[1.0]], 3)


def test_a_function_that_was_never_called(tmp_path):
    loaded = saved(module(f=ag.function(lambda x: x)), tmp_path)
    with pytest.raises(ValueError, match="has no traces, because it wasn't called before"):
        loaded.f(ag.constant(1.0))


def test_gradients_of_all_orders_and_tapes_in_functions(tmp_path):
    f = ag.function(lambda x: ag.reduce_sum(x**3))
    f.get_concrete_function(ag.TensorSpec([None], ag.float32))
    loaded = saved(module(f=f), tmp_path)
    x = ag.constant([1.0, 2.0])

    @ag.function
    def second(x):
        with ag.GradientTape() as outer:
            outer.watch(x)
            with ag.GradientTape() as inner:
                inner.watch(x)
                y = loaded.f(x)
            first = inner.gradient(y, x)
        return first, outer.gradient(first, x)

    first, second_ = second(x)
    np.testing.assert_allclose(first, [3, 12])
    np.testing.assert_allclose(second_, [6, 12])


def test_retraining(tmp_path):
    net = golden_models.Dense(ag.random.Generator.from_seed(1), 2)
    net.call = ag.function(lambda x: ag.reduce_sum((x @ net.kernel + net.bias) ** 2))
    net.call(ag.ones([4, 3]))
    loaded = saved(net, tmp_path)
    losses = []
    for _ in range(5):
        with ag.GradientTape() as tape:
            loss = loaded.call(ag.ones([4, 3]))
        variables = loaded.trainable_variables
        for variable, gradient in zip(variables, tape.gradient(loss, variables)):
            variable.assign_sub(0.01 * gradient)
        losses.append(float(loss))
    assert losses == sorted(losses, reverse=True) and losses[-1] < losses[0]
    np.testing.assert_array_equal(net.bias, [0, 0])  # the original has its own variables


def test_structures_of_arguments_and_results(tmp_path):
    Point = collections.namedtuple("Point", "x y")

    @ag.function
    def f(parts, *rest, **named):
        a, (b, c) = parts["a"], parts["b"]
        return Point(a + b, {"c": [c, None], "rest": rest, **named})

    def call(function):
        one = ag.constant(1.0)
        found = function({"a": one, "b": (one * 2, one * 3)}, one * 4, one * 5, key=one * 6)
        return found.x, found.y

    x, y = call(f)
    loaded = saved(module(f=f), tmp_path)
    found = call(loaded.f)
    assert float(found[0]) == float(x)
    ag.nest.assert_same_structure(found[1], y)
    assert [v if v is None else float(v) for v in ag.nest.flatten(found[1])] == [
        v if v is None else float(v) for v in ag.nest.flatten(y)
    ]


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2"])
def test_eight_bits(tmp_path, name):
    dtype = getattr(ag.dtypes.experimental, name)
    kept = ag.cast(ag.constant([1.5, 300.0]), dtype)
    model = module(v=ag.Variable(kept))
    model.f = ag.function(lambda x: (ag.cast(x, dtype), ag.cast(model.v, ag.float32) + ag.cast(kept, ag.float32)))
    x = ag.constant([0.3, -7.0])
    expected = model.f(x)
    loaded = saved(model, tmp_path / "m")
    assert loaded.v.dtype is dtype
    for found, wanted in zip(loaded.f(x), expected, strict=True):
        assert found.dtype is wanted.dtype
        np.testing.assert_array_equal(found.numpy(), wanted.numpy())


def test_ragged_and_sparse_arguments(tmp_path):
    @ag.function
    def ragged(x):
        return x * 2.0, ag.reduce_sum(x, axis=1)

    @ag.function
    def sparse(x):
        return ag.sparse.to_dense(x), x

    rows = ag.ragged.constant([[1.0, 2.0], [3.0]])
    few = ag.SparseTensor([[0, 1], [2, 0]], [5.0, 6.0], [3, 2])
    ragged(rows)
    ragged.get_concrete_function(ag.RaggedTensorSpec([None, None], ag.float32))
    sparse(few)
    loaded = saved(module(ragged=ragged, sparse=sparse), tmp_path)
    for given in (rows, ag.ragged.constant([[1.0], [], [4.0, 5.0]])):
        doubled, sums = loaded.ragged(given)
        assert doubled.to_list() == ragged(given)[0].to_list()
        np.testing.assert_array_equal(sums, ragged(given)[1])
    dense, same = loaded.sparse(few)
    np.testing.assert_array_equal(dense, ag.sparse.to_dense(few))
    assert isinstance(same, ag.SparseTensor)


def test_variables_and_modules_as_arguments(tmp_path):
    inner = module(v=ag.Variable(2.0))

    @ag.function
    def f(variable, holder, x):
        variable.assign_add(x)
        return variable * holder.v

    v = ag.Variable(1.0)
    f(v, inner, ag.constant(1.0))
    loaded = saved(module(f=f, v=v, inner=inner), tmp_path)
    assert float(loaded.f(loaded.v, loaded.inner, ag.constant(1.0))) == 6.0
    assert float(loaded.v) == 3.0 and float(v) == 2.0
    with pytest.raises(ValueError, match="Could not find a trace"):
        loaded.f(loaded.v, ag.Module(), ag.constant(1.0))


def test_a_trace_for_an_object_that_is_not_saved(tmp_path):
    f = ag.function(lambda thing, x: x * thing.factor)
    thing = type("Thing", (), {"factor": 2.0})()
    f(thing, ag.constant(1.0))
    with pytest.warns(UserWarning, match="A trace of '<lambda>' isn't saved"):
        loaded = saved(module(f=f), tmp_path)
    with pytest.raises(ValueError, match="has no traces, because"):
        loaded.f(thing, ag.constant(1.0))


def test_concrete_functions(tmp_path):
    concrete = ag.function(lambda x, n: x * n).get_concrete_function(ag.TensorSpec([2], ag.float32), 3)
    loaded = saved(module(f=concrete), tmp_path)
    np.testing.assert_array_equal(loaded.f(ag.constant([1.0, 2.0])), [3, 6])
    assert loaded.f.structured_input_signature == concrete.structured_input_signature


def test_tensors_from_outside_are_shared(tmp_path):
    table = ag.constant(np.arange(1000.0, dtype=np.float32))
    f, g = ag.function(lambda i: table[i]), ag.function(lambda i: table[i] + 1)
    f(ag.constant(3)), g(ag.constant(3))
    loaded = saved(module(f=f, g=g, table=table), tmp_path)
    assert float(loaded.f(ag.constant(3))) == 3.0 and float(loaded.g(ag.constant(3))) == 4.0
    (data,) = tmp_path.glob("data-*")
    assert data.stat().st_size < 6000


def test_variables_are_shared_and_may_be_out_of_reach(tmp_path):
    hidden, shown = ag.Variable(1.0), ag.Variable([1.0, 2.0], trainable=False, name="shown", shape=[None])

    @ag.function
    def f(x):
        hidden.assign_add(1.0)
        return x * hidden + shown

    f(ag.constant(1.0))
    hidden.assign(1.0)
    loaded = saved(module(f=f, a=shown, b=shown), tmp_path)
    assert loaded.a is loaded.b and not loaded.a.trainable and loaded.a.shape == [None] and loaded.a.name == "shown:0"
    gc.collect()
    np.testing.assert_array_equal(loaded.f(ag.constant(1.0)), [3, 4])
    np.testing.assert_array_equal(loaded.f(ag.constant(1.0)), [4, 5])
    assert float(hidden) == 1.0


def test_a_stale_trace_is_not_saved(tmp_path):
    settings = module(factor=2.0)
    f = ag.function(lambda x: x * settings.factor)
    f(ag.constant(1.0))
    settings.factor = 5.0
    f(ag.constant([1.0]))
    loaded = saved(module(f=f), tmp_path)
    with pytest.raises(ValueError, match="Could not find a trace"):
        loaded.f(ag.constant(1.0))
    np.testing.assert_array_equal(loaded.f(ag.constant([1.0])), [5.0])


def test_errors_name_the_line_of_the_source(tmp_path):
    @ag.function
    def f(x):
        if x < 0:
            raise KeyError(f"{x} is negative")
        ag.debugging.assert_less(x, 10.0)
        return x

    f(ag.constant(1.0))
    loaded = saved(module(f=f), tmp_path)
    with pytest.raises(KeyError, match="-1.0 is negative"):
        loaded.f(ag.constant(-1.0))
    with pytest.raises(ag.errors.InvalidArgumentError, match=r"test_saved_model.py:\d+"):
        loaded.f(ag.constant(11.0))


def test_run_eagerly(tmp_path):
    loaded = saved(module(f=ag.function(lambda x: x + 1, input_signature=[ag.TensorSpec([], ag.float32)])), tmp_path)
    ag.config.run_functions_eagerly(True)
    try:
        assert float(loaded.f(ag.constant(1.0))) == 2.0
    finally:
        ag.config.run_functions_eagerly(False)


LOGITS = [[1.0, 2.0], [3.0, 4.0]]
DRAWS = {
    "normal": lambda: ag.random.normal([2]),
    "uniform": lambda: ag.random.uniform([2], maxval=9, dtype=ag.int32),
    "truncated_normal": lambda: ag.random.truncated_normal([2]),
    "gamma": lambda: ag.random.gamma([2], LOGITS),
    "poisson": lambda: ag.random.poisson([2], LOGITS, dtype=ag.float64),
    "categorical": lambda: ag.random.categorical(LOGITS, 3),
    "shuffle": lambda: ag.random.shuffle(ag.range(9)),
    "dropout": lambda: ag.nn.dropout(LOGITS, 0.5),
}


@pytest.mark.parametrize("name", DRAWS)
def test_random_numbers_are_drawn_after_loading(name, tmp_path):
    ag.random.set_seed(3)
    try:
        function = ag.function(lambda: [DRAWS[name](), DRAWS[name]()])
        expected = function()
        loaded = saved(module(f=function), tmp_path)
        found = loaded.f()
        assert [each.dtype for each in found] == [each.dtype for each in expected]
        assert [each.shape for each in found] == [each.shape for each in expected]
    finally:
        ag.random.set_seed(None)


# --- signatures ------------------------------------------------------------------------------------------------------


class TestSignatures:
    def test_the_default_one(self, tmp_path):
        f = ag.function(lambda x: x * 2, input_signature=[ag.TensorSpec([None], ag.float32, name="numbers")])
        loaded = saved(module(f=f), tmp_path)
        signature = loaded.signatures["serving_default"]
        np.testing.assert_array_equal(signature(numbers=ag.constant([1.0]))["output_0"], [2])
        np.testing.assert_array_equal(signature(ag.constant([1.0]))["output_0"], [2])
        assert signature.structured_outputs == {"output_0": ag.TensorSpec([None], ag.float32, "output_0")}
        assert signature.structured_outputs["output_0"].name == "output_0"
        assert repr(signature) == "<signature serving_default(numbers: float32[None]) -> {output_0: float32[None]}>"

    def test_a_function_without_results_is_no_default(self, tmp_path):
        v = ag.Variable(1.0)
        mutate = ag.function(lambda x: (v.assign(x), None)[1], input_signature=[ag.TensorSpec([])])
        double = ag.function(lambda x: x * 2, input_signature=[ag.TensorSpec([])])
        assert not saved(module(v=v, mutate=mutate), tmp_path / "one").signatures
        found = saved(module(v=v, mutate=mutate, double=double), tmp_path / "two").signatures["serving_default"]
        assert float(found(ag.constant(2.0))["output_0"]) == 4

    def test_several(self, tmp_path):
        v = ag.Variable(1.0)

        @ag.function
        def classify(image, mask):
            v.assign_add(1.0)
            return {"scores": image * mask, "sum": ag.reduce_sum(image)}

        concrete = classify.get_concrete_function(ag.TensorSpec([2], name="image"), ag.TensorSpec([2], name="mask"))
        plain = ag.function(lambda: [ag.constant(1), ag.constant(2)])
        loaded = saved(module(v=v), tmp_path, {"classify": concrete, "plain": plain})
        assert set(loaded.signatures) == {"classify", "plain"} and len(loaded.signatures) == 2
        found = loaded.signatures["classify"](mask=ag.constant([1.0, 0.0]), image=ag.constant([3.0, 4.0]))
        np.testing.assert_array_equal(found["scores"], [3, 0])
        assert float(found["sum"]) == 7.0 and float(loaded.v) == 2.0 and float(v) == 1.0
        assert {k: int(t) for k, t in loaded.signatures["plain"]().items()} == {"output_0": 1, "output_1": 2}
        one = ag.constant([1.0, 0.0])
        for arguments, named in (((one, one), {}), ((), {"image": one}), ((), {"x": one})):
            with pytest.raises(TypeError, match="takes keyword arguments only: image, mask"):
                loaded.signatures["classify"](*arguments, **named)
        with pytest.raises(TypeError):
            loaded.signatures["classify"](image=ag.constant([1, 2]), mask=ag.constant([1.0, 0.0]))

    @pytest.mark.parametrize(
        ("make", "says"),
        [
            (lambda: ag.function(lambda x: x), "has no input signature"),
            (lambda: lambda x: x, "must be an ag.function"),
            (lambda: ag.function(lambda: [[ag.constant(1)]]), "must return a tensor"),
            (lambda: {3: ag.function(lambda: ag.constant(1))}, "must be a string"),
        ],
    )
    def test_what_is_none(self, tmp_path, make, says):
        with pytest.raises(ValueError, match=says):
            ag.saved_model.save(ag.Module(), tmp_path, make())


# --- what can't be saved ---------------------------------------------------------------------------------------------


def test_python_in_functions(tmp_path):
    f = ag.function(lambda x: ag.py_function(lambda y: y, [x], ag.float32))
    f(ag.constant(1.0))
    with pytest.raises(ag.errors.UnimplementedError, match=r"calls Python code.*test_saved_model.py:"):
        ag.saved_model.save(module(f=f), tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("thing", [None, 3, "x", len, lambda x: x, ag.Module])
def test_what_holds_nothing_is_no_model(thing, tmp_path):
    with pytest.raises(TypeError, match="takes an object that holds functions and variables"):
        ag.saved_model.save(thing, tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_in_a_traced_function(tmp_path):
    with pytest.raises(RuntimeError, match="can't: call it outside"):
        ag.function(lambda: ag.saved_model.save(ag.Module(), tmp_path))()
    with pytest.raises(RuntimeError, match="can't: call it outside"):
        ag.function(lambda: ag.saved_model.load(tmp_path))()


def test_a_missing_asset(tmp_path):
    with pytest.raises(FileNotFoundError):
        ag.saved_model.Asset(tmp_path / "nothing")


def test_keys_that_are_neither_texts_nor_numbers(tmp_path):
    with pytest.raises(ag.errors.InvalidArgumentError, match="its keys must be strings or ints"):
        ag.saved_model.save(module(d={(1, 2): ag.Variable(1.0)}), tmp_path)


# --- objects and files -----------------------------------------------------------------------------------------------


def test_roots_of_all_kinds(tmp_path):
    v = ag.Variable(1.0)
    loaded = saved([v, {"a": v, 3: (v,)}], tmp_path / "list")
    assert loaded[0] is loaded[1]["a"] is loaded[1][3][0]
    assert float(saved(v, tmp_path / "variable")) == 1.0
    f = ag.function(lambda x: x + v, input_signature=[ag.TensorSpec([], ag.float32)])
    assert float(saved(f, tmp_path / "function")(1.0)) == 2.0


def test_lists_and_tuples_with_other_things_in_them(tmp_path):
    Pair = collections.namedtuple("Pair", "number variable")
    v = ag.Variable(1.0)
    loaded = saved(module(a=["text", v, 3], b=(None, [v]), c=Pair(3, v), d=[1, 2]), tmp_path)
    assert loaded.a == [None, loaded.a[1]] and loaded.b[0] is None and loaded.b[1][0] is loaded.a[1]
    assert loaded.c.number is None and loaded.c.variable is loaded.a[1] and loaded.d == []


def test_circles(tmp_path):
    one, other = module(v=ag.Variable(1.0)), ag.Module()
    one.other, other.one, other.all = other, one, [one, other]
    loaded = saved(one, tmp_path)
    assert loaded.other.one is loaded and loaded.other.all[1] is loaded.other
    assert [float(v) for v in loaded.variables] == [1.0]


def test_checkpoints_of_loaded_models(tmp_path, words):
    model = golden_models.make(words)
    path = ag.train.Checkpoint(model).write(tmp_path / "checkpoint")
    loaded = saved(model, tmp_path / "model")
    for variable in loaded.layers[0].variables:
        variable.assign(ag.zeros_like(variable))
    ag.train.Checkpoint(loaded).read(path).assert_existing_objects_matched()
    np.testing.assert_array_equal(loaded.layers[0].kernel, model.layers[0].kernel)


def test_saving_again_replaces_everything(tmp_path, words):
    model = module(words=ag.saved_model.Asset(words), v=ag.Variable(1.0))
    ag.saved_model.save(model, tmp_path / "model")
    words.write_text("other words")
    model.words, model.v = ag.saved_model.Asset(words), ag.Variable(2.0)
    loaded = saved(model, tmp_path / "model")
    assert float(loaded.v) == 2.0 and Path(loaded.words).read_text() == "other words"
    names = sorted(path.name for path in (tmp_path / "model").rglob("*") if path.is_file())
    assert len(names) == 3 and names[-1] == "words_1.txt"
    loaded = saved(loaded, tmp_path / "model")  # over the files that it was loaded from
    assert float(loaded.v) == 2.0 and Path(loaded.words).read_text() == "other words"


def test_where_there_is_none(tmp_path):
    assert not ag.saved_model.contains_saved_model(tmp_path)
    with pytest.raises(ag.errors.NotFoundError, match=r"There is no saved model in .*saved_model.json is missing"):
        ag.saved_model.load(tmp_path)
    ag.saved_model.save(ag.Module(), tmp_path)
    assert ag.saved_model.contains_saved_model(tmp_path)


# Ends as by kill -9 at the N-th call that changes files, for each N: the folder holds the old model or the new one.
_ENDS_ANYWHERE = """
    import os, sys
    import autograph as ag

    def model(value):
        made = ag.Module()
        made.v = ag.Variable([value] * 1000)
        made.f = ag.function(lambda x: x * value, input_signature=[ag.TensorSpec([])])
        with open(sys.argv[1] + ".txt", "w") as file:
            file.write(str(value))
        made.asset = ag.saved_model.Asset(sys.argv[1] + ".txt")
        made.f.get_concrete_function()
        return made

    def exiting(name, left):
        function = getattr(os, name)
        def call(*args, **kwargs):
            left[0] -= 1
            if left[0] < 0:
                os._exit(9)
            return function(*args, **kwargs)
        setattr(os, name, call)

    folder = sys.argv[1]
    ag.saved_model.save(model(1.0), folder)
    for number in range(1000):
        new = model(number + 2.0)
        pid = os.fork()
        if pid == 0:
            left = [number]
            for name in ("replace", "fsync", "unlink", "open", "mkdir"):
                exiting(name, left)
            ag.saved_model.save(new, folder)
            os._exit(0)
        _, status = os.waitpid(pid, 0)
        found = ag.saved_model.load(folder)
        value = float(found.v[0])
        assert set(found.v.numpy()) == {value} and float(found.f(1.0)) == value == float(open(found.asset).read())
        if status == 0:
            assert value == number + 2.0
            print("points", number)
            break
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_ending_at_any_change_of_files_leaves_a_whole_model(tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", textwrap.dedent(_ENDS_ANYWHERE), str(tmp_path / "model")]
    done = subprocess.run(command, cwd=tmp_path, env=environment, timeout=120, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[1]) > 8
