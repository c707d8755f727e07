# SPDX-License-Identifier: Apache-2.0
"""Arrays of other packages."""

import numpy as np
import pytest

from distinput.train.coding import (
    is_jax_array,
    is_tensor,
    like_jax_array,
    numpy_of_jax_array,
    numpy_of_tensor,
    tensor_of,
)


def test_tensors_of_every_dtype_come_back() -> None:
    torch = pytest.importorskip("torch")
    for dtype in (torch.bool, torch.uint8, torch.int64, torch.float16, torch.bfloat16, torch.float64, torch.complex64):
        tensor = torch.tensor([[0, 1], [2, 3]]).to(dtype).T
        array, name = numpy_of_tensor(tensor)
        assert torch.equal(tensor_of(array, name), tensor)
        assert tensor_of(array, name).dtype == dtype
    assert is_tensor(tensor)
    assert not is_tensor(array)


def test_jax_arrays_stay_on_their_devices() -> None:
    jax = pytest.importorskip("jax")
    value = jax.numpy.ones(3)
    made = like_jax_array(numpy_of_jax_array(value) * 2, value)
    assert is_jax_array(made)
    assert not is_jax_array(np.ones(3))
    assert (made.tolist(), made.sharding) == ([2, 2, 2], value.sharding)
