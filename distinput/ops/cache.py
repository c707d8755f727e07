# SPDX-License-Identifier: Apache-2.0
"""`cache`: the elements of the first complete pass, kept in memory."""

import threading
from dataclasses import dataclass, field
from functools import cached_property

from distinput.core.block import Block, concat_blocks
from distinput.core.column import Ints
from distinput.core.rows import Stream
from distinput.core.run import Run
from distinput.core.sizes import block_rows
from distinput.core.spec import Spec
from distinput.core.state import State
from distinput.errors import UnimplementedError
from distinput.plan.node import UNKNOWN, Node

__all__ = ["Cache"]


class Store:
    """What a complete pass left behind: its elements and the epoch they were made in."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.block: Block | None = None
        self.complete = False
        self.epoch = 0

    def keep(self, blocks: list[Block], epoch: int) -> None:
        """Keep the elements of a complete pass, unless another pass was first."""
        with self.lock:
            if not self.complete:
                self.block = concat_blocks(blocks) if blocks else None
                self.epoch = epoch
                self.complete = True


@dataclass(frozen=True, eq=False)
class Cache(Node):
    """Keep the elements of the first complete pass in memory and serve later passes from there.

    Shapes and order: those of the first pass. State: the row, the epoch of the pass that is kept, and while that pass is
    under way the input's state. A restart in a new process makes the pass again.

    Args:
      filename: must be empty: only the cache in memory exists.

    Raises:
      UnimplementedError: a file name is given.

    >>> import distinput as di
    >>> ds = di.data.Dataset.range(3).shuffle(3, seed=1).cache()
    >>> ds.to_list() == ds.to_list()
    True

    Source: `tf.data.Dataset.cache`.
    """

    input: Node
    filename: str = ""
    store: Store = field(default_factory=Store, repr=False)

    def __post_init__(self) -> None:
        if self.filename:
            raise UnimplementedError(
                f"cache: a cache on disk ({self.filename!r}) does not exist yet; leave the name out"
            )

    @cached_property
    def spec(self) -> Spec:
        return self.input.spec

    @property
    def cardinality(self) -> int:
        return self.input.cardinality

    def start(self, epoch: int) -> State:
        store = self.store
        if store.complete:
            return {"row": 0, "epoch": store.epoch, "input": None}
        return {"row": 0, "epoch": epoch, "input": self.input.start(epoch)}

    def start_at(self, row: int, epoch: int) -> State | None:
        store = self.store
        if store.complete:
            return {"row": row, "epoch": store.epoch, "input": None}
        at = self.input.start_at(row, epoch)
        return None if at is None else {"row": row, "epoch": epoch, "input": at}

    def stream(self, state: State, run: Run) -> Stream:
        store, row, epoch = self.store, state["row"], state["epoch"]
        if store.complete and store.epoch == epoch:
            yield from self._served(row)
            return
        kept: list[Block] = []
        whole = row == 0 or state["input"] is None
        upstream = self.input.start(epoch) if whole else state["input"]
        at = 0 if whole else row
        for block, after in self.input.open(upstream, run):
            if whole:
                kept.append(block)
            at += block.size
            if at > row:
                yield (
                    block.rows(max(0, row - (at - block.size)), block.size),
                    {"row": at, "epoch": epoch, "input": after},
                )
        if whole:
            store.keep(kept, epoch)

    def _served(self, row: int) -> Stream:
        block = self.store.block
        if block is None:
            return
        most = block_rows(block.nbytes / max(1, block.size))
        for begin in range(row, block.size, most):
            end = min(begin + most, block.size)
            yield block.rows(begin, end), {"row": end, "epoch": self.store.epoch, "input": None}

    @property
    def random_access(self) -> bool:
        return self.input.random_access and self.input.cardinality != UNKNOWN

    def fetch(self, rows: Ints, epoch: int) -> Block:
        if self.store.complete and self.store.block is not None:
            return self.store.block.take(rows)
        return self.input.fetch(rows, epoch)
