# SPDX-License-Identifier: Apache-2.0
"""What is counted of a node: its elements, its batches and their rows."""

import re

import pytest

import distinput as di
from distinput.data.dataset import Dataset
from distinput.plan.node import INFINITE, UNKNOWN
from tests.sharding.ops_of_others import Halves, Packed, Squares, Sums, Tripled

RANGE = di.data.Dataset.range


# --- counts


@pytest.mark.parametrize(
    "dataset, count",
    [
        (RANGE(7), 7),
        (RANGE(7).repeat(), INFINITE),
        (RANGE(7).filter(lambda x: x > 2), UNKNOWN),
        (RANGE(7).batch(3).unbatch(), 7),
        (RANGE(7).batch(3).rebatch(2), 4),
        (RANGE(7).batch(3).rebatch([2, 0, 1]).take(4), 4),
        (RANGE(7).batch(3).unbatch().map(lambda x: x).batch(2), 4),
        (RANGE(7).batch(3).repeat().unbatch(), INFINITE),
        (RANGE(3).flat_map(lambda n: RANGE(n)), 3),
        (RANGE(7).filter(lambda x: x > 2).apply(di.data.experimental.assert_cardinality(4)).batch(3), 2),
        (RANGE(7).filter(lambda x: x > 2).concatenate(RANGE(3).repeat()), INFINITE),
    ],
)  # fmt: skip
def test_elements_are_counted_beyond_the_cardinality(dataset: Dataset, count: int) -> None:
    assert dataset.node.count_elements() == count
    if count >= 0:
        assert len(dataset.to_list()) == count


def test_steps_of_others_are_counted_through() -> None:
    uncounted = RANGE(7).batch(3).unbatch().node
    assert uncounted.cardinality == UNKNOWN
    assert [op(uncounted).count_elements() for op in (Tripled, Halves, Sums)] == [7, 14, 7]
    assert Squares(4, False).count_elements() == UNKNOWN


# --- batches


@pytest.mark.parametrize(
    "dataset, sizes",
    [
        (RANGE(7).batch(3), [3, 3, 1]),
        (RANGE(7).batch(3, drop_remainder=True), [3, 3]),
        (RANGE(7).batch(3).repeat(2), [3, 3, 1, 3, 3, 1]),
        (RANGE(7).batch(3).skip(1).shard(2, 1), [1]),
        (RANGE(7).batch(3).rebatch([2, 1]), [2, 1, 2, 1, 1]),
        (RANGE(6).batch(3).shuffle(2, seed=1), [3, 3]),
        (RANGE(7).batch(3).concatenate(RANGE(2).batch(3)), [3, 3, 1, 2]),
        (RANGE(7).batch(3).prefetch(1).copied(), [3, 3, 1]),
        (RANGE(6).batch(3).cache(), [3, 3]),
        (RANGE(6).padded_batch(4), [4, 2]),
        (Dataset(Packed(RANGE(7).node, 2)), [2, 2, 2, 1]),
    ],
)
def test_rows_of_batches_are_known_beforehand(dataset: Dataset, sizes: list[int]) -> None:
    told = dataset.node.batch_sizes()
    assert told is not None
    assert told.flat().tolist() == sizes == [len(batch) for batch in dataset]


@pytest.mark.parametrize(
    "dataset",
    [
        RANGE(7).filter(lambda x: x > 2).batch(3),
        RANGE(7).batch(3).shuffle(2, seed=1),
        RANGE(7).batch(3).repeat(),
        RANGE(7).batch(3).filter(lambda x: x[0] > 2),
        RANGE(7),
    ],
)
def test_rows_of_batches_that_are_not_known(dataset: Dataset) -> None:
    assert dataset.node.batch_sizes() is None


@pytest.mark.parametrize(
    "dataset, rows",
    [
        (RANGE(9).batch(4), 4),
        (RANGE(9).batch(4, num_parallel_calls=2), None),
        (RANGE(9).padded_batch(4).prefetch(1).take(2).repeat(), 4),
        (RANGE(9).batch(4).filter(lambda x: True), 4),
        (RANGE(9).batch(4).map(lambda x: x), None),
        (RANGE(9).batch(4).take_while(lambda x: True), None),
        (RANGE(9).batch(4).concatenate(RANGE(9).batch(4)), 4),
        (RANGE(9).batch(4).concatenate(RANGE(9).batch(5)), None),
        (di.data.Dataset.zip(RANGE(9).batch(4), RANGE(9).batch(4)), 4),
        (Dataset(Packed(RANGE(9).node, 4)), 4),
    ],
)
def test_the_last_batch_tells_the_rows(dataset: Dataset, rows: int | None) -> None:
    assert dataset.node.rows_per_batch == rows


def test_full_batches_are_those_of_every_batch_that_is_seen() -> None:
    both = RANGE(7).batch(3).prefetch(1).concatenate(RANGE(4).batch(3))
    assert Dataset(both.node.with_full_batches()).to_list() == [[0, 1, 2], [3, 4, 5], [0, 1, 2]]
    mapped = RANGE(7).batch(3).map(lambda x: x)
    assert len(Dataset(mapped.node.with_full_batches()).to_list()) == 3


def test_autotune_is_told_by_its_name() -> None:
    ahead = RANGE(9).map(abs, num_parallel_calls=di.data.AUTOTUNE).prefetch(di.data.AUTOTUNE)
    step = "prefetch(buffer_size=AUTOTUNE)"
    assert str(ahead.node) == step
    assert f"{step}\n    map(map_func=abs, num_parallel_calls=AUTOTUNE)" in re.sub("  int64.*", "", ahead.explain())
    assert str(RANGE(9).take(-1).node) == "take(count=-1)"
