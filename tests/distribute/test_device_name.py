# SPDX-License-Identifier: Apache-2.0
from typing import Any

import pytest

from distinput.distribute.devices import device_name, device_names


@pytest.mark.parametrize(
    "given, short",
    [
        ("CPU:0", "CPU:0"),
        ("cpu", "CPU:0"),
        ("/gpu:3", "GPU:3"),
        ("/device:GPU:01", "GPU:1"),
        ("/job:worker/replica:0/task:2/device:xla_cpu:10", "XLA_CPU:10"),
    ],
)
def test_the_short_form(given: str, short: str) -> None:
    assert device_name(given) == short
    assert device_name(short) == short


@pytest.mark.parametrize("given", ["", "CPU:", "CPU:x", "CPU:0 ", "GPU:-1", 3, None])
def test_what_is_no_name(given: Any) -> None:
    with pytest.raises(ValueError, match=r"not the name of a device: .*; write for example 'CPU:0'"):
        device_name(given)


def test_names_are_told_apart_by_their_short_form() -> None:
    assert device_names("gpu:1") == ("GPU:1",)
    assert device_names(["gpu:1", "/device:CPU:0"]) == ("GPU:1", "CPU:0")
    with pytest.raises(AssertionError, match="No duplicates allowed in `devices` argument"):
        device_names(["gpu", "/device:GPU:0"])
