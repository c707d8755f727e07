# SPDX-License-Identifier: Apache-2.0
"""Which record an element comes from, through ops that say which element of their input theirs are."""

from pathlib import Path

import pytest

import distinput as di
from distinput.data.dataset import Dataset
from distinput.plan.record_places import record_in_words


@pytest.fixture
def lines(tmp_path: Path) -> Dataset:
    (tmp_path / "lines.txt").write_text("a\nb\nc\nd\n")
    return di.data.TextLineDataset(str(tmp_path / "lines.txt"))


def place(dataset: Dataset, ahead: int) -> tuple[int, int] | None:
    """The row of the first record of an element of the first pass, and how many it is made of."""
    found = dataset.node.records_at(dataset.node.start(0), ahead)
    return None if found is None else (found[0]["row"], found[1])


def test_an_element_comes_from_the_record_that_all_steps_say(lines: Dataset) -> None:
    changed = lines.map(lambda x: x).skip(1).prefetch(1)
    assert [place(changed, ahead) for ahead in (0, 2)] == [(1, 1), (3, 1)]
    assert place(changed.batch(2), 1) == (3, 2)


def test_a_step_with_the_states_of_its_input_asks_that(lines: Dataset) -> None:
    selected = lines.map(lambda x: {"x": x, "y": x}).skip(1).select(["x"])
    assert [place(selected, ahead) for ahead in (0, 2)] == [(1, 1), (3, 1)]
    assert place(selected.map(lambda e: e).batch(2), 1) == (3, 2)


def test_before_and_behind_all_elements_of_a_shuffle_there_are_none(lines: Dataset) -> None:
    for shuffled in (
        lines.shuffle(2, seed=1),
        lines.shuffle(1, seed=1),
        lines.apply(di.data.experimental.assert_cardinality(4)).shuffle(2),
    ):
        assert [place(shuffled, ahead) for ahead in (-1, 4, 5)] == [None] * 3


def test_where_a_step_says_nothing_elements_come_from_nowhere(lines: Dataset) -> None:
    assert place(lines.scan(0, lambda n, x: (n + 1, x)), 0) is None
    assert place(Dataset.range(3), 0) is None


@pytest.mark.parametrize(
    "found, text",
    [
        (None, None),
        (({"file": "a", "row": None}, 1), None),
        (({"file": "a", "row": 1234}, 1), "record 1,234 of a"),
        (({"file": "a", "row": 1}, 3), "record 1 of a and the 2 after it"),
    ],
)
def test_records_are_told_in_words(found: tuple[dict[str, object], int] | None, text: str | None) -> None:
    assert record_in_words(found) == text
