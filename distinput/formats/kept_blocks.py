# SPDX-License-Identifier: Apache-2.0
"""Blocks that are kept because they may be asked for again."""

import threading
from collections import OrderedDict
from typing import Any

from distinput.core.block import Block

__all__ = ["KeptBlocks"]


class KeptBlocks:
    """Blocks by key; when they take more than so much memory, those used longest ago go first.

    Args:
      most_bytes: of all of them together; a single one may take more.
    """

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self._kept: OrderedDict[Any, tuple[Block, int]] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: Any) -> Block | None:
        """The block, if it is still there."""
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                return None
            self._kept.move_to_end(key)
            return found[0]

    def put(self, key: Any, block: Block, nbytes: int) -> None:
        """Keep a block that takes so much memory."""
        with self._lock:
            self._bytes += nbytes - self._kept.pop(key, (block, 0))[1]
            self._kept[key] = block, nbytes
            while self._bytes > self.most_bytes and len(self._kept) > 1:
                self._bytes -= self._kept.popitem(last=False)[1][1]
