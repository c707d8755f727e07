# SPDX-License-Identifier: Apache-2.0
"""The compression of files for which none is stated: the one that the suffixes of their names stand for."""

from collections.abc import Iterable
from dataclasses import replace

from distinput.files.compression import CODECS, compression_of
from distinput.formats.format import Format

__all__ = ["decompressing"]

_SUFFIXES = tuple([suffix for codec in CODECS.values() for suffix in codec.suffixes])


def decompressing(format: Format, paths: Iterable[str]) -> Format:
    """A format that reads compressed files as their names say; the same one if they are not, or if a compression is stated.

    Args:
      format: of the files; its compression is stated unless it is None.
      paths: the files.

    >>> from distinput.formats.tfrecord import TFRecords
    >>> decompressing(TFRecords(), ["a.tfrecord.gz", "b.tfrecord.gz"]).compression
    'GZIP'
    >>> decompressing(TFRecords(), ["a.tfrecord"]).compression, decompressing(TFRecords(""), ["a.gz"]).compression
    ('', '')
    """
    if getattr(format, "compression_type", "") is not None:
        return format
    found = {
        compression_of("AUTO", path) if path.lower().partition("?")[0].endswith(_SUFFIXES) else "" for path in paths
    }
    if found <= {""}:
        return format
    return replace(format, compression_type=found.pop() if len(found) == 1 else "AUTO")  # type: ignore[type-var]
