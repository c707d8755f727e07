# SPDX-License-Identifier: Apache-2.0
"""How the columns of Arrow become columns of elements: the options of users, and what becomes of nulls."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

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
from distinput.arrow.validity import default_marks, marked, marked_schema, null_paths
from distinput.columns.block import ColumnBlock
from distinput.columns.column import Ints
from distinput.errors import DataLossError, InvalidArgumentError
from distinput.values.spec import Spec

__all__ = ["Reading"]


@dataclass(frozen=True)
class Reading:
    """Options for converting Arrow columns to columns of elements; `core.arrow` states the rule for nulls.

    Args:
      nulls: (column, value) pairs: what to put in the place of nulls.
      valid: (path, name) pairs: a column of truth values with this name says what is not null there.
      who: the caller, for error messages.
      tells_nulls: `valid` is as the nulls of the table are.
    """

    nulls: tuple[tuple[str, Any], ...] = ()
    valid: tuple[tuple[str, str], ...] = ()
    who: str = "from_arrow"
    tells_nulls: bool = field(default=False, repr=False)

    @staticmethod
    def of(nulls: Any, valid: Any, who: str = "from_arrow") -> "Reading":
        """From the arguments of users.

        Raises:
          InvalidArgumentError: one is not a dict.
        """
        tells = nulls == "valid" and not valid
        if nulls is None or nulls in ("error", "valid"):
            nulls = {}
        for name, given in (("nulls", nulls), ("valid", valid or {})):
            if not isinstance(given, Mapping):
                raise InvalidArgumentError(f"{who}: {name} must be a dict by column, got {given!r}")
        return Reading(tuple(nulls.items()), tuple((valid or {}).items()), who, tells)

    def schema(self, schema: Any) -> Any:
        """The schema with the columns that say what is not null.

        Raises:
          InvalidArgumentError: a column does not exist, or its name is in use.
        """
        known = names_of(schema)
        for name, _ in self.nulls:
            if name not in known:
                raise InvalidArgumentError(
                    f"{self.who}: nulls: there is no column {name!r}; the columns are {', '.join(known)}"
                )
        if not self.valid:
            return schema
        try:
            return marked_schema(schema, self.valid)
        except ValueError as error:
            raise InvalidArgumentError(f"{self.who}: valid: {error}") from None

    def of_table(self, batches: Sequence[Any], schema: Any) -> "Reading":
        """How a table is read whose nulls are to be told: as they are in it."""
        if not self.tells_nulls:
            return self
        paths = dict.fromkeys([path for batch in batches for path in null_paths(batch)])
        return Reading(self.nulls, default_marks(paths, schema), self.who)

    def spec(self, schema: Any) -> Spec:
        """The spec of a row.

        Raises:
          InvalidArgumentError: a column has a type that no array can hold; nulls are to be told of what is no table.
        """
        if self.tells_nulls:
            raise InvalidArgumentError(
                f'{self.who}: nulls="valid" looks for nulls in all of a table, and this is read in parts; name the columns '
                "with valid={column: name}"
            )
        try:
            return schema_spec(self.schema(schema))
        except UnsupportedTypeError as error:
            raise InvalidArgumentError(f"{self.who}: {error}; cast it to another type, or leave it out") from None

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
        try:
            check_batch(batch)
            batch = marked(batch, self.valid, fill) if self.valid else batch
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
            raise InvalidArgumentError(f"{self.who}: {error}; cast it to another type, or leave it out") from None
        except FillError as error:
            raise InvalidArgumentError(f"{self.who}: nulls: {error}") from None
