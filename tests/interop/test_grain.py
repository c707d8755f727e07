# SPDX-License-Identifier: Apache-2.0
"""Grain reads our datasets, we read its data sources, and its checkpoints hold our iterators."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import distinput as di

grain = pytest.importorskip("grain", reason="grain is not installed; `make test` installs it")
Dataset = di.data.Dataset


def numbered(rows: int = 20) -> Any:
    return Dataset.from_tensor_slices({"x": np.arange(rows), "y": np.arange(rows) * 0.5}).map(
        lambda e: {**e, "z": -e["x"]}
    )


def test_a_dataset_is_a_data_source() -> None:
    source = di.interop.grain.source(numbered().global_shuffle(seed=4))
    assert isinstance(source, grain.sources.RandomAccessDataSource)
    items = numbered().global_shuffle(seed=4).to_list()
    assert len(source) == 20
    assert source[3] == items[3]
    batches = list(grain.MapDataset.source(source).batch(4))
    assert np.concatenate([batch["z"] for batch in batches]).tolist() == [item["z"] for item in items]


def test_several_items_are_asked_for_at_once() -> None:
    calls: list[list[int]] = []

    class Counted(Dataset):
        def __getitems__(self, indices: Any) -> Any:
            calls.append(list(indices))
            return super().__getitems__(indices)

    source = di.interop.grain.source(Counted(numbered().node))
    assert [item["x"] for item in grain.MapDataset.source(source)._getitems([5, 1, 7])] == [5, 1, 7]
    assert calls == [[5, 1, 7]]


def test_a_loader_of_grain_continues_and_knows_the_pipeline() -> None:
    def loader(dataset: Any) -> Any:
        source = di.interop.grain.source(dataset)
        sampler = grain.samplers.IndexSampler(
            len(source), grain.sharding.NoSharding(), shuffle=True, num_epochs=1, seed=1
        )
        return grain.DataLoader(data_source=source, sampler=sampler, worker_count=0)

    iterator = iter(loader(numbered()))
    first = [int(next(iterator)["x"]) for _ in range(6)]
    state = iterator.get_state()
    rest = [int(item["x"]) for item in iterator]
    assert sorted(first + rest) == list(range(20))
    again = iter(loader(numbered()))
    again.set_state(state)
    assert [int(item["x"]) for item in again] == rest
    with pytest.raises(ValueError, match="pipeline="):
        iter(loader(numbered().map(lambda e: e))).set_state(state)


def test_a_source_can_be_sent_to_worker_processes() -> None:
    source = di.interop.grain.source(Dataset.from_tensor_slices(np.arange(5)))
    again = pickle.loads(pickle.dumps(source))
    assert [int(again[i]) for i in range(5)] == list(range(5))
    assert repr(again) == repr(source)


def test_a_map_dataset_is_a_source() -> None:
    items = grain.MapDataset.range(20).map(lambda x: {"x": x}).shuffle(seed=3)
    dataset = di.interop.grain.from_grain(items)
    found = [int(element["x"]) for element in dataset]
    assert found == [int(item["x"]) for item in items]
    assert len(dataset) == 20
    assert sorted(int(element["x"]) for element in dataset.global_shuffle(seed=1)) == list(range(20))
    iterator = iter(dataset)
    for _ in range(7):
        next(iterator)
    assert [int(element["x"]) for element in dataset.restore(iterator.state())] == found[7:]


class Squares:
    """A data source as users of Grain write them."""

    def __len__(self) -> int:
        return 6

    def __getitem__(self, index: int) -> Any:
        return np.int64(index * index)


def test_a_data_source_of_a_users_own() -> None:
    assert di.interop.grain.from_grain(Squares()).batch(4).to_list() == [[0, 1, 4, 9], [16, 25]]


@pytest.mark.parametrize(
    "make, kind, says",
    [
        (lambda: di.interop.grain.source([1]), TypeError, "needs a dataset, got a list"),
        (lambda: di.interop.grain.source(Dataset.range(4).repeat()), TypeError, "infinite"),
        (lambda: di.interop.grain.from_grain(grain.MapDataset.range(4).to_iter_dataset()), TypeError, "an IterDataset cannot"),
        (lambda: di.interop.grain.from_grain(grain.MapDataset.range(4).repeat()), ValueError, "the MapDataset is endless"),
        (
            lambda: di.interop.grain.from_grain(grain.MapDataset.range(9).filter(lambda x: x % 2 == 0)).to_list(),
            TypeError,
            "is None, which is how Grain marks what a filter has left out",
        ),
    ],
)  # fmt: skip
def test_what_is_refused(make: Any, kind: type[Exception], says: str) -> None:
    with pytest.raises(kind, match=says):
        make()


def iterators() -> list[Any]:
    """An iterator of each kind, after its first element."""
    dataset = Dataset.range(40).shuffle(40, seed=2).batch(8)
    strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    made = [iter(dataset), iter(strategy.experimental_distribute_dataset(dataset))]
    for iterator in made:
        next(iterator)
    return made


@pytest.mark.parametrize("kind", [0, 1], ids=["dataset", "distributed"])
def test_checkpoints_of_grain_hold_iterators(kind: int, tmp_path: Path) -> None:
    ocp = pytest.importorskip("orbax.checkpoint")
    saved, fresh = iterators()[kind], iterators()[kind]
    with ocp.CheckpointManager(tmp_path) as manager:
        manager.save(1, args=ocp.args.Composite(data=grain.checkpoint.CheckpointSave(saved)))
        manager.wait_until_finished()
        rest = [repr(element) for element in saved]
        manager.restore(1, args=ocp.args.Composite(data=grain.checkpoint.CheckpointRestore(fresh)))
    assert [repr(element) for element in fresh] == rest
    assert len(rest) == 4
