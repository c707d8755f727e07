# SPDX-License-Identifier: Apache-2.0
"""Law 8: nothing is left behind, however an iteration ends."""

from collections.abc import Callable

from distinput.data.dataset import Dataset
from distinput.testing.laws.trace import MOST, until_error
from distinput.testing.left_behind import check_uses

__all__ = ["check_nothing_left"]


def check_nothing_left(factory: Callable[[], Dataset], *, seconds: float = 5.0) -> None:
    """Law 8: no thread, process or open file is left behind, however an iteration ends.

    A pass is run to its end (or its error), closed after one element, closed before the first, abandoned after one element,
    and abandoned before the first.

    Args:
      factory: makes the pipeline.
      seconds: how long what ends on its own may take.

    Raises:
      AssertionError: something is left.

    >>> import distinput as di
    >>> check_nothing_left(lambda: di.data.Dataset.range(100).map(lambda x: x, num_parallel_calls=2).prefetch(2))
    """
    uses: dict[str, Callable[[Dataset], None]] = {
        "the end": _run_out,
        "close after one element": lambda ds: _close_after(ds, 1),
        "close before the first element": lambda ds: _close_after(ds, 0),
        "an iterator abandoned after one element": lambda ds: _abandon_after(ds, 1),
        "an iterator abandoned before the first element": lambda ds: _abandon_after(ds, 0),
    }
    check_uses(uses, factory, seconds)


def _run_out(dataset: Dataset) -> None:
    with iter(dataset) as elements:
        for _ in until_error(elements, MOST):
            pass


def _close_after(dataset: Dataset, count: int) -> None:
    with iter(dataset) as elements:
        for _ in until_error(elements, count):
            pass


def _abandon_after(dataset: Dataset, count: int) -> None:
    elements = iter(dataset)
    for _ in until_error(elements, count):
        pass
    del elements
