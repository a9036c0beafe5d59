"""Records of comma-separated values as columns.

csv_columns(records; dtypes, defaults, delimiter, quotes, na_value, select)   → a tensor for each column, of the
records' shape
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from runtime import dtypes, errors
from runtime.context import init_scope
from runtime.dtypes import DType
from runtime.ops.convert import convert_to_tensor
from runtime.ops.dispatch import apply
from runtime.ops.table import OpDef, register
from runtime.tensor import Tensor
from runtime.types import TensorType

KINDS = (dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64, dtypes.string)
_INTEGER = re.compile(rb"\s*[+-]?[0-9]+\s*")


def fields_of(record: bytes, delimiter: bytes, quotes: bool) -> list[bytes]:
    """The fields of a record. Raises ValueError, which says what is wrong with it."""
    if not quotes or b'"' not in record:
        if b"\n" in record or b"\r" in record:
            if quotes:
                raise ValueError("Unquoted fields cannot have quotes/CRLFs inside")
            record = record.replace(b"\n", b"").replace(b"\r", b"")
        return record.split(delimiter)
    found, place, end = [], 0, len(record)
    while True:
        if record[place : place + 1] == b'"':
            field, place = _quoted_field(record, place + 1)
            if place < end and record[place : place + 1] != delimiter:
                raise ValueError("Quoted field has to end with quote followed by delim or end")
        else:
            stop = record.find(delimiter, place)
            stop = end if stop < 0 else stop
            field, place = record[place:stop], stop
            if any(mark in field for mark in (b'"', b"\n", b"\r")):
                raise ValueError("Unquoted fields cannot have quotes/CRLFs inside")
        found.append(field)
        if place >= end:
            return found
        place += 1


def _quoted_field(record: bytes, place: int) -> tuple[bytes, int]:
    """A quoted field's text, in which two quotes are one, and the position after its closing quote."""
    parts = []
    while True:
        stop = record.find(b'"', place)
        if stop < 0:
            raise ValueError("Quoted field has to end with quote followed by delim or end")
        parts.append(record[place:stop])
        if record[stop + 1 : stop + 2] != b'"':
            return b"".join(parts), stop + 1
        parts.append(b'"')
        place = stop + 2


def value_of(field: bytes, dtype: DType) -> Any:
    """A field as a value of a dtype. Raises ValueError."""
    if dtype is dtypes.string:
        return field
    if dtype.is_integer:
        if not _INTEGER.fullmatch(field):
            raise ValueError
        number = int(field)
        limit = np.iinfo(dtype._np)
        if not limit.min <= number <= limit.max:
            raise ValueError
        return number
    if b"_" in field:
        raise ValueError
    return float(field)


class Columns:
    """Makes values of records.

    select: the numbers of the fields that are wanted, ascending; None: all but those of `excluded`, of which there must
    be so many.
    """

    def __init__(
        self, kinds: Sequence[DType], defaults: Sequence[Any], delimiter: bytes, quotes: bool, na_value: bytes,
        select: Sequence[int] | None, excluded: frozenset[int] | None = None,
    ) -> None:  # fmt: skip
        self.kinds, self.defaults, self.select, self.excluded = kinds, defaults, select, excluded
        self._delimiter, self._quotes, self._na_value = delimiter, quotes, na_value

    def values(self, record: bytes, number: Any) -> list[Any]:
        """The values of a record. Raises InvalidArgumentError, which names it by its number."""
        try:
            found = fields_of(record, self._delimiter, self._quotes)
        except ValueError as error:
            raise errors.InvalidArgumentError(f"{error} in record {number}") from None
        if self.excluded is not None:
            found = [field for place, field in enumerate(found) if place not in self.excluded]
        if self.select is not None:
            if len(found) <= max(self.select, default=-1):
                raise errors.InvalidArgumentError(
                    f"Expect {len(self.kinds)} fields but have {sum(place < len(found) for place in self.select)} in "
                    f"record {number}"
                )
            found = [found[place] for place in self.select]
        elif len(found) != len(self.kinds):
            raise errors.InvalidArgumentError(
                f"Expect {len(self.kinds)} fields but have {len(found)} in record {number}"
            )
        return [self._value(field, place, number) for place, field in enumerate(found)]

    def _value(self, field: bytes, place: int, number: Any) -> Any:
        dtype, default = self.kinds[place], self.defaults[place]
        if not field or field == self._na_value:
            if default is None:
                raise errors.InvalidArgumentError(f"Field {place} is required but missing in record {number}!")
            return default
        try:
            return value_of(field, dtype)
        except ValueError:
            raise errors.InvalidArgumentError(
                f"Field {place} in record {number} is not a valid {dtype.name}: {field.decode(errors='replace')}"
            ) from None


def _infer(inputs: Sequence[Any], attrs: dict) -> tuple:
    if inputs[0].dtype is not dtypes.string:
        raise TypeError(f"records must be strings, got {inputs[0].dtype.label}")
    return tuple(TensorType(dtypes.as_dtype(kind), inputs[0].shape) for kind in attrs["kinds"])


def _kernel(
    records: Any, kinds: tuple, defaults: tuple, delimiter: bytes, quotes: bool, na_value: bytes, select: Any
) -> tuple:
    table = np.asarray(records, object)
    found_kinds = [dtypes.as_dtype(kind) for kind in kinds]
    columns = Columns(found_kinds, defaults, delimiter, quotes, na_value, select)
    rows = [columns.values(record, number) for number, record in enumerate(table.reshape(-1).tolist())]
    results = []
    for place, dtype in enumerate(found_kinds):
        column = np.empty(len(rows), dtype._np)
        column[:] = [row[place] for row in rows]
        shaped = column.reshape(table.shape)
        results.append(shaped if table.ndim or dtype is dtypes.string else shaped[()])
    return tuple(results)


COLUMNS = register(
    OpDef(
        "csv_columns",
        _infer,
        _kernel,
        multiple=True,
        kinds="O",
        label="DecodeCSV",
        doc="Parses CSV records into columns.",
    )
)


def checked_defaults(record_defaults: Any) -> tuple[list[DType], list[Any]]:
    """The dtypes and defaults of columns: of dtypes, and of vectors of length 0, the default is None.

    Raises TypeError for other dtypes, InvalidArgumentError for longer vectors.
    """
    kinds: list[DType] = []
    defaults: list[Any] = []
    for given in record_defaults:
        if isinstance(given, (DType, type, np.dtype)):
            kinds.append(dtypes.as_dtype(given))
            defaults.append(None)
        else:
            with init_scope():
                array = np.asarray(tensor := convert_to_tensor(given))
            if array.ndim > 1 or array.size > 1:
                raise errors.InvalidArgumentError(f"Each record default should be at most 1-dimensional, got {given!r}")
            kinds.append(tensor.dtype)
            defaults.append(array.reshape(-1)[0] if array.size else None)
            if isinstance(defaults[-1], np.generic):
                defaults[-1] = defaults[-1].item()
        if kinds[-1] not in KINDS:
            raise TypeError(
                f"record_defaults must be of float32, float64, int32, int64 or string, got {kinds[-1].name}"
            )
    return kinds, defaults


def checked_delimiter(field_delim: Any) -> bytes:
    """A delimiter as bytes. Raises ValueError unless it is one character."""
    found = field_delim.encode() if isinstance(field_delim, str) else bytes(field_delim)
    if len(found) != 1:
        raise ValueError(f"field_delim must be one character, got {field_delim!r}")
    return found


def decode_csv(
    records: Any, record_defaults: Any, field_delim: str = ",", use_quote_delim: bool = True, na_value: str = "",
    select_cols: Any = None, name: str | None = None,
) -> list[Tensor]:  # fmt: skip
    """The columns of records of comma-separated values, each a tensor of the shape of the records, which are strings.

    record_defaults: for each column the default for an empty field, a scalar or a vector of length 1; with length 0 the
    field must not be empty. It also sets the column's dtype: float32, float64, int32, int64 or string. use_quote_delim:
    whether fields may be quoted. na_value: a text that counts as empty. select_cols: the numbers of the columns to
    read, ascending. Raises InvalidArgumentError for a record that doesn't fit."""
    kinds, defaults = checked_defaults(record_defaults)
    select = checked_selection(select_cols, len(kinds))
    attrs = {
        "kinds": tuple(kind.name for kind in kinds), "defaults": tuple(defaults),
        "delimiter": checked_delimiter(field_delim), "quotes": bool(use_quote_delim), "na_value": na_value.encode(),
        "select": select,
    }  # fmt: skip
    return list(apply(COLUMNS, (convert_to_tensor(records, dtypes.string),), attrs))


def checked_selection(select_cols: Any, count: int) -> tuple[int, ...] | None:
    """The numbers of selected columns. Raises ValueError unless they ascend and there are `count` of them."""
    if select_cols is None:
        return None
    found = tuple(int(number) for number in select_cols)
    if list(found) != sorted(set(found)) or (found and found[0] < 0):
        raise ValueError("select_cols is not strictly increasing.")
    if len(found) != count:
        raise ValueError(f"Length of select_cols and record_defaults do not match: {len(found)} and {count}")
    return found
