"""`tf.__internal__`: what Keras uses of TensorFlow's inside."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import autograph as ag
from autograph.function.trace import TracingBuilder
from runtime import shallow_structures
from runtime.context import ctx
from runtime.tensor import EagerTensor, SymbolicTensor
from runtime.type_specs import CompositeTensor
from runtime.types import TensorType


class Tensor:
    """Base of what is a tensor in every respect but its class: Keras' variables inherit from it."""

    __ag_tensor__ = True  # for `is_tensor`


class FuncGraph:
    """A graph that is built to learn the shapes and dtypes of results, and thrown away."""

    def __init__(self, name: str = "graph", **options: Any) -> None:
        self.name = name
        self._builder = TracingBuilder(name, ctx.builder)

    @contextlib.contextmanager
    def as_default(self) -> Iterator[FuncGraph]:
        """A block whose operations go into the graph, unseen by tapes."""
        recorders, ctx.recorders = ctx.recorders, ()
        try:
            with self._builder:
                yield self
        finally:
            ctx.recorders = recorders


def placeholder(dtype: Any, shape: Any = None, name: str | None = None) -> Any:
    """A tensor without value, in a `FuncGraph`. Raises RuntimeError elsewhere."""
    builder = ctx.builder
    if builder is None:
        raise RuntimeError("tf.placeholder() is not compatible with eager execution.")
    known = ag.TensorShape(shape)
    dims = None if known.rank is None else tuple(known.as_list())
    return builder.tensor(builder.add_input(TensorType(ag.as_dtype(dtype), dims), name))


def sparse_placeholder(dtype: Any, shape: Any = None, name: str | None = None) -> Any:
    """A sparse tensor without value, in a `FuncGraph`."""
    known = ag.TensorShape(shape)
    sparse = ag.SparseTensor(
        placeholder(ag.int64, [None, known.rank]), placeholder(dtype, [None]), placeholder(ag.int64, [known.rank])
    )
    sparse.set_shape(known)
    return sparse


def smart_cond(
    pred: Any, true_fn: Callable[[], Any] | None = None, false_fn: Callable[[], Any] | None = None, name: Any = None
) -> Any:
    """`tf.cond`, decided at once where the condition is known. Raises TypeError for what isn't callable."""
    if not callable(true_fn) or not callable(false_fn):
        raise TypeError("`true_fn` and `false_fn` must be callable.")
    known = ag.get_static_value(pred) if ag.is_tensor(pred) else bool(pred)
    if known is None:
        return ag.cond(pred, true_fn=true_fn, false_fn=false_fn)
    return true_fn() if known else false_fn()


def maybe_merge_call(fn: Callable[..., Any], strategy: Any, *arguments: Any, **options: Any) -> Any:
    """Calls a function of the strategy, as the program of all replicas where several of one process have to merge."""
    if strategy_supports_no_merge_call():
        return fn(strategy, *arguments, **options)
    replica = ag.distribute.get_replica_context()
    if replica is None:
        raise RuntimeError("maybe_merge_call can only be called in functions that strategy.run runs")
    return replica.merge_call(fn, args=arguments, kwargs=options)


def strategy_supports_no_merge_call() -> bool:
    """Whether replicas of the current strategy may update variables by themselves."""
    return not ag.distribute.get_strategy().extended._use_merge_call()


MODULES: dict[str, dict[str, Any]] = {
    "tensorflow.__internal__": {
        "CompositeTensor": CompositeTensor,
        "EagerTensor": EagerTensor,
        "FuncGraph": FuncGraph,
        "SymbolicTensor": SymbolicTensor,
    },
    "tensorflow.__internal__.nest": {
        "flatten_up_to": shallow_structures.flatten_up_to,
        "get_traverse_shallow_structure": shallow_structures.get_traverse_shallow_structure,
        "is_mapping": shallow_structures.is_mapping,
        "list_to_tuple": shallow_structures.list_to_tuple,
        "map_structure_up_to": shallow_structures.map_structure_up_to,
        "yield_flat_paths": shallow_structures.yield_flat_paths,
    },
    "tensorflow.__internal__.types": {"Tensor": Tensor},
    "tensorflow.__internal__.distribute": {"strategy_supports_no_merge_call": strategy_supports_no_merge_call},
    "tensorflow.__internal__.distribute.interim": {"maybe_merge_call": maybe_merge_call},
    "tensorflow.__internal__.smart_cond": {"smart_cond": smart_cond},
    "tensorflow.__internal__.tf2": {"enabled": lambda: True},
    "tensorflow.__internal__.eager_context": {"eager_mode": contextlib.nullcontext},
}
