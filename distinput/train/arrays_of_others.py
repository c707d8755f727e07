# SPDX-License-Identifier: Apache-2.0
"""Arrays of PyTorch and JAX. Neither package is imported: whoever has such an array has imported it."""

import sys
from typing import Any

import numpy as np

__all__ = ["is_jax_array", "is_tensor", "like_jax_array", "numpy_of_jax_array", "numpy_of_tensor", "tensor_of"]

Array = np.ndarray[Any, Any]


def is_tensor(value: Any) -> bool:
    """True for tensors of PyTorch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, getattr(torch, "Tensor", ()))


def numpy_of_tensor(value: Any) -> tuple[Array, str]:
    """A copy of a tensor's values, and the name of its dtype; dtypes that NumPy does not have become unsigned integers."""
    torch = sys.modules["torch"]
    value = value.detach().cpu().contiguous()
    name = str(value.dtype).removeprefix("torch.")
    try:
        return value.numpy().copy(), name
    except TypeError:
        width = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[value.element_size()]
        return value.view(width).numpy().copy(), name


def tensor_of(array: Array, name: str) -> Any:
    """A tensor of a dtype with these values."""
    torch = sys.modules["torch"]
    made = torch.from_numpy(np.array(array, order="C"))
    dtype = getattr(torch, name)
    return made if made.dtype == dtype else made.view(dtype)


def is_jax_array(value: Any) -> bool:
    """True for arrays of JAX, those of random keys too."""
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(value, getattr(jax, "Array", ()))


def numpy_of_jax_array(value: Any) -> Array:
    """The values of a JAX array.

    Raises:
      TypeError: this process does not have all of them, or they are random keys.
    """
    if not value.is_fully_addressable and not value.is_fully_replicated:
        raise TypeError("is an array of JAX of which other processes have a part; gather it first")
    if not isinstance(value.dtype, np.dtype):
        raise TypeError("is an array of random keys; save jax.random.key_data(keys) and make keys with wrap_key_data")
    return np.asarray(value)


def like_jax_array(array: Array, like: Any) -> Any:
    """A JAX array with these values, on the devices of another one."""
    return sys.modules["jax"].device_put(array, like.sharding)
