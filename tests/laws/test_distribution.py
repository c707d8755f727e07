# SPDX-License-Identifier: Apache-2.0
"""Laws 7 and 9 for random jobs: every row exactly once, in lockstep, with the numbers of one replica."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import distinput as di
from distinput.plan.options import AutoShardPolicy
from distinput.testing import check_distributed, check_workers
from distinput.testing.laws import shares
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


def test_workers_that_all_deliver_everything_break_the_law() -> None:
    with pytest.raises(AssertionError, match=r"2 workers of 1 replicas: missing \[\], too many \[\("):
        check_workers(lambda: with_policy(di.data.Dataset.range(7).batch(3), "OFF"), 2, 1, even=False)


def test_a_worker_that_loses_a_piece_breaks_the_law(monkeypatch: pytest.MonkeyPatch) -> None:
    def losing(dataset: Any, workers: int, worker: int, *rest: Any) -> Any:
        part = di.data.experimental.auto_shard_dataset(dataset, workers, worker, *rest)
        return part.skip(1) if worker == 1 else part

    monkeypatch.setattr(shares, "auto_shard_dataset", losing)
    with pytest.raises(AssertionError, match=r"missing \[\(.*x02.*\], too many \[\]"):
        check_workers(lambda: di.data.Dataset.range(7).batch(3), 2, 1, even=False)


def test_workers_out_of_step_break_the_law() -> None:
    def uneven() -> di.data.Dataset:
        return with_policy(built([["text", {"rows": [9, 1], "reads": None, "compression": ""}]]).batch(4), "FILE")

    check_workers(uneven, 2, 1, even=False)
    with pytest.raises(AssertionError, match=r"they have \[5, 1\] pieces, which must be equal"):
        check_workers(uneven, 2, 1, even=True)


@pytest.mark.parametrize(
    "broken, says",
    [
        (
            {"experimental_distribute_dataset": lambda whole, ds, options=None: whole(ds.skip(1), options)},
            "distributed over 2",
        ),
        ({"gather": lambda whole, value, axis: whole(value, axis)[::-1]}, "gather over 2: got"),
        ({"reduce": lambda whole, op, value, axis: whole(op, value, axis) + (op == "SUM")}, r"reduce\(SUM, axis=0\)"),
        # The mean of the replicas' means, where one has more rows than another.
        (
            {
                "reduce": lambda whole, op, value, axis: (
                    whole(op, value, axis) if op == "SUM" else np.mean([*map(np.mean, value.values)])
                )
            },
            r"reduce\(MEAN, axis=0\)",
        ),
    ],
    ids=["a row is lost", "gather in another order", "a wrong sum", "a mean of means"],
)
def test_a_strategy_that_is_wrong_breaks_the_law(
    broken: dict[str, Any], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    strategy = mirrored(2)
    check_distributed(strategy, di.data.Dataset.range(7).batch(3))
    for name, wrong in broken.items():
        whole = getattr(strategy, name)
        monkeypatch.setattr(
            strategy, name, lambda *args, whole=whole, wrong=wrong, **named: wrong(whole, *args, **named)
        )
    with pytest.raises(AssertionError, match=says):
        check_distributed(strategy, di.data.Dataset.range(7).batch(3))


def test_a_state_that_is_wrong_breaks_the_law() -> None:
    """Each batch is said to be the first one: a restart sends it again."""

    class Forgetful(type(di.data.Dataset.range(7).batch(3).node)):  # type: ignore[misc]
        def stream(self, state: Any, run: Any) -> Any:
            for block, _ in super().stream(state, run):
                yield block, self.start(0)

        def start_at(self, row: int, epoch: int) -> None:
            return None

    batches = Forgetful(di.data.Dataset.range(7).node, 3)
    with pytest.raises(AssertionError, match="restart at step"):
        check_distributed(mirrored(2), di.data.Dataset(batches))
