# SPDX-License-Identifier: Apache-2.0
"""Grain reads our datasets, we read its data sources, and its checkpoints hold our iterators."""

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import distinput as di

grain = pytest.importorskip("grain", reason="grain is not installed; `make test` installs it")
checking = pytest.importorskip("grain.experimental")
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


PIPELINES: dict[str, Callable[[], Any]] = {
    "range": lambda: Dataset.range(12),
    "shuffle": lambda: Dataset.range(12).shuffle(5, seed=1),
    "shuffle without a seed": lambda: Dataset.range(12).shuffle(5),
    "global_shuffle": lambda: Dataset.range(12).global_shuffle(seed=1),
    "filter, shuffle, batch": lambda: Dataset.range(20).filter(lambda x: x % 3 > 0).shuffle(5, seed=2).batch(4),
    "random map": lambda: Dataset.range(9).map(lambda x, rng: x + rng.integers(0, 9), rng=True, seed=3),
    "map on threads": lambda: Dataset.range(12).map(lambda x: x * 2, num_parallel_calls=3).prefetch(4),
    "interleave": lambda: Dataset.range(4).interleave(lambda i: Dataset.range(i + 3), cycle_length=3),
    "mixture": lambda: Dataset.sample_from_datasets([Dataset.range(9), Dataset.range(10, 15)], [0.7, 0.3], seed=5),
    "balanced mixture": lambda: Dataset.sample_from_datasets(
        [Dataset.range(9), Dataset.range(10, 15)], [0.7, 0.3], balanced=True
    ),
    "pack": lambda: Dataset.range(1, 15).map(lambda n: np.full(n % 6 + 1, n)).pack(8),
    "batch_by_tokens": lambda: Dataset.range(1, 15).map(lambda n: np.full(n % 6 + 1, n)).batch_by_tokens(12),
    "rebatch": lambda: Dataset.range(30).batch(7).rebatch(4),
    "unbatch": lambda: Dataset.range(20).batch(7).unbatch(),
    "window": lambda: Dataset.range(12).window(3, shift=2).flat_map(lambda w: w),
    "repeat": lambda: Dataset.range(5).shuffle(4, seed=1).repeat(3),
    "unique": lambda: Dataset.from_tensor_slices([1, 2, 1, 3, 2, 5, 5, 4]).unique(),
    "group_by_window": lambda: Dataset.range(14).group_by_window(
        lambda x: x % 3, lambda _, d: d.batch(4), window_size=4
    ),
    "cache": lambda: Dataset.range(6).cache().repeat(2),
    "shuffled cache": lambda: Dataset.range(6).shuffle(6, seed=1).cache().shuffle(6, seed=2).repeat(2),
    "zip": lambda: Dataset.zip((Dataset.range(9), Dataset.range(9).shuffle(3, seed=1))),
    "scan": lambda: Dataset.range(9).scan(np.int64(0), lambda s, x: (s + x, s)),
    "prefetch": lambda: Dataset.range(12).prefetch(5).batch(3),
    "padded_batch": lambda: Dataset.range(1, 12).map(lambda n: np.ones(n % 5)).padded_batch(4),
    "concatenate": lambda: Dataset.range(4).concatenate(Dataset.range(3)),
    "take, skip, shard": lambda: Dataset.range(30).skip(3).take(20).shard(3, 1),
    "shard_batches": lambda: Dataset.range(14).batch(4).shard_batches(2, 1),
    "generator": lambda: Dataset.from_generator(lambda: iter(range(6)), output_signature=di.TensorSpec([], "int64")),
    "dicts": lambda: Dataset.from_tensor_slices({"b": [1, 2, 3], "a": ["x", "y", "z"]}).batch(2),
    "bucket_by_sequence_length": lambda: (
        Dataset.range(1, 14).map(lambda n: np.ones(n % 5)).bucket_by_sequence_length(len, [3], [2, 3])
    ),
    "two shuffled sources": lambda: Dataset.choose_from_datasets(
        [Dataset.range(4).shuffle(4, seed=1), Dataset.range(10, 14)], Dataset.range(2).repeat(4)
    ),
}


@pytest.mark.parametrize("name", PIPELINES)
def test_iterators_pass_the_check_that_grain_holds_its_own_to(name: str) -> None:
    """Every state gives back its own bytes, and what followed it."""
    dataset = PIPELINES[name]()
    checking.assert_equal_output_after_checkpoint(dataset)
    _ = list(dataset)  # what a pass leaves behind, such as a cache, changes nothing
    checking.assert_equal_output_after_checkpoint(dataset)
