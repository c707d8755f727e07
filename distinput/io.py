# SPDX-License-Identifier: Apache-2.0
"""`distinput.io`: the counterpart of the parts of `tf.io` that belong to files of records, and writers."""

from typing import TYPE_CHECKING, Any

from distinput import formats
from distinput.data.absent import absent
from distinput.formats.example import parse_example, parse_single_example
from distinput.formats.example_encoding import encode_example
from distinput.formats.features import FixedLenFeature, FixedLenSequenceFeature, RaggedFeature, VarLenFeature
from distinput.formats.tfrecord import TFRecordOptions, TFRecordWriter

if TYPE_CHECKING:
    from distinput.formats.arrow_ipc import write_arrow
    from distinput.formats.indexed_tfrecord import write_tfrecord_index
    from distinput.formats.parquet import write_parquet

__all__ = [
    "FixedLenFeature",
    "FixedLenSequenceFeature",
    "RaggedFeature",
    "TFRecordOptions",
    "TFRecordWriter",
    "VarLenFeature",
    "encode_example",
    "parse_example",
    "parse_single_example",
    "write_arrow",
    "write_parquet",
    "write_tfrecord_index",
]


if not TYPE_CHECKING:  # which would take every name for one that is there

    def __getattr__(name: str) -> Any:
        """The writers of the formats that are loaded when they are first named."""
        if name == "write_arrow":
            return formats.arrow_ipc.write_arrow
        if name == "write_parquet":
            return formats.parquet.write_parquet
        if name == "write_tfrecord_index":
            return formats.indexed_tfrecord.write_tfrecord_index
        raise AttributeError(absent("distinput.io", name, __all__))


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
