# SPDX-License-Identifier: Apache-2.0
"""A measurement counts what was delivered; its rates follow from a clock."""

import json
from itertools import count

import numpy as np
import pytest

import distinput as di
from distinput.errors import InvalidArgumentError
from distinput.reports.bench import bench
from tests.ops.iterating import Times


@pytest.fixture
def _one_second_an_element(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that only the loop looks at, once for each element: the steps themselves take no time."""
    ticks = count()
    monkeypatch.setattr("distinput.reports.bench._clock", lambda: float(next(ticks)))


@pytest.mark.usefixtures("_one_second_an_element")
@pytest.mark.parametrize("warm_up", [0, 3, 1000])
def test_rates_follow_from_the_clock(warm_up: float) -> None:
    told = bench(di.data.Dataset.range(40).batch(4), None, warm_up=warm_up)
    assert (told.elements, told.ended, told.first_seconds, told.seconds) == (10, True, 1.0, 11.0)
    # The pass ends a second behind its last element.
    behind = {0: (8, 9), 3: (6, 7), 1000: (9, 10)}[warm_up]
    assert told.elements_per_second == pytest.approx(behind[0] / behind[1])
    assert told.rows_per_second == pytest.approx(4 * behind[0] / behind[1])
    assert told.bytes_per_second == pytest.approx(32 * behind[0] / behind[1])


@pytest.mark.usefixtures("_one_second_an_element")
def test_it_is_broken_off_after_seconds_or_elements() -> None:
    endless = di.data.Dataset.range(2).repeat()
    for told in (bench(endless, 5.0), bench(endless, None, 5)):
        assert (told.elements, told.ended) == (5, False)


def test_what_has_no_end_must_be_given_one() -> None:
    with pytest.raises(InvalidArgumentError, match="has no end"):
        bench(di.data.Dataset.range(2).repeat(), None)


def test_without_elements_there_is_no_rate() -> None:
    told = bench(di.data.Dataset.range(0))
    assert (told.elements, told.first_seconds, told.elements_per_second, told.bytes_per_second) == (0, None, None, None)


def test_elements_that_are_no_batches_have_no_rows_and_all_their_leaves_count() -> None:
    told = bench(di.data.Dataset.from_tensors({"x": np.zeros(8), "name": b"abc"}).repeat(9), warm_up=0)
    assert told.rows_per_second is None
    assert told.bytes_per_second == pytest.approx(67 * (told.elements_per_second or 0))


def test_it_names_the_slowest_step_and_what_could_be_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    told = bench(di.data.Dataset.range(300).map(Times(monkeypatch, here=0.1)), None)
    assert told.slowest == "1:map"
    assert told.changes[0] == told.bottleneck
    assert any("prefetch(2) at the end" in change for change in told.changes)
    plain = json.loads(json.dumps(told.to_dict()))
    assert plain["stats"]["1:map"]["rows"] == plain["elements"] == 300


def test_a_pass_is_the_next_one_of_the_dataset() -> None:
    shuffled = di.data.Dataset.range(50).shuffle(50, seed=2)
    passes = [list(shuffled.iter_pass(number)) for number in range(2)]
    other = di.data.Dataset.range(50).shuffle(50, seed=2)
    bench(other)
    assert list(other) == passes[1]


@pytest.mark.usefixtures("_one_second_an_element")
def test_it_is_watched() -> None:
    seen: list[int] = []
    bench(di.data.Dataset.range(5), watch=seen.append)
    assert seen == [1, 2, 3, 4, 5]
