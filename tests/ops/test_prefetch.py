# SPDX-License-Identifier: Apache-2.0
import itertools
import threading
from typing import Any

import pytest

import distinput as di
from distinput.errors import InvalidArgumentError
from distinput.run.run import Run
from distinput.testing import check_nothing_left, check_restart
from distinput.testing.block_sizes import small_blocks
from tests.ops.iterating import Times, until_error
from tests.patience import threads_since, wait_until

RANGE = di.data.Dataset.range


@pytest.mark.parametrize("size", [0, 1, 5, di.data.AUTOTUNE])
def test_elements_are_unchanged(size: int) -> None:
    dataset = RANGE(20).map(lambda x: x + 1).prefetch(size)
    assert dataset.to_list() == list(range(1, 21))
    assert len(dataset) == 20


def test_elements_are_made_before_they_are_asked_for() -> None:
    made = threading.Event()

    def note(x: int) -> int:
        if x == 3:
            made.set()
        return x

    dataset = RANGE(10).map(note, output_signature=di.TensorSpec([], "int64")).prefetch(8)
    with iter(dataset) as it:
        next(it)
        assert made.wait(60)


def test_the_thread_ends_with_the_iterator() -> None:
    before = threading.enumerate()
    with iter(RANGE(100_000).map(lambda x: x).prefetch(2)) as it:
        next(it)
    wait_until(lambda: not threads_since(before))


def test_an_error_comes_in_its_turn() -> None:
    dataset = RANGE(5).map(lambda x: 6 // int(2 - x), output_signature=di.TensorSpec([], "int64")).prefetch(3)
    before, error = until_error(dataset)
    assert before == [3, 6]
    assert isinstance(error, ZeroDivisionError)


@pytest.mark.parametrize("size, error", [(-2, InvalidArgumentError), (1.5, TypeError)])
def test_the_size_is_checked(size: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=f"prefetch: buffer_size must be .*, got {size}"):
        RANGE(3).prefetch(size)


INT64 = di.TensorSpec([], "int64")
AUTOTUNE = di.data.AUTOTUNE


def test_autotune_takes_a_thread_where_it_saves_time(monkeypatch: pytest.MonkeyPatch) -> None:
    both = Times(monkeypatch, here=0.1)  # the time of a function on the thread passes beside that of the loop
    dataset = RANGE(40).map(both, output_signature=INT64).prefetch(AUTOTUNE)
    with small_blocks(1):
        assert [both(int(x)) for x in dataset] == list(range(40))
    assert dataset.stats()["2:prefetch"]["chose"].startswith("a thread, up to ")


@pytest.mark.parametrize(
    "look, threads", [(1e-6, False), (1e-3, True)]
)  # seconds from one look at the clock to the next
def test_autotune_leaves_alone_what_is_cheaper_than_a_hand_over(
    monkeypatch: pytest.MonkeyPatch, look: float, threads: bool
) -> None:
    looks = itertools.count()
    monkeypatch.setattr(Run, "clock", staticmethod(lambda: look * next(looks)))
    before = threading.enumerate()
    dataset = RANGE(200_000).map_rows(lambda x: x + 1).batch(32).prefetch(AUTOTUNE)
    assert max([bool(threads_since(before)) for _ in dataset]) == threads
    if not threads:
        assert dataset.stats()["3:prefetch"]["chose"] == "inline"


def test_autotune_gives_a_thread_up_that_does_not_help(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("distinput.streaming.buffered.AGAIN", 60.0)

    slower_elsewhere = Times(monkeypatch, here=0.005, elsewhere=0.1)
    dataset = RANGE(40).map(slower_elsewhere, output_signature=INT64).prefetch(AUTOTUNE)
    choices = []
    with small_blocks(1), iter(dataset) as elements:
        for _ in elements:
            slower_elsewhere(0)
            choices.append(elements.stats()["2:prefetch"]["chose"].split(",")[0])
    assert "a thread" in choices
    assert choices[-1] == "inline"


def test_the_next_pass_begins_with_what_autotune_found(monkeypatch: pytest.MonkeyPatch) -> None:
    both = Times(monkeypatch, here=0.1)
    dataset = RANGE(40).map(both, output_signature=INT64).prefetch(AUTOTUNE)
    before = dataset.__iter__().place()
    with small_blocks(1):
        for _ in dataset:
            both(0)
        with iter(dataset) as elements:
            next(elements)
            assert elements.stats()["2:prefetch"]["chose"].startswith("a thread, up to ")
    assert dataset.__iter__().place() == before | {"epoch": 3}, "what was found is in no state"


def test_a_trial_goes_on_in_the_next_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    both = Times(monkeypatch, here=0.1)
    dataset = RANGE(7).map(both, output_signature=INT64).prefetch(AUTOTUNE)  # fewer blocks than a trial has
    chosen = []
    with small_blocks(1):
        for _ in range(4):
            for _ in dataset:
                both(0)
            chosen.append(dataset.stats()["2:prefetch"]["chose"].split(",")[0])
    assert chosen[-1] == "a thread"
    assert dataset._running.node.trial.faster  # type: ignore[union-attr]


@pytest.fixture
def restless(monkeypatch: pytest.MonkeyPatch) -> None:
    """AUTOTUNE that tries a thread and gives it up again and again."""
    monkeypatch.setattr("distinput.streaming.buffered.AGAIN", 0.0)
    for name, value in {"_AT_ONCE": -1.0, "_HAND_OVER": -1.0, "_TRIAL_BLOCKS": 2}.items():
        monkeypatch.setattr(f"distinput.ops.prefetch.{name}", value)


@pytest.mark.usefixtures("restless")
def test_nothing_is_lost_when_autotune_changes_its_mind() -> None:
    with small_blocks(1):
        dataset = RANGE(200).map(lambda x: x + 1, output_signature=INT64).prefetch(AUTOTUNE)
        seen = set()
        found = []
        with iter(dataset) as elements:
            for element in elements:
                found.append(int(element))
                seen.add(elements.stats()["2:prefetch"]["chose"].split(",")[0])
        assert found == list(range(1, 201))
        assert seen == {"inline", "a thread"}


@pytest.mark.usefixtures("restless")
def test_states_are_exact_while_autotune_changes_its_mind() -> None:
    with small_blocks(1):
        check_restart(RANGE(12).map(lambda x: x + 1, output_signature=INT64).prefetch(AUTOTUNE).batch(2))
        check_nothing_left(lambda: RANGE(30).map(lambda x: x, output_signature=INT64).prefetch(AUTOTUNE))


@pytest.mark.usefixtures("restless")
def test_an_error_comes_in_its_turn_while_autotune_changes_its_mind() -> None:
    with small_blocks(1):
        for row in range(9):
            dataset = RANGE(9).map(lambda x, row=row: 1 // int(x != row), output_signature=INT64).prefetch(AUTOTUNE)
            before, error = until_error(dataset)
            assert before == [1] * row
            assert isinstance(error, ZeroDivisionError)


def test_the_memory_budget_is_that_of_the_options() -> None:
    options = di.data.Options()
    options.autotune.ram_budget = 1
    assert RANGE(5).with_options(options).__iter__()._run.ram_budget == 1


def test_errors_keep_their_places_behind_a_prefetch() -> None:
    def some(x: int) -> int:
        if x % 3 != 1:
            raise ValueError(f"bad {x}")
        return x

    iterator = iter(di.data.Dataset.range(6).map(some, output_signature=di.TensorSpec([], "int64")).prefetch(2))
    found: list[object] = []
    while True:
        try:
            found.append(int(next(iterator)))
        except StopIteration:
            break
        except ValueError as error:
            found.append(str(error))
    assert found == ["bad 0", 1, "bad 2", "bad 3", 4, "bad 5"]
