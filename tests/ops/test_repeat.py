# SPDX-License-Identifier: Apache-2.0
import itertools
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.columns.block import concat_blocks
from distinput.ops import repeat
from distinput.testing import check_dataset

RANGE = di.data.Dataset.range


@pytest.mark.parametrize("count, want", [(0, []), (1, [0, 1]), (3, [0, 1, 0, 1, 0, 1])])
def test_so_many_passes(count: int, want: list[int]) -> None:
    assert RANGE(2).repeat(count).to_list() == want
    assert len(RANGE(2).repeat(count)) == len(want)


@pytest.mark.parametrize("count", [None, -1, -5])
def test_no_count_repeats_forever(count: int | None) -> None:
    dataset = RANGE(2).repeat(count)
    assert dataset.cardinality() == di.data.INFINITE_CARDINALITY
    assert dataset.take(5).to_list() == [0, 1, 0, 1, 0]


@pytest.mark.parametrize("empty", [RANGE(0), RANGE(3).filter(lambda x: x > 5)])
def test_an_empty_input_ends_it(empty: di.data.Dataset) -> None:
    assert empty.repeat().to_list() == []


def test_each_pass_is_shuffled_anew() -> None:
    order = RANGE(20).shuffle(20, seed=4).repeat(2).to_list()
    assert sorted(order[:20]) == sorted(order[20:]) == list(range(20))
    assert order[:20] != order[20:]


@pytest.mark.parametrize("count", [1.5, "2", True])
def test_the_count_must_be_a_whole_number(count: Any) -> None:
    with pytest.raises(TypeError, match="repeat: count must be an integer, got"):
        RANGE(2).repeat(count)


def test_a_restart_goes_on_in_the_pass_that_was_saved() -> None:
    dataset = RANGE(3).repeat(2)
    it = iter(dataset)
    for _ in range(4):
        next(it)
    assert [int(x) for x in dataset.restore(it.state())] == [1, 2]


@pytest.mark.parametrize("row", [0, 3])
def test_a_place_in_no_pass_at_all_is_the_beginning(row: int) -> None:
    node = RANGE(2).repeat(0).node
    assert node.start_at(row, 0) == node.start(0)


SOURCES = {
    "few bytes": np.arange(6).reshape(3, 2),
    "many bytes": np.arange(30_000.0).reshape(3, 10_000),
    "text": [b"a", b"", b"ccc"],
    "several": {"x": np.arange(3), "y": (["u", "v", "w"], np.ones((3, 20_000)))},
    "ragged": di.RaggedTensor.from_list([[1, 2], [], [3]]),
}


@pytest.mark.parametrize("rows", SOURCES.values(), ids=SOURCES)
@pytest.mark.parametrize("count", [2, 700, None])
def test_short_passes_that_are_sent_together_are_those_that_are_sent_alone(rows: Any, count: int | None) -> None:
    source = di.data.Dataset.from_tensor_slices(rows)
    one = list(source)
    dataset = source.repeat(count)
    for place in (0, 1, 4, 5, 400, 1535, 1536, 1540, 2098):
        rest = itertools.islice(dataset.restore(moved_to(dataset, place)), 7)
        there = [(place + ahead) % 3 for ahead in range(7) if count is None or place + ahead < 3 * count]
        assert texts(rest) == texts(one[at] for at in there)
    batches = (
        source.repeat(count).ragged_batch(5).take(300) if rows is SOURCES["ragged"] else dataset.batch(5).take(300)
    )
    assert texts(batches.unbatch()) == texts(one[at % 3] for at in range(min(1500, 3 * (count or 500))))


def moved_to(dataset: di.data.Dataset, place: int) -> Any:
    """The state after so many elements, as a loop over all of them meets it."""
    it = iter(dataset)
    for _ in itertools.islice(it, place):
        pass
    return it.state()


def texts(elements: Any) -> list[str]:
    """What can be compared."""
    return [repr(element) for element in elements]


def test_short_passes_cost_less_than_a_block_each() -> None:
    with di.data.Dataset.from_tensors(np.zeros(1024)).repeat(2000).iter_blocks() as found:
        blocks = list(found)
    assert len(blocks) == 4


def test_no_more_passes_are_sent_together_than_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    joined: list[int] = []
    monkeypatch.setattr(repeat, "concat_blocks", lambda parts: joined.append(len(parts)) or concat_blocks(parts))
    assert di.data.Dataset.from_tensors(7).repeat(3).to_list() == [7, 7, 7]
    assert joined == [3]


def test_large_rows_are_not_copied_to_be_sent_together() -> None:
    rows = di.data.Dataset.from_tensors(np.zeros(1 << 18)).repeat(100)
    assert len({element.ctypes.data for element in rows}) == 1


@pytest.mark.parametrize("count", [3, None])
@pytest.mark.parametrize("rows", [8, 10])
def test_batches_of_several_passes_are_gathered_at_once_and_restart_anywhere(rows: int, count: int | None) -> None:
    def make() -> di.data.Dataset:
        wide = np.arange(rows * 64.0).reshape(rows, 64)
        return di.data.Dataset.from_tensor_slices(wide).shuffle(rows, seed=1).repeat(count).batch(4).take(6)

    assert "rules: read_for_batches" in make().explain()
    check_dataset(make)
