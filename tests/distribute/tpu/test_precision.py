# SPDX-License-Identifier: Apache-2.0
"""No number is lost silently where JAX has no 64 bits."""

import warnings
from threading import Event
from typing import Any

import jax
import ml_dtypes
import numpy as np
import pytest

import distinput as di
from distinput.distribute.tpu import mesh
from distinput.distribute.tpu.mesh import as_device_array
from distinput.errors import InvalidArgumentError


@pytest.mark.parametrize(
    "value, dtype",
    [
        (3, np.int32),
        (2.5, np.float32),
        (True, np.bool_),
        (np.int64(2**31 - 1), np.int32),
        (np.array([-(2**31)]), np.int32),
        (np.array([2**32 - 1], np.uint64), np.uint32),
        (np.array([0.5, np.inf, np.nan]), np.float32),
        (np.zeros(2, np.int8), np.int8),
        (np.zeros(2, ml_dtypes.bfloat16), ml_dtypes.bfloat16),
        (np.zeros(0, np.int64), np.int32),
    ],
    ids=str,
)
def test_what_32_bits_hold(value: Any, dtype: Any) -> None:
    made = as_device_array(value, "x")
    assert made.dtype == dtype
    np.testing.assert_array_equal(made, np.asarray(value))


@pytest.mark.parametrize(
    "value", [np.array([1, 2**31]), np.array([-(2**31) - 1]), 2**31, np.array([2**32], np.uint64), np.array([1e39])]
)
def test_what_32_bits_do_not_hold_is_refused(value: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=r"x (is|has).*jax_enable_x64"):
        as_device_array(value, "x")


def test_rounding_is_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mesh, "_warned", Event())
    with pytest.warns(UserWarning, match=r"x is float64 and is rounded to float32.*said once"):
        as_device_array(np.array([0.1]), "x")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        as_device_array(np.array([0.1]), "x")


def test_text_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="x must be numbers to be put on a device, got text"):
        as_device_array("a", "x")


def test_with_64_bits_everything_is_kept() -> None:
    with jax.enable_x64(True):
        assert as_device_array(np.array([2**40]), "x").dtype == np.int64
        strategy = di.distribute.TPUStrategy()
        ids = di.distribute.PerReplica([np.array([2**40 + i]) for i in range(8)])
        found = strategy.run(lambda x: x + 1, (ids,))
        assert strategy.gather(found, axis=0).tolist() == [2**40 + i + 1 for i in range(8)]
        assert strategy.reduce("MEAN", found, axis=None).dtype == np.float64


def test_ids_that_do_not_fit_do_not_reach_a_step() -> None:
    strategy = di.distribute.TPUStrategy()
    ids = di.distribute.PerReplica([np.array([2**31 + i]) for i in range(8)])
    with pytest.raises(InvalidArgumentError, match="holds 2147483648, which int32 cannot hold"):
        strategy.run(lambda x: x, (ids,))
    dataset = di.data.Dataset.range(2**33, 2**33 + 16).batch(8)
    with pytest.raises((InvalidArgumentError, OverflowError), match=r"does not fit|cannot hold"):
        list(strategy.experimental_distribute_dataset(dataset))
