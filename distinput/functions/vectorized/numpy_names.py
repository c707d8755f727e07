# SPDX-License-Identifier: Apache-2.0
"""The names of NumPy that a function may use when it is called for a whole block; `np.random` and files are not among them."""

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from distinput.functions.vectorized.constant_array import table_of
from distinput.functions.vectorized.refusal import Refused
from distinput.functions.vectorized.rules import Rules
from distinput.functions.vectorized.stand_in import StandIn
from distinput.functions.vectorized.table import FUNCTIONS

__all__ = ["NAMES", "NumPy"]

_CONSTANTS = [
    "bool",
    "bool_",
    "e",
    "euler_gamma",
    "float16",
    "float32",
    "float64",
    "inf",
    "int16",
    "int32",
    "int64",
    "int8",
    "intp",
    "nan",
    "newaxis",
    "pi",
    "single",
    "double",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
]
_MAKERS = ["arange", "eye", "full", "identity", "linspace", "logspace", "ones", "zeros"]
_READERS = ["dtype", "finfo", "iinfo", "ndim", "shape", "size"]
_LOADED = vars(np)  # to ask for the other names would import modules
_UFUNCS = [name for name, value in _LOADED.items() if isinstance(value, np.ufunc)]
_RULED = [name for name, value in _LOADED.items() if id(value) in set(map(id, FUNCTIONS))]

NAMES = frozenset(
    (*_CONSTANTS, *_MAKERS, *_READERS, *_UFUNCS, *_RULED, "abs", "array", "asarray", "concat", "linalg", "norm")
)
"""Attributes of `numpy` that can be read."""


class NumPy:
    """Stands for the module.

    Args:
      rules: for lists with stand-ins, which become arrays.
    """

    def __init__(self, rules: Rules) -> None:
        self.linalg = _LinearAlgebra()
        self._rules = rules

    def __getattr__(self, name: str) -> Any:
        if name not in NAMES:
            raise Refused(f"it uses np.{name}, which has no rule")
        found = getattr(np, name)
        return self._made_by(found) if name in _MAKERS else found

    def _made_by(self, maker: Any) -> Any:
        def make(*args: Any, **options: Any) -> Any:
            made = maker(*args, **options)
            return table_of(made, self._rules) if type(made) is np.ndarray else made

        return make

    def array(self, value: Any, dtype: Any = None) -> Any:
        """As `numpy.array`."""
        made = self.asarray(value, dtype)
        return made.copy() if made is value and isinstance(made, StandIn) else made

    def take(self, a: Any, indices: Any, axis: int | None = None) -> Any:
        """As `numpy.take`, which does not ask stand-ins among the indices."""
        if isinstance(indices, StandIn):
            return self._rules.function(np.take, (a, indices), {"axis": axis})
        return np.take(a, indices, axis)

    def asarray(self, value: Any, dtype: Any = None) -> Any:
        """As `numpy.asarray`, for a stand-in, for a list of them, or for constants."""
        if isinstance(value, list | tuple) and any(isinstance(part, StandIn) for part in value):
            value = np.stack(_alike(value))
        elif not isinstance(value, StandIn):
            return table_of(np.array(value, dtype), self._rules)
        if isinstance(value, StandIn) and not value.ndim:
            raise Refused("it makes an array of a number")
        return value if dtype is None else value.astype(dtype, copy=False)


def _alike(values: Sequence[Any]) -> list[Any]:
    """Members of a list as arrays of one shape, so that NumPy finds the same dtype for them together."""
    made = [value if isinstance(value, StandIn) else np.asarray(value) for value in values]
    if len({value.shape for value in made}) > 1:
        raise Refused("it makes an array of a list of several shapes")
    return made


class _LinearAlgebra:
    """Stands for `numpy.linalg`."""

    norm = staticmethod(np.linalg.norm)

    def __getattr__(self, name: str) -> NoReturn:
        raise Refused(f"it uses np.linalg.{name}, which has no rule")
