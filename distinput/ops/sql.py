# SPDX-License-Identifier: Apache-2.0
"""`sql`: the rows of a query that is run in each pass."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from functools import cached_property
from operator import lt, ne
from typing import Any, ClassVar

from distinput.arrow.adopt import frozen
from distinput.arrow.tabular import Reading
from distinput.columns.block import MOST_ROWS, ColumnBlock, rows_within
from distinput.columns.rows import Stream
from distinput.columns.state import State
from distinput.errors import DataLossError, InvalidArgumentError
from distinput.formats.row_schema import RowSchema
from distinput.formats.sql_query import OpenQuery, SqlQuery, check_names, inferred_schema, record_batch_of
from distinput.names.lazy import dataclass
from distinput.plan.check import integer
from distinput.plan.node import Node
from distinput.run.run import Run
from distinput.values.spec import Spec

_FIRST_ROWS = 1024
"""Rows that are fetched first, and by which types are inferred."""

_MOST = 2048
"""The most that are fetched at a time: a driver makes objects of all values, and more of them leave the caches of a core."""

_KEYS: dict[str, type] = {"int": int, "uint": int, "binary": str}
"""Types of keys, by the types of their columns without the bits."""


@dataclass(frozen=True, eq=False)
class Sql(Node):
    """The rows of a query, which is run in each pass and read some rows at a time.

    Shapes: those of the schema. State: the next row, and with `order_by` the key of the last one; a restart goes on behind this
    key, or without a key reads and drops the rows before it.

    Args:
      query: what to run.
      schema: the types of the columns.
      reading: what stands for nulls.
      tuples: rows are tuples in the order of the query, not dicts.
      fetch_size: rows that are fetched at a time; None: chosen by their size.

    Source: `tf.data.experimental.SqlDataset`, for tuples.
    """

    indifferent: ClassVar[frozenset[str]] = frozenset({"fetch_size"})
    op: ClassVar[str] = "sql"
    query: SqlQuery = field(repr=False)
    schema: RowSchema
    reading: Reading = field(default=Reading(who="from_sql"), repr=False)
    tuples: bool = False
    fetch_size: int | None = None

    def arguments(self) -> dict[str, Any]:
        query = self.query
        return {
            "query": query.query,
            "parameters": query.parameters,
            "order_by": query.order_by,
            "columns": repr(self.schema),
            "nulls": self.reading.nulls,
            "valid": self.reading.valid,
            "tuples": self.tuples,
            "fetch_size": self.fetch_size,
        }

    @cached_property
    def _columns(self) -> Spec:
        return self.reading.spec(self.schema.arrow)

    @cached_property
    def spec(self) -> Spec:
        if not self.tuples:
            return self._columns
        by_name: Any = self._columns.nest
        return Spec.of(tuple([by_name[name] for name in self.schema.names]))

    def check(self) -> None:
        """Refuse columns that cannot be held, and a key that cannot be one.

        Raises:
          InvalidArgumentError: there is one.
        """
        self.spec  # noqa: B018
        if self.query.order_by is not None:
            self._key_type  # noqa: B018

    def start(self, epoch: int) -> State:
        return {"row": 0, "key": []}

    def state_misfit(self, state: State) -> str | None:
        row, key, order_by = state["row"], state["key"], self.query.order_by
        if order_by is None or not row:
            return f"{self.op}: 'key' must be an empty list, got {key!r}" if key else None
        wanted = self._key_type
        if len(key) != 1 or type(key[0]) is not wanted:
            return f"{self.op}: 'key' must be a list of one {wanted.__name__}, a value of {order_by!r}, got {key!r}"
        return None

    @cached_property
    def _key_type(self) -> type:
        """The type of keys in states."""
        name, who = self.query.order_by, self.query.who
        if name not in self.schema.names:
            raise InvalidArgumentError(
                f"{who}: order_by: there is no column {name!r}; the columns are {', '.join(self.schema.names)}"
            )
        kind = str(self.schema.arrow.field(name).type)
        if kind.rstrip("0123456789") not in _KEYS:
            raise InvalidArgumentError(
                f"{who}: order_by: column {name!r} is of type {kind}, and a key must be an integer or text; cast it in SQL"
            )
        return _KEYS[kind.rstrip("0123456789")]

    def stream(self, state: State, run: Run) -> Stream:
        row, key = state["row"], state["key"]
        with self.query.open(*key) as rows:
            order = _places(self.query.who, self.schema, rows.names, self.tuples)
            self._go_on(rows, row, key, order)
            wanted = self.fetch_size or min(_FIRST_ROWS, run.at_once(_MOST))
            while found := rows.fetch(wanted):
                values = [[one[place] for place in order] for one in found] if order != sorted(order) else found
                for block, nbytes in self._blocks(values, row):
                    if self.query.order_by is not None:
                        key = self._checked_key(values[: block.size], row, key)
                    row += block.size
                    wanted = self.fetch_size or min(rows_within(block.size, nbytes), run.at_once(_MOST))
                    yield block, {"row": row, "key": key}
                del found, values  # the next rows take their memory, which is in the cache

    def _go_on(self, rows: OpenQuery, row: int, key: list[Any], order: Sequence[int]) -> None:
        """Pass over what was read before."""
        who = self.query.who
        if key:
            found = rows.fetch(1)
            place = order[self.schema.names.index(self.query.order_by or "")]
            if not found or found[0][place] != key[0]:
                raise DataLossError(
                    f"{who}: reading must continue after the row with {self.query.order_by} {key[0]!r}, which is not there, or "
                    "not the first one with this key; the rows changed, or the column is not a unique key"
                )
        elif row and (passed := rows.skip(row, MOST_ROWS)) < row:
            raise DataLossError(
                f"{who}: the query gives {passed} rows, but reading must continue at row {row}; the rows changed"
            )

    def _blocks(self, rows: list[Any], first: int) -> Iterator[tuple[ColumnBlock, int]]:
        """All rows as a block, and its bytes; where one does not fit, those before it, and then the error."""
        try:
            block = self._block(rows, first)
        except InvalidArgumentError:
            good, bad = 0, len(rows)  # rows[:good] fit, rows[:bad] do not
            while bad - good > 1:
                middle = (good + bad) // 2
                try:
                    self._block(rows[good:middle], first + good)
                    good = middle
                except InvalidArgumentError:
                    bad = middle
            if good:
                yield self._block(rows[:good], first)
            self._block(rows[good : good + 1], first + good)
            raise
        yield block

    def _block(self, rows: list[Any], first: int) -> tuple[ColumnBlock, int]:
        batch = record_batch_of(self.query.who, self.schema, rows, first)
        if self.tuples:
            self._check_nulls(batch, first)
        block = frozen(self.reading.block(batch, self._columns, first))
        if self.tuples:
            by_name = dict(zip(self._columns.structure.keys or (), block.columns, strict=True))
            block = ColumnBlock(self.spec.structure, [by_name[name] for name in self.schema.names], block.size)
        return block, batch.nbytes

    def _check_nulls(self, batch: Any, first: int) -> None:
        for place, (array, leaf) in enumerate(zip(batch.columns, self.spec.tensors(self.op), strict=True)):
            if array.null_count and leaf.dtype.kind not in "fmM":
                row = first + array.is_null().to_pylist().index(True)
                raise InvalidArgumentError(
                    f"{self.query.who}: row {row}, column {place}: expected {array.type}, found NULL; replace it in "
                    "the query, as COALESCE(name, 0) does"
                )

    def _checked_key(self, rows: list[Any], first: int, last: list[Any]) -> list[Any]:
        """The key of the last of these rows, which follow the one with the key `last`."""
        name, key_type = self.query.order_by or "", self._key_type
        place = self.schema.names.index(name)
        keys = [row[place] for row in rows]
        before = [*last, *keys[:-1]] if last else keys[:-1]
        after = keys if last else keys[1:]
        if set(map(type, keys)) == {key_type} and all(map(lt if key_type is int else ne, before, after)):
            return [keys[-1]]
        for number, key in enumerate(keys, first):
            if type(key) is not key_type:
                raise InvalidArgumentError(
                    f"{self.query.who}: row {number}, column {name!r}: a key must be of type {key_type.__name__}, "
                    f"found {key!r}; cast it in the query"
                )
            if last and not (last[0] < key if key_type is int else last[0] != key):
                raise InvalidArgumentError(
                    f"{self.query.who}: row {number}, column {name!r}: a key must be there once, found {key!r} after "
                    f"{last[0]!r}; order by a column with each value once"
                )
            last = [key]
        raise AssertionError("a key is wrong")


def _places(who: str, schema: RowSchema, names: Sequence[str], tuples: bool) -> list[int]:
    """Where the values of the schema's columns are in a row of the query.

    Raises:
      InvalidArgumentError: the query has other columns.
    """
    if tuples:
        if len(names) != len(schema.names):
            raise InvalidArgumentError(
                f"{who}: output_types has {len(schema.names)} types, but the query gives {len(names)} columns: "
                f"{', '.join(names)}"
            )
        return list(range(len(names)))
    check_names(who, names)
    if sorted(names) != sorted(schema.names):
        raise InvalidArgumentError(
            f"{who}: the columns of the schema are {', '.join(schema.names)}, but the query gives {', '.join(names)}; let the "
            "query select the columns of the schema, under their names"
        )
    return [names.index(name) for name in schema.names]


def from_sql(
    text: str,
    connect: Callable[[], Any],
    schema: Any = None,
    parameters: Any = (),
    order_by: str | None = None,
    nulls: Any = None,
    valid: Any = None,
    paramstyle: str | None = None,
    fetch_size: int | None = None,
) -> Sql:
    """The source of `Dataset.from_sql`; without a schema the query is run to see its first rows."""
    query = SqlQuery(text, connect, parameters, order_by, paramstyle)
    who = query.who
    if fetch_size is not None:
        fetch_size = integer(who, "fetch_size", fetch_size)
        if fetch_size < 1:
            raise InvalidArgumentError(f"{who}: fetch_size must be at least 1, got {fetch_size}")
    held, reading = RowSchema.of(who, schema), Reading.of(nulls, valid, who)
    if held is None:
        with query.open() as rows:
            check_names(who, rows.names)
            first = rows.fetch(_FIRST_ROWS)
        held = inferred_schema(who, rows.names, first)
        if reading.tells == "in place":
            reading = reading.of_table([record_batch_of(who, held, first, 0)], held.arrow)
    node = Sql(query, held, reading, False, fetch_size)
    node.check()
    return node
