"""What programs written for TensorFlow say about how replicas exchange what they have."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

from runtime.dataclass import dataclass


class CommunicationImplementation(enum.Enum):
    """TensorFlow's choice of communication. Workers here always use MPI."""

    AUTO = "AUTO"
    RING = "RING"
    NCCL = "NCCL"


class CommunicationOptions:
    """Options of the communication between replicas.

    bytes_per_pack   how many bytes of tensors travel together at most; 0: 1 to 32 MiB, more for more replicas
    timeout_seconds  for how long a replica waits for the others; None: 600
    implementation   without effect

    Raises ValueError for negative numbers.
    """

    def __init__(
        self, bytes_per_pack: int = 0, timeout_seconds: float | None = None,
        implementation: CommunicationImplementation = CommunicationImplementation.AUTO,
    ) -> None:  # fmt: skip
        if bytes_per_pack < 0:
            raise ValueError(f"`bytes_per_pack` must be >=0. Got: {bytes_per_pack}")
        if timeout_seconds is not None and timeout_seconds <= 0:
            raise ValueError(f"`timeout_seconds` must be a positive number of seconds. Got: {timeout_seconds}")
        self.bytes_per_pack = int(bytes_per_pack)
        self.timeout_seconds = timeout_seconds
        self.implementation = implementation


class CrossDeviceOps:
    """TensorFlow's choice of how `MirroredStrategy` reduces tensors, without effect: here there is one way."""

    def __init__(self, num_packs: int = 1) -> None:
        if num_packs < 0:
            raise ValueError(f"num_packs must be greater than or equal to zero. Got: {num_packs}")


class HierarchicalCopyAllReduce(CrossDeviceOps):
    """A `CrossDeviceOps` of TensorFlow's, without effect. Raises ValueError for a negative number of packs."""


class NcclAllReduce(CrossDeviceOps):
    """A `CrossDeviceOps` of TensorFlow's, without effect. Raises ValueError for a negative number of packs."""


class ReductionToOneDevice(CrossDeviceOps):
    """A `CrossDeviceOps` of TensorFlow's, without effect."""

    def __init__(self, reduce_to_device: Any = None, accumulation_fn: Callable[..., Any] | None = None) -> None:
        super().__init__()


@dataclass(frozen=True)
class RunOptions:
    """TensorFlow's options of `Strategy.run`, without effect: they are for TPUs."""

    experimental_enable_dynamic_batch_size: bool = True
    experimental_bucketizing_dynamic_shape: bool = False
    experimental_xla_options: Any = None
