# SPDX-License-Identifier: Apache-2.0
"""How the columns of Arrow become columns of elements: the options of users, and what becomes of nulls."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from typing import Any

import numpy as np

from distinput.arrow.adopt import frozen
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
from distinput.arrow.validity import as_marks, default_marks, marked, marked_schema, marks_in_place, null_paths
from distinput.columns.block import ColumnBlock, block_rows
from distinput.columns.column import Ints
from distinput.columns.rows import Stream
from distinput.errors import DataLossError, InvalidArgumentError
from distinput.names.lazy import dataclass
from distinput.values.spec import Spec


def check_fill(who: str, nulls: Mapping[str, Any]) -> None:
    """Refuse what cannot stand in the place of a null: another null, a list of values, and a dict that names no field.

    Raises:
      InvalidArgumentError: there is one.
    """
    for name, value in nulls.items():
        if value is None:
            raise InvalidArgumentError(
                f"{who}: nulls: None cannot replace the nulls of {name!r}; give a value, or leave {name!r} out, "
                "so that they are told"
            )
        if (isinstance(value, list | tuple) and value) or (isinstance(value, np.ndarray) and value.ndim):
            raise InvalidArgumentError(
                f"{who}: nulls: {value!r} cannot replace the nulls of {name!r}: only an empty list stands in the place of a "
                "null one; give (), or one value for all items"
            )
        if isinstance(value, Mapping):
            if not value:
                raise InvalidArgumentError(
                    f"{who}: nulls: the dict for {name!r} is empty; give a value for each field to be replaced, or leave "
                    f"{name!r} out, so that its nulls are told"
                )
            check_fill(who, {f"{name}.{field}": each for field, each in value.items()})


def filled_names(nulls: Iterable[tuple[str, Any]]) -> Iterator[str]:
    """The columns and fields that have something in the place of nulls, those in dicts by field too.

    >>> list(filled_names([("x", 0), ("s", {"a": 1})]))
    ['x', 's', 's.a']
    """
    for name, value in nulls:
        yield name
        if isinstance(value, Mapping):
            yield from filled_names([(f"{name}.{field}", each) for field, each in value.items()])


@dataclass(frozen=True)
class Reading:
    """Options for converting Arrow columns to columns of elements; `arrow.arrow` states the rule for nulls.

    Args:
      nulls: (column, value) pairs: what to put in the place of nulls.
      valid: (path, name) pairs: a column of truth values with this name says what is not null there; "": in place.
      who: the caller, for error messages.
      tells: `valid` is to be as the nulls of the table are, "in place" or "beside"; "": it is as it is.
    """

    nulls: tuple[tuple[str, Any], ...] = ()
    valid: tuple[tuple[str, str], ...] = ()
    who: str = "from_arrow"
    tells: str = field(default="", repr=False)

    @staticmethod
    def of(nulls: Any, valid: Any, who: str = "from_arrow") -> "Reading":
        """From the arguments of users.

        Raises:
          InvalidArgumentError: one is not a dict.
        """
        marks = as_marks(valid)
        word = nulls if isinstance(nulls, str) and nulls in ("error", "valid") else ""
        tells = "" if valid is not None or word == "error" else "beside" if word == "valid" else "in place"
        nulls = {} if nulls is None or word else nulls
        if not isinstance(nulls, Mapping):
            raise InvalidArgumentError(f"{who}: nulls must be a dict by column, got {nulls!r}")
        check_fill(who, nulls)
        if marks is None:
            raise InvalidArgumentError(f"{who}: valid must be a dict by column, or a list of columns, got {valid!r}")
        return Reading(tuple(nulls.items()), marks, who, tells)

    def schema(self, schema: Any) -> Any:
        """The schema with the columns that say what is not null.

        Raises:
          InvalidArgumentError: a column does not exist, or its name is in use.
        """
        known = names_of(schema)
        for name in filled_names(self.nulls):
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

    def of_table(self, batches: Iterable[Any], schema: Any) -> "Reading":
        """How a table is read whose nulls are to be told: as they are in it."""
        if not self.tells:
            return self
        structs = self.tells == "in place"
        paths = dict.fromkeys([path for batch in batches for path in null_paths(batch, structs=structs)])
        marks = marks_in_place(paths, schema, dict(self.nulls)) if structs else default_marks(paths, schema)
        return Reading(self.nulls, marks, self.who)

    def spec(self, schema: Any) -> Spec:
        """The spec of a row.

        Raises:
          InvalidArgumentError: a column has a type that no array can hold; nulls are to be told of what is no table.
        """
        if self.tells == "beside":
            raise InvalidArgumentError(
                f'{self.who}: nulls="valid" must look for nulls in a whole table, and this is read in parts; name the columns '
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
            row = rows + error.row if isinstance(rows, int) else int(rows[error.row])
            raise InvalidArgumentError(
                f"{self.who}: column {error.column!r} has nulls, the first in row {row}, and NumPy has no "
                f"null of type {error.kind}; {error.cure}, or drop these rows"
            ) from None
        except UnsupportedTypeError as error:
            raise InvalidArgumentError(f"{self.who}: {error}; cast it to another type, or leave it out") from None
        except FillError as error:
            raise InvalidArgumentError(f"{self.who}: nulls: {error}") from None

    def blocks(self, batches: Iterable[Any], spec: Spec, begin: int, row: int, source: str) -> Stream:
        """The rows from `begin` on of batches that begin at `row`, with the next row after each block.

        Args:
          batches: pyarrow RecordBatches.
          spec: of a row.
          begin: the first row that is wanted.
          row: the first row of the batches.
          source: what has them, for the error of a source that ends before.

        Raises:
          DataLossError: there are fewer rows; or as `block`.
        """
        for batch in batches:
            over = min(max(0, begin - row), batch.num_rows)
            row += over
            most = block_rows(batch.nbytes / max(1, batch.num_rows))
            for first in range(over, batch.num_rows, most):
                part = batch.slice(first, most)
                block = frozen(self.block(part, spec, row))
                row += part.num_rows
                yield block, {"row": row}
        if begin > row:
            raise DataLossError(
                f"{source} has {row} rows, but reading must continue at row {begin}; the file has changed"
            )
