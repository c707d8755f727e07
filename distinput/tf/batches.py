# SPDX-License-Identifier: Apache-2.0
"""Batches from files of records or CSV in one call, as `tf.data.experimental` makes them."""

import codecs
import csv
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from typing import Any

import numpy as np

from distinput.data.dataset import Dataset
from distinput.data.file_datasets import TFRecordDataset
from distinput.data.file_datasets.csv import CsvDataset
from distinput.errors import InvalidArgumentError
from distinput.files.compression import as_compression
from distinput.files.source import EMPTY, FileStream
from distinput.formats.csv import Csv
from distinput.formats.features import Feature
from distinput.formats.recognise import tell_format
from distinput.plan.check import AUTOTUNE, at_least, callable_argument
from distinput.plan.options import Options

# ----------------------------------------------------------------------------
# Batches from files of records in one call: read, shuffled, repeated, batched and parsed.
# ----------------------------------------------------------------------------


_SHUFFLED = 10_000
"""Records among which the next is drawn."""

_READ_AT_ONCE = 24
"""Files that are read at a time, as many as in TensorFlow, since their number decides the order."""


def make_batched_features_dataset(
    file_pattern: Any,
    batch_size: int,
    features: Mapping[str, Feature],
    reader: Callable[..., Dataset[Any]] | None = None,
    label_key: str | None = None,
    reader_args: Sequence[Any] | None = None,
    num_epochs: int | None = None,
    shuffle: bool = True,
    shuffle_buffer_size: int = _SHUFFLED,
    shuffle_seed: int | None = None,
    prefetch_buffer_size: int | None = None,
    reader_num_threads: int | None = None,
    parser_num_threads: int | None = None,
    sloppy_ordering: bool = False,
    drop_final_batch: bool = False,
) -> Dataset[Any]:
    """Batches of parsed Examples: dicts, or tuples of a dict and a label.

    Args:
      file_pattern: as for `Dataset.list_files`.
      batch_size: records in a batch.
      features: the features to parse by name, as for `parse_example`.
      reader: (file name, *reader_args) -> dataset of records; `TFRecordDataset` when None.
      label_key: the feature that becomes the second item of a tuple.
      reader_args: further arguments of `reader`.
      num_epochs: passes over the data; None: without an end. Then all batches are full.
      shuffle: draw files and records in random order.
      shuffle_buffer_size: records among which the next is drawn.
      shuffle_seed: any integer; None draws one.
      prefetch_buffer_size: batches made ahead; None chooses.
      reader_num_threads: files read at a time, whose records take turns; 1 when None.
      parser_num_threads: accepted as TensorFlow's: all records of a block are parsed by one call of compiled code.
      sloppy_ordering: True: whichever file has a record ready comes next.
      drop_final_batch: leave out a last batch that is not full.

    Raises:
      InvalidArgumentError: `label_key` is no feature.
      NoMatchError: no file matches.
      TypeError: `reader` is not callable.

    >>> import distinput as di
    >>> with di.io.TFRecordWriter("a.tfrecord") as writer:
    ...     for i in range(3):
    ...         writer.write(di.io.encode_example({"x": i, "y": float(i)}))
    >>> features = {"x": di.io.FixedLenFeature([], "int64"), "y": di.io.FixedLenFeature([], "float32")}
    >>> di.data.experimental.make_batched_features_dataset(
    ...     "*.tfrecord", 2, features, label_key="y", num_epochs=1, shuffle=False
    ... ).to_list()
    [({'x': [0, 1]}, [0.0, 1.0]), ({'x': [2]}, [2.0])]

    Source: `tf.data.experimental.make_batched_features_dataset`.
    """
    if label_key is not None and label_key not in features:
        raise InvalidArgumentError(
            f"make_batched_features_dataset: label_key must be one of the features, {', '.join(sorted(features))}; got "
            f"{label_key!r}"
        )
    threads = 1 if reader_num_threads is None else reader_num_threads
    if threads != AUTOTUNE:
        at_least("make_batched_features_dataset", "reader_num_threads", threads, 1)
    files = Dataset.list_files(file_pattern, shuffle, shuffle_seed)
    records = _read(files, reader, tuple(reader_args or ()), threads)
    records = _shuffled_and_repeated(records, num_epochs, shuffle, shuffle_buffer_size, shuffle_seed, sloppy_ordering)
    batches = records.batch(batch_size, drop_remainder=drop_final_batch or num_epochs is None)
    parsed: Dataset[Any] = batches.parse_example(features, parser_num_threads)
    if label_key is not None:
        spec = _labelled(label_key, parsed.element_spec)
        parsed = parsed.map(partial(_labelled, label_key), output_signature=spec)
    return parsed.prefetch(AUTOTUNE if prefetch_buffer_size is None else prefetch_buffer_size)


def _labelled(label_key: str, found: dict[str, Any]) -> Any:
    """The features without one of them, and that one."""
    return {key: value for key, value in found.items() if key != label_key}, found[label_key]


def make_tf_record_dataset(
    file_pattern: Any,
    batch_size: int,
    parser_fn: Callable[..., Any] | None = None,
    num_epochs: int | None = None,
    shuffle: bool = True,
    shuffle_buffer_size: int | None = None,
    shuffle_seed: int | None = None,
    prefetch_buffer_size: int | None = None,
    num_parallel_reads: int | None = None,
    num_parallel_parser_calls: int | None = None,
    drop_final_batch: bool = False,
) -> Dataset[Any]:
    """Batches of the records of TFRecord files, parsed by a function.

    Args:
      file_pattern: as for `Dataset.list_files`.
      batch_size: records in a batch.
      parser_fn: record -> element; records stay bytes when None.
      num_epochs: passes over the data; None: without an end. Then all batches are full.
      shuffle: draw files and records in random order.
      shuffle_buffer_size: records among which the next is drawn; 10,000 when None.
      shuffle_seed: any integer; None draws one.
      prefetch_buffer_size: batches made ahead; None chooses, 0: none.
      num_parallel_reads: files read at a time, whose records take turns; 24 when None.
      num_parallel_parser_calls: as `num_parallel_calls` of `map`; one after the other when None.
      drop_final_batch: leave out a last batch that is not full.

    Raises:
      NoMatchError: no file matches.

    >>> import distinput as di
    >>> with di.io.TFRecordWriter("a.tfrecord") as writer:
    ...     for i in range(3):
    ...         writer.write(b"%d" % i)
    >>> di.data.experimental.make_tf_record_dataset("*.tfrecord", 2, int, num_epochs=1, shuffle=False).to_list()
    [[0, 1], [2]]

    Source: `make_tf_record_dataset` of tensorflow/python/data/experimental/ops/readers.py.
    """
    files = Dataset.list_files(file_pattern, shuffle, shuffle_seed)
    reads = _READ_AT_ONCE if num_parallel_reads is None else num_parallel_reads
    records: Dataset[Any] = TFRecordDataset(files, num_parallel_reads=reads)
    buffer_size = _SHUFFLED if shuffle_buffer_size is None else shuffle_buffer_size
    records = _shuffled_and_repeated(records, num_epochs, shuffle, buffer_size, shuffle_seed)
    if parser_fn is not None:
        records = records.map(parser_fn, num_parallel_parser_calls)
    batches = records.batch(batch_size, drop_remainder=drop_final_batch or num_epochs is None)
    if prefetch_buffer_size == 0:
        return batches
    return batches.prefetch(AUTOTUNE if prefetch_buffer_size is None else prefetch_buffer_size)


def _read(
    files: Dataset[Any], reader: Callable[..., Dataset[Any]] | None, arguments: tuple[Any, ...], threads: int
) -> Dataset[Any]:
    """The records of files, by one reader after the other or by several in turns."""
    if reader is None and threads == 1:
        return TFRecordDataset(files, *arguments)
    read: Callable[..., Dataset[Any]] = TFRecordDataset if reader is None else reader
    callable_argument("make_batched_features_dataset", "reader", read)
    if threads == 1:
        return files.flat_map(lambda name: read(name, *arguments))
    cycle = None if threads == AUTOTUNE else threads
    return files.interleave(lambda name: read(name, *arguments), cycle, num_parallel_calls=threads)


def _shuffled_and_repeated(
    records: Dataset[Any],
    num_epochs: int | None,
    shuffle: bool,
    buffer_size: int,
    seed: int | None,
    sloppy: bool = False,
) -> Dataset[Any]:
    if sloppy:
        options = Options()
        options.deterministic = False
        records = records.with_options(options)
    if shuffle:
        records = records.shuffle(buffer_size, seed)
    return records if num_epochs == 1 else records.repeat(num_epochs)


# ----------------------------------------------------------------------------
# `make_csv_dataset`: batches from CSV files in one call: read, shuffled, repeated, batched and named.
# ----------------------------------------------------------------------------


_CHUNK_BYTES = 1 << 16
_KINDS = ("int32", "int64", "float32", "float64", "object")
"""From the least permissive one on."""


def make_csv_dataset(
    file_pattern: Any,
    batch_size: int,
    column_names: Sequence[str] | None = None,
    column_defaults: Sequence[Any] | None = None,
    label_name: str | None = None,
    select_columns: Sequence[int | str] | None = None,
    field_delim: str = ",",
    use_quote_delim: bool = True,
    na_value: str = "",
    header: bool = True,
    num_epochs: int | None = None,
    shuffle: bool = True,
    shuffle_buffer_size: int = 10_000,
    shuffle_seed: int | None = None,
    prefetch_buffer_size: int | None = None,
    num_parallel_reads: int | None = None,
    sloppy: bool = False,
    num_rows_for_inference: int | None = 100,
    compression_type: str | None = None,
    ignore_errors: bool = False,
    encoding: str = "utf-8",
) -> Dataset[Any]:
    r"""Batches of the rows of CSV files: dicts of columns, or tuples of a dict and a label.

    Args:
      file_pattern: as for `Dataset.list_files`.
      batch_size: rows in a batch.
      column_names: names of all columns in the order of the files; those of the headers when None.
      column_defaults: as `record_defaults` of `CsvDataset`, for the columns that are read. None: types are inferred, as
        int32, int64, float32, float64 or text, and an empty field becomes 0 or "".
      label_name: the column that becomes the second item of a tuple.
      select_columns: names or numbers of the columns to read; all when None.
      field_delim: the character between fields.
      use_quote_delim: whether double quotes may stand around a field.
      na_value: text that stands for an empty field.
      header: whether the first record of each file is a header.
      num_epochs: passes over the data; None: without an end. Then all batches are full.
      shuffle: draw files and rows in random order.
      shuffle_buffer_size: rows among which the next is drawn.
      shuffle_seed: any integer; None draws one.
      prefetch_buffer_size: batches made ahead; None chooses.
      num_parallel_reads: files read at a time, whose rows take turns; 1 when None.
      sloppy: True: whichever file has a row ready comes next.
      num_rows_for_inference: rows from which types are inferred; None: all.
      compression_type: "" or None, "GZIP" or another codec; "AUTO" goes by the suffix of each name.
      ignore_errors: leave out records that cannot be read.
      encoding: of the files, where names and types are inferred from them.

    Raises:
      InvalidArgumentError: names, defaults or columns do not fit together, or headers differ.
      NoMatchError: no file matches.

    >>> import distinput as di
    >>> import pathlib
    >>> _ = pathlib.Path("a.csv").write_text("x,name,y\n1,a,0.5\n2,b,1.5\n3,c,2.5\n")
    >>> di.data.experimental.make_csv_dataset("a.csv", 2, label_name="y", num_epochs=1, shuffle=False).to_list()
    [({'x': [1, 2], 'name': [b'a', b'b']}, [0.5, 1.5]), ({'x': [3], 'name': [b'c']}, [2.5])]

    Source: `tf.data.experimental.make_csv_dataset`.
    """
    files = [os.fsdecode(name) for name in Dataset.list_files(file_pattern, shuffle=False)]
    texts = partial(_records, delimiter=field_delim, quoted=use_quote_delim, packed=compression_type, encoding=encoding)
    named = partial(texts, marked=True)
    if column_names is None:
        if not header:
            raise InvalidArgumentError("make_csv_dataset: without a header, column_names must be given")
        column_names = _names_in(files, named)
    names = list(column_names)
    if len(set(names)) < len(names):
        raise InvalidArgumentError(f"make_csv_dataset: column names must differ, got {', '.join(names)}")
    numbers = None if select_columns is None else _numbers_of(select_columns, names)
    if column_defaults is None:
        column_defaults = _inferred(files, texts, len(names), numbers, na_value, header, num_rows_for_inference)
    kept = names if numbers is None else [names[number] for number in numbers]
    if len(column_defaults) != len(kept):
        raise InvalidArgumentError(
            f"make_csv_dataset: column_defaults must have one for each column, {', '.join(kept)}; got {len(column_defaults)}"
        )
    if label_name is not None and label_name not in kept:
        raise InvalidArgumentError(
            f"make_csv_dataset: label_name must be one of the columns, {', '.join(kept)}; got {label_name!r}"
        )

    def read(paths: Any, reads: int | None) -> Dataset[Any]:
        return CsvDataset(
            paths,
            column_defaults,
            compression_type,
            None,
            header,
            field_delim,
            use_quote_delim,
            na_value,
            numbers,
            num_parallel_reads=reads,
            on_error="skip" if ignore_errors else None,
        )

    paths = Dataset.from_tensor_slices([os.fsencode(name) for name in files])
    if shuffle:
        paths = paths.shuffle(len(files), shuffle_seed)
    rows = read(paths, None if num_parallel_reads in (None, 1) else num_parallel_reads)
    rows = _shuffled_and_repeated(rows, num_epochs, shuffle, shuffle_buffer_size, shuffle_seed, sloppy)
    batches: Dataset[Any] = rows.batch(batch_size, drop_remainder=num_epochs is None)
    naming = partial(_named, tuple(kept), label_name)
    made = batches.map(naming, output_signature=naming(*batches.element_spec))
    return made.prefetch(AUTOTUNE if prefetch_buffer_size is None else prefetch_buffer_size)


def _named(names: tuple[str, ...], label_name: str | None, *columns: Any) -> Any:
    """The columns by name, and the label beside them."""
    features = dict(zip(names, columns, strict=True))
    return features if label_name is None else (features, features.pop(label_name))


def _lines(path: str, packed: str | None, encoding: str) -> Iterator[str]:
    """The lines of a text file, with their ends."""
    decoder = codecs.getincrementaldecoder(encoding)()
    rest, ended = "", False
    with FileStream(path, as_compression(packed)) as source:
        while not ended:
            data, ended = source.more(EMPTY, _CHUNK_BYTES)
            try:
                text = decoder.decode(data.tobytes(), ended)
            except UnicodeDecodeError as error:
                refused = InvalidArgumentError(f"{path}: make_csv_dataset: it is no text in {encoding}: {error.reason}")
                tell_format(refused, Csv(), path)
                raise refused from error
            *whole, rest = (rest + text).split("\n")
            yield from (line + "\n" for line in whole)
    if rest:
        yield rest


def _records(
    path: str, *, delimiter: str, quoted: bool, packed: str | None, encoding: str, marked: bool = False
) -> Iterator[list[str]]:
    """The fields of each record; without a byte order mark, if there may be one."""
    lines = _lines(path, packed, encoding)
    if marked:
        lines = chain([line.removeprefix("\ufeff") for line in islice(lines, 1)], lines)
    return csv.reader(lines, delimiter=delimiter, quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE)


def _names_in(files: list[str], texts: Any) -> list[str]:
    """The names in the headers, which must agree."""
    first: list[str] = []
    for path in files:
        found = next(texts(path), None)
        if found is None:
            raise InvalidArgumentError(f"make_csv_dataset: {path}: there is no header; is it an empty file?")
        if path != files[0] and found != first:
            raise InvalidArgumentError(
                f"make_csv_dataset: {path}: the columns in the header are {', '.join(found)}, but those of {files[0]} are "
                f"{', '.join(first)}"
            )
        first = found
    return first


def _numbers_of(select_columns: Sequence[int | str], names: list[str]) -> list[int]:
    """The numbers of the columns to read, in order."""
    found = []
    for column in select_columns:
        if column not in (range(len(names)) if isinstance(column, int) else names):
            raise InvalidArgumentError(
                f"make_csv_dataset: select_columns must have names or numbers of the columns {', '.join(names)}; got {column!r}"
            )
        found.append(column if isinstance(column, int) else names.index(column))
    if len(set(found)) < len(found):
        raise InvalidArgumentError(f"make_csv_dataset: select_columns has a column twice: {list(select_columns)}")
    return sorted(found)


def _inferred(
    files: list[str], texts: Any, width: int, chosen: list[int] | None, na_value: str, header: bool, most: int | None
) -> list[Any]:
    """The defaults of columns whose types the first rows show."""
    numbers = range(width) if chosen is None else chosen
    kinds = [-1] * len(numbers)
    seen = 0
    for path in files:
        for row, fields in enumerate(texts(path), 1):
            if header and row == 1:
                continue
            if most is not None and seen >= most:
                break
            if len(fields) != width:
                raise InvalidArgumentError(
                    f"make_csv_dataset: {path}: row {row} has {len(fields)} fields, expected {width}; types cannot be inferred"
                )
            kinds = [_kind(fields[number], na_value, kind) for number, kind in zip(numbers, kinds, strict=True)]
            seen += 1
    return [b"" if kind in (-1, 4) else np.zeros(1, _KINDS[kind]) for kind in kinds]


def _kind(field: str, na_value: str, before: int) -> int:
    """The number of the least permissive kind that fits this field and those before; -1: unknown."""
    if field in ("", na_value):
        return before
    return next(number for number in range(max(0, before), len(_KINDS)) if _fits(field, _KINDS[number]))


def _fits(field: str, kind: str) -> bool:
    if kind == "object":
        return True
    dtype = np.dtype(kind)
    try:
        if dtype.kind == "i":
            return bool(np.iinfo(dtype).min <= int(field) <= np.iinfo(dtype).max)
        with np.errstate(over="ignore"):
            return bool(dtype.type(field) < np.inf)
    except (ValueError, OverflowError):
        return False
