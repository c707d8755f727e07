# SPDX-License-Identifier: Apache-2.0
"""Tables and Arrow arrays of other libraries, read through pyarrow; `leaves.is_table` says what a table is.

pyarrow is imported when the first table is read; none of the other libraries is imported.

Source: "The Arrow PyCapsule Interface" in Arrow's documentation.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from distinput.core.leaves import is_hugging_face, library_of
from distinput.core.ragged_batches import ragged_tensor

__all__ = ["array_of_one", "arrays_of_table", "arrow_array_of", "table_of"]


def arrow_array_of(value: Any) -> Any:
    """A value for which `is_arrow_array` is true as a pyarrow Array or ChunkedArray, without a copy.

    Raises:
      TypeError: Arrow has no type for its values.
    """
    import pyarrow as pa

    if isinstance(value, pa.Array | pa.ChunkedArray):
        return value
    try:
        if library_of(type(value)) == "pandas":
            return pa.array(value, from_pandas=True)
        _check_objects({getattr(value, "name", ""): getattr(value, "dtype", None)})
        return pa.chunked_array(value) if hasattr(value, "__arrow_c_stream__") else pa.array(value)
    except (pa.ArrowException, ValueError) as error:
        raise TypeError(f"an array of {library_of(type(value))} that Arrow cannot hold: {error}") from error


def array_of_one(scalar: Any) -> Any:
    """A scalar of Arrow as an array of its type with this value alone."""
    import pyarrow as pa

    return pa.array([scalar], scalar.type)


def table_of(value: Any) -> Any:
    """A table as a pyarrow Table; columns are not copied where both hold them the same way.

    The index of a pandas DataFrame is left out. Streams are read to their end.

    Raises:
      TypeError: Arrow has no type for the values of a column.
      ValueError: two columns have the same name.
    """
    import pyarrow as pa

    if isinstance(value, pa.Table):
        table = value
    elif isinstance(value, pa.RecordBatch):
        table = pa.Table.from_batches([value])
    elif library_of(type(value)) == "pandas":
        return _of_pandas(value)
    elif is_hugging_face(type(value)):
        table = value.with_format("arrow")[:]
    else:
        _check_objects(getattr(value, "schema", None))
        table = pa.table(value)
    _check_names(table.column_names)
    return table


def arrays_of_table(value: Any) -> dict[str, Any]:
    """The columns of a table as arrays by name; a struct is a dict of them.

    Raises:
      TypeError: a column cannot be an array.
    """
    from distinput.core.arrow import NullsError, UnsupportedTypeError, columns_of, without_rows

    table = table_of(value).combine_chunks()
    try:
        found = {}
        for batch in table.to_batches() or [without_rows(table.schema)]:
            found = columns_of(batch, {})
    except (NullsError, UnsupportedTypeError) as error:
        raise TypeError(f"a table whose columns are not all arrays: {error}") from None
    return {name: _whole(column, name) for name, column in found.items()}


def _whole(column: Any, name: str) -> Any:
    if isinstance(column, Mapping):
        return {key: _whole(inner, f"{name}.{key}") for key, inner in column.items()}
    return column.whole() if hasattr(column, "whole") else ragged_tensor(column)


def _of_pandas(frame: Any) -> Any:
    """A DataFrame column by column: arrays of NumPy are taken as they are, so NaN stays NaN, and nothing is copied."""
    import pyarrow as pa

    names = [str(name) for name in frame.columns]
    _check_names(names)
    arrays = []
    for place, name in enumerate(names):
        column = frame.iloc[:, place]
        plain = isinstance(column.dtype, np.dtype) and column.dtype.kind != "O"
        try:
            arrays.append(pa.array(column.to_numpy()) if plain else pa.array(column, from_pandas=True))
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise TypeError(f"column {name!r} of a DataFrame cannot become an array: {error}") from error
    return pa.table([each if isinstance(each, pa.ChunkedArray) else pa.chunked_array([each]) for each in arrays], names)


def _check_objects(schema: Any) -> None:
    """Reject columns of Python objects in polars, which exports their addresses.

    Raises:
      TypeError: there is one.
    """
    if isinstance(schema, Mapping):
        for name, kind in schema.items():
            if str(kind) == "Object":
                raise TypeError(f"column {name!r} holds Python objects, for which Arrow has no type")


def _check_names(names: list[str]) -> None:
    if len(set(names)) != len(names):
        raise ValueError(f"several columns have the same name; give each its own: {', '.join(names)}")
