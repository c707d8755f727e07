# SPDX-License-Identifier: Apache-2.0
"""Shares of workers of Ray Train, and datasets of Ray Data, with a real Ray where it is installed."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import distinput as di
from distinput.errors import FailedPreconditionError, InvalidArgumentError, StateError
from tests.docs.pages import snippets

ray = pytest.importorskip("ray", reason="ray is not installed; `pip install 'distinput[ray]'`")

Dataset = di.data.Dataset

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def running() -> Iterator[None]:
    import ray.data

    root = str(Path(di.__file__).parents[1])
    ray.init(
        num_cpus=3, include_dashboard=False, log_to_driver=False, logging_level="ERROR",
        runtime_env={"env_vars": {"PYTHONPATH": root}},
    )  # fmt: skip
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield
    ray.shutdown()


def rows(shares: list[Any]) -> list[list[list[int]]]:
    """Of each share, of each step."""
    return [[np.asarray(step).tolist() for step in share] for share in shares]


def test_shares_have_equal_steps_and_every_record_once() -> None:
    for size in (1, 2, 3):
        shares = [di.interop.ray.shard(Dataset.range(11).batch(4), rank, size) for rank in range(size)]
        assert {len(share) for share in shares} == {3}
        found = rows(shares)
        assert {len(steps) for steps in found} == {3}
        assert sorted(x for steps in found for step in steps for x in step) == list(range(11))


def test_the_position_is_restored_on_other_numbers_of_workers(tmp_path: Path) -> None:
    def dataset() -> Any:
        return Dataset.range(30).shuffle(30, seed=4).batch(6)

    whole = [step.tolist() for step in dataset()]
    share = di.interop.ray.shard(dataset(), 0, 2)
    steps = iter(share)
    next(steps), next(steps)
    share.save(tmp_path)
    again = [di.interop.ray.shard(dataset(), rank, 3) for rank in range(3)]
    for one in again:
        one.restore(tmp_path)
        one.set_epoch(0)  # as loops say at the beginning of each epoch; it is the one that the position is in
    for wanted, *parts in zip(whole[2:], *again, strict=True):
        assert sorted(int(x) for part in parts for x in part) == sorted(wanted)
    second = [np.concatenate(parts).tolist() for parts in zip(*again, strict=True)]
    assert sorted(x for step in second for x in step) == list(range(30))
    assert [sorted(step) for step in second] != [sorted(step) for step in whole]
    assert share.state_dict() == share.state_dict()
    with pytest.raises(StateError):
        share.load_state_dict({"kind": "other"})
    fresh = [di.interop.ray.shard(dataset(), rank, 2) for rank in range(2)]
    for one in fresh:
        one.set_epoch(1)
    assert [np.concatenate(parts).tolist() for parts in zip(*fresh, strict=True)] == second


def test_what_is_refused() -> None:
    with pytest.raises(FailedPreconditionError, match=r"this process is not a worker of Ray Train.*say rank= and"):
        di.interop.ray.shard(Dataset.range(4).batch(2))
    with pytest.raises(InvalidArgumentError, match="rank must be from 0 to 1, got 2"):
        di.interop.ray.shard(Dataset.range(4).batch(2), 2, 2)
    with pytest.raises(InvalidArgumentError, match="no batch axis"):
        di.interop.ray.shard(Dataset.range(4), 0, 2)
    with pytest.raises(InvalidArgumentError, match="sharded already"):
        di.interop.ray.shard(Dataset.range(4).shard(2, 0).batch(2), 0, 2)
    with pytest.raises(InvalidArgumentError, match=r"expected a ray.data.Dataset"):
        di.interop.ray.from_ray([1])


def blocks() -> Any:
    import ray.data

    tables = [
        pa.table({"x": range(a, b), "t": [str(i) for i in range(a, b)]}) for a, b in ((0, 5), (5, 6), (6, 6), (6, 13))
    ]
    return ray.data.from_arrow(tables)


def test_blocks_of_a_dataset_are_counted_and_exact(running: None) -> None:
    made = di.interop.ray.from_ray(blocks())
    assert made.element_spec == {"x": di.TensorSpec([], "int64"), "t": di.TensorSpec([], "string")}
    assert len(made) == 13
    assert [int(row["x"]) for row in made] == list(range(13))
    assert [int(row["x"]) for row in made.skip(4).take(4)] == [4, 5, 6, 7]
    assert sorted(int(row["x"]) for row in made.global_shuffle(seed=1)) == list(range(13))
    with iter(made.batch(4)) as batches:
        next(batches)
        state = batches.state()
    assert [int(x) for batch in made.batch(4).restore(state) for x in batch["x"]] == list(range(4, 13))
    for policy in ("DATA", "BALANCED", "FILE"):
        assert policy in made.batch(4).explain(
            num_workers=2, policy=getattr(di.data.experimental.AutoShardPolicy, policy)
        )
    shares = [di.interop.ray.shard(made.map(lambda row: row["x"]).batch(4), rank, 3) for rank in range(3)]
    found = rows(shares)
    assert {len(steps) for steps in found} == {4}
    assert sorted(x for steps in found for step in steps for x in step) == list(range(13))
    arrays = ray.data.from_numpy(np.arange(12.0).reshape(2, 2, 3))
    assert di.interop.ray.from_ray(arrays).element_spec == {"data": di.TensorSpec([2, 3], "float64")}
    assert di.interop.ray.from_ray(arrays).to_list()[1] == {"data": [[6, 7, 8], [9, 10, 11]]}


def test_the_program_of_the_guide_prints_what_it_says(tmp_path: Path) -> None:
    page = Path(di.__file__).parents[1] / "docs" / "from" / "ray.md"
    program = next(each.code for each in snippets(page.read_text(encoding="utf-8")) if each.reason)
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert [done.stdout.strip()] == re.findall(r"# (\[\[.*?\]\])", program)


def test_the_split_of_a_worker_is_a_stream(running: None) -> None:
    made = di.interop.ray.from_ray(blocks().iterator())
    assert made.cardinality() == di.data.UNKNOWN_CARDINALITY
    for _ in range(2):
        assert sorted(int(row["x"]) for row in made) == list(range(13))


def train(config: dict[str, Any]) -> None:
    """What each worker runs; the first one fails once in the middle, and all begin again from the checkpoint."""
    import json
    import tempfile

    import ray.train

    import distinput

    rank, log = ray.train.get_context().get_world_rank(), Path(config["log"])
    dataset = distinput.interop.ray.from_ray(config["blocks"]).map(lambda row: row["x"]).batch(4)
    share = distinput.interop.ray.shard(dataset)
    done = ray.train.get_checkpoint() is not None
    if not done:
        split = distinput.interop.ray.from_ray(ray.train.get_dataset_shard("exact"))
        (log / f"exact-{rank}.json").write_text(json.dumps(sorted(int(row["x"]) for row in split)))
    for number, step in enumerate(share, start=2 if done else 0):
        (log / f"step-{rank}-{number}.json").write_text(json.dumps(step.tolist()))
        with tempfile.TemporaryDirectory() as folder:
            checkpoint = None
            if rank == 0:
                share.save(folder)
                checkpoint = ray.train.Checkpoint.from_directory(folder)
            ray.train.report({"step": number}, checkpoint=checkpoint)
        if number == 1 and rank == 0 and not done:
            raise RuntimeError("taken away")


def test_workers_of_ray_train_share_a_dataset_and_continue_after_a_failure(running: None, tmp_path: Path) -> None:
    import json

    import ray.train
    from ray.train.torch import TorchTrainer

    log = tmp_path / "log"
    log.mkdir()
    result = TorchTrainer(
        train,
        train_loop_config={"blocks": blocks().materialize(), "log": str(log)},
        scaling_config=ray.train.ScalingConfig(num_workers=2, resources_per_worker={"CPU": 0.5}),
        run_config=ray.train.RunConfig(
            storage_path=str(tmp_path / "results"), failure_config=ray.train.FailureConfig(max_failures=1)
        ),
        datasets={"exact": blocks()},
        dataset_config=di.interop.ray.exact_data_config(),
    ).fit()
    assert result.metrics["step"] == 3
    found = [json.loads((log / f"step-{rank}-{step}.json").read_text()) for rank in range(2) for step in range(4)]
    assert sorted(x for step in found for x in step) == list(range(13))
    assert len(list(log.glob("step-*"))) == 8
    exact = [json.loads((log / f"exact-{rank}.json").read_text()) for rank in range(2)]
    assert sorted(exact[0] + exact[1]) == list(range(13))
