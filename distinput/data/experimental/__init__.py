# SPDX-License-Identifier: Apache-2.0
"""`distinput.data.experimental`: the counterpart of `tf.data.experimental`."""

from typing import TYPE_CHECKING, Any

from distinput.data.file_datasets.csv import CsvDataset
from distinput.data.optional import Optional
from distinput.names.absent import absent
from distinput.ops.shard import SHARD_HINT
from distinput.plan.check import AUTOTUNE
from distinput.plan.node import INFINITE as INFINITE_CARDINALITY
from distinput.plan.node import UNKNOWN as UNKNOWN_CARDINALITY
from distinput.plan.options import (
    AutoShardPolicy,
    AutotuneAlgorithm,
    AutotuneOptions,
    DistributeOptions,
    ExternalStatePolicy,
    OptimizationOptions,
    ServiceOptions,
    ThreadingOptions,
)
from distinput.sharding.shard_plan import FileRange, ShardPlan, WorkerPlan
from distinput.tf.batches import make_batched_features_dataset, make_csv_dataset, make_tf_record_dataset
from distinput.tf.datasets import (
    Counter,
    RandomDataset,
    SqlDataset,
    TFRecordWriter,
    at,
    auto_shard_dataset,
    cardinality,
    choose_from_datasets,
    from_list,
    get_next_as_optional,
    get_single_element,
    get_structure,
    load,
    read_manifest,
    rebatch_for_worker,
    sample_from_datasets,
    save,
    shard_plan,
    snapshot,
    write_manifest,
)
from distinput.tf.steps import (
    Reducer,
    assert_cardinality,
    bucket_by_sequence_length,
    copy_to_device,
    dense_to_ragged_batch,
    dense_to_sparse_batch,
    enumerate_dataset,
    group_by_reducer,
    group_by_window,
    ignore_errors,
    map_and_batch,
    pad_to_cardinality,
    parallel_interleave,
    parse_example_dataset,
    prefetch_to_device,
    rejection_resample,
    scan,
    shuffle_and_repeat,
    take_while,
    unbatch,
    unique,
)

__all__ = [
    "AUTOTUNE",
    "INFINITE_CARDINALITY",
    "SHARD_HINT",
    "UNKNOWN_CARDINALITY",
    "AutoShardPolicy",
    "AutotuneAlgorithm",
    "AutotuneOptions",
    "Counter",
    "CsvDataset",
    "DistributeOptions",
    "ExternalStatePolicy",
    "FileRange",
    "OptimizationOptions",
    "Optional",
    "RandomDataset",
    "Reducer",
    "ServiceOptions",
    "ShardPlan",
    "SqlDataset",
    "TFRecordWriter",
    "ThreadingOptions",
    "WorkerPlan",
    "assert_cardinality",
    "at",
    "auto_shard_dataset",
    "bucket_by_sequence_length",
    "cardinality",
    "choose_from_datasets",
    "copy_to_device",
    "dense_to_ragged_batch",
    "dense_to_sparse_batch",
    "enumerate_dataset",
    "from_list",
    "get_next_as_optional",
    "get_single_element",
    "get_structure",
    "group_by_reducer",
    "group_by_window",
    "ignore_errors",
    "load",
    "make_batched_features_dataset",
    "make_csv_dataset",
    "make_tf_record_dataset",
    "map_and_batch",
    "pad_to_cardinality",
    "parallel_interleave",
    "parse_example_dataset",
    "prefetch_to_device",
    "read_manifest",
    "rebatch_for_worker",
    "rejection_resample",
    "sample_from_datasets",
    "save",
    "scan",
    "shard_plan",
    "shuffle_and_repeat",
    "snapshot",
    "take_while",
    "unbatch",
    "unique",
    "write_manifest",
]


if not TYPE_CHECKING:  # a type checker that saw this would accept every name

    def __getattr__(name: str) -> Any:
        raise AttributeError(absent("distinput.data.experimental", name, __all__))
