# SPDX-License-Identifier: Apache-2.0
"""One replica on one named device, for trying out a distributed program."""

from typing import Any

from distinput.distribute.core.strategy import Strategy
from distinput.distribute.devices import chosen_devices


class SingleReplica(Strategy):
    """The base of strategies with exactly one replica: values are never wrapped, batches never cut."""

    splits_batches = False
    _mirrors = False
    keeps_partial_steps = False
    _alone = True


class OneDeviceStrategy(SingleReplica):
    """One replica on a named device: nothing is cut or wrapped.

    Args:
      device: the name of the device, such as "CPU:0", or a device object of JAX or PyTorch.
      backend: what the replica runs on: "threads", "jax" for a JAX device and `jax.Array`s, or "torch" for a PyTorch device
        and tensors; None to choose by the device, as `MirroredStrategy` does.

    Raises:
      ValueError: the name is not the name of a device.

    >>> import distinput as di
    >>> strategy = di.distribute.OneDeviceStrategy("CPU:0")
    >>> strategy.run(lambda x: x + 1, args=(1,))
    2

    Source: `tf.distribute.OneDeviceStrategy`.
    """

    def __init__(self, device: Any, *, backend: str | None = None) -> None:
        labels, backend = chosen_devices([device], backend)
        super().__init__(labels, backend=backend)
