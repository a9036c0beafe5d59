"""The names of classes by which libraries know TensorFlow's objects without importing it.

Keras asks whether a class is called `DatasetV2` and comes from a module of `tensorflow.python`. While the facade is
installed, ours say so.
"""

from __future__ import annotations

from typing import Any

import autograph as ag

_CLASSES = {
    ag.Tensor: ("Tensor", "tensorflow.python.framework.tensor"),
    ag.SparseTensor: ("SparseTensor", "tensorflow.python.framework.sparse_tensor"),
    ag.RaggedTensor: ("RaggedTensor", "tensorflow.python.ops.ragged.ragged_tensor"),
    ag.data.Dataset: ("DatasetV2", "tensorflow.python.data.ops.dataset_ops"),
}
# Where those classes are found by these names, and for `pickle` by their own.
MODULES: dict[str, dict[str, Any]] = {
    module: {name: cls, cls.__qualname__: cls} for cls, (name, module) in _CLASSES.items()
}
# What TensorFlow's tensors have beside ours: names that classes of libraries copy.
_OPERATORS = (
    "abs add and eq floordiv ge getitem gt invert le lt matmul mod mul ne neg or pow radd rand rfloordiv rmatmul rmod "
    "rmul ror rpow rsub rtruediv rxor sub truediv xor"
)
_ATTRIBUTES: dict[type, dict[str, Any]] = {
    ag.Tensor: {
        "OVERLOADABLE_OPERATORS": frozenset(f"__{name}__" for name in _OPERATORS.split()),
        # Our classes of tensors have it themselves: it is asked of other classes' objects alone.
        **dict.fromkeys(("__bool__", "__nonzero__"), lambda self: bool(ag.convert_to_tensor(self))),
    },
    ag.Variable: {"initializer": None},  # outside of graphs there is nothing to run
}
_before: dict[type, tuple[str, str]] = {}


def assume() -> None:
    """Gives our classes the names that TensorFlow's have."""
    for cls, (name, module) in _CLASSES.items():
        _before.setdefault(cls, (cls.__name__, cls.__module__))
        cls.__name__, cls.__module__ = name, module
    for cls, attributes in _ATTRIBUTES.items():
        for name, value in attributes.items():
            setattr(cls, name, value)


def restore() -> None:
    """Gives our classes their own names back."""
    for cls, attributes in _ATTRIBUTES.items():
        for name in attributes:
            delattr(cls, name)
    for cls, (name, module) in _before.items():
        cls.__name__, cls.__module__ = name, module
