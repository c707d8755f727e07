# SPDX-License-Identifier: Apache-2.0
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import distinput as di
from distinput.errors import InvalidArgumentError, StateError
from distinput.ops.shard_batches import OwnShares, ShardBatches
from distinput.plan.node import walk
from distinput.rewrite import rewrite
from tests.sharding.counting import bytes_read, put

Dataset = di.data.Dataset


def parts(dataset: Dataset, workers: int) -> list[list[list[int]]]:
    return [[x.tolist() for x in dataset.shard_batches(workers, w)] for w in range(workers)]


def test_shares_differ_by_at_most_one() -> None:
    assert parts(Dataset.range(10).batch(7), 3) == [[[0, 1, 2], [7]], [[3, 4], [8]], [[5, 6], [9]]]


def shares(dataset: Dataset, workers: int, worker: int) -> Dataset:
    """As `shard_batches`, which refuses what draws a seed: here all workers are one process, and share it."""
    return Dataset(ShardBatches(dataset.node, workers, worker))


@given(st.integers(0, 30), st.integers(1, 9), st.integers(1, 5), st.integers(1, 5), st.booleans(), st.data())
def test_a_state_goes_on_on_other_workers(
    n: int, batch: int, workers: int, others: int, counted: bool, data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, -(-n // batch)))
    seed = data.draw(st.sampled_from([None, 3]))

    def dataset() -> Dataset:
        rows = Dataset.range(n).shuffle(4, seed=seed)
        return (rows if counted else rows.filter(lambda x: True)).batch(batch)

    first, state = [], ""
    base = dataset()
    for w in range(workers):
        with iter(shares(base, workers, w)) as iterator:
            first.append([next(iterator).tolist() for _ in range(at)])
            state = json.dumps(iterator.state())
    rest = [[x.tolist() for x in shares(dataset(), others, w).restore(json.loads(state))] for w in range(others)]
    steps = [[x for part in step for x in part] for step in [*zip(*first, strict=True), *zip(*rest, strict=True)]]
    assert len(steps) == -(-n // batch)
    assert sorted(x for step in steps for x in step) == list(range(n))
    if seed is not None:
        assert steps == [x.tolist() for x in dataset()]


def test_only_own_rows_are_read() -> None:
    n = 40_000
    path = put("shares.bin", np.arange(n).tobytes())
    dataset = di.data.FixedLengthRecordDataset(path, 8).batch(100)
    bytes_read()
    rows = [sum(map(len, dataset.shard_batches(8, w))) for w in range(8)]
    assert sum(rows) == n
    assert bytes_read() <= 1.05 * 8 * n


@pytest.mark.parametrize(
    "dataset, pushed",
    [
        (Dataset.range(9).map(lambda x: x + 1).shuffle(3, seed=1).repeat(2).batch(4), True),
        (Dataset.range(9).cache().batch(4), False),
    ],
)
def test_the_plan_tells_whether_own_rows_are_read(dataset: Dataset, pushed: bool) -> None:
    node, fired = rewrite(dataset.shard_batches(2, 1).node)
    assert any(isinstance(step, OwnShares) for step in walk(node)) == pushed == ("own_shares" in fired)


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="index must be from 0 to 1, got 2"):
        Dataset.range(4).batch(2).shard_batches(2, 2)
    with pytest.raises(InvalidArgumentError, match="must have at least one dimension, got scalar"):
        Dataset.range(4).shard_batches(2, 1)


@pytest.mark.parametrize(
    "dataset",
    [
        Dataset.range(23).batch(4),
        Dataset.range(23).shuffle(23, seed=1).batch(4),
        Dataset.range(23).filter(lambda x: x != 5).batch(4),
        Dataset.range(23).shuffle(7, seed=1).map(lambda x: x + 1).batch(4).prefetch(2),
        Dataset.range(23).map(lambda x: x).batch(4).map(lambda x: x * 2),
    ],
    ids=["range", "shuffled", "filtered", "prefetched", "mapped"],
)
def test_the_state_of_a_process_without_the_step_is_taken(dataset: Dataset) -> None:
    whole = [batch.tolist() for batch in dataset]
    alone = dataset.iter_pass(0)
    for taken in range(len(whole)):
        state = json.loads(json.dumps(alone.state()))
        shared = [dataset.shard_batches(2, worker).restore(state) for worker in range(2)]
        assert [a.tolist() + b.tolist() for a, b in zip(*shared, strict=True)] == whole[taken:]
        first = dataset.shard_batches(2, 0).restore(state)
        next(first)
        again = [dataset.shard_batches(3, worker).restore(first.state()) for worker in range(3)]
        rest = [a.tolist() + b.tolist() + c.tolist() for a, b, c in zip(*again, strict=True)]
        assert rest == whole[taken + 1 :]
        next(alone)


def test_the_state_of_another_pipeline_without_the_step_is_refused() -> None:
    with pytest.raises(StateError, match="another pipeline"):
        Dataset.range(8).batch(4).shard_batches(2, 0).restore(iter(Dataset.range(8).batch(2)).state())
