# SPDX-License-Identifier: Apache-2.0
"""What arithmetic on the values of replicas needs of an array library, and NumPy's answer.

A backend whose replicas compute with arrays of another library states it as `Devices.arrays`; then `reduce`, `gather`,
`all_reduce` and `all_gather` stay on the devices. `distribute/core/reduction.py` has the rules, and takes one of these objects.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, ClassVar, Protocol

import numpy as np

__all__ = ["NUMPY", "ArrayOps", "NumpyArrays", "arrays_of"]


class ArrayOps(Protocol):
    """An array library, as a frozen object without a state; its arrays have `shape`, `ndim` and `dtype`.

    Nothing here may take the values of an array to the host, but `to_host`. `total` and `concatenate` take arrays on several
    devices, and bring them to that of the first one.
    """

    @property
    def library(self) -> str:
        """The name of the library's package."""
        ...

    def owns(self, value: Any) -> bool:
        """True for an array of this library whose values are known, so not for one that stands for others in a trace."""
        ...

    def array(self, value: Any) -> Any:
        """An array of this library as it is, a number or a NumPy array as one of the library, anything else as NumPy's."""
        ...

    def value(self, array: Any) -> Any:
        """An array as it is returned: NumPy's without axes are scalars."""
        ...

    def kind(self, dtype: Any) -> str:
        """The kind of a dtype as NumPy's `dtype.kind`: "b", "i", "u", "f" or "c" for bool and numbers, whatever their size."""
        ...

    def name(self, dtype: Any) -> str:
        """The name of a dtype, the same in all libraries: "float32", "bfloat16"."""
        ...

    def dtype(self, name: str) -> Any:
        """The dtype with a name."""
        ...

    def wide(self, dtype: Any) -> Any:
        """The dtype in which integers are added for a mean, so that they do not wrap around; any other dtype itself."""
        ...

    def sum(self, array: Any, axes: tuple[int, ...], dtype: Any) -> Any:
        """The sum over axes in a dtype, on the device of the array; with no axes a copy."""
        ...

    def total(self, arrays: Sequence[Any], dtype: Any) -> Any:
        """((0 + 1) + 2) + ... of arrays of one shape, in a dtype and in new memory, where the first one is.

        Integers wrap around.
        """
        ...

    def mean(self, total: Any, count: int, dtype: Any) -> Any:
        """A total divided by a number, NaN for 0 / 0.

        Args:
          total: the sum of values of `dtype`, in `wide(dtype)`.
          count: how many there were.
          dtype: kept by floats and complex numbers; the mean of integers has the widest float of the device.
        """
        ...

    def concatenate(self, arrays: Sequence[Any], axis: int) -> Any:
        """The arrays one after the other along an axis, in new memory, where the first one is."""
        ...

    def together(self, arrays: Sequence[Any]) -> Sequence[Any]:
        """The arrays on the device of the first one; those that are there already as they are."""
        ...

    def move(self, array: Any, device: Any) -> Any:
        """The array on a device of the library; itself if it is there already."""
        ...

    def copy(self, array: Any, device: Any) -> Any:
        """The array on a device, in memory of its own where the library has arrays that can be written to."""
        ...

    def zeros(self, shape: Sequence[int], dtype: Any, device: Any) -> Any:
        """An array of zeros on a device."""
        ...

    def take(self, array: Any, rows: np.ndarray[Any, np.dtype[np.int64]]) -> Any:
        """The rows with these numbers, `[n, ...] -> [m, ...]`."""
        ...

    def to_host(self, array: Any) -> Any:
        """The values as a NumPy array."""
        ...


@dataclass(frozen=True, slots=True)
class NumpyArrays:
    """NumPy's arrays. Most answers are NumPy's own functions, so that asking for them costs nothing."""

    library: ClassVar[str] = "numpy"
    """See `ArrayOps.library`."""
    array = staticmethod(np.asarray)
    value = staticmethod(itemgetter(()))
    name = staticmethod(str)

    @staticmethod
    def kind(dtype: Any) -> str:
        """See `ArrayOps.kind`; "f" for bfloat16 and the other floats of packages, which NumPy calls "V"."""
        kind: str = dtype.kind
        return "f" if kind == "V" and dtype.isbuiltin == 2 and "float" in dtype.name else kind

    @staticmethod
    def owns(value: Any) -> bool:
        """True for a NumPy array or scalar."""
        return isinstance(value, np.ndarray | np.generic)

    @staticmethod
    def dtype(name: str) -> Any:
        """See `ArrayOps.dtype`."""
        return np.dtype(name)

    @staticmethod
    def wide(dtype: Any) -> Any:
        """64 bits for integers."""
        return {"i": _INT64, "u": _UINT64}.get(dtype.kind, dtype)

    @staticmethod
    def sum(array: Any, axes: tuple[int, ...], dtype: Any) -> Any:
        """See `ArrayOps.sum`."""
        if dtype.kind == "V" and axes:  # NumPy would round bfloat16 after each row, and 256 + 1 is 256 there
            return np.asarray(np.add.reduce(array, axis=axes, dtype=np.float32)).astype(dtype)
        return np.asarray(np.add.reduce(array, axis=axes, dtype=dtype))

    @staticmethod
    def total(arrays: Sequence[Any], dtype: Any) -> Any:
        """See `ArrayOps.total`; without axes a scalar."""
        total = np.array(arrays[0], dtype)
        for array in arrays[1:]:
            np.add(total, array, out=total, casting="unsafe")
        return total[()]

    @staticmethod
    def mean(total: Any, count: int, dtype: Any) -> Any:
        """See `ArrayOps.mean`; without axes a scalar."""
        value = np.true_divide(total, count)
        if dtype.kind in "iu":
            return value[()]
        return np.asarray(value).astype(dtype, copy=False)[()]

    concatenate = staticmethod(np.concatenate)

    @staticmethod
    def together(arrays: Sequence[Any]) -> Sequence[Any]:
        """The arrays as they are."""
        return arrays

    @staticmethod
    def move(array: Any, device: Any = None) -> Any:  # noqa: ARG004 - there is one memory
        """The array itself."""
        return array

    @staticmethod
    def copy(array: Any, device: Any = None) -> Any:  # noqa: ARG004 - there is one memory
        """A copy; without axes a scalar."""
        return np.array(array)[()]

    @staticmethod
    def zeros(shape: Sequence[int], dtype: Any, device: Any = None) -> Any:  # noqa: ARG004 - there is one memory
        """See `ArrayOps.zeros`."""
        return np.zeros(shape, dtype)

    @staticmethod
    def take(array: Any, rows: Any) -> Any:
        """See `ArrayOps.take`."""
        return np.asarray(array)[rows]

    to_host = staticmethod(np.asarray)


_INT64, _UINT64 = np.dtype(np.int64), np.dtype(np.uint64)

NUMPY = NumpyArrays()
"""The arrays of the host."""


def arrays_of(devices: Any) -> ArrayOps | None:
    """The library whose arrays the replicas on these devices compute with; None for NumPy, where values are not moved."""
    found: ArrayOps | None = getattr(devices, "arrays", None)
    return None if found is None or isinstance(found, NumpyArrays) else found
