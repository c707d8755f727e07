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
    from distinput.data.file_datasets import (
        ArrayRecordDataset,
        ArrowDataset,
        FixedLengthRecordDataset,
        JsonLinesDataset,
        NpyDataset,
        NpzDataset,
        ParquetDataset,
        TextLineDataset,
        TFRecordDataset,
    )
    from distinput.data.file_datasets.csv import CsvDataset
    from distinput.data.file_datasets.reading import FileDataset
    from distinput.data.file_datasets.samples import ImageFolderDataset, WebDataset
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
    "ArrayRecordDataset": "distinput.data.file_datasets",
    "ArrowDataset": "distinput.data.file_datasets",
    "CsvDataset": "distinput.data.file_datasets.csv",
    "FileDataset": "distinput.data.file_datasets.reading",
    "FixedLengthRecordDataset": "distinput.data.file_datasets",
    "ImageFolderDataset": "distinput.data.file_datasets.samples",
    "IteratorSpec": "distinput.data.iterator_spec",
    "JsonLinesDataset": "distinput.data.file_datasets",
    "NpyDataset": "distinput.data.file_datasets",
    "NpzDataset": "distinput.data.file_datasets",
    "NumpyIterator": "distinput.data.numpy_iterator",
    "Options": "distinput.plan.options",
    "ParquetDataset": "distinput.data.file_datasets",
    "SkipErrors": "distinput.plan.skip_errors",
    "Stats": "distinput.data.stats",
    "TFRecordDataset": "distinput.data.file_datasets",
    "TextLineDataset": "distinput.data.file_datasets",
    "ThreadingOptions": "distinput.plan.options",
    "WebDataset": "distinput.data.file_datasets.samples",
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
