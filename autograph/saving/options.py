"""How checkpoints are written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from runtime.errors import InvalidArgumentError


class MaxShardSizePolicy:
    """Splits the values of a checkpoint into files of at most `max_shard_size` bytes.

    A value that is larger has a file of its own. Raises InvalidArgumentError for a size below 1.
    """

    def __init__(self, max_shard_size: int) -> None:
        if max_shard_size < 1:
            raise InvalidArgumentError(f"max_shard_size must be at least 1, got {max_shard_size}")
        self.max_shard_size = int(max_shard_size)

    @property
    def description(self) -> str:
        return "Split checkpoints into shards of a maximum size."


class CheckpointOptions:
    """Options of `Checkpoint.save` and the like.

    enable_async                    write the files in another thread; the values are those of the call
    experimental_write_callbacks    functions that are called, with the path or without, after the files are written
    experimental_sharding_callback  a `MaxShardSizePolicy`, or None: one file
    experimental_enable_async_checkpoint    the old name of enable_async

    The others are accepted for TensorFlow programs, without effect. Raises InvalidArgumentError for another sharding.
    """

    def __init__(
        self,
        experimental_io_device: str | None = None,
        experimental_enable_async_checkpoint: bool = False,
        experimental_write_callbacks: Sequence[Callable[..., Any]] | None = None,
        enable_async: bool = False,
        experimental_skip_slot_variables: bool = False,
        experimental_sharding_callback: MaxShardSizePolicy | None = None,
    ) -> None:
        if not isinstance(experimental_sharding_callback, (MaxShardSizePolicy, type(None))):
            raise InvalidArgumentError(
                "experimental_sharding_callback must be a MaxShardSizePolicy or None, got "
                f"{experimental_sharding_callback!r}"
            )
        self.experimental_io_device = experimental_io_device
        self.enable_async = self.experimental_enable_async_checkpoint = bool(
            enable_async or experimental_enable_async_checkpoint
        )
        self.experimental_write_callbacks = list(experimental_write_callbacks or ())
        self.experimental_skip_slot_variables = experimental_skip_slot_variables
        self.experimental_sharding_callback = experimental_sharding_callback

    @property
    def largest_shard(self) -> int | None:
        policy = self.experimental_sharding_callback
        return None if policy is None else policy.max_shard_size
