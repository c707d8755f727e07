# SPDX-License-Identifier: Apache-2.0
"""Loaders of other libraries, which are imported by the functions that make one."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from threading import Lock
from typing import Any

from distinput.testing.judge.loaders.records import NumberedRecords, once, spans, tar_files

# ----------------------------------------------------------------------------
# Loaders of PyTorch.
# ----------------------------------------------------------------------------


def padding_sampler(
    records: int, rank: int, ranks: int, batch: int, seed: int, epoch: int, workers: int, *, drop_last: bool = False
) -> Any:
    """`DistributedSampler` as it is by default."""
    from torch.utils.data import DataLoader, DistributedSampler

    numbers: Any = NumberedRecords(records)
    sampler: Any = DistributedSampler(numbers, ranks, rank, seed=seed, drop_last=drop_last)
    sampler.set_epoch(epoch)
    return DataLoader(numbers, batch, sampler=sampler, num_workers=workers)


dropping_sampler = partial(padding_sampler, drop_last=True)


def stateful_loader(records: int, rank: int, ranks: int, batch: int, seed: int, epoch: int, workers: int) -> Any:
    """The loader and the sampler of torchdata, which have states."""
    from torchdata.stateful_dataloader import StatefulDataLoader
    from torchdata.stateful_dataloader.sampler import StatefulDistributedSampler

    numbers: Any = NumberedRecords(records)
    sampler = StatefulDistributedSampler(numbers, ranks, rank, seed=seed)
    sampler.set_epoch(epoch)
    return StatefulDataLoader(numbers, batch, sampler=sampler, num_workers=workers)


# ----------------------------------------------------------------------------
# What Accelerate makes of a loader of PyTorch.
# ----------------------------------------------------------------------------


def prepared(
    records: int,
    rank: int,
    ranks: int,
    batch: int,
    seed: int,
    workers: int,
    *,
    even_batches: bool = True,
    stateful: bool = False,
) -> Any:
    """`Accelerator.prepare` as it is by default, with a seed of its own for the order."""
    from accelerate.data_loader import prepare_data_loader
    from accelerate.state import PartialState
    from torch.utils.data import DataLoader

    PartialState(cpu=True)
    numbers: Any = NumberedRecords(records)
    return prepare_data_loader(
        DataLoader(numbers, batch, shuffle=True, num_workers=workers),
        num_processes=ranks,
        process_index=rank,
        put_on_device=False,
        use_seedable_sampler=True,
        even_batches=even_batches,
        use_stateful_dataloader=stateful,  # the loaders of torchdata
        data_seed=seed,
    )


prepared_uneven = partial(prepared, even_batches=False)
prepared_stateful = partial(prepared, stateful=True)


# ----------------------------------------------------------------------------
# Loaders of Grain.
# ----------------------------------------------------------------------------


def elastic(records: int, rank: int, ranks: int, global_batch: int, seed: int, epoch: int) -> Any:
    """`ElasticIterator`, which continues with other ranks."""
    import grain

    order = grain.MapDataset.range(records).shuffle(seed=1000 * seed + epoch)
    return grain.experimental.ElasticIterator(order, global_batch, grain.sharding.ShardOptions(rank, ranks))


def map_slices(records: int, rank: int, ranks: int, batch: int, seed: int, epoch: int) -> Any:
    """Every n-th record of a `MapDataset`, in batches."""
    import grain

    order = grain.MapDataset.range(records).shuffle(seed=1000 * seed + epoch)
    return order[rank::ranks].batch(batch).to_iter_dataset()


def index_loader(records: int, rank: int, ranks: int, batch: int, seed: int, epoch: int, workers: int) -> Any:
    """`DataLoader` with an `IndexSampler`."""
    import grain.python as grain

    _parse_no_flags()
    sampler = grain.IndexSampler(
        records, grain.ShardOptions(rank, ranks), shuffle=True, seed=1000 * seed + epoch, num_epochs=1
    )
    source = grain.RangeDataSource(0, records, 1)
    return grain.DataLoader(data_source=source, sampler=sampler, operations=[grain.Batch(batch)], worker_count=workers)


def _parse_no_flags() -> None:
    """Its worker processes take the flags of this one, which has none."""
    from absl import flags

    if not flags.FLAGS.is_parsed():
        flags.FLAGS.mark_as_parsed()


# ----------------------------------------------------------------------------
# Loaders of Hugging Face's datasets.
# ----------------------------------------------------------------------------


def huggingface_split_by_node(records: int, rank: int, ranks: int, batch: int) -> Any:
    """An iterable dataset with a shard for each file, split by rank, in its own batches."""
    from datasets import IterableDataset
    from datasets.distributed import split_dataset_by_node

    dataset: Any = IterableDataset.from_generator(_records, gen_kwargs={"spans": spans(records)})
    return split_dataset_by_node(dataset, rank, ranks).batch(batch)


def shuffled_stream(records: int, rank: int, ranks: int, batch: int, seed: int) -> Any:
    """An Arrow table as a stream, shuffled in a buffer of 16, split by rank, in its own batches."""
    return _stream(records, rank, ranks, seed, 16).batch(batch)


def stream_in_128(records: int, rank: int, ranks: int, batch: int, seed: int) -> Any:
    """The same in a buffer of 128, batched by torchdata's loader, which saves the state of the stream."""
    from torchdata.stateful_dataloader import StatefulDataLoader

    return StatefulDataLoader(_stream(records, rank, ranks, seed, 128), batch)


def _stream(records: int, rank: int, ranks: int, seed: int, buffer: int) -> Any:
    from datasets import Dataset
    from datasets.distributed import split_dataset_by_node

    table = Dataset.from_dict({"id": list(range(records))})
    stream: Any = table.to_iterable_dataset(num_shards=1).shuffle(seed=seed, buffer_size=buffer)
    return split_dataset_by_node(stream, rank, ranks)


def _records(spans: Sequence[range]) -> Iterator[Mapping[str, int]]:
    for span in spans:
        for record in span:
            yield {"id": record}


# ----------------------------------------------------------------------------
# Loaders of MosaicML Streaming, whose ranks are processes that share memory and are told their rank by the environment.
# ----------------------------------------------------------------------------


def streaming(records: int, batch: int, seed: int, workers: int) -> Any:
    """Shards of a folder, shuffled, through the library's own loader."""
    from streaming import MDSWriter, StreamingDataLoader, StreamingDataset

    def write(folder: Path) -> None:
        with MDSWriter(out=str(folder), columns={"id": "int"}, size_limit=200) as writer:
            for record in range(records):
                writer.write({"id": record})

    folder = once(f"mds-{records}", write)
    dataset = StreamingDataset(local=str(folder), shuffle=True, shuffle_seed=seed, batch_size=batch)
    return StreamingDataLoader(dataset, batch_size=batch, num_workers=workers)


# ----------------------------------------------------------------------------
# Loaders of LitData, whose ranks are processes that ask PyTorch for their rank.
# ----------------------------------------------------------------------------


def litdata_stream(records: int, batch: int, seed: int, workers: int) -> Any:
    """A folder of chunks, shuffled, through the library's own loader, which has states."""
    import torch.distributed
    from litdata import StreamingDataLoader, StreamingDataset
    from litdata.streaming import Cache

    def write(folder: Path) -> None:
        with _environment({"WORLD_SIZE": "1"}):  # or the one rank that writes waits for files of the others
            cache = Cache(str(folder), chunk_size=20)
            for record in range(records):
                cache[record] = {"id": record}
            cache.done()
            cache.merge()

    folder = once(f"litdata-{records}", write)
    if int(os.environ.get("WORLD_SIZE", "1")) > 1 and not torch.distributed.is_initialized():
        torch.distributed.init_process_group("gloo")
    dataset = StreamingDataset(str(folder), shuffle=True, seed=seed)
    return StreamingDataLoader(dataset, batch_size=batch, num_workers=workers)


# ----------------------------------------------------------------------------
# Loaders of Lance.
# ----------------------------------------------------------------------------


def lance_batches(records: int, rank: int, ranks: int, batch: int, seed: int, epoch: int) -> Any:
    """A table in fragments; every n-th batch by its `ShardedBatchSampler`, in random order."""
    import lance
    import pyarrow as pa
    from lance.sampler import ShardedBatchSampler
    from lance.torch.data import LanceDataset

    def write(folder: Path) -> None:
        for span in spans(records):
            lance.write_dataset(pa.table({"id": pa.array(span, pa.int64())}), str(folder / "table"), mode="append")

    folder = once(f"lance-{records}", write)
    sampler = ShardedBatchSampler(rank, ranks, randomize=True, seed=1000 * seed + epoch)
    return LanceDataset(str(folder / "table"), batch, sampler=sampler)


def lancedb_stream(
    records: int, rank: int, ranks: int, batch: int, global_batch: int, seed: int, epoch: int, workers: int
) -> Any:
    """LanceDB's elastic loader: a step has a row of each split, and a rank has as many splits as rows in a batch."""
    import lancedb
    import pyarrow as pa
    from lancedb.streaming import StreamingDataLoader, StreamingDataset

    def write(folder: Path) -> None:
        lancedb.connect(folder).create_table("records", pa.table({"id": pa.array(range(records), pa.int64())}))

    table = lancedb.connect(once(f"lancedb-{records}", write)).open_table("records")
    dataset = StreamingDataset(
        table, num_splits=global_batch, shuffle_seed=seed, epoch=epoch, rank=rank, world_size=ranks
    )
    start = "spawn" if workers else None  # Lance is not to be forked, and says so
    loader = StreamingDataLoader(dataset, batch_size=batch, num_workers=workers, multiprocessing_context=start)
    found: Any = _Anew(partial(iter, loader))
    found.state_dict, found.load_state_dict = dataset.state_dict, dataset.load_state_dict
    return found


# ----------------------------------------------------------------------------
# Loaders of Ray Data, whose driver hands out the parts of all ranks, which are threads here.
# ----------------------------------------------------------------------------


_LOCK = Lock()


def streaming_split(records: int, rank: int, ranks: int, batch: int, seed: int, *, equal: bool = False) -> Any:
    """Every rank as much as comes, as without Ray Train; if `equal`, as many records for each, as Ray Train splits."""
    with _LOCK:
        return _Anew(partial(_splits(records, ranks, seed, equal=equal)[rank].iter_batches, batch_size=batch))


dropping_split = partial(streaming_split, equal=True)


class _Anew:
    """A loader that calls a function for each pass."""

    def __init__(self, begin: Callable[[], Iterable[Any]]) -> None:
        self._begin = begin

    def __iter__(self) -> Iterator[Any]:
        return iter(self._begin())


@cache
def _splits(records: int, ranks: int, seed: int, *, equal: bool) -> Any:
    import ray.data

    if not ray.is_initialized():
        ray.init(num_cpus=max(2, ranks), include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    ray.data.DataContext.get_current().enable_progress_bars = False
    return ray.data.range(records).random_shuffle(seed=seed).streaming_split(ranks, equal=equal)


# ----------------------------------------------------------------------------
# Loaders of TensorFlow.
# ----------------------------------------------------------------------------


_MOST = 8
"""Devices of the CPU that are made, since their number cannot be changed later."""


def distributed(records: int, rank: int, ranks: int, global_batch: int, seed: int) -> Any:
    """What a replica of a `MirroredStrategy` gets of `experimental_distribute_dataset`."""
    tf = _tensorflow()
    strategy = tf.distribute.MirroredStrategy([f"CPU:{index}" for index in range(ranks)])
    dataset = tf.data.Dataset.range(records).shuffle(records, seed=seed).batch(global_batch)
    return _Anew(partial(_of_replica, strategy.experimental_distribute_dataset(dataset), rank))


def shards(records: int, rank: int, ranks: int, batch: int, seed: int) -> Any:
    """Every n-th element, by `shard`, in batches."""
    dataset = _tensorflow().data.Dataset.range(records).shard(ranks, rank)
    return _Anew(dataset.shuffle(records, seed=seed).batch(batch).as_numpy_iterator)


def _of_replica(steps: Any, rank: int) -> Iterator[Any]:
    """One replica's part of the steps of all."""
    for step in steps:
        values = getattr(step, "values", (step,))  # of one replica, a step is its own
        yield values[rank].numpy()


@cache
def _tensorflow() -> Any:
    import tensorflow as tf

    tf.config.set_visible_devices([], "GPU")
    devices = [tf.config.LogicalDeviceConfiguration() for _ in range(_MOST)]
    tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], devices)
    return tf


# ----------------------------------------------------------------------------
# Loaders of WebDataset.
# ----------------------------------------------------------------------------


def webdataset_split_by_node(
    records: int, rank: int, ranks: int, batch: int, seed: int, epoch: int, workers: int
) -> Any:
    """Tar files, split by rank and by worker, shuffled in a buffer of 16."""
    import webdataset

    pipeline = webdataset.DataPipeline(
        webdataset.SimpleShardList(list(tar_files(records))),
        webdataset.split_by_node,
        webdataset.split_by_worker,
        webdataset.tarfile_to_samples(),
        webdataset.detshuffle(16, seed=1000 * seed + epoch),
        webdataset.decode(),
        webdataset.to_tuple("json"),
        webdataset.batched(batch),
    )
    loader = webdataset.WebLoader(pipeline, batch_size=None, num_workers=workers)
    return _Anew(partial(_as_rank, loader, rank, ranks))


def _as_rank(loader: Any, rank: int, ranks: int) -> Iterator[Any]:
    """The batches of a loader that is told its rank by variables of the environment, while it is read."""
    variables = {"RANK": str(rank), "WORLD_SIZE": str(ranks)}
    with _environment(variables):
        batches = iter(loader)
    while True:
        with _environment(variables):
            batch = next(batches, None)
        if batch is None:
            return
        yield batch


@contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
