# SPDX-License-Identifier: Apache-2.0
"""How a platform announces that it takes a machine away, and how a program ends then."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["EXIT_CODE", "TerminationConfig"]

EXIT_CODE = 143
"""128 + SIGTERM: what shells and container platforms report for a program that SIGTERM ended."""


@dataclass(frozen=True)
class TerminationConfig:
    """Adapts `PreemptionCheckpointHandler` to a platform.

    Args:
      termination_watcher_fn: called about once a second on a thread of its own; returns True once the platform has given
        notice. It must not block. None: the notice is SIGTERM.
      exit_fn: called on all workers when the checkpoint is complete; it usually calls `sys.exit` with the code that makes the
        platform restart the program. If it returns, training continues. None: `sys.exit(143)`.
      grace_period: seconds from the notice to the end. With a positive number, a checkpoint is saved at once, training
        continues, and shortly before the time is over the last checkpoint is saved and the program ends. It should be
        several times as long as saving takes. None or 0: save and end at once.
      save_fn: called on all workers to save, instead of `CheckpointManager.save`, with the arguments that
        `save_checkpoint_if_preempted` was given.

    Raises:
      ValueError: `grace_period` is negative.
      TypeError: what should be a function is none.

    >>> import sys
    >>> import distinput as di
    >>> di.distribute.experimental.TerminationConfig(exit_fn=lambda: sys.exit(42)).grace_period

    Source: `tf.distribute.experimental.TerminationConfig`.
    """

    termination_watcher_fn: Callable[[], bool] | None = None
    exit_fn: Callable[[], Any] | None = None
    grace_period: float | None = None
    save_fn: Callable[..., Any] | None = None

    def __post_init__(self) -> None:
        for name in ("termination_watcher_fn", "exit_fn", "save_fn"):
            value = getattr(self, name)
            if value is not None and not callable(value):
                raise TypeError(f"TerminationConfig: {name} must be a function or None, got a {type(value).__name__}")
        if self.grace_period is not None and self.grace_period < 0:
            raise ValueError(f"TerminationConfig: grace_period must not be negative, got {self.grace_period}")
