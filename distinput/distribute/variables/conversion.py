# SPDX-License-Identifier: Apache-2.0
"""What users give to a variable becomes an array of the variable's dtype.

Python numbers and NumPy arrays are converted if nothing is lost in kind: integers fit into integers, floats and complex
numbers, floats into floats and complex numbers. Other arrays, such as JAX's, stay what they are.
"""

from typing import Any

import numpy as np

from distinput.values.leaves import STRING, as_dtype, as_leaf, dtype_name

__all__ = ["as_indices", "as_initial", "as_operand", "kind_of"]

_INTO = {"b": "b", "i": "iufc", "u": "iufc", "f": "fc", "c": "c", "O": "O"}
"""For each kind of dtype, the kinds that it may become."""
_HOST = (bool, bytes, complex, float, int, list, np.generic, np.ndarray, range, str, tuple)


def kind_of(dtype: np.dtype[Any]) -> str:
    """The kind of a dtype, also of the floats and integers of few bits that other packages add to NumPy."""
    if dtype.kind != "V":
        return dtype.kind
    name = dtype.name
    return "f" if "float" in name else "u" if name.startswith("uint") else "i" if name.startswith("int") else "V"


def as_initial(value: Any, dtype: np.dtype[Any] | None, what: str) -> Any:
    """The first value of a variable: a NumPy array of its own, of the dtype asked for or of TensorFlow's default.

    Raises:
      TypeError: the value cannot become an array of this dtype.
    """
    leaf = as_leaf(_without_gradient(value))
    array = np.asarray(leaf, STRING) if isinstance(leaf, bytes) else np.asarray(leaf)
    if dtype is None or dtype == array.dtype:
        return np.array(array)
    _check_kind(value, array.dtype, dtype, what)
    return _cast(value, array, dtype)


def as_operand(value: Any, dtype: np.dtype[Any], what: str) -> Any:
    """A value to compute with or to assign, as an array of the dtype; it may share memory with `value`.

    Raises:
      TypeError: a Python value cannot become an array of this dtype.
      ValueError: an array has a dtype that does not fit.
    """
    if type(value) is np.ndarray and value.dtype == dtype and dtype != STRING:
        return value
    if isinstance(value, _HOST):
        leaf = as_leaf(value)
        array = np.asarray(leaf, STRING) if isinstance(leaf, bytes) else np.asarray(leaf)
    elif not isinstance(getattr(value, "dtype", None), np.dtype) or not hasattr(value, "shape"):
        array = np.asarray(as_leaf(_without_gradient(value)))
    else:
        array = value  # of another library, or traced: it is not converted by way of NumPy
    if array.dtype == dtype:
        return array
    _check_kind(value, array.dtype, dtype, what)
    return _cast(value, array, dtype)


def as_indices(value: Any, what: str) -> Any:
    """Integers that point into an axis.

    Raises:
      TypeError: they are not integers.
    """
    array = value if not isinstance(value, _HOST) and hasattr(value, "at") else np.asarray(_without_gradient(value))
    if array.dtype.kind not in "iu":
        if array.size:
            raise TypeError(f"{what}: indices must be integers, got {array.dtype}")
        array = array.astype(np.int32)
    return array


def _without_gradient(value: Any) -> Any:
    """The values of a tensor of PyTorch on the host, wherever it is and whatever it is part of; anything else itself."""
    if not hasattr(value, "detach"):
        return value
    tensor = value.detach().cpu()
    return tensor.float().numpy() if str(tensor.dtype) == "torch.bfloat16" else tensor.numpy()  # NumPy has no bfloat16


def _cast(value: Any, array: Any, dtype: np.dtype[Any]) -> Any:
    if dtype.kind in "iu" and isinstance(value, int):
        limits = np.iinfo(dtype)
        if not limits.min <= value <= limits.max:
            raise TypeError(f"Cannot convert {value} to a value of dtype {dtype}: it is out of range")
        return np.array(value, dtype)
    if dtype.kind in "fc" and isinstance(value, float | complex):
        return np.array(value, dtype)  # from the number itself, which has more digits than float32
    return array.astype(dtype)


def _check_kind(value: Any, given: np.dtype[Any], dtype: np.dtype[Any], what: str) -> None:
    kind = kind_of(given)
    if kind_of(dtype) in _INTO.get(kind, kind):
        return
    if hasattr(value, "dtype"):
        raise ValueError(
            f"{what}: Tensor conversion requested dtype {dtype_name(dtype)} for Tensor with dtype {dtype_name(given)}; "
            f"convert it first, with x.astype({dtype_name(as_dtype(dtype))!r})"
        )
    raise TypeError(f"{what}: Cannot convert {value!r} to EagerTensor of dtype {dtype_name(dtype)}")
