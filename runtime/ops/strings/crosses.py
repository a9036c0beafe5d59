"""Crosses of features: each combination of one value from each feature of an example, as a string or a hash."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from runtime import dtypes, errors
from runtime.ops.dispatch import apply
from runtime.ops.strings.hashes import fingerprint64, joined_fingerprint
from runtime.ops.table import OpDef, register
from runtime.tensor import Tensor
from runtime.types import TensorType


def _examples(parts: Sequence[Any], is_sparse: bool) -> tuple[int, list[list[Any]]]:
    """How many examples a feature has, and the values of each."""
    if not is_sparse:
        return len(parts[0]), parts[0].tolist()
    indices, values, shape = parts
    rows: list[list[Any]] = [[] for _ in range(int(shape[0]))]
    for row, value in zip(indices[:, 0].tolist(), values.tolist()):
        rows[row].append(value)
    return len(rows), rows


def _text(values: Sequence[Any], separator: bytes) -> bytes:
    return separator.join([value if isinstance(value, bytes) else str(value).encode() for value in values])


def _hash(values: Sequence[Any], key: int, buckets: int) -> int:
    result = key
    for value in values:
        result = joined_fingerprint(result, fingerprint64(value) if isinstance(value, bytes) else value)
    return result % (buckets or 2**63 - 1)


def _kernel(*arrays: Any, sparse: tuple[bool, ...], joint: bytes | None, hash_key: int, buckets: int) -> tuple:
    rest = iter(arrays)
    features = [_examples([next(rest) for _ in range(3 if each else 1)], each) for each in sparse]
    counts = {count for count, _ in features}
    if len(counts) > 1:
        raise errors.InvalidArgumentError(f"Expected batch sizes to be the same, got {sorted(counts)}")
    indices, found, width = [], [], 0
    for row, values in enumerate(zip(*[rows for _, rows in features])):
        crosses = list(itertools.product(*values))
        width = max(width, len(crosses))
        indices += [(row, column) for column in range(len(crosses))]
        found += [_hash(each, hash_key, buckets) if joint is None else _text(each, joint) for each in crosses]
    result = np.empty(len(found), np.int64 if joint is None else np.dtype(object))
    result[:] = found
    return np.array(indices, np.int64).reshape(-1, 2), result, np.array([counts.pop(), width], np.int64)


def _infer(inputs: Sequence[Any], attrs: dict) -> tuple:
    kind = dtypes.int64 if attrs["joint"] is None else dtypes.string
    return TensorType(dtypes.int64, (None, 2)), TensorType(kind, (None,)), TensorType(dtypes.int64, (2,))


CROSS = register(
    OpDef(
        "sparse_cross", _infer, _kernel, multiple=True, kinds="iO",
        doc="All combinations of the values of features, joined or hashed.",
    )
)  # fmt: skip


def cross(features: Sequence[Sequence[Tensor]], separator: bytes | None, key: int = 0, buckets: int = 0) -> Any:
    """Indices, values and shape. features: indices, values and shape of a sparse matrix, or a matrix alone.

    separator: of the joined strings; None asks for hashes.
    """
    attrs = {
        "sparse": tuple([len(each) == 3 for each in features]), "joint": separator, "hash_key": key, "buckets": buckets,
    }  # fmt: skip
    return apply(CROSS, [part for each in features for part in each], attrs)
