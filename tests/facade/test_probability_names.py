"""What TensorFlow Probability and GPflow import of TensorFlow is there, whether or not they are installed."""

import importlib

import pytest

# Of TensorFlow's private modules, the names that TensorFlow Probability 0.25 and GPflow 2.11 take.
NAMES = {
    "tensorflow.__internal__": "CompositeTensor EagerTensor SymbolicTensor",
    "tensorflow.__internal__.nest": "is_mapping map_structure_up_to",
    "tensorflow.python.autograph.converters": "break_statements continue_statements return_statements",
    "tensorflow.python.autograph.core": "converter",
    "tensorflow.python.autograph.pyct": "anno inspect_utils loader naming parser qual_names templates transformer",
    "tensorflow.python.autograph.pyct.common_transformers": "anf",
    "tensorflow.python.autograph.pyct.static_analysis": "activity",
    "tensorflow.python.data.ops.iterator_ops": "OwnedIterator",
    "tensorflow.python.eager.context": "eager_mode executing_eagerly",
    "tensorflow.python.framework.composite_tensor": "CompositeTensor",
    "tensorflow.python.framework.ops": "EagerTensor Tensor get_default_graph",
    "tensorflow.python.framework.tensor_shape": "Dimension TensorShape as_shape dimension_at_index dimension_value",
    "tensorflow.python.framework.tensor_spec": "DenseSpec TensorSpec",
    "tensorflow.python.framework.tensor_util": "constant_value constant_value_as_shape try_evaluate_constant",
    "tensorflow.python.framework.type_spec": (
        "BatchableTypeSpec TypeSpec register register_type_spec_from_value_converter type_spec_from_value"
    ),
    "tensorflow.python.framework.type_spec_registry": "_NAME_TO_TYPE_SPEC _TYPE_SPEC_TO_NAME register",
    "tensorflow.python.ops.array_ops": "prevent_gradient",
    "tensorflow.python.ops.control_flow_case": "_case_helper",
    "tensorflow.python.ops.control_flow_util": "ENABLE_CONTROL_FLOW_V2 GraphOrParentsInXlaContext",
    "tensorflow.python.ops.linalg.linear_operator": "LinearOperator make_composite_tensor",
    "tensorflow.python.ops.linalg.linear_operator_addition": "SUPPORTED_OPERATORS add_operators",
    "tensorflow.python.ops.nn_ops": "Convolution",
    "tensorflow.python.ops.parallel_for.control_flow_ops": "pfor",
    "tensorflow.python.ops.random_ops": "parameterized_truncated_normal",
    "tensorflow.python.ops.resource_variable_ops": "VariableSpec",
    "tensorflow.python.trackable.data_structures": "sticky_attribute_assignment",
    "tensorflow.python.util.deprecation": (
        "deprecated deprecated_alias deprecated_arg_values deprecated_args deprecated_argument_lookup silence"
    ),
    "tensorflow.python.util.nest": (
        "_is_namedtuple _sequence_like _yield_sorted_items _yield_value assert_same_structure "
        "assert_shallow_structure flatten flatten_up_to flatten_with_joined_string_paths flatten_with_tuple_paths "
        "get_traverse_shallow_structure is_mapping is_nested map_structure map_structure_up_to "
        "map_structure_with_path_up_to map_structure_with_tuple_paths map_structure_with_tuple_paths_up_to "
        "pack_sequence_as yield_flat_paths"
    ),
    "tensorflow.python.util.object_identity": "Reference",
    "tensorflow.python.util.tf_inspect": "Parameter _inspect getdoc getfullargspec getmro isclass signature",
    "tensorflow.python.util.variable_utils": "convert_variables_to_tensors",
    "tensorflow.compat.v1": (
        "Graph assert_greater_equal assert_less_equal colocate_with control_flow_v2_enabled enable_control_flow_v2 "
        "get_default_graph get_variable_scope logging placeholder_with_default variable_scope"
    ),
    "tensorflow.compat.v1.logging": "TaskLevelStatusMessage debug flush get_verbosity log_first_n vlog warn",
    "tensorflow.compat.v2": "TypeSpec __internal__ enable_v2_behavior keras",
    "tensorflow.compat": "dimension_at_index dimension_value",
    "tensorflow.linalg": (
        "LinearOperator LinearOperatorAdjoint LinearOperatorBlockDiag LinearOperatorBlockLowerTriangular "
        "LinearOperatorComposition LinearOperatorDiag LinearOperatorFullMatrix LinearOperatorHouseholder "
        "LinearOperatorIdentity LinearOperatorInversion LinearOperatorKronecker LinearOperatorLowRankUpdate "
        "LinearOperatorLowerTriangular LinearOperatorPermutation LinearOperatorScaledIdentity LinearOperatorToeplitz "
        "LinearOperatorTridiag LinearOperatorZeros"
    ),
    "tensorflow.raw_ops": "BroadcastGradientArgs IgammaGradA MatrixDiagPartV2 RandomGammaGrad",
}


@pytest.mark.parametrize("module", NAMES)
def test_names(tensorflow, module):
    found = importlib.import_module(module)
    assert [name for name in NAMES[module].split() if not hasattr(found, name)] == []


def test_the_same_by_other_paths(tensorflow):
    from tensorflow.compat.v2 import __internal__ as internal
    from tensorflow.python.framework import composite_tensor, type_spec

    assert tensorflow.compat.v2.__internal__ is tensorflow.__internal__ is internal
    assert importlib.import_module("tensorflow.compat.v2.linalg") is tensorflow.linalg
    assert composite_tensor.CompositeTensor is tensorflow.__internal__.CompositeTensor
    assert type_spec.TypeSpec is tensorflow.TypeSpec
    assert issubclass(tensorflow.TensorSpec, tensorflow.TypeSpec)
    assert isinstance(tensorflow.linalg.LinearOperatorDiag([1.0]), tensorflow.__internal__.CompositeTensor)


def test_classes_of_objects(tensorflow):
    from tensorflow.python.data.ops.iterator_ops import OwnedIterator
    from tensorflow.python.util.object_identity import Reference

    assert isinstance(iter(tensorflow.data.Dataset.range(2)), OwnedIterator)
    x = tensorflow.Variable(1.0)
    assert {Reference(x): "x"}[x.ref()] == "x" and Reference(x).deref() is x


def test_signatures(tensorflow):
    """TensorFlow's parameters, which TensorFlow Probability compares with those of its own functions."""
    from tensorflow.python.util import tf_inspect

    assert tf_inspect.getfullargspec(tensorflow.rank)[:4] == (["input", "name"], None, None, (None,))
    assert tf_inspect.getfullargspec(tensorflow.shape).args == ["input", "out_type", "name"]
    assert tf_inspect.getfullargspec(tensorflow.rank).annotations == {}

    def users(x: int, *, y: float = 1.0) -> None: ...

    assert tf_inspect.getfullargspec(users).annotations.keys() == {"x", "y", "return"}


def test_auto_batching_is_refused(tensorflow):
    from tensorflow.python.autograph.pyct import parser

    with pytest.raises(tensorflow.errors.UnimplementedError, match="vectorized_map"):
        parser.parse_entity(len)


def test_what_tensors_have(tensorflow):
    assert {"__add__", "__getitem__", "__rmatmul__"} <= set(tensorflow.Tensor.OVERLOADABLE_OPERATORS)
    assert tensorflow.Tensor.__nonzero__(tensorflow.constant(1))
    assert tensorflow.Variable(1.0).initializer is None


def test_deprecated_names_are_said_once(tensorflow, caplog):
    from tensorflow.python.util import deprecation

    @deprecation.deprecated_args("2030-01-01", "Use y.", "x")
    def f(y=1, x=None):
        return y

    assert f(3) == 3 and not caplog.records
    assert f(3, x=2) == f(3, x=2) == 3
    (record,) = caplog.records
    assert "Use y." in record.getMessage()
    with deprecation.silence():
        assert deprecation.deprecated(None, "No.")(f)(4) == 4
    assert len(caplog.records) == 1


def test_gradients_that_are_prevented(tensorflow):
    x = tensorflow.constant(2.0)
    with tensorflow.GradientTape() as tape:
        tape.watch(x)
        y = tensorflow.raw_ops.PreventGradient(input=x, message="no way back") * 2.0
    assert float(y) == 4.0
    with pytest.raises(LookupError, match="no way back"):
        tape.gradient(y, x)


def test_axes_of_broadcasts(tensorflow):
    def axes(one, other):
        found = tensorflow.raw_ops.BroadcastGradientArgs(s0=one, s1=other)
        return found.r0.numpy().tolist(), found.r1.numpy().tolist()

    assert axes([2, 3], [3]) == ([], [0])
    assert axes([2, 1], [1, 3]) == ([1], [0])
    assert axes(tensorflow.constant([4]), tensorflow.constant([2, 4])) == ([0], [])


def test_derivatives_of_gamma_numbers(tensorflow):
    alpha = tensorflow.constant(2.0)
    with tensorflow.GradientTape() as tape:
        tape.watch(alpha)
        x = tensorflow.random.stateless_gamma([], (1, 2), alpha)
    expected = tape.gradient(x, alpha)
    assert float(tensorflow.raw_ops.RandomGammaGrad(alpha=alpha, sample=x)) == pytest.approx(float(expected), rel=1e-5)
    step = 1e-3
    slope = (tensorflow.math.igamma(2.0 + step, 1.5) - tensorflow.math.igamma(2.0 - step, 1.5)) / (2 * step)
    assert float(tensorflow.raw_ops.IgammaGradA(a=2.0, x=1.5)) == pytest.approx(float(slope), rel=1e-3)
