"""`train.Checkpoint`: what is saved is restored, by the graph of objects, now or when the objects come to be."""

from __future__ import annotations

import gc
import itertools
import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

import autograph as ag
from autograph.saving import restoring

VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"


class Dense(ag.Module):
    def __init__(self, size):
        super().__init__()
        self.kernel = ag.Variable(ag.zeros([size, size]), name="kernel")
        self.bias = ag.Variable(ag.zeros([size]), name="bias")


class Net(ag.Module):
    def __init__(self):
        super().__init__()
        self.layers = [Dense(2), Dense(3)]
        self.scale = ag.Variable(1.0)


def fill(module, value):
    for number, variable in enumerate(module.variables):
        variable.assign(ag.ones_like(variable) * (value + number))


def numbers(module):
    return [float(v.numpy().max()) for v in module.variables]


class Lazy(ag.Module):
    """Makes its variable when it is called."""

    def __init__(self):
        super().__init__()
        self.w = None

    @ag.function
    def __call__(self, x):
        if self.w is None:
            self.w = ag.Variable(ag.zeros_like(x))
        return x + self.w


class Plain:
    """Not a module."""

    def __init__(self, value):
        self.variable = ag.Variable(value)
        self.note = "not saved"


def test_saves_and_restores_a_module(tmp_path):
    net = Net()
    fill(net, 5.0)
    path = ag.train.Checkpoint(net=net).save(tmp_path / "ckpt")
    assert path == str(tmp_path / "ckpt-1")
    other = Net()
    ag.train.Checkpoint(net=other).restore(path).assert_consumed().expect_partial()
    assert numbers(other) == numbers(net)


def test_the_graph_of_objects_decides_and_names_do_not(tmp_path):
    path = ag.train.Checkpoint(a=ag.Variable(1.0, name="x"), b=ag.Variable(2.0, name="x")).write(tmp_path / "c")
    b, a = ag.Variable(0.0, name="first"), ag.Variable(0.0, name="second")
    ag.train.Checkpoint(a=a, b=b).read(path).assert_consumed()
    assert (float(a), float(b)) == (1.0, 2.0)


@pytest.mark.parametrize("dtype", [d for d in (
    ag.bool, ag.int8, ag.int16, ag.int32, ag.int64, ag.uint8, ag.uint16, ag.uint32, ag.uint64, ag.bfloat16, ag.float16,
    ag.float32, ag.float64, ag.complex64, ag.complex128, ag.string, ag.dtypes.experimental.float8_e4m3fn,
    ag.dtypes.experimental.float8_e5m2,
)], ids=lambda d: d.name)  # fmt: skip
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 3), (2, 3)], ids=str)
def test_every_dtype_and_shape(tmp_path, dtype, shape):
    count = int(np.prod(shape))
    values = np.arange(count).reshape(shape)
    if dtype is ag.string:
        array = np.array([b"\0\xff" * i for i in range(count)], object).reshape(shape)
        value = ag.constant(array, ag.string, shape)
    else:
        value = ag.cast(ag.constant(values), dtype)
        if dtype.is_complex:
            value = value * (1 + 2j)
    path = ag.train.Checkpoint(v=ag.Variable(value)).write(tmp_path / "c")
    found = ag.Variable(ag.zeros_like(value))
    ag.train.Checkpoint(v=found).read(path).assert_consumed()
    assert found.dtype is dtype
    np.testing.assert_array_equal(found.numpy(), value.numpy())
    read = ag.train.load_variable(path, "v" + VALUE)
    np.testing.assert_array_equal(read, value.numpy())
    assert np.asarray(read).dtype == np.asarray(value.numpy()).dtype


def test_other_libraries_read_the_values(tmp_path):
    ag.train.Checkpoint(v=ag.Variable([1.0, 2.0])).write(tmp_path / "c")
    (shard,) = tmp_path.glob("*.safetensors")
    np.testing.assert_array_equal(load_file(shard)["v" + VALUE], [1, 2])


def test_lists_dictionaries_tuples_and_objects(tmp_path):
    def make(value):
        shared = ag.Variable(value + 4)
        return ag.train.Checkpoint(
            many=[ag.Variable(value), {"k": (ag.Variable(value + 1), Plain(value + 2))}],
            named={"a/b": ag.Variable(value + 3), "a.b": shared},
            again=shared,
        )

    saved, found = make(1.0), make(0.0)
    found.restore(saved.save(tmp_path / "c")).assert_consumed()
    assert float(found.many[0]) == 1.0
    assert float(found.many[1]["k"][0]) == 2.0
    assert float(found.many[1]["k"][1].variable) == 3.0
    assert float(found.named["a/b"]) == 4.0
    assert float(found.named["a.b"]) == 5.0 and found.again is found.named["a.b"]
    assert "named/a.Sb" + VALUE in dict(ag.train.list_variables(tmp_path))


def test_cycles(tmp_path):
    net = Net()
    net.itself, net.layers[0].owner = net, net
    fill(net, 3.0)
    other = Net()
    other.itself, other.layers[0].owner = other, other
    ag.train.Checkpoint(other).restore(ag.train.Checkpoint(net).save(tmp_path / "c")).assert_consumed()
    assert numbers(other) == numbers(net)


def test_one_saved_object_for_two_of_the_program(tmp_path):
    shared = ag.Variable(3.0)
    path = ag.train.Checkpoint(a=shared, b=shared).write(tmp_path / "c")
    a, b = ag.Variable(0.0), ag.Variable(0.0)
    with pytest.warns(UserWarning, match="Inconsistent references"):
        ag.train.Checkpoint(a=a, b=b).read(path)
    assert (float(a), float(b)) == (3.0, 0.0)


def test_two_saved_objects_for_one_of_the_program(tmp_path):
    path = ag.train.Checkpoint(a=ag.Variable(3.0), b=ag.Variable(4.0)).write(tmp_path / "c")
    one = ag.Variable(0.0)
    ag.train.Checkpoint(a=one, b=one).read(path).assert_consumed()
    assert float(one) == 3.0


class TestRoot:
    def test_what_the_root_holds_is_saved_under_its_own_names(self, tmp_path):
        net = Net()
        fill(net, 5.0)
        path = ag.train.Checkpoint(net, step=ag.Variable(7)).save(tmp_path / "c")
        assert {"scale" + VALUE, "step" + VALUE, "layers/1/bias" + VALUE} < dict(ag.train.list_variables(path)).keys()
        other, step = Net(), ag.Variable(0)
        ag.train.Checkpoint(layers=other.layers, scale=other.scale, step=step).restore(path).assert_consumed()
        assert numbers(other) == numbers(net) and int(step) == 7

    def test_a_name_of_the_root_is_taken(self):
        with pytest.raises(ValueError, match="root.scale already exists"):
            ag.train.Checkpoint(Net(), scale=ag.Variable(1.0))

    def test_the_root_waits_though_the_checkpoint_is_gone(self, tmp_path):
        net = ag.Module()
        net.late = ag.Variable(5.0)
        path = ag.train.Checkpoint(net).write(tmp_path / "c")
        other = ag.Module()
        ag.train.Checkpoint(other).read(path).expect_partial()
        gc.collect()
        other.late = ag.Variable(0.0)
        assert float(other.late) == 5.0


class TestLater:
    """Restore on create: a value waits for the attribute."""

    @pytest.fixture()
    def path(self, tmp_path):
        net = Net()
        fill(net, 5.0)
        return ag.train.Checkpoint(net=net, extra=ag.Variable(1.0)).save(tmp_path / "ckpt")

    def test_an_attribute_that_is_set_after_restoring(self, path):
        net = ag.Module()
        status = ag.train.Checkpoint(net=net).restore(path).expect_partial()
        net.scale = ag.Variable(0.0)
        assert float(net.scale) == 5.0
        net.layers = [Dense(2), Dense(3)]
        assert float(net.layers[1].bias[0]) == 8.0
        with pytest.raises(AssertionError, match=r"Unresolved object in checkpoint \(root\).extra"):
            status.assert_consumed()

    def test_a_checkpoints_list_and_dictionary(self, tmp_path):
        save = ag.train.Checkpoint()
        save.listed = [ag.Variable(1.0)]
        save.listed.append(ag.Variable(2.0))
        save.mapped = {"one": save.listed[0]}
        save.mapped["two"] = save.listed[1]
        path = save.save(tmp_path / "tf_list_example")
        restore = ag.train.Checkpoint()
        two = ag.Variable(0.0)
        restore.mapped = {"two": two}
        status = restore.restore(path)
        assert float(two) == 2.0
        restore.listed = []
        assert repr(restore.listed) == "ListWrapper([])"
        one = ag.Variable(0.0)
        restore.listed.append(one)
        assert float(one) == 1.0
        restore.listed += [two]
        restore.mapped["one"] = one
        status.assert_consumed()
        path = restore.save(tmp_path / "again")
        assert "listed/1" + VALUE not in dict(ag.train.list_variables(path))  # it is mapped/two

    def test_a_list_that_is_changed_behind_a_checkpoint(self, path):
        waiting = ag.train.Checkpoint()
        waiting.restore(path).expect_partial()
        source = []
        waiting.more = source
        source.append(ag.Variable(1.0))
        with pytest.raises(ValueError, match="changed directly"):
            waiting.write(path)

    def test_a_modules_list_is_restored_when_the_status_is_asked(self, path):
        net = ag.Module()
        net.layers = []
        status = ag.train.Checkpoint(net=net).restore(path).expect_partial()
        net.layers.append(Dense(2))
        status.assert_existing_objects_matched()
        assert float(net.layers[0].bias[0]) == 6.0

    def test_a_variable_that_a_functions_first_call_makes(self, tmp_path):
        layer = Lazy()
        layer(ag.constant([1.0, 2.0]))
        layer.w.assign([10.0, 20.0])
        path = ag.train.Checkpoint(layer=layer).save(tmp_path / "c")
        other = Lazy()
        status = ag.train.Checkpoint(layer=other).restore(path)
        np.testing.assert_array_equal(other(ag.constant([1.0, 2.0])), [11, 22])
        status.assert_consumed()

    def test_modules_are_watched_only_while_values_wait(self, path):
        net = ag.Module()
        ag.train.Checkpoint(net=net).restore(path).expect_partial()
        assert "__setattr__" in vars(ag.Module)
        del net
        gc.collect()
        assert "__setattr__" not in vars(ag.Module)
        assert not restoring._waiting

    def test_a_wrong_shape_later(self, path):
        net = ag.Module()
        ag.train.Checkpoint(net=net).restore(path).expect_partial()
        with pytest.raises(ValueError, match="incompatible tensor with shape"):
            net.scale = ag.Variable([0.0, 0.0])


class TestStatus:
    @pytest.fixture()
    def path(self, tmp_path):
        return ag.train.Checkpoint(a=ag.Variable(1.0), b=ag.Variable(2.0)).write(tmp_path / "c")

    def test_something_new_in_the_program(self, path):
        status = ag.train.Checkpoint(a=ag.Variable(0.0), b=ag.Variable(0.0), c=ag.Variable(0.0)).read(path)
        for check in (status.assert_consumed, status.assert_existing_objects_matched):
            with pytest.raises(AssertionError, match=r"Found 1 Python objects .*\(root\).c"):
                check()
        status.assert_nontrivial_match()

    def test_nothing_matches(self, path):
        status = ag.train.Checkpoint(x=ag.Variable(0.0)).read(path).expect_partial()
        with pytest.raises(AssertionError, match="Nothing except the root object matched"):
            status.assert_nontrivial_match()
        status = ag.train.Checkpoint().read(path).expect_partial()
        with pytest.raises(AssertionError, match="Nothing to load"):
            status.assert_nontrivial_match()

    def test_what_is_never_restored_is_said_at_the_users_line(self, path):
        with pytest.warns(UserWarning, match=r"1 values of the checkpoint .*: \(root\)\.b\.") as caught:
            ag.train.Checkpoint(a=ag.Variable(0.0)).read(path)
            gc.collect()
        assert caught[0].filename == __file__

    def test_silence(self, path):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            ag.train.Checkpoint(a=ag.Variable(0.0)).read(path).expect_partial()
            ag.train.Checkpoint(a=ag.Variable(0.0), b=ag.Variable(0.0)).read(path)
            gc.collect()

    def test_restoring_nothing(self):
        status = ag.train.Checkpoint(a=ag.Variable(0.0)).restore(None)
        with pytest.raises(AssertionError, match="No checkpoint specified"):
            status.assert_consumed()
        assert status.expect_partial() is status


class TestErrors:
    def test_nothing_changes_when_one_value_does_not_fit(self, tmp_path):
        path = ag.train.Checkpoint(a=ag.Variable(1.0), b=ag.Variable([1.0, 2.0])).write(tmp_path / "c")
        a = ag.Variable(0.0)
        with pytest.raises(ValueError, match=r"shape \(2,\) .* variable with shape \(3,\).*\(root\).b"):
            ag.train.Checkpoint(a=a, b=ag.Variable([0.0] * 3)).read(path)
        with pytest.raises(ag.errors.InvalidArgumentError, match="is int32, but the saved value is float32"):
            ag.train.Checkpoint(a=a, b=ag.Variable([0, 0])).read(path)
        assert float(a) == 0.0

    def test_no_such_checkpoint(self, tmp_path):
        with pytest.raises(ag.errors.NotFoundError, match="double-check that the path is correct"):
            ag.train.Checkpoint().restore(tmp_path / "nothing")
        with pytest.raises(ag.errors.NotFoundError, match="it is a folder"):
            ag.train.Checkpoint().restore(tmp_path)
        with pytest.raises(ValueError, match="Couldn't find 'checkpoint' file"):
            ag.train.load_checkpoint(tmp_path)

    @pytest.mark.parametrize("value", [3, object(), "text", ag.constant(1.0), None, np.zeros(2), len])
    def test_what_holds_no_values(self, value):
        with pytest.raises(ValueError, match="was expecting a to be"):
            ag.train.Checkpoint(a=value)

    def test_keys_that_are_not_strings(self, tmp_path):
        with pytest.raises(ValueError, match="key that isn't a string, 1"):
            ag.train.Checkpoint(a={1: ag.Variable(1.0)}).write(tmp_path / "c")
        ag.train.Checkpoint(a={1: "no variable"}).write(tmp_path / "c")

    def test_in_a_traced_function(self, tmp_path):
        checkpoint = ag.train.Checkpoint(a=ag.Variable(1.0))
        with pytest.raises(RuntimeError, match="a traced function can't"):
            ag.function(lambda: checkpoint.save(tmp_path / "c"))()


class TestIterators:
    @pytest.mark.parametrize(
        "make",
        [
            lambda: ag.data.Dataset.range(20),
            lambda: ag.data.Dataset.range(20).shuffle(7),
            lambda: ag.data.Dataset.range(20).shuffle(50, seed=3).batch(2, drop_remainder=True).unbatch(),
            lambda: ag.data.Dataset.range(6).shuffle(6).repeat(),
            lambda: ag.data.Dataset.range(20).shuffle(5, reshuffle_each_iteration=False).map(lambda x: x * 2),
            lambda: ag.data.Dataset.zip((ag.data.Dataset.range(20).shuffle(3), ag.data.Dataset.range(20).shuffle(4))),
        ],
    )
    @pytest.mark.parametrize("taken", [0, 1, 9])
    def test_goes_on_where_it_was(self, tmp_path, make, taken):
        def some(iterator, count):
            found = [element for element, _ in zip(iterator, range(count))]
            return [[int(part) for part in ag.nest.flatten(element)] for element in found]

        iterator = iter(make())
        some(iterator, taken)
        path = ag.train.Checkpoint(it=iterator).save(tmp_path / "c")
        expected = some(iterator, 8)
        other = iter(make())
        some(other, 3)
        ag.train.Checkpoint(it=other).restore(path).assert_consumed()
        assert some(other, 8) == expected

    def test_the_next_iteration_of_a_shuffle(self, tmp_path):
        first = ag.data.Dataset.range(20).shuffle(20)
        iterator = iter(first)
        path = ag.train.Checkpoint(it=iterator).save(tmp_path / "c")
        list(iterator)
        expected = [int(x) for x in first]
        second = ag.data.Dataset.range(20).shuffle(20)
        iterator = iter(second)
        ag.train.Checkpoint(it=iterator).restore(path).assert_consumed()
        list(iterator)
        assert [int(x) for x in second] == expected

    def test_an_iterator_that_a_traced_loop_takes_from(self, tmp_path):
        @ag.function
        def total(iterator):
            result = ag.constant(0, ag.int64)
            for _ in ag.range(3):
                result += next(iterator)
            return result

        iterator = iter(ag.data.Dataset.range(20))
        assert int(total(iterator)) == 3
        path = ag.train.Checkpoint(it=iterator).save(tmp_path / "c")
        other = iter(ag.data.Dataset.range(20))
        ag.train.Checkpoint(it=other).restore(path).assert_consumed()
        assert int(next(other)) == 3

    def test_another_dataset(self, tmp_path):
        path = ag.train.Checkpoint(it=iter(ag.data.Dataset.range(5))).save(tmp_path / "c")
        with pytest.raises(ag.errors.InvalidArgumentError, match="has 1 shuffles"):
            ag.train.Checkpoint(it=iter(ag.data.Dataset.range(5).shuffle(2))).restore(path)
        with pytest.raises(ag.errors.InvalidArgumentError, match="is a variable, but the saved object is an iterator"):
            ag.train.Checkpoint(it=ag.Variable(0)).restore(path)


def test_random_generators_go_on(tmp_path):
    generator = ag.random.Generator.from_seed(5)
    generator.normal([3])
    path = ag.train.Checkpoint(g=generator).save(tmp_path / "c")
    expected = generator.normal([4])
    other = ag.random.Generator.from_seed(6)
    ag.train.Checkpoint(g=other).restore(path).assert_consumed()
    np.testing.assert_array_equal(other.normal([4]), expected)


def test_objects_that_say_what_they_hold(tmp_path):
    class Foreign:
        __slots__ = ("weight", "__weakref__")

        def __init__(self):
            self.weight = ag.Variable(1.0)

        def _trackable_children(self, save_type="checkpoint"):
            return {"w": self.weight}

    saved, found = Foreign(), Foreign()
    saved.weight.assign(4.0)
    path = ag.train.Checkpoint(f=saved).save(tmp_path / "c")
    assert "f/w" + VALUE in dict(ag.train.list_variables(path))
    ag.train.Checkpoint(f=found).restore(path).assert_consumed()
    assert float(found.weight) == 4.0


def test_training_goes_on_as_if_it_had_not_stopped(tmp_path):
    class Line(ag.Module):
        def __init__(self):
            super().__init__()
            self.w, self.b = ag.Variable([[0.5]]), ag.Variable([0.0])
            self.velocity = {v: ag.Variable(ag.zeros_like(getattr(self, v))) for v in ("w", "b")}

        @ag.function
        def step(self, x, y):
            with ag.GradientTape() as tape:
                loss = ag.reduce_mean((x @ self.w + self.b - y) ** 2)
            for name, gradient in zip("wb", tape.gradient(loss, [self.w, self.b])):
                self.velocity[name].assign(0.9 * self.velocity[name] + gradient)
                getattr(self, name).assign_sub(0.02 * self.velocity[name])
            return loss

    def data():
        x = ag.constant([[1.0], [2.0], [3.0], [4.0]])
        return ag.data.Dataset.from_tensor_slices((x, 3 * x + 1)).shuffle(4, seed=1).repeat().batch(2)

    def run(line, iterator, count):
        return [float(line.step(*next(iterator))) for _ in range(count)]

    line, iterator = Line(), iter(data())
    manager = ag.train.CheckpointManager(ag.train.Checkpoint(net=line, it=iterator), tmp_path, max_to_keep=3)
    assert manager.restore_or_initialize() is None
    run(line, iterator, 5)
    manager.save()
    expected = run(line, iterator, 5)
    line, iterator = Line(), iter(data())
    manager = ag.train.CheckpointManager(ag.train.Checkpoint(net=line, it=iterator), tmp_path, max_to_keep=3)
    assert manager.restore_or_initialize() == str(tmp_path / "ckpt-1")
    assert run(line, iterator, 5) == expected


# --- tables ----------------------------------------------------------------------------------------------------------


def tables():
    lookup = ag.lookup.experimental
    vectors = lookup.MutableHashTable(ag.int64, ag.float32, [0.0, 0.0])
    dense = lookup.DenseHashTable(ag.int64, ag.int32, -1, empty_key=-1, deleted_key=-2)
    unsaved = lookup.MutableHashTable(ag.string, ag.int64, 0, checkpoint=False)
    return {"words": lookup.MutableHashTable(ag.string, ag.int64, 0), "vectors": vectors, "dense": dense, "un": unsaved}


def test_tables_are_saved_and_restored(tmp_path):
    made = tables()
    made["words"].insert(["a", "\u00e4"], [3, 4])
    made["vectors"].insert([7], [[1.0, 2.0]])
    made["un"].insert(["x"], [1])
    path = ag.train.Checkpoint(**made, step=ag.Variable(2)).save(tmp_path / "c")
    names = [name for name, _ in ag.train.list_variables(path)]
    assert [name for name in names if name.startswith("words")] == [
        "words/.ATTRIBUTES/table-keys", "words/.ATTRIBUTES/table-values"
    ]  # fmt: skip
    assert not [name for name in names if name.startswith("un")]
    others = tables()
    others["words"].insert(["b"], [9])
    others["dense"].insert([5], [5])
    others["un"].insert(["y"], [8])
    step = ag.Variable(0)
    ag.train.Checkpoint(**others, step=step).restore(path).assert_consumed()
    assert others["words"].lookup(["a", "\u00e4", "b"]).numpy().tolist() == [3, 4, 0]
    assert others["vectors"].lookup([7, 8]).numpy().tolist() == [[1.0, 2.0], [0.0, 0.0]]
    assert int(others["dense"].size()) == 0
    assert others["un"].lookup(["y"]).numpy().tolist() == [8]
    # In a function that was traced before.
    read = ag.function(lambda: others["words"].lookup("a"))
    assert int(read()) == 3
    made["words"].insert("a", 30)
    ag.train.Checkpoint(**made, step=step).write(tmp_path / "d")
    ag.train.Checkpoint(**others, step=step).read(tmp_path / "d")
    assert int(read()) == 30


def test_a_table_waits_for_its_holder(tmp_path):
    made = tables()
    made["words"].insert(["a"], [3])
    path = ag.train.Checkpoint(table=made["words"]).save(tmp_path / "c")
    later = ag.train.Checkpoint()
    status = later.restore(path)
    later.table = tables()["words"]
    assert int(later.table.lookup("a")) == 3
    status.assert_consumed()


def test_another_table_is_refused(tmp_path):
    path = ag.train.Checkpoint(table=tables()["words"]).save(tmp_path / "c")
    with pytest.raises(ag.errors.InvalidArgumentError, match="maps int64 to int32, but the saved one maps string"):
        ag.train.Checkpoint(table=tables()["dense"]).restore(path)
    with pytest.raises(ag.errors.InvalidArgumentError, match="is a variable, but the saved object is a table"):
        ag.train.Checkpoint(table=ag.Variable(1.0)).restore(path)
    path = ag.train.Checkpoint(table=tables()["vectors"]).save(tmp_path / "d")
    scalars = ag.lookup.experimental.MutableHashTable(ag.int64, ag.float32, 0.0)
    with pytest.raises(ValueError, match=r"values of shape \(\), but the saved one has"):
        ag.train.Checkpoint(table=scalars).restore(path)


def test_the_version_says_whether_there_are_tables(tmp_path):
    plain = ag.train.Checkpoint(v=ag.Variable(1.0)).save(tmp_path / "plain")
    table = ag.train.Checkpoint(t=tables()["words"]).save(tmp_path / "table")
    versions = [json.loads(Path(f"{path}.index").read_text())["version"] for path in (plain, table)]
    assert versions == [1, 2]


# --- lists of modules ------------------------------------------------------------------------------------------------


class Growing(ag.Module):
    def __init__(self):
        super().__init__()
        self.layers = []
        self.named = {}

    def __call__(self, x):
        for layer in self.layers:
            x = x * layer
        return x


def grown(values):
    module = Growing()
    module.layers += [ag.Variable(value) for value in values]
    module.named["a"] = [ag.Variable(7.0)]
    return module


def test_what_is_appended_to_a_module_s_list_is_restored_before_it_is_used(tmp_path):
    path = ag.train.Checkpoint(model=grown([2.0, 3.0])).save(tmp_path / "c")
    module = Growing()
    layers = module.layers
    status = ag.train.Checkpoint(model=module).restore(path)
    module.layers.append(ag.Variable(1.0))
    assert float(module(10.0)) == 20.0
    layers.append(ag.Variable(1.0))
    assert module.layers is layers
    assert float(module(10.0)) == 60.0
    # A change of one's own stays.
    layers[0].assign(5.0)
    assert float(module(10.0)) == 150.0
    inner = []
    module.named["a"] = inner
    assert module.named["a"] is inner
    inner.append(ag.Variable(0.0))
    assert [float(v) for v in module.named["a"]] == [7.0]
    status.assert_consumed()
    assert "__getattribute__" not in vars(ag.Module)
    assert not restoring._contents


def test_modules_are_not_watched_when_nothing_waits(tmp_path):
    path = ag.train.Checkpoint(model=grown([2.0])).save(tmp_path / "c")
    ag.train.Checkpoint(model=grown([1.0])).restore(path).assert_consumed()
    assert "__getattribute__" not in vars(ag.Module)


def test_a_module_with_attributes_of_its_own_making_is_watched_too(tmp_path):
    class Odd(Growing):
        def __getattr__(self, name):
            if name == "made":
                return 3
            raise AttributeError(name)

    path = ag.train.Checkpoint(model=grown([2.0])).save(tmp_path / "c")
    module = Odd()
    ag.train.Checkpoint(model=module).restore(path).expect_partial()
    assert module.made == 3
    assert not hasattr(module, "other")
    module.layers.append(ag.Variable(1.0))
    assert float(module(1.0)) == 2.0


def test_checkpoints_are_given_as_they_come(tmp_path, monkeypatch):
    """A program that evaluates looks into the folder, in which another one saves while it pauses."""
    model = ag.train.Checkpoint(v=ag.Variable(0.0))
    saves = iter(range(2))
    pauses = []

    def pause(seconds):
        pauses.append(seconds)
        for _ in itertools.islice(saves, 1):
            model.save(tmp_path / "c")

    monkeypatch.setattr("autograph.saving.state.time.sleep", pause)
    asked = []

    def ask():
        asked.append(1)
        return len(asked) == 2

    assert list(ag.train.checkpoints_iterator(tmp_path, timeout=0.5, timeout_fn=ask)) == []  # no time for a pause
    assert len(asked) == 2
    found = []
    for path in ag.train.checkpoints_iterator(tmp_path, timeout=3600):
        found.append(path)
        if len(found) == 2:
            break
    assert [path.rpartition("-")[2] for path in found] == ["1", "2"]
    assert set(pauses) >= {1.0}
