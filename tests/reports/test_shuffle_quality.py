# SPDX-License-Identifier: Apache-2.0
"""How far rows travel is what a count over the delivered elements gives."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import distinput as di
from distinput.reports.shuffle_quality import WHOLE, shuffle_quality

RANGE = di.data.Dataset.range


@given(st.integers(2, 300), st.integers(1, 300), st.integers(0, 9), st.booleans())
def test_travel_is_that_of_the_elements(n: int, buffer: int, seed: int, everywhere: bool) -> None:
    dataset = RANGE(n).global_shuffle(seed=seed) if everywhere else RANGE(n).shuffle(buffer, seed=seed)
    (found,) = shuffle_quality(dataset.node)
    order = np.array(dataset.to_list())
    moved = np.arange(n) - order
    assert (found.rows, found.seen, found.counted) == (n, n, True)
    assert found.travel == pytest.approx(np.abs(moved).mean())
    assert (found.early, found.late) == (max(0, -moved.min()), max(0, moved.max()))
    assert found.neighbours == pytest.approx((np.diff(order) == 1).mean())
    assert sum(found.shares) == pytest.approx(1)
    assert sum(found.perfect_shares) == pytest.approx(1)
    if not everywhere:
        assert found.early < buffer


@given(st.integers(2, 60))
def test_the_perfect_shuffle_is_the_mean_over_all_orders(n: int) -> None:
    (found,) = shuffle_quality(RANGE(n).shuffle(n, seed=1).node)
    assert found.perfect_travel == pytest.approx((n * n - 1) / (3 * n))
    pairs = np.abs(np.subtract.outer(np.arange(n), np.arange(n))).ravel()
    wanted = np.histogram(pairs, 30, (0, n))[0] / n**2
    assert np.abs(np.cumsum(found.perfect_shares) - np.cumsum(wanted)).max() < 2 / n


def test_a_whole_shuffle_is_close_to_perfect_and_none_is_far() -> None:
    (whole,) = shuffle_quality(RANGE(20_000).global_shuffle(seed=3).node)
    assert whole.travel == pytest.approx(whole.perfect_travel, rel=0.05)
    assert abs(whole.correlation) < 0.05
    assert "larger buffer" not in whole.sentence
    (none,) = shuffle_quality(RANGE(20_000).shuffle(1, seed=3).node)
    assert (none.travel, none.neighbours, none.correlation) == (0, 1, pytest.approx(1))
    assert "larger buffer" in none.sentence


def test_of_many_rows_the_first_are_looked_at() -> None:
    (found,) = shuffle_quality(RANGE(1_000_000).global_shuffle(seed=3).node)
    assert (found.rows, found.seen) == (1_000_000, 100_000)
    assert found.travel == pytest.approx(found.perfect_travel, rel=0.05)


def test_rows_that_cannot_be_counted_are_assumed() -> None:
    (found,) = shuffle_quality(RANGE(1000).filter(lambda x: x > 3).shuffle(10, seed=1).node)
    assert not found.counted
    assert found.rows == 100_000


def test_every_shuffle_is_found_once() -> None:
    shuffled = RANGE(50).shuffle(5, seed=1)
    dataset = di.data.Dataset.zip(shuffled, shuffled).batch(2).shuffle(3, seed=2)
    assert [found.step for found in shuffle_quality(dataset.node)] == ["1:shuffle", "6:shuffle", WHOLE]
    assert shuffle_quality(RANGE(5).node) == []
    assert shuffle_quality(RANGE(1).shuffle(5).node) == []


def test_shuffled_files_and_rows_are_looked_at_together(tmp_path: Path) -> None:
    RANGE(600).write(tmp_path, "parquet", shards=6)
    names = di.data.Dataset.list_files(str(tmp_path / "*.parquet"), seed=5)
    dataset = di.data.ParquetDataset(names).map(lambda row: row["value"]).shuffle(20, seed=1).batch(7)
    *steps, whole = shuffle_quality(dataset.node)
    assert [found.step.split(":")[1] for found in steps] == ["shuffle", "shuffle"]
    order = np.concatenate(list(dataset.iter_pass(0)))
    assert (whole.step, whole.rows, whole.seen) == (WHOLE, 600, 600)
    assert whole.travel == pytest.approx(np.abs(np.arange(600) - order).mean())
    assert whole.early > 100 > 20 > steps[-1].early


def test_the_whole_is_left_out_where_it_is_not_known() -> None:
    twice = RANGE(50).shuffle(5, seed=1).shuffle(5, seed=2)
    assert [found.step for found in shuffle_quality(twice.node)] == ["1:shuffle", "2:shuffle", WHOLE]
    for dataset in (twice.repeat(2), twice.filter(lambda x: x > 3)):
        assert WHOLE not in [found.step for found in shuffle_quality(dataset.node)]
