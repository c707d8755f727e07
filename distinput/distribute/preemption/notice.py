# SPDX-License-Identifier: Apache-2.0
"""The notice that this process must end soon: SIGTERM, or whatever a function of the user detects."""

import os
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any
from weakref import WeakSet, ref

from distinput.errors import FailedPreconditionError

__all__ = ["Notice"]

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
