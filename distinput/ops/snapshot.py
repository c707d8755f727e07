# SPDX-License-Identifier: Apache-2.0
"""Elements that are kept in files: `cache` with a file name, `snapshot`, and what `save` has written."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from distinput.columns.column import Ints
from distinput.columns.state import Digest
from distinput.errors import DataLossError
from distinput.files.folder import join_path
from distinput.files.manifest import FileTable
from distinput.files.paths import as_paths, ask_each
from distinput.files.source import size_of
from distinput.formats.elements import Elements
from distinput.ops.reader import FileNames, Reader
from distinput.ops.slices import from_tensor_slices
from distinput.plan.binding import take_functions
from distinput.plan.check import normalized
from distinput.plan.code import function_word
from distinput.plan.node import Node
from distinput.streaming.kept_on_disk import KeptOnDisk
from distinput.values.spec import Spec
from distinput.writers.elements import codec_of
from distinput.writers.manifest import MANIFEST, WrittenFiles

# ----------------------------------------------------------------------------
# The tree that reads elements that were saved: their files one after the other, or as a function of the user's says.
# ----------------------------------------------------------------------------


def saved_elements(
    found: WrittenFiles, given: Spec | None = None, reader_func: Callable[[Any], Any] | None = None
) -> Node:
    """A reader of saved elements.

    Args:
      found: what was saved.
      given: the spec that they are read as, if it is another one that they fit.
      reader_func: a dataset of a dataset for each file -> the dataset; None: one file after the other, in order.

    Raises:
      NotFoundError: a file is gone.
      DataLossError: a file has another size than when it was written.
      InvalidArgumentError: the elements are not as `given` says.
      TypeError: `reader_func` returns no dataset.
    """
    file_format = Elements(str(found.options.get("layout")), given)
    file_format.spec(None)
    table = found.table()
    sizes = np.fromiter(ask_each(size_of, found.paths), np.int64, len(table))
    for index in np.flatnonzero(sizes != table.sizes)[:1].tolist():
        raise DataLossError(
            f"{table.path(index)}: has {sizes[index]} bytes, and {MANIFEST} says {table.sizes[index]}; it was changed after it "
            "was written"
        )
    if reader_func is None:
        return Reader(FileNames.of(table), file_format, table)
    ends = np.cumsum(found.pieces or [1] * len(table))
    parts = [_some(table, rows, file_format) for rows in np.split(np.arange(len(table)), ends[:-1])]
    made = reader_func(Node.handle(from_tensor_slices(parts)))
    node = getattr(made, "node", None)
    if not isinstance(node, Node):
        raise TypeError(f"reader_func must return a Dataset, got {type(made).__name__}")
    return node


def _some(table: FileTable, rows: Ints, file_format: Elements) -> Node:
    part = table.take(rows)
    return Reader(FileNames.of(part), file_format, part)


# ----------------------------------------------------------------------------
# `cache(filename)`: the elements of the first complete pass, kept in a folder that processes share.
# ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class DiskCache(KeptOnDisk):
    """Keep the elements of the first complete pass in a folder; later passes, here and in other processes, read them there.

    Shapes and order: those of the first pass. State: that of `KeptOnDisk`.

    Args:
      filename: the folder.
      max_bytes: a pass that needs more is not kept; None: no limit.
      shared: whether the folder has a folder for each pipeline.

    Source: `tf.data.Dataset.cache`.
    """

    indifferent: ClassVar[frozenset[str]] = frozenset({"filename", "max_bytes", "shared"})
    op: ClassVar[str] = "cache"
    filename: str
    max_bytes: int | None = None
    shared: bool = field(default=False, kw_only=True)

    @cached_property
    def directory(self) -> str:
        return join_path(self.filename, Digest(8).add(self.pipeline, self.held).word) if self.shared else self.filename

    @property
    def most_bytes(self) -> int | None:
        return self.max_bytes

    def reader(self, found: WrittenFiles, in_order: bool = False) -> Node:
        return saved_elements(found, self.spec)


# ----------------------------------------------------------------------------
# `snapshot`: the elements of the first complete pass, kept in a folder for each pipeline.
# ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Snapshot(KeptOnDisk):
    """Keep the elements of the first complete pass in a folder; later passes, here and in other processes, read them there.

    As `cache(filename)` does, but below `path` each pipeline has a folder of its own, named by its fingerprint: a pipeline that
    changed is written anew beside the old one, which stays until you remove it.

    Shapes: unchanged. Order: that of the first pass, or that of `reader_func`. State: as for a cache on disk.

    Args:
      path: the folder of the snapshots, local or a URL.
      compression: None, "LZ4" or "ZSTD"; "SNAPPY" and "GZIP" stand for these two, and "AUTO" for None.
      reader_func: a dataset with a dataset for each file -> the dataset that later passes give; None: one file after the other.
      shard_func: element -> the number of its file, an integer from 0 on; None: files of 256 MiB, in order.
        Where a function deals, the elements are also kept in order until the pass ends, which takes the space twice: from there
        the pass after one that was killed goes on.

    Raises:
      InvalidArgumentError: the compression is unknown; at iteration, `path` is a file, or `shard_func` returns no number.
      OSError: at iteration, the files could not be written; nothing is left of them.

    >>> import distinput as di
    >>> shuffled = di.data.Dataset.range(100).shuffle(100).snapshot("shuffled")
    >>> shuffled.to_list() == shuffled.to_list()
    True

    Source: `tf.data.Dataset.snapshot`.
    """

    indifferent: ClassVar[frozenset[str]] = frozenset({"path", "compression"})
    path: str
    compression: str | None = "AUTO"
    reader_func: Callable[[Any], Any] | None = None
    shard_func: Callable[..., Any] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        normalized(self, "path", as_paths(self.path)[0])
        codec_of("snapshot", self.compression)
        given = [name for name in ("reader_func", "shard_func") if getattr(self, name) is not None]
        take_functions(self, "snapshot", *given)

    @property
    def directory(self) -> str:
        return join_path(self.path, self._word)

    @cached_property
    def _word(self) -> str:
        """The name of the folder: that of the pipeline, of `shard_func` and of the format of the files."""
        held = (self.held,) if self.held else ()
        return (
            Digest(8).add(self.pipeline, "" if self.shard_func is None else function_word(self.shard_func), *held).word
        )

    @property
    def codec(self) -> str | None:
        return codec_of("snapshot", self.compression)

    @property
    def shards_by(self) -> Callable[..., Any] | None:
        return self.shard_func

    @property
    def read_by(self) -> Callable[[Any], Any] | None:
        return self.reader_func

    def reader(self, found: WrittenFiles, in_order: bool = False) -> Node:
        return saved_elements(found, self.spec, None if in_order else self.reader_func)
