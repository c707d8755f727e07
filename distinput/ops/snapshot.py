# SPDX-License-Identifier: Apache-2.0
"""`snapshot`: the elements of the first complete pass, kept in a folder for each pipeline."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from distinput.columns.digest import Digest
from distinput.files.folder import join_path
from distinput.files.paths import as_paths
from distinput.ops.saved import saved_elements
from distinput.plan.binding import take_functions
from distinput.plan.check import normalized
from distinput.plan.code import function_word
from distinput.plan.node import Node
from distinput.streaming.kept_on_disk import KeptOnDisk
from distinput.writers.elements import codec_of
from distinput.writers.manifest import WrittenFiles

__all__ = ["Snapshot"]


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
        return Digest(8).add(self.pipeline, "" if self.shard_func is None else function_word(self.shard_func)).word

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
