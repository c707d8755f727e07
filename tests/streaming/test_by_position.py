# SPDX-License-Identifier: Apache-2.0
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.plan.node import INFINITE
from distinput.streaming.by_position import positions_of

TEN = di.data.Dataset.range(10)


def fetched(dataset: Any, *rows: int) -> list[Any]:
    return list(positions_of(dataset.node).fetch(np.array(rows)).elements())


def test_an_op_that_fetches_is_asked_itself() -> None:
    positions = positions_of(TEN.map(abs).node)
    assert (positions.size, positions.node.streams) == (10, False)
    assert positions_of(TEN.repeat().node).size == INFINITE


def test_a_stream_is_read_on_for_close_rows_and_begun_anew_for_distant_ones() -> None:
    calls: list[int] = []

    def noted(x: Any) -> Any:
        calls.append(int(x))
        return x

    dataset = TEN.map(noted).window(2, drop_remainder=True)
    assert positions_of(dataset.node).node.streams
    assert dataset.element_spec is not None
    calls.clear()
    assert [list(window) for window in fetched(dataset, 4, 1, 2, 4)] == [[8, 9], [2, 3], [4, 5], [8, 9]]
    assert calls == [2, 3, 4, 5, 8, 9]


def test_the_first_step_that_cannot_be_reached_is_the_one_to_blame() -> None:
    dataset = TEN.map(abs).filter(bool).map(abs).shuffle(3)
    with pytest.raises(
        TypeError, match=r"by position: filter can only .* \(filter\(predicate=bool\), made at .*test_by_pos"
    ):
        positions_of(dataset.node)


def test_counts_that_only_files_and_batches_tell() -> None:
    batches = TEN.batch(4).rebatch([3, 1]).rebatch(3)
    assert batches.cardinality() == di.data.UNKNOWN_CARDINALITY
    assert positions_of(batches.batch(2).node).size == 2
    assert [batch.tolist() for batch in fetched(batches, 3, 0)] == [[9], [0, 1, 2]]
