# SPDX-License-Identifier: Apache-2.0
"""What programs on Ray expect; docs/conventions.md lists the lines, tests/interop/test_ray.py trains with a real Ray Train."""

import sys
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import distinput as di
from distinput.distribute.cluster_resolver import ClusterSpec
from distinput.distribute.seats.ray import RayDirectory

Dataset = di.data.Dataset


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    pytest.importorskip("ray", reason="ray is not installed; `pip install 'distinput[ray]'`")
    import ray
    import ray.data

    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield ray
    ray.shutdown()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_rank_and_world_size_are_those_of_ray_train(ray: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import ray.train

    context = SimpleNamespace(get_world_rank=lambda: 1, get_world_size=lambda: 3)
    monkeypatch.setattr(ray.train, "get_context", lambda: context)
    monkeypatch.setattr(ray.train, "get_checkpoint", lambda: None)
    batches = Dataset.range(10).batch(4)
    own = [step.tolist() for step in di.interop.ray.shard(batches)]
    assert own == [step.tolist() for step in di.interop.ray.shard(batches, 1, 3)]
    assert len(own) == 3


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_shard_of_a_worker_and_whole_datasets_are_read_by_arrow_blocks(ray: Any) -> None:
    import pyarrow as pa

    rows = ray.data.from_arrow([pa.table({"x": [0, 1]}), pa.table({"x": [2, 3, 4]})])
    whole = di.interop.ray.from_ray(rows)
    assert len(whole) == 5
    assert [int(row["x"]) for row in whole] == [0, 1, 2, 3, 4]
    shard = di.interop.ray.from_ray(rows.iterator())  # the type of ray.train.get_dataset_shard
    assert sorted(int(row["x"]) for row in shard) == [0, 1, 2, 3, 4]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_data_config_keeps_ray_from_dropping_rows(ray: Any) -> None:
    import ray.train

    config = di.interop.ray.exact_data_config()
    assert isinstance(config, ray.train.DataConfig)
    asked: list[Any] = []

    class Rows:
        def streaming_split(self, size: int, *, equal: bool, locality_hints: Any) -> list[int]:
            asked.append((size, equal))
            return list(range(size))

    assert config.configure({"train": Rows()}, 2, None, None) == [{"train": 0}, {"train": 1}]
    assert asked == [(2, False)]


def test_actors_are_named_and_take_no_room_in_placement_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []

    class Remote:
        def options(self, **options: Any) -> "Remote":
            asked.append(options)
            return self

        def remote(self, seat: str) -> str:
            return seat

    fake = ModuleType("ray")
    fake.is_initialized = lambda: True  # type: ignore[attr-defined]
    fake.remote = lambda _: Remote()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "ray", fake)
    for _ in range(2):  # clusters side by side in one namespace
        RayDirectory(ClusterSpec({"worker": ["", ""], "ps": [""]}))
    names = [options["name"] for options in asked]
    assert len(set(names)) == 6
    assert [name.rpartition("-")[0].rpartition("-")[2] for name in names] == ["worker", "worker", "ps"] * 2
    assert all(options["num_cpus"] == 0 for options in asked)
    assert not any(key in options for options in asked for key in ("scheduling_strategy", "placement_group"))
