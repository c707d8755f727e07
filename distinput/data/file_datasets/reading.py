# SPDX-License-Identifier: Apache-2.0
"""What the datasets of files have in common: a reader of the named files, or several that take turns."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from distinput import ops
from distinput.data.dataset import Dataset
from distinput.errors import InvalidArgumentError
from distinput.files.compression import CODECS, compression_of
from distinput.files.folder import named_files
from distinput.files.mounts import Storage, stored
from distinput.files.paths import as_paths
from distinput.formats.format import Format
from distinput.formats.partitioned import partitioned
from distinput.formats.recognise import of_folder, recognise
from distinput.ops.on_error import guarded
from distinput.ops.reader import FileNames, Reader
from distinput.ops.slices import Slices, from_tensor_slices
from distinput.plan.node import Node
from distinput.plan.options import SkipErrors
from distinput.run.run import Run
from distinput.writers.manifest import read_written

__all__ = ["decompressing", "reading", "written_format"]


# ----------------------------------------------------------------------------
# The compression of files for which none is stated: the one that the suffixes of their names stand for.
# ----------------------------------------------------------------------------


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


# ----------------------------------------------------------------------------
# The format of files that are named without it: as the manifest of a written folder has it, or their names, or their bytes.
# ----------------------------------------------------------------------------


def written_format(
    filenames: Any, options: Mapping[str, Any], storage_options: Mapping[str, Any] | None = None, filesystem: Any = None
) -> tuple[str, dict[str, Any]]:
    """The name of the format, and its options.

    Args:
      filenames: names of files, or a folder.
      options: those that take the place of the ones in the manifest, or of what is recognised.
      storage_options: for the file systems that the URLs name.
      filesystem: that has the files.

    Raises:
      TypeError: the names are those of a dataset, which are known at iteration.
      NoMatchError: there is no such file.
      DataLossError: a manifest is damaged.
      InvalidArgumentError: nothing tells the format, or it is none that is known.
    """
    if not isinstance(filenames, str | bytes | os.PathLike | list | tuple):
        raise TypeError("FileDataset: needs a format; only names of files that are there say it themselves")
    names, _ = stored(as_paths(filenames), storage_options, filesystem)
    try:
        written = read_written(names[0]) if len(names) == 1 else None
    except FileExistsError:  # some file systems say so where a file is, and a folder was asked for
        written = None
    if written is not None:
        written.check_format()
        return written.format, {**written.options, **options}
    found = recognise(named_files(names, of_folder))
    return found.format, {**found.options, **options}


_FILES = 16
"""Files read at a time with AUTOTUNE, the same on every machine."""


def reading(
    filenames: Any,
    file_format: Format,
    num_parallel_reads: int | None,
    name: str | None = None,
    *,
    on_error: str | SkipErrors | None = None,
    storage_options: Mapping[str, Any] | None = None,
    filesystem: Any = None,
    partitioning: Any = "hive",
) -> Node:
    """A reader of the named files, or several readers that take turns; without what cannot be read, if `on_error` says so."""
    names = _named(filenames, storage_options, filesystem, file_format.of_folder)
    table = names.table if isinstance(names, FileNames) else None
    if isinstance(names, Slices):  # others may be of any number, and their names made only as they are read
        paths = list(_paths(names))
        file_format = partitioned(decompressing(file_format, paths), paths, partitioning)
    file_format = file_format.held(_paths(names))
    if num_parallel_reads is None:
        return guarded(Reader(names, file_format, table, on_error=on_error, name=name), on_error)

    def reader(path: bytes) -> Node:
        return Reader(_names(path), file_format, table)

    reader.__qualname__ = "_reading.<locals>.reader"  # the name by which saved states know it
    reader.on_error = on_error  # type: ignore[attr-defined]  # for options that are set later
    cycle = _FILES if num_parallel_reads < 1 else num_parallel_reads
    made = ops.interleave.Interleave(names, reader, cycle, 1, num_parallel_reads, name=name)
    return guarded(made, on_error)


def _paths(names: Node) -> Iterator[str]:
    """The files of the first pass."""
    with Run() as run:
        for block, _ in names.open(names.start(0), run):
            for name in block.elements():
                yield name.decode()


def _named(
    filenames: Any,
    storage_options: Mapping[str, Any] | None,
    filesystem: Any,
    chosen: Callable[[list[str]], list[str]] = list,
) -> Node:
    if isinstance(filenames, Dataset):
        if storage_options is not None or filesystem is not None:
            raise InvalidArgumentError(
                "storage_options and filesystem are for names, and filenames is a dataset: which buckets its names are in is "
                "not known; give them to list_files, or say distinput.io.mount"
            )
        return filenames.node
    names, storage = stored(as_paths(filenames), storage_options, filesystem)
    return _slices(named_files(names, chosen), storage)


def _names(filenames: Any) -> Node:
    # Saved states of datasets with num_parallel_reads tell what this does: with another body they could not be restored.
    if isinstance(filenames, Dataset):
        return filenames.node
    return from_tensor_slices(np.array([path.encode() for path in as_paths(filenames)], dtype=object))


def _slices(names: list[str], storage: Storage | None = None) -> Node:
    found = from_tensor_slices(np.array([name.encode() for name in names], dtype=object))
    return found if storage is None else replace(found, storage=storage)
