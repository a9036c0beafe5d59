"""`tensorflow.python` and `tensorflow.compiler`: what libraries import of TensorFlow's private modules."""

from __future__ import annotations

import contextlib
from typing import Any

import autograph as ag
from autograph.facade.dimensions import dimension_at_index, dimension_value
from autograph.facade.tensorflow.compat_v1 import Dimension, Graph, get_default_graph
from autograph.facade.tensorflow.core import DeviceSpec
from autograph.facade.tensorflow.raw_ops import prevent_gradient
from autograph.functional import pfor
from autograph.linear_operators.base import LinearOperator
from autograph.linear_operators.sums import SUPPORTED_OPERATORS, add_operators
from autograph.operators.functional_control import case_by
from runtime import type_specs
from runtime.context import ctx
from runtime.engine import options
from runtime.ops.facts import constant_value_as_shape
from runtime.ops.random.truncated import parameterized_truncated_normal
from runtime.shapes import as_shape
from runtime.tensor import EagerTensor


class _Context:
    """`tensorflow.python.eager.context.context()`: there are no executors and kernels of its kind to empty."""

    context_id = 0

    @property
    def device_spec(self) -> DeviceSpec:
        """The device of the open `tf.device` block."""
        return DeviceSpec.from_string(ctx.device or "")

    def clear_kernel_cache(self) -> None:
        """Does nothing: compiled kernels belong to functions, and go with them."""

    def executing_eagerly(self) -> bool:
        return ag.executing_eagerly()


_context = _Context()


def reset_context() -> None:
    """Undoes the division of the CPU into logical devices, as programs do before they divide it anew."""
    (cpu,) = ag.config.list_physical_devices("CPU")
    ag.config.set_logical_device_configuration(cpu, [])


def dynamic_update_slice(operand: Any, update: Any, indices: Any) -> Any:
    """`operand` with `update` at the place where it starts, moved inside where it would not fit (XLA's operation)."""
    operand = ag.convert_to_tensor(operand)
    update = ag.cast(ag.convert_to_tensor(update), operand.dtype)
    rank = operand.shape.rank
    if not rank:
        return update
    starts = indices if isinstance(indices, (list, tuple)) else ag.unstack(ag.convert_to_tensor(indices), num=rank)
    whole, part = ag.shape(operand), ag.shape(update)
    axes = [
        ag.clip_by_value(ag.cast(starts[axis], ag.int32), 0, whole[axis] - part[axis]) + ag.range(part[axis])
        for axis in range(rank)
    ]
    return ag.tensor_scatter_nd_update(operand, ag.stack(ag.meshgrid(*axes, indexing="ij"), axis=-1), update)


class Convolution:
    """`tf.nn.convolution` with all but the input and the filter fixed."""

    def __init__(
        self, input_shape: Any, filter_shape: Any, padding: str, strides: Any = None, dilation_rate: Any = None,
        name: str | None = None, data_format: str | None = None,
    ) -> None:  # fmt: skip
        self._options = {
            "padding": padding, "strides": strides, "dilations": dilation_rate, "data_format": data_format
        }  # fmt: skip

    def __call__(self, inp: Any, filter: Any) -> Any:
        return ag.nn.convolution(inp, filter, **self._options)


def compute_batch_size(dataset: Any) -> Any:
    """The size of a dataset's batches, int64: that of the first dimension of its elements, -1 where it isn't known."""
    sizes = {spec.shape[0] if spec.shape.rank else None for spec in ag.nest.flatten(dataset.element_spec)}
    known = sizes.pop() if len(sizes) == 1 else None
    return ag.constant(-1 if known is None else known, ag.int64)


def _sparse_product(a: Any, b: Any, dtype: Any) -> Any:
    product = ag.matmul(ag.sparse.to_dense(ag.sparse.reorder(a)), ag.sparse.to_dense(ag.sparse.reorder(b)))
    return ag.sparse.from_dense(product)


def _plain_attribute(trackable: Any, name: str, value: Any) -> Any:
    """The value: what an object consists of is looked up when it is asked for."""
    return value


def _as_it_is(cls: Any = None, **options: Any) -> Any:
    """A decorator of classes of operators, which are composite tensors without it."""
    return (lambda each: each) if cls is None else cls


MODULES: dict[str, dict[str, Any]] = {
    "tensorflow.compiler.tf2xla.python.xla": {"dynamic_update_slice": dynamic_update_slice},
    "tensorflow.python.data.experimental.ops.distribute": {"compute_batch_size": compute_batch_size},
    "tensorflow.python.data.ops.iterator_ops": {"OwnedIterator": ag.data.Iterator},
    "tensorflow.python.eager.context": {
        "_reset_context": reset_context,
        "async_wait": lambda: None,
        "context": lambda: _context,
        "eager_mode": contextlib.nullcontext,
        "executing_eagerly": ag.executing_eagerly,
    },
    "tensorflow.python.framework.config": {
        "disable_op_determinism": options.disable_op_determinism,
        "enable_op_determinism": ag.config.experimental.enable_op_determinism,
        "is_op_determinism_enabled": options.is_deterministic,
    },
    "tensorflow.python.framework.composite_tensor": {"CompositeTensor": type_specs.CompositeTensor},
    "tensorflow.python.framework.ops": {
        "EagerTensor": EagerTensor,
        "Graph": Graph,
        "Tensor": ag.Tensor,
        "control_dependencies": ag.control_dependencies,
        "convert_to_tensor": ag.convert_to_tensor,
        "executing_eagerly_outside_functions": lambda: True,
        "get_default_graph": get_default_graph,
        "init_scope": ag.init_scope,
        "name_scope": ag.name_scope,
        "register_tensor_conversion_function": ag.register_tensor_conversion_function,
    },
    "tensorflow.python.framework.tensor_shape": {
        "Dimension": Dimension,
        "TensorShape": ag.TensorShape,
        "as_shape": lambda shape: ag.TensorShape(as_shape(shape)),
        "dimension_at_index": dimension_at_index,
        "dimension_value": dimension_value,
    },
    "tensorflow.python.framework.tensor_spec": {
        "BoundedTensorSpec": ag.TensorSpec,
        "DenseSpec": type_specs.DenseSpec,
        "TensorSpec": ag.TensorSpec,
    },
    "tensorflow.python.framework.tensor_util": {
        "constant_value": ag.get_static_value,
        "constant_value_as_shape": constant_value_as_shape,
        "is_tf_type": ag.is_tensor,
        "try_evaluate_constant": ag.get_static_value,
    },
    "tensorflow.python.framework.type_spec": {
        "BatchableTypeSpec": type_specs.BatchableTypeSpec,
        "TypeSpec": type_specs.TypeSpec,
        "register": type_specs.register_name,
        "register_type_spec_from_value_converter": type_specs.register_type_spec_from_value_converter,
        "type_spec_from_value": type_specs.type_spec_from_value,
    },
    "tensorflow.python.framework.type_spec_registry": {
        "_NAME_TO_TYPE_SPEC": type_specs.NAME_TO_TYPE_SPEC,
        "_TYPE_SPEC_TO_NAME": type_specs.TYPE_SPEC_TO_NAME,
        "get_name": type_specs.registered_name,
        "lookup": type_specs.registered_class,
        "register": type_specs.register_name,
    },
    "tensorflow.python.ops.array_ops": {"prevent_gradient": prevent_gradient},
    "tensorflow.python.ops.control_flow_case": {"_case_helper": case_by},
    "tensorflow.python.ops.control_flow_util": {
        "ENABLE_CONTROL_FLOW_V2": True,
        # Nothing is traced for XLA, whatever `jit_compile` says: our code has none of its limits.
        "GraphOrParentsInXlaContext": lambda graph: False,
    },
    "tensorflow.python.ops.linalg.linear_operator": {
        "LinearOperator": LinearOperator,
        "make_composite_tensor": _as_it_is,
    },
    "tensorflow.python.ops.linalg.linear_operator_addition": {
        "SUPPORTED_OPERATORS": SUPPORTED_OPERATORS,
        "add_operators": add_operators,
    },
    "tensorflow.python.ops.nn_ops": {"Convolution": Convolution},
    "tensorflow.python.ops.parallel_for.control_flow_ops": {"pfor": pfor},
    "tensorflow.python.ops.parallel_for": {"pfor": pfor},
    "tensorflow.python.ops.random_ops": {"parameterized_truncated_normal": parameterized_truncated_normal},
    "tensorflow.python.ops.resource_variable_ops": {
        "BaseResourceVariable": ag.Variable,
        "ResourceVariable": ag.Variable,
        "VariableSpec": type_specs.VariableSpec,
        "is_resource_variable": lambda value: isinstance(value, ag.Variable),
    },
    "tensorflow.python.trackable.data_structures": {"sticky_attribute_assignment": _plain_attribute},
    "tensorflow.python.ops.linalg.sparse.sparse_csr_matrix_ops": {
        "csr_sparse_matrix_to_sparse_tensor": lambda matrix, dtype: matrix,
        "sparse_matrix_sparse_mat_mul": _sparse_product,
        "sparse_tensor_to_csr_sparse_matrix": ag.SparseTensor,
    },
    "tensorflow.python.ops.math_ops": {"is_nan": ag.math.is_nan},
}
