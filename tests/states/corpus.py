# SPDX-License-Identifier: Apache-2.0
"""Pipelines whose states are kept, by name: every op, every source, and every way to distribute.

States of these pipelines lie in the folders beside this file and must be restored by every later version. So nothing here may
change: not a name, an argument, a function or a data file. What is new gets a new name.
"""

import itertools
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import distinput as di
from distinput.data.experimental.service import distribute
from distinput.distribute import InputOptions
from distinput.ops.rebatch import LegacyRebatch
from distinput.plan.options import AutoShardPolicy

Dataset: Any = di.data.Dataset
Experimental = di.data.experimental

DATA = Path(__file__).parent / "data"
_TIME = 1_700_000_000
"""When the files were last changed, which a state remembers."""


def put_data(folder: Path) -> None:
    """Copies of the data files, as they were when the states were saved."""
    for file in sorted(DATA.iterdir()):
        shutil.copyfile(file, folder / file.name)
        os.utime(folder / file.name, (_TIME, _TIME))


# ---- functions


def pairs_of(x: Any) -> Any:
    return {"m": {"a": [x, x + 1]}, "t": "text"}


def plus_one(x: Any) -> Any:
    return x + 1


def ragged_rows() -> Any:
    return di.RaggedTensor.from_row_lengths(np.arange(18), np.array([2, 0, 3, 1, 4, 0, 5, 1, 2]))


def plus_random(x: Any, rng: Any) -> Any:
    return x + rng.integers(1000)


def doubled(x: Any) -> Any:
    return x * 2


def is_kept(x: Any) -> Any:
    return x % 3 != 1


def is_small(x: Any) -> Any:
    return x < 17


def running_sum(state: Any, x: Any) -> Any:
    return state + x, state + x


def running_text(state: Any, x: Any) -> Any:
    return (state[0] + b"x", state[1] + x), x


def full(x: Any) -> Any:
    return np.full(int(x) % 5 + 1, x)


def length(x: Any) -> Any:
    return len(x)


def key(x: Any) -> Any:
    return x % 3


def pairs(_: Any, group: Any) -> Any:
    return group.batch(2)


def up_to(x: Any) -> Any:
    return Dataset.range(x)


def shuffled_up_to(x: Any) -> Any:
    return Dataset.range(x).shuffle(3)


def lines(name: Any) -> Any:
    return di.data.TextLineDataset(name)


def batched(window: Any) -> Any:
    return window.batch(3)


def parity(x: Any) -> Any:
    return x % 2


def fails_at_five(x: Any) -> Any:
    if x == 5:
        raise ValueError("five")
    return x


def numbers() -> Iterator[int]:
    return iter(range(20))


class Items:
    """Items by position."""

    def __len__(self) -> int:
        return 20

    def __getitem__(self, index: int) -> Any:
        return {"a": np.int64(index), "b": str(index)}


# ---- pipelines of one process


def uncounted(n: int) -> Any:
    return Dataset.range(n).filter(is_kept)


def texts() -> Any:
    return di.data.TextLineDataset(["a.txt", "b.txt"])


def slices() -> Any:
    return Dataset.from_tensor_slices({"a": np.arange(20), "b": [str(i) for i in range(20)]})


def parts() -> Any:
    return Dataset.from_tensor_slices(np.arange(5)).concatenate(Dataset.from_tensor_slices(np.arange(5, 12)))


def long_chain() -> Any:
    chain = uncounted(1)
    for _ in range(33):
        chain = chain.concatenate(uncounted(1))
    return chain


def endless_sample() -> Any:
    sources = [Dataset.range(9).repeat(), Dataset.range(100, 120).repeat()]
    return Dataset.sample_from_datasets(sources, [0.3, 0.7], seed=5).take(25)


def weighted_sample() -> Any:
    weights = Dataset.from_tensors(np.array([0.5, 0.5])).repeat()
    return Dataset.sample_from_datasets([Dataset.range(9), Dataset.range(100, 109)], weights, seed=6)


def chosen() -> Any:
    return Dataset.choose_from_datasets([Dataset.range(9), Dataset.range(20, 29)], Dataset.range(12).map(parity))


def listed() -> Any:
    return di.data.TextLineDataset(Experimental.write_manifest("files.json", "*.txt"))


def features() -> dict[str, Any]:
    return {"x": di.io.FixedLenFeature([], "int64"), "y": di.io.FixedLenFeature([2], "float32")}


def parsed() -> Any:
    return di.data.TFRecordDataset("a.tfrecord").batch(2).parse_example(features())


def sequence(x: Any) -> Any:
    return di.io.encode_sequence_example({"id": x}, {"x": [[x, i] for i in range(int(x) % 3)]})


def sequences() -> Any:
    context, steps = {"id": di.io.FixedLenFeature([], "int64")}, {"x": di.io.VarLenFeature("int64")}
    return Dataset.range(9).map(sequence).parse_sequence_example(context, steps)


def zero(_: Any) -> Any:
    return np.int64(0)


def total(state: Any, x: Any) -> Any:
    return state + x


def totals() -> Any:
    return Experimental.Reducer(zero, total, doubled)


def with_policy(dataset: Any, policy: str) -> Any:
    options = di.data.Options()
    options.experimental_distribute.auto_shard_policy = AutoShardPolicy[policy]
    return dataset.with_options(options)


def sharded(dataset: Any, policy: str) -> Any:
    """What the second of two workers reads."""
    return Experimental.auto_shard_dataset(with_policy(dataset, policy), 2, 1)


def table() -> pa.Table:
    """A table of two chunks."""
    return pa.concat_tables([pa.table({"a": range(i, i + 9), "b": [b"%d" % i] * 9}) for i in (0, 9)])


def database() -> sqlite3.Connection:
    """20 rows, made anew."""
    with closing(sqlite3.connect("a.db")) as made, made:
        made.execute("CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY, t TEXT)")
        made.executemany("INSERT OR IGNORE INTO t VALUES (?, ?)", [(3 * i, f"n{i}") for i in range(20)])
    return sqlite3.connect("a.db", check_same_thread=False)


def of_database(order_by: str | None) -> Any:
    return Dataset.from_sql("SELECT * FROM t", database, order_by=order_by, fetch_size=3)


def tuples_of_database() -> Any:
    database().close()
    return Experimental.SqlDataset("sqlite", "a.db", "SELECT t, id FROM t ORDER BY id", ("S", "int32"))


PIPELINES: dict[str, Callable[[], Any]] = {
    # sources
    "range": lambda: Dataset.range(3, 40, 2),
    "counter": lambda: Dataset.counter(5, -3).take(20),
    "random": lambda: Dataset.random(seed=4).take(20),
    "random_of_each_pass": lambda: Dataset.random(4, rerandomize_each_iteration=True).take(9).repeat(2),
    "tensors": lambda: Dataset.from_tensors({"a": [1, 2]}),
    "slices": slices,
    "generator": lambda: Dataset.from_generator(numbers, output_signature=di.TensorSpec([], "int64")),
    "source": lambda: Dataset.from_source(Items()),
    "source_in_threads": lambda: Dataset.from_source(list(range(20)), num_parallel_calls=2),
    "table": lambda: Dataset.from_arrow(table()),
    "arrow_stream": lambda: Dataset.from_arrow(table),
    "sql": lambda: of_database(None),
    "sql_by_key": lambda: of_database("id"),
    "sql_tuples": tuples_of_database,
    "list_files": lambda: Dataset.list_files("*.txt", shuffle=False),
    "list_files_in_any_order": lambda: Dataset.list_files("*.t*", seed=2).repeat(3),
    "manifest": listed,
    "text": texts,
    "text_in_turns": lambda: di.data.TextLineDataset(["a.txt", "b.txt"], num_parallel_reads=2),
    "tfrecord": lambda: di.data.TFRecordDataset(["a.tfrecord", "b.tfrecord"]),
    "tfrecord_gzip": lambda: di.data.TFRecordDataset("a.tfrecord.gz", compression_type="GZIP"),
    "fixed_length": lambda: di.data.FixedLengthRecordDataset(["a.txt", "b.txt"], record_bytes=3),
    "parquet": lambda: di.data.ParquetDataset(["a.parquet", "b.parquet"]),
    "arrow": lambda: di.data.ArrowDataset(["a.arrow"]),
    "npy": lambda: di.data.NpyDataset(["a.npy", "b.npy"]),
    # one op each, over inputs with and without random access
    "assert_cardinality": lambda: uncounted(9).apply(Experimental.assert_cardinality(6)),
    "batch": lambda: Dataset.range(20).batch(3),
    "batch_by_tokens": lambda: Dataset.range(1, 20).map(full).batch_by_tokens(8),
    "batch_uncounted": lambda: uncounted(30).batch(4, drop_remainder=True),
    "bucket_by_sequence_length": lambda: Dataset.range(1, 20).map(full).bucket_by_sequence_length(length, [3], [2, 3]),
    "cache": lambda: uncounted(20).cache(),
    "cache_on_disk": lambda: uncounted(20).shuffle(8, seed=1).cache("cache_on_disk"),
    "snapshot": lambda: uncounted(20).shuffle(8, seed=1).snapshot("snapshot"),
    "cache_shuffled": lambda: uncounted(20).shuffle(8, seed=1).cache().repeat(2),
    "choose": chosen,
    "concatenate": lambda: Dataset.range(7).concatenate(uncounted(9)),
    "copied": lambda: slices().copied(),
    "enumerate": lambda: uncounted(20).enumerate(3),
    "filter": lambda: uncounted(30),
    "flat_map": lambda: Dataset.range(7).flat_map(up_to),
    "flat_map_shuffled": lambda: Dataset.range(7).flat_map(shuffled_up_to),
    "flat_map_of_files": lambda: Dataset.list_files("*.txt", shuffle=False).flat_map(lines),
    "global_shuffle": lambda: Dataset.range(20).global_shuffle(seed=1),
    "global_shuffle_of_files": lambda: di.data.ParquetDataset(["a.parquet", "b.parquet"]).global_shuffle(seed=2),
    "group_by_reducer": lambda: uncounted(30).apply(Experimental.group_by_reducer(key, totals())),
    "group_by_window": lambda: uncounted(30).group_by_window(key, pairs, 4),
    "ignore_errors": lambda: Dataset.range(12).map(fails_at_five).ignore_errors(),
    "on_error": lambda: Dataset.range(12).map(fails_at_five, on_error="skip"),
    "interleave": lambda: Dataset.range(7).interleave(up_to, cycle_length=3, block_length=2),
    "interleave_in_threads": lambda: Dataset.range(7).interleave(up_to, cycle_length=4, num_parallel_calls=2),
    "interleave_files": lambda: Dataset.list_files("*.txt", shuffle=False).interleave(lines, cycle_length=2),
    "map": lambda: Dataset.range(20).map(plus_one),
    "map_with_rng": lambda: uncounted(20).map(plus_random, rng=True, seed=3),
    "map_in_threads": lambda: uncounted(20).map(plus_one, num_parallel_calls=2),
    "filter_by_expression": lambda: Dataset.range(30).filter(pc.field("value") > 4).batch(3),
    "filter_in_files": lambda: (
        di.data.ParquetDataset(["a.parquet", "b.parquet"]).filter(pc.field("id") > 1).select(["text"])
    ),
    "select_before_order": lambda: (
        di.data.ParquetDataset(["a.parquet", "b.parquet"]).shuffle(4, seed=1).select(["text"])
    ),
    "select_in_made": lambda: di.data.ParquetDataset(["a.parquet", "b.parquet"], num_parallel_reads=2).select(["text"]),
    "select": lambda: Dataset.range(30).map(lambda x: {"x": x, "y": -x}).select(["y"]).batch(4),
    "as_rows": lambda: (
        Dataset.range(20)
        .map(pairs_of)
        .as_rows(["m"])
        .as_text()
        .map(lambda row: row["m"][1]["a"] + len(row["t"]))
        .batch(3)
    ),
    "as_decimal": lambda: (
        di.data.ParquetDataset(["a.parquet", "b.parquet"])
        .map(lambda row: {"price": b"%d.5" % int(row["id"]), "id": row["id"]})
        .as_decimal(["price"], "float64")
        .batch(3)
    ),
    "select_before_handing_out": lambda: (
        di.data.ParquetDataset(["a.parquet", "b.parquet"], text="str")
        .filter(pc.field("id") > 1)
        .select(["text"])
        .map(lambda row: len(row["text"]))
    ),
    "as_uint8": lambda: Dataset.range(20).map(pairs_of).select(["t"]).as_uint8().ragged_batch(3),
    "map_rows": lambda: Dataset.range(20).map_rows(plus_one),
    "pack": lambda: Dataset.range(1, 20).map(full).pack(7, window=3),
    "padded_batch": lambda: Dataset.range(1, 20).map(full).padded_batch(3),
    "parse_example": parsed,
    "parse_sequence_example": sequences,
    "prefetch": lambda: uncounted(20).map(plus_one).prefetch(3),
    "once_per_worker": lambda: (
        Dataset.range(5).map(plus_one).shuffle(5, seed=1).apply(distribute("parallel_epochs", ThreadPoolExecutor(3)))
    ),
    "on_workers": lambda: uncounted(20).map(plus_one).on_workers("threads:2"),
    "ragged_batch": lambda: Dataset.range(1, 20).map(full).ragged_batch(3),
    "ragged_batch_rebatched": lambda: Dataset.range(1, 20).map(full).ragged_batch(4).rebatch([2, 3]).shuffle(3, seed=1),
    "ragged_slices": lambda: (
        Dataset.from_tensor_slices({"rows": ragged_rows(), "id": np.arange(9)}).shuffle(4, seed=1).batch(2)
    ),
    "rebatch": lambda: Dataset.range(20).batch(6).rebatch([2, 3]),
    "rebatch_to_one_size": lambda: uncounted(30).batch(7).rebatch(4),
    "rebatch_as_workers_do": lambda: Dataset(LegacyRebatch(Dataset.range(20).batch(7).node, 3)),
    "rejection_resample": lambda: uncounted(40).rejection_resample(parity, [0.7, 0.3], [0.5, 0.5], seed=3),
    "rejection_resample_estimated": lambda: uncounted(40).rejection_resample(parity, [0.7, 0.3], seed=3),
    "repeat": lambda: uncounted(6).repeat(4),
    "sample": lambda: Dataset.sample_from_datasets([Dataset.range(9), Dataset.range(9, 20)], seed=5),
    "sample_balanced": lambda: Dataset.sample_from_datasets(
        [Dataset.range(9), uncounted(12)], {0: [0.3, 0.7], 8: [0.8, 0.2]}, balanced=True, on_end="repeat"
    ),
    "sample_endless": endless_sample,
    "sample_by_weights": weighted_sample,
    "scan": lambda: Dataset.range(20).scan(np.int64(0), running_sum),
    "scan_of_text": lambda: Dataset.range(9).scan((b"", np.zeros(2)), running_text),
    "shard": lambda: uncounted(40).shard(3, 1),
    "split": lambda: uncounted(40).split(0.7, seed=3)[1],
    "shard_batches": lambda: Dataset.range(40).batch(7).shard_batches(2, 1),
    "shard_batches_uncounted": lambda: uncounted(40).batch(7).shard_batches(2, 1),
    "shuffle": lambda: uncounted(30).shuffle(7, seed=3),
    "shuffle_by_number": lambda: Dataset.range(30).shuffle(7, seed=3),
    "shuffle_of_all": lambda: uncounted(20).shuffle(di.data.UNKNOWN_CARDINALITY, seed=4),
    "shuffle_once": lambda: Dataset.range(20).shuffle(9, seed=3, reshuffle_each_iteration=False).repeat(2),
    "shuffle_without_seed": lambda: uncounted(30).shuffle(7).repeat(2),
    "skip": lambda: uncounted(30).skip(4),
    "skip_counted": lambda: Dataset.range(30).batch(2).skip(4),
    "sparse_batch": lambda: Dataset.range(1, 20).map(full).sparse_batch(3, [None]),
    "take": lambda: uncounted(30).take(11),
    "take_while": lambda: Dataset.range(30).take_while(is_small),
    "unbatch": lambda: uncounted(30).batch(4).map(doubled).unbatch(),
    "unique": lambda: Dataset.range(20).map(key).concatenate(Dataset.range(9)).unique(),
    "window": lambda: Dataset.range(20).window(4, shift=2, stride=2, drop_remainder=True).flat_map(batched),
    "with_options": lambda: Dataset.range(9).with_options(di.data.Options()),
    "zip": lambda: Dataset.zip(Dataset.range(20), uncounted(30).shuffle(3, seed=1)),
    # what rules change
    "balanced_concatenations": long_chain,
    "concatenate_of_slices": lambda: parts().concatenate(Dataset.from_tensor_slices(np.arange(12, 15))),
    "map_of_map": lambda: uncounted(20).map(plus_one).map(doubled).map(plus_one),
    "map_rows_of_map_rows": lambda: Dataset.range(20).map_rows(plus_one).map_rows(doubled),
    "zip_of_zip": lambda: Dataset.zip(Dataset.range(20), Dataset.range(20, 40)).enumerate(),
    "batch_then_unbatch": lambda: Dataset.range(20).batch(3).unbatch(),
    "prefetch_of_prefetch": lambda: uncounted(20).prefetch(2).prefetch(3),
    "prefetch_of_views": lambda: Dataset.range(20).batch(3).prefetch(2),
    "shard_of_one": lambda: uncounted(20).shard(1, 0),
    "shuffle_of_one": lambda: uncounted(20).shuffle(1),
    "skip_nothing": lambda: uncounted(20).skip(0),
    "skip_of_skip": lambda: uncounted(30).skip(2).skip(3),
    "take_everything": lambda: uncounted(20).take(-1),
    "take_of_take": lambda: uncounted(30).take(12).take(9),
    "part_of_range": lambda: Dataset.range(30).skip(4).take(11),
    "skip_before_take": lambda: uncounted(40).take(20).skip(3).take(9).skip(2),
    "skip_before_take_of_slices": lambda: slices().take(18).skip(3).take(9).skip(2),
    "read_after_shuffle": lambda: Dataset.from_source(Items()).global_shuffle(seed=1).batch(3),
    "call_after_shuffle": lambda: Dataset.range(20).map(plus_one).take(17).shuffle(5, seed=1).batch(3),
    "call_after_global_shuffle": lambda: Dataset.range(20).map(plus_one).global_shuffle(seed=1).batch(3),
    "shuffled_batches": lambda: texts().shuffle(5, seed=1).batch(4).prefetch(2),
    # as one worker of several reads them
    "sharded_by_rows": lambda: sharded(Dataset.range(40).shuffle(9, seed=1), "DATA"),
    "sharded_by_batches": lambda: sharded(Dataset.range(40).map(plus_one).batch(4), "DATA"),
    "sharded_by_files": lambda: sharded(texts().batch(4), "FILE"),
    "sharded_by_parts": lambda: sharded(di.data.ParquetDataset(["a.parquet", "b.parquet"]), "BALANCED"),
    "sharded_rows_of_files": lambda: sharded(di.data.NpyDataset(["a.npy", "b.npy"]).batch(2), "DATA"),
    # as programs put them together
    "training": lambda: (
        di.data.TFRecordDataset(["a.tfrecord", "b.tfrecord"]).shuffle(6, seed=7).repeat(3).batch(4).prefetch(2)
    ),
    "text_to_batches": lambda: texts().cache().shuffle(20, seed=3).enumerate().batch(3),
}


# ---- distributed iterators


def per_replica(context: Any) -> Any:
    return uncounted(30).shard(context.num_input_pipelines, context.input_pipeline_id).batch(2)


Distributed = Callable[[Any], Any]
"""A distributed dataset of a strategy."""


def distributed(make: Callable[[], Any], policy: str = "AUTO", **how: Any) -> Distributed:
    return lambda strategy: strategy.experimental_distribute_dataset(with_policy(make(), policy), InputOptions(**how))


DISTRIBUTED: dict[str, tuple[list[int], Distributed]] = {
    # the replicas of each worker, and what they get
    "mirrored_2": ([2], distributed(lambda: Dataset.range(20).batch(4))),
    "mirrored_3": ([3], distributed(lambda: uncounted(40).shuffle(5, seed=1).batch(7))),
    "mirrored_3_shuffled": ([3], distributed(lambda: Dataset.range(22).shuffle(5, seed=1).batch(5).prefetch(2))),
    "mirrored_2_balanced": ([2], distributed(lambda: uncounted(30).batch(5), balanced_split=True)),
    "mirrored_2_by_cost": ([2], distributed(lambda: uncounted(30).batch(5), balance_replicas=doubled)),
    "mirrored_2_ragged": ([2], distributed(lambda: Dataset.from_tensor_slices(ragged_rows()).batch(4))),
    "mirrored_2_padded": ([2], distributed(lambda: uncounted(30).batch(6), tail="pad")),
    "mirrored_2_file": ([2], distributed(lambda: texts().batch(3), "FILE")),
    "mirrored_2_data": ([2], distributed(lambda: texts().batch(3), "DATA")),
    "mirrored_2_off": ([2], distributed(lambda: texts().batch(3), "OFF")),
    "mirrored_2_from_function": ([2], lambda strategy: strategy.distribute_datasets_from_function(per_replica)),
    "workers_file": ([2, 2], distributed(lambda: texts().batch(4), "FILE")),
    "workers_data": ([2, 2], distributed(lambda: Dataset.range(30).shuffle(9, seed=2).batch(8), "DATA")),
    "workers_data_of_files": ([1, 1], distributed(lambda: texts().batch(4), "DATA")),
    "workers_data_of_rows": (
        [1, 1],
        distributed(lambda: di.data.NpyDataset(["a.npy", "b.npy"]).batch(4), "DATA"),
    ),
    "workers_by_cost": ([2, 2], distributed(lambda: uncounted(40).batch(8), balance_replicas=doubled)),
    "workers_data_uncounted": ([2, 2], distributed(lambda: uncounted(40).batch(8), "DATA")),
    "workers_off": ([1, 1], distributed(lambda: texts().batch(4), "OFF")),
    "workers_balanced": (
        [1, 1],
        distributed(lambda: di.data.ParquetDataset(["a.parquet", "b.parquet"]).batch(4), "BALANCED"),
    ),
    "workers_of_two_sizes": ([1, 2], distributed(lambda: Dataset.range(25).batch(6), balanced_split=True)),
    "workers_from_function": ([1, 1], lambda strategy: strategy.distribute_datasets_from_function(per_replica)),
}


# ---- what is kept of an element


def shown(value: Any) -> Any:
    """An element, or a step of replicas, as JSON: structure, dtypes, shapes and values."""
    if isinstance(value, bytes):
        return repr(value)
    if isinstance(value, di.RaggedTensor):
        return f"ragged {value.dtype.name}{list(value.shape)} {value.to_list()!r}"
    if isinstance(value, np.ndarray | np.generic):
        return f"{value.dtype.name}{list(value.shape)} {value.tolist()!r}"
    if isinstance(value, di.distribute.DistributedValues):
        return {"replicas": [shown(part) for part in value.values]}
    if isinstance(value, dict):
        return {name: shown(part) for name, part in value.items()}
    if isinstance(value, tuple):
        return [shown(part) for part in value]
    if hasattr(value, "element_spec"):
        return {"dataset": [shown(part) for part in value]}
    raise TypeError(f"an element of a kind that no kept pipeline gives: {type(value).__name__}")


def shown_all(elements: Any, most: int) -> list[Any]:
    return [shown(element) for element in itertools.islice(elements, most)]
