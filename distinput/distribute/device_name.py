# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's names of devices, brought to a short form."""

import re
from collections.abc import Sequence

__all__ = ["device_name", "device_names"]

_NAME = re.compile(r"(?:.*/)?(?:device:)?([A-Za-z_]+)(?::(\d+))?$")


def device_name(name: str) -> str:
    """The short form of a device's name. Names are labels only, so the device need not exist.

    Raises:
      ValueError: it is not the name of a device.

    >>> from distinput.distribute.device_name import device_name
    >>> device_name("/job:localhost/task:0/device:gpu:1")
    'GPU:1'

    Source: the device strings of `tf.device`.
    """
    found = _NAME.match(name) if isinstance(name, str) else None
    if found is None:
        raise ValueError(f"not the name of a device: {name!r}; write for example 'CPU:0'")
    return f"{found[1].upper()}:{int(found[2] or 0)}"


def device_names(names: Sequence[str]) -> tuple[str, ...]:
    """The short forms of several names.

    Raises:
      AssertionError: a device is named twice.
      ValueError: one is not the name of a device.
    """
    made = tuple([device_name(name) for name in ([names] if isinstance(names, str) else names)])
    if len(set(made)) != len(made):
        raise AssertionError(f"No duplicates allowed in `devices` argument: got {list(names)}")
    return made
