# SPDX-License-Identifier: Apache-2.0
"""Finding out whether any worker was told to end."""

import threading
import time
from typing import Any
from weakref import ref

from distinput.distribute.collectives.channel import ChannelLost
from distinput.distribute.modes import modes
from distinput.distribute.peers import Peers, only_peers
from distinput.distribute.preemption.notice import Notice

__all__ = ["PreemptionWatcher"]

_LOOK_SECONDS = 0.2


class PreemptionWatcher:
    """Tells whether this process, or another worker with a watcher, has received SIGTERM.

    While it exists, SIGTERM does not end the process: the program reads `preemption_message` and ends by itself.
    `PreemptionCheckpointHandler` saves and ends the program as well. Create the watcher in the main thread, after the strategy.

    Raises:
      FailedPreconditionError: it is not the main thread.

    >>> import distinput as di
    >>> watcher = di.distribute.experimental.PreemptionWatcher()
    >>> watcher.preemption_message is None
    True
    >>> watcher.close()

    Source: `tf.distribute.experimental.PreemptionWatcher`. TensorFlow's watches TPU workers of Google's own clusters; this one
    watches the workers of the current strategy, or of the only one that has several.
    """

    def __init__(self) -> None:
        self._notice = Notice()
        strategy = modes.stack[-1].strategy if modes.stack else None
        peers = getattr(getattr(strategy, "_replicas", None), "peers", None) or only_peers()
        self._peers: Peers | None = peers if peers is not None and peers.size > 1 else None
        self._messages: dict[int, str] = {}
        if self._peers is not None:
            threading.Thread(target=_watch, args=(ref(self),), name="distinput-preemption", daemon=True).start()

    @property
    def preemption_message(self) -> str | None:
        """Which workers were told to end; None if nobody was.

        Source: `tf.distribute.experimental.PreemptionWatcher.preemption_message`.
        """
        if self._notice.when is not None:
            rank = 0 if self._peers is None else self._peers.rank
            self._messages.setdefault(rank, self._told_by(rank))
        return "; ".join(text for _, text in sorted(self._messages.items())) or None

    def block_until_worker_exit(self, timeout: float = 300.0) -> None:
        """Wait until the other workers that were told to end have left the job; return at once if there are none.

        Args:
          timeout: seconds to wait at most, since nobody sees that a process on another machine was killed.

        Source: `tf.distribute.experimental.PreemptionWatcher.block_until_worker_exit`.
        """
        peers = self._peers
        if peers is None:
            return
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            left = peers.group.departed()
            if all(rank in left or rank == peers.rank for rank in self._messages):
                return
            time.sleep(_LOOK_SECONDS)

    def close(self) -> None:
        """Stop watching. A SIGTERM that arrived is sent to the process again, and ends it as usual."""
        self._notice.close()

    @staticmethod
    def _told_by(rank: int) -> str:
        return f"worker {rank} received SIGTERM"

    def _look(self) -> None:
        """Tell the others of a notice, and look for theirs."""
        assert self._peers is not None
        if self._notice.when is not None and self._peers.rank not in self._messages:
            self._messages[self._peers.rank] = self._told_by(self._peers.rank)
            self._peers.group.announce(self._told_by(self._peers.rank))
        self._messages.update(self._peers.group.announced())


def _watch(watcher: Any) -> None:
    """The thread: it ends with the watcher, or when the others cannot be reached any more."""
    while (here := watcher()) is not None:
        try:
            here._look()
        except ChannelLost:
            return
        del here
        time.sleep(_LOOK_SECONDS)
