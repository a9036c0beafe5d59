"""Arguments have TensorFlow's names, where the ways in which functions are made would give them others."""

import inspect

import numpy as np
import pytest

import autograph as ag

ONE = ag.constant([1.0])


@pytest.mark.parametrize(
    ("function", "names"),
    [
        (ag.nn.relu, ["features", "name"]),
        (ag.math.softplus, ["features", "name"]),
        (ag.math.igamma, ["a", "x", "name"]),
        (ag.math.igammac, ["a", "x", "name"]),
        (ag.math.nextafter, ["x1", "x2", "name"]),
        (ag.math.polygamma, ["a", "x", "name"]),
        (ag.math.zeta, ["x", "q", "name"]),
        (ag.as_dtype, ["type_value"]),
        (ag.is_symbolic_tensor, ["tensor"]),
        (ag.nest.is_nested, ["seq"]),
        (ag.autograph.to_graph, ["entity", "recursive", "experimental_optional_features"]),
        (ag.autograph.to_code, ["entity", "recursive", "experimental_optional_features", "after_pass"]),
        (ag.autograph.experimental.do_not_convert, ["func"]),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_arguments_are_called_as_in_tensorflow(function, names):
    assert list(inspect.signature(function).parameters) == names


def test_renamed_operands_work_by_name_and_staged():
    assert float(ag.nn.relu(features=-1.0)) == 0.0
    assert float(ag.function(lambda x: ag.math.zeta(q=x, x=x + 1.0))(ONE)[0]) == pytest.approx(np.pi**2 / 6)
    assert "\n    a, x: tensors of one dtype" in ag.math.igamma.__doc__
    with pytest.raises(TypeError, match="unexpected keyword argument 'x'"):
        ag.nn.relu(x=1.0)
