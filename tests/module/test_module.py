"""`ag.Module`: what it finds among its attributes, in which order, and how it is named."""

import collections
import gc
import weakref

import pytest

import autograph as ag


class Dense(ag.Module):
    def __init__(self, size, name=None):
        super().__init__(name=name)
        self.w = ag.Variable(ag.ones([2, size]), name="w")
        self.b = ag.Variable(ag.zeros([size]), name="b")

    @ag.function
    def __call__(self, x):
        return x @ self.w + self.b


def names(variables):
    return [v.name for v in variables]


def test_variables_are_found_in_structures_own_first():
    class Holder(ag.Module):
        def __init__(self):
            self.z = ag.Variable(1.0, name="z")
            self.layers = {"b": Dense(3), "a": [Dense(4)]}
            self.pair = collections.namedtuple("Pair", "left right")(ag.Variable(1.0, name="left"), 3)
            self.mixed = {1: ag.Variable(1.0, name="one"), "k": ag.Variable(2.0, name="two")}
            self.count = ag.Variable(0, trainable=False, name="count")

    holder = Holder()
    own, nested = ["count:0", "one:0", "two:0", "left:0", "z:0"], ["b:0", "w:0"]
    assert names(holder.variables) == own + nested + nested
    assert [v.shape[-1] for v in holder.variables[5:]] == [4, 4, 3, 3]
    assert names(holder.non_trainable_variables) == ["count:0"]
    assert names(holder.trainable_variables) == own[1:] + nested + nested
    assert [m.w.shape[1] for m in holder.submodules] == [4, 3]


def test_shared_and_circular_modules_are_found_once():
    inner, outer = Dense(2), ag.Module(name="outer")
    outer.first = outer.second = inner
    inner.parent = outer
    assert len(outer.variables) == 2
    assert outer.submodules == (inner,)
    assert inner.submodules == (outer,)


def test_what_a_module_holds_is_looked_up_each_time():
    module = ag.Module()
    module.v = ag.Variable(1.0)
    assert len(module.variables) == 1
    module.more = [ag.Variable(2.0)]
    module.more.append(ag.Variable(3.0))
    assert len(module.variables) == 3
    del module.v
    assert len(module.variables) == 2


def test_names():
    assert Dense(2).name == "dense"
    assert Dense(2, name="first").name == "first"
    assert type("RNNCell", (ag.Module,), {})().name == "rnn_cell"
    with pytest.raises(ValueError, match="not a valid module name"):
        ag.Module(name="two words")
    assert ag.Module(name="lambda").name == "lambda"  # TensorFlow lets keywords be names, and TFP uses this one


def test_name_scope():
    class Inner(ag.Module):
        def __init__(self):
            super().__init__()
            with self.name_scope:
                self.v = ag.Variable(1.0, name="v")

    class Outer(ag.Module):
        @ag.Module.with_name_scope
        def build(self):
            self.inner = Inner()
            self.w = ag.Variable(1.0)

    outer = Outer(name="net")
    outer.build()
    assert outer.name_scope.name == "net/"
    assert names(outer.variables) == ["net/Variable:0", "net/inner/v:0"]


def test_paths():
    module = ag.Module()
    module.parts = [Dense(1), {"x": Dense(2)}]
    found = dict(module._flatten(lambda v: isinstance(v, ag.Variable), with_path=True))
    assert sorted(found, key=str) == [
        ("parts", 0, "b"),
        ("parts", 0, "w"),
        ("parts", 1, "x", "b"),
        ("parts", 1, "x", "w"),
    ]
    assert not list(module._flatten(lambda v: isinstance(v, ag.Variable), recursive=False))


def test_traced_methods_and_gradients():
    dense = Dense(3)
    with ag.GradientTape() as tape:
        y = ag.reduce_sum(dense(ag.constant([[1.0, 2.0]])))
    gradients = tape.gradient(y, dense.trainable_variables)
    assert gradients[0].numpy().tolist() == [1, 1, 1]
    assert gradients[1].numpy().tolist() == [[1, 1, 1], [2, 2, 2]]


def test_a_module_goes_with_its_traces():
    dense = Dense(3)
    dense(ag.constant([[1.0, 2.0]]))
    gone = weakref.ref(dense)
    del dense
    gc.collect()
    assert gone() is None


def test_variables_made_on_the_first_call():
    class Lazy(ag.Module):
        w = None

        @ag.function
        def __call__(self, x):
            if self.w is None:
                self.w = ag.Variable(ag.ones([x.shape[-1], 2]), name="w")
            return x @ self.w

    lazy = Lazy()
    assert lazy(ag.ones([1, 3])).numpy().tolist() == [[3, 3]]
    assert names(lazy.variables) == ["w:0"]
    assert lazy(ag.ones([4, 3])).shape == (4, 2)


def test_kinds_of_variables_do_not_ask_a_property_that_a_subclass_overrides():
    """As in TensorFlow; Sonnet's own `variables` raises where there is none."""

    class Refusing(ag.Module):
        @property
        def variables(self):
            raise ValueError("no variables yet")

    module = Refusing()
    assert module.trainable_variables == module.non_trainable_variables == ()
    module.kept, module.trained = ag.Variable(1.0, trainable=False), ag.Variable(2.0)
    assert [float(v) for v in module.trainable_variables] == [2.0]
    assert [float(v) for v in module.non_trainable_variables] == [1.0]
