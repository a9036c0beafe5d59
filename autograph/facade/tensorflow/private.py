"""`tensorflow.python` and `tensorflow.compiler`: what Keras imports of TensorFlow's private modules."""

from __future__ import annotations

from typing import Any

import autograph as ag
from autograph.facade.tensorflow.core import DeviceSpec
from runtime.context import ctx
from runtime.engine import options


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


def compute_batch_size(dataset: Any) -> Any:
    """The size of a dataset's batches, int64: that of the first dimension of its elements, -1 where it isn't known."""
    sizes = {spec.shape[0] if spec.shape.rank else None for spec in ag.nest.flatten(dataset.element_spec)}
    known = sizes.pop() if len(sizes) == 1 else None
    return ag.constant(-1 if known is None else known, ag.int64)


def _sparse_product(a: Any, b: Any, dtype: Any) -> Any:
    product = ag.matmul(ag.sparse.to_dense(ag.sparse.reorder(a)), ag.sparse.to_dense(ag.sparse.reorder(b)))
    return ag.sparse.from_dense(product)


def _no_name(kind: Any) -> Any:
    raise ValueError(f"{kind!r} has not been registered: autograph keeps no registry of spec names")


MODULES: dict[str, dict[str, Any]] = {
    "tensorflow.compiler.tf2xla.python.xla": {"dynamic_update_slice": dynamic_update_slice},
    "tensorflow.python.data.experimental.ops.distribute": {"compute_batch_size": compute_batch_size},
    "tensorflow.python.eager.context": {
        "_reset_context": reset_context,
        "async_wait": lambda: None,
        "context": lambda: _context,
        "executing_eagerly": ag.executing_eagerly,
    },
    "tensorflow.python.framework.config": {
        "disable_op_determinism": options.disable_op_determinism,
        "enable_op_determinism": ag.config.experimental.enable_op_determinism,
        "is_op_determinism_enabled": options.is_deterministic,
    },
    "tensorflow.python.framework.tensor_util": {"is_tf_type": ag.is_tensor},
    "tensorflow.python.framework.type_spec_registry": {"get_name": _no_name, "lookup": _no_name},
    "tensorflow.python.ops.linalg.sparse.sparse_csr_matrix_ops": {
        "csr_sparse_matrix_to_sparse_tensor": lambda matrix, dtype: matrix,
        "sparse_matrix_sparse_mat_mul": _sparse_product,
        "sparse_tensor_to_csr_sparse_matrix": ag.SparseTensor,
    },
    "tensorflow.python.ops.math_ops": {"is_nan": ag.math.is_nan},
}
