# SPDX-License-Identifier: Apache-2.0
"""Several replicas in one process, with equal copies of every variable, or with one copy."""

from collections.abc import Callable, Sequence
from typing import Any

from distinput.distribute.core.cross_device import CrossDeviceOps, OrderedReducer
from distinput.distribute.core.parts import part
from distinput.distribute.core.strategy import Strategy
from distinput.distribute.devices.names import chosen_devices, device_name

__all__ = ["CentralStorageStrategy", "MirroredStrategy"]

# ---- Several replicas in one process, with equal copies of every variable


class MirroredStrategy(Strategy):
    """Synchronous replicas in this process, each on a thread of its own.

    Args:
      devices: a name for each replica, such as "CPU:0" or "GPU:1", or device objects of JAX or PyTorch. With the threads
        backend names are labels only, so any number of replicas can be made; with the others each names a device. None or
        empty for one CPU, or with the other backends for all devices that JAX has, all accelerators that PyTorch has.
      cross_device_ops: adds the values of replicas, a `CrossDeviceOps`; None adds them in replica order.
      backend: what the replicas run on: "threads" for NumPy arrays on the host, "jax" for JAX devices and `jax.Array`s, or
        "torch" for PyTorch devices and tensors. None to choose by the devices: device objects choose their framework, so do
        "JAX:0" and "cuda:0", and "GPU:0" chooses the installed framework that has GPUs; everything else runs on threads.

    Raises:
      AssertionError: a device is named twice.
      ValueError: a name is not the name of a device, the backend has no such device, or devices belong to two frameworks.
      EngineMissing: the framework of the backend is not installed.
      TypeError: `cross_device_ops` is not a `CrossDeviceOps`.

    >>> import distinput as di
    >>> strategy = di.distribute.MirroredStrategy(devices=["CPU:0", "CPU:1"])
    >>> strategy.num_replicas_in_sync
    2
    >>> dataset = di.data.Dataset.range(4).batch(4)
    >>> [strategy.reduce("SUM", step, axis=0).item() for step in strategy.experimental_distribute_dataset(dataset)]
    [6]

    Source: `tf.distribute.MirroredStrategy`.
    """

    per_replica_input = "made"

    def __init__(
        self,
        devices: Sequence[Any] | None = None,
        cross_device_ops: CrossDeviceOps | None = None,
        *,
        backend: str | None = None,
    ) -> None:
        labels, backend = chosen_devices(devices, backend)
        super().__init__(labels, backend=backend)
        if cross_device_ops is None:
            return
        if not isinstance(cross_device_ops, CrossDeviceOps):
            raise TypeError(
                "MirroredStrategy: cross_device_ops must be a CrossDeviceOps, such as ReductionToOneDevice(), got "
                f"{cross_device_ops!r}"
            )
        self._reducer = OrderedReducer(cross_device_ops, self._replicas.devices)

    def __reduce__(self) -> tuple[Any, ...]:
        made = super().__reduce__()
        return (*made, self._reducer.ops) if isinstance(self._reducer, OrderedReducer) else made

    def __setstate__(self, cross_device_ops: CrossDeviceOps) -> None:
        self._reducer = OrderedReducer(cross_device_ops, self._replicas.devices)


# ---- Several replicas in one process, with one copy of every variable


class CentralStorageStrategy(Strategy):
    """Synchronous replicas in this process whose variables live on one device.

    A variable has one value; what replicas write to it must be aggregated. With one replica it is an ordinary variable.

    Args:
      compute_devices: a name for each replica, or device objects of JAX or PyTorch; None for one CPU.
      parameter_device: the device of the variables; None for the only compute device, or the CPU if there are several.
      backend: what the replicas run on; None to choose by the devices, as `MirroredStrategy` does.

    Raises:
      AssertionError: a device is named twice.
      ValueError: a name is not the name of a device.

    >>> import distinput as di
    >>> strategy = di.distribute.experimental.CentralStorageStrategy(["CPU:0", "CPU:1"], "CPU:0")
    >>> strategy.num_replicas_in_sync
    2

    Source: `tf.distribute.experimental.CentralStorageStrategy`.
    """

    per_replica_input = "ignored"
    _mirrors = False

    def __init__(
        self,
        compute_devices: Sequence[Any] | None = None,
        parameter_device: str | None = None,
        *,
        backend: str | None = None,
    ) -> None:
        names, backend = chosen_devices(compute_devices, backend, ["CPU:0"])
        super().__init__(names, backend=backend)
        self._parameter_devices = (device_name(parameter_device or (names[0] if len(names) == 1 else "CPU:0")),)

    def _create_variable(self, make_value: Callable[[], Any], policy: Any, *, name: str, dtype: Any, shape: Any) -> Any:
        make = "single" if self._replicas.count == 1 else "aggregating"
        return part(make)(self, make_value, policy, name, shape)
