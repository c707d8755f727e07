# SPDX-License-Identifier: Apache-2.0
"""Records of files as Python values: the first ones, or some at random."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from itertools import chain, islice, repeat
from typing import Any

import numpy as np
from pyarrow import types

from distinput.arrow.arrow import is_list, take, with_offsets, without_runs
from distinput.arrow.validity import items_of
from distinput.errors import DataLossError, InvalidArgumentError
from distinput.files.source import stamp_of
from distinput.formats.example_encoding import decode_example, decode_sequence_example, fields_of
from distinput.formats.table_batches import is_table, table_batches
from distinput.inspect.columns import times_of
from distinput.inspect.files import Files, open_files
from distinput.kernels.protobuf import MalformedError
from distinput.names.lazy import dataclass
from distinput.url_secrets import without_secrets
from distinput.values.nullable import Nullable

# ----------------------------------------------------------------------------
# What records of bytes are: `tf.train.Example` messages, `tf.train.SequenceExample` messages, or anything else.
# ----------------------------------------------------------------------------


KINDS = ("example", "sequence_example", "bytes")
"""What records of bytes may be."""

LOOKED_AT = 100
"""Records that are decoded to see what all are."""


def kind_of(records: Iterable[bytes]) -> str:
    """What the first records are, one of `KINDS`: messages with features, all of them, or else bytes.

    >>> import distinput as di
    >>> kind_of([di.io.encode_example({"x": 1})]), kind_of([b"a text"])
    ('example', 'bytes')
    """
    looked = list(islice(records, LOOKED_AT))
    if not looked or all(map(_is_list_of_examples, looked)):
        return "bytes"
    try:
        found = [decode_sequence_example(record) for record in looked]
    except InvalidArgumentError:
        return "bytes"
    if not all(context or lists for context, lists in found):
        return "bytes"
    return "sequence_example" if any(lists for _, lists in found) else "example"


def _is_list_of_examples(record: bytes) -> bool:
    """Whether a message is an ExampleListWithContext: Examples where a SequenceExample has features."""
    try:
        parts = [content for number, form, content in fields_of(record) if number in (1, 2) and form == 2]
        decoded = [decode_example(part) for part in parts]  # all of them
    except (InvalidArgumentError, MalformedError):
        return False
    return any(value is not None for features in decoded for value in features.values())


def decoder(kind: str) -> Callable[[bytes], Any]:
    """What turns a record of a kind into values: features by key, those of the steps of a sequence as lists."""
    if kind == "example":
        return decode_example
    return _sequence if kind == "sequence_example" else bytes


def _sequence(record: bytes) -> dict[str, Any]:
    context, lists = decode_sequence_example(record)
    return {"context": context, "feature_lists": lists}


_OF_BYTES = ("array_record", "tfrecord")
"""The formats whose records may be messages."""

_KEYS = 1 << 16
_FEW = 16


@dataclass(frozen=True)
class Record:
    """A record, and where it is.

    Attributes:
      file: the path of its file; of a URL without its secrets.
      row: its number there, from 0.
      value: a dict with a value for each column or feature, an array, or bytes. What is missing is None.
    """

    file: str
    row: int
    value: Any


def head(
    filenames: Any, n: int = 10, format: str | None = None, *, records: str | None = None, **options: Any
) -> list[Record]:
    """The first records of each of several files.

    Little more of a file is read than what holds them.

    Args:
      filenames: a path, pattern or directory, a list of them, or what `open_files` found.
      n: how many of each file, at least 0.
      format: the name of their format; None: it is recognised.
      records: what records of bytes are: "example", "sequence_example" or "bytes"; None: the first ones are looked at.
      **options: as `open_files` takes them.

    Raises:
      NotFoundError: a file is not there.
      DataLossError: a file is damaged before the last of these records.

    >>> import distinput as di
    >>> with di.io.TFRecordWriter("people.tfrecord") as writer:
    ...     writer.write(di.io.encode_example({"name": "Ada", "born": 1815}))
    >>> head("people.tfrecord")[0].value
    {'born': array([1815]), 'name': array([b'Ada'], dtype=object)}
    """
    if n < 0:
        raise InvalidArgumentError(f"head: n must be at least 0, got {n}")
    files = open_files(filenames, format, **options)
    found = []
    for path in files.paths:
        each = records_of(files, path, records, most_rows=max(1, min(n, 1024)))
        with closing(each):  # type: ignore[type-var]  # a generator
            found += list(islice(each, n))
    return found


def sample(
    filenames: Any, n: int = 10, format: str | None = None, *, seed: int = 0, records: str | None = None, **options: Any
) -> list[Record]:
    """Records at random: each set of `n` records of all files together is as likely as any other.

    The same files and seed give the same records, in the order in which they are in the files; so do files of another format
    that hold the same records. All files are read; in memory are the `n` records and a number for each of some others.

    Args:
      filenames: as for `head`.
      n: how many; all if there are no more.
      format: the name of their format; None: it is recognised.
      seed: of the choice.
      records: as for `head`.
      **options: as `open_files` takes them.

    Raises:
      NotFoundError: a file is not there.
      DataLossError: a file is damaged.

    >>> import distinput as di
    >>> _ = di.data.Dataset.range(1000).write("thousand", "parquet")
    >>> rows = [record.row for record in sample("thousand", 3, seed=1)]
    >>> len(rows), rows == sorted(rows), rows == [record.value["value"] for record in sample("thousand", 3, seed=1)]
    (3, True, True)

    Source: a random key for each record, of which the smallest stay: Vitter's reservoir without replacement, as Efraimidis and
    Spirakis write it ("Weighted random sampling with a reservoir", 2006) with equal weights.
    """
    if n < 0:
        raise InvalidArgumentError(f"sample: n must be at least 0, got {n}")
    files = open_files(filenames, format, **options)
    reservoir: list[tuple[float, int, Record]] = []
    worst = np.inf
    keys = _keys(seed)
    number = 0
    for path in files.paths:
        for record in records_of(files, path, records) if n else ():
            key = next(keys)
            if key < worst or len(reservoir) < n:
                reservoir.append((key, number, record))
                if len(reservoir) >= 2 * n + 64:
                    reservoir = sorted(reservoir)[:n]
                    worst = reservoir[-1][0]
            number += 1
    return [record for _, _, record in sorted(sorted(reservoir)[:n], key=lambda each: each[1])]


def _keys(seed: int) -> Iterator[float]:
    """A random number for each record, by its position."""
    random = np.random.Generator(np.random.PCG64(seed))
    return chain.from_iterable(random.random(_KEYS).tolist() for _ in repeat(None))


def record_kind(files: Files, path: str, records: str | None = None) -> str:
    """What the records of a file are: one of `KINDS`, or "row" for columns, or "value" for anything else.

    Args:
      files: what it is one of.
      path: the file.
      records: "example", "sequence_example" or "bytes" where that is known.

    Raises:
      InvalidArgumentError: `records` is none of these.
    """
    if records is not None and records not in KINDS:
        raise InvalidArgumentError(f"records must be one of {', '.join(KINDS)}, got {records!r}")
    if is_table(files.format):
        return "row"
    if files.format.name not in _OF_BYTES:
        return "value"
    if records is not None:
        return records
    with closing(_elements(files, path, _FEW)) as found:  # type: ignore[type-var]  # a generator
        try:
            return kind_of(found)
        except DataLossError:
            return "bytes"


def records_of(files: Files, path: str, records: str | None = None, most_rows: int = 1024) -> Iterator[Record]:
    """The records of one file.

    Args:
      files: what it is one of.
      path: the file.
      records: as for `head`.
      most_rows: that are decoded at a time.
    """
    stamp_of(path)  # a missing file is missing whatever its format
    kind, printed = record_kind(files, path, records), without_secrets(path)
    if kind == "row":
        rows = (value for batch in table_batches(files.format, path, most_rows) for value in rows_of(batch))
        yield from (Record(printed, row, value) for row, value in enumerate(rows))
        return
    decode = decoder(kind) if kind in KINDS else None
    for row, value in enumerate(_elements(files, path, most_rows)):
        try:
            yield Record(printed, row, _told(value) if decode is None else decode(value))
        except InvalidArgumentError as error:
            raise DataLossError(
                f"{path}: record {row} is no {kind}: {error}; look at the bytes with records='bytes'"
            ) from None


def _told(value: Any) -> Any:
    """An element as a row of a table would be: None where a `Nullable` is none, also among the values of a list."""
    if isinstance(value, Nullable):
        valid, inside = value["valid"], _told(value["value"])
        if not isinstance(valid, np.ndarray):
            return inside if valid else None
        if isinstance(inside, np.ndarray) and inside.shape == valid.shape and valid.ndim == 1:
            return [item if there else None for item, there in zip(inside, valid, strict=True)]
        return {"value": inside, "valid": valid}
    return {name: _told(part) for name, part in value.items()} if type(value) is dict else value


def _elements(files: Files, path: str, most_rows: int) -> Iterator[Any]:
    blocks = files.format.read(path)
    with closing(blocks):  # type: ignore[type-var]  # a generator
        for block, _ in blocks:
            for first in range(0, block.size, most_rows):
                yield from block.rows(first, first + most_rows).elements()


def rows_of(batch: Any) -> Iterator[dict[str, Any]]:
    """The rows of a record batch as dicts; text as bytes, as datasets have it, and None for nulls."""
    names, columns = batch.schema.names, [_values(without_runs(column)) for column in batch.columns]
    for row in range(batch.num_rows):
        yield {name: column[row] for name, column in zip(names, columns, strict=True)}


def _values(array: Any) -> list[Any]:
    kind = str(array.type)
    if types.is_temporal(array.type):
        return _times(array)
    if types.is_struct(array.type) and array.type.num_fields:
        fields = [_values(part) for part in array.flatten()]
        names = [field.name for field in array.type]
        rows = [dict(zip(names, row, strict=True)) for row in zip(*fields, strict=True)]
        return [row if there else None for row, there in zip(rows, array.is_valid().to_pylist(), strict=True)]
    if is_list(array.type) or types.is_fixed_size_list(array.type):
        from pyarrow.compute import list_value_length

        array = with_offsets(array)
        items = iter(_values(items_of(array)[0]))
        return [None if size is None else list(islice(items, size)) for size in list_value_length(array).to_pylist()]
    if types.is_dictionary(array.type):
        return _values(take(array.dictionary, array.indices))
    if kind in ("string", "large_string"):
        array = array.view("binary" if kind == "string" else "large_binary")  # without pyarrow.compute
    try:
        found: list[Any] = array.to_pylist()
    except (UnicodeDecodeError, ValueError, NotImplementedError, OverflowError) as error:
        raise DataLossError(f"a column of type {kind} holds what is no value of it: {error}") from error
    return [_as_bytes(value) for value in found] if "string" in kind else found


def _times(array: Any) -> list[Any]:
    """Times as Python has them, and as NumPy has them where it has not: nanoseconds, and years after 9999."""
    with suppress(ValueError, NotImplementedError, OverflowError):
        if getattr(array.type, "unit", "") != "ns" and not _outside_a_day(array):
            return list(array.to_pylist())
    found = times_of(array)
    if found is None:
        return list(array.to_pylist())
    return [None if missing else value for value, missing in zip(found, np.isnat(found), strict=True)]


def _outside_a_day(array: Any) -> bool:
    """Whether times of day are none, which Python takes for those of another day."""
    if not types.is_time(array.type):
        return False
    found, day = times_of(array), np.timedelta64(1, "D")
    return bool(((found < np.timedelta64(0, "s")) | (found >= day)).any())


def _as_bytes(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, list | tuple):  # the pairs of a map are tuples
        return type(value)([_as_bytes(each) for each in value])
    return {key: _as_bytes(each) for key, each in value.items()} if isinstance(value, dict) else value
