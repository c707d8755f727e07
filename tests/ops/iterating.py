# SPDX-License-Identifier: Apache-2.0
"""What the tests of the ops share: elements in Python's types, what came before an error, small states, timed calls."""

import json
import threading
from typing import Any

import numpy as np
import pytest

from distinput.data import Dataset
from distinput.run.run import Run


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


class Times:
    """Calls that take their time by the clock of the runs, so long on the main thread and so long on others, at any load.

    What the main thread does meanwhile is not on the clock of the others: a call of theirs may be long under way.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, here: float, elsewhere: float = 0.0) -> None:
        self.here, self.elsewhere, self.lock = here, elsewhere, threading.Lock()
        self.spent_here = self.spent_elsewhere = 0.0
        monkeypatch.setattr(Run, "clock", staticmethod(self.now))

    def now(self) -> float:
        on_main = threading.current_thread() is threading.main_thread()
        return self.spent_elsewhere + (self.spent_here if on_main else 0.0)

    def __call__(self, x: Any) -> Any:
        with self.lock:
            if threading.current_thread() is threading.main_thread():
                self.spent_here += self.here
            else:
                self.spent_elsewhere += self.elsewhere
        return x
