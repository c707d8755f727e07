# SPDX-License-Identifier: Apache-2.0
"""What the tests of the ops share: elements in Python's types, what came before an error, small states, calls that overlap."""

import json
import threading
from typing import Any

import numpy as np

from distinput.data import Dataset


def plain(value: Any) -> Any:
    """An element with arrays as lists and NumPy scalars as Python numbers."""
    if isinstance(value, Dataset):
        return [plain(element) for element in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return tuple(plain(item) for item in value)
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def until_error(dataset: Dataset) -> tuple[list[Any], Exception]:
    """The elements before the error of an iteration, and the error."""
    found: list[Any] = []
    try:
        for element in dataset:
            found.append(plain(element))  # noqa: PERF401
    except Exception as error:  # whatever it is, a test looks at it  # noqa: BLE001
        return found, error
    raise AssertionError(f"no error after {found}")


def state_bytes(dataset: Dataset, elements: int) -> int:
    """How long the state after so many elements is as JSON."""
    with iter(dataset) as it:
        for _ in range(elements):
            next(it)
        return len(json.dumps(it.state()))


class Pairs:
    """Calls that are quick when two of them run at the same time, and slow when one runs alone."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.alone: threading.Event | None = None

    def __call__(self, x: Any) -> Any:
        with self.lock:
            other, mine = self.alone, threading.Event()
            self.alone = mine if other is None else None
        if other is not None:
            other.set()
        elif not mine.wait(0.1):
            with self.lock:
                self.alone = None
        return x
