"""Datasets of what is in files: records, lines, bytes, comma-separated values."""

from __future__ import annotations

import glob
import itertools
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from autograph.data import mixing
from autograph.data.arguments import static_int
from autograph.data.dataset import AUTOTUNE, Dataset
from autograph.data.plans import OfFile
from autograph.data.record_files import TFRecordWriter, path_of
from runtime import dtypes
from runtime.errors import InvalidArgumentError
from runtime.files import translated
from runtime.ops.api import reshape
from runtime.ops.convert import convert_to_tensor
from runtime.ops.strings import csv
from runtime.parsing import parse_example
from runtime.spec import TensorSpec
from runtime.storage.records import checked_compression, open_compressed, read_records
from runtime.tensor import EagerTensor, Tensor

_STRING = TensorSpec((), dtypes.string)
_TEXT_AT_ONCE = 1 << 20  # bytes


class Parsed(OfFile):
    """What a function reads from one file. path: a scalar string, which in a program may have no value yet."""

    def __init__(self, path: Any, read: Callable[[str], Iterator[Any]], spec: Any) -> None:
        self.path, self.read, self.spec = path, read, spec

    def elements(self) -> Iterator[Any]:
        path = path_of(self.path)
        return _Translating(path, self.read(path))


class _Translating:
    """A reader whose OSErrors become errors of `ag.errors`."""

    def __init__(self, path: str, source: Iterator[Any]) -> None:
        self._path, self._source = path, source

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        with translated(self._path):
            return next(self._source)


def _string(content: bytes) -> EagerTensor:
    array = np.empty((), object)
    array[()] = content
    return EagerTensor(array, dtypes.string)


class _OfFiles(Dataset):
    """A source that reads the elements of files, one file after the other or several at a time."""

    def __init__(self, filenames: Any, read: Callable[[str], Iterator[Any]], spec: Any, parallel: Any) -> None:
        files = filenames if isinstance(filenames, Dataset) else Dataset.from_tensor_slices(_names(filenames))
        if files.element_spec.dtype is not dtypes.string:
            raise TypeError(f"The `filenames` argument must contain `tf.string` elements. Got {files.element_spec}.")
        if files.element_spec.shape.rank:
            files = files.unbatch()
        one = lambda path: Dataset(Parsed(path, read, spec))  # noqa: E731
        if parallel is None:
            super().__init__(files.flat_map(one)._plan)
        else:
            count = static_int(parallel, "num_parallel_reads")
            cycle = None if count == AUTOTUNE else count
            super().__init__(files.interleave(one, cycle, num_parallel_calls=count)._plan)


def _names(filenames: Any) -> Tensor:
    """One name or several as a vector."""
    if not isinstance(filenames, Tensor) and isinstance(filenames, (str, bytes, os.PathLike)):
        filenames = [filenames]
    if isinstance(filenames, (list, tuple)):
        filenames = [os.fspath(name) if isinstance(name, os.PathLike) else name for name in filenames]
    return reshape(convert_to_tensor(filenames, dtypes.string), [-1])


class TFRecordDataset(_OfFiles):
    """The records of TFRecord files, as scalar strings.

    filenames: a name, several, or a dataset of names. compression_type: "", "GZIP" or "ZLIB". buffer_size has no
    effect. num_parallel_reads: how many files are read at a time, with their records in turn; by default files are read
    one after the other. A loop raises NotFoundError for a missing file, DataLossError for a damaged one.
    """

    def __init__(
        self, filenames: Any, compression_type: Any = None, buffer_size: Any = None, num_parallel_reads: Any = None,
        name: str | None = None,
    ) -> None:  # fmt: skip
        kind = checked_compression(compression_type)
        super().__init__(filenames, lambda path: map(_string, read_records(path, kind)), _STRING, num_parallel_reads)


class TextLineDataset(_OfFiles):
    """The lines of text files, as scalar strings without their line ends. The arguments are those of
    `TFRecordDataset`."""

    def __init__(
        self, filenames: Any, compression_type: Any = None, buffer_size: Any = None, num_parallel_reads: Any = None,
        name: str | None = None,
    ) -> None:  # fmt: skip
        kind = checked_compression(compression_type)
        super().__init__(filenames, lambda path: map(_string, _lines(path, kind)), _STRING, num_parallel_reads)


def _lines(path: str, compression: str) -> Iterator[bytes]:
    with open_compressed(path, compression) as file:
        for line in file:
            if line.endswith(b"\n"):
                line = line[:-2] if line.endswith(b"\r\n") else line[:-1]
            yield line


class FixedLengthRecordDataset(_OfFiles):
    """The records of files, each of ``record_bytes`` bytes, as scalar strings.

    header_bytes, footer_bytes: how many bytes to skip at the beginning and the end of a file. The other arguments are
    those of `TFRecordDataset`. A loop raises InvalidArgumentError for a file whose size doesn't fit.
    """

    def __init__(
        self, filenames: Any, record_bytes: Any, header_bytes: Any = None, footer_bytes: Any = None,
        buffer_size: Any = None, compression_type: Any = None, num_parallel_reads: Any = None, name: str | None = None,
    ) -> None:  # fmt: skip
        kind = checked_compression(compression_type)
        size = static_int(record_bytes, "record_bytes")
        header, footer = (
            0 if n is None else static_int(n, "FixedLengthRecordDataset") for n in (header_bytes, footer_bytes)
        )
        if size < 1 or header < 0 or footer < 0:
            raise InvalidArgumentError(
                "`record_bytes` must be greater than zero, `header_bytes` and `footer_bytes` at least zero"
            )

        def read(path: str) -> Iterator[Any]:
            with open_compressed(path, kind) as file:
                content = file.read()
            length = len(content) - header - footer
            if length < 0 or length % size:
                raise InvalidArgumentError(
                    f'Excluding the header ({header} bytes) and footer ({footer} bytes), input file "{path}" has body '
                    f"length {length} bytes, which is not an exact multiple of the record length ({size} bytes)."
                )
            for start in range(header, header + length, size):
                yield _string(content[start : start + size])

        super().__init__(filenames, read, _STRING, num_parallel_reads)


class CsvDataset(_OfFiles):
    """The records of files of comma-separated values, as tuples of scalars.

    record_defaults: for each column its dtype, if fields must not be empty, or a default for empty ones; float32,
    float64, int32, int64 or string. header: whether to skip the first line of each file. field_delim,
    use_quote_delim, na_value: see `ag.io.decode_csv`. select_cols: the numbers of the columns to read, ascending;
    exclude_cols: of those to leave out. A loop raises InvalidArgumentError for a record that doesn't fit."""

    def __init__(
        self, filenames: Any, record_defaults: Any, compression_type: Any = None, buffer_size: Any = None,
        header: bool = False, field_delim: str = ",", use_quote_delim: bool = True, na_value: str = "",
        select_cols: Any = None, exclude_cols: Any = None,
    ) -> None:  # fmt: skip
        if select_cols is not None and exclude_cols is not None:
            raise InvalidArgumentError("Either select_cols or exclude_cols should be empty")
        compression = checked_compression(compression_type)
        kinds, defaults = csv.checked_defaults(record_defaults)
        if not kinds:
            raise ValueError("record_defaults must have a default or a dtype for each column")
        delimiter, blank = csv.checked_delimiter(field_delim), na_value.encode()
        select = csv.checked_selection(select_cols, len(kinds))
        excluded = None if exclude_cols is None else frozenset(int(number) for number in exclude_cols)
        columns = csv.Columns(kinds, defaults, delimiter, use_quote_delim, blank, select, excluded)

        def read(path: str) -> Iterator[Any]:
            records = itertools.islice(_records(path, compression, use_quote_delim), 1 if header else 0, None)
            return map(element_of, itertools.count(), records)

        def element_of(number: int, record: bytes) -> tuple:
            return tuple(
                _string(value) if kind is dtypes.string else EagerTensor(kind._np.type(value), kind)
                for value, kind in zip(columns.values(record, number), kinds)
            )

        spec = tuple(TensorSpec((), kind) for kind in kinds)
        super().__init__(filenames, read, spec, None)


def _records(path: str, compression: str, quotes: bool) -> Iterator[bytes]:
    """The records of a file: lines, of which several make one where quotes are open at an end."""
    waiting = b""
    for line in _whole_lines(path, compression):
        waiting += line
        if quotes and waiting.count(b'"') % 2:
            continue
        record, waiting = waiting, b""
        if record.endswith(b"\n"):
            record = record[:-2] if record.endswith(b"\r\n") else record[:-1]
        yield record
    if waiting:
        yield waiting


def _whole_lines(path: str, compression: str) -> Iterator[bytes]:
    with open_compressed(path, compression) as file:
        yield from file


# --- writing ---------------------------------------------------------------------------------------------------------


class DatasetWriter:
    """`ag.data.experimental.TFRecordWriter`: writes the elements of a dataset, scalar strings, to a TFRecord file."""

    def __init__(self, filename: Any, compression_type: Any = None) -> None:
        self._filename, self._compression = filename, compression_type

    def write(self, dataset: Dataset) -> None:
        """Writes all elements. Raises TypeError unless they are scalar strings."""
        if not isinstance(dataset, Dataset) or dataset.element_spec != _STRING:
            raise TypeError(f"`dataset` must produce scalar `DT_STRING` tensors, got {dataset!r}")
        with TFRecordWriter(self._filename, self._compression) as writer:
            for record in dataset:
                writer.write(record)


# --- whole pipelines -------------------------------------------------------------------------------------------------


def _matching(file_pattern: Any) -> list[str]:
    """The files that match a pattern or one of several, sorted. Raises ValueError if none does."""
    patterns = file_pattern if isinstance(file_pattern, (list, tuple)) else [file_pattern]
    if not patterns:
        raise ValueError("File pattern is empty.")
    found = sorted({path for pattern in patterns for path in glob.glob(path_of(pattern))})
    if not found:
        raise ValueError(f"No files match `file_pattern` {file_pattern}.")
    return found


def _shuffled_and_repeated(dataset: Dataset, epochs: Any, shuffle: bool, size: int, seed: Any) -> Dataset:
    if shuffle:
        dataset = dataset.shuffle(size, seed)
    return dataset if epochs == 1 else dataset.repeat(epochs)


def _inferred(
    path: str, compression: str, names: list[str], chosen: list[int], delimiter: bytes, quotes: bool, na_value: bytes,
    header: bool, rows: int,
) -> list[Any]:  # fmt: skip
    """The defaults for empty fields of each column. A column's dtype is the first of int32, int64, float32 and float64
    that all its fields in some rows fit, or string."""
    kinds = [dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64, dtypes.string]
    best: list[int | None] = [None] * len(chosen)
    records = itertools.islice(_records(path, compression, quotes), 1 if header else 0, None)
    for record in itertools.islice(records, rows):
        fields = csv.fields_of(record, delimiter, quotes)
        if len(fields) != len(names):
            raise ValueError(
                f"Problem inferring types: CSV row {fields} has {len(fields)} number of fields. Expected: {len(names)}."
            )
        for place, column in enumerate(chosen):
            if fields[column] in (b"", na_value):
                continue
            level = best[place] or 0
            while not _fits(fields[column], kinds[level]):
                level += 1
            best[place] = level
    found = [kinds[-1] if level is None else kinds[level] for level in best]
    return [convert_to_tensor(b"" if kind is dtypes.string else 0, kind) for kind in found]


def _fits(field: bytes, dtype: dtypes.DType) -> bool:
    try:
        value = csv.value_of(field, dtype)
    except ValueError:
        return False
    # A number that float32 can't hold is one of float64; infinity and NaN are text, as in TensorFlow.
    with np.errstate(over="ignore"):
        return not dtype.is_floating or bool(dtype._np.type(value) < np.inf)


def make_csv_dataset(
    file_pattern: Any, batch_size: Any, column_names: Any = None, column_defaults: Any = None,
    label_name: str | None = None, select_columns: Any = None, field_delim: str = ",", use_quote_delim: bool = True,
    na_value: str = "", header: bool = True, num_epochs: int | None = None, shuffle: bool = True,
    shuffle_buffer_size: int = 10000, shuffle_seed: int | None = None, prefetch_buffer_size: int | None = None,
    num_parallel_reads: int | None = None, sloppy: bool = False, num_rows_for_inference: int | None = 100,
    compression_type: Any = None, ignore_errors: bool = False, encoding: str = "utf-8",
) -> Dataset:  # fmt: skip
    """Batches of rows of CSV files, as dictionaries from the names of columns to tensors of shape [batch_size].

    file_pattern: names of files, which may have `*`, `?` and `[...]`. column_names: by default taken from the first
    line of each file. column_defaults: see `CsvDataset`'s record_defaults; by default dtypes are inferred from the
    first `num_rows_for_inference` rows, and empty fields are 0 or "". label_name: the column to use as the label;
    elements are then (features, label). select_columns: names or numbers of the columns to read. num_epochs: how often
    to repeat the rows; None: forever, and then all batches are full. shuffle: of files, and of `shuffle_buffer_size`
    rows.
    num_parallel_reads: how many files take turns. ignore_errors: skip rows that don't fit. Raises ValueError for files
    with different columns, unknown names, and the like."""
    paths = _matching(file_pattern)
    compression = checked_compression(compression_type)
    delimiter, blank = csv.checked_delimiter(field_delim), na_value.encode()
    if column_names is None:
        if not header:
            raise ValueError("Cannot infer column names without a header line.")
        names = _header(paths[0], compression, delimiter, use_quote_delim, encoding)
        for path in paths[1:]:
            if _header(path, compression, delimiter, use_quote_delim, encoding) != names:
                raise ValueError("All input CSV files must have the same column names in the header row.")
    else:
        names = list(column_names)
    if len(names) != len(set(names)):
        raise ValueError("Cannot have duplicate column names.")
    chosen = list(range(len(names)))
    if select_columns is not None:
        chosen = sorted(_numbers(select_columns, names))
    if column_defaults is not None:
        defaults = list(column_defaults)
    else:
        rows = 2**62 if num_rows_for_inference is None else num_rows_for_inference
        defaults = _inferred(paths[0], compression, names, chosen, delimiter, use_quote_delim, blank, header, rows)
    columns = [names[number] for number in chosen]
    if len(defaults) != len(columns):
        raise ValueError(f"column_defaults has {len(defaults)} entries for the {len(columns)} columns {columns}")
    if label_name is not None and label_name not in columns:
        raise ValueError("`label_name` provided must be one of the columns.")

    def rows_of(path: Any) -> Dataset:
        records: Dataset = CsvDataset(
            path, defaults, compression, header=header, field_delim=field_delim, use_quote_delim=use_quote_delim,
            na_value=na_value, select_cols=chosen if select_columns is not None else None,
        )  # fmt: skip
        return Dataset(mixing.WithoutErrors(records._plan, None)) if ignore_errors else records

    def named(*values: Any) -> Any:
        features = dict(zip(columns, values))
        if label_name is None:
            return features
        label = features.pop(label_name)
        return features, label

    files = Dataset.from_tensor_slices(paths)
    if shuffle:
        files = files.shuffle(len(paths), shuffle_seed)
    reads = 1 if num_parallel_reads is None else num_parallel_reads
    dataset = files.interleave(
        rows_of, reads, num_parallel_calls=reads if reads > 1 else None, deterministic=not sloppy
    )
    dataset = _shuffled_and_repeated(dataset, num_epochs, shuffle, shuffle_buffer_size, shuffle_seed)
    dataset = dataset.batch(batch_size, drop_remainder=num_epochs is None).map(named)
    return dataset.prefetch(AUTOTUNE if prefetch_buffer_size is None else prefetch_buffer_size)


def _header(path: str, compression: str, delimiter: bytes, quotes: bool, encoding: str) -> list[str]:
    first = next(_records(path, compression, quotes), None)
    if first is None:
        raise ValueError(f"Received StopIteration when reading the header line of {path}.  Empty file?")
    return [name.decode(encoding) for name in csv.fields_of(first, delimiter, quotes)]


def _numbers(selected: Any, names: list[str]) -> list[int]:
    """The numbers of columns given by names or numbers. Raises ValueError for others, and for one given twice."""
    found = []
    for each in selected:
        if isinstance(each, str) and each not in names:
            raise ValueError(f"`select_columns` contains {each!r}, which isn't a column; the columns are {names}")
        number = names.index(each) if isinstance(each, str) else static_int(each, "select_columns")
        if not 0 <= number < len(names):
            raise ValueError(f"`select_columns` contains {number}, but columns are numbered from 0 to {len(names) - 1}")
        found.append(number)
    if len(found) != len(set(found)):
        raise ValueError("`select_columns` contains duplicate columns")
    return found


def parse_example_dataset(
    features: Any, num_parallel_calls: Any = 1, deterministic: bool | None = None
) -> Callable[[Dataset], Dataset]:
    """A transformation for `Dataset.apply`: `ag.io.parse_example` of each element, a vector of messages."""
    if features is None:
        raise ValueError("Argument `features` is required, but not specified.")
    return lambda dataset: dataset.map(lambda messages: parse_example(messages, features))


def make_batched_features_dataset(
    file_pattern: Any, batch_size: Any, features: Any, reader: Any = None, label_key: str | None = None,
    reader_args: Any = None, num_epochs: int | None = None, shuffle: bool = True, shuffle_buffer_size: int = 10000,
    shuffle_seed: int | None = None, prefetch_buffer_size: int | None = None, reader_num_threads: int | None = None,
    parser_num_threads: int | None = None, sloppy_ordering: bool = False, drop_final_batch: bool = False,
) -> Dataset:  # fmt: skip
    """Batches of the features of `Example` messages in files, parsed by `ag.io.parse_example`.

    reader: makes a dataset of a file's name and `reader_args`; `TFRecordDataset` by default. label_key: the feature to
    use as the label; elements are then (features, label). The other arguments are those of `make_csv_dataset`."""
    paths = _matching(file_pattern)
    make = TFRecordDataset if reader is None else reader
    files = Dataset.from_tensor_slices(paths)
    if shuffle:
        files = files.shuffle(len(paths), shuffle_seed)
    threads = 1 if reader_num_threads is None else reader_num_threads
    dataset = files.interleave(
        lambda path: make(path, *(reader_args or ())), threads,
        num_parallel_calls=threads if threads > 1 else None, deterministic=not sloppy_ordering,
    )  # fmt: skip
    if type(dataset.element_spec) is tuple:
        dataset = dataset.map(lambda *parts: parts[-1])  # of keys and values
    dataset = _shuffled_and_repeated(dataset, num_epochs, shuffle, shuffle_buffer_size, shuffle_seed)
    dataset = dataset.batch(batch_size, drop_remainder=drop_final_batch or num_epochs is None)
    dataset = dataset.apply(parse_example_dataset(features))
    if label_key is not None:
        if label_key not in features:
            raise ValueError(f"The `label_key` provided ({label_key!r}) must be one of the `features` keys.")
        dataset = dataset.map(lambda given: ({k: v for k, v in given.items() if k != label_key}, given[label_key]))
    return dataset.prefetch(AUTOTUNE if prefetch_buffer_size is None else prefetch_buffer_size)
