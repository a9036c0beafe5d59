"""`tf.compat.v1`: the names of TensorFlow 1 that programs written for TensorFlow 2 still use."""

from __future__ import annotations

import collections
import contextlib
import functools
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import autograph as ag
from autograph.facade.tensorflow.internal import placeholder, sparse_placeholder
from runtime.context import ctx


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
            "Graph": Graph,
            "SparseTensorValue": collections.namedtuple("SparseTensorValue", "indices values dense_shape"),
            "assert_greater_equal": _asserting(ag.debugging.assert_greater_equal),
            "assert_less_equal": _asserting(ag.debugging.assert_less_equal),
            "assign": _assigning("assign"),
            "assign_add": _assigning("assign_add"),
            "assign_sub": _assigning("assign_sub"),
            "colocate_with": lambda *_, **__: contextlib.nullcontext(),
            "control_flow_v2_enabled": lambda: True,
            "disable_eager_execution": _refused("disable_eager_execution"),
            "enable_control_flow_v2": lambda: None,
            "enable_eager_execution": lambda *_, **__: None,
            "enable_v2_behavior": lambda: None,
            "executing_eagerly": ag.executing_eagerly,
            "get_default_graph": get_default_graph,
            "get_variable": _refused("get_variable"),
            "get_variable_scope": lambda: _variable_scope,
            # Outside of graphs variables have their values when they are made.
            "global_variables_initializer": ag.no_op,
            "local_variables_initializer": ag.no_op,
            "placeholder": placeholder,
            "placeholder_with_default": placeholder_with_default,
            "reset_default_graph": lambda: None,
            "set_random_seed": ag.random.set_seed,
            "sparse_concat": ag.sparse.concat,
            "sparse_placeholder": sparse_placeholder,
            "variable_scope": variable_scope,
            "where": where,
        },
    }


class Graph:
    """TensorFlow's graph, as far as libraries ask for it: where names are made, and whether a function is traced."""

    building_function = property(lambda self: ctx.builder is not None)

    def __init__(self) -> None:
        if type(self) is Graph:
            _refused("Graph")()

    def get_name_scope(self) -> str:
        """The name scope that is open, without a slash at its end."""
        return ag.get_current_name_scope()

    def unique_name(self, name: str, mark_as_used: bool = True) -> str:
        """A name in the scope that is open. Names needn't be unique here."""
        scope = ag.get_current_name_scope()
        return f"{scope}/{name}" if scope else name


class _Default(Graph):
    """The graph of what runs now."""


_default = _Default()


def get_default_graph() -> Graph:
    """The graph of what runs now."""
    return _default


class VariableScope:
    """What libraries ask of the scope in which TensorFlow 1 makes variables."""

    name = ""
    caching_device = None
    reuse = False

    def set_caching_device(self, caching_device: Any) -> None:
        """Does nothing: nothing is cached on another device."""


_variable_scope = VariableScope()


@contextlib.contextmanager
def variable_scope(name_or_scope: Any, *arguments: Any, **options: Any) -> Iterator[VariableScope]:
    """A block without effect: variables are objects here, which belong to whoever has made them."""
    yield _variable_scope


def placeholder_with_default(input: Any, shape: Any = None, name: str | None = None) -> Any:
    """The default, as a tensor: nothing else is ever fed. Raises ValueError for a shape that it can't have."""
    tensor = ag.convert_to_tensor(input)
    if not tensor.shape.is_compatible_with(shape):
        raise ValueError(f"The default of shape {tensor.shape} doesn't fit a placeholder of shape {shape}")
    return ag.identity(tensor)


def _asserting(check: Callable[..., Any]) -> Callable[..., Any]:
    """A function of `tf.debugging` with the arguments of TensorFlow 1, where `data` comes third."""

    @functools.wraps(check)
    def assert_(x: Any, y: Any = None, data: Any = None, summarize: Any = None, message: Any = None, name: Any = None):
        return check(x, y, message=message, summarize=summarize, name=name)

    return assert_


def _refused(name: str) -> Callable[..., Any]:
    def refuse(*arguments: Any, **options: Any) -> Any:
        raise ag.errors.UnimplementedError(
            f"tf.compat.v1.{name}: there are no graphs to build by hand; decorate functions with tf.function",
        )

    return refuse
