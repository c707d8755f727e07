# SPDX-License-Identifier: Apache-2.0
"""Tables of versions: Delta Lake, Iceberg and Lance, each read at one version, which states hold.

The library of Delta Lake or Iceberg says which Parquet files a version consists of, and our own reader reads them, brought
to the schema of the version. Lance has files of its own, of which its library gives rows.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import UTC
from functools import cached_property, partial
from itertools import chain
from typing import Any, ClassVar, NamedTuple
from urllib.parse import unquote

import numpy as np

from distinput.arrow.arrow import gathered, has_missing, names_of, nested, one_batch
from distinput.arrow.expression import ColumnBounds, possible
from distinput.arrow.tabular import Reading, filled_names
from distinput.arrow.validity import null_paths
from distinput.columns.block import Block, block_rows
from distinput.columns.column import Ints
from distinput.data.dataset import Dataset
from distinput.errors import (
    DataLossError,
    DistinputError,
    InvalidArgumentError,
    NotFoundError,
    StateError,
    UnimplementedError,
    importing,
)
from distinput.files.manifest import FileTable
from distinput.files.mounts import stored
from distinput.files.paths import ask_each, local_path
from distinput.formats.format import Fragment, PlacedBlocks, Portion, Position, check_reached, cut_rows
from distinput.formats.parquet import LOOKED_AT, ConformingParquet, null_paths_of, ranges_of
from distinput.formats.parquet_file import rows_of, schema_of
from distinput.formats.row_schema import RowSchema
from distinput.formats.tables import Conforming, CountedTable, as_columns, as_nulls, table_spec, telling, told_nulls
from distinput.interop.rank_steps import ShardNames, number_in
from distinput.names.lazy import dataclass, library
from distinput.ops.reader import FileNames, LaterFormat, Reader, handed_out
from distinput.plan.check import taken
from distinput.url_secrets import without_secrets
from distinput.values.spec import Spec

pa = library("pyarrow")
types = library("pyarrow.types")

__all__ = ["from_delta", "from_iceberg", "from_lance"]


# ----------------------------------------------------------------------------
# Parquet files of one version of a table.
# ----------------------------------------------------------------------------


class _ListedFile(NamedTuple):
    """What a table says of one of its files.

    Args:
      rows: how many it has; None: the table does not say.
      nbytes: its size.
      values: those of columns that are the same in all of its rows, and need not be in it.
      nulls: of columns without values inside of values, whether it has nulls; the table does not say it of others.
    """

    rows: int | None
    nbytes: int
    values: Mapping[str, Any]
    nulls: Mapping[str, bool]


@dataclass(frozen=True)
class _SnapshotColumns(Conforming):
    """The schema of a version, to which its files are brought.

    Args:
      schema: as for `Conforming`.
      valid: as for `Conforming`.
      fields: the pyarrow Schema with the ids by which columns are found in files; None: they are found by name.
      mapped: by the name in a file without ids, the name of the column.
      files: what the table says of each file.
    """

    fields: Any = field(default=None, repr=False, compare=False)
    mapped: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    files: Mapping[str, _ListedFile] = field(default_factory=dict, repr=False, compare=False)

    def names_in(self, path: str, schema: Any) -> dict[str, str]:
        """The columns of a file of this schema, and what each is called in the file.

        Raises:
          UnimplementedError: names inside of a column are not those of the table.
        """
        if self.fields is None:
            return {name: name for name in schema.names}
        there = {_id(each): each for each in schema}
        if None in there and (len(there) > 1 or not self.mapped):
            raise UnimplementedError(
                f"{path}: its column {there[None].name!r} has no id, and the table does not say by name which "
                f"one it is; {_LET_ICEBERG}"
            )
        if None in there:
            return {self.mapped[each.name]: each.name for each in schema if each.name in self.mapped}
        found = {each.name: there[_id(each)] for each in self.fields if _id(each) in there}
        for name, each in found.items():
            inner = _renamed(each.type, self.fields.field(name).type)
            if inner is not None:
                raise UnimplementedError(
                    f"{path}: {name}.{inner} has another name in this file, or is another field of this name; rewrite the "
                    f"file, or {_LET_ICEBERG}"
                )
        return {name: each.name for name, each in found.items()}

    def columns_in(self, schema: Any, columns: Sequence[str] | None) -> tuple[str, ...] | None:
        names = self.names_in("", schema)
        wanted = super().columns_in(_named(schema, names), columns)
        return None if wanted is None else tuple([names[name] for name in wanted])

    def rows_of(self, path: str, schema: Any, columns: Sequence[str] | None) -> Any:
        return super().rows_of(path, _named(schema, self.names_in(path, schema)), columns)

    def brought(self, path: str, batch: Any, rows: Any, nulls: Any) -> Any:
        assert isinstance(self.schema, RowSchema)
        names = {theirs: name for name, theirs in self.names_in(path, schema_of(path)).items()}
        arrays = {names[theirs]: batch.column(theirs) for theirs in batch.schema.names}
        needed = {*rows.names, *self._marks(self.schema.names).values()}
        for name, value in self.files[path].values.items():
            if name in needed and name not in names.values():
                arrays[name] = pa.repeat(pa.scalar(value, self.schema.arrow.field(name).type), batch.num_rows)
        batch = pa.RecordBatch.from_arrays(list(arrays.values()), list(arrays)) if arrays else batch
        return super().brought(path, batch, rows, nulls)

    def bounds(self, path: str, nulls: Any) -> dict[str, ColumnBounds]:
        """What is known of the columns that are the same in all rows of a file, in whose place nulls may be put."""
        found, fill = {}, {} if nulls == "error" else dict(nulls)
        for name, value in self.files[path].values.items():
            value = fill.get(name) if value is None else value
            value = value.encode() if isinstance(value, str) else value
            if type(value) in (int, bytes):
                found[name] = ColumnBounds(value, value)
        return found

    def __repr__(self) -> str:
        return f"{type(self).__name__}(schema={self.schema}, valid={() if self.told else self.valid})"

    def only(self, columns: Sequence[str]) -> "_SnapshotColumns":
        return super().only(columns) or replace(self, valid=(), told=())

    def telling(
        self, tells: str, columns: Sequence[str] | None, fill: Any
    ) -> tuple["_SnapshotColumns", Sequence[str] | None]:
        """The same with marks for the nulls of all files, and the columns that are wanted, marks beside them included.

        Args:
          tells: "in place" or "beside".
          columns: that are wanted; None: all.
          fill: what to put in the place of nulls, as returned by `as_nulls`.
        """
        assert isinstance(self.schema, RowSchema)
        kinds = [each for each in self.schema.arrow if columns is None or each.name in columns]
        structs = tells == "in place"
        first = list(self.files)[:_FILES_LOOKED_INTO]
        looked_into = dict.fromkeys(first, LOOKED_AT // max(1, len(first)))
        told = ask_each(lambda path: self._nulls_in(path, kinds, looked_into.get(path, 0), structs), list(self.files))
        marked = told_nulls(self.schema.arrow, columns, list(dict.fromkeys(chain.from_iterable(told))), tells, fill)
        if marked is None:
            return self, columns
        return replace(self, valid=marked[0].valid, told=marked[0].told), marked[1]

    def _nulls_in(self, path: str, kinds: Sequence[Any], most_bytes: int, structs: bool) -> list[str]:
        """The paths at which a file holds nulls that NumPy has no value for; the file is opened if the table does not tell.

        Args:
          path: of the file.
          kinds: the fields of the columns.
          most_bytes: of what is read to see where in nested columns they are.
          structs: as for `null_paths`.
        """
        known, values = self.files[path].nulls, self.files[path].values
        plain = [each for each in kinds if not nested(each.type) and (each.name in known or has_missing(each.type))]
        paths = [each.name for each in plain if known.get(each.name) and not has_missing(each.type)]
        unclear = [each for each in kinds if each not in plain]
        if not unclear:
            return paths
        try:
            schema = schema_of(path)
            names = self.names_in(path, schema)
            there = {names[each.name]: each.name for each in unclear if each.name in names}
            for each in null_paths_of(path, tuple(there), most_bytes, structs=structs) if there else ():
                root = next(theirs for theirs in there if re.match(rf"{re.escape(theirs)}(\.|\[|$)", each))
                paths.append(there[root] + each[len(root) :])
        except DistinputError:
            return paths  # it is reading that fails
        for each in unclear:
            if each.name in names:
                paths += _absent(schema.field(names[each.name]).type, each.type, each.name, structs)
            elif values.get(each.name) is None:
                paths += _all_null(each, structs)
        return paths


_FILES_LOOKED_INTO = 16
"""So many files of a version are read to see where in nested columns nulls are."""


def _all_null(each: Any, structs: bool) -> list[str]:
    """The paths of the nulls of a field that is nothing but null."""
    return null_paths(pa.RecordBatch.from_arrays([pa.nulls(1, each.type)], [each.name]), structs=structs)


def _absent(kind: Any, wanted: Any, path: str, structs: bool) -> list[str]:
    """The paths of the nulls in fields, at any depth, that a file lacks whose type at a path is `kind`."""
    named, found = types.is_struct(wanted), []
    if types.is_struct(kind) != named or (not named and kind.num_fields < wanted.num_fields):
        return []  # it is reading that fails
    for place, each in enumerate(_inner(wanted)):
        inner = re.sub(r"(\[\])+$", "", path) + f".{each.name}" if named else f"{path}[]"
        other = kind.get_field_index(each.name) if named else place
        if other >= 0:
            found += _absent(kind.field(other).type, each.type, inner, structs)
        else:
            found += _all_null(each.with_name(inner), structs)
    return found


_LET_ICEBERG = "let the library give the rows: Dataset.from_arrow(lambda: table.scan().to_arrow_batch_reader())"


def _id(each: Any) -> int | None:
    """The id of a field of a schema; None: it has none."""
    text = (each.metadata or {}).get(b"PARQUET:field_id")
    return None if text is None else int(text)


def _inner(kind: Any) -> list[Any]:
    return [kind.field(place) for place in range(kind.num_fields)]


def _renamed(kind: Any, wanted: Any) -> str | None:
    """The first field inside of a type that is another one than the field of its name in a file; None: there is none."""
    named = types.is_struct(wanted)
    for place, each in enumerate(_inner(wanted)):
        ids = {_id(other): other for other in _inner(kind)}
        here = {other.name: other for other in _inner(kind)} if named else dict(enumerate(_inner(kind)))
        other = here.get(each.name if named else place)
        if (None if other is None else _id(other)) != (_id(each) if _id(each) in ids else None):
            return str(each.name)
        deeper = None if other is None else _renamed(other.type, each.type)
        if deeper is not None:
            return f"{each.name}.{deeper}"
    return None


def _named(schema: Any, names: Mapping[str, str]) -> Any:
    """The schema of a file, with the names of the table."""
    return pa.schema([schema.field(theirs).with_name(name) for name, theirs in names.items()])


@dataclass(frozen=True)
class _SnapshotParquet(ConformingParquet):
    """Rows of the Parquet files of one version of a table.

    Args:
      columns: as for `Parquet`.
      batch_rows: as for `Parquet`.
      nulls: as for `Parquet`.
      conforming: the schema of the version, and what the table says of its files.
      snapshot: the version in words.
      term: rows for which this condition cannot be true are not wanted; None: all are.
    """

    spec_from_file: ClassVar[bool] = False
    conforming: _SnapshotColumns = field(default_factory=_SnapshotColumns)
    snapshot: str = field(default="", repr=False)
    term: Any = None

    def held(self, paths: Iterable[str]) -> "_SnapshotParquet":
        del paths  # the table says it of some of them
        if not self.tells:
            return self
        told, columns = self.conforming.telling(self.tells, self.columns, self.nulls)
        return replace(self, columns=columns, conforming=told, tells="")

    def version_facts(self) -> dict[str, str]:
        return {"snapshot": self.snapshot}

    @property
    def counts_rows(self) -> bool:  # type: ignore[override]
        return self.term is None

    fetches = states_cardinality = counts_rows

    def spec(self, path: str | None) -> Spec:
        assert isinstance(self.conforming.schema, RowSchema)
        stated = Conforming(self.conforming.schema, self.conforming.valid)
        return table_spec("the table", stated.rows_of("the table", self.conforming.schema.arrow, self.columns), None)

    def rows(self, path: str) -> int | None:
        told = self.conforming.files[path].rows
        return super().rows(path) if told is None else told

    def _spec(self, path: str, stamp: str) -> Spec:
        told, rows = self.conforming.files[path].rows, rows_of(path, stamp)
        if told not in (None, rows):
            raise DataLossError(f"{path}: has {rows} rows, and the table says {told}: it was changed")
        return super()._spec(path, stamp)

    def where(self, term: Any) -> "_SnapshotParquet | None":  # type: ignore[override]
        return replace(self, term=term) if self.term is None else None

    def wants(self, path: str) -> bool:
        return self.term is None or possible(self.term, self.conforming.bounds(path, self.nulls))[0]

    def wants_group(self, path: str, stamp: str, group: int) -> bool:
        if self.term is None:
            return True
        names = self.conforming.names_in(path, schema_of(path, stamp))
        replaced = [*([] if self.nulls == "error" else self.nulls), *self.conforming.valid]
        ranges = ranges_of(path, stamp, frozenset([names.get(name, name) for name, _ in replaced]))
        there = ranges[group] if group < len(ranges) else {}
        known = {name: there[theirs] for name, theirs in names.items() if theirs in there}
        return possible(self.term, {**self.conforming.bounds(path, self.nulls), **known})[0]

    def portions(
        self, path: str, position: Position | None, stop: Position | None, size: int, given: int
    ) -> Iterator[Portion]:
        if self.wants(path):
            yield from super().portions(path, position, stop, size, given)


def _snapshot(
    who: str,
    snapshot: str,
    schema: Any,
    files: Mapping[str, _ListedFile],
    mapped: Mapping[str, str] | None = None,
    *,
    columns: Any,
    nulls: Any,
    valid: Any,
    filesystem: Any,
) -> Reader:
    """The rows of the files of a version; with `mapped`, the ids of fields tell which columns of a file they are."""
    paths = sorted(files)
    names, storage = stored(paths, None, filesystem)
    files_by_name = {name: files[path] for name, path in zip(names, paths, strict=True)}
    stated = Conforming.of(who, pa.schema(schema), valid)
    fields = None if mapped is None else schema
    brought = _SnapshotColumns(stated.schema, stated.valid, fields=fields, mapped=mapped or {}, files=files_by_name)
    row_schema = brought.schema
    assert isinstance(row_schema, RowSchema)
    wanted = as_columns(who, columns)
    tells, nulls = telling(nulls, valid is not None)
    format = _SnapshotParquet(wanted, nulls=as_nulls(who, nulls), tells=tells, conforming=brought, snapshot=snapshot)
    for name in wanted or ():
        _check_column(who, name, [*row_schema.names, *[mark for _, mark in brought.valid if mark]])
    for name in filled_names(() if format.nulls == "error" else format.nulls):
        _check_column(f"{who}: nulls", name, names_of(row_schema.arrow))
    table = FileTable.of(names, [files_by_name[name].nbytes for name in names])
    later = LaterFormat(format, partial(iter, names))
    return Reader(replace(FileNames.of(table), storage=storage), later, table)


def _check_column(who: str, name: str, known: Sequence[str]) -> None:
    if name not in known:
        raise InvalidArgumentError(f"{who}: the table has no column {name!r}; its columns are {', '.join(known)}")


# ----------------------------------------------------------------------------
# Which version: a number, the newest one, or that of a state.
# ----------------------------------------------------------------------------


def _pinned(who: str, of_table: str, given: Any) -> int | None:
    """The number of a version that is given: itself, or that of a state of this table; None: no version is given.

    Raises:
      StateError: a state is of no version of the table, or of several.
      TypeError: neither a number nor a state.
    """
    given = taken(given)
    if given is None:
        return None
    if isinstance(given, int | np.integer) and not isinstance(given, bool):
        return int(given)
    if not isinstance(given, Mapping):
        raise TypeError(f"{who}: a version must be a number, or a state that holds one, got a {type(given).__name__}")
    told = sorted(set(_snapshots(given)))
    found = [int(each.split()[1]) for each in told if each.endswith(f" of the {of_table}")]
    if len(found) != 1:
        raise StateError(
            f"{who}: the state is of {'several versions' if found else 'no version'} of the {of_table}; it knows "
            f"{', '.join(told) or 'no table of versions'}"
        )
    return found[0]


def _snapshots(state: Any) -> Iterator[str]:
    """The versions of tables that a state names, at any depth."""
    if isinstance(state, Mapping):
        told = state.get("snapshot")
        if isinstance(told, str) and re.fullmatch(r"(version|snapshot) [0-9]+ of the .+", told):
            yield told
    if isinstance(state, Mapping | list | tuple):
        for each in state.values() if isinstance(state, Mapping) else state:
            yield from _snapshots(each)


# ----------------------------------------------------------------------------
# Delta Lake.
# ----------------------------------------------------------------------------


_READ = ("timestampNtz", "typeWidening", "typeWidening-preview", "v2Checkpoint", "vacuumProtocolCheck")
"""Features of tables that change nothing of how their files are read, or that a cast to the schema covers."""


def from_delta(
    table: Any,
    version: Any = None,
    *,
    columns: Sequence[str] | None = None,
    nulls: Any = None,
    valid: Mapping[str, str] | Sequence[str] | None = None,
    storage_options: Mapping[str, str] | None = None,
    filesystem: Any = None,
    text: str = "bytes",
    nested: str = "columns",
    decimals: str = "text",
) -> Dataset[dict[str, Any]]:
    """The rows of one version of a Delta Lake table, as dicts from column name to value.

    The log of the table says which Parquet files the version consists of, and they are read as `ParquetDataset` reads
    files: rows are counted and reached by position, sharded, shuffled globally and located. A `filter` of an expression leaves
    out files by their partitions, and row groups by their statistics. Columns that are younger than a file are null in its
    rows. The order of the rows is that of the names of the files, the same for a version each time.

    The version is part of a state. A job that starts again gives its state as `version`, and goes on with the version that it
    began with, however the table has grown meanwhile. A state of another version is refused.

    Args:
      table: its path or URL, or a `deltalake.DeltaTable`, which is read at the version that it has.
      version: a number; a state that was saved of a dataset of this table, for the version that it is of; None: the newest one.
      columns: names of the columns wanted; all when None.
      nulls: as for `ParquetDataset`, but None and "valid" go by all files of the version: by what the table and the footers
        say, and for nested columns by the first files.
      valid: where nulls are told, as for `ParquetDataset`.
      storage_options: for `deltalake`, which reads the log.
      filesystem: what opens the files of a table that is not local, as for `ParquetDataset`; None: what is mounted, or fsspec.
      text: "bytes"; or "str": `as_text` behind the reader.
      nested: "columns": a list of structs is a dict of lists; "rows": `as_rows` behind the reader makes lists of dicts of them.
      decimals: "text" of their digits; "decimal" objects or "float64": `as_decimal` behind the reader.

    Raises:
      EngineMissing: the package `deltalake` is not installed.
      NotFoundError: there is no table.
      InvalidArgumentError: there is no such version; a column does not exist, or no array can hold it.
      UnimplementedError: files of the version have deletion vectors, or the table has mapped columns or unknown features.
      StateError: the state is of no version of this table.

    >>> import deltalake
    >>> import distinput as di
    >>> import pyarrow as pa
    >>> deltalake.write_deltalake("numbers", pa.table({"x": [1, 2]}))
    >>> deltalake.write_deltalake("numbers", pa.table({"x": [3]}), mode="overwrite")
    >>> di.interop.tables.from_delta("numbers").to_list()
    [{'x': 3}]
    >>> di.interop.tables.from_delta("numbers", version=0).to_list()
    [{'x': 1}, {'x': 2}]

    Source: distinput's own; the protocol is that of Delta Lake.
    """
    with importing("from_delta: {error}; `pip install 'distinput[delta]'`"):
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError, TableNotFoundError
    options = dict(storage_options or getattr(table, "_storage_options", None) or {}) or None
    uri = table.table_uri if isinstance(table, DeltaTable) else table
    printed_uri = without_secrets(str(uri))
    try:
        at_version = table if isinstance(table, DeltaTable) else DeltaTable(table, storage_options=options)
        of_table = f"Delta table {at_version.metadata().id}"
        wanted = _pinned("from_delta", of_table, version)
        if wanted is not None and wanted > at_version.version():
            # The newest; the library looks for a version far behind it for hours.
            at_version = DeltaTable(uri, None, options)
        if wanted is not None and not 0 <= wanted <= at_version.version():
            raise InvalidArgumentError(
                f"from_delta: the {of_table} has no version {wanted}; the newest one is {at_version.version()}"
            )
        if wanted not in (None, at_version.version()):
            at_version = DeltaTable(uri, wanted, options)
        _check_protocol(printed_uri, at_version)
        added = pa.table(at_version.get_add_actions(flatten=False)).to_pylist()
        schema, root = pa.schema(at_version.schema().to_arrow()), at_version.table_uri
    except TableNotFoundError as error:
        raise NotFoundError(f"from_delta: {printed_uri}: there is no table: {error}") from error
    except DeltaError as error:
        raise InvalidArgumentError(f"from_delta: {printed_uri}: cannot open it at this version: {error}") from error
    files = {}
    for each in added:
        location = unquote(each["path"] if "://" in each["path"] else f"{root.rstrip('/')}/{each['path']}")
        values, counts = each.get("partition") or {}, each.get("null_count") or {}
        nulls_of = {name: bool(count) for name, count in counts.items() if isinstance(count, int)}
        nulls_of |= {name: value is None for name, value in values.items()}
        files[local_path(location) or location] = _ListedFile(each["num_records"], each["size_bytes"], values, nulls_of)
    snapshot = f"version {at_version.version()} of the {of_table}"
    chosen = {"columns": columns, "nulls": nulls, "valid": valid, "filesystem": filesystem}
    reader = _snapshot("from_delta", snapshot, schema, files, **chosen)
    return Dataset(handed_out(reader, text=text, nested=nested, decimals=decimals))


def _check_protocol(printed_uri: str, table: Any) -> None:
    """Refuse a table whose files do not hold its rows as they are."""
    features = set(table.protocol().reader_features or ())
    mode = table.metadata().configuration.get("delta.columnMapping.mode", "none")
    cure = "let the library give the rows: Dataset.from_arrow(lambda: deltalake.DeltaTable(uri, version).scan())"
    if mode != "none":
        raise UnimplementedError(
            f"from_delta: {printed_uri}: its columns are mapped by {mode}, which is not read; {cure}"
        )
    for batch in table.deletion_vectors():  # whether the table says that it has such or not
        if batch.num_rows:
            raise UnimplementedError(
                f"from_delta: {printed_uri}: {batch.num_rows} or more of its files have deletion vectors, which are not read; "
                f"rewrite these files (REORG TABLE ... APPLY (PURGE)), or {cure}"
            )
    unknown = sorted(features - {*_READ, "columnMapping", "deletionVectors"})
    if unknown:
        raise UnimplementedError(f"from_delta: {printed_uri}: it needs readers that know {', '.join(unknown)}; {cure}")


# ----------------------------------------------------------------------------
# Iceberg.
# ----------------------------------------------------------------------------


def from_iceberg(
    table: Any,
    snapshot_id: Any = None,
    *,
    columns: Sequence[str] | None = None,
    nulls: Any = None,
    valid: Mapping[str, str] | Sequence[str] | None = None,
    filesystem: Any = None,
    text: str = "bytes",
    nested: str = "columns",
    decimals: str = "text",
) -> Dataset[dict[str, Any]]:
    """The rows of one snapshot of an Iceberg table, as dicts from column name to value.

    All is as for `from_delta`, with the snapshot in the place of the version. The columns are those that the table had when the
    snapshot was made; they are found in files by their ids, so that renamed ones keep their values.

    Args:
      table: a `pyiceberg.table.Table`, such as `catalog.load_table("space.name")`, or the location of a metadata file.
      snapshot_id: a number; a state that was saved of a dataset of this table, for the snapshot that it is of; None: the
        newest one.
      columns: names of the columns wanted; all when None.
      nulls: as for `ParquetDataset`, but None and "valid" go by all files of the version: by what the table and the footers
        say, and for nested columns by the first files.
      valid: where nulls are told, as for `ParquetDataset`.
      filesystem: what opens the files of a table that is not local, as for `ParquetDataset`; None: what is mounted, or fsspec.
      text: "bytes"; or "str": `as_text` behind the reader.
      nested: "columns": a list of structs is a dict of lists; "rows": `as_rows` behind the reader makes lists of dicts of them.
      decimals: "text" of their digits; "decimal" objects or "float64": `as_decimal` behind the reader.

    Raises:
      EngineMissing: the package `pyiceberg` is not installed.
      InvalidArgumentError: there is no such snapshot; a column does not exist, or no array can hold it.
      UnimplementedError: the snapshot has delete files, or files that are not Parquet; a file has no ids of columns.
      StateError: the state is of no snapshot of this table.

    >>> import os
    >>> from pyiceberg.catalog.memory import InMemoryCatalog
    >>> import distinput as di
    >>> import pyarrow as pa
    >>> catalog = InMemoryCatalog("mine", warehouse=f"file://{os.getcwd()}")
    >>> catalog.create_namespace("space")
    >>> table = catalog.create_table("space.numbers", pa.schema({"x": pa.int64()}))
    >>> table.append(pa.table({"x": [1, 2]}))
    >>> di.interop.tables.from_iceberg(table).to_list()
    [{'x': 1}, {'x': 2}]

    Source: distinput's own; the specification is that of Apache Iceberg.
    """
    with importing("from_iceberg: {error}; `pip install 'distinput[iceberg]'`"):
        from pyiceberg.io.pyarrow import schema_to_pyarrow
        from pyiceberg.table import StaticTable, Table
    if not isinstance(table, Table):
        table = StaticTable.from_metadata(str(table))
    of_table = f"Iceberg table {table.metadata.table_uuid}"
    wanted, newest = _pinned("from_iceberg", of_table, snapshot_id), table.current_snapshot()
    number = wanted if wanted is not None or newest is None else newest.snapshot_id
    known = [each.snapshot_id for each in table.snapshots()]
    if number is not None and number not in known:
        raise InvalidArgumentError(f"from_iceberg: the {of_table} has no snapshot {number}; it has {known or 'none'}")
    scan = table.scan(snapshot_id=number)
    logical = table.schema() if number is None else scan.projection()
    fields = schema_to_pyarrow(logical)
    files = {}
    try:
        tasks = [] if number is None else list(scan.plan_files())
    except (ValueError, NotImplementedError) as error:  # such as deletes by equality
        raise UnimplementedError(f"from_iceberg: the {of_table}: {error}; rewrite its data files") from error
    for task in tasks:
        data_file = task.file
        if task.delete_files:
            raise UnimplementedError(
                f"from_iceberg: {data_file.file_path}: {len(task.delete_files)} delete files say which of its rows are gone, "
                f"which is not read; rewrite the data files (rewrite_data_files), or {_LET_ICEBERG}"
            )
        if data_file.file_format.value.upper() != "PARQUET":
            raise UnimplementedError(
                f"from_iceberg: {data_file.file_path}: is {data_file.file_format.value}, and Parquet is read"
            )
        values = {each.name: each.initial_default for each in logical.fields if each.initial_default is not None}
        nulls_of = {
            fields.names[place]: data_file.null_value_counts[each.field_id] > 0
            for place, each in enumerate(logical.fields)
            if each.field_id in (data_file.null_value_counts or {})
        }
        for place, part in enumerate(table.specs()[data_file.spec_id].fields):
            name = logical.find_column_name(part.source_id)
            if str(part.transform) == "identity" and name in fields.names:
                values[name] = data_file.partition[place]
                nulls_of[name] = values[name] is None
        path = local_path(data_file.file_path) or data_file.file_path
        files[path] = _ListedFile(data_file.record_count, data_file.file_size_in_bytes, values, nulls_of)
    snapshot = f"snapshot {number} of the {of_table}"
    mapped = _mapped(table, logical)
    chosen = {"columns": columns, "nulls": nulls, "valid": valid, "filesystem": filesystem}
    reader = _snapshot("from_iceberg", snapshot, fields, files, mapped, **chosen)
    return Dataset(handed_out(reader, text=text, nested=nested, decimals=decimals))


def _mapped(table: Any, logical: Any) -> dict[str, str]:
    """By the name in files without ids, the name of the column; empty if the table does not say it of all that is inside."""
    mapping = table.name_mapping()
    if mapping is None or any(len(inner.names) > 1 for each in mapping for inner in _inside(each)):
        return {}
    columns = {each.field_id: logical.find_column_name(each.field_id) for each in mapping}
    return {name: columns[each.field_id] for each in mapping for name in each.names if columns[each.field_id]}


def _inside(mapped: Any) -> Iterator[Any]:
    for each in mapped.fields:
        yield each
        yield from _inside(each)


# ----------------------------------------------------------------------------
# Lance.
# ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Fragment:
    """The rows of a fragment."""

    table: "_Fragments"
    number: int

    @property
    def _opened(self) -> Any:
        return self.table.dataset.get_fragment(self.number)

    @property
    def rows(self) -> int:
        return int(self._opened.count_rows())

    def block(self, rows: Ints) -> Block:
        if not len(rows):
            table = self.table.schema.empty_table()
        elif (np.diff(rows) > 0).all():
            table = self._opened.take(rows.tolist(), columns=self.table.stored)
        else:  # Lance takes rows that ascend
            ascending, places = np.unique(rows, return_inverse=True)
            table = gathered(self._opened.take(ascending.tolist(), columns=self.table.stored), places)
        return self.table.reading.block(one_batch(table), self.table.spec_of(""), rows)

    def blocks(self, first: int) -> Iterator[Block]:
        """The rows from a number on."""
        limit = self.rows - first
        scanner = self.table.dataset.scanner(
            columns=self.table.stored, fragments=[self._opened], offset=first, limit=limit, scan_in_order=True
        )
        for batch in scanner.to_batches() if limit else ():
            yield self.table.reading.block(batch, self.table.spec_of(""), first)
            first += batch.num_rows


@dataclass(frozen=True, eq=False, repr=False)
class _Fragments(CountedTable):
    """The fragments of one version of a Lance table, read as if they were files; `path` is "fragment 3".

    Args:
      dataset: at the version.
      reading: how columns are read.
      facts: of the version.
      columns: names of the columns to read; None: all.
    """

    name: ClassVar[str] = "lance"
    spec_from_file: ClassVar[bool] = False
    dataset: Any = field(repr=False)
    reading: Reading = field(repr=False)
    facts: Mapping[str, str] = field(repr=False)
    columns: tuple[str, ...] | None = None

    def version_facts(self) -> dict[str, str]:
        return dict(self.facts)

    def __repr__(self) -> str:
        return f"lance({', '.join(self.stored)}, {self.reading})"

    @property
    def stored(self) -> list[str]:
        """The names of the columns that are read."""
        return self.dataset.schema.names if self.columns is None else list(self.columns)

    @cached_property
    def schema(self) -> Any:
        """Of these columns."""
        return pa.schema([self.dataset.schema.field(name) for name in self.stored])

    @cached_property
    def _spec(self) -> Spec:
        return self.reading.spec(self.schema)

    def with_columns(self, columns: Sequence[str]) -> "_Fragments | None":
        return None if self.reading.valid else replace(self, columns=tuple(columns))

    def spec(self, path: str | None) -> Spec:
        return self._spec

    def spec_of(self, path: str) -> Spec:
        return self._spec

    def size(self, path: str) -> int:
        return self.rows(path)

    def fragments(self, path: str) -> list[Fragment]:
        rows = self.rows(path)
        return [Fragment(path, {"row": 0}, {"row": rows}, rows, rows)]

    def opened(self, path: str) -> _Fragment:
        return _Fragment(self, number_in(path))

    def read_groups(self, path: str, position: Position | None, size: int, given: int) -> PlacedBlocks:
        row, fragment = self.first_row(path, position), self.opened(path)
        check_reached(path, fragment.rows, row, "record")
        for block in fragment.blocks(row):
            most = block_rows(block.nbytes / max(1, block.size))
            for first, stop in cut_rows(block.size, most, size, given):
                yield block.rows(first, stop), {"row": row + stop}
            row, given = row + block.size, given + block.size


def from_lance(
    table: Any,
    version: Any = None,
    *,
    columns: Sequence[str] | None = None,
    nulls: Mapping[str, Any] | None = None,
    valid: Mapping[str, str] | Sequence[str] | None = None,
    storage_options: Mapping[str, str] | None = None,
    text: str = "bytes",
    nested: str = "columns",
    decimals: str = "text",
) -> Dataset[dict[str, Any]]:
    """The rows of one version of a Lance table, as dicts from column name to value; columns are as for `Dataset.from_arrow`.

    Rows are counted, and any of them is reached by its number: `global_shuffle` holds nothing in memory, shards and restarts go
    straight to their place. The fragments of the table are its parts, as files are of others. Deleted rows are left out. The
    version is part of a state, as for `from_delta`.

    Args:
      table: its path or URL, or a `lance.LanceDataset`, which is read at the version that it has.
      version: a number; a state that was saved of a dataset of this table, for the version that it is of; None: the newest one.
      columns: names of the columns wanted; all when None.
      nulls: what to put in the place of nulls, by column. Lance does not say where nulls are, so others are an error.
      valid: where nulls are told, as for `ParquetDataset`.
      storage_options: for `lance`, which opens all files.
      text: "bytes"; or "str": `as_text` behind the reader.
      nested: "columns": a list of structs is a dict of lists; "rows": `as_rows` behind the reader makes lists of dicts of them.
      decimals: "text" of their digits; "decimal" objects or "float64": `as_decimal` behind the reader.

    Raises:
      EngineMissing: the package `pylance` is not installed.
      InvalidArgumentError: there is no such table or version; a column does not exist, or no array can hold it.
      StateError: the state is of no version of this table.

    >>> import distinput as di
    >>> import lance
    >>> import pyarrow as pa
    >>> _ = lance.write_dataset(pa.table({"x": [1, 2, 3]}), "numbers.lance")
    >>> di.interop.tables.from_lance("numbers.lance").to_list()
    [{'x': 1}, {'x': 2}, {'x': 3}]

    Source: distinput's own; the format is that of Lance.
    """
    with importing("from_lance: {error}; `pip install 'distinput[lance]'`"):
        import lance
    options = dict(storage_options or {}) or None
    uri = table.uri if isinstance(table, lance.LanceDataset) else str(table)
    of_table = f"Lance table {uri.rstrip('/').rpartition('/')[2]!r}"
    wanted = _pinned("from_lance", of_table, version)
    try:
        if not isinstance(table, lance.LanceDataset):
            table = lance.dataset(uri, wanted, storage_options=options)
        elif wanted is not None:
            table = table.checkout_version(wanted)
    except (ValueError, OSError, OverflowError) as error:
        place = without_secrets(uri) if wanted is None else f"version {wanted} of {without_secrets(uri)}"
        raise InvalidArgumentError(f"from_lance: cannot open {place}: {error}") from error
    for name in columns or ():
        _check_column("from_lance", name, table.schema.names)
    # A table that takes the place of another has its name.
    made = table.get_version()["timestamp"].astimezone(UTC).isoformat()
    facts = {"snapshot": f"version {table.version} of the {of_table}", "made": made}
    format = _Fragments(table, Reading.of(nulls, valid, "from_lance"), facts, as_columns("from_lance", columns))
    format.spec(None)  # what no array can hold is refused now
    fragments = table.get_fragments()
    names = [f"fragment {each.fragment_id}" for each in fragments]
    reader = Reader(ShardNames.of(FileTable.of(names, [each.count_rows() for each in fragments])), format)
    return Dataset(handed_out(reader, text=text, nested=nested, decimals=decimals))
