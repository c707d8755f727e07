# SPDX-License-Identifier: Apache-2.0
"""NumPy arrays as PyTorch tensors and back, in the same memory where that is safe."""

from contextlib import suppress
from typing import Any

import numpy as np
import torch

from distinput.errors import InvalidArgumentError
from distinput.values.buffers import copy_of

_DTYPES = frozenset(map(np.dtype, ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16")))
"""NumPy's dtypes that PyTorch has as well."""

_OF_PACKAGES = {
    name: getattr(torch, name)
    for name in ("bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu")
    if hasattr(torch, name)
}
"""PyTorch's dtypes that NumPy knows by the same name once the package ml_dtypes was imported."""

_BITS = {1: np.dtype(np.uint8), 2: np.dtype(np.int16)}
_TENSOR_BITS = {1: torch.uint8, 2: torch.int16}
"""Dtypes that both know, by size; the bits of the dtypes above are passed through them."""


def can_hold(value: Any) -> bool:
    """True for numbers and arrays of them, False for text and other objects, which a device cannot hold."""
    if isinstance(value, np.ndarray | np.generic):
        return value.dtype.kind in "biufc" or value.dtype.isbuiltin == 2  # those of packages, such as bfloat16
    return isinstance(value, torch.Tensor | bool | int | float | complex)


def tensor_of(value: Any, *, shared: bool = False) -> Any:
    """Numbers as a tensor on the CPU, in the same memory where it can be.

    An array is copied if PyTorch cannot use its layout (negative strides, another byte order), and if it is read-only: others
    see the same memory then, and nothing prevents a tensor from being written to.

    Args:
      value: an array, a number or a tensor, which is returned as it is.
      shared: do not copy an array only because it is read-only; nobody may write to the tensor.

    Raises:
      InvalidArgumentError: PyTorch has no dtype for it.

    >>> from distinput.distribute.devices.tensors import tensor_of
    >>> array = np.zeros(2)
    >>> tensor = tensor_of(array).add_(1)
    >>> array.tolist()
    [1.0, 1.0]
    """
    if type(value) is np.ndarray and value.flags.writeable:
        try:
            return torch.from_numpy(value)
        except (TypeError, ValueError):
            pass  # a dtype or a layout that it does not take
    if isinstance(value, torch.Tensor):
        return value
    array = value if isinstance(value, np.ndarray) else np.array(value)
    dtype = array.dtype
    if not dtype.isnative:
        dtype = dtype.newbyteorder("=")
        array = array.astype(dtype)
    like = None if dtype in _DTYPES else _OF_PACKAGES.get(dtype.name)
    if like is None and dtype not in _DTYPES:
        raise InvalidArgumentError(
            f"backend 'torch': the value is {dtype}, and PyTorch has no such dtype; convert the values with astype first"
        )
    for stride in array.strides:
        if stride < 0 or stride % dtype.itemsize:
            array = copy_of(array)
            break
    if like is not None:
        array = array.view(_BITS[dtype.itemsize])
    made = torch.from_numpy(array) if array.flags.writeable else _of_read_only(array, shared=shared)
    return made if like is None else made.view(like)


def _of_read_only(array: Any, *, shared: bool) -> Any:
    if shared:
        with suppress(BufferError):  # older versions of NumPy do not give read-only memory away
            return torch.from_dlpack(array)  # `from_numpy` would warn
    return torch.from_numpy(copy_of(array))


def array_of(tensor: Any) -> Any:
    """The values of a tensor as a NumPy array, which may share its memory.

    bfloat16 and float8 keep their dtype if NumPy knows it, which it does once ml_dtypes was imported; otherwise they become
    float32, which holds the same values.

    >>> import torch
    >>> from distinput.distribute.devices.tensors import array_of
    >>> array_of(torch.ones(2, requires_grad=True))
    array([1., 1.], dtype=float32)
    """
    name = str(tensor.dtype).removeprefix("torch.")
    if name not in _OF_PACKAGES:
        return tensor.numpy(force=True)
    try:
        dtype = np.dtype(name)
    except TypeError:
        return tensor.detach().to("cpu", torch.float32).numpy()
    bits = tensor.detach().cpu().view(_TENSOR_BITS[dtype.itemsize]).numpy()
    return bits.view(dtype)
