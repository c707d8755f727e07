# SPDX-License-Identifier: Apache-2.0
"""Policy HINT: elements are divided where the pipeline says so, and nowhere else."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import distinput as di
from tests.distribute.workers import by_step, on_workers, rows_of, with_policy

HINT = di.data.experimental.AutoShardPolicy.HINT
MARK = di.data.experimental.SHARD_HINT
shard = di.data.experimental.auto_shard_dataset


@pytest.mark.parametrize("worker, batches", [(0, [[0, 2], [4]]), (1, [[1, 3], [5]])])
def test_elements_are_divided_at_the_hint(worker: int, batches: list[list[int]]) -> None:
    dataset = with_policy(di.data.Dataset.range(6).shard(MARK, MARK).batch(2), HINT)
    assert shard(dataset, 2, worker).to_list() == batches


def test_every_hint_of_a_pipeline_counts() -> None:
    both = di.data.Dataset.zip(
        di.data.Dataset.range(4).shard(MARK, MARK), di.data.Dataset.range(10, 14).shard(MARK, MARK)
    )
    assert shard(with_policy(both, HINT), 2, 1).to_list() == [(1, 11), (3, 13)]


def test_other_shards_stay() -> None:
    dataset = with_policy(di.data.Dataset.range(6).shard(2, 0), HINT)
    assert shard(dataset, 3, 2).to_list() == [0, 2, 4]


@pytest.mark.parametrize(
    "step",
    [
        lambda lines: lines.map(lambda line: np.int64(line.split()[1])),
        lambda lines: lines.map(len).group_by_window(lambda size: size, lambda _, some: some.batch(2), 2).unbatch(),
    ],
)
def test_functions_behind_a_hint_are_shown_elements(tmp_path: Path, step: Any) -> None:
    """What they return is told by elements where made-up ones do not, and these are not divided yet."""
    Path(tmp_path, "lines").write_text("".join(f"n {number}\n" for number in range(5)))
    lines = di.data.TextLineDataset(tmp_path / "lines")
    dataset = with_policy(step(lines.shard(MARK, MARK)), HINT)
    assert dataset.element_spec == step(lines).element_spec
    parts = [shard(dataset, 2, worker).to_list() for worker in range(2)]
    assert parts == [step(lines.shard(2, worker)).to_list() for worker in range(2)]
    with pytest.raises(di.errors.FailedPreconditionError, match="can only be used in"):
        dataset.to_list()


@pytest.mark.parametrize("replicas", [[1], [2], [1, 1], [2, 2]])
def test_a_hint_behind_two_elements_ends(replicas: list[int]) -> None:
    """TensorFlow counts its elements as -1 as long as they are not divided, which is also how it says "no end"."""
    dataset = with_policy(di.data.Dataset.range(2).shard(MARK, MARK).batch(2), HINT)

    def steps(strategy: Any, _: int) -> Any:
        distributed = strategy.experimental_distribute_dataset(dataset)
        iterator, found = iter(distributed), []
        while (step := iterator.get_next_as_optional()).has_value():
            found.append(step.get_value())
        return rows_of(strategy, found)

    assert sorted(row for step in by_step(on_workers(replicas, steps)) for part in step for row in part) == [0, 1]


@pytest.mark.parametrize("options", [{"balanced_split": True}, {"balance_replicas": len}])
@pytest.mark.parametrize("replicas", [[1], [2], [1, 1]])
def test_batches_that_all_workers_share_leave_no_place_for_it(options: dict[str, Any], replicas: list[int]) -> None:
    dataset = with_policy(di.data.Dataset.range(24).shard(MARK, MARK).batch(4), HINT)

    def body(strategy: Any, worker: int) -> None:
        strategy.experimental_distribute_dataset(dataset, di.distribute.InputOptions(**options))

    for error in on_workers(replicas, body):
        assert isinstance(error, ValueError)
        (name,) = options
        assert re.search(rf"InputOptions\({name}.*auto_shard_policy HINT.*leave out the shard, or {name}$", str(error))
