# SPDX-License-Identifier: Apache-2.0
"""Leaf values: what users hand in becomes a NumPy array, a NumPy scalar or bytes.

Numbers of Python become int32 or float32 and text becomes UTF-8 bytes, as `tf.convert_to_tensor` does; arrays and NumPy
scalars keep their dtype.
"""

from typing import Any

import numpy as np

from distinput.errors import InvalidArgumentError

__all__ = ["STRING", "as_dtype", "as_leaf", "dtype_name", "dtype_of", "shape_of", "zero"]

STRING = np.dtype(object)
_INT32, _INT64 = np.iinfo(np.int32), np.iinfo(np.int64)


def as_dtype(dtype: Any) -> np.dtype[Any]:
    """A NumPy dtype; every kind of text is `object`, the dtype of byte strings here.

    Raises:
      TypeError: it is no dtype.
    """
    if isinstance(dtype, str) and dtype == "string":
        return STRING
    made = np.dtype(getattr(dtype, "as_numpy_dtype", dtype))  # tf.DType objects have as_numpy_dtype
    return STRING if made.kind in "SUO" else made


def as_leaf(value: Any) -> Any:
    """`value` as a leaf: an array, a NumPy scalar, bytes, or the object itself when it is a nested dataset.

    Raises:
      TypeError: the value cannot be an array.
      InvalidArgumentError: an integer of Python does not fit into int64.
    """
    kind = type(value)
    if kind is bytes or isinstance(value, np.generic | np.ndarray):
        if isinstance(value, bytes):
            return bytes(value) if kind is not bytes else value
        dtype: np.dtype[Any] = value.dtype
        if dtype.kind in "SUO":
            return _strings(value)
        if isinstance(value, np.ndarray) and value.ndim == 0:
            return value[()]
        return value
    if kind is bool:
        return np.bool_(value)
    if kind is int:
        if not _INT64.min <= value <= _INT64.max:
            raise InvalidArgumentError(
                f"the integer {value} does not fit into int64; give a NumPy value of another dtype"
            )
        return np.int32(value) if _INT32.min <= value <= _INT32.max else np.int64(value)
    if kind is float:
        return np.float32(value)
    if kind is str:
        return value.encode()
    if kind is complex:
        return np.complex128(value)
    if getattr(value, "nest_leaf", False):
        return getattr(value, "node", value)
    if isinstance(value, list | tuple | range):
        return _from_list(value)
    if isinstance(value, memoryview | bytearray):
        return bytes(value)
    if hasattr(value, "__array__") or hasattr(value, "__dlpack__"):
        return as_leaf(np.asarray(value))
    raise TypeError(
        f"cannot make an array of a {kind.__name__}; elements are nests (tuple, dict, namedtuple, dataclass) of arrays, "
        "numbers, str or bytes"
    )


def dtype_of(leaf: Any) -> np.dtype[Any]:
    """The dtype of a leaf value; `object` for bytes."""
    return STRING if isinstance(leaf, bytes) else leaf.dtype


def dtype_name(dtype: np.dtype[Any]) -> str:
    """The name of a dtype as users give it: that of byte strings is "string"."""
    return "string" if dtype == STRING else str(dtype)


def shape_of(leaf: Any) -> tuple[int, ...]:
    """The shape of a leaf value; () for bytes."""
    return () if isinstance(leaf, bytes) else leaf.shape


def zero(dtype: np.dtype[Any], shape: tuple[int, ...]) -> Any:
    """Zeros, or empty byte strings, of a dtype and shape."""
    if dtype == STRING:
        return np.full(shape, b"", dtype=object) if shape else b""
    return np.zeros(shape, dtype) if shape else dtype.type()


def _strings(value: Any) -> Any:
    """Arrays of text of any kind -> object array of bytes, or bytes for a scalar."""
    if isinstance(value, np.generic) or value.ndim == 0:
        item = value.item()
        return _text(item)
    flat = value.reshape(-1)
    out = np.empty(flat.shape, dtype=object)
    out[:] = [_text(item) for item in flat.tolist()]
    return out.reshape(value.shape)


def _text(item: Any) -> Any:
    if isinstance(item, bytes):
        return item
    if isinstance(item, str):
        return item.encode()
    if getattr(item, "nest_leaf", False):
        return item
    raise TypeError(f"an array of objects may hold only str or bytes, got a {type(item).__name__}")


def _from_list(value: Any) -> Any:
    """Lists of Python numbers or text -> an array with TensorFlow's default dtypes."""
    items = list(value)
    flat = items
    while flat and isinstance(flat[0], list | tuple):
        flat = [x for row in flat for x in row] if all(isinstance(row, list | tuple) for row in flat) else flat[:1]
    if flat and isinstance(flat[0], str | bytes):
        return _strings(np.array(items, dtype=object))
    try:
        array = np.array(items)
    except ValueError as error:
        raise TypeError(f"a list becomes an array, so its members must agree in shape: {error}") from None
    if array.dtype.kind in "SUO":
        # From the items once more: NumPy has already written numbers beside text as text.
        return _strings(np.array(items, dtype=object))
    if not flat:
        return array.astype(np.float32)
    typed = any(isinstance(x, np.generic | np.ndarray) for x in flat)
    if typed:
        return array
    if array.dtype == np.float64:
        return array.astype(np.float32)
    if array.dtype == np.int64 and (array.size == 0 or (array.min() >= _INT32.min and array.max() <= _INT32.max)):
        return array.astype(np.int32)
    return array
