# SPDX-License-Identifier: Apache-2.0
"""A rehearsal gives each worker what it would get in the job."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import distinput as di
from distinput.distribute.rehearsal import rehearse
from distinput.errors import InvalidArgumentError
from tests.depth import cases


@settings(max_examples=cases(8, 200))
@given(st.integers(1, 3), st.integers(1, 3), st.integers(0, 20), st.integers(1, 6))
def test_every_row_comes_to_one_replica(workers: int, replicas: int, rows: int, size: int) -> None:
    dataset = di.data.Dataset.range(rows).batch(size)

    def parts(distributed, strategy):  # type: ignore[no-untyped-def]
        return [[part.tolist() for part in strategy.experimental_local_results(step)] for step in distributed]

    by_worker = rehearse(dataset, workers, replicas, parts)
    assert len({len(steps) for steps in by_worker}) == 1
    steps = [[part for step in of_all for part in step] for of_all in zip(*by_worker, strict=True)]
    assert all(len(step) == workers * replicas for step in steps)
    assert [sorted(row for part in step for row in part) for step in steps] == dataset.to_list()


def test_what_a_worker_raises_is_raised() -> None:
    with pytest.raises(IndexError, match="no step 9"):
        rehearse(di.data.Dataset.range(4).batch(2), 2, 1, lambda distributed, _: distributed.locate(9))


def test_there_is_a_worker_and_a_replica() -> None:
    with pytest.raises(InvalidArgumentError, match="workers must be greater than zero, got 0"):
        rehearse(di.data.Dataset.range(4).batch(2), 0, 1, lambda *_: None)
    with pytest.raises(InvalidArgumentError, match="replicas must be greater than zero, got 0"):
        rehearse(di.data.Dataset.range(4).batch(2), 1, 0, lambda *_: None)
