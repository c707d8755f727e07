# SPDX-License-Identifier: Apache-2.0
"""`distinput.data`: the counterpart of `tf.data`."""

from typing import TYPE_CHECKING

from distinput.names.lazy import lazy

if TYPE_CHECKING:
    from distinput.data import experimental as experimental
    from distinput.data.dataset import Dataset as Dataset
    from distinput.data.file_datasets import ArrayRecordDataset as ArrayRecordDataset
    from distinput.data.file_datasets import ArrowDataset as ArrowDataset
    from distinput.data.file_datasets import AudioDataset as AudioDataset
    from distinput.data.file_datasets import FixedLengthRecordDataset as FixedLengthRecordDataset
    from distinput.data.file_datasets import JsonLinesDataset as JsonLinesDataset
    from distinput.data.file_datasets import LitDataDataset as LitDataDataset
    from distinput.data.file_datasets import MdsDataset as MdsDataset
    from distinput.data.file_datasets import MegatronDataset as MegatronDataset
    from distinput.data.file_datasets import NpyDataset as NpyDataset
    from distinput.data.file_datasets import NpzDataset as NpzDataset
    from distinput.data.file_datasets import ParquetDataset as ParquetDataset
    from distinput.data.file_datasets import TextLineDataset as TextLineDataset
    from distinput.data.file_datasets import TFRecordDataset as TFRecordDataset
    from distinput.data.file_datasets import VideoDataset as VideoDataset
    from distinput.data.file_datasets.csv import CsvDataset as CsvDataset
    from distinput.data.file_datasets.reading import FileDataset as FileDataset
    from distinput.data.file_datasets.samples import ImageFolderDataset as ImageFolderDataset
    from distinput.data.file_datasets.samples import WebDataset as WebDataset
    from distinput.data.iterator import DatasetIterator as DatasetIterator
    from distinput.data.iterator import IteratorSpec as IteratorSpec
    from distinput.data.stats import Stats as Stats
    from distinput.ops.balanced_sample import MixtureWeights as MixtureWeights
    from distinput.plan.check import AUTOTUNE as AUTOTUNE
    from distinput.plan.node import INFINITE, UNKNOWN
    from distinput.plan.options import Options as Options
    from distinput.plan.options import SkipErrors as SkipErrors
    from distinput.plan.options import ThreadingOptions as ThreadingOptions
    from distinput.tf.datasets import NumpyIterator as NumpyIterator
    from distinput.values.nullable import Nullable as Nullable
    from distinput.values.spec import DatasetSpec as DatasetSpec
    from distinput.values.spec import TensorSpec as TensorSpec

    Iterator = DatasetIterator
    INFINITE_CARDINALITY = INFINITE
    UNKNOWN_CARDINALITY = UNKNOWN
else:
    __getattr__, __dir__, __all__ = lazy(__name__)
