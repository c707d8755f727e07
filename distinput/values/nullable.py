# SPDX-License-Identifier: Apache-2.0
"""Values that may be missing."""

import sys
from collections.abc import Iterable
from contextlib import suppress
from numbers import Number
from typing import Any

import numpy as np

from distinput.names.lazy import when_imported
from distinput.values.nest import Structure


class Nullable(dict[str, Any]):
    """A value that may be missing: a dict with "value", and with "valid", which is False where the value is missing.

    Readers of tables hand it out where their files hold nulls that NumPy has no value for: `{"value": 5, "valid": True}`, and
    for a null `{"value": 0, "valid": False}`, with an empty string, an empty list or zeros in its place. For items of lists
    both are lists. Code that takes it for the number itself fails at once, and where it compares it, too. Writers of Parquet,
    Arrow, JSON Lines and CSV files, `to_arrow` and `to_pandas` make nulls of it again, also of one that a function has made.

    >>> import distinput as di
    >>> import pyarrow as pa
    >>> ds = di.data.Dataset.from_arrow(pa.table({"x": [5, None]}))
    >>> ds.to_list()
    [{'x': {'value': 5, 'valid': True}}, {'x': {'value': 0, 'valid': False}}]
    >>> ds.to_arrow()["x"].to_pylist()
    [5, None]
    >>> ds.map(lambda row: row["x"]["value"]).to_list()
    [5, 0]
    """

    def __eq__(self, other: object) -> bool:
        self._check_no_value(other)
        return dict.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        self._check_no_value(other)
        return dict.__ne__(self, other)

    __hash__ = None  # as of any dict

    def __bool__(self) -> bool:
        # Python's own modules, such as json and logging, ask each dict whether it is empty.
        if str(sys._getframe(1).f_globals.get("__name__")).partition(".")[0] in sys.stdlib_module_names:
            return True
        raise _taken_for("true or false")

    @staticmethod
    def _check_no_value(other: object) -> None:
        """Refuse a comparison with what is no dict: no value would ever be equal to it."""
        if other is None or isinstance(other, Number | str | bytes | np.generic | np.ndarray):
            raise _taken_for(f"to be compared with {other!r:.40}")


def _taken_for(what: str) -> TypeError:
    return TypeError(
        f"a Nullable, a value that may be missing, is not {what}: "
        'its value is ["value"], and ["valid"] says whether it is there'
    )


def is_nullable(structure: Structure) -> bool:
    """Whether a nest is a `Nullable`, whose children are the mark and the value."""
    return getattr(structure.mapping, "cls", None) is Nullable and structure.keys == ("valid", "value")


# ----------------------------------------------------------------------------
# JAX and PyTorch look into dicts, and into no other mapping that they are not told of.
# ----------------------------------------------------------------------------


def _flat(nullable: Nullable) -> tuple[list[Any], tuple[str, ...]]:
    return list(nullable.values()), tuple(nullable)


def _made(keys: Iterable[str], parts: Iterable[Any]) -> Nullable:
    return Nullable(zip(keys, parts, strict=True))


def _tell_jax() -> None:
    tree = sys.modules["jax"].tree_util

    def with_keys(nullable: Nullable) -> tuple[list[tuple[Any, Any]], tuple[str, ...]]:
        return [(tree.DictKey(key), part) for key, part in nullable.items()], tuple(nullable)

    tree.register_pytree_with_keys(Nullable, with_keys, _made, _flat)


def _tell_torch() -> None:
    with suppress(AttributeError, TypeError):  # a release that registers in another way must still be imported
        sys.modules["torch"].utils._pytree.register_pytree_node(
            Nullable, _flat, lambda parts, keys: _made(keys, parts), serialized_type_name="distinput.data.Nullable"
        )


when_imported("jax", _tell_jax)
when_imported("torch", _tell_torch)
