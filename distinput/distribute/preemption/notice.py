# SPDX-License-Identifier: Apache-2.0
"""The notice that this process must end soon: SIGTERM, or what a function of the user detects; and who tells others."""

import os
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any
from weakref import WeakSet, ref

from distinput.distribute.collectives.channel import ChannelLost
from distinput.distribute.collectives.peers import only_peers
from distinput.distribute.core.modes import modes
from distinput.distribute.core.replicas import Peers
from distinput.errors import FailedPreconditionError

__all__ = ["Notice", "PreemptionWatcher"]

# ---- The notice that this process must end soon: SIGTERM, or whatever a function of the user detects

_LOOK_SECONDS = 1.0


class Notice:
    """Watches for a notice, from its creation until `close`.

    Args:
      ask: called about once a second on a thread; returns True once there is a notice. None: the notice is SIGTERM.

    Raises:
      FailedPreconditionError: SIGTERM can be watched for only from the main thread.
    """

    def __init__(self, ask: Callable[[], bool] | None = None) -> None:
        self.when: float | None = None
        """The time of the notice, of `time.monotonic`; None: there was none."""
        self.error: Exception | None = None
        """What `ask` raised."""
        self._closed = threading.Event()
        self._signal = ask is None
        if ask is None:
            _signals.add(self)
        else:
            # The thread has only a weak reference, so that the notice can be dropped.
            threading.Thread(
                target=_ask_again_and_again, args=(ask, ref(self), self._closed), name="distinput-notice", daemon=True
            ).start()

    @property
    def text(self) -> str:
        """The notice in words."""
        return "SIGTERM" if self._signal else "notice of its end"

    def arrived(self) -> None:
        """Note that there is a notice."""
        if self.when is None:
            self.when = time.monotonic()

    def acted_on(self) -> None:
        """Forget the notice, since what it asks for was done; another may come."""
        self.when = None

    def close(self, *, ending: bool = False) -> None:
        """Stop watching. A SIGTERM that nobody has acted on is sent to the process again, and ends it as usual.

        Args:
          ending: True if the process is ending anyway: launchers may send the signal several times.
        """
        self._closed.set()
        if ending:
            self.acted_on()
        if self._signal:
            _signals.remove(self)


class _Signals:
    """The one handler of SIGTERM of this process, installed while a notice is watched for."""

    def __init__(self) -> None:
        self._notices: WeakSet[Notice] = WeakSet()
        self._before: Any = None

    def add(self, notice: Notice) -> None:
        if not self._notices or signal.getsignal(signal.SIGTERM) != self._arrived:
            try:
                self._before = signal.signal(signal.SIGTERM, self._arrived)
            except ValueError:
                raise FailedPreconditionError(
                    "PreemptionCheckpointHandler: only the main thread can watch for SIGTERM; make the handler there, "
                    "or give TerminationConfig(termination_watcher_fn=...)"
                ) from None
        self._notices.add(notice)

    def remove(self, notice: Notice) -> None:
        if notice not in self._notices:
            return
        self._notices.discard(notice)
        pending = notice.when is not None
        if not self._notices and threading.current_thread() is threading.main_thread():
            self._restore()
        if pending:
            os.kill(os.getpid(), signal.SIGTERM)

    def _restore(self) -> None:
        if signal.getsignal(signal.SIGTERM) == self._arrived:
            signal.signal(signal.SIGTERM, signal.SIG_DFL if self._before is None else self._before)

    def _arrived(self, number: int, frame: FrameType | None) -> None:
        notices = list(self._notices)
        for notice in notices:
            notice.arrived()
        if not notices:  # all were dropped, so nobody would ever act on it
            self._restore()
            os.kill(os.getpid(), number)


_signals = _Signals()


def _ask_again_and_again(ask: Callable[[], bool], watched: "ref[Notice]", closed: threading.Event) -> None:
    """The thread's loop, until the notice is closed or dropped."""
    while not closed.is_set() and watched() is not None:
        error, found = None, False
        try:
            found = bool(ask())
        except Exception as raised:  # noqa: BLE001 - raised again in the training loop
            error = raised
        notice = watched()
        if notice is not None and error is not None:
            notice.error = error
            return
        if notice is not None and found:
            notice.arrived()
        del notice
        closed.wait(_LOOK_SECONDS)


# ---- Finding out whether any worker was told to end

_WATCH_SECONDS = 0.2


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
            time.sleep(_WATCH_SECONDS)

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
        time.sleep(_WATCH_SECONDS)
