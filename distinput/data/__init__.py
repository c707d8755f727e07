# SPDX-License-Identifier: Apache-2.0
"""`distinput.data`: the counterpart of `tf.data`."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from distinput.core.spec import DatasetSpec, TensorSpec
from distinput.data.dataset import Dataset
from distinput.data.iterator import DatasetIterator
from distinput.data.stats import Stats
from distinput.plan.check import AUTOTUNE
from distinput.plan.node import INFINITE as INFINITE_CARDINALITY
from distinput.plan.node import UNKNOWN as UNKNOWN_CARDINALITY
from distinput.plan.options import Options, ThreadingOptions

if TYPE_CHECKING:
    from distinput.data import experimental
    from distinput.data.makers import (
        ArrowDataset,
        FileDataset,
        FixedLengthRecordDataset,
        NpyDataset,
        ParquetDataset,
        TextLineDataset,
        TFRecordDataset,
    )

__all__ = [
    "AUTOTUNE",
    "INFINITE_CARDINALITY",
    "UNKNOWN_CARDINALITY",
    "ArrowDataset",
    "Dataset",
    "DatasetIterator",
    "DatasetSpec",
    "FileDataset",
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


if not TYPE_CHECKING:  # a type checker that saw this would accept every name

    def __getattr__(name: str) -> Any:
        """Loads the readers of files, and rarely used parts, when they are first named."""
        if name == "experimental":
            return import_module("distinput.data.experimental")
        if name in __all__:
            return getattr(import_module("distinput.data.makers"), name)
        raise AttributeError(_absent(name))


def _absent(name: str) -> str:
    from distinput.data.absent import absent  # for messages only

    return absent("distinput.data", name, __all__)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
