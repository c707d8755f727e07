# SPDX-License-Identifier: Apache-2.0
"""A part of a variable: `v[1:3]`, whose value can be computed with and whose place can be written to."""

from typing import Any

import numpy as np

from distinput.distribute.operators import LocalOperators

__all__ = ["VariableSlice"]


class VariableSlice(LocalOperators):
    """The part of a variable that an index selects, as it was when it was read, and where it is.

    In arithmetic, in NumPy functions and as an argument it is an array or a scalar.

    Args:
      variable: the variable.
      key: the index.
      value: the selected part of its value.

    >>> import distinput as di
    >>> v = di.Variable([1.0, 2.0, 3.0])
    >>> v[1:].assign([5.0, 6.0]).numpy()
    array([1., 5., 6.], dtype=float32)
    >>> v[0] + 1
    np.float32(2.0)

    Source: slices of `tf.Variable`.
    """

    __slots__ = ("_key", "_value", "_variable")

    def __init__(self, variable: Any, key: Any, value: Any) -> None:
        self._variable, self._key, self._value = variable, key, value

    def assign(self, value: Any, name: str | None = None) -> Any:
        """Write to this part of the variable; return what `Variable.assign` returns."""
        return self._variable._write("slice_assign", value, self._key)

    def assign_add(self, delta: Any, name: str | None = None) -> Any:
        """Add to this part of the variable."""
        return self._variable._write("slice_assign_add", delta, self._key)

    def assign_sub(self, delta: Any, name: str | None = None) -> Any:
        """Subtract from this part of the variable."""
        return self._variable._write("slice_assign_sub", delta, self._key)

    def numpy(self) -> Any:
        """The part as a NumPy array of the caller's own, or a scalar."""
        return np.array(self._value)[()]

    def _here(self) -> Any:
        return self._value

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self._value, dtype) if copy else np.asarray(self._value, dtype)

    def __jax_array__(self) -> Any:
        return self._value

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._value, name)

    def __repr__(self) -> str:
        return repr(self._value)
