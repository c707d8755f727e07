# SPDX-License-Identifier: Apache-2.0
"""`prefetch`: make the next elements while the last ones are in use."""

import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from distinput.core.block import Block
from distinput.core.column import Ints
from distinput.core.rows import Stream
from distinput.core.run import Run
from distinput.core.spec import Spec
from distinput.core.state import State
from distinput.errors import InvalidArgumentError
from distinput.plan.check import AUTOTUNE, integer
from distinput.plan.node import Node

__all__ = ["Prefetch"]

_AUTOTUNE_ROWS = 64


@dataclass(frozen=True, eq=False)
class Prefetch(Node):
    """Make up to `buffer_size` elements ahead, on a thread.

    Shapes and order: unchanged. State: that of the input, since it travels with each block; what was made ahead and not
    delivered is made again after a restart. The thread hands over whole blocks and ends with the iteration.

    Args:
      buffer_size: elements ahead; AUTOTUNE chooses; 0 does nothing.

    Raises:
      InvalidArgumentError: `buffer_size` is negative and not AUTOTUNE.

    >>> import distinput as di
    >>> di.data.Dataset.range(3).prefetch(2).to_list()
    [0, 1, 2]

    Source: `tf.data.Dataset.prefetch`.
    """

    input: Node
    buffer_size: int

    def __post_init__(self) -> None:
        if integer("prefetch", "buffer_size", self.buffer_size) < 0 and self.buffer_size != AUTOTUNE:
            raise InvalidArgumentError(f"prefetch: buffer_size must be at least 0, or AUTOTUNE, got {self.buffer_size}")

    @cached_property
    def spec(self) -> Spec:
        return self.input.spec

    @property
    def cardinality(self) -> int:
        return self.input.cardinality

    def start(self, epoch: int) -> State:
        return self.input.start(epoch)

    def start_at(self, row: int, epoch: int) -> State | None:
        return self.input.start_at(row, epoch)

    def stream(self, state: State, run: Run) -> Stream:
        upstream = self.input.open(state, run)
        if not self.buffer_size:
            yield from upstream
            return
        yield from _ahead(upstream, _AUTOTUNE_ROWS if self.buffer_size == AUTOTUNE else int(self.buffer_size), run)

    @property
    def random_access(self) -> bool:
        return self.input.random_access

    def fetch(self, rows: Ints, epoch: int) -> Block:
        return self.input.fetch(rows, epoch)


class _Buffer:
    """Blocks between the thread that makes them and the consumer; an error travels in their place."""

    def __init__(self, rows: int) -> None:
        self.room = rows
        self.items: deque[tuple[Block, State] | BaseException | None] = deque()
        self.rows = 0
        self.closed = False
        self.changed = threading.Condition()

    def put(self, item: tuple[Block, State] | BaseException | None) -> bool:
        """Wait for room and hand over; False when the consumer has gone."""
        with self.changed:
            while self.rows >= self.room and not self.closed:
                self.changed.wait()
            if self.closed:
                return False
            self.items.append(item)
            self.rows += item[0].size if isinstance(item, tuple) else 0
            self.changed.notify_all()
            return True

    def get(self) -> tuple[Block, State] | BaseException | None:
        """Wait for the next item; None is the end, also when the buffer is closed while its consumer waits."""
        with self.changed:
            while not self.items and not self.closed:
                self.changed.wait()
            item = self.items.popleft() if self.items else None
            self.rows -= item[0].size if isinstance(item, tuple) else 0
            self.changed.notify_all()
            return item

    def close(self) -> None:
        """The consumer has gone."""
        with self.changed:
            self.closed = True
            self.items.clear()
            self.changed.notify_all()


def _fill(upstream: Stream, buffer: _Buffer) -> None:
    try:
        for item in upstream:
            if not buffer.put(item):
                return
        buffer.put(None)
    except BaseException as error:  # noqa: BLE001 - handed to the consumer, who raises it where it can be caught
        buffer.put(error)
    finally:
        upstream.close()  # type: ignore[attr-defined]


def _ahead(upstream: Stream, rows: int, run: Run) -> Iterator[tuple[Block, State]]:
    buffer = _Buffer(rows)
    thread = threading.Thread(target=_fill, args=(upstream, buffer), name="distinput-prefetch", daemon=True)
    thread.start()
    try:
        with run.closing(buffer.close):
            while True:
                item = buffer.get()
                if item is None:
                    return
                if isinstance(item, BaseException):
                    raise item
                yield item
    finally:
        buffer.close()
        if thread is not threading.current_thread():
            thread.join()
