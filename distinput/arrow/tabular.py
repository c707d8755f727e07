# SPDX-License-Identifier: Apache-2.0
"""How the columns of Arrow become columns of elements: the options of users, and what becomes of nulls."""

from collections.abc import Mapping
from dataclasses import dataclass
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

__all__ = ["Reading", "zero_of"]


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
                f"null of type {error.kind}; say what to put in their place with {error.cure}, ask for a "
                f"column that says where they are with valid={{{top!r}: {top + '_valid'!r}}}, or drop these rows"
            ) from None
        except UnsupportedTypeError as error:
            raise InvalidArgumentError(f"{self.who}: {error}; {_cure(error)}") from None
        except FillError as error:
            raise InvalidArgumentError(f"{self.who}: nulls: {error}") from None


def _cure(error: UnsupportedTypeError) -> str:
    """What to do about a column of a type that no array can hold; DuckDB's sums of integers are decimals."""
    how = "CAST(x AS BIGINT) or AS DOUBLE in SQL, cast('float64') in pyarrow"
    return f"cast it to another type{f' ({how})' if 'of type decimal' in str(error) else ''}, or leave it out"


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
