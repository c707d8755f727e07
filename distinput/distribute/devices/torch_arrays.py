# SPDX-License-Identifier: Apache-2.0
"""Arithmetic with tensors of PyTorch, on the devices where they are: see `devices.arrays`.

Results have no gradient: what replicas add together is not part of the graph of any of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch

__all__ = ["TORCH", "TorchArrays"]


@dataclass(frozen=True, slots=True)
class TorchArrays:
    """Tensors of PyTorch."""

    library: ClassVar[str] = "torch"
    """See `ArrayOps.library`."""

    @staticmethod
    def owns(value: Any) -> bool:
        """True for a tensor."""
        return isinstance(value, torch.Tensor)

    @staticmethod
    def array(value: Any) -> Any:
        """See `ArrayOps.array`."""
        if isinstance(value, torch.Tensor):
            return value.detach()
        array = np.asarray(value)
        return torch.tensor(array) if array.dtype.kind in "biufc" else array

    @staticmethod
    def value(array: Any) -> Any:
        """See `ArrayOps.value`."""
        return array

    @staticmethod
    def kind(dtype: Any) -> str:
        """See `ArrayOps.kind`."""
        if isinstance(dtype, np.dtype):
            return dtype.kind
        if dtype.is_floating_point:
            return "f"
        return "b" if dtype == torch.bool else "c" if dtype.is_complex else "i" if dtype.is_signed else "u"

    @staticmethod
    def name(dtype: Any) -> str:
        """See `ArrayOps.name`."""
        return str(dtype).removeprefix("torch.")

    @staticmethod
    def dtype(name: str) -> Any:
        """See `ArrayOps.dtype`."""
        return getattr(torch, name)

    def wide(self, dtype: Any) -> Any:
        """64 bits for integers."""
        kind = self.kind(dtype)
        return torch.int64 if kind == "i" else torch.uint64 if kind == "u" else dtype

    @staticmethod
    def sum(array: Any, axes: tuple[int, ...], dtype: Any) -> Any:
        """See `ArrayOps.sum`."""
        if not axes:  # which torch takes for all of them
            return array.detach().to(dtype, copy=True)
        return torch.sum(array.detach().to(_added_as(array.dtype)), dim=axes, dtype=_added_as(dtype)).to(dtype)

    @staticmethod
    def total(arrays: Sequence[Any], dtype: Any) -> Any:
        """See `ArrayOps.total`."""
        within = _added_as(dtype)
        total = arrays[0].detach().to(within, copy=True)
        for array in arrays[1:]:
            total.add_(array.detach().to(device=total.device, dtype=within))
        return total.to(dtype)

    def mean(self, total: Any, count: int, dtype: Any) -> Any:
        """See `ArrayOps.mean`."""
        if self.kind(dtype) in "iu":
            return total.to(torch.float64) / count
        return (total / count).to(dtype)

    def concatenate(self, arrays: Sequence[Any], axis: int) -> Any:
        """See `ArrayOps.concatenate`."""
        return torch.cat(self.together(arrays), dim=axis)

    @staticmethod
    def together(arrays: Sequence[Any]) -> list[Any]:
        """See `ArrayOps.together`."""
        return [array.detach().to(arrays[0].device) for array in arrays]

    @staticmethod
    def move(array: Any, device: Any) -> Any:
        """See `ArrayOps.move`."""
        return array.detach().to(device)

    @staticmethod
    def copy(array: Any, device: Any) -> Any:
        """See `ArrayOps.copy`."""
        return array.detach().to(device, copy=True)

    @staticmethod
    def zeros(shape: Sequence[int], dtype: Any, device: Any) -> Any:
        """See `ArrayOps.zeros`."""
        return torch.zeros(tuple(shape), dtype=dtype, device=device)

    @staticmethod
    def take(array: Any, rows: Any) -> Any:
        """See `ArrayOps.take`."""
        return array.detach().index_select(0, torch.from_numpy(rows).to(array.device))

    @staticmethod
    def to_host(array: Any) -> Any:
        """See `ArrayOps.to_host`; bfloat16, which NumPy lacks, as float32."""
        array = array.detach().cpu()
        return array.float().numpy() if array.dtype == torch.bfloat16 else array.numpy()


def _added_as(dtype: Any) -> Any:
    """The dtype in which torch adds values of a dtype; the sum, converted back, wraps around as it should."""
    return torch.int64 if dtype in _NOT_ADDED else dtype


_NOT_ADDED = frozenset({torch.uint16, torch.uint32, torch.uint64})

TORCH = TorchArrays()
"""The tensors of PyTorch."""
