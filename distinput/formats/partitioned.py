# SPDX-License-Identifier: Apache-2.0
"""Columns that are in the names of folders, as Hive and Spark write them: `year=2024/month=1/part.parquet`.

Every folder `name=value` above a file gives its rows a column. The values of a column are int64 if all of them are whole
numbers, else text. A file all of whose rows a filter leaves out is not opened. A file may have such a column itself, if all
its rows say what the folder says, and it is Parquet or Arrow.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from operator import attrgetter
from typing import Any

import numpy as np

from distinput.arrow.expression import ColumnBounds, possible
from distinput.columns.block import Block, ColumnBlock
from distinput.columns.column import Column, Dense, Ints, Strings
from distinput.errors import InvalidArgumentError, UnimplementedError
from distinput.formats.format import Format, Fragment, PlacedBlocks, Portion, Position
from distinput.names.lazy import dataclass, library
from distinput.values.nest import Structure, structure_of
from distinput.values.nullable import Nullable
from distinput.values.spec import Spec, TensorSpec

parse = library("urllib.parse")  # for folders that are named after values

NULL = "__HIVE_DEFAULT_PARTITION__"
"""The value of a folder for rows that have none."""

_TYPED = ("arrow", "parquet")
"""Formats whose files say which columns they have, and of which types: these may have one that a folder names too."""
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
_TEXT, _INT64 = np.dtype(object), np.dtype(np.int64)
_MARK = TensorSpec((), np.bool_)

PartitionDtypes = tuple[tuple[str, np.dtype[Any]], ...]


def partitioned(format: Format, paths: Iterable[str], partitioning: Any = "hive") -> Format:
    """A format with the columns that are in the names of the folders of some files; the same one if there are none.

    Args:
      format: of the files.
      paths: the files.
      partitioning: "hive", None to leave these columns out, or a dict of their types by name.

    Raises:
      InvalidArgumentError: two files are in folders of other names, a value is not of the type of its column, or
        `partitioning` is nothing of this kind.

    >>> from distinput.formats.parquet import Parquet
    >>> partitioned(Parquet(), ["a/year=2024/x.parquet", "a/year=2025/x.parquet"]).kinds
    (('year', dtype('int64')),)
    """
    if partitioning is None:
        return format
    if partitioning != "hive" and not isinstance(partitioning, Mapping):
        raise InvalidArgumentError(
            f'{format.name}: partitioning must be "hive", None, or a dict of types by column, got {partitioning!r}'
        )
    if not format.has_columns:
        return format
    texts: dict[str, list[str]] = {}
    first = None
    for path in paths:
        found = _folders(path) if "=" in path else {}
        if first is None:
            first, texts = path, {name: [] for name in found}
        if list(found) != list(texts):
            raise InvalidArgumentError(
                f"{path}: its folders name the columns {_told(found)}, and those of {first} name {_told(texts)}; "
                "make a dataset of each, or leave these columns out with partitioning=None"
            )
        for name, text in found.items():
            texts[name].append(text)
    if not texts:
        return format
    stated = {} if partitioning == "hive" else {name: _dtype(format, name, kind) for name, kind in partitioning.items()}
    for name in stated:
        if name not in texts:
            raise InvalidArgumentError(
                f"{format.name}: partitioning: no folder names a column {name!r}; they name {_told(texts)}"
            )
    kinds = tuple([(name, stated.get(name, _kind(found))) for name, found in texts.items()])
    return _split(format, kinds, [name for name, found in texts.items() if NULL in found])


def _folders(path: str) -> dict[str, str]:
    """What the folders above a file say, in their order.

    Raises:
      InvalidArgumentError: two of them say other values of a column.

    >>> _folders("s3://bucket/day=2024-01-01/city=S%C3%A3o/part.parquet")
    {'day': '2024-01-01', 'city': 'São'}
    """
    columns: dict[str, str] = {}
    if re.search("https?://", path):  # the folders of a store may be named with a question mark
        path = path.partition("?")[0]
    for folder in re.split(r"[/\\]", path)[:-1]:
        name, equals, text = folder.partition("=")
        if name and equals:
            name, text = parse.unquote(name), parse.unquote(text)
            if columns.setdefault(name, text) != text:
                raise InvalidArgumentError(
                    f"{path}: two of its folders name the column {name!r}, as {columns[name]!r} and as {text!r}; give one "
                    "of them another name, or leave the columns of folders out with partitioning=None"
                )
    return columns


def _told(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names)) or "none"


def _dtype(format: Format, name: str, kind: Any) -> np.dtype[Any]:
    if kind in (str, bytes, "str", "string", "bytes", "binary"):
        return _TEXT
    try:
        dtype = np.dtype(kind)
    except TypeError:
        dtype = np.dtype("V")
    if dtype.kind not in "biufOSU":
        raise InvalidArgumentError(
            f"{format.name}: partitioning: column {name!r} must be of numbers, truth values or text, got {kind!r}"
        )
    return _TEXT if dtype.kind in "OSU" else dtype


def _kind(texts: Sequence[str]) -> np.dtype[Any]:
    there = [text for text in set(texts) if text != NULL]
    return _INT64 if there and all(map(_INTEGER.fullmatch, there)) else _TEXT


def _split(format: Format, kinds: PartitionDtypes, nulls_of: Sequence[str]) -> Format:
    """A format whose options that concern these columns, some of which have nulls, are taken from it."""
    names = [name for name, _ in kinds]
    nulls: Any = getattr(format, "nulls", "error")
    columns: Any = getattr(format, "columns", None)
    given = dict(nulls) if isinstance(nulls, tuple) else {}
    fill = tuple([(name, given.pop(name)) for name in names if name in given])
    if fill:
        format = replace(format, nulls=tuple(given.items()))  # type: ignore[type-var]  # formats are dataclasses
    format, asked = _without_marks(format, names)
    tells = getattr(format, "tells", "" if getattr(format, "nulls", None) == "error" else "in place")
    for name, dtype in kinds:
        if tells and name in nulls_of and dtype.kind != "f" and name not in dict(fill):
            mark = "" if tells == "in place" else f"{name}_valid"
            asked.append((name, mark))
            columns = (*columns, mark) if mark and columns is not None and name in columns else columns
    made = Partitioned(format, kinds, fill, told=tuple(asked))
    if columns is None:
        return made
    rest = made.inner_columns(columns)
    inner = format.with_columns(rest) or replace(format, columns=rest)  # type: ignore[type-var]
    return replace(made, inner=inner, columns=tuple(columns))


def _without_marks(format: Format, names: Sequence[str]) -> tuple[Format, list[tuple[str, str]]]:
    """A format whose `valid` names none of these columns, and those of them that it named, with the names of their marks."""
    conforming: Any = getattr(format, "conforming", None)
    if conforming is not None:
        asked = [pair for pair in conforming.valid if pair[0] in names]
        rest = tuple([pair for pair in conforming.valid if pair not in asked])
        return replace(format, conforming=replace(conforming, valid=rest)) if asked else format, asked  # type: ignore[type-var]
    valid: Any = getattr(format, "valid", None) or ()
    asked = [(name, "") for name in valid if name in names]
    return replace(format, valid=tuple([name for name in valid if name not in names])) if asked else format, asked  # type: ignore[type-var]


@dataclass(frozen=True)
class Partitioned(Format):
    """Records of another format, with columns that the names of folders tell.

    Args:
      inner: the other format.
      kinds: (name, dtype) of each of these columns; text has the dtype of objects.
      fill: (name, value) pairs: what to put in the place of nulls.
      columns: names of the columns to read, of both kinds, in this order; None: all.
      term: rows for which this condition cannot be true are not wanted; None: all are.
      told: (name, mark) of the columns that tell where a folder says null, by a column with the name of the mark; "": they
        are a `Nullable`.
    """

    inner: Format
    kinds: PartitionDtypes
    fill: tuple[tuple[str, Any], ...] = ()
    columns: tuple[str, ...] | None = None
    term: Any = None
    told: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    has_columns = True

    @property
    def counts_rows(self) -> bool:  # type: ignore[override]
        return self.inner.counts_rows and self.term is None

    @property
    def fetches(self) -> bool:  # type: ignore[override]
        return self.inner.fetches and self.term is None

    @property
    def states_cardinality(self) -> bool:  # type: ignore[override]
        return self.inner.states_cardinality and self.term is None

    @property
    def selected(self) -> PartitionDtypes:
        """The columns of folders that are read."""
        return tuple([(name, kind) for name, kind in self.kinds if self.columns is None or name in self.columns])

    @property
    def beside(self) -> dict[str, str]:
        """The columns that are read and say where those of folders are null, with the names of these."""
        return {mark: name for name, mark in self.told if mark and (self.columns is None or mark in self.columns)}

    def inner_columns(self, columns: Sequence[str]) -> tuple[str, ...]:
        """Those of some columns that the other format reads."""
        own = {name for name, _ in self.kinds} | {mark for _, mark in self.told}
        return tuple([name for name in columns if name not in own])

    def values(self, path: str) -> dict[str, Any]:
        """What the folders above a file say, by column.

        Raises:
          InvalidArgumentError: a folder is missing, or what it says does not fit the type of its column.
        """
        texts, found, fill = _folders(path), {}, {**_zeros(self.kinds, dict(self.told)), **dict(self.fill)}
        for name, dtype in self.kinds:
            if name not in texts:
                raise InvalidArgumentError(f"{path}: is in no folder '{name}=...', as the other files are")
            found[name] = _value(path, name, texts[name], dtype, fill)
        return found

    def wants(self, path: str) -> bool:
        if self.term is None:
            return True
        null = [name for name, _ in self.told if _folders(path).get(name) == NULL]
        values = {
            name: value
            for name, value in self.values(path).items()
            if name not in null and not isinstance(value, float | np.floating)
        }
        plain = {name: value if isinstance(value, bytes) else value.item() for name, value in values.items()}
        return possible(self.term, {name: ColumnBounds(value, value) for name, value in plain.items()})[0]

    def spec(self, path: str | None) -> Spec:
        inner = self.inner.spec(path)
        nest = inner.nest
        if not isinstance(nest, dict):
            raise UnimplementedError(
                f"{self.name}: records that are no dicts have no place for the columns of folders; pass partitioning=None"
            )
        self._check_shared(path or self.name, nest)
        nest = {**nest, **{name: self._leaf(name, TensorSpec((), dtype)) for name, dtype in self.selected}}
        for mark in self.beside:
            if mark in nest or mark in dict(self.kinds):
                raise InvalidArgumentError(f"{path or self.name}: valid: the mark {mark!r} has the name of a column")
            nest[mark] = _MARK
        made = Spec.of(nest if self.columns is None else {name: nest[name] for name in self.columns})
        return replace(made, structure=made.structure.as_told(inner.structure))

    def _leaf(self, name: str, value: Any, mark: Any = _MARK) -> Any:
        return Nullable(value=value, valid=mark) if (name, "") in self.told else value

    def check_spec(self, path: str, spec: Spec) -> None:
        self.values(path)
        if not self.wants(path):
            return
        names = [name for name, _ in self.kinds]
        own: Any = self.inner.spec(path).nest if self.name in _TYPED else {}
        self._check_shared(path, own)
        nest = {
            name: own[name] if name in names else leaf
            for name, leaf in spec.nest.items()
            if name in own or name not in (*names, *self.beside)
        }
        self.inner.check_spec(path, Spec.of(nest))

    def held(self, paths: Iterable[str]) -> "Partitioned":
        inner = self.inner.held(paths)
        if self.columns is None:
            return replace(self, inner=inner)
        beside = [name for name in getattr(inner, "columns", None) or () if name not in self.columns]
        return replace(self, inner=inner, columns=(*self.columns, *beside))

    def with_columns(self, columns: Sequence[str]) -> "Partitioned | None":
        inner = self.inner.with_columns(self.inner_columns(columns))
        return None if inner is None else replace(self, inner=inner, columns=tuple(columns))

    def where(self, term: Any) -> "Partitioned | None":
        if self.term is not None:
            return None
        return replace(self, inner=self.inner.where(term) or self.inner, term=term)

    def read(self, path: str, position: Position | None = None) -> PlacedBlocks:
        return self._with(path, self.inner.read(path, position)) if self.wants(path) else iter(())

    def read_groups(self, path: str, position: Position | None, size: int, given: int) -> PlacedBlocks:
        return self._with(path, self.inner.read_groups(path, position, size, given)) if self.wants(path) else iter(())

    def read_fragment(self, fragment: Fragment, position: Position | None = None) -> PlacedBlocks:
        return self._with(fragment.path, self.inner.read_fragment(fragment, position))

    def read_until(self, path: str, position: Position, stop: Position) -> PlacedBlocks:
        return self._with(path, self.inner.read_until(path, position, stop))

    def portions(
        self, path: str, position: Position | None, stop: Position | None, size: int, given: int
    ) -> Iterator[Portion]:
        if not self.wants(path):
            return
        add = self._adding(path)
        for portion in self.inner.portions(path, position, stop, size, given):
            yield portion.changed(add)

    def fetch(self, path: str, rows: Ints) -> Block:
        return self._adding(path)(self.inner.fetch(path, rows))

    def arrow_schema(self, path: str, schema: Any) -> Any:
        """A schema of the other format with the columns of folders; a null is one here."""
        import pyarrow as pa

        for name, kind in self.selected:
            field = pa.field(name, pa.binary() if kind == _TEXT else pa.from_numpy_dtype(kind))
            schema = schema.set(schema.get_field_index(name), field) if name in schema.names else schema.append(field)
        return schema if self.columns is None else pa.schema([schema.field(name) for name in self.columns])

    def with_folders(self, path: str) -> Callable[[Any], Any]:
        """Adds the columns of folders to record batches of a file of the other format; a null is one here."""
        import pyarrow as pa

        texts = _folders(path)
        plain = {name: None if texts.get(name) == NULL else text for name, text in texts.items()}
        there = replace(self, fill=tuple(_zeros(self.kinds, plain).items()))
        values = {name: None if plain[name] is None else value for name, value in there.values(path).items()}

        def add(batch: Any) -> Any:
            for name, kind in self.selected:
                stored = pa.binary() if kind == _TEXT else pa.from_numpy_dtype(kind)
                value = values[name]
                value = value if value is None or isinstance(value, bytes) else value.item()
                column = pa.repeat(pa.scalar(value, stored), batch.num_rows)
                if name in batch.schema.names:
                    place = batch.schema.get_field_index(name)
                    self._check_told(path, name, plain[name], batch.column(place).to_pylist())
                    batch = batch.set_column(place, name, column)
                else:
                    batch = batch.append_column(name, column)
            return batch if self.columns is None else batch.select(list(self.columns))

        return add

    def _check_shared(self, path: str, nest: Mapping[str, Any]) -> None:
        """Refuse a file with a column that its folder names too, unless both can be compared.

        Raises:
          InvalidArgumentError: there is one.
        """
        for name, _ in self.kinds:
            leaf = nest.get(name)
            plain = isinstance(leaf, TensorSpec) and leaf.shape == () and leaf.dtype.kind in "iufO"
            if leaf is not None and not (plain and self.name in _TYPED):
                raise InvalidArgumentError(
                    f"{path}: has a column {name!r}, and is in a folder '{name}=...'; leave out what folders say with "
                    "partitioning=None"
                )

    @staticmethod
    def _check_told(path: str, name: str, text: str | None, told: Iterable[Any]) -> None:
        """Refuse a file whose own column is not what its folder says.

        Args:
          path: of the file.
          name: of the column.
          text: that of the folder; None: null.
          told: what rows of the file say, numbers and text.

        Raises:
          InvalidArgumentError: a row says something else.
        """
        number = int(text) if text is not None and _INTEGER.fullmatch(text) else None
        for each in told:
            plain = each.decode(errors="replace") if isinstance(each, bytes) else each
            if plain not in (text, number) or isinstance(plain, bool) or (plain is None and text is not None):
                raise InvalidArgumentError(
                    f"{path}: is in a folder '{name}={text}', and its own column {name!r} holds {plain!r}; leave out what "
                    "folders say with partitioning=None"
                )

    def _with(self, path: str, blocks: PlacedBlocks) -> PlacedBlocks:
        add = self._adding(path)
        return ((add(block), after) for block, after in blocks)

    def _adding(self, path: str) -> Callable[[Block], Block]:
        """Adds the columns of folders to blocks of a file."""
        values, texts = self.values(path), _folders(path)
        constants = [values[name] for name, _ in self.selected]
        constants += [np.bool_(texts[name] != NULL) for name in (*dict(self.selected), *self.beside.values())]
        layout: tuple[Structure, Structure, list[int], dict[str, int]] | None = None

        def add(block: Block) -> Block:
            nonlocal layout
            if layout is None or layout[0] is not block.structure:
                layout = (block.structure, *self._layout(block.structure))
            for name, place in layout[3].items():
                column: Any = block.columnar().columns[place]  # of numbers or text, as `check_spec` has seen to
                self._check_told(path, name, texts[name], set(np.unique(column.whole()).tolist()))
            columns = [*block.columnar().columns, *[_column(value, block.size) for value in constants]]
            return ColumnBlock(layout[1], [columns[place] for place in layout[2]], block.size)

        return add

    def _layout(self, inner: Structure) -> tuple[Structure, list[int], dict[str, int]]:
        """The structure of records with the columns of folders, where each leaf is among those of both, and what both have."""
        nest = inner.build(list(range(inner.num_leaves)))
        both = {name: nest[name] for name, _ in self.kinds if name in nest}
        first, marks = inner.num_leaves, inner.num_leaves + len(self.selected)
        nest = {**nest, **{name: self._leaf(name, first + n, marks + n) for n, (name, _) in enumerate(self.selected)}}
        nest |= {mark: marks + n for n, mark in enumerate(self.beside, len(self.selected))}
        if self.columns is not None:
            nest = {name: nest[name] for name in self.columns}
        structure = structure_of(nest).as_told(inner)
        return structure, structure.flatten(nest), both


# The rest is as in the other format.
for _name in str.split("""
    name spec_from_file in_portions reads from_front resumes lists_fragments errors_of_records one_version rows stated_rows
    fragments size bytes_read seek ends_at past start units unit_bytes part
"""):
    setattr(Partitioned, _name, property(attrgetter(f"inner.{_name}")))


def _value(path: str, name: str, text: str, dtype: np.dtype[Any], fill: Mapping[str, Any]) -> Any:
    if text == NULL and name not in fill:
        if dtype.kind == "f":
            return dtype.type(np.nan)
        raise InvalidArgumentError(
            f"{path}: the column {name!r} of its folder is null; say what to put in its place with "
            f"nulls={{{name!r}: value}}, or leave such columns out with partitioning=None"
        )
    value = fill[name] if text == NULL else text
    if dtype == _TEXT:
        return value if isinstance(value, bytes) else str(value).encode(errors="surrogateescape")
    if dtype.kind == "b" and isinstance(value, str) and value.lower() in _TRUTH:
        return np.bool(_TRUTH[value.lower()])
    try:
        if dtype.kind == "b" and isinstance(value, str):
            raise ValueError(value)
        return np.array([value]).astype(dtype)[0] if isinstance(value, str) else dtype.type(value)
    except (ValueError, TypeError, OverflowError):  # of NumPy
        raise InvalidArgumentError(
            f"{path}: the column {name!r} of its folder is {value!r}, which is no {dtype}; state another type with "
            f"partitioning={{{name!r}: str}}"
        ) from None


_TRUTH = {"true": True, "1": True, "false": False, "0": False}


def _zeros(kinds: PartitionDtypes, names: Collection[str]) -> dict[str, Any]:
    """What stands in the place of nulls in some of the columns, where it is not NaN."""
    return {name: b"" if kind == _TEXT else 0 for name, kind in kinds if name in names and kind.kind != "f"}


def _column(value: Any, rows: int) -> Column:
    """A value in each of some rows."""
    if isinstance(value, bytes):
        return Strings(np.frombuffer(value, np.uint8), np.zeros(rows, np.int64), np.full(rows, len(value), np.int64))
    return Dense(np.full(rows, value))
