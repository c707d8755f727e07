# SPDX-License-Identifier: Apache-2.0
"""`distinput.data`: the counterpart of `tf.data`."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from distinput.data.dataset import Dataset
from distinput.data.iterator import DatasetIterator
from distinput.data.iterator import DatasetIterator as Iterator
from distinput.plan.check import AUTOTUNE
from distinput.plan.node import INFINITE as INFINITE_CARDINALITY
from distinput.plan.node import UNKNOWN as UNKNOWN_CARDINALITY
from distinput.values.spec import DatasetSpec, TensorSpec

if TYPE_CHECKING:
    from distinput.data import experimental
    from distinput.data.file_datasets.array_record import ArrayRecordDataset
    from distinput.data.file_datasets.arrow import ArrowDataset
    from distinput.data.file_datasets.csv import CsvDataset
    from distinput.data.file_datasets.file import FileDataset
    from distinput.data.file_datasets.fixed_length_record import FixedLengthRecordDataset
    from distinput.data.file_datasets.image_folder import ImageFolderDataset
    from distinput.data.file_datasets.json_lines import JsonLinesDataset
    from distinput.data.file_datasets.npy import NpyDataset
    from distinput.data.file_datasets.npz import NpzDataset
    from distinput.data.file_datasets.parquet import ParquetDataset
    from distinput.data.file_datasets.text_line import TextLineDataset
    from distinput.data.file_datasets.tf_record import TFRecordDataset
    from distinput.data.file_datasets.web import WebDataset
    from distinput.data.iterator_spec import IteratorSpec
    from distinput.data.numpy_iterator import NumpyIterator
    from distinput.data.stats import Stats
    from distinput.plan.options import Options, ThreadingOptions
    from distinput.plan.skip_errors import SkipErrors

__all__ = [
    "AUTOTUNE",
    "INFINITE_CARDINALITY",
    "UNKNOWN_CARDINALITY",
    "ArrayRecordDataset",
    "ArrowDataset",
    "CsvDataset",
    "Dataset",
    "DatasetIterator",
    "DatasetSpec",
    "FileDataset",
    "FixedLengthRecordDataset",
    "ImageFolderDataset",
    "Iterator",
    "IteratorSpec",
    "JsonLinesDataset",
    "NpyDataset",
    "NpzDataset",
    "NumpyIterator",
    "Options",
    "ParquetDataset",
    "SkipErrors",
    "Stats",
    "TFRecordDataset",
    "TensorSpec",
    "TextLineDataset",
    "ThreadingOptions",
    "WebDataset",
    "experimental",
]

_LOADED_LATER = {
    "ArrayRecordDataset": "distinput.data.file_datasets.array_record",
    "ArrowDataset": "distinput.data.file_datasets.arrow",
    "CsvDataset": "distinput.data.file_datasets.csv",
    "FileDataset": "distinput.data.file_datasets.file",
    "FixedLengthRecordDataset": "distinput.data.file_datasets.fixed_length_record",
    "ImageFolderDataset": "distinput.data.file_datasets.image_folder",
    "IteratorSpec": "distinput.data.iterator_spec",
    "JsonLinesDataset": "distinput.data.file_datasets.json_lines",
    "NpyDataset": "distinput.data.file_datasets.npy",
    "NpzDataset": "distinput.data.file_datasets.npz",
    "NumpyIterator": "distinput.data.numpy_iterator",
    "Options": "distinput.plan.options",
    "ParquetDataset": "distinput.data.file_datasets.parquet",
    "SkipErrors": "distinput.plan.skip_errors",
    "Stats": "distinput.data.stats",
    "TFRecordDataset": "distinput.data.file_datasets.tf_record",
    "TextLineDataset": "distinput.data.file_datasets.text_line",
    "ThreadingOptions": "distinput.plan.options",
    "WebDataset": "distinput.data.file_datasets.web",
}
"""Where names are that a first batch has no use for."""

if not TYPE_CHECKING:  # a type checker that saw this would accept every name

    def __getattr__(name: str) -> Any:
        """Loads options, statistics and the readers of files when they are first named."""
        if name == "experimental":
            return import_module("distinput.data.experimental")
        if name in _LOADED_LATER:
            return getattr(import_module(_LOADED_LATER[name]), name)
        raise AttributeError(_absent(name))


def _absent(name: str) -> str:
    from distinput.names.absent import absent  # for messages only

    return absent("distinput.data", name, __all__)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
