# SPDX-License-Identifier: Apache-2.0
"""What files are: their format, their size, and the columns or features of their records."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from distinput.arrow.arrow import UnsupportedTypeError, schema_spec
from distinput.errors import InvalidArgumentError
from distinput.files.source import size_of, stamp_of
from distinput.formats.parquet_file import Compact, ThriftError, footer_bytes, footer_of, part_of
from distinput.formats.table_batches import schema_of_table
from distinput.inspect.examples import as_code, features_of
from distinput.inspect.files import Files, open_files
from distinput.inspect.records import record_kind
from distinput.names.lazy import dataclass
from distinput.url_secrets import without_secrets
from distinput.values.nest import Structure
from distinput.values.spec import TensorSpec

_NO_DTYPES = ("mixed", "string")
"""What `ColumnDescription.dtype` may be beside the names of NumPy."""

_CREATED_BY = 6
"""The field of the footer of a Parquet file that names who wrote it."""


@dataclass(frozen=True)
class ColumnDescription:
    """A column, a feature, or what records are if they have no parts.

    Attributes:
      name: of the column; "value" for records without parts.
      dtype: as NumPy names it; "string" for bytes and text.
      shape: of a value; None for a dimension that differs.
      declaration: of a feature of an Example, as Python has it; None for others.
      present: for features, in how many of the messages that were looked at it is; None for others.
    """

    name: str
    dtype: str
    shape: tuple[int | None, ...]
    declaration: str | None = None
    present: int | None = None

    @property
    def held(self) -> bool:
        """False for a column of a type that no array can hold, whose name `dtype` is: a dataset has to leave it out."""
        try:
            np.dtype(self.dtype if self.dtype not in _NO_DTYPES else object)
        except (TypeError, ValueError):  # the latter for names with parentheses or <
            return False
        return True


Column = ColumnDescription
"""The name that it had before."""


@dataclass(frozen=True)
class Description:
    """What files are.

    Attributes:
      format: the name of their format.
      how: what told it.
      compression: of the files as a whole; "" if they are not compressed.
      files: the paths.
      bytes: the size of all files.
      records: in all files, if that is known without reading them; else None.
      record: what a record is: "row" of columns, "example", "sequence_example", "bytes" or "value".
      columns: of a record of the first file that has one.
      looked_at: how many messages were decoded to find their features; 0 for other records.
      details: what else the format says.
    """

    format: str
    how: str
    compression: str
    files: tuple[str, ...]
    bytes: int
    records: int | None
    record: str
    columns: tuple[ColumnDescription, ...]
    looked_at: int
    details: dict[str, Any]


def describe(
    filenames: Any, format: str | None = None, *, records: str | None = None, scan: int | None = 1000, **options: Any
) -> Description:
    """Describe files of one format.

    Args:
      filenames: a path, pattern or directory, a list of them, or what `open_files` found.
      format: the name of their format; None: it is recognised.
      records: what records of bytes are: "example", "sequence_example" or "bytes"; None: the first ones are looked at.
      scan: how many messages of the first file to decode, to find their features; None: all of all files.
      **options: as `open_files` takes them.

    Raises:
      NotFoundError: a file is not there.
      DataLossError: a file is damaged where it was looked at.

    >>> import distinput as di
    >>> with di.io.TFRecordWriter("two.tfrecord") as writer:
    ...     writer.write(di.io.encode_example({"name": "Ada", "scores": [1.0, 0.5]}))
    ...     writer.write(di.io.encode_example({"name": "Alan"}))
    >>> for column in describe("two.tfrecord").columns:
    ...     print(column.name, column.declaration)
    name di.io.FixedLenFeature([], "string")
    scores di.io.VarLenFeature("float32")
    """
    files = open_files(filenames, format, **options)
    for path in files.paths:
        stamp_of(path)
    kind = record_kind(files, files.paths[0], records)
    looked_at, columns = 0, tuple[ColumnDescription, ...]()
    if kind == "example":
        columns, looked_at = _features(files, scan)
    elif kind in ("row", "value"):
        try:
            columns = _columns(files)
        except InvalidArgumentError:
            if any(map(size_of, files.paths)):
                raise
    else:
        columns = (ColumnDescription("value", "string", ()),)
    return Description(
        files.recognised.format,
        files.recognised.how,
        files.recognised.compression,
        tuple(map(without_secrets, files.paths)),
        sum(map(size_of, files.paths)),
        files.known_rows,
        kind,
        columns,
        looked_at,
        _details(files),
    )


def _features(files: Files, scan: int | None) -> tuple[tuple[ColumnDescription, ...], int]:
    found, messages = features_of(files, scan)
    made = [
        ColumnDescription(
            key, one.dtype, one.shape(messages), None if one.dtype == "mixed" else as_code(one, messages), one.present
        )
        for key, one in found.items()
    ]
    return tuple(made), messages


def _columns(files: Files) -> tuple[ColumnDescription, ...]:
    made = files.format.held(files.paths)
    schema = schema_of_table(made, files.paths[0])
    if schema is not None:
        conforming = getattr(getattr(made, "inner", made), "conforming", None)
        if conforming is not None and conforming.told:
            schema = conforming.rows_of(files.paths[0], schema, None)
        return tuple([column for field in schema for column in _of_field(field)])
    spec = made.spec(files.paths[0] if made.spec_from_file else None)
    names = _names_in(spec.structure)
    columns = [ColumnDescription(name or "value", *_leaf(leaf)) for name, leaf in zip(names, spec.leaves, strict=True)]
    place = {str(key): at for at, key in enumerate(spec.structure.order)}
    return tuple(sorted(columns, key=lambda one: place.get(one.name, place.get(one.name.partition(".")[0], 0))))


def _of_field(field: Any) -> list[ColumnDescription]:
    """The columns of a column of a table."""
    try:
        spec = schema_spec([field])
    except UnsupportedTypeError:
        return [ColumnDescription(field.name, str(field.type), ())]
    names = _names_in(spec.structure)
    return [ColumnDescription(name, *_leaf(leaf)) for name, leaf in zip(names, spec.leaves, strict=True)]


def _names_in(at: Structure, name: str = "") -> Iterator[str]:
    """The names of leaves, with dots in them for those of inner nests; empty for a bare leaf."""
    if at.is_leaf:
        yield name
    for key, child in at.members:
        yield from _names_in(child, f"{name}.{key}" if name else str(key))


def _leaf(leaf: Any) -> tuple[str, tuple[int | None, ...]]:
    if not isinstance(leaf, TensorSpec):
        return str(leaf), ()
    return "string" if leaf.dtype.hasobject else str(leaf.dtype), tuple(leaf.shape or ())


def _writer_of(path: str) -> str:
    """What a Parquet file says of who wrote it, empty where that cannot be read; pyarrow gives it only where it is UTF-8."""
    try:
        found = part_of(Compact(footer_bytes(path, stamp_of(path))).struct(), _CREATED_BY, bytes, b"")
    except ThriftError:
        return ""  # pyarrow read more of this footer than is decoded here
    return str(found.decode(errors="replace"))


def _details(files: Files) -> dict[str, Any]:
    told: dict[str, Any] = {}
    if files.recognised.format == "parquet":
        footers = [footer_of(path) for path in files.paths]
        told["row groups"] = sum(footer.num_row_groups for footer in footers)
        told["written by"] = _writer_of(files.paths[0])
    if files.written is not None:
        told["manifest"] = {"files": len(files.written.files), "order": files.written.order, "run": files.written.run}
    return told
