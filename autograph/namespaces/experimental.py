"""`ag.experimental`: what TensorFlow keeps under this name."""

from __future__ import annotations

from autograph.data.batchable import BatchableExtensionType, ExtensionTypeBatchEncoder
from autograph.data.optional import Optional
from autograph.namespaces import experimental_dlpack as dlpack
from autograph.namespaces import experimental_numpy as numpy
from runtime.api_dispatch import (
    dispatch_for_api,
    dispatch_for_binary_elementwise_apis,
    dispatch_for_binary_elementwise_assert_apis,
    dispatch_for_unary_elementwise_apis,
    unregister_dispatch_for,
)
from runtime.extension_types.values import ExtensionType, ExtensionTypeSpec
from runtime.ragged.row_partition import RowPartition
from runtime.ragged.shape import DynamicRaggedShape

__all__ = [
    "BatchableExtensionType", "DynamicRaggedShape", "ExtensionType", "ExtensionTypeBatchEncoder", "ExtensionTypeSpec",
    "Optional", "RowPartition", "dispatch_for_api", "dispatch_for_binary_elementwise_apis",
    "dispatch_for_binary_elementwise_assert_apis", "dispatch_for_unary_elementwise_apis", "dlpack", "numpy",
    "unregister_dispatch_for",
]  # fmt: skip
