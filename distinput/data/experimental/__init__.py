# SPDX-License-Identifier: Apache-2.0
"""`distinput.data.experimental`: the counterpart of `tf.data.experimental`."""

from typing import TYPE_CHECKING

from distinput.names.lazy import lazy

if TYPE_CHECKING:
    from distinput.data.experimental import service as service
    from distinput.data.file_datasets.csv import CsvDataset as CsvDataset
    from distinput.data.iterator import Optional as Optional
    from distinput.ops.shard import SHARD_HINT as SHARD_HINT
    from distinput.plan.check import AUTOTUNE as AUTOTUNE
    from distinput.plan.node import INFINITE, UNKNOWN
    from distinput.plan.options import AutoShardPolicy as AutoShardPolicy
    from distinput.plan.options import AutotuneAlgorithm as AutotuneAlgorithm
    from distinput.plan.options import AutotuneOptions as AutotuneOptions
    from distinput.plan.options import DistributeOptions as DistributeOptions
    from distinput.plan.options import ExternalStatePolicy as ExternalStatePolicy
    from distinput.plan.options import OptimizationOptions as OptimizationOptions
    from distinput.plan.options import ServiceOptions as ServiceOptions
    from distinput.plan.options import ThreadingOptions as ThreadingOptions
    from distinput.sharding.shard_plan import FileRange as FileRange
    from distinput.sharding.shard_plan import ShardPlan as ShardPlan
    from distinput.sharding.shard_plan import WorkerPlan as WorkerPlan
    from distinput.tf.batches import make_batched_features_dataset as make_batched_features_dataset
    from distinput.tf.batches import make_csv_dataset as make_csv_dataset
    from distinput.tf.batches import make_tf_record_dataset as make_tf_record_dataset
    from distinput.tf.datasets import Counter as Counter
    from distinput.tf.datasets import RandomDataset as RandomDataset
    from distinput.tf.datasets import SqlDataset as SqlDataset
    from distinput.tf.datasets import TFRecordWriter as TFRecordWriter
    from distinput.tf.datasets import at as at
    from distinput.tf.datasets import auto_shard_dataset as auto_shard_dataset
    from distinput.tf.datasets import cardinality as cardinality
    from distinput.tf.datasets import choose_from_datasets as choose_from_datasets
    from distinput.tf.datasets import from_list as from_list
    from distinput.tf.datasets import get_next_as_optional as get_next_as_optional
    from distinput.tf.datasets import get_single_element as get_single_element
    from distinput.tf.datasets import get_structure as get_structure
    from distinput.tf.datasets import load as load
    from distinput.tf.datasets import read_manifest as read_manifest
    from distinput.tf.datasets import rebatch_for_worker as rebatch_for_worker
    from distinput.tf.datasets import sample_from_datasets as sample_from_datasets
    from distinput.tf.datasets import save as save
    from distinput.tf.datasets import shard_plan as shard_plan
    from distinput.tf.datasets import snapshot as snapshot
    from distinput.tf.datasets import write_manifest as write_manifest
    from distinput.tf.steps import Reducer as Reducer
    from distinput.tf.steps import assert_cardinality as assert_cardinality
    from distinput.tf.steps import bucket_by_sequence_length as bucket_by_sequence_length
    from distinput.tf.steps import copy_to_device as copy_to_device
    from distinput.tf.steps import dense_to_ragged_batch as dense_to_ragged_batch
    from distinput.tf.steps import dense_to_sparse_batch as dense_to_sparse_batch
    from distinput.tf.steps import enumerate_dataset as enumerate_dataset
    from distinput.tf.steps import group_by_reducer as group_by_reducer
    from distinput.tf.steps import group_by_window as group_by_window
    from distinput.tf.steps import ignore_errors as ignore_errors
    from distinput.tf.steps import map_and_batch as map_and_batch
    from distinput.tf.steps import pad_to_cardinality as pad_to_cardinality
    from distinput.tf.steps import parallel_interleave as parallel_interleave
    from distinput.tf.steps import parse_example_dataset as parse_example_dataset
    from distinput.tf.steps import prefetch_to_device as prefetch_to_device
    from distinput.tf.steps import rejection_resample as rejection_resample
    from distinput.tf.steps import scan as scan
    from distinput.tf.steps import shuffle_and_repeat as shuffle_and_repeat
    from distinput.tf.steps import take_while as take_while
    from distinput.tf.steps import unbatch as unbatch
    from distinput.tf.steps import unique as unique

    INFINITE_CARDINALITY = INFINITE
    UNKNOWN_CARDINALITY = UNKNOWN
else:
    __getattr__, __dir__, __all__ = lazy(__name__)
