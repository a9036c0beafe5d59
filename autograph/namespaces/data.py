"""`ag.data`: datasets to loop over."""

from autograph.data.dataset import AUTOTUNE, Dataset
from autograph.data.files import FixedLengthRecordDataset, TextLineDataset, TFRecordDataset
from autograph.data.iterators import DatasetIterator as Iterator
from autograph.data.iterators import IteratorSpec, NumpyIterator
from autograph.data.nested import DatasetSpec
from autograph.data.optional import Optional
from autograph.data.options import Options, ThreadingOptions
from autograph.data.plans import INFINITE as INFINITE_CARDINALITY
from autograph.data.plans import UNKNOWN as UNKNOWN_CARDINALITY
from autograph.namespaces import data_experimental as experimental

__all__ = [
    "AUTOTUNE", "Dataset", "DatasetSpec", "FixedLengthRecordDataset", "INFINITE_CARDINALITY", "Iterator",
    "IteratorSpec", "NumpyIterator", "Optional", "Options", "TFRecordDataset", "TextLineDataset", "ThreadingOptions",
    "UNKNOWN_CARDINALITY", "experimental",
]  # fmt: skip
