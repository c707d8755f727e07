# SPDX-License-Identifier: Apache-2.0
"""`distinput.data`: the counterpart of `tf.data`."""

from distinput.core.spec import DatasetSpec, TensorSpec
from distinput.data import experimental
from distinput.data.dataset import Dataset
from distinput.data.iterator import DatasetIterator
from distinput.data.makers import (
    ArrowDataset,
    FixedLengthRecordDataset,
    NpyDataset,
    ParquetDataset,
    TextLineDataset,
    TFRecordDataset,
)
from distinput.data.stats import Stats
from distinput.plan.check import AUTOTUNE
from distinput.plan.node import INFINITE as INFINITE_CARDINALITY
from distinput.plan.node import UNKNOWN as UNKNOWN_CARDINALITY
from distinput.plan.options import Options, ThreadingOptions

__all__ = [
    "AUTOTUNE",
    "INFINITE_CARDINALITY",
    "UNKNOWN_CARDINALITY",
    "ArrowDataset",
    "Dataset",
    "DatasetIterator",
    "DatasetSpec",
    "FixedLengthRecordDataset",
    "NpyDataset",
    "Options",
    "ParquetDataset",
    "Stats",
    "TFRecordDataset",
    "TensorSpec",
    "TextLineDataset",
    "ThreadingOptions",
    "experimental",
]
