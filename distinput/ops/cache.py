# SPDX-License-Identifier: Apache-2.0
"""`cache`: the elements of the first complete pass, kept in memory."""

import threading
from collections.abc import Hashable
from dataclasses import field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from distinput.arrow.adopt import frozen
from distinput.columns.block import MOST_ROWS, Block, Failure, concat_blocks
from distinput.columns.column import Ints
from distinput.columns.rows import Stream
from distinput.columns.state import State
from distinput.errors import InvalidArgumentError
from distinput.files.paths import as_path
from distinput.kernels.kernel import renewed
from distinput.names.lazy import dataclass, later
from distinput.plan.check import at_least, normalized
from distinput.plan.families import PassStore, SameElements
from distinput.plan.node import INFINITE, Needs, Node
from distinput.run.run import Run

if TYPE_CHECKING:
    from distinput.ops import snapshot
else:
    snapshot = later("distinput.ops.snapshot")  # the cache that is kept in files


class CachedPass(PassStore):
    """The pass that is kept: the epoch of the first one that began, and its elements once one with that epoch was complete."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = renewed(threading.Lock())
        self.block: Block | None = None
        self.complete = False
        self.lacks = False
        """Whether elements are missing, since they failed: then only a pass that drops errors, or has met them, is served."""
        # A pass that ended with an error: its epoch, and its elements.
        self.begun: tuple[int, list[Block]] | None = None
        self.holes = False  # an element fails, so that not all can be kept

    def __reduce__(self) -> tuple[Any, ...]:
        """Elements stay in their process; the pass is the same in another one, which makes its elements itself."""
        return _empty, (self._epochs,)

    def take_up(self, row: int, epoch: int) -> list[Block] | None:
        """The elements before `row`, if a pass that ended with an error came so far; that pass is then resumed."""
        with self.lock:
            begun, self.begun = self.begun, None
        if begun is None or begun[0] != epoch:
            return None
        blocks = []
        for block in begun[1]:
            if row <= 0:
                break
            blocks.append(block)
            row -= block.size
        return None if row else blocks

    def begin(self, epoch: int) -> None:
        """A pass begins: later ones give the same elements, also where this one is left before its end."""
        with self.lock:
            if self.epoch is None:
                self.epoch = epoch

    def serves(self, epoch: int, run: Run) -> bool:
        """Whether what is kept is what a pass of a run gives."""
        goes_on = run.asked.dropping or not self.lacks or self.met is run.cancelled
        return self.complete and self.epoch == epoch and goes_on

    def keep(self, blocks: list[Block] | None, epoch: int, lacks: bool = False, run: Run | None = None) -> None:
        """Keep the elements of a complete pass, unless another pass was first; None: the pass began in another process.

        Args:
          blocks: the elements.
          epoch: of the pass.
          lacks: whether there would be more, had none failed.
          run: the one that made them; once it is told to end, steps below give no more, or go on without a part.
        """
        self.begin(epoch)
        if run is not None and run.cancelled.is_set():
            return
        with self.lock:
            better = not self.complete or self.lacks
            if blocks is not None and better and epoch == self.epoch:
                self.block = frozen(concat_blocks(blocks)) if blocks else None
                self.complete, self.lacks = True, lacks
                self.met = None if run is None or run.asked.dropping else run.cancelled


def _empty(epochs: list[int | None]) -> CachedPass:
    made = CachedPass()
    made._epochs = epochs
    return made


@dataclass(frozen=True, eq=False)
class Cache(SameElements):
    """Keep the elements of the first complete pass in memory and serve later passes from there.

    Shapes and order: those of the first pass, which later ones make again where it was left before its end, as by `take` behind
    the cache. State: the row, the epoch of the first pass, and the input's state while its elements are made. A restart in a
    new process makes the pass again; so does `skip`, since only a complete pass is kept.
    An op that reads by position (`global_shuffle`) makes all elements before its first one. A worker of a job whose policy
    divides what is below keeps its own part. Elements that failed are not kept: what `ignore_errors` behind the cache left out
    is an error again for those who do not leave it out. A pickled or deeply copied dataset has no elements in its cache yet:
    the other process makes the same ones itself.

    With a `filename` they are kept in a folder of this name, for later programs and other processes too. It holds a whole pass
    or nothing: a pass that ends before all elements are made is not kept, which a warning tells where a step behind the cache,
    such as `take`, ends it: put that before the cache. One pass writes; others that run meanwhile, in any process, make their
    elements themselves. After a process that was killed, the next pass that would make the same elements goes on where it was.

    With `shared` each pipeline has a folder of its own below that one, named by its steps, its files, and what its functions do
    and read from outside: all code of yours that they reach, in other modules too, globals, closures, the attributes of
    objects, and tokenizers of packages. So jobs share what is alike, and one with another function, another tokenizer or
    changed files makes its elements anew, beside the others.

    Args:
      filename: a folder, local or a URL, for a cache on disk; empty: in memory.
      max_bytes: on disk, a pass that needs more is not kept, with a warning; None: no limit.
      shared: a folder, local or a URL, for the caches of many pipelines and jobs.

    Raises:
      InvalidArgumentError: `max_bytes` is less than 1, or given for a cache in memory; `filename` and `shared` are both given;
        at iteration, the folder is a file.
      FailedPreconditionError: at iteration, the folder was written by another pipeline, or with other code of yours that its
        functions reach; the message says how it differs.
      OSError: at iteration, the files could not be written; nothing is left of them.

    >>> import distinput as di
    >>> ds = di.data.Dataset.range(3).shuffle(3, seed=1).cache()
    >>> ds.to_list() == ds.to_list()
    True
    >>> di.data.Dataset.range(3).cache("numbers").to_list(), di.data.Dataset.range(3).cache("numbers").to_list()
    ([0, 1, 2], [0, 1, 2])

    >>> kept = [di.data.Dataset.range(3).map(lambda x, n=n: x * n).cache(shared="caches") for n in (2, 3, 2)]
    >>> [ds.to_list() for ds in kept]
    [[0, 2, 4], [0, 3, 6], [0, 2, 4]]
    >>> import os
    >>> len(os.listdir("caches"))
    2

    Source: `tf.data.Dataset.cache`.
    """

    tolerant = harmless = delays = same_count = by_position = True
    needs: ClassVar[Needs] = Needs.PART
    indifferent: ClassVar[frozenset[str]] = frozenset({"max_bytes", "shared"})
    keeps: ClassVar[bool] = True
    filename: str = ""
    max_bytes: int | None = field(default=None, kw_only=True)
    shared: str = field(default="", kw_only=True)
    store: CachedPass = field(default_factory=CachedPass, kw_only=True, repr=False)

    def __post_init__(self) -> None:
        for name in ("filename", "shared"):
            normalized(self, name, as_path(getattr(self, name)))
        if self.filename and self.shared:
            raise InvalidArgumentError(
                f"cache: filename is one cache and shared a folder of many; give one of them, got {self.filename!r} and "
                f"{self.shared!r}"
            )
        if self.max_bytes is not None:
            at_least("cache", "max_bytes", self.max_bytes, 1)
            if not (self.filename or self.shared):
                raise InvalidArgumentError(
                    "cache: max_bytes bounds a cache on disk; give filename or shared too, or leave it out"
                )

    def added(self) -> Node:
        """The cache on disk, if there is to be one."""
        folder = self.filename or self.shared
        if not folder:
            return self
        return snapshot.DiskCache(
            self.input, folder, self.max_bytes, shared=bool(self.shared), name=self.name, origin=self.origin
        )

    def kept_by(self, share: Hashable) -> dict[str, Any]:
        """What is another one over the elements of one worker."""
        return {"store": self.store.of_share(share)}

    def start(self, epoch: int) -> State:
        return self.start_at(0, epoch)

    def start_at(self, row: int, epoch: int) -> State:
        # The rows before it are made too, since only a complete pass can be kept.
        kept = self.store.epoch
        return {"row": row, "epoch": epoch if kept is None else kept, "input": None}

    def stream(self, state: State, run: Run) -> Stream:
        store, row, epoch = self.store, state["row"], state["epoch"]
        if store.serves(epoch, run):
            yield from self._served(row)
            return
        store.begin(epoch)
        blocks = [] if row == 0 or state["input"] is None else store.take_up(row, epoch)
        again = blocks is not None and state["input"] is None
        lacks = not again  # behind the element with which a pass ended, or nobody knows
        position = 0 if again else row
        try:
            for made, after in self.input.open(self.input.start(epoch) if again else state["input"], run):
                if type(made) is Failure:
                    lacks = True
                    if position >= row:
                        yield made, {"row": position, "epoch": epoch, "input": after}
                    continue
                block = frozen(made)  # later passes look at the same arrays
                if blocks is not None:
                    blocks.append(block)
                position += block.size
                if blocks is not None and position == self.input.cardinality:  # nobody need ask for more to see the end
                    store.keep(blocks, epoch, run=run)
                    blocks = None
                if position > row:
                    part = block.rows(max(0, row - (position - block.size)), block.size)
                    yield part, {"row": position, "epoch": epoch, "input": after}
        except Exception:
            if blocks is not None and not run.cancelled.is_set():
                store.begun = epoch, blocks
            raise
        store.keep(blocks, epoch, lacks, run)

    def _served(self, row: int) -> Stream:
        block = self.store.block
        if block is None:
            return
        for begin in range(row, block.size, MOST_ROWS):  # views, so their bytes do not matter
            end = min(begin + MOST_ROWS, block.size)
            yield block.rows(begin, end), {"row": end, "epoch": self.store.epoch, "input": None}

    @property
    def random_access(self) -> bool:
        return self.input.random_access and self.input.cardinality >= 0

    @property
    def fetches(self) -> bool:
        return self.input.cardinality != INFINITE

    def fetch(self, rows: Ints, epoch: int) -> Block:
        if not self.random_access:
            return self._made(epoch).take(rows)
        store, every = self.store, self.input.cardinality
        if not store.complete and not store.holes:
            kept = epoch if store.epoch is None else store.epoch
            try:
                store.keep([self.input.fetch(np.arange(every), kept)], kept)
            except Exception:  # noqa: BLE001 - raised again when that element is requested
                store.keep(None, kept)
                store.holes = True
        whole = store.block if store.block is not None and store.block.size == every else None
        if whole is not None:
            return whole.take(rows)
        return self.input.fetch(rows, epoch if store.epoch is None else store.epoch)

    def _made(self, epoch: int) -> Block:
        """All elements, which a pass makes unless they are kept already."""
        store = self.store
        if not store.complete or store.lacks:
            with Run() as run:
                for _ in self.open(self.start(epoch), run):
                    pass
        return store.block if store.block is not None else Block.of(self.spec.structure, [])
