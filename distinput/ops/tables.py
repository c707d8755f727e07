# SPDX-License-Identifier: Apache-2.0
"""`from_arrow`: the rows of whatever is a table, in memory or as a stream."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from distinput.core.arrow import FillError, NullsError, UnsupportedTypeError, to_column, without_rows, without_views
from distinput.core.column import Ints
from distinput.core.nest import LEAF
from distinput.core.sizes import MOST_ROWS
from distinput.core.spec import Spec
from distinput.core.table_reading import Reading, zero_of
from distinput.core.tabular import arrow_array_of, is_arrow_array, is_stream, is_table, library_of, table_of
from distinput.errors import InvalidArgumentError
from distinput.ops.arrow_stream import ArrowStream, StreamSource
from distinput.ops.slices import from_tensor_slices, slices_of
from distinput.ops.table_rows import TableRows
from distinput.plan.node import Node

__all__ = ["from_arrow", "rows_of_table"]


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
        raise InvalidArgumentError(f"{who}: a {type(given).__name__} is no table; give its .to_arrow_table()")
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
    import pyarrow as pa

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
    import pyarrow as pa

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
    arrays: dict[Any, Any] = {}
    marks: dict[str, Any] = {}
    fill, valid = dict(reading.nulls), dict(reading.valid)
    for option in (fill, valid):
        for name in option:
            if name not in columns:
                raise InvalidArgumentError(
                    f"{reading.who}: there is no column {name!r}; the columns are {', '.join(map(str, columns))}"
                )
    for name, values in columns.items():
        arrays[name] = values
        if is_arrow_array(values):
            array = arrow_array_of(values)
            if name in valid:
                fill.setdefault(name, zero_of(array.type))
                marks[valid[name]] = array.is_valid()
            if name in fill:
                try:
                    arrays[name] = to_column(array, name, fill[name])
                except (FillError, NullsError, UnsupportedTypeError) as error:
                    raise InvalidArgumentError(f"{reading.who}: {error}") from None
        elif name in valid:
            marks[valid[name]] = np.ones(len(values), bool)
    return from_tensor_slices({**arrays, **marks}, reading.who)


def _of_array(array: Any, reading: Reading) -> Node:
    """The values of a single array; those of an array of structs are the rows of a table."""
    import pyarrow as pa

    if not isinstance(array, np.ndarray) and pa.types.is_struct(array.type):
        if isinstance(array, pa.ChunkedArray):
            return rows_of_table(pa.Table.from_struct_array(array), reading)
        return rows_of_table(pa.Table.from_batches([pa.RecordBatch.from_struct_array(array)]), reading)
    if reading.nulls or reading.valid:
        raise InvalidArgumentError(f"{reading.who}: a single array has no columns that nulls or valid could name")
    made = from_tensor_slices(array, reading.who)
    assert made.block.structure == LEAF
    return made
