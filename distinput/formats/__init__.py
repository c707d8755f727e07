# SPDX-License-Identifier: Apache-2.0
"""File formats: one file each, one line in the table (floor 3)."""

from distinput.formats.fixed_length import FixedLengthRecords
from distinput.formats.format import Format, Fragment, Position
from distinput.formats.parquet import Parquet
from distinput.formats.text import TextLines
from distinput.formats.tfrecord import TFRecords

__all__ = ["FORMATS", "Format", "Fragment", "Position"]

FORMATS: dict[str, type[Format]] = {
    "fixed_length": FixedLengthRecords,
    "parquet": Parquet,
    "text": TextLines,
    "tfrecord": TFRecords,
}
"""The class of each format."""
