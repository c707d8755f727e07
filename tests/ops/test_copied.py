# SPDX-License-Identifier: Apache-2.0
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.ops import copied
from distinput.values.nest import flatten
from tests.ops.iterating import plain

Dataset = di.data.Dataset
SOURCES = {
    "dense": lambda: Dataset.from_tensor_slices(np.arange(60_000.0)).batch(20_000),
    "ragged": lambda: Dataset.range(5).map(np.arange),
    "large ragged": lambda: Dataset.range(5).map(lambda n: np.full(200 + n, n)),
    "strings": lambda: Dataset.from_tensor_slices([["a", "bc"], ["", "d"]]),
    "crossing": lambda: (
        Dataset.from_tensors((np.arange(10.0), np.array([b"a"] * 10, object)))
        .concatenate(Dataset.from_tensors((np.arange(7.0), np.array([b"b"] * 7, object))))
        .rebatch(4)
    ),
    "several": lambda: Dataset.range(3).map(lambda n: {"a": (n, np.full((n, 2), n)), "b": np.zeros((n, n))}),
}


@pytest.mark.parametrize("large", [False, True], ids=["together", "one by one"])
@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_elements_are_the_same_and_share_no_memory(source: Any, large: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copied, "_LARGE_BYTES", -1 if large else 1 << 40)
    given = source() if source is SOURCES["crossing"] else source().cache()
    before = [plain(element) for element in given]
    kept = list(given.copied())
    assert [plain(element) for element in kept] == before
    for ours, theirs in zip(kept, given, strict=True):
        for a, b in zip(flatten(ours), flatten(theirs), strict=True):
            if isinstance(a, np.ndarray) and a.dtype != object:
                assert not np.shares_memory(a, b)
                a[...] = 77
    assert [plain(element) for element in given] == before


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_elements_copied_one_by_one_go_on_where_they_were(source: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copied, "_LARGE_BYTES", -1)
    made = source().copied()
    every = [plain(element) for element in made]
    for count in range(len(every) + 1):
        iterator = iter(made)
        assert [plain(next(iterator)) for _ in range(count)] == every[:count]
        assert [plain(element) for element in made.restore(iterator.state())] == every[count:]
    block = next(iter(made.iter_blocks()))
    assert [plain(element) for element in block.elements()] == every[: block.size]


def test_what_is_dropped_makes_room_for_what_comes() -> None:
    source = Dataset.from_tensor_slices(np.zeros((20, 40_000))).copied()
    addresses = {batch.__array_interface__["data"][0] for batch in source}
    assert len(addresses) <= 4
    assert len({batch.__array_interface__["data"][0] for batch in list(source)}) == 20


def test_rows_can_be_reached_and_counted() -> None:
    made = Dataset.range(9).copied()
    assert made.cardinality() == 9
    assert made.global_shuffle(seed=1).to_list() == Dataset.range(9).global_shuffle(seed=1).to_list()
    assert made.skip(7).to_list() == [7, 8]


def test_the_batch_size_is_known_behind_it() -> None:
    strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    cut = strategy.experimental_distribute_dataset(Dataset.range(6).batch(4).copied())
    assert [[part.tolist() for part in step.values] for step in cut] == [[[0, 1], [2, 3]], [[4], [5]]]
