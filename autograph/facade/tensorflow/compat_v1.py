"""`tf.compat.v1`: the names of TensorFlow 1 that programs written for TensorFlow 2 still use."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import autograph as ag
from autograph.facade.tensorflow.internal import placeholder, sparse_placeholder


class Dimension(int):
    """A dimension of a shape, which knows its value."""

    @property
    def value(self) -> int:
        return int(self)


def where(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Any:
    """`tf.where`, whose condition may also be a vector that chooses among the rows of `x` and `y`."""
    if x is None:
        return ag.where(condition)
    condition, x = ag.convert_to_tensor(condition), ag.convert_to_tensor(x)
    if condition.shape.rank == 1 and (x.shape.rank or 1) > 1:
        condition = ag.reshape(condition, [-1] + [1] * (x.shape.rank - 1))
    return ag.where(condition, x, y)


def _assigning(method: str) -> Callable[..., Any]:
    def assign(ref: Any, value: Any, **options: Any) -> Any:
        return getattr(ref, method)(value)

    return assign


def modules(whole: ModuleType) -> dict[str, dict[str, Any]]:
    """The modules, with the public names of all of `tensorflow` where version 1 has no other meaning for them."""
    names = {name: getattr(whole, name) for name in whole.__all__}
    return {
        "tensorflow.compat.v1": {
            **names,
            "Dimension": Dimension,
            "assign": _assigning("assign"),
            "assign_add": _assigning("assign_add"),
            "assign_sub": _assigning("assign_sub"),
            "disable_eager_execution": _refused("disable_eager_execution"),
            "enable_eager_execution": lambda *_, **__: None,
            "enable_v2_behavior": lambda: None,
            "executing_eagerly": ag.executing_eagerly,
            "global_variables_initializer": _refused("global_variables_initializer"),
            "placeholder": placeholder,
            "reset_default_graph": lambda: None,
            "set_random_seed": ag.random.set_seed,
            "sparse_concat": ag.sparse.concat,
            "sparse_placeholder": sparse_placeholder,
            "where": where,
        },
        "tensorflow.compat.v1.logging": {
            **{level: number for number, level in zip((10, 20, 30, 40), ("DEBUG", "INFO", "WARN", "ERROR"))},
            "set_verbosity": lambda level: None,
        },
    }


def _refused(name: str) -> Callable[..., Any]:
    def refuse(*arguments: Any, **options: Any) -> Any:
        raise ag.errors.UnimplementedError(
            f"tf.compat.v1.{name}: there are no graphs to build by hand; decorate functions with tf.function",
        )

    return refuse
