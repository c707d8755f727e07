# SPDX-License-Identifier: Apache-2.0
"""What libraries, rather than training loops, need of a strategy."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from distinput.distribute.strategy import Strategy

__all__ = ["StrategyExtended"]


class StrategyExtended:
    """What libraries need of a strategy.

    Args:
      strategy: the one it belongs to.

    Source: `tf.distribute.StrategyExtended`.
    """

    __slots__ = ("_strategy",)

    def __init__(self, strategy: "Strategy") -> None:
        self._strategy = strategy

    @property
    def worker_devices(self) -> tuple[str, ...]:
        """The devices of this process's replicas."""
        return self._strategy._devices.local

    @property
    def parameter_devices(self) -> tuple[str, ...]:
        """The devices that variables live on."""
        return self._strategy._parameter_devices

    @property
    def experimental_require_static_shapes(self) -> bool:
        """False: batches may differ in size."""
        return False

    def call_for_each_replica(
        self, fn: Callable[..., Any], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """The same as `Strategy.run`."""
        return self._strategy.run(fn, args, kwargs)

    def reduce_to(self, reduce_op: Any, value: Any, destinations: Any, options: Any = None) -> Any:
        """`Strategy.reduce` of one value with `axis=None`; in one process every destination is the host."""
        return self._strategy.reduce(reduce_op, value, axis=None)

    def batch_reduce_to(
        self, reduce_op: Any, value_destination_pairs: Sequence[tuple[Any, Any]], options: Any = None
    ) -> list[Any]:
        """`reduce_to` of several values."""
        return [self.reduce_to(reduce_op, value, where) for value, where in value_destination_pairs]

    def value_container(self, value: Any) -> Any:
        """The container that a component belongs to; the value itself when it has none."""
        return value
