# SPDX-License-Identifier: Apache-2.0
"""Gives the examples of TensorFlow's pages the names outside `tf.data` and `tf.distribute` that they use, on NumPy."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import distinput
from distinput.core.leaves import as_leaf


def constant(value: Any, dtype: Any = None) -> Any:
    """`tf.constant`: Python's numbers get TensorFlow's dtypes."""
    return as_leaf(value) if dtype is None else np.asarray(value, dtype)


def identity(value: Any) -> Any:
    return np.copy(value)


def function(body: Callable[..., Any]) -> Callable[..., Any]:
    """`tf.function` changes when code runs, not what it computes."""
    return body


def numbers(*limits: int) -> Any:
    """`tf.range` of Python's numbers."""
    return np.arange(*limits, dtype=np.int32)


SHIM = {"constant": constant, "function": function, "identity": identity, "range": numbers, "reshape": np.reshape}


@pytest.fixture(autouse=True)
def _tensorflow_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """For one test, `distinput` has these names too, so that its `import distinput as tf` is the only change."""
    for name, stand_in in SHIM.items():
        assert not hasattr(distinput, name), f"distinput.{name} exists: the examples should use it"
        monkeypatch.setattr(distinput, name, stand_in, raising=False)
