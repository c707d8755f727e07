# SPDX-License-Identifier: Apache-2.0
"""Checks of arguments, made when a node is built; messages say which op, what must hold and what was given."""

from collections import UserDict
from contextlib import suppress
from copy import copy
from inspect import isasyncgenfunction, iscoroutinefunction
from types import MappingProxyType
from typing import Any

import numpy as np

from distinput.columns.block import of_all
from distinput.columns.rows import Stream
from distinput.errors import InvalidArgumentError
from distinput.values.leaves import as_leaf
from distinput.values.nest import Structure

AUTOTUNE = -1

_LARGEST = np.iinfo(np.int64).max


def integer(op: str, name: str, value: Any) -> int:
    """`value` as an int.

    Raises:
      TypeError: it is not an integer.
    """
    value = taken(value)
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"{op}: {name} must be an integer, got {value!r}")
    return int(value)


def in_int64(op: str, name: str, value: Any) -> int:
    """`value` as an int that fits into int64, as TensorFlow's are.

    Raises:
      TypeError: it is not an integer.
      InvalidArgumentError: it does not fit.
    """
    number = integer(op, name, value)
    if not ~_LARGEST <= number <= _LARGEST:
        bound = f"at most {_LARGEST}" if number > 0 else f"at least {~_LARGEST}"
        raise InvalidArgumentError(f"{op}: {name} must be {bound}, got {number}")
    return number


def taken(value: Any) -> Any:
    """An argument as it is now: a variable or an array without axes may be another number later, and a list or dict changed.

    What cannot be copied stays as it is, such as a list in itself, or a dict whose class refuses it.

    >>> taken(np.array(3)), taken("text")
    (np.int64(3), 'text')
    """
    if not isinstance(value, list | tuple | dict | UserDict | MappingProxyType):
        return _number(value)
    try:
        return _copied(value)
    except Exception:  # noqa: BLE001 - classes may raise anything, and nests may be too deep
        return value


def _copied(value: Any) -> Any:
    if type(value) in (list, tuple):
        return type(value)([_copied(part) for part in value])
    if isinstance(value, MappingProxyType):  # a view of a dict that others may change
        return MappingProxyType(_copied(value.copy()))
    if not isinstance(value, dict | UserDict):
        return _number(value)
    now, parts = copy(value), {key: _copied(part) for key, part in value.items()}
    dict.update(now.data if isinstance(now, UserDict) else now, parts)  # that of a class may count, such as a Counter's
    return now


def _number(value: Any) -> Any:
    if isinstance(value, np.generic) or getattr(value, "shape", None) != () or not hasattr(value, "__array__"):
        return value
    return as_leaf(value)


def whole_key(op: str, result: Any) -> int:
    """What a `key_func` returned, as an int.

    Raises:
      TypeError: it is not an integer.
      InvalidArgumentError: it does not fit into int64.
    """
    key = np.asarray(result)
    if key.dtype.kind not in "iu" or key.ndim:
        raise TypeError(f"{op}: key_func must return an integer, got {key!r}")
    if int(key) > _LARGEST:
        raise InvalidArgumentError(f"{op}: a key must fit into int64, got {int(key)}")
    return int(key)


def at_least(op: str, name: str, value: Any, least: int) -> int:
    """`value` as an int of at least `least`.

    Raises:
      TypeError: it is not an integer.
      InvalidArgumentError: it is smaller, or larger than any int64.
    """
    number = in_int64(op, name, value)
    if number < least:
        bound = "greater than zero" if least == 1 else f"at least {least}"  # TensorFlow's words for the usual one
        raise InvalidArgumentError(f"{op}: {name} must be {bound}, got {number}")
    return number


def byte_string(op: str, item: Any) -> bytes:
    """Bytes, or text as UTF-8.

    Raises:
      InvalidArgumentError: it is neither.
    """
    if isinstance(item, str):
        return item.encode()
    if not isinstance(item, bytes | bytearray | memoryview):
        raise InvalidArgumentError(f"{op}: expected byte strings, got {item!r:.60}")
    return bytes(item)


def normalized(node: Any, name: str, value: Any) -> None:
    """Set an argument of a frozen dataclass in the form in which it is kept; for `__init__` and `__post_init__` alone."""
    object.__setattr__(node, name, value)


def callable_argument(op: str, name: str, value: Any) -> None:
    """Refuse what is not callable, and `async` functions, which return nothing but a promise.

    Raises:
      TypeError: it is not callable, or it is `async`.
    """
    if not callable(value):
        begun = "; give the function itself, without calling it" if hasattr(value, "__next__") else ""
        raise TypeError(f"{op}: {name} must be a function, got {value!r}{begun}")
    if any(iscoroutinefunction(called) or isasyncgenfunction(called) for called in (value, type(value).__call__)):
        raise TypeError(
            f"{op}: {name} must not be an async function, got {value!r}; give a plain one that runs it with asyncio.run"
        )


def cells_of(function: Any) -> dict[str, Any]:
    """The variables around a function of Python that it reads, by their names; those that are not set yet are left out.

    >>> def scaled(factor):
    ...     return lambda x: x * factor
    >>> cells_of(scaled(2))
    {'factor': 2}
    """
    found = {}
    for name, cell in zip(function.__code__.co_freevars, getattr(function, "__closure__", None) or (), strict=False):
        with suppress(ValueError):  # it is not set yet
            found[name] = cell.cell_contents
    return found


def parallel_calls(op: str, value: Any) -> None:
    """Refuse a `num_parallel_calls` that is neither None, AUTOTUNE nor a positive number.

    Raises:
      InvalidArgumentError: it is zero, or negative and not AUTOTUNE.
    """
    if value is not None and integer(op, "num_parallel_calls", value) != AUTOTUNE and int(value) < 1:
        raise InvalidArgumentError(f"{op}: num_parallel_calls must be at least 1, or AUTOTUNE, got {value}")


def refuse_sparse(op: str, structure: Structure) -> None:
    """Refuse a nest with a `SparseTensor`, for ops that do not pad, count or vectorize over its rows.

    Raises:
      InvalidArgumentError: there is one.
    """
    if structure.sparse:
        raise InvalidArgumentError(
            f"{op}: elements must be arrays, got elements with a SparseTensor; make arrays with .to_dense() first, or use batch"
        )


def without_sparse(op: str, stream: Stream) -> Stream:
    """The stream; a function that was not tried before may make sparse tensors, which are refused as where they are known.

    Raises:
      InvalidArgumentError: there is one.
    """
    for block, state in stream:
        if block.size:
            try:
                refuse_sparse(op, block.structure)
            except InvalidArgumentError as error:
                raise of_all(error) from None
        yield block, state
