# SPDX-License-Identifier: Apache-2.0
"""`distinput.io`: the counterpart of the parts of `tf.io` that belong to files of records, and writers."""

from distinput.formats.arrow_ipc import write_arrow
from distinput.formats.example import (
    FixedLenFeature,
    FixedLenSequenceFeature,
    RaggedFeature,
    VarLenFeature,
    encode_example,
    parse_example,
    parse_single_example,
)
from distinput.formats.indexed_tfrecord import write_tfrecord_index
from distinput.formats.parquet import write_parquet
from distinput.formats.tfrecord import TFRecordOptions, TFRecordWriter

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
