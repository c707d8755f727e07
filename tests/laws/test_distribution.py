# SPDX-License-Identifier: Apache-2.0
"""Laws 7 and 9 for random jobs: every row exactly once, in lockstep, with the numbers of one replica."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import distinput as di
from distinput.plan.options import AutoShardPolicy
from distinput.testing import check_distributed, check_workers
from distinput.testing.pipelines import INGREDIENTS, Pipeline, built, pipelines

FLAT = ("batch", "cache", "concatenate", "filter", "map", "prefetch", "repeat", "shard", "shuffle", "skip")
ROWS = st.integers(0, 40)
BATCH = st.integers(1, 12)


def mirrored(replicas: int) -> di.distribute.MirroredStrategy:
    return di.distribute.MirroredStrategy([f"CPU:{i}" for i in range(replicas)])


def with_policy(dataset: di.data.Dataset, policy: str) -> di.data.Dataset:
    options = di.data.Options()
    options.experimental_distribute.auto_shard_policy = AutoShardPolicy[policy]
    return dataset.with_options(options)


def records(n: int, size: int, policy: str, drop: bool) -> di.data.Dataset:
    made = di.data.Dataset.range(n).map(lambda x: {"id": x, "name": str(int(x)).encode()})
    return with_policy(made.batch(size, drop_remainder=drop), policy)


@given(st.integers(1, 4), st.integers(1, 4), ROWS, BATCH, st.sampled_from(["AUTO", "DATA"]), st.booleans())
def test_workers_hold_every_row_once(w: int, r: int, n: int, size: int, policy: str, drop: bool) -> None:
    check_workers(lambda: records(n, size, policy, drop), w, r, even=w * r > 1)


@given(st.integers(1, 4), st.integers(1, 4), BATCH, st.lists(st.integers(0, 6), min_size=4, max_size=6))
def test_workers_hold_every_line_of_their_files_once(w: int, r: int, size: int, rows: list[int]) -> None:
    source = ["text", {"rows": rows, "reads": None, "compression": ""}]
    for policy in ("AUTO", "FILE", "DATA"):
        check_workers(
            lambda policy=policy: with_policy(built([source]).batch(size), policy), w, r, even=policy == "DATA"
        )


@given(st.integers(1, 4), ROWS, BATCH, st.sampled_from(["AUTO", "DATA", "OFF", "FILE"]), st.booleans(), st.booleans())
def test_replicas_get_the_batches_and_give_their_numbers(
    r: int, n: int, size: int, policy: str, drop: bool, balanced: bool
) -> None:
    if not (drop and not balanced):  # steps of known shapes end as TensorFlow ends them
        options = di.distribute.InputOptions(balanced_split=balanced)
        check_distributed(mirrored(r), records(n, size, policy, drop), options)


@given(st.integers(1, 4), pipelines(most_ops=4, ops=[INGREDIENTS[name] for name in FLAT]), BATCH)
def test_random_batches_are_distributed_whole(r: int, pipeline: Pipeline, size: int) -> None:
    if pipeline.stackable and pipeline.exact:
        check_distributed(mirrored(r), with_policy(pipeline.build().batch(size), "DATA"))


@pytest.mark.parametrize("replicas", [1, 2, 3, 4])
def test_run_on_replicas_is_run_on_the_whole(replicas: int) -> None:
    strategy, one = mirrored(replicas), di.distribute.OneDeviceStrategy("CPU:0")
    for step, whole in zip(
        strategy.experimental_distribute_dataset(di.data.Dataset.range(23).batch(7)),
        one.experimental_distribute_dataset(di.data.Dataset.range(23).batch(7)),
        strict=True,
    ):
        many = strategy.gather(strategy.run(lambda x: x * x + 1, args=(step,)), axis=0)
        assert many.tolist() == one.run(lambda x: x * x + 1, args=(whole,)).tolist()
