# SPDX-License-Identifier: Apache-2.0
"""Results of the conformance suite of collectives: of one worker, and of all of them."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

__all__ = ["SOON", "Outcome", "Report", "raises"]

SOON = 2.0
"""Seconds within which an error that needs no waiting must arrive, even on a busy machine."""


@dataclass
class Outcome:
    """The result of one worker.

    Args:
      rank: the worker.
      failed: for each check that did not hold, why.
      passed: the checks that held.
      seconds: how long the checks took; for a fault, how long after it the error came.
      error: for a fault, the name of the error's class.
      culprit: for a fault, the ranks that the error named.
      message: for a fault, its text.
    """

    rank: int
    failed: dict[str, str] = field(default_factory=dict)
    passed: list[str] = field(default_factory=list)
    seconds: float = 0.0
    error: str = ""
    culprit: list[int] = field(default_factory=list)
    message: str = ""


@dataclass(frozen=True)
class Report:
    """The results of all workers.

    Args:
      engine: which one.
      size: how many workers.
      outcomes: of the workers that reported, in rank order.
      codes: how the processes ended, in rank order; with mpiexec its own.
      output: what they printed.
      seconds: how long it took.
    """

    engine: str
    size: int
    outcomes: tuple[Outcome, ...]
    codes: tuple[int | None, ...] = ()
    output: str = ""
    seconds: float = 0.0

    @property
    def problems(self) -> list[str]:
        """The checks that failed, each with the worker on which it did."""
        return [f"rank {o.rank}: {name}: {why}" for o in self.outcomes for name, why in o.failed.items()]

    @property
    def latest(self) -> float:
        """The longest time that a worker took."""
        return max((outcome.seconds for outcome in self.outcomes), default=0.0)


def raises(kind: type[BaseException] | tuple[type[BaseException], ...], call: Callable[[], object]) -> BaseException:
    """The error of a kind that a call raises, soon.

    Raises:
      AssertionError: it raised none, or not soon.
    """
    begin = time.monotonic()
    found: BaseException | None = None
    try:
        result = call()
    except kind as error:
        found = error
    if found is None:
        raise AssertionError(f"expected {kind}, got {result!r}")
    took = time.monotonic() - begin
    assert took < SOON, f"{type(found).__name__} came after {took:.2f} s"
    return found
