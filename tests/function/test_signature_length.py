"""An input_signature has a spec for each parameter that has no default, and none more; said at decoration."""

import pytest

import autograph as ag

SPEC = ag.TensorSpec(None)


def test_too_many_specs_are_refused():
    with pytest.raises(TypeError, match=r"1 extra type constraints.*\(x\)"):
        ag.function(lambda x: x, input_signature=[SPEC, SPEC])


def test_a_missing_spec_is_refused():
    with pytest.raises(TypeError, match="missing type constraint for y"):
        ag.function(lambda x, y: x, input_signature=[SPEC])


def test_defaults_and_further_arguments_need_none():
    assert float(ag.function(lambda x, y=2.0: x + y, input_signature=[SPEC])(1.0)) == 3.0
    assert float(ag.function(lambda *xs: xs[0] + xs[1], input_signature=[SPEC, SPEC])(1.0, 2.0)) == 3.0


def test_methods_count_without_their_instance():
    class Adder:
        @ag.function(input_signature=[SPEC, SPEC])
        def add(self, x, y):
            return x + y

    assert float(Adder().add(1.0, 2.0)) == 3.0
