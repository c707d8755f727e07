# SPDX-License-Identifier: Apache-2.0
"""`distinput.io`: the counterpart of the parts of `tf.io` that belong to files of records."""

from distinput.formats.example import FixedLenFeature, VarLenFeature, parse_example, parse_single_example
from distinput.formats.tfrecord import TFRecordOptions, TFRecordWriter

__all__ = [
    "FixedLenFeature",
    "TFRecordOptions",
    "TFRecordWriter",
    "VarLenFeature",
    "parse_example",
    "parse_single_example",
]
