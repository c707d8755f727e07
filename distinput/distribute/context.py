# SPDX-License-Identifier: Apache-2.0
"""Where the running code stands: which strategy is current, and whether it runs for all replicas or in one of them.

Every thread has a stack of modes. An empty stack means the default strategy, in its replica context.
"""

import threading
from types import TracebackType
from typing import TYPE_CHECKING

from distinput.distribute.strategies import strategy_class

if TYPE_CHECKING:
    from distinput.distribute.replica_context import ReplicaContext
    from distinput.distribute.strategy import Strategy

__all__ = [
    "Mode",
    "Scope",
    "ValueContext",
    "experimental_set_strategy",
    "get_replica_context",
    "get_strategy",
    "has_strategy",
    "in_cross_replica_context",
    "in_replica_of",
    "require_cross_replica",
]

_CROSS_REPLICA = "Method requires being in cross-replica context, use get_replica_context().merge_call()"


class Mode:
    """One level of the stack: a strategy, and the replica whose code runs; None stands for all of them."""

    __slots__ = ("replica", "strategy")

    def __init__(self, strategy: "Strategy", replica: "ReplicaContext | None") -> None:
        self.strategy, self.replica = strategy, replica

    def __enter__(self) -> None:
        modes.stack.append(self)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        modes.stack.remove(self)


class _Modes(threading.local):
    def __init__(self) -> None:
        self.stack: list[Mode] = []
        self.kept: Mode | None = None  # the mode of experimental_set_strategy, always the lowest


class _Default:
    """The default strategy and its context; made on first use, because strategies need this module."""

    strategy: "Strategy | None" = None
    replica: "ReplicaContext | None" = None


modes = _Modes()


def default_strategy() -> "Strategy":
    """The strategy outside of every scope: one replica, everything is the identity."""
    if _Default.strategy is None:
        _Default.strategy = strategy_class("default")(["CPU:0"])
    return _Default.strategy


def _default_replica() -> "ReplicaContext":
    if _Default.replica is None:
        _Default.replica = default_strategy()._replica_context(0)
    return _Default.replica


def get_strategy() -> "Strategy":
    """The current strategy: that of the innermost scope or `run`, or the default one.

    >>> import distinput as di
    >>> di.distribute.get_strategy().num_replicas_in_sync
    1

    Source: `tf.distribute.get_strategy`.
    """
    stack = modes.stack
    return stack[-1].strategy if stack else default_strategy()


def has_strategy() -> bool:
    """True when the current strategy is not the default one.

    >>> import distinput as di
    >>> di.distribute.has_strategy()
    False

    Source: `tf.distribute.has_strategy`.
    """
    stack = modes.stack
    return bool(stack) and stack[-1].strategy is not default_strategy()


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


def get_replica_context() -> "ReplicaContext | None":
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
    return stack[-1].replica if stack else _default_replica()


def experimental_set_strategy(strategy: "Strategy | None") -> None:
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


def in_replica_of(strategy: "Strategy") -> bool:
    """True in a replica's code, False in cross-replica context and outside of all scopes.

    Raises:
      RuntimeError: another strategy is current.
    """
    stack = modes.stack
    if not stack:
        return False
    mode = stack[-1]
    if mode.strategy is not strategy:
        raise RuntimeError(_mixing(mode.strategy, strategy))
    return mode.replica is not None


def require_cross_replica(strategy: "Strategy", message: str = _CROSS_REPLICA) -> None:
    """Check that `strategy` may act for all its replicas here.

    Raises:
      RuntimeError: another strategy is current, or this is the code of one replica.
    """
    if modes.stack and in_replica_of(strategy):
        raise RuntimeError(message)


def _mixing(current: "Strategy", wanted: "Strategy") -> str:
    return (
        f"Mixing different tf.distribute.Strategy objects: {wanted!r} was used while {current!r} is current; "
        "leave the scope of the one before using the other"
    )


class Scope:
    """What `Strategy.scope` returns; entered, it makes the strategy current. It may be entered again inside itself.

    Source: `tf.distribute.Strategy.scope`.
    """

    __slots__ = ("_entered", "_strategy")

    def __init__(self, strategy: "Strategy") -> None:
        self._strategy = strategy
        self._entered: list[Mode] = []

    def __enter__(self) -> "Strategy":
        strategy = self._strategy
        if strategy is default_strategy():
            if modes.stack:
                raise RuntimeError(
                    "Must not nest tf.distribute.Strategy scopes: the default strategy's scope was entered inside "
                    "that of "
                    f"{modes.stack[-1].strategy!r}"
                )
            return strategy
        require_cross_replica(strategy)
        mode = Mode(strategy, None)
        self._entered.append(mode)
        modes.stack.append(mode)
        return strategy

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._entered:
            modes.stack.remove(self._entered.pop())


class ValueContext:
    """Which replica a value is made for.

    Args:
      replica_id_in_sync_group: the replica's number among all replicas.
      num_replicas_in_sync: how many there are.

    Source: `tf.distribute.experimental.ValueContext`.
    """

    __slots__ = ("num_replicas_in_sync", "replica_id_in_sync_group")

    def __init__(self, replica_id_in_sync_group: int = 0, num_replicas_in_sync: int = 1) -> None:
        self.replica_id_in_sync_group = replica_id_in_sync_group
        self.num_replicas_in_sync = num_replicas_in_sync

    def __repr__(self) -> str:
        return f"ValueContext(replica id {self.replica_id_in_sync_group}, total: {self.num_replicas_in_sync})"
