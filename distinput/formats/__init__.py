# SPDX-License-Identifier: Apache-2.0
"""File formats: one file each, one line in the table (floor 3)."""

from distinput.formats.arrow_ipc import ArrowIpc
from distinput.formats.fixed_length import FixedLengthRecords
from distinput.formats.format import Format, Fragment, Position
from distinput.formats.indexed_tfrecord import IndexedTFRecords
from distinput.formats.npy import Npy
from distinput.formats.parquet import Parquet
from distinput.formats.text import TextLines
from distinput.formats.tfrecord import TFRecords

__all__ = ["FORMATS", "Format", "Fragment", "Position"]

FORMATS: dict[str, type[Format]] = {
    "arrow": ArrowIpc,
    "fixed_length": FixedLengthRecords,
    "indexed_tfrecord": IndexedTFRecords,
    "npy": Npy,
    "parquet": Parquet,
    "text": TextLines,
    "tfrecord": TFRecords,
}
"""The class of each format."""
