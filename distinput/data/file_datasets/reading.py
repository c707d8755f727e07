# SPDX-License-Identifier: Apache-2.0
"""What the datasets of files have in common: a reader of the named files, or several that take turns."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from distinput import ops
from distinput.core.run import Run
from distinput.data.dataset import Dataset
from distinput.errors import InvalidArgumentError
from distinput.files.directory import named_files
from distinput.files.paths import as_paths
from distinput.files.storage import Storage, stored
from distinput.formats.compressed import decompressing
from distinput.formats.format import Format
from distinput.formats.partitioned import partitioned
from distinput.ops.files import FileNames
from distinput.ops.on_error import guarded
from distinput.ops.reader import Reader
from distinput.ops.slices import Slices, from_tensor_slices
from distinput.plan.node import Node
from distinput.plan.skip_errors import SkipErrors

__all__ = ["reading"]

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
