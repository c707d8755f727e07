# SPDX-License-Identifier: Apache-2.0
"""`from_arrow`: the rows of a table in memory, or of a stream that is opened in each pass."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from itertools import islice
from typing import Any, ClassVar
from weakref import WeakSet

import numpy as np

from distinput.arrow.adopt import arrow_array_of, frozen, is_arrow_array, is_stream, is_table, library_of, table_of
from distinput.arrow.arrow import columns_of, gathered, one_batch, taken, without_rows, without_views
from distinput.arrow.tabular import Reading
from distinput.arrow.validity import marked
from distinput.columns.block import MOST_ROWS, Block, ColumnBlock, block_rows
from distinput.columns.column import Ints
from distinput.columns.picked import places_of_each, put_in_order
from distinput.columns.rows import Stream
from distinput.columns.state import Digest, State, evenly
from distinput.errors import DataLossError, InvalidArgumentError
from distinput.names.lazy import dataclass, library
from distinput.ops.slices import from_tensor_slices, slices_of
from distinput.plan.families import InMemory
from distinput.plan.node import Node
from distinput.run.run import Run
from distinput.values.nest import LEAF, Structure
from distinput.values.spec import Spec

pa = library("pyarrow")

# ----------------------------------------------------------------------------
# `arrow_stream`: the rows of an Arrow stream that is opened in each pass.
# ----------------------------------------------------------------------------


class StreamSource:
    """Opens an Arrow stream, once for each pass.

    Args:
      given: an object that exports a stream, or a function that returns one.
      who: the caller, for error messages.
      schema: of the stream; None: it is opened to see.

    Raises:
      InvalidArgumentError: the stream cannot be opened.
    """

    def __init__(self, given: Any, who: str, schema: Any = None) -> None:
        self.given, self.who = given, who
        self.rest: _Rest | None = None
        """What is left, if it can be read once."""
        if not callable(given) and (hasattr(given, "__next__") or hasattr(given, "read_next_batch")):
            if given in _TAKEN:
                raise self.consumed()
            _TAKEN.add(given)
            reader = self._opened()
            self.schema, self.rest = reader.schema, _Rest(reader)
        elif schema is not None:
            self.schema = schema
        else:
            reader = self._opened()
            self.schema = reader.schema
            reader.close()  # a connection may serve one open result at a time

    def open(self) -> Any:
        """A reader from the first row on.

        Raises:
          InvalidArgumentError: the stream cannot be opened; or its columns changed.
        """
        reader = self._opened()
        if reader.schema != self.schema:
            raise InvalidArgumentError(
                f"{self.who}: the stream had the columns {_told(self.schema)} when the dataset was made, and has now "
                f"{_told(reader.schema)}"
            )
        return reader

    def consumed(self) -> InvalidArgumentError:
        """The error for a stream that is read a second time."""
        return InvalidArgumentError(
            f"{self.who}: this {type(self.given).__name__} can be read once, and another pass or dataset has it; give a "
            "function that opens it anew, such as from_arrow(lambda: connection.sql(query)), or its table"
        )

    def _opened(self) -> Any:
        found = self.given() if callable(self.given) and not is_stream(self.given) else self.given
        try:
            if not hasattr(found, "__arrow_c_stream__"):
                return table_of(found).to_reader()
            return pa.RecordBatchReader.from_stream(found)
        except Exception as error:  # each library has errors of its own
            raise InvalidArgumentError(
                f"{self.who}: cannot open the stream of a {type(found).__name__}: {error}"
            ) from error


_TAKEN: "WeakSet[Any]" = WeakSet()
"""Single-use streams that belong to a dataset."""


def _told(schema: Any) -> str:
    return ", ".join(f"{one.name}: {one.type}" for one in schema)


@dataclass(frozen=True, eq=False)
class ArrowStream(Node):
    """The rows of an Arrow stream, which is opened in each pass and read a batch at a time.

    Shapes: those of the schema. State: the next row; a restart reads and drops the rows before it.

    Args:
      source: opens the stream.
      reading: how columns are read.
    """

    op: ClassVar[str] = "arrow_stream"
    source: StreamSource = field(repr=False)
    reading: Reading = field(default=Reading(), repr=False)

    @cached_property
    def spec(self) -> Spec:
        return self.reading.spec(self.source.schema)

    def arguments(self) -> dict[str, Any]:
        return {"columns": _told(self.source.schema)}

    def start(self, epoch: int) -> State:
        return {"row": 0}

    def stream(self, state: State, run: Run) -> Stream:
        source, who, rest = self.source, self.reading.who, self.source.rest
        if rest is None:
            reader = source.open()
            try:
                yield from self.reading.blocks(_read(reader, who), self.spec, state["row"], 0, f"{who}: the stream")
            finally:
                reader.close()
            return
        me = object()
        try:
            if not rest.taken_by(me) or state["row"] < rest.row:
                raise source.consumed()
            batches = rest.sampled() if run.asked.sampling else rest.batches()
            yield from self.reading.blocks(_read(batches, who), self.spec, state["row"], rest.row, f"{who}: the stream")
        finally:
            rest.leave(me)


class _Rest:
    """What is left of a stream that can be read once: for the pass that a sample was before, and for one that was interrupted.

    Args:
      reader: of the stream.
    """

    def __init__(self, reader: Any) -> None:
        self._reader = reader
        self._held: tuple[int, list[Any]] = (0, [])  # changed in one step, since an interrupt may come at any
        self._user: object = None

    def taken_by(self, user: object) -> bool:
        """Whether nobody else reads it now; others are kept out until the user leaves."""
        if self._user is None:
            self._user = user
        return self._user is user

    def leave(self, user: object) -> None:
        """Let others read it."""
        if self._user is user:
            self._user = None

    @property
    def row(self) -> int:
        """The first row that is left."""
        return self._held[0]

    def batches(self) -> Iterator[Any]:
        """The batches; each is held until the next one is wanted."""
        while True:
            row, held = self._held
            if not held and not self._pulled(held):
                return
            yield held[0]
            self._held = (row + held[0].num_rows, held[1:])

    def sampled(self) -> Iterator[Any]:
        """The batches, which stay where they are."""
        at, held = 0, self._held[1]
        while at < len(held) or self._pulled(held):
            yield held[at]
            at += 1

    def _pulled(self, held: list[Any]) -> bool:
        known = len(held)
        held.extend(islice(self._reader, 1))  # no interrupt comes between reading and keeping
        return len(held) > known


def _read(batches: Iterator[Any], who: str) -> Iterator[Any]:
    try:
        yield from batches
    except (pa.ArrowException, OSError) as error:
        raise DataLossError(f"{who}: the stream ended with an error: {error}") from error


# ----------------------------------------------------------------------------
# `table`: the rows of a table in memory, as dicts of its columns.
# ----------------------------------------------------------------------------


_MOST_HASHED = 64
"""Batches of a table, at equal distances, whose contents a saved state identifies."""


@dataclass(frozen=True, eq=False)
class TableRows(InMemory):
    """The rows of a table in several chunks, which are not joined; only requested rows are converted.

    Shapes: those of the table's rows. State: the next row.

    Args:
      batches: pyarrow RecordBatches.
      row_spec: of a row.
      reading: how columns are read.
      order: numbers of the rows to give, in this order; None: all of them.
    """

    op: ClassVar[str] = "table"
    batches: Sequence[Any] = field(repr=False)
    row_spec: Spec = field(repr=False)
    reading: Reading = field(default=Reading(), repr=False)
    order: Ints | None = field(default=None, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        # Pickled one by one, slices of a chunk would bring along the whole chunk each.
        return {**super().__getstate__(), "batches": _packed(self.batches)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, batches=_unpacked(state["batches"]))

    @cached_property
    def ends(self) -> Ints:
        """The rows before each batch, and of all."""
        return np.cumsum([0, *[batch.num_rows for batch in self.batches]], dtype=np.int64)

    @cached_property
    def spec(self) -> Spec:
        return self.row_spec

    @property
    def cardinality(self) -> int:
        return int(self.ends[-1]) if self.order is None else len(self.order)

    def arguments(self) -> dict[str, Any]:
        return {"elements": f"{self.cardinality} rows of {', '.join(map(str, self.spec.structure.keys))}"}

    def contents(self) -> dict[str, Any]:
        digest = Digest().add(len(self.batches), int(self.ends[-1]))
        for number in evenly(len(self.batches), _MOST_HASHED).tolist():
            for column in self.reading.block(self.batches[number], self.spec, int(self.ends[number])).columns:
                digest.column(column)
        if self.order is not None:
            digest.array(self.order)
        return {"values": digest.word}

    def stream(self, state: State, run: Run) -> Stream:
        row = state["row"]
        if self.order is not None:
            most = block_rows(self.spec.row_bytes)
            while row < len(self.order):
                stop = min(row + most, len(self.order))
                yield frozen(self._rows(self.order[row:stop])), {"row": stop}
                row = stop
            return
        for number in range(int(np.searchsorted(self.ends, row, "right")) - 1, len(self.batches)):
            begin, batch = int(self.ends[number]), self.batches[number]
            most = min(MOST_ROWS, block_rows(batch.nbytes / max(1, batch.num_rows)))
            while row < begin + batch.num_rows:
                part = batch.slice(row - begin, most)
                block = frozen(self.reading.block(part, self.spec, row))
                row += part.num_rows
                yield block, {"row": row}

    def fetch(self, rows: Ints, epoch: int) -> Block:
        return self._rows(rows if self.order is None else self.order.take(rows))

    def _rows(self, rows: Ints) -> Block:
        """The rows of the table with these numbers."""
        return picked(self.batches, self.ends, self.reading, self.spec, rows)

    def rows_of(self, numbers: Sequence[int]) -> Sequence[int] | Ints:
        return ()


def picked(batches: Sequence[Any], ends: Ints, reading: Reading, spec: Spec, rows: Ints) -> Block:
    """The rows with these numbers, in their order.

    Args:
      batches: at least one pyarrow RecordBatch.
      ends: where each begins, and where the last one ends.
      reading: how columns are read.
      spec: of a row.
      rows: numbers of rows.
    """
    parts: list[ColumnBlock] = []
    places = places_of_each(np.searchsorted(ends, rows, "right") - 1)
    for number, place in places.items():
        local = rows[place] - ends[number]
        try:
            parts.append(reading.block(gathered(batches[number], local), spec, rows[place]))
        except pa.ArrowNotImplementedError:  # views below lists, for example
            parts.append(reading.block(batches[number], spec, int(ends[number])).take(local))
    return put_in_order(parts, list(places.values())) if parts else reading.block(batches[0].slice(0, 0), spec, 0)


def _packed(batches: Sequence[Any]) -> Any:
    """Record batches as a buffer that holds their rows alone, in Arrow's stream format."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return sink.getvalue()


def _unpacked(packed: Any) -> tuple[Any, ...]:
    with pa.ipc.open_stream(packed) as reader:
        return tuple(reader)


# ----------------------------------------------------------------------------
# `from_arrow`: the rows of whatever is a table, in memory or as a stream.
# ----------------------------------------------------------------------------


def from_arrow(given: Any, nulls: Any = "error", valid: Any = None, who: str = "from_arrow") -> Node:
    """The source of `Dataset.from_arrow`."""
    reading = Reading.of(nulls, valid, who)
    if is_stream(given) or (callable(given) and not is_table(given)):
        node = ArrowStream(StreamSource(given, who), reading)
        node.spec  # noqa: B018 - what cannot be read is refused now
        return node
    if isinstance(given, Mapping):
        return _of_columns(given, reading)
    if is_table(given) or is_arrow_array(given):
        try:
            read = table_of(given) if is_table(given) else arrow_array_of(given)
        except (TypeError, ValueError) as error:
            raise InvalidArgumentError(f"{who}: {error}") from error
        return rows_of_table(read, reading) if is_table(read) else _of_array(read, reading)
    if library_of(type(given)) == "pandas" and hasattr(given, "dtype"):  # a Series that NumPy holds
        return _of_array(given.to_numpy(), reading)
    if hasattr(given, "to_arrow_table"):
        raise InvalidArgumentError(f"{who}: a {type(given).__name__} is not a table; give its .to_arrow_table()")
    if hasattr(given, "collect"):
        raise InvalidArgumentError(f"{who}: a {type(given).__name__} is a query; give its result, .collect()")
    raise InvalidArgumentError(
        f"{who}: expected a table (of pyarrow, pandas, polars, DuckDB, Hugging Face, or anything with __arrow_c_stream__ or "
        f"__arrow_c_array__), a dict of columns, or a function that opens a stream, got {type(given).__name__}"
    )


def rows_of_table(table: Any, reading: Reading, order: Ints | None = None) -> Node:
    """The rows of a pyarrow Table: of one chunk as columns, of several chunk by chunk.

    Args:
      table: the table.
      reading: how columns are read.
      order: numbers of the rows to give, in this order; None: all of them.
    """
    reading = reading.of_table(_looked_at(table, reading, order), table.schema)
    spec = reading.spec(table.schema)
    single = all(column.num_chunks <= 1 for column in table.columns)
    if not single:
        # Chosen rows are copied by Arrow, which cannot do that with views of text.
        table = pa.table([without_views(column) for column in table.columns], table.column_names)
    batches = table.to_batches(None if single else 2 * MOST_ROWS)
    if len(batches) > 1 or (order is not None and batches):
        if order is None:
            _check_nulls(batches, spec, reading)
        return TableRows(tuple(batches), spec, reading, order)
    if not batches:
        batches = [without_rows(table.schema)]
    block = reading.block(batches[0], spec, 0)
    return slices_of(block, f"{block.size} rows of {', '.join(table.column_names)}", spec.leaves, others=True)


def _looked_at(table: Any, reading: Reading, order: Ints | None) -> Sequence[Any]:
    """The batches in which nulls are looked for: those of the rows that are given, if others have some."""
    batches: Sequence[Any] = table.to_batches()
    if (
        order is None
        or not reading.tells
        or not any(_has_nulls(column) for batch in batches for column in batch.columns)
    ):
        return batches
    return taken(table, order).to_batches() if len(order) else ()


def _check_nulls(batches: Sequence[Any], spec: Spec, reading: Reading) -> None:
    """Reject a table with nulls that have no replacement before the first pass.

    Only batches that have nulls, at any depth, are converted for this; Arrow counts nulls without reading values.
    """
    row = 0
    for batch in batches:
        if any(_has_nulls(column) for column in batch.columns):
            reading.block(batch, spec, row)
        row += batch.num_rows


def _has_nulls(array: Any) -> bool:
    if isinstance(array, pa.ExtensionArray):
        return _has_nulls(array.storage)
    if array.null_count:
        return True
    if isinstance(array, pa.DictionaryArray):
        return _has_nulls(array.dictionary)
    if isinstance(array, pa.StructArray):
        return any(_has_nulls(array.field(place)) for place in range(array.type.num_fields))
    return hasattr(array, "values") and isinstance(array.values, pa.Array) and _has_nulls(array.values)


def _of_columns(columns: Mapping[Any, Any], reading: Reading) -> Node:
    """The rows of a dict of columns, each of any kind."""
    if not columns:
        raise InvalidArgumentError(f"{reading.who}: there must be at least one column")
    if reading.tells == "beside":
        raise InvalidArgumentError(f'{reading.who}: nulls="valid" is for tables; name the columns with valid={{...}}')
    arrays: dict[Any, Any] = {}
    marks: dict[str, Any] = {}
    structures: list[Structure] = []
    valid = dict(reading.valid)
    for option in (dict(reading.nulls), valid):
        for name in option:
            if _column_of(name, columns) is None:
                raise InvalidArgumentError(
                    f"{reading.who}: there is no column {name!r}; the columns are {', '.join(map(str, columns))}"
                )
    for name, values in columns.items():
        arrays[name] = values
        if is_arrow_array(values):
            told = _told_columns(arrow_array_of(values), name, columns, reading)
            if told is not None:
                arrays[name] = told[0].pop(str(name))
                marks |= told[0]
                structures.append(told[1])
        elif valid.get(name):
            marks[valid[name]] = np.ones(len(values), bool)
    made = from_tensor_slices({**arrays, **marks}, reading.who)
    block, structure = made.block.columnar(), made.block.structure
    for each in structures:
        structure = structure.as_told(each)
    return replace(made, block=ColumnBlock(structure, block.columns, block.size)) if structures else made


def _told_columns(
    array: Any, name: Any, columns: Mapping[Any, Any], reading: Reading
) -> tuple[dict[str, Any], Structure] | None:
    """A named array whose nulls are told or replaced, and the marks beside it, by name; and their structure.

    None: nothing is said of nulls.
    """
    batch = one_batch(pa.table({str(name): array}))
    nulls, valid = [
        tuple([(str(path), told) for path, told in option if _column_of(path, columns) == name])
        for option in (reading.nulls, reading.valid)
    ]
    own = replace(reading, nulls=nulls, valid=valid).of_table([batch], batch.schema)
    if not own.valid and not nulls:
        return None
    spec = own.spec(batch.schema)
    own.block(batch, spec, 0)  # what cannot be read is refused
    return columns_of(marked(batch, own.valid, dict(nulls)), dict(nulls)), spec.structure


def _column_of(path: Any, columns: Iterable[Any]) -> Any:
    """The column that a path is that of, or of something in it: of `a` and `a.b` the longer one; None: there is none."""
    ours = [name for name in columns if path == name or str(path).startswith((f"{name}.", f"{name}[]"))]
    return max(ours, key=lambda name: len(str(name)), default=None)


def _of_array(array: Any, reading: Reading) -> Node:
    """The values of a single array; those of an array of structs are the rows of a table."""
    if not isinstance(array, np.ndarray) and pa.types.is_struct(array.type):
        if isinstance(array, pa.ChunkedArray):
            return rows_of_table(pa.Table.from_struct_array(array), reading)
        return rows_of_table(pa.Table.from_batches([pa.RecordBatch.from_struct_array(array)]), reading)
    if reading.nulls or reading.valid:
        raise InvalidArgumentError(f"{reading.who}: a single array has no columns that nulls or valid could name")
    made = from_tensor_slices(array, reading.who)
    assert made.block.structure == LEAF
    return made
