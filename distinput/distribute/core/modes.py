# SPDX-License-Identifier: Apache-2.0
"""The stack of modes: whether code runs for all replicas of a strategy, or for one of them.

Every thread has a stack. An empty one means the default strategy, in its replica context. This module compares
strategies and replica contexts by identity only, so it imports neither class; `context` returns the current ones.
"""

import threading
from types import TracebackType
from typing import Any, Generic, TypeVar

__all__ = [
    "Mode",
    "Scope",
    "UpdateMode",
    "in_replica_of",
    "modes",
    "outside",
    "require_cross_replica",
]

_CROSS_REPLICA = "Method requires being in cross-replica context, use get_replica_context().merge_call()"

S = TypeVar("S")


class Mode:
    """One level of the stack: a strategy, and the context of the running replica; None in cross-replica context."""

    __slots__ = ("replica", "strategy")

    copy: int | None = None
    """The copy of variables that `StrategyExtended.update` is changing; None outside of it."""

    def __init__(self, strategy: Any, replica: Any) -> None:
        self.strategy, self.replica = strategy, replica

    def __enter__(self) -> None:
        modes.stack.append(self)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        modes.stack.remove(self)


class UpdateMode(Mode):
    """Cross-replica context in which one copy of a variable is updated."""

    __slots__ = ("copy",)

    def __init__(self, strategy: Any, copy: int) -> None:
        super().__init__(strategy, None)
        self.copy = copy


class _Modes(threading.local):
    def __init__(self) -> None:
        self.stack: list[Mode] = []
        self.kept: Mode | None = None  # the mode of experimental_set_strategy, always the lowest


modes = _Modes()


outside = Mode(None, None)
"""The default strategy and its replica context, current while the stack is empty; None before their first use."""


def in_replica_of(strategy: object) -> bool:
    """True inside a replica's code, False in cross-replica context and outside all scopes.

    Raises:
      RuntimeError: another strategy is current.
    """
    stack = modes.stack
    if not stack:
        return False
    mode = stack[-1]
    if mode.strategy is not strategy:
        raise RuntimeError(
            f"Mixing different tf.distribute.Strategy objects: {strategy!r} was used while {mode.strategy!r} is current; "
            "leave the scope of the one before using the other"
        )
    return mode.replica is not None


def require_cross_replica(strategy: object, message: str = _CROSS_REPLICA) -> None:
    """Check that `strategy` may act for all its replicas here.

    Raises:
      RuntimeError: another strategy is current, or this is the code of one replica.
    """
    if modes.stack and in_replica_of(strategy):
        raise RuntimeError(message)


class Scope(Generic[S]):
    """The context manager of `Strategy.scope`: makes the strategy current. It may be entered again inside itself.

    Source: `tf.distribute.Strategy.scope`.
    """

    __slots__ = ("_entered", "_strategy")

    def __init__(self, strategy: S) -> None:
        self._strategy = strategy
        self._entered: list[Mode] = []

    def __enter__(self) -> S:
        strategy = self._strategy
        if strategy is outside.strategy:
            if modes.stack:
                raise RuntimeError(
                    "Must not nest tf.distribute.Strategy scopes: the default strategy's scope was entered inside "
                    f"that of {modes.stack[-1].strategy!r}"
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
