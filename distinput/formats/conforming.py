# SPDX-License-Identifier: Apache-2.0
"""Files whose columns differ, brought to one schema: one that is stated, or the union of those of all files.

A column that a file lacks, or of which it knows nulls alone, is a column of nulls there; so is a field of a struct. Numbers
become wider ones where no value changes. Nulls follow the rule in `core.arrow`.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from distinput.arrow.tabular import zero_of
from distinput.errors import InvalidArgumentError
from distinput.files.paths import ask_each
from distinput.formats.row_schema import RowSchema

__all__ = ["Conforming"]

UNION = "union"


@dataclass(frozen=True)
class Conforming:
    """What the rows of files are brought to.

    Args:
      schema: of the rows; "union": that of all files, once they are known; None: each file has its own.
      valid: (column, name) pairs: a column of truth values with this name says which rows of the column are not null.

    Raises:
      InvalidArgumentError: an option has an invalid value.
    """

    schema: RowSchema | str | None = None
    valid: tuple[tuple[str, str], ...] = ()

    @staticmethod
    def of(who: str, schema: Any, valid: Any) -> "Conforming":
        """From the arguments of users."""
        if not (valid is None or isinstance(valid, dict)):
            raise InvalidArgumentError(f"{who}: valid must be a dict of names by column, got {valid!r}")
        stated = schema if schema == UNION else RowSchema.of(who, schema)
        return Conforming(stated, tuple((valid or {}).items()))

    def held(self, paths: Iterable[str], schema_of: Callable[[str], Any]) -> "Conforming":
        """The same with the union of the schemas of files stated.

        Raises:
          InvalidArgumentError: the types of a column have nothing in common; the error names the file.
        """
        if self.schema != UNION:
            return self
        import pyarrow as pa

        names, found = list(paths), pa.schema([])
        for path, schema in zip(names, ask_each(schema_of, names), strict=True):
            try:
                plain = pa.schema([(field.name, _stored(field.type)) for field in schema])
                found = pa.unify_schemas([found, plain], promote_options="permissive")
            except (pa.ArrowException, TypeError) as error:
                raise InvalidArgumentError(
                    f"{path}: its columns cannot be brought together with those of the files before it: {error}; state the "
                    "types with schema=, or name the columns to read"
                ) from error
        return Conforming(RowSchema(found), self.valid)

    def columns_in(self, schema: Any, columns: Sequence[str] | None) -> tuple[str, ...] | None:
        """The columns to read of a file of this schema; None: all."""
        if columns is None and not isinstance(self.schema, RowSchema):
            return None
        made = {name for _, name in self.valid}
        wanted = [name for name in (columns if columns is not None else self.schema.names) if name not in made]  # type: ignore[union-attr]
        wanted += [name for name, mark in self.valid if columns is not None and mark in columns and name not in wanted]
        if isinstance(self.schema, RowSchema):  # what a file lacks is null
            return tuple([name for name in wanted if name in schema.names])
        return tuple(wanted)

    def rows_of(self, path: str, schema: Any, columns: Sequence[str] | None) -> Any:
        """The schema of rows, those columns included that say what is null.

        Args:
          path: a file.
          schema: of the file.
          columns: the columns that are wanted; None: all.

        Raises:
          InvalidArgumentError: a column is not there, or the file cannot be brought to the schema.
        """
        import pyarrow as pa

        arrow_schema = self.schema.arrow if isinstance(self.schema, RowSchema) else schema
        for field in arrow_schema if arrow_schema is not schema else ():
            if field.name in schema.names:
                _check(path, field.name, schema.field(field.name).type, field.type)
        for name, mark in self.valid:
            if name not in arrow_schema.names or mark in arrow_schema.names:
                what = f"there is no column {name!r}" if name not in arrow_schema.names else f"{mark!r} is a column"
                raise InvalidArgumentError(f"{path}: valid: {what}; the columns are {', '.join(arrow_schema.names)}")
            arrow_schema = arrow_schema.append(pa.field(mark, pa.bool_()))
        for name in columns or ():
            if name not in arrow_schema.names:
                raise InvalidArgumentError(
                    f"{path}: has no column {name!r}; its columns are {', '.join(arrow_schema.names)}"
                )
        return arrow_schema if columns is None else pa.schema([arrow_schema.field(name) for name in columns])

    def brought(self, path: str, batch: Any, rows: Any) -> Any:
        """A record batch of a file with the columns of `rows`, as `rows_of` returned them."""
        import pyarrow as pa

        marks = {mark: name for name, mark in self.valid}
        arrays = []
        for field in rows:
            name = marks.get(field.name, field.name)
            array = batch.column(name) if name in batch.schema.names else None
            if field.name in marks:
                arrays.append(pa.repeat(False, batch.num_rows) if array is None else array.is_valid())
            else:
                arrays.append(_brought(path, name, array, field.type, batch.num_rows))
        return pa.RecordBatch.from_arrays(arrays, schema=rows)

    def nulls(self, nulls: Any, rows: Any) -> Any:
        """What to put in the place of nulls: something for those that a column tells."""
        given = {} if nulls == "error" else dict(nulls)
        kinds = {name: rows.field(name).type for name, _ in self.valid if name in rows.names}
        filled = {name: zero for name, kind in kinds.items() if (zero := zero_of(kind)) is not None}
        return tuple({**filled, **given}.items()) or nulls


def _stored(kind: Any) -> Any:
    """The type of the values of a dictionary."""
    from pyarrow import types

    return kind.value_type if types.is_dictionary(kind) else kind


def _check(path: str, name: str, kind: Any, wanted: Any) -> None:
    """Refuse a column that cannot become one of the wanted type without another meaning.

    Raises:
      InvalidArgumentError: it cannot.
    """
    from pyarrow import types

    kind = _stored(kind)
    if kind == wanted or types.is_null(kind):
        return
    if types.is_struct(kind) and types.is_struct(wanted):
        for field in wanted:
            place = kind.get_field_index(field.name)
            if place >= 0:
                _check(path, f"{name}.{field.name}", kind.field(place).type, field.type)
        return
    if hasattr(kind, "value_type") and hasattr(wanted, "value_type"):
        _check(path, name, kind.value_type, wanted.value_type)
        return
    if _family(kind) != _family(wanted) or not _family(kind):
        raise InvalidArgumentError(
            f"{path}: column {name!r} is of type {kind}, and the schema says {wanted}; state one that fits all files, or cast "
            "the column where it is written"
        )


def _family(kind: Any) -> str:
    """What types have in common whose values can become those of another."""
    from pyarrow import types

    families = {
        "number": (types.is_integer, types.is_floating, types.is_decimal),
        "truth": (types.is_boolean,),
        "text": (
            types.is_string,
            types.is_large_string,
            types.is_string_view,
            types.is_binary,
            types.is_large_binary,
            types.is_binary_view,
            types.is_fixed_size_binary,
        ),
        "day": (types.is_date, types.is_timestamp),
        "time": (types.is_time,),
        "duration": (types.is_duration,),
    }
    return next((name for name, tests in families.items() if any(test(kind) for test in tests)), "")


def _brought(path: str, name: str, array: Any, wanted: Any, rows: int) -> Any:
    """A column, or a field of a struct, of the wanted type."""
    import pyarrow as pa
    from pyarrow import types

    if array is None or types.is_null(array.type):
        return pa.nulls(rows, wanted)
    if array.type == wanted:
        return array
    if types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if types.is_struct(array.type):
        parts = {field.name: part for field, part in zip(array.type, array.flatten(), strict=True)}
        fields = [_brought(path, f"{name}.{each.name}", parts.get(each.name), each.type, rows) for each in wanted]
        if not fields:
            return pa.array([{}] * rows, wanted)
        return pa.StructArray.from_arrays(fields, fields=list(wanted), mask=array.is_null())
    try:
        return array.cast(wanted)
    except pa.ArrowInvalid as error:
        raise InvalidArgumentError(
            f"{path}: column {name!r} is of type {array.type}, and a value of it does not fit the schema, which says {wanted}: "
            f"{error}"
        ) from error
