# SPDX-License-Identifier: Apache-2.0
"""Several replicas in one process, with one copy of every variable."""

from collections.abc import Sequence

from distinput.distribute.device_name import device_name, device_names
from distinput.distribute.strategy import Strategy

__all__ = ["CentralStorageStrategy"]


class CentralStorageStrategy(Strategy):
    """Synchronous replicas in this process whose variables live on one device.

    Iterating a distributed dataset drops the last step unless there is an element for every replica, as TensorFlow
    does here; `get_next_as_optional` delivers it.

    Args:
      compute_devices: a name for each replica; None for one CPU.
      parameter_device: the device of the variables; None for the only compute device, or the CPU if there are several.
      backend: what the replicas run on.

    Raises:
      AssertionError: a device is named twice.
      ValueError: a name is not the name of a device.

    >>> import distinput as di
    >>> strategy = di.distribute.experimental.CentralStorageStrategy(["CPU:0", "CPU:1"], "CPU:0")
    >>> strategy.num_replicas_in_sync
    2

    Source: `tf.distribute.experimental.CentralStorageStrategy`.
    """

    keeps_partial_steps = False
    per_replica_input = "ignored"

    def __init__(
        self,
        compute_devices: Sequence[str] | None = None,
        parameter_device: str | None = None,
        *,
        backend: str = "threads",
    ) -> None:
        names = device_names(compute_devices or ["CPU:0"])
        super().__init__(names, backend=backend)
        self._parameter_devices = (device_name(parameter_device or (names[0] if len(names) == 1 else "CPU:0")),)
