# SPDX-License-Identifier: Apache-2.0
"""Values of a database as Arrow columns: their types are inferred once, and then held; nothing is cut off or made up."""

from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np

from distinput.errors import InvalidArgumentError
from distinput.formats.row_schema import RowSchema

__all__ = ["inferred_schema", "record_batch_of", "strict_array"]

_FAULTS = (TypeError, ValueError, OverflowError, NotImplementedError)
"""What pyarrow raises for values that do not fit; its own errors are some of these."""


def inferred_schema(who: str, names: Sequence[str], rows: Sequence[Sequence[Any]]) -> RowSchema:
    """The types of the columns of some rows.

    Args:
      who: the caller, for error messages.
      names: of the columns.
      rows: the first ones.

    Raises:
      InvalidArgumentError: there is no row; a column holds nothing but NULL, or values of several types.

    >>> inferred_schema("from_sql", ["id", "name"], [(1, "a"), (2, None)])
    id: int64, name: binary
    """
    import pyarrow as pa

    if not rows:
        raise InvalidArgumentError(
            f"{who}: the query gives no rows, so the types of {', '.join(names)} are not known; state them with schema="
        )
    fields = []
    for name, values in zip(names, zip(*rows, strict=True), strict=True):
        cure = f"state its type with schema=, or cast it in the query; the first {len(rows)} rows were read"
        if all(value is None for value in values):
            raise InvalidArgumentError(f"{who}: column {name!r} has only NULL, which has no type; {cure}")
        try:
            fields.append((name, pa.array(list(values)).type))
        except _FAULTS as error:
            kinds = ", ".join(sorted({type(value).__name__ for value in values if value is not None}))
            raise InvalidArgumentError(f"{who}: column {name!r} has values of type {kinds}: {error}; {cure}") from None
    made = RowSchema.of(who, pa.schema(fields))
    assert made is not None
    return made


def record_batch_of(who: str, schema: RowSchema, rows: Sequence[Sequence[Any]], first: int) -> Any:
    """Rows as a pyarrow RecordBatch.

    Args:
      who: the caller, for error messages.
      schema: the types of the columns, in the order of the values of a row.
      rows: the rows; one that does not fit is the last one.
      first: the number of the first row.

    Raises:
      InvalidArgumentError: a value does not fit its column.
    """
    import pyarrow as pa

    columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema.names)
    arrays = []
    for field, values in zip(schema.arrow, columns, strict=True):
        try:
            arrays.append(strict_array(values, field.type))
        except _FAULTS:
            found = values[-1]
            raise InvalidArgumentError(
                f"{who}: row {first + len(rows) - 1}, column {field.name!r}: expected {field.type}, found {found!r} "
                f"({type(found).__name__}); state another type with schema=, or cast the column in the query"
            ) from None
    return pa.RecordBatch.from_arrays(arrays, schema=schema.arrow)


def strict_array(values: Sequence[Any], kind: Any) -> Any:
    """Values as a pyarrow Array of this type; None stays null.

    pyarrow cuts fractions off where it makes integers of floats, and so on; here the values are those that were given.

    Raises:
      TypeError, ValueError, OverflowError: one does not fit.

    >>> strict_array([1, None], __import__("pyarrow").int64()).to_pylist()
    [1, None]
    >>> strict_array([1.5], __import__("pyarrow").int64())
    Traceback (most recent call last):
    ...
    TypeError: float is no int64
    """
    import pyarrow as pa
    from pyarrow import types

    items = list(values)
    if types.is_integer(kind):
        _only(items, kind, int, np.integer)
        return pa.array(items, kind)
    if types.is_boolean(kind):
        _only(items, kind, bool, np.bool_, int)
        if not {value for value in items if value is not None} <= {0, 1}:
            raise ValueError("only 0 and 1 are truth values")
        return pa.array([None if value is None else bool(value) for value in items], kind)
    if types.is_floating(kind):
        return _floats(items, kind)
    if types.is_binary(kind) or types.is_large_binary(kind):
        _only(items, kind, str, bytes, bytearray, memoryview)
        return pa.array(items, kind)
    if types.is_timestamp(kind):
        _only(items, kind, datetime, date, np.datetime64)
        return pa.array(items, pa.timestamp("us", kind.tz)).cast(kind)
    if types.is_date(kind):
        _only(items, kind, date)
        return pa.array(items, kind)
    if types.is_time(kind):
        _only(items, kind, time)
        return pa.array(items, pa.time64("us")).cast(kind)
    if types.is_duration(kind):
        _only(items, kind, timedelta, np.timedelta64)
        return pa.array(items, pa.duration("us")).cast(kind)
    made = pa.array(items, kind)
    if made.to_pylist() != items:
        raise ValueError("values would be changed")
    return made


def _floats(given: list[Any], kind: Any) -> Any:
    import pyarrow as pa

    _only(given, kind, float, int, np.floating, np.integer, Decimal)
    wide = pa.array([float(value) if type(value) is Decimal else value for value in given], pa.float64())
    made = wide.cast(kind, safe=False)
    if kind != wide.type and np.any(
        np.isinf(made.to_numpy(zero_copy_only=False)) & np.isfinite(wide.to_numpy(zero_copy_only=False))
    ):
        raise OverflowError("too large")
    return made


def _only(values: list[Any], kind: Any, *wanted: type) -> None:
    """Refuse values of other types. A truth value is no integer, and a time of a day no day."""
    for found in set(map(type, values)) - {type(None)}:
        fits = issubclass(found, wanted)
        if (found is bool and bool not in wanted) or (issubclass(found, datetime) and datetime not in wanted):
            fits = False
        if not fits:
            raise TypeError(f"{found.__name__} is no {kind}")
