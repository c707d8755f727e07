# SPDX-License-Identifier: Apache-2.0
"""Real pipelines, distributed: every row once, in order, in lockstep, also after a restart."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import distinput as di

replicas = st.integers(1, 5)
rows = st.integers(0, 30)
batch = st.integers(1, 9)
policy = st.sampled_from(["AUTO", "DATA", "OFF", "FILE"])


def mirrored(count: int) -> di.distribute.MirroredStrategy:
    return di.distribute.MirroredStrategy([f"CPU:{i}" for i in range(count)])


def pipeline(n: int, size: int, name: str) -> Any:
    options = di.data.Options()
    options.experimental_distribute.auto_shard_policy = di.data.experimental.AutoShardPolicy[name]
    return di.data.Dataset.range(n).map(lambda x: {"x": x, "y": (x * 2,)}).batch(size).with_options(options)


def parts(strategy: di.distribute.Strategy, steps: Any) -> list[list[list[int]]]:
    return [[part["x"].tolist() for part in strategy.experimental_local_results(step)] for step in steps]


@given(replicas, rows, batch, policy, st.booleans())
def test_every_row_is_delivered_once(r: int, n: int, size: int, name: str, balanced: bool) -> None:
    strategy = mirrored(r)
    options = di.distribute.InputOptions(balanced_split=balanced)
    dataset = strategy.experimental_distribute_dataset(pipeline(n, size, name), options)
    steps = parts(strategy, dataset)
    assert [x for step in steps for part in step for x in part] == list(range(n))
    assert len(steps) == -(-n // size)
    assert all(len(step) == r for step in steps)
    for step in dataset:
        assert strategy.gather(step, axis=0)["y"][0].dtype == np.int64
        assert strategy.reduce("SUM", step["y"][0], axis=0) == 2 * strategy.reduce("SUM", step["x"], axis=0)


@given(replicas, rows, batch, policy, st.booleans(), st.data())
def test_a_restart_gives_exactly_the_rest(r: int, n: int, size: int, name: str, balanced: bool, data: Any) -> None:
    strategy = mirrored(r)
    options = di.distribute.InputOptions(balanced_split=balanced)
    dataset = strategy.experimental_distribute_dataset(pipeline(n, size, name), options)
    whole = parts(strategy, dataset)
    at = data.draw(st.integers(0, len(whole)))
    with iter(dataset) as iterator:
        for _ in range(at):
            next(iterator)
        state = json.loads(json.dumps(iterator.state()))
    assert parts(strategy, dataset.restore(state)) == whole[at:]


@given(st.integers(1, 4), rows, batch)
def test_a_mean_over_replicas_is_the_mean_of_all_rows(r: int, n: int, size: int) -> None:
    strategy = mirrored(r)
    total, count = 0.0, 0
    for step in strategy.experimental_distribute_dataset(di.data.Dataset.range(n).batch(size)):
        here = int(strategy.reduce("SUM", strategy.run(lambda x: np.int64(x.size), args=(step,)), axis=None))
        total += float(strategy.reduce("MEAN", step, axis=0)) * here
        count += here
    assert count == n
    assert total == pytest.approx(n * (n - 1) / 2)


def test_reading_ahead_changes_nothing() -> None:
    strategy = mirrored(3)
    options = di.distribute.InputOptions(experimental_per_replica_buffer_size=4)
    plain = parts(strategy, strategy.experimental_distribute_dataset(pipeline(20, 6, "OFF")))
    assert parts(strategy, strategy.experimental_distribute_dataset(pipeline(20, 6, "OFF"), options)) == plain
