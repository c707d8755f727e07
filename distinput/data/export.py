# SPDX-License-Identifier: Apache-2.0
"""A pass over a dataset as tables: what `Dataset.__arrow_c_stream__`, `to_arrow`, `to_pandas` and `to_polars` do."""

from collections.abc import Iterator
from typing import Any

from distinput.arrow.record_batches import Text, arrow_schema, nulls_of, record_batch, with_decimals
from distinput.arrow.validity import zero_of
from distinput.data.iterator import DatasetLike
from distinput.errors import InvalidArgumentError, importing
from distinput.plan.node import INFINITE


def arrow_reader(dataset: DatasetLike) -> Any:
    """A pyarrow RecordBatchReader over a pass, which makes each batch when it is asked for."""
    import pyarrow as pa

    schema = arrow_schema(dataset.node.spec, as_made=True)
    return pa.RecordBatchReader.from_batches(schema, _batches(dataset, schema))


def _batches(dataset: DatasetLike, schema: Any) -> Iterator[Any]:
    with dataset.iter_blocks() as blocks:
        for block in blocks:
            if block.size:
                yield record_batch(block, schema)


def arrow_table(dataset: DatasetLike, text: Text, who: str) -> Any:
    """All elements as a pyarrow Table."""
    import pyarrow as pa

    if dataset.cardinality() == INFINITE:
        raise InvalidArgumentError(f"{who}: the dataset is infinite; take(n) elements of it, or read it as a stream")
    schema = arrow_schema(dataset.node.spec, text, as_made=True)
    return with_decimals(pa.Table.from_batches(list(_batches(dataset, schema)), schema), who)


def pandas_frame(dataset: DatasetLike, text: Text) -> Any:
    """All elements as a pandas DataFrame."""
    import pyarrow as pa

    table = arrow_table(dataset, text, "to_pandas")
    with importing("to_pandas: pandas is not installed; `pip install 'distinput[tables]'`"):
        try:
            frame = table.to_pandas()
        except ValueError as error:
            raise InvalidArgumentError(
                f"to_pandas: {error}; pandas has days as datetime.date, of the years 1 to 9999: cast others to datetime64[s] "
                "with map"
            ) from error
    for name in set(nulls_of(table.schema)).intersection(table.schema.names):
        column = table[name]
        if pa.types.is_integer(column.type) or pa.types.is_boolean(column.type):  # as floats, some would be others
            whole = column.fill_null(zero_of(column.type)).to_pandas().convert_dtypes()
            frame[name] = whole.mask(column.is_null().to_pandas())
    return frame


def polars_frame(dataset: DatasetLike, text: Text) -> Any:
    """All elements as a polars DataFrame."""
    with importing("to_polars: polars is not installed; `pip install 'distinput[tables]'`"):
        import polars as pl
    return pl.from_arrow(arrow_table(dataset, text, "to_polars"))
