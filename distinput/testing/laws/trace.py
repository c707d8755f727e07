# SPDX-License-Identifier: Apache-2.0
"""A pass as the laws look at it: its elements, the states between them, and how it ended."""

from collections.abc import Callable, Iterator
from dataclasses import field
from itertools import islice
from typing import Any

from distinput.columns.state import State
from distinput.data.dataset import Dataset
from distinput.data.iterator import DatasetIterator
from distinput.names.lazy import dataclass
from distinput.plan.node import INFINITE, Node
from distinput.rewrite import Running
from distinput.run.run import Run
from distinput.testing.elements import exact

MOST = 200
"""The most elements looked at of a pipeline that does not end, and by laws that begin anew at many elements."""

ALL = 10_000
"""The most elements of a pipeline that ends, by laws that read it once."""


def most_of(dataset: Dataset) -> int:
    """How many elements a law looks at that reads a pipeline once: all of a few thousand, or the first if it does not end.

    >>> import distinput as di
    >>> most_of(di.data.Dataset.range(9)), most_of(di.data.Dataset.range(9).repeat())
    (10000, 200)
    """
    return MOST if dataset.cardinality() == INFINITE else ALL


@dataclass
class PassTrace:
    """A pass: its elements, the state before each of them and at the end, and the error that ended it."""

    elements: list[Any] = field(default_factory=list)
    states: list[State] = field(default_factory=list)
    failure: str | None = None
    ended: bool = False

    @staticmethod
    def of(iterator: DatasetIterator, most: int, keep: Callable[[int], bool] = lambda _: True) -> "PassTrace":
        """Run `iterator` for up to `most` elements."""
        trace = PassTrace()
        with iterator:
            while len(trace.elements) < most:
                trace.states.append(iterator.state() if keep(len(trace.elements)) else {})
                try:
                    trace.elements.append(exact(next(iterator)))
                except StopIteration:
                    trace.ended = True
                    trace.states.append(iterator.state())
                    break
                except Exception as error:  # noqa: BLE001 - how a pass ends is part of what is compared
                    trace.failure = type(error).__name__
                    break
        return trace

    def rest(self, position: int) -> list[Any]:
        """What follows a position."""
        return self.elements[position:]


def begun(plan: Node, running: Node) -> DatasetIterator:
    """An iterator over the first pass of `running`, the form in which `plan` runs."""
    return DatasetIterator(plan, Running(running), {"at": running.start(0), "epoch": 0, "skip": 0})


def elements_from(step: Node, state: State, most: int) -> list[Any]:
    """Up to `most` elements of a step from a state on, as exact values."""
    elements: list[Any] = []
    with Run() as run:
        stream = step.open(state, run)
        try:
            for block, _ in stream:
                elements += [exact(element) for element in islice(block.elements(), most - len(elements))]
                if len(elements) >= most:
                    break
        finally:
            run.cancelled.set()
            stream.close()  # type: ignore[attr-defined]
    return elements


def states_from(step: Node, state: State, most: int) -> list[State]:
    """Up to `most` states of a step after one, between its blocks."""
    with Run() as run:
        stream = step.open(state, run)
        try:
            return [after for _, after in islice(stream, most)]
        finally:
            run.cancelled.set()
            stream.close()  # type: ignore[attr-defined]


def until_error(elements: Iterator[Any], most: int) -> Iterator[Any]:
    """Up to `most` elements, or those before an error."""
    try:
        yield from islice(elements, most)
    except Exception:  # noqa: BLE001 - that both runs end with the same error was seen before
        return
