# SPDX-License-Identifier: Apache-2.0
"""The schema of rows in text files: the names of columns and their types, as users state them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from distinput.core.spec import TensorSpec
from distinput.errors import InvalidArgumentError

__all__ = ["RowSchema"]


@dataclass(frozen=True)
class RowSchema:
    """Names and types of columns, in order.

    Args:
      arrow: the pyarrow Schema.
      inferred: the names of columns whose types were inferred, so that they may change no number, see `written_numbers`.
      whole: whether these are all columns; otherwise the types of others are inferred.

    >>> import numpy as np
    >>> RowSchema.of("csv", {"x": "float32", "label": int, "name": bytes, "day": np.dtype("datetime64[s]")})
    x: float, label: int64, name: binary, day: timestamp[s]
    """

    arrow: Any
    inferred: frozenset[str] = frozenset()
    whole: bool = field(default=True, compare=False)

    def __repr__(self) -> str:
        return ", ".join(f"{field.name}: {field.type}" for field in self.arrow)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self.arrow.names)

    def only(self, columns: tuple[str, ...] | None) -> "RowSchema":
        """The schema of some columns.

        Raises:
          KeyError: there is no such column.
        """
        import pyarrow as pa

        if columns is None:
            return self
        return replace(self, arrow=pa.schema([self.arrow.field(name) for name in columns]))

    def states(self, names: Iterable[str]) -> bool:
        """Whether it has all these columns."""
        return set(self.names).issuperset(names)

    @staticmethod
    def of(who: str, given: Any) -> "RowSchema | None":
        """A schema as users state it: a pyarrow Schema, or a dict of types by name; None stays None.

        A type is a dtype or its name, `int`, `float`, `bool`, `str` or `bytes`, a `TensorSpec`, or a pyarrow DataType; a dict
        of types for an object, a list with a type for arrays of any length, and one with a type and a number for arrays of
        this length. Text is read as its bytes. A dict may leave columns out, whose types are then inferred; a Schema is whole.

        Raises:
          InvalidArgumentError: it is nothing of this kind, or two columns have the same name.
        """
        import pyarrow as pa

        if given is None or isinstance(given, RowSchema):
            return given
        if isinstance(given, pa.Schema):
            fields = [(field.name, field.type) for field in given]
        elif isinstance(given, Mapping):
            fields = [(str(name), _type(who, str(name), kind)) for name, kind in given.items()]
        else:
            raise InvalidArgumentError(
                f"{who}: schema must be a dict of types by column, or a pyarrow Schema, got {given!r}"
            )
        names = [name for name, _ in fields]
        if len(set(names)) != len(names):
            raise InvalidArgumentError(f"{who}: several columns of the schema have the same name: {', '.join(names)}")
        whole = isinstance(given, pa.Schema)
        return RowSchema(pa.schema([(name, _bytes(kind)) for name, kind in fields]), whole=whole)


def _type(who: str, name: str, kind: Any) -> Any:
    """A pyarrow DataType."""
    import pyarrow as pa

    if isinstance(kind, pa.DataType):
        return kind
    if isinstance(kind, Mapping):
        return pa.struct([(str(key), _type(who, f"{name}.{key}", inner)) for key, inner in kind.items()])
    if isinstance(kind, list) and (len(kind) == 1 or (len(kind) == 2 and type(kind[1]) is int and kind[1] >= 0)):
        return pa.list_(_type(who, name, kind[0]), *kind[1:])
    if isinstance(kind, TensorSpec) and kind.shape is not None:
        found = _type(who, name, kind.dtype)
        for size in reversed(kind.shape):
            found = pa.list_(found) if size is None else pa.list_(found, size)
        return found
    try:
        if kind is None:  # which NumPy takes for float64
            raise TypeError
        dtype = np.dtype(getattr(kind, "as_numpy_dtype", kind) if kind is not str else object)
        if dtype.kind in "OSU":
            return pa.binary()
        return pa.from_numpy_dtype(dtype)
    except (TypeError, pa.ArrowException):
        pass
    try:
        return pa.type_for_alias(kind)
    except (TypeError, ValueError, AttributeError):
        raise InvalidArgumentError(
            f"{who}: column {name!r} must have a dtype, its name, or a pyarrow type, got {kind!r}"
        ) from None


def _bytes(kind: Any) -> Any:
    """The type with binary in the place of text, at any depth: elements hold the bytes of text."""
    import pyarrow as pa
    from pyarrow import types

    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return pa.binary()
    if types.is_struct(kind):
        return pa.struct([(field.name, _bytes(field.type)) for field in kind])
    if types.is_fixed_size_list(kind):
        return pa.list_(_bytes(kind.value_type), kind.list_size)
    return pa.list_(_bytes(kind.value_type)) if types.is_list(kind) or types.is_large_list(kind) else kind
