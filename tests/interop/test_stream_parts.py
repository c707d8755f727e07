# SPDX-License-Identifier: Apache-2.0
"""Every operation of the installed `datasets.IterableDataset`: what `from_hf` gives is what a loop over the stream gives."""

import inspect
import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import distinput as di
from distinput.errors import InvalidArgumentError, StateError
from distinput.interop.huggingface import described, divides
from distinput.sharding.policies import auto_shard
from tests.depth import crossed

datasets = pytest.importorskip("datasets")
from datasets.distributed import split_dataset_by_node  # noqa: E402 - it may be missing

from_hf = di.interop.huggingface.from_hf
Change = Callable[[Any], Any]


def rows(shards: list[int]) -> Iterator[dict[str, Any]]:
    for shard in shards:
        for place in range(5):
            yield {"x": 10 * shard + place, "t": str(place)}


def generated() -> Any:
    return datasets.IterableDataset.from_generator(rows, gen_kwargs={"shards": [0, 1, 2, 3]})


def tables() -> Any:
    columns = {"x": list(range(22)), "t": [str(n % 5) for n in range(22)]}
    return datasets.Dataset.from_dict(columns).to_iterable_dataset(num_shards=4)


def typed() -> Any:
    features = datasets.Features({"x": datasets.Value("int64"), "t": datasets.Value("string")})
    return datasets.IterableDataset.from_generator(rows, features, {"shards": [0, 1, 2, 3]})


STREAMS = {"generated": generated, "tables": tables, "typed": typed}

# Operations by the method that they begin with. Those of single rows leave the shards apart.
OF_ROWS: dict[str, list[Change]] = {
    "add_column": [],
    "cast": [
        lambda s: s.cast(datasets.Features({"x": datasets.Value("int32"), "t": datasets.Value("string")})),
    ],
    "cast_column": [lambda s: s.cast_column("x", datasets.Value("float32"))],
    "decode": [lambda s: s.decode(False), lambda s: s.decode(True)],
    "filter": [
        lambda s: s.filter(lambda row: row["x"] % 3 == 0),
        lambda s: s.filter(lambda x: x % 3 == 0, input_columns=["x"]),
        lambda s: s.map(lambda row: {"y": row["x"] + 1}).filter(lambda row: row["y"] % 2),
    ],
    "map": [
        lambda s: s.map(lambda row: {"x": row["x"] + 1}),
        lambda s: s.map(lambda row: {"y": row["x"] * 2}, remove_columns=["x"]),
        lambda s: s.map(lambda row, k: {"x": row["x"] + k}, fn_kwargs={"k": 7}),
    ],
    "remove_columns": [lambda s: s.remove_columns(["t"])],
    "rename_column": [lambda s: s.rename_column("x", "z")],
    "rename_columns": [lambda s: s.rename_columns({"x": "z", "t": "u"})],
    "reshard": [lambda s: s.reshard()],
    "select_columns": [lambda s: s.select_columns(["x"])],
    "shard": [lambda s: s.shard(2, 1), lambda s: s.shard(2, 1, contiguous=False), lambda s: s.shard(4, 3)],
    "with_format": [lambda s: s.with_format("arrow"), lambda s: s.with_format("numpy").with_format(None)],
}
OF_THE_WHOLE: dict[str, list[Change]] = {
    "add_column": [lambda s: s.add_column("n", list(range(22)))],
    "batch": [
        lambda s: s.batch(5),
        lambda s: s.batch(5, drop_last_batch=True),
        lambda s: s.select_columns(["x"]).batch(3),
    ],
    "filter": [
        lambda s: s.filter(lambda row, n: n % 3 == 0, with_indices=True),
        lambda s: s.filter(lambda batch: [x == min(batch["x"]) for x in batch["x"]], batched=True, batch_size=7),
    ],
    "map": [
        lambda s: s.map(lambda row, n: {"x": n}, with_indices=True),
        lambda s: s.map(lambda batch: {"x": [sum(batch["x"])] * len(batch["x"])}, batched=True, batch_size=7),
        lambda s: s.map(lambda batch: {"s": [sum(batch["x"])]}, batched=True, batch_size=7, remove_columns=["x", "t"]),
        lambda s: s.map(lambda batch: {"s": batch["x"] * 2}, batched=True, batch_size=3, remove_columns=["x", "t"]),
        lambda s: s.map(lambda batch: batch, batched=True, batch_size=7, drop_last_batch=True),
    ],
    "repeat": [lambda s: s.repeat(2), lambda s: s.repeat(0).repeat(2), lambda s: s.repeat(None).take(50)],
    "set_epoch": [lambda s: at_epoch(s, 3), lambda s: at_epoch(s.shuffle(seed=1, buffer_size=5), 3)],
    "shuffle": [
        lambda s: s.shuffle(seed=1, buffer_size=5),
        lambda s: s.shuffle(seed=1, buffer_size=1),
        lambda s: s.shuffle(buffer_size=100),
        lambda s: s.shuffle(seed=2, buffer_size=4).take(6),
        lambda s: s.shuffle(seed=1, buffer_size=5).map(lambda row: {"x": row["x"] + 1}),
    ],
    "skip": [lambda s: s.skip(3), lambda s: s.skip(3).take(4), lambda s: s.skip(99)],
    "take": [lambda s: s.take(3), lambda s: s.take(0), lambda s: s.take(12).filter(lambda row: row["x"] % 2 == 0)],
    "concatenate_datasets": [
        lambda s: datasets.concatenate_datasets([s, s.take(2)]),
        lambda s: datasets.concatenate_datasets([s, s.rename_columns({"x": "a", "t": "b"})], axis=1),
    ],
    "interleave_datasets": [
        lambda s: datasets.interleave_datasets([s, s.map(lambda row: {"x": -row["x"]})]),
        lambda s: datasets.interleave_datasets([s, s.take(3)], stopping_strategy="all_exhausted"),
        lambda s: datasets.interleave_datasets([s, s], probabilities=[0.3, 0.7], seed=4),
    ],
    "split_dataset_by_node": [
        *(partial(split_dataset_by_node, rank=rank, world_size=2) for rank in range(2)),
        *(partial(split_dataset_by_node, rank=rank, world_size=3) for rank in range(3)),
        lambda s: split_dataset_by_node(s, 0, 2).take(3),
        lambda s: split_dataset_by_node(s, 0, 2).skip(1),
        lambda s: split_dataset_by_node(s.take(7), 1, 2),
        lambda s: split_dataset_by_node(s.shuffle(seed=1, buffer_size=5), 1, 2),
        lambda s: split_dataset_by_node(split_dataset_by_node(s, 1, 2), 0, 2),
        lambda s: split_dataset_by_node(s, 1, 2).map(lambda row, n: {"x": n}, with_indices=True),
        lambda s: split_dataset_by_node(s, 1, 2).batch(4),
    ],
}
OPERATIONS = {
    f"{name}-{place}{'' if apart else ' of the whole'}": (change, apart)
    for apart, table in ((True, OF_ROWS), (False, OF_THE_WHOLE))
    for name, changes in table.items()
    for place, change in enumerate(changes)
}
NO_OPERATIONS = {"column_names", "dataset_size", "description", "download_checksums", "download_size", "epoch"} | {
    *("citation", "features", "homepage", "info", "iter", "license", "n_shards", "num_columns", "num_shards"),
    *("push_to_hub", "size_in_bytes", "split", "state_dict", "supervised_keys", "version", "builder_name"),
    *("config_name", "load_state_dict"),  # a state is refused below
}


def at_epoch(stream: Any, epoch: int) -> Any:
    stream.set_epoch(epoch)
    return stream


def plain(value: Any) -> Any:
    """A value as lists and Python's numbers."""
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, pa.Table):
        return plain(value.to_pylist()[0])
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list):
        return [plain(each) for each in value]
    return value.decode() if isinstance(value, bytes) else value


def changed(change: Change, make: Callable[[], Any]) -> Any:
    """The stream with an operation behind it."""
    try:
        return change(make())
    except (TypeError, ValueError):
        pytest.skip("Hugging Face does this only where features are known")


def test_every_operation_of_the_package_is_here() -> None:
    methods = {name for name, _ in inspect.getmembers(datasets.IterableDataset) if not name.startswith("_")}
    makers = {name for name in methods if name.startswith(("from_", "to_"))}
    assert methods - makers - NO_OPERATIONS - {*OF_ROWS, *OF_THE_WHOLE} == set()


@pytest.mark.parametrize("operation, kind", crossed(OPERATIONS, STREAMS, together=1))
def test_the_rows_are_those_of_a_loop_and_restarts_are_exact(operation: str, kind: str) -> None:
    change, apart = OPERATIONS[operation]
    stream = changed(change, STREAMS[kind])
    expected = [plain(row) for row in stream]
    assert divides(stream) is apart
    features = (
        None
        if stream.features or expected
        else datasets.Features({"x": datasets.Value("int64"), "t": datasets.Value("string")})
    )
    given = from_hf(stream, features=features)
    assert [plain(row) for row in given] == expected
    assert [plain(row) for row in given] == expected, "a second pass"
    for count in {0, 1, len(expected) // 2, len(expected)}:
        with iter(given) as iterator:
            taken = [plain(next(iterator)) for _ in range(min(count, len(expected)))]
            state = json.loads(json.dumps(iterator.state()))
        assert taken + [plain(row) for row in given.restore(state)] == expected


@pytest.mark.parametrize("operation, kind", crossed(OPERATIONS, STREAMS, together=1))
def test_workers_get_every_row_once(operation: str, kind: str) -> None:
    change, apart = OPERATIONS[operation]
    stream = changed(change, STREAMS[kind])
    expected = sorted(json.dumps(plain(row)) for row in stream)
    if not expected:
        return
    given = from_hf(stream)
    if apart and stream.num_shards > 1:
        nodes = [
            auto_shard(given.node, 2, worker, 2, policy=di.data.experimental.AutoShardPolicy.FILE)
            for worker in range(2)
        ]
    else:
        nodes = [given.shard(2, worker).node for worker in range(2)]
    found = [json.dumps(plain(row)) for node in nodes for row in di.data.Dataset(node)]
    assert sorted(found) == expected


def test_a_state_of_another_operation_is_refused() -> None:
    with iter(from_hf(generated().take(6))) as iterator:
        next(iterator)
        state = iterator.state()
    assert len(list(from_hf(generated().take(6)).restore(state))) == 5
    for other in (generated().take(7), generated().skip(6), generated(), at_epoch(generated().take(6), 1)):
        with pytest.raises(StateError):
            from_hf(other).restore(state)


def test_a_shuffle_without_a_seed_is_another_stream_each_time() -> None:
    assert described(generated().shuffle(seed=1)) == described(generated().shuffle(seed=1))
    assert described(generated().shuffle()) != described(generated().shuffle())


def test_a_state_of_the_stream_is_refused() -> None:
    stream = generated()
    next(iter(stream))
    stream.load_state_dict(stream.state_dict())
    with pytest.raises(InvalidArgumentError, match=r"from_hf: a state was loaded into this stream.*restore"):
        from_hf(stream)
