# SPDX-License-Identifier: Apache-2.0
"""`distinput.data.experimental`: the counterpart of `tf.data.experimental`."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from distinput.data.absent import absent
from distinput.data.dataset import Dataset
from distinput.data.optional import Optional
from distinput.files.manifest import load_manifest, save_manifest
from distinput.formats.features import Feature
from distinput.ops.files import Files
from distinput.ops.identity import AssertCardinality
from distinput.ops.ignore_errors import IgnoreErrors
from distinput.ops.parse_example import ParseExample
from distinput.ops.shard import SHARD_HINT
from distinput.partition.shard_plan import FileRange, ShardPlan, WorkerPlan
from distinput.plan.check import AUTOTUNE
from distinput.plan.node import INFINITE as INFINITE_CARDINALITY
from distinput.plan.node import UNKNOWN as UNKNOWN_CARDINALITY
from distinput.plan.options import (
    AutoShardPolicy,
    AutotuneOptions,
    DistributeOptions,
    OptimizationOptions,
    ThreadingOptions,
)
from distinput.plan.policy import Policy
from distinput.sharding.autoshard import auto_shard
from distinput.sharding.batches import rebatch_for
from distinput.sharding.planning import shard_plan as _shard_plan

__all__ = [
    "AUTOTUNE",
    "INFINITE_CARDINALITY",
    "SHARD_HINT",
    "UNKNOWN_CARDINALITY",
    "AutoShardPolicy",
    "AutotuneOptions",
    "DistributeOptions",
    "FileRange",
    "OptimizationOptions",
    "Optional",
    "ShardPlan",
    "ThreadingOptions",
    "WorkerPlan",
    "assert_cardinality",
    "auto_shard_dataset",
    "cardinality",
    "get_single_element",
    "ignore_errors",
    "parse_example_dataset",
    "read_manifest",
    "rebatch_for_worker",
    "shard_plan",
    "write_manifest",
]


if not TYPE_CHECKING:  # a type checker that saw this would accept every name

    def __getattr__(name: str) -> Any:
        raise AttributeError(absent("distinput.data.experimental", name, __all__))


def assert_cardinality(expected_cardinality: int) -> Callable[[Dataset], Dataset]:
    """A function for `apply` that states how many elements a dataset has.

    Args:
      expected_cardinality: a number, or INFINITE_CARDINALITY.

    Raises:
      FailedPreconditionError: at iteration, when there are more or fewer.

    >>> import distinput as di
    >>> ds = di.data.Dataset.range(6).filter(lambda x: x > 3)
    >>> len(ds.apply(di.data.experimental.assert_cardinality(2)))
    2

    Source: `tf.data.experimental.assert_cardinality`.
    """
    return lambda dataset: Dataset(AssertCardinality(dataset.node, expected_cardinality))


def cardinality(dataset: Dataset) -> int:
    """`dataset.cardinality()`, under its older name.

    >>> import distinput as di
    >>> di.data.experimental.cardinality(di.data.Dataset.range(3))
    3

    Source: `tf.data.experimental.cardinality`.
    """
    return dataset.cardinality()


def get_single_element(dataset: Dataset) -> object:
    """`dataset.get_single_element()`, under its older name.

    >>> import distinput as di
    >>> di.data.experimental.get_single_element(di.data.Dataset.range(1))
    np.int64(0)

    Source: `tf.data.experimental.get_single_element`.
    """
    return dataset.get_single_element()


def ignore_errors(log_warning: bool = False) -> Callable[[Dataset], Dataset]:
    """`Dataset.ignore_errors`, for `apply`.

    Args:
      log_warning: log each error with the logger "distinput".

    >>> import distinput as di
    >>> ds = di.data.Dataset.from_tensor_slices(["1", "two", "3"]).map(int)
    >>> ds.apply(di.data.experimental.ignore_errors()).to_list()
    [1, 3]

    Source: `tf.data.experimental.ignore_errors`.
    """
    return lambda dataset: Dataset(IgnoreErrors(dataset.node, log_warning))


def parse_example_dataset(
    features: Mapping[str, Feature], num_parallel_calls: int | None = 1, deterministic: bool | None = None
) -> Callable[[Dataset], Dataset]:
    """`Dataset.parse_example`, for `apply`.

    Args:
      features: from name to `FixedLenFeature` or `VarLenFeature`.
      num_parallel_calls: accepted as TensorFlow's.
      deterministic: accepted as TensorFlow's.

    >>> import distinput as di
    >>> ds = di.data.Dataset.from_tensors(di.io.encode_example({"x": [7]}))
    >>> parse = di.data.experimental.parse_example_dataset({"x": di.io.FixedLenFeature([], "int64")})
    >>> ds.apply(parse).to_list()
    [{'x': 7}]

    Source: `tf.data.experimental.parse_example_dataset`.
    """
    return lambda dataset: Dataset(ParseExample(dataset.node, features, num_parallel_calls, deterministic))


def rebatch_for_worker(dataset: Dataset, num_workers: int, replicas_per_worker: int, worker: int) -> Dataset:
    """The global batches of `dataset` cut into per-replica batches, for the replicas of one worker.

    Args:
      dataset: batches of the global batch size.
      num_workers: W.
      replicas_per_worker: R; nothing is cut when W * R is 1.
      worker: which worker, from 0.

    Raises:
      InvalidArgumentError: elements have no batch axis.

    >>> import distinput as di
    >>> ds = di.data.Dataset.range(7).batch(7)
    >>> di.data.experimental.rebatch_for_worker(ds, 1, 3, 0).to_list()
    [[0, 1, 2], [3, 4], [5, 6]]

    Source: `_make_rebatch_fn` of tensorflow/python/distribute/input_lib.py.
    """
    return Dataset(rebatch_for(dataset.node, num_workers, replicas_per_worker, worker))


def auto_shard_dataset(dataset: Dataset, num_workers: int, index: int, num_replicas: int | None = None) -> Dataset:
    """The part of `dataset` that one worker reads, by the policy in its options.

    Args:
      dataset: any pipeline, cut by `rebatch_for_worker` or not.
      num_workers: W.
      index: which worker, from 0.
      num_replicas: replicas of all workers; needed where DATA replaces the cut of a global batch.

    Raises:
      NotFoundError: policy FILE, and a source does not read files.
      InvalidArgumentError: fewer files than workers.

    >>> import distinput as di
    >>> di.data.experimental.auto_shard_dataset(di.data.Dataset.range(5), 2, 1).to_list()
    [1, 3]

    Source: `auto_shard_dataset` of tensorflow/python/distribute/input_ops.py.
    """
    return Dataset(auto_shard(dataset.node, num_workers, index, num_replicas))


def shard_plan(
    dataset: Dataset, num_workers: int, replicas_per_worker: int = 1, policy: AutoShardPolicy | Policy | None = None
) -> ShardPlan:
    """Explain which worker would read what of `dataset`, and why, from file names, sizes and footers if possible.

    Args:
      dataset: batches of the global batch size.
      num_workers: W.
      replicas_per_worker: R.
      policy: the policy to explain; None for the one in the options of `dataset`.

    Raises:
      InvalidArgumentError: fewer than one worker or replica; with policy FILE, fewer files than workers.
      NotFoundError: a file does not exist, or the policy does not work for this pipeline.

    >>> import distinput as di
    >>> print(di.data.experimental.shard_plan(di.data.Dataset.range(10).batch(4), num_workers=2))
    shards: 2 workers of 1 replicas, policy DATA
      why:   not_files: pieces of each global batch, piece i to worker i modulo the number of workers; not FILE: Found an
        unshardable source dataset: range
      steps: 3 on every worker, known beforehand
      tail:  each batch is cut on its own into equal pieces, rounded up; of a short one, the last replicas may get no rows
      worker  files  rows  bytes  steps  reads
           0      0     5      0      3
           1      0     5      0      3
    """
    return _shard_plan(dataset.node, num_workers, replicas_per_worker, policy)


def write_manifest(path: str, file_pattern: Any, dataset: Callable[[str], Dataset] | None = None) -> Dataset:
    """List files once and save their names, sizes and versions, so that workers need not list them.

    Args:
      path: the path of the manifest: JSON, or Parquet if it ends with ".parquet", which is smaller for very many files.
      file_pattern: as for `Dataset.list_files`.
      dataset: reads one file, to count its records and save their number, too; None: they are not counted.

    Returns:
      The dataset that `read_manifest` will return.

    Raises:
      NotFoundError: no file matches.

    >>> import distinput as di
    >>> import pathlib
    >>> _ = pathlib.Path("a.txt").write_text("one")
    >>> di.data.experimental.write_manifest("files.json", "*.txt", di.data.TextLineDataset).to_list()
    [b'a.txt']
    """

    def count(name: str) -> int:
        assert dataset is not None
        with dataset(name).iter_blocks() as blocks:
            return sum(block.size for block in blocks)

    return Dataset(Files.of(save_manifest(path, file_pattern, None if dataset is None else count)))


def read_manifest(path: str) -> Dataset:
    """The names of the files in a manifest, for `TFRecordDataset` and the like, which refuse files that have changed.

    Args:
      path: the path of the manifest.

    Raises:
      NotFoundError: the manifest does not exist.
      DataLossError: the file is not a manifest, or is damaged; at iteration, a file is not the one that was listed.

    >>> import distinput as di
    >>> import pathlib
    >>> _ = pathlib.Path("a.txt").write_text("one")
    >>> _ = di.data.experimental.write_manifest("files.json", "*.txt")
    >>> di.data.TextLineDataset(di.data.experimental.read_manifest("files.json")).to_list()
    [b'one']
    """
    return Dataset(Files.of(load_manifest(path)))
