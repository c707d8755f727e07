# SPDX-License-Identifier: Apache-2.0
"""One replica on one named device, for trying out a distributed program."""

from collections.abc import Callable
from typing import Any

from distinput.distribute.core.array_arithmetic import ReduceOp
from distinput.distribute.core.contexts import ValueContext, require_cross_replica
from distinput.distribute.core.replicas import part
from distinput.distribute.core.strategy import Strategy
from distinput.distribute.core.values import DistributedValues, only_masked
from distinput.distribute.devices import chosen_devices

__all__ = ["OneDeviceStrategy", "SingleReplica"]


class SingleReplica(Strategy):
    """The base of strategies with exactly one replica: values are never wrapped, batches never cut."""

    splits_batches = False
    _mirrors = False
    keeps_partial_steps = False

    def reduce(
        self,
        reduce_op: Any,
        value: Any,
        axis: Any,
        *,
        deterministic: bool = False,
        mask: Any = None,
        name: str = "",
    ) -> Any:
        """The value itself if `axis` is None, else its sum or mean over the axes; see `Strategy.reduce`."""
        require_cross_replica(self)
        if axis is None and not isinstance(value, DistributedValues):
            ReduceOp.of(reduce_op)
            return value if mask is None else only_masked("reduce", value, mask, self._reducer.arrays)
        return super().reduce(reduce_op, value, axis, deterministic=deterministic, mask=mask, name=name)

    def experimental_local_results(self, value: Any) -> tuple[Any, ...]:
        """A tuple of the value; see `Strategy.experimental_local_results`."""
        return value.values if isinstance(value, DistributedValues) else (value,)

    def experimental_distribute_values_from_function(self, value_fn: Callable[[ValueContext], Any]) -> Any:
        """The result of `value_fn` for replica 0 of 1; see `Strategy.experimental_distribute_values_from_function`."""
        return value_fn(ValueContext(0, 1))

    def _create_variable(self, make_value: Callable[[], Any], policy: Any, *, name: str, dtype: Any, shape: Any) -> Any:
        return part("single")(self, make_value, policy, name, shape)


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
