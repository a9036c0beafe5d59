"""How arguments count for tracing: `__tf_tracing_type__`, dataclasses, attrs-like classes; and what a concrete function
says of its signature and takes as a call."""

import dataclasses
import gc
import weakref

import pytest

import autograph as ag


class OfType(ag.types.experimental.TraceType):
    def __init__(self, value):
        self.kind = type(value)
        self.stand_in = value

    def is_subtype_of(self, other):
        return type(other) is OfType and issubclass(self.kind, other.kind)

    def most_specific_common_supertype(self, others):
        return self if all(o == self for o in others) else None

    def placeholder_value(self, placeholder_context=None):
        return self.stand_in

    def __eq__(self, other):
        return type(other) is OfType and self.kind is other.kind

    def __hash__(self):
        return hash(self.kind)

    def __repr__(self):
        return f"OfType({self.kind.__name__})"


class Animal:
    legs = 4

    def __tf_tracing_type__(self, context):
        return OfType(self)


class Bird(Animal):
    legs = 2


@ag.function
def count_legs(animal, n):
    return animal.legs * n


class TestTracingType:
    def test_one_trace_per_type(self):
        count_legs = ag.function(lambda animal, n: animal.legs * n)
        assert [int(count_legs(Bird(), ag.constant(3))) for _ in range(3)] == [6, 6, 6]
        assert int(count_legs(Animal(), ag.constant(3))) == 12
        assert count_legs.experimental_get_tracing_count() == 2

    def test_subtypes_share_the_trace_of_a_supertype(self):
        f = ag.function(lambda animal, n: n + 1)
        f(Animal(), ag.constant(1))
        assert int(f(Bird(), ag.constant(2))) == 3
        assert f.experimental_get_tracing_count() == 1

    def test_the_body_sees_the_placeholder(self):
        seen = []

        class Shared(Animal):
            def __tf_tracing_type__(self, context):
                return OfType(first)

        first, second = Shared(), Shared()

        @ag.function
        def f(x):
            seen.append(x)
            return 1

        f(second)
        assert seen == [first]

    def test_shown_in_the_signature(self):
        concrete = count_legs.get_concrete_function(Bird(), ag.constant(1))
        assert "animal: OfType(Bird)" in str(concrete.function_type)


@dataclasses.dataclass
class Point:
    x: object
    y: object
    note: object = "n"
    total: object = dataclasses.field(init=False, default=None)


class Fields:
    """What attrs makes of a class, as far as it is told apart by."""

    __attrs_attrs__ = tuple(type("Attribute", (), {"name": name})() for name in ("a", "b"))

    def __init__(self, a, b):
        self.a, self.b = a, b


class TestClassesOfFields:
    def test_dataclass_in_and_out(self):
        @ag.function
        def swap(p):
            return Point(p.y * 2, p.x, p.note)

        result = swap(Point(ag.constant(1.0), ag.constant([2.0, 3.0])))
        assert isinstance(result, Point)
        assert result.x.numpy().tolist() == [4, 6] and float(result.y) == 1
        swap(Point(ag.constant(5.0), ag.constant([2.0, 3.0])))
        assert swap.experimental_get_tracing_count() == 1
        swap(Point(ag.constant(5.0), ag.constant([2.0, 3.0]), "other"))
        assert swap.experimental_get_tracing_count() == 2

    def test_attrs_in_and_out(self):
        @ag.function
        def f(fields):
            return Fields(fields.a + 1, {"twice": fields.b * 2})

        result = f(Fields(ag.constant(1), ag.constant(2)))
        assert isinstance(result, Fields)
        assert (int(result.a), int(result.b["twice"])) == (2, 4)
        assert int(f(Fields(ag.constant(10), ag.constant(2))).a) == 11
        assert f.experimental_get_tracing_count() == 1


class TestConcreteFunctionCalls:
    def concrete(self):
        @ag.function
        def power(a, b, options=None):
            return a**b

        return power.get_concrete_function(a=ag.TensorSpec(None, ag.float32), b=2)

    def test_python_values_may_be_repeated_but_not_changed(self):
        square = self.concrete()
        assert (
            float(square(ag.constant(10.0))) == float(square(ag.constant(10.0), b=2)) == float(square(10.0, 2)) == 100
        )
        for args, kwargs in [((10.0, 3), {}), ((10.0,), {"b": 3}), ((10.0, 2, "x"), {})]:
            with pytest.raises(TypeError, match="can not cast .* to Literal"):
                square(ag.constant(args[0]), *args[1:], **kwargs)

    def test_unknown_and_missing_arguments(self):
        square = self.concrete()
        with pytest.raises(TypeError, match="unexpected argument 'c'"):
            square(ag.constant(1.0), c=1)
        with pytest.raises(TypeError, match="missing the argument 'a'"):
            square()
        with pytest.raises(TypeError, match="4 arguments were given, 3 were traced"):
            square(ag.constant(1.0), 2, None, 5)

    def test_structures_may_be_given_whole_or_as_tensors(self):
        @ag.function
        def f(pair, scale):
            return pair["a"] * scale + pair["b"]

        concrete = f.get_concrete_function({"a": ag.constant(1.0), "b": ag.constant(2.0)}, 3)
        assert float(concrete({"a": ag.constant(2.0), "b": ag.constant(1.0)}, 3)) == 7
        assert float(concrete(ag.constant(2.0), ag.constant(1.0))) == 7
        with pytest.raises(TypeError, match="structure"):
            concrete({"a": ag.constant(2.0)}, 3)

    def test_text(self):
        square = self.concrete()
        assert str(square).splitlines() == [
            "ConcreteFunction Input Parameters:",
            "  a (POSITIONAL_OR_KEYWORD): TensorSpec(shape=<unknown>, dtype=tf.float32, name=None)",
            "  b (POSITIONAL_OR_KEYWORD): Literal[2]",
            "  options (POSITIONAL_OR_KEYWORD): Literal[None]",
            "Output Type:",
            "  TensorSpec(shape=<unknown>, dtype=tf.float32, name=None)",
            "Captures:",
            "  None",
        ]
        assert str(square.function_type) == (
            "(a: TensorSpec(shape=<unknown>, dtype=tf.float32, name=None), b: Literal[2], options: Literal[None]) -> "
            "TensorSpec(shape=<unknown>, dtype=tf.float32, name=None)"
        )
        v = ag.Variable([1.0, 2.0], name="weights")

        @ag.function
        def g(*parts, scale=1):
            return [v * parts[0], {"k": parts[1]}]

        text = g.get_concrete_function(ag.constant(1.0), [ag.constant(1), "x"], scale=2).pretty_printed_signature()
        assert "  parts (" not in text
        assert "args_0 (POSITIONAL_ONLY): TensorSpec(shape=(), dtype=tf.float32, name=None)" in text
        assert "args_1 (POSITIONAL_ONLY): List[TensorSpec(shape=(), dtype=tf.int32, name=None), Literal['x']]" in text
        assert "scale (KEYWORD_ONLY): Literal[2]" in text
        assert "  weights:0: TensorSpec(shape=(2,), dtype=tf.float32, name=None)" in text


class Thing:
    factor = 2


def test_a_trace_keeps_neither_objects_nor_tensors_of_its_first_call():
    @ag.function
    def f(thing, x):
        return x * thing.factor

    thing, x = Thing(), ag.constant([1.0, 2.0])
    concrete = f.get_concrete_function(thing, x)
    f(thing, x)
    gone = weakref.ref(thing), weakref.ref(x)
    del thing, x
    gc.collect()
    assert [r() for r in gone] == [None, None]
    assert concrete(ag.constant([3.0, 4.0])).numpy().tolist() == [6, 8]
    assert "Thing object" in str(concrete)


def test_leaked_tensors_say_from_where():
    leaked = []

    @ag.function
    def leaky(a):
        leaked.append(a + 1)
        return a

    leaky(ag.constant(1))

    @ag.function
    def user(b):
        return b + leaked[0]

    with pytest.raises(TypeError, match="'leaky'.*'user'"):
        user(ag.constant(1))
    with pytest.raises(TypeError, match="'leaky'"):
        leaked[0] + 1
    with pytest.raises(AttributeError, match="leaky"):
        leaked[0].numpy()


def test_py_function_as_a_decorator():
    calls = []

    @ag.py_function(Tout=ag.float32)
    def add(x, y):
        calls.append(float(x))
        return x + y

    @ag.function
    def f(x, y):
        return add(x, y) * 2

    assert [float(f(ag.constant(v), ag.constant(2.0))) for v in (1.0, 3.0)] == [6, 10]
    assert calls == [1, 3]

    @ag.numpy_function(Tout=ag.float64)
    def total(x):
        return x.sum()

    assert float(total(ag.constant([1.0, 2.0], ag.float64))) == 3
