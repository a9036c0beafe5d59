"""`ag.data.Options`: what TensorFlow's data runtime is told about how to run a pipeline.

The options are kept, merged and handed out. Nothing here runs differently for them: elements always come in order.
"""

from __future__ import annotations

import enum
from typing import Any, ClassVar


class AutoShardPolicy(enum.IntEnum):
    """How a dataset is divided among workers. For a single worker, all policies are the same."""

    OFF = -1
    AUTO = 0
    FILE = 1
    DATA = 2
    HINT = 3


class ExternalStatePolicy(enum.Enum):
    """The treatment of external state when a pipeline is serialised."""

    WARN = 0
    IGNORE = 1
    FAIL = 2


class AutotuneAlgorithm(enum.Enum):
    """How TensorFlow tunes the parallelism of a pipeline."""

    DEFAULT = 0
    HILL_CLIMB = 1
    GRADIENT_DESCENT = 2
    MAX_PARALLELISM = 3
    STAGE_BASED = 4


class _Options:
    """Named options, None (or their default) unless they are set. Raises AttributeError for other names."""

    _names: ClassVar[tuple[str, ...]] = ()
    _groups: ClassVar[dict[str, type[_Options]]] = {}
    _defaults: ClassVar[dict[str, Any]] = {}

    def __init__(self) -> None:
        for name in self._names:
            object.__setattr__(self, name, self._defaults.get(name))
        for name, kind in self._groups.items():
            object.__setattr__(self, name, kind())

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._names and name not in self._groups:
            raise AttributeError(f"Cannot set the property {name} on {type(self).__name__}.")
        group = self._groups.get(name)
        if group is not None and not isinstance(value, group):
            raise TypeError(f"{name} must be of type {group.__name__}, got {value!r}")
        object.__setattr__(self, name, value)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]

    def merge(self, options: Any) -> Any:
        """New options: these, and where they are set the others. Raises TypeError for options of another type."""
        if type(options) is not type(self):
            raise TypeError(f"Options of type {type(self).__name__} can't be merged with {options!r}")
        merged = type(self)()
        for name in self._names:
            theirs = getattr(options, name)
            object.__setattr__(merged, name, getattr(self, name) if theirs == self._defaults.get(name) else theirs)
        for name in self._groups:
            object.__setattr__(merged, name, getattr(self, name).merge(getattr(options, name)))
        return merged

    def __repr__(self) -> str:
        given = {name: value for name, value in vars(self).items() if value is not None}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in given.items())})"


class AutotuneOptions(_Options):
    """`Options.autotune`."""

    _names = ("enabled", "cpu_budget", "ram_budget", "autotune_algorithm", "initial_parallelism", "min_parallelism")


class DistributeOptions(_Options):
    """`Options.experimental_distribute`."""

    _names = ("auto_shard_policy", "num_devices")
    _defaults: ClassVar = {"auto_shard_policy": AutoShardPolicy.AUTO}


class OptimizationOptions(_Options):
    """`Options.experimental_optimization`."""

    _names = (
        "apply_default_optimizations", "filter_fusion", "filter_parallelization", "inject_prefetch",
        "map_and_batch_fusion", "map_and_filter_fusion", "map_fusion", "map_parallelization", "noop_elimination",
        "parallel_batch", "seq_interleave_prefetch", "shuffle_and_repeat_fusion",
    )  # fmt: skip


class ServiceOptions(_Options):
    """`Options.experimental_service`."""

    _names = ("pinned",)


class ThreadingOptions(_Options):
    """`Options.threading`."""

    _names = ("max_intra_op_parallelism", "private_threadpool_size")


class Options(_Options):
    """Options for `Dataset.with_options`: `deterministic`, `threading`, `autotune` and so on.

    They have no effect: elements always come in order. Raises AttributeError for unknown names.
    """

    _names = (
        "dataset_name", "deterministic", "experimental_external_state_policy", "experimental_slack",
        "experimental_symbolic_checkpoint", "experimental_warm_start", "framework_type",
    )  # fmt: skip
    _groups: ClassVar = {
        "autotune": AutotuneOptions,
        "experimental_distribute": DistributeOptions,
        "experimental_optimization": OptimizationOptions,
        "experimental_service": ServiceOptions,
        "threading": ThreadingOptions,
    }
    # Older names.
    _renamed: ClassVar = {"experimental_threading": "threading", "experimental_deterministic": "deterministic"}

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(self._renamed.get(name, name), value)

    def __getattr__(self, name: str) -> Any:
        if name in self._renamed:
            return getattr(self, self._renamed[name])
        raise AttributeError(f"Options has no property {name!r}")
