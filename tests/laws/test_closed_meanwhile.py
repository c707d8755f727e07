# SPDX-License-Identifier: Apache-2.0
"""Law: closing an iteration ends it soon, also where a step gives none of what it takes; who waits gets no part of one."""

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

import distinput as di
from tests.temporary import temporary_folder

Dataset = di.data.Dataset
TOTAL, GIVEN = 3_000, 10
NUMBER = di.TensorSpec([], "int64")

NOTHING: dict[str, Callable[[Any], Any]] = {
    "batch": lambda ds: ds.batch(TOTAL),
    "bucket": lambda ds: ds.bucket_by_sequence_length(lambda _: 1, [5], [TOTAL, TOTAL], padded_shapes=[]),
    "cache": lambda ds: ds.cache(f"{temporary_folder()}/kept").filter(lambda x: x < 0),
    "filter": lambda ds: ds.filter(lambda x: x < 0),
    "flat_map": lambda ds: ds.flat_map(lambda _: Dataset.range(0)),
    "group_by_window": lambda ds: ds.group_by_window(lambda _: 0, lambda _, w: w.batch(TOTAL), TOTAL),
    "interleave": lambda ds: ds.interleave(lambda _: Dataset.range(0), cycle_length=2),
    "interleave_threads": lambda ds: ds.interleave(lambda _: Dataset.range(0), cycle_length=2, num_parallel_calls=2),
    "map_threads": lambda ds: ds.map(lambda x: x + 1, num_parallel_calls=2).batch(TOTAL),
    "on_error": lambda ds: ds.map(lambda x: 1 // int(x) * 0 // 0, on_error=di.data.SkipErrors(max_errors=None)),
    "padded_batch": lambda ds: ds.padded_batch(TOTAL),
    "ragged_batch": lambda ds: ds.ragged_batch(TOTAL),
    "shuffle": lambda ds: ds.shuffle(TOTAL),
    "skip": lambda ds: ds.skip(TOTAL),
    "take_batch": lambda ds: ds.take(TOTAL).batch(TOTAL).take(1),
    "unique": lambda ds: ds.map(lambda x: x * 0).unique().skip(1),
    "window": lambda ds: ds.window(TOTAL).flat_map(lambda w: w.batch(TOTAL)),
}


class Slow:
    """Elements that take a millisecond each; it counts them, and tells when some were made."""

    def __init__(self) -> None:
        self.made, self.begun = 0, threading.Event()

    def __call__(self, x: Any) -> int:
        self.made += 1
        if self.made == GIVEN:
            self.begun.set()
        time.sleep(0.001)
        return int(x)

    def dataset(self, source: str) -> Any:
        if source == "generator":
            return Dataset.from_generator(lambda: map(self, range(TOTAL)), output_signature=NUMBER)
        return Dataset.range(TOTAL).map(self, output_signature=NUMBER)


PASSED_ON = {("map", "shuffle"), ("map", "skip")}  # the map comes behind these


@pytest.mark.parametrize(
    "source, step", [(a, b) for a in ["map", "generator"] for b in sorted(NOTHING) if (a, b) not in PASSED_ON]
)
@pytest.mark.parametrize("behind", ["", "prefetch", "batch"])
def test_an_iteration_that_is_closed_makes_no_more_elements_and_gives_none(source: str, step: str, behind: str) -> None:
    slow = Slow()
    dataset = NOTHING[step](slow.dataset(source))
    if behind:
        dataset = getattr(dataset, behind)(1)
    iterator, told = iter(dataset), list[Any]()

    def wait() -> None:
        try:
            told.append(next(iterator, "end"))
        except Exception as error:  # noqa: BLE001 - looked at below
            told.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    assert slow.begun.wait(60)
    iterator.close()
    thread.join(60)
    made = slow.made
    assert made < TOTAL
    assert told == ["end"]
    assert next(iterator, None) is None
    assert slow.made == made


def test_an_endless_pass_that_gives_nothing_can_be_closed() -> None:
    iterator = iter(Dataset.range(3).repeat().unique().prefetch(1))
    assert [next(iterator) for _ in range(3)] == [0, 1, 2]
    iterator.close()
    assert next(iterator, None) is None
