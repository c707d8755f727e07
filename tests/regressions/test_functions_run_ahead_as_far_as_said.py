# SPDX-License-Identifier: Apache-2.0
"""With `Options.run_ahead`, functions are called at most so many times more often than elements were asked for."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import distinput as di

RANGE = di.data.Dataset.range
Note = Callable[[Any], Any]


def given(note: Note) -> di.data.Dataset:
    return di.data.Dataset.from_generator(lambda: map(note, range(100)), output_signature=di.TensorSpec([], "int64"))


WAYS: dict[str, Callable[[Note], di.data.Dataset]] = {
    "map": lambda note: RANGE(100).map(note),
    "threads": lambda note: RANGE(100).map(note, num_parallel_calls=4),
    "autotune": lambda note: RANGE(100).map(note, num_parallel_calls=di.data.AUTOTUNE),
    "fused": lambda note: RANGE(100).map(note).map(lambda x: x + 1),
    "below threads": lambda note: RANGE(100).map(note).filter(lambda x: True).map(lambda x: x, num_parallel_calls=3),
    "filter": lambda note: RANGE(100).filter(lambda x: note(x) >= 0),
    "take_while": lambda note: RANGE(100).take_while(lambda x: note(x) >= 0),
    "scan": lambda note: RANGE(100).scan(np.int64(0), lambda s, x: (s, note(x))),
    "generator": given,
    "prefetch": lambda note: RANGE(100).map(note).prefetch(20),
    "prefetch by itself": lambda note: given(note).prefetch(di.data.AUTOTUNE).map(lambda x: x),
    "flat_map": lambda note: RANGE(1).flat_map(lambda _: RANGE(100).map(note)),
    "zip": lambda note: RANGE(100).map(note).enumerate(),
}


@pytest.mark.parametrize("ahead", [0, 1, 7])
@pytest.mark.parametrize("way", WAYS)
def test_calls_are_bounded(way: str, ahead: int) -> None:
    calls: list[Any] = []

    def note(x: Any) -> Any:
        calls.append(x)
        return x

    options = di.data.Options()
    options.run_ahead = ahead
    made = WAYS[way](note).with_options(options)
    calls.clear()  # `scan` tries its function where the first element is in memory
    with iter(made) as iterator:
        for k in range(1, 31):
            next(iterator)
            assert len(calls) <= k + ahead
    calls.clear()
    assert len(list(made)) == 100
    assert len(calls) == 100


def test_what_a_batch_needs_is_asked_for() -> None:
    calls: list[Any] = []
    options = di.data.Options()
    options.run_ahead = 2
    with iter(RANGE(100).map(lambda x: calls.append(x) or x).batch(5).with_options(options)) as iterator:
        for k in range(1, 11):
            next(iterator)
            assert len(calls) <= 5 * k + 2


def test_the_bound_is_a_number_of_elements() -> None:
    options = di.data.Options()
    with pytest.raises(TypeError, match="option 'run_ahead' must be of type int"):
        options.run_ahead = 0.5
    with pytest.raises(ValueError, match="option 'run_ahead' must be at least 0, got -1"):
        options.run_ahead = -1
    options.run_ahead = 3
    later = RANGE(3).with_options(options).with_options(di.data.Options())
    assert later.options().run_ahead == 3
