# SPDX-License-Identifier: Apache-2.0
"""The current strategy and the current replica context; the strategy that is current outside all scopes."""

from collections.abc import Callable
from typing import Any

from distinput.distribute.core.contexts import Mode, ReplicaContext, modes, outside
from distinput.distribute.core.one_device import SingleReplica
from distinput.distribute.core.options import InputContext, InputOptions
from distinput.distribute.core.replicas import part
from distinput.distribute.core.strategy import Strategy

# ---- The strategy that is current outside all scopes


class DefaultStrategy(SingleReplica):
    """One replica, every method the identity, so that code written for a strategy runs without one; see `get_strategy`.

    >>> import distinput as di
    >>> di.distribute.get_strategy().run(lambda x: x + 1, args=(1,))
    2

    Source: the default strategy of `tf.distribute.get_strategy`.
    """

    is_default = True
    per_replica_input = "ignored"

    def _run(self, fn: Callable[..., Any], given: tuple[Any, ...], named: dict[str, Any]) -> Any:
        return fn(*given, **named)

    def experimental_distribute_dataset(self, dataset: Any, options: InputOptions | None = None) -> Any:
        """The dataset itself; see `Strategy.experimental_distribute_dataset`."""
        return dataset

    def distribute_datasets_from_function(
        self, dataset_fn: Callable[[InputContext], Any], options: InputOptions | None = None
    ) -> Any:
        """The result of `dataset_fn`; see `Strategy.distribute_datasets_from_function`."""
        part("check_dataset_function")(dataset_fn, options or InputOptions(), self._consumer())
        return dataset_fn(InputContext())

    def __deepcopy__(self, memo: dict[int, Any]) -> "DefaultStrategy":
        raise RuntimeError("the default strategy cannot be copied: there is only one")

    def __reduce__(self) -> tuple[Any, ...]:
        return default_strategy, ()


# ---- The current strategy and the current replica context


def default_strategy() -> Strategy:
    """The strategy that is current outside all scopes: one replica, and every method is the identity."""
    if outside.strategy is None:
        outside.strategy = DefaultStrategy(["CPU:0"])
    strategy: Strategy = outside.strategy
    return strategy


def _default_replica() -> ReplicaContext:
    if outside.replica is None:
        outside.replica = ReplicaContext(default_strategy(), 0)
    context: ReplicaContext = outside.replica
    return context


def get_strategy() -> Strategy:
    """The current strategy: that of the innermost scope or `run`, or the default one.

    >>> import distinput as di
    >>> di.distribute.get_strategy().num_replicas_in_sync
    1

    Source: `tf.distribute.get_strategy`.
    """
    stack = modes.stack
    strategy: Strategy = stack[-1].strategy if stack else default_strategy()
    return strategy


def has_strategy() -> bool:
    """True if the current strategy is not the default one.

    >>> import distinput as di
    >>> di.distribute.has_strategy()
    False

    Source: `tf.distribute.has_strategy`.
    """
    stack = modes.stack
    return bool(stack) and stack[-1].strategy is not outside.strategy


def in_cross_replica_context() -> bool:
    """True inside a scope or a `merge_call`, where code runs once for all replicas.

    >>> import distinput as di
    >>> with di.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).scope():
    ...     di.distribute.in_cross_replica_context()
    True

    Source: `tf.distribute.in_cross_replica_context`.
    """
    stack = modes.stack
    return bool(stack) and stack[-1].replica is None


def get_replica_context() -> ReplicaContext | None:
    """The context of the replica whose code runs; None in cross-replica context.

    >>> import distinput as di
    >>> strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    >>> strategy.run(lambda: di.distribute.get_replica_context().replica_id_in_sync_group)
    PerReplica:{
      0: 0,
      1: 1
    }

    Source: `tf.distribute.get_replica_context`.
    """
    stack = modes.stack
    context: ReplicaContext | None = stack[-1].replica if stack else _default_replica()
    return context


def experimental_set_strategy(strategy: Strategy | None) -> None:
    """Make a strategy current for this thread until the next call; None clears it. In a notebook this replaces `scope`.

    Raises:
      RuntimeError: inside a scope.

    >>> import distinput as di
    >>> di.distribute.experimental_set_strategy(di.distribute.MirroredStrategy(["CPU:0", "CPU:1"]))
    >>> di.distribute.get_strategy().num_replicas_in_sync
    2
    >>> di.distribute.experimental_set_strategy(None)

    Source: `tf.distribute.experimental_set_strategy`.
    """
    kept = modes.kept
    if len(modes.stack) > (kept is not None):
        raise RuntimeError("Must not be called inside a `tf.distribute.Strategy` scope.")
    modes.stack.clear()
    modes.kept = None
    if strategy is not None and strategy is not default_strategy():
        modes.kept = Mode(strategy, None)
        modes.stack.append(modes.kept)
