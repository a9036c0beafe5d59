"""`TypeSpec` and `CompositeTensor`: values made of tensors whose classes programs write."""

import pickle

import pytest

import autograph as ag
from runtime.type_specs import (
    CompositeTensor,
    TypeSpec,
    VariableSpec,
    convert_variables_to_tensors,
    register_name,
    register_type_spec_from_value_converter,
    registered_class,
    registered_name,
    type_spec_from_value,
)


class IntervalSpec(TypeSpec):
    def __init__(self, bounds, unit):
        self.bounds, self.unit = bounds, unit

    value_type = property(lambda self: Interval)
    _component_specs = property(lambda self: {"low": self.bounds, "high": self.bounds})

    def _serialize(self):
        return self.bounds, self.unit

    def _to_components(self, value):
        return {"low": value.low, "high": value.high}

    def _from_components(self, components):
        return Interval(components["low"], components["high"], self.unit)


class Interval(CompositeTensor):
    def __init__(self, low, high, unit="m"):
        self.low, self.high, self.unit = ag.convert_to_tensor(low), ag.convert_to_tensor(high), unit

    @property
    def _type_spec(self):
        return IntervalSpec(ag.TensorSpec(self.low.shape, self.low.dtype), self.unit)


def test_it_is_a_structure():
    value = Interval([1.0], [2.0])
    assert not ag.nest.is_nested(value)
    assert ag.nest.flatten([value]) == [value]
    high, low = ag.nest.flatten(value, expand_composites=True)
    assert (high.numpy(), low.numpy()) == (2.0, 1.0)
    doubled = ag.nest.map_structure(lambda x: 2 * x, value, expand_composites=True)
    assert type(doubled) is Interval and float(doubled.high[0]) == 4.0


def test_traced_functions_take_and_give_it():
    @ag.function
    def f(value):
        return Interval(value.low - 1.0, value.high + 1.0, value.unit)

    wider = f(Interval(1.0, 2.0, "s"))
    assert (float(wider.low), float(wider.high), wider.unit) == (0.0, 3.0, "s")
    f(Interval(3.0, 4.0, "s"))
    assert f.experimental_get_tracing_count() == 1
    assert f(Interval(3.0, 4.0, "m")).unit == "m"
    assert f.experimental_get_tracing_count() == 2


def test_loops_and_branches_take_it():
    @ag.function
    def f(value, n):
        for _ in ag.range(n):
            if value.low > 0.0:
                value = Interval(value.low - 1.0, value.high)
            else:
                value = Interval(value.low, value.high + 1.0)
        return value

    found = f(Interval(2.0, 5.0), ag.constant(4))
    assert (float(found.low), float(found.high)) == (0.0, 7.0)


def test_a_loop_may_change_the_size_of_its_tensors():
    @ag.function
    def f(value, n):
        for _ in ag.range(n):
            ag.autograph.experimental.set_loop_options(shape_invariants=[])
            value = Interval(ag.concat([value.low, [0.0]], 0), ag.concat([value.high, [1.0]], 0))
        return value.low

    assert f(Interval([1.0], [2.0]), ag.constant(3)).numpy().tolist() == [1.0, 0.0, 0.0, 0.0]


def test_gradients_go_through_it():
    low = ag.constant(3.0)
    with ag.GradientTape() as tape:
        tape.watch(low)
        result = ag.function(lambda value: value.low**2.0)(Interval(low, 5.0))
    assert float(tape.gradient(result, low)) == 6.0


def test_specs():
    spec = Interval([1.0], [2.0])._type_spec
    assert spec == Interval([5.0], [6.0])._type_spec and hash(spec) == hash(Interval([5.0], [6.0])._type_spec)
    assert spec != Interval([1.0], [2.0], "s")._type_spec and spec != Interval([1.0, 2.0], [3.0, 4.0])._type_spec
    assert spec.is_compatible_with(Interval([1.0], [2.0])) and not spec.is_compatible_with(Interval(1.0, 2.0))
    wide = spec._with_tensor_ranks_only()
    assert wide.bounds.shape.as_list() == [None]
    assert spec.is_subtype_of(wide) and not wide.is_subtype_of(spec)
    longer = Interval([1.0, 2.0], [3.0, 4.0])._type_spec
    assert spec.most_specific_common_supertype([longer]) == wide
    assert spec.most_specific_common_supertype([IntervalSpec(spec.bounds, "s")]) is None
    with pytest.raises(ValueError, match="No TypeSpec is compatible"):
        spec.most_specific_compatible_type(IntervalSpec(spec.bounds, "s"))
    assert pickle.loads(pickle.dumps(spec)) == spec


def test_specs_of_tensors():
    spec = ag.TensorSpec([2, 3], ag.float32, "x")
    assert isinstance(spec, TypeSpec)
    assert spec._with_tensor_ranks_only() == ag.TensorSpec([None, None], ag.float32, "x")
    assert spec._without_tensor_names() == ag.TensorSpec([2, 3], ag.float32)
    assert spec._batch(4) == ag.TensorSpec([4, 2, 3], ag.float32, "x") and spec._unbatch().shape == [3]
    assert spec.is_subtype_of(ag.TensorSpec([None, 3], ag.float32)) and not spec.is_subtype_of(
        ag.TensorSpec([2, 3], ag.int32)
    )
    assert spec.most_specific_common_supertype([ag.TensorSpec([4, 3])]) == ag.TensorSpec([None, 3])
    assert spec.most_specific_common_supertype([ag.TensorSpec([2, 3], ag.int32)]) is None
    with pytest.raises(ValueError, match="rank >= 1"):
        ag.TensorSpec([])._unbatch()


def test_specs_of_values():
    value = Interval(1.0, 2.0)
    assert type_spec_from_value(value) == value._type_spec
    assert type_spec_from_value([1, 2]) == ag.TensorSpec([2], ag.int32)
    assert type_spec_from_value(ag.SparseTensor([[0]], [1.0], [3])) == ag.SparseTensorSpec([3], ag.float32)
    variable = ag.Variable([1.0], trainable=False)
    assert type_spec_from_value(variable) == VariableSpec([1], ag.float32, False)
    with pytest.raises(TypeError, match="Could not build a TypeSpec"):
        type_spec_from_value(object())


def test_converters_of_values():
    class Celsius:
        def __init__(self, degrees):
            self.degrees = degrees

    class Warmer(Celsius):
        pass

    register_type_spec_from_value_converter(Celsius, lambda value: ag.TensorSpec([], ag.as_dtype(type(value.degrees))))
    assert type_spec_from_value(Celsius(3.0)) == ag.TensorSpec([], ag.float32)
    with pytest.raises(TypeError):
        type_spec_from_value(Warmer(3.0))


def test_names():
    kind = register_name("tests.IntervalSpec")(type("NamedSpec", (IntervalSpec,), {}))
    assert registered_name(kind) == "tests.IntervalSpec" and registered_class("tests.IntervalSpec") is kind
    with pytest.raises(ValueError, match="already been registered"):
        register_name("tests.IntervalSpec")(IntervalSpec)
    with pytest.raises(ValueError, match="No TypeSpec has been registered"):
        registered_class("tests.Nothing")
    with pytest.raises(ValueError, match="has not been registered"):
        registered_name(IntervalSpec)


def test_variables_become_tensors():
    found = convert_variables_to_tensors({"a": ag.Variable(1.0), "b": [2, ag.constant(3)]})
    assert not isinstance(found["a"], ag.Variable) and float(found["a"]) == 1.0
    assert found["b"][0] == 2 and int(found["b"][1]) == 3
