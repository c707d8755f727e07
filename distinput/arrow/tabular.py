# SPDX-License-Identifier: Apache-2.0
"""Tables and Arrow arrays of other libraries, read through pyarrow, and how their columns become ours."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from distinput.arrow.arrow import (
    ArrowDamageError,
    FillError,
    NullsError,
    UnsupportedTypeError,
    block_of,
    check_batch,
    names_of,
    schema_spec,
)
from distinput.columns.block import ColumnBlock
from distinput.columns.column import Ints
from distinput.errors import DataLossError, InvalidArgumentError
from distinput.values.spec import Spec

__all__ = [
    "Reading",
    "array_of_one",
    "arrow_array_of",
    "is_arrow_array",
    "is_hugging_face",
    "is_stream",
    "is_table",
    "library_of",
    "table_of",
    "zero_of",
]


# ----------------------------------------------------------------------------
# Tables and Arrow arrays of other libraries: which values are such, and how they are read through pyarrow.
#
# pyarrow is imported when the first table is read; none of the other libraries is imported.
#
# Source: "The Arrow PyCapsule Interface" in Arrow's documentation.
# ----------------------------------------------------------------------------


_NAMES = ("column_names", "columns", "schema")
"""A class with one of these attributes has columns; those of single arrays have none of them."""
_OWN = ("__array_interface__", "__array_struct__")
"""A class with one of these has an array as NumPy has it, and shows it to Arrow in another form, as images of Pillow do."""
_EXPORTS = ("__arrow_c_stream__", "__arrow_c_array__")
"""Source: "The Arrow PyCapsule Interface" in Arrow's documentation."""


def is_table(value: Any) -> bool:
    """Whether a value has columns with names, recognized by what its class can do.

    That is what pandas, polars, pyarrow, DuckDB and Hugging Face call a DataFrame, a Table, a relation or a Dataset, and
    anything else with columns that exports Arrow's PyCapsules.

    >>> import pyarrow as pa
    >>> is_table(pa.table({"x": [1]})), is_table(pa.array([1])), is_table({"x": [1]})
    (True, False, False)
    """
    kind: Any = type(value)
    return _is_table_class(kind)


def is_stream(value: Any) -> bool:
    """Whether a value exports an Arrow stream whose rows are not in memory: a reader, a query, a dataset of this library."""
    kind = type(value)
    if not hasattr(kind, "__arrow_c_stream__") or library_of(kind) in ("pandas", "polars"):
        return False
    return not hasattr(kind, "num_rows") and not hasattr(kind, "num_chunks")


def is_arrow_array(value: Any) -> bool:
    """Whether a value is a single Arrow array, in one chunk or several, or exports one.

    A pandas Series whose values NumPy holds is not: NumPy reads it directly. An array of pandas that knows missing values is:
    NumPy would make others of them.
    """
    kind: Any = type(value)
    if not _is_array_class(kind):
        return False
    return not (library_of(kind) == "pandas" and isinstance(value.dtype, np.dtype) and value.dtype.kind != "O")


@lru_cache(maxsize=1024)
def _is_table_class(kind: Any) -> bool:
    if getattr(kind, "nest_leaf", False):
        return False
    if not any(hasattr(kind, name) for name in _EXPORTS):
        return is_hugging_face(kind)
    return any(hasattr(kind, name) for name in _NAMES)


@lru_cache(maxsize=1024)
def _is_array_class(kind: Any) -> bool:
    if library_of(kind) == "distinput" or any(hasattr(kind, name) for name in _OWN):
        return False
    if library_of(kind) == "pandas" and hasattr(kind, "__arrow_array__"):
        return True
    return any(hasattr(kind, name) for name in _EXPORTS) and not _is_table_class(kind)


def library_of(kind: type) -> str:
    """The name of the library that a class is of."""
    return kind.__module__.partition(".")[0]


def is_hugging_face(kind: type) -> bool:
    """Whether a class is `datasets.Dataset`, which shows its columns but exports no capsule."""
    return hasattr(kind, "with_format") and hasattr(kind, "column_names") and hasattr(kind, "num_rows")


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


# ----------------------------------------------------------------------------
# How Arrow columns become columns of elements: the options of users, and what becomes of nulls.
# ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Reading:
    """Options for converting Arrow columns to columns of elements; `core.arrow` states the rule for nulls.

    Args:
      nulls: (column, value) pairs: what to put in the place of nulls.
      valid: (column, name) pairs: a column of truth values with this name says which rows of the column are not null.
      who: the caller, for error messages.
    """

    nulls: tuple[tuple[str, Any], ...] = ()
    valid: tuple[tuple[str, str], ...] = ()
    who: str = "from_arrow"

    @staticmethod
    def of(nulls: Any, valid: Any, who: str = "from_arrow") -> "Reading":
        """From the arguments of users.

        Raises:
          InvalidArgumentError: one is not a dict.
        """
        if nulls is None or nulls == "error":
            nulls = {}
        for name, given in (("nulls", nulls), ("valid", valid or {})):
            if not isinstance(given, Mapping):
                raise InvalidArgumentError(f"{who}: {name} must be a dict by column, got {given!r}")
        return Reading(tuple(nulls.items()), tuple((valid or {}).items()), who)

    def schema(self, schema: Any) -> Any:
        """The schema with the columns that say which rows are not null.

        Raises:
          InvalidArgumentError: a column does not exist, or its name is in use.
        """
        import pyarrow as pa

        for option, given, known in (("nulls", self.nulls, names_of(schema)), ("valid", self.valid, schema.names)):
            for name, _ in given:
                if name not in known:
                    raise InvalidArgumentError(
                        f"{self.who}: {option}: there is no column {name!r}; the columns are {', '.join(known)}"
                    )
        for name, made in self.valid:
            if made in schema.names:
                raise InvalidArgumentError(f"{self.who}: valid: {name!r} cannot be told by {made!r}, which exists")
            schema = schema.append(pa.field(made, pa.bool_()))
        return schema

    def spec(self, schema: Any) -> Spec:
        """The spec of a row.

        Raises:
          InvalidArgumentError: a column has a type that no array can hold.
        """
        try:
            return schema_spec(self.schema(schema))
        except UnsupportedTypeError as error:
            raise InvalidArgumentError(f"{self.who}: {error}; {_cure(error)}") from None

    def block(self, batch: Any, spec: Spec, rows: int | Ints) -> ColumnBlock:
        """The rows of a record batch.

        Args:
          batch: a pyarrow RecordBatch.
          spec: of a row, as `spec` returned it.
          rows: the number of each row, or of the first one, for error messages.

        Raises:
          DataLossError: the batch is damaged.
          InvalidArgumentError: there are nulls that have no replacement.
        """
        fill = dict(self.nulls)
        for name, made in self.valid:
            column = batch.column(name)
            fill.setdefault(name, zero_of(column.type))
            batch = batch.append_column(made, column.is_valid())
        try:
            check_batch(batch)
            return block_of(batch, spec.structure, fill)
        except ArrowDamageError as error:
            raise DataLossError(f"{self.who}: damaged: {error}") from error
        except NullsError as error:
            top = error.column if error.column in batch.schema.names else error.column.partition(".")[0]
            row = rows + error.row if isinstance(rows, int) else int(rows[error.row])
            raise InvalidArgumentError(
                f"{self.who}: column {error.column!r} has nulls, the first in row {row}, and NumPy has no "
                f"null of type {error.kind}; say what to put in their place with nulls={{{error.column!r}: value}}, ask for a "
                f"column that says where they are with valid={{{top!r}: {top + '_valid'!r}}}, or drop these rows"
            ) from None
        except UnsupportedTypeError as error:
            raise InvalidArgumentError(f"{self.who}: {error}; {_cure(error)}") from None
        except FillError as error:
            raise InvalidArgumentError(f"{self.who}: nulls: {error}") from None


def _cure(error: UnsupportedTypeError) -> str:
    """What to do about a column of a type that no array can hold; DuckDB's sums of integers are decimals."""
    if "of type decimal" not in str(error):
        return "cast it to another type, or leave it out"
    return (
        "cast it to another type (CAST(x AS BIGINT) or AS DOUBLE in SQL, cast('float64') in pyarrow), or leave it out"
    )


def zero_of(kind: Any) -> Any:
    """The value in the place of nulls that a `valid` column marks; None where NumPy has a value for them."""
    from pyarrow import types

    if types.is_dictionary(kind):
        return zero_of(kind.value_type)
    if types.is_nested(kind) and hasattr(kind, "value_type"):
        return np.nan if types.is_floating(kind.value_type) else zero_of(kind.value_type)  # null lists need some value
    if types.is_fixed_size_binary(kind):
        return bytes(kind.byte_width)
    if types.is_boolean(kind):
        return False
    if types.is_integer(kind):
        return 0
    return None if types.is_floating(kind) or types.is_temporal(kind) or types.is_struct(kind) else b""
