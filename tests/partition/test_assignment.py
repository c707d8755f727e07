# SPDX-License-Identifier: Apache-2.0
"""Law 9 on numbers alone, for every small job: each row in exactly one piece, each worker with as many pieces per batch."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distinput.plan.batch_sizes import Assignment, RowRanges
from tests.depth import cases


def deals(workers: int, replicas: int, balanced: bool) -> list[Assignment]:
    pieces = workers * replicas
    if balanced:
        return [Assignment(pieces, w * replicas, period=pieces, own=replicas, balanced=True) for w in range(workers)]
    return [Assignment(pieces, w, period=workers) for w in range(workers)]


@pytest.mark.parametrize("batch", range(1, 18))
def test_every_row_once_in_the_step_of_its_batch(batch: int) -> None:
    """All N in 0..200, G in 1..17, W in 1..6, R in 1..4, both cuts.

    In `make test` of the N to 40 every third, and of the larger every 13th.
    """
    for workers in range(1, 7):
        for replicas in range(1, 5):
            for balanced in (False, True):
                mine = deals(workers, replicas, balanced)
                every = cases(3, 1)  # others for each of the jobs
                first = (batch + workers + replicas + balanced) % every
                sizes = [*range(first, 41, every), *range(41, 201, cases(13, 1))]
                for rows in sizes:
                    check(rows, batch, replicas, mine, balanced)


def check(rows: int, batch: int, replicas: int, mine: list[Assignment], balanced: bool) -> None:
    steps = -(-rows // batch)
    pieces = [RowRanges(rows, batch, False, assignment) for assignment in mine]
    assert {p.count for p in pieces} == {steps * replicas}
    bounds = [p.bounds(0, steps * replicas) for p in pieces]
    starts = np.stack([a for a, _ in bounds], 1).reshape(steps, len(mine) * replicas)  # [steps, pieces of all workers]
    sizes = np.stack([b for _, b in bounds], 1).reshape(starts.shape) - starts
    begin = np.arange(steps) * batch
    order = np.lexsort((sizes, starts), axis=1)
    starts, sizes = np.take_along_axis(starts, order, 1), np.take_along_axis(sizes, order, 1)
    assert (sizes >= 0).all()
    assert (sizes.sum(1) == np.minimum(batch, rows - begin)).all(), "a step is a global batch"
    there = sizes > 0
    gaps = np.where(there, starts - (begin[:, None] + np.cumsum(sizes, 1) - sizes), 0)
    assert (gaps == 0).all(), "pieces follow one another"
    if balanced and steps:
        assert (sizes.max(1) - sizes.min(1) <= 1).all()


@given(
    st.integers(0, 60), st.integers(1, 9), st.booleans(), st.integers(1, 5), st.integers(1, 3), st.booleans(), st.data()
)
def test_places_are_those_of_counting_through(
    rows: int, batch: int, drop: bool, workers: int, replicas: int, balanced: bool, data: st.DataObject
) -> None:
    assignment = data.draw(
        st.sampled_from(deals(workers, replicas, balanced) + [Assignment(1, w, period=workers) for w in range(workers)])
    )
    pieces = RowRanges(rows, batch, drop, assignment)
    count = pieces.count
    assert count is not None
    starts, stops = pieces.bounds(0, count)
    sizes = (stops - starts).tolist()
    places = [(piece, i) for piece, size in enumerate(sizes) for i in range(size)]
    assert [pieces.rows_before(piece) for piece in range(count + 1)] == [
        sum(sizes[:piece]) for piece in range(count + 1)
    ]
    assert [pieces.place(row) for row in range(len(places))] == places
    piece, over = pieces.place(len(places))
    assert over == 0
    assert sum(sizes[piece:]) == 0
