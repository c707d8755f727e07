# SPDX-License-Identifier: Apache-2.0
"""`cache(filename)`: the elements of the first complete pass, kept in a folder that processes share."""

from dataclasses import dataclass
from typing import ClassVar

from distinput.ops.saved import saved_elements
from distinput.plan.node import Node
from distinput.streaming.kept_on_disk import KeptOnDisk
from distinput.writers.manifest import WrittenFiles

__all__ = ["DiskCache"]


@dataclass(frozen=True, eq=False)
class DiskCache(KeptOnDisk):
    """Keep the elements of the first complete pass in a folder; later passes, here and in other processes, read them there.

    Shapes and order: those of the first pass. State: that of `KeptOnDisk`.

    Args:
      filename: the folder.
      max_bytes: a pass that needs more is not kept; None: no limit.

    Source: `tf.data.Dataset.cache`.
    """

    indifferent: ClassVar[frozenset[str]] = frozenset({"filename", "max_bytes"})
    filename: str
    max_bytes: int | None = None

    @property
    def op(self) -> str:
        return "cache"

    @property
    def directory(self) -> str:
        return self.filename

    @property
    def most_bytes(self) -> int | None:
        return self.max_bytes

    def reader(self, found: WrittenFiles, in_order: bool = False) -> Node:
        return saved_elements(found, self.spec)
