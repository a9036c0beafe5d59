"""`ag.data.experimental`: older names of what datasets do."""

from autograph.data.dataset import AUTOTUNE
from autograph.data.files import (
    CsvDataset,
    make_batched_features_dataset,
    make_csv_dataset,
    parse_example_dataset,
)
from autograph.data.files import DatasetWriter as TFRecordWriter
from autograph.data.iterators import get_next_as_optional
from autograph.data.optional import Optional
from autograph.data.options import (
    AutoShardPolicy,
    AutotuneAlgorithm,
    AutotuneOptions,
    DistributeOptions,
    ExternalStatePolicy,
    OptimizationOptions,
    ServiceOptions,
    ThreadingOptions,
)
from autograph.data.plans import INFINITE as INFINITE_CARDINALITY
from autograph.data.plans import UNKNOWN as UNKNOWN_CARDINALITY
from autograph.data.transformations import (
    Reducer,
    assert_cardinality,
    at,
    bucket_by_sequence_length,
    cardinality,
    choose_from_datasets,
    copy_to_device,
    dense_to_ragged_batch,
    dense_to_sparse_batch,
    enumerate_dataset,
    from_list,
    get_single_element,
    get_structure,
    group_by_reducer,
    group_by_window,
    ignore_errors,
    load,
    map_and_batch,
    parallel_interleave,
    prefetch_to_device,
    rejection_resample,
    sample_from_datasets,
    save,
    scan,
    shuffle_and_repeat,
    snapshot,
    take_while,
    unbatch,
    unique,
)
from autograph.data.transformations import counter as Counter
from autograph.data.transformations import random_dataset as RandomDataset

__all__ = [
    "AUTOTUNE", "AutoShardPolicy", "AutotuneAlgorithm", "AutotuneOptions", "Counter", "CsvDataset", "DistributeOptions",
    "ExternalStatePolicy", "INFINITE_CARDINALITY", "OptimizationOptions", "Optional", "RandomDataset", "Reducer",
    "ServiceOptions", "TFRecordWriter", "ThreadingOptions", "UNKNOWN_CARDINALITY", "assert_cardinality", "at",
    "bucket_by_sequence_length", "cardinality", "choose_from_datasets", "copy_to_device", "dense_to_ragged_batch",
    "dense_to_sparse_batch", "enumerate_dataset", "from_list", "get_next_as_optional", "get_single_element",
    "get_structure", "group_by_reducer", "group_by_window", "ignore_errors", "load", "make_batched_features_dataset",
    "make_csv_dataset", "map_and_batch", "parallel_interleave", "parse_example_dataset", "prefetch_to_device",
    "rejection_resample", "sample_from_datasets", "save", "scan", "shuffle_and_repeat", "snapshot", "take_while",
    "unbatch", "unique",
]  # fmt: skip
