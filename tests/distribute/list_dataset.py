# SPDX-License-Identifier: Apache-2.0
"""A dataset that is a list, with the small interface that distribution needs of any dataset."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from distinput.values.spec import TensorSpec


class ListDataset:
    """Elements from a list; an exception in the list is raised once, in its place."""

    def __init__(self, elements: Sequence[Any], spec: Any = None, cardinality: int | None = None) -> None:
        self.elements = list(elements)
        self.element_spec = spec if spec is not None else TensorSpec([None], "int64")
        self.known = len(self.elements) if cardinality is None else cardinality
        self.closed = 0

    def cardinality(self) -> int:
        return self.known

    def __iter__(self) -> "ListIterator":
        return ListIterator(self, 0)

    def restore(self, state: dict[str, Any]) -> "ListIterator":
        return ListIterator(self, state["at"])


class ListIterator:
    def __init__(self, dataset: ListDataset, at: int) -> None:
        self.dataset, self.at = dataset, at

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if self.at >= len(self.dataset.elements):
            raise StopIteration
        self.at += 1
        element = self.dataset.elements[self.at - 1]
        if isinstance(element, Exception):
            raise element
        return element

    def state(self) -> dict[str, Any]:
        return {"at": self.at}

    def close(self) -> None:
        self.dataset.closed += 1


def batches(*sizes: int) -> list[Any]:
    """Consecutive numbers in batches of these sizes."""
    bounds = np.cumsum([0, *sizes])
    return [np.arange(a, b) for a, b in pairwise(bounds)]
