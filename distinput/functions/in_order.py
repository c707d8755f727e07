# SPDX-License-Identifier: Apache-2.0
"""Parts of a stream are worked on elsewhere, several at a time; their results come in the order of the elements."""

from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from distinput.core.block import Block
from distinput.core.failure import Failure
from distinput.core.state import Mark
from distinput.functions.parts import Calling, Done, Parts, Results

__all__ = ["Lanes", "in_order"]


class Lanes(Protocol):
    """Threads, processes or an executor: parts are sent there, and their results received in the order of sending."""

    workers: int

    def send(self, rows: Block) -> Any:
        """Hand a part over; what is returned stands for its results."""

    def ready(self, sent: Any) -> bool:
        """Whether these results are there."""

    def receive(self, sent: Any) -> Done:
        """These results, waited for.

        Raises:
          Closed: the run was closed meanwhile.
        """


def in_order(
    parts: Parts,
    calling: Calling,
    lanes: Lanes,
    most: int | None = None,
    enough: Callable[[], bool] = lambda: False,
) -> Results:
    """Results until the parts have ended, or `enough` returns true and those under way have come.

    Args:
      parts: of the elements.
      calling: the functions, and the pass.
      lanes: where they are called.
      most: parts that may be under way; None: as many as keep the workers busy.
      enough: asked before a part is sent.

    Raises:
      Closed: the run was closed.
    """
    run, chain, counter = calling.run, calling.chain, calling.counter
    counter.workers = lanes.workers
    waiting: deque[tuple[Block, Callable[[int], Mark], Any]] = deque()
    while True:
        limit = run.at_once(most or parts.waiting(lanes.workers)) if chain.settled else 1
        full = len(waiting) >= limit or parts.ended or enough()
        if waiting and (full or _ready(lanes, *waiting[0])):
            rows, mark_at, sent = waiting.popleft()
            if type(rows) is Failure:
                yield rows, mark_at, rows
                continue
            done = counter.waits(lanes.receive, sent)
            counter.worked += done.seconds
            parts.took(done)
            chain.settle(done.kinds)
            yield from calling.delivered(done, rows, mark_at)
        elif full:
            return
        elif (part := parts.next()) is not None:
            rows, mark_at = part
            waiting.append((rows, mark_at, None if type(rows) is Failure else lanes.send(rows)))


def _ready(lanes: Lanes, rows: Block, _: Callable[[int], Mark], sent: Any) -> bool:
    return type(rows) is Failure or lanes.ready(sent)
