# SPDX-License-Identifier: Apache-2.0
import sys
from contextlib import suppress
from typing import Any

import pytest

import distinput as di
from distinput.errors import InvalidArgumentError, StateError
from distinput.run.run import Run
from tests.ops.iterating import state_bytes

RANGE = di.data.Dataset.range


def through(dataset: di.data.Dataset, counted: bool) -> di.data.Dataset:
    return dataset if counted else dataset.filter(lambda x: True)


@pytest.mark.parametrize("counted", [True, False])
@pytest.mark.parametrize("buffer", [1, 2, 7, 20, 100])
def test_every_element_once_and_never_earlier_than_the_buffer_allows(buffer: int, counted: bool) -> None:
    order = through(RANGE(20), counted).shuffle(buffer, seed=5).to_list()
    assert sorted(order) == list(range(20))
    assert all(x < place + buffer for place, x in enumerate(order))


def test_a_buffer_of_one_changes_nothing() -> None:
    assert RANGE(9).shuffle(1).to_list() == list(range(9))


def test_a_seed_gives_the_same_order_on_both_ways_to_read() -> None:
    assert RANGE(50).shuffle(7, seed=2).to_list() == through(RANGE(50), False).shuffle(7, seed=2).to_list()


def test_a_buffer_of_all_elements_has_another_order_in_each_pass() -> None:
    dataset = RANGE(50).shuffle(di.data.UNKNOWN_CARDINALITY, seed=2)
    assert dataset.to_list() != dataset.to_list()
    assert dataset.node.reshuffles


def test_passes_differ_unless_told() -> None:
    anew, kept = RANGE(50).shuffle(50, seed=2), RANGE(50).shuffle(50, seed=2, reshuffle_each_iteration=False)
    assert anew.to_list() != anew.to_list()
    assert kept.to_list() == kept.to_list()


@pytest.mark.parametrize(
    "args, error, message",
    [
        ((0,), InvalidArgumentError, "shuffle: buffer_size must be greater than zero, got 0"),
        ((1.5,), TypeError, "shuffle: buffer_size must be an integer, got 1.5"),
        ((2, "x"), TypeError, "shuffle: seed must be an integer, got 'x'"),
    ],
)
def test_arguments_are_checked(args: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        RANGE(3).shuffle(*args)


@pytest.mark.parametrize("counted", [True, False])
def test_the_state_holds_positions_only(counted: bool) -> None:
    assert state_bytes(through(RANGE(30_000), counted).shuffle(10_000, seed=1), 100) < 400


def test_a_state_behind_the_end_is_refused() -> None:
    dataset = through(RANGE(20), counted=False).shuffle(7, seed=1)
    node = dataset.node
    state = {**node.start(0), "row": 3 * 10**18}
    with pytest.raises(StateError, match="shuffle: the state is after the end of the data"):
        next(node.open(state, Run()))


def test_a_state_at_a_place_is_asked_of_each_step_once() -> None:
    def starts(steps: int) -> int:
        dataset = RANGE(60)
        for _ in range(steps):
            dataset = dataset.skip(1).shuffle(3, seed=1)
        calls = 0

        def count(frame: Any, event: str, _: Any) -> None:
            nonlocal calls
            calls += event == "call" and frame.f_code.co_name in ("start", "start_at")

        sys.setprofile(count)
        try:
            dataset.node.start_at(0, 0)
        finally:
            sys.setprofile(None)
        return calls

    assert starts(12) <= 4 * starts(4)


@pytest.mark.parametrize("skipped", range(13))
def test_errors_have_places_where_the_first_elements_are_skipped(skipped: int) -> None:
    def checked(batch: Any) -> Any:
        if batch[0] % 6 == 2:
            raise ValueError(f"batch {batch}")
        return batch[0]

    dataset = RANGE(23).batch(2).map(checked).shuffle(4, seed=3).skip(skipped).ignore_errors()
    sound = {0, 4, 6, 10, 12, 16, 18, 22}
    rest = dataset.to_list()
    assert len(set(rest)) == len(rest)
    assert sound.issuperset(rest)
    assert len(sound) - skipped <= len(rest) <= 12 - skipped


def some_fail(x: int) -> int:
    if x in (3, 5, 6, 9):
        raise ValueError(f"no {x}")
    return x


SOME_FAIL = RANGE(13).map(some_fail, output_signature=di.TensorSpec([], "int64"))


def _told(iterator: Any) -> list[str]:
    """The elements and errors that a loop gets which goes on behind errors."""
    seen: list[str] = []
    while True:
        try:
            seen.append(str(next(iterator)))
        except StopIteration:
            return seen
        except ValueError as error:
            seen.append(str(error))


@pytest.mark.parametrize("steps", [1, 2, 3])
@pytest.mark.parametrize("seed", range(6))
def test_a_loop_that_goes_on_behind_errors_meets_every_element_once(steps: int, seed: int) -> None:
    dataset = SOME_FAIL
    for step in range(steps):
        dataset = dataset.shuffle(7, seed=seed + step, reshuffle_each_iteration=False)
    assert sorted(_told(iter(dataset))) == sorted([f"no {x}" if x in (3, 5, 6, 9) else str(x) for x in range(13)])


@pytest.mark.parametrize("skipped", [1, 3, 6])
def test_errors_that_wait_while_the_buffer_is_filled_again_follow_a_restart(skipped: int) -> None:
    dataset = SOME_FAIL
    for size in (7, 4):
        dataset = dataset.shuffle(size, seed=size, reshuffle_each_iteration=False)
    dataset = dataset.skip(skipped)
    whole = _told(iter(dataset))
    for place in range(len(whole)):
        with iter(dataset) as iterator:
            for _ in range(place):
                with suppress(ValueError):
                    next(iterator)
            assert _told(dataset.restore(iterator.state())) == whole[place:]
