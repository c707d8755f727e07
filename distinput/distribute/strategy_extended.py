# SPDX-License-Identifier: Apache-2.0
"""The parts of a strategy that libraries need and training loops do not."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

__all__ = ["StrategyExtended"]


class StrategyExtended:
    """The interface of a strategy for libraries; `Strategy.extended` returns it.

    Args:
      worker_devices: the devices of this process's replicas.
      parameter_devices: the devices that variables live on.
      run: the strategy's `run`.
      reduce: the strategy's `reduce`.

    Source: `tf.distribute.StrategyExtended`.
    """

    __slots__ = ("_parameter_devices", "_reduce", "_run", "_worker_devices")

    def __init__(
        self,
        worker_devices: tuple[str, ...],
        parameter_devices: tuple[str, ...],
        run: Callable[..., Any],
        reduce: Callable[..., Any],
    ) -> None:
        self._worker_devices, self._parameter_devices = worker_devices, parameter_devices
        self._run, self._reduce = run, reduce

    @property
    def worker_devices(self) -> tuple[str, ...]:
        """The devices of this process's replicas."""
        return self._worker_devices

    @property
    def parameter_devices(self) -> tuple[str, ...]:
        """The devices that variables live on."""
        return self._parameter_devices

    @property
    def experimental_require_static_shapes(self) -> bool:
        """False: batches may differ in size."""
        return False

    def call_for_each_replica(
        self, fn: Callable[..., Any], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """The same as `Strategy.run`."""
        return self._run(fn, args, kwargs)

    def reduce_to(self, reduce_op: Any, value: Any, destinations: Any, options: Any = None) -> Any:
        """`Strategy.reduce` of one value with `axis=None`; in one process every destination is the host."""
        return self._reduce(reduce_op, value, axis=None)

    def batch_reduce_to(
        self, reduce_op: Any, value_destination_pairs: Sequence[tuple[Any, Any]], options: Any = None
    ) -> list[Any]:
        """`reduce_to` of several values."""
        return [self.reduce_to(reduce_op, value, where) for value, where in value_destination_pairs]

    def value_container(self, value: Any) -> Any:
        """The container that a component belongs to; the value itself if there is none."""
        return value
