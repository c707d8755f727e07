# SPDX-License-Identifier: Apache-2.0
"""Machines that are taken away with notice: all workers save at the same step and end."""

import logging
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from time import perf_counter
from types import FrameType
from typing import Any, Self
from weakref import WeakSet, ref

from distinput.distribute.collectives.agreements import Agreement
from distinput.distribute.collectives.channel import ChannelLost
from distinput.distribute.collectives.collectives import Collectives
from distinput.distribute.collectives.peers import only_peers
from distinput.distribute.core.contexts import modes
from distinput.distribute.core.replicas import Peers
from distinput.errors import CollectiveError, FailedPreconditionError
from distinput.kernels.kernel import HelperThread
from distinput.names.lazy import dataclass
from distinput.run.threads import Closing

# ----------------------------------------------------------------------------
# The notice that this process must end soon: SIGTERM, or what a function of the user detects; and who tells others.
# ----------------------------------------------------------------------------

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
        self._ends: queue.SimpleQueue[object] = queue.SimpleQueue()  # a finalizer may put something on it at any time
        self._signal = ask is None
        if ask is None:
            _signals.add(self)
        else:
            # The thread has only a weak reference, so that the notice can be dropped.
            HelperThread(
                target=_ask_again_and_again,
                args=(ask, ref(self, self._ends.put), self._ends),
                name="distinput-notice",
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
        self._ends.put(None)
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


def _ask_again_and_again(ask: Callable[[], bool], watched: "ref[Notice]", ends: "queue.SimpleQueue[object]") -> None:
    """The thread's loop, until the notice is closed or dropped."""
    while ends.empty():
        try:
            found: bool | Exception = bool(ask())
        except Exception as raised:  # noqa: BLE001 - raised again in the training loop
            found = raised
        notice = watched()
        if notice is not None and isinstance(found, Exception):
            notice.error = found
            return
        if notice is not None and found:
            notice.arrived()
        del notice
        with suppress(queue.Empty):
            ends.get(timeout=_LOOK_SECONDS)
            return


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
        self._announced = False
        if self._peers is not None:
            HelperThread(target=_watch, args=(ref(self),), name="distinput-preemption").start()

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
        if self._notice.when is not None and not self._announced:
            self._messages[self._peers.rank] = self._told_by(self._peers.rank)
            self._peers.group.announce(self._told_by(self._peers.rank))
            self._announced = True
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


# ----------------------------------------------------------------------------
# The handler that makes all workers save at the same step when one of them must end.
# ----------------------------------------------------------------------------


# ---- How a platform announces that it takes a machine away, and how a program ends then

EXIT_CODE = 143
"""128 + SIGTERM: what shells and container platforms report for a program that SIGTERM ended."""


@dataclass(frozen=True)
class TerminationConfig:
    """Adapts `PreemptionCheckpointHandler` to a platform.

    Args:
      termination_watcher_fn: called about once a second on a thread of its own; returns True once the platform has given
        notice. It must not block. None: the notice is SIGTERM.
      exit_fn: called on all workers when the checkpoint is complete; it usually calls `sys.exit` with the code that makes the
        platform restart the program. If it returns, training continues. None: `sys.exit(143)`.
      grace_period: seconds from the notice to the end. With a positive number, a checkpoint is saved at once, training
        continues, and shortly before the time is over the last checkpoint is saved and the program ends. It should be
        several times as long as saving takes. None or 0: save and end at once.
      save_fn: called on all workers to save, instead of `CheckpointManager.save`, with the arguments that
        `save_checkpoint_if_preempted` was given.

    Raises:
      ValueError: `grace_period` is negative.
      TypeError: what should be a function is none.

    >>> import sys
    >>> import distinput as di
    >>> di.distribute.experimental.TerminationConfig(exit_fn=lambda: sys.exit(42)).grace_period

    Source: `tf.distribute.experimental.TerminationConfig`.
    """

    termination_watcher_fn: Callable[[], bool] | None = None
    exit_fn: Callable[[], Any] | None = None
    grace_period: float | None = None
    save_fn: Callable[..., Any] | None = None

    def __post_init__(self) -> None:
        for name in ("termination_watcher_fn", "exit_fn", "save_fn"):
            value = getattr(self, name)
            if value is not None and not callable(value):
                raise TypeError(f"TerminationConfig: {name} must be a function or None, got a {type(value).__name__}")
        if self.grace_period is not None and self.grace_period < 0:
            raise ValueError(f"TerminationConfig: grace_period must not be negative, got {self.grace_period}")


# ---- How workers agree, while they compute, on the call before which all of them save
#
# At intervals each worker posts an agreement that says whether it has received a notice, and reads the sums some calls later,
# when they are usually complete. So all workers learn of a notice in the same call, at a cost of some microseconds a call. The
# number of calls between two agreements is derived from the sums as well: as many as take about `_EVERY_SECONDS`.

_EVERY_SECONDS = 0.1
"""About how long an agreement is posted after the one before: each costs some tenths of a millisecond of processor time."""

_MOST_CALLS = 64
"""The maximum number of calls between two agreements, however short they are: later calls may take longer."""

LATENCY = 2 * _EVERY_SECONDS
"""Seconds from a notice to the decision, if calls are short; two calls if they are long."""

_CLOSE_SECONDS = 1.0
_MICROSECONDS = 1e6
_LONGEST = 1 << 40  # microseconds; a sum of these fits into 64 bits


@dataclass(frozen=True)
class SaveDecision:
    """What all workers do before the next call.

    Args:
      worker: the worker that received the notice; None if several did.
      final: True to end after saving, False to save and continue for the rest of the grace period.
    """

    worker: int | None
    final: bool


class Alignment:
    """One worker's part in the agreements.

    Args:
      group: a group for this purpose alone; None for a process without other workers.
      noticed: returns True if this worker has received a notice.
      expired: returns True if its time is nearly over; called only after a notice.
    """

    def __init__(self, group: Collectives | None, noticed: Callable[[], bool], expired: Callable[[], bool]) -> None:
        self._group, self._noticed, self._expired = group, noticed, expired
        self._next = 0  # the call in which the next agreement is posted
        self._look = 0  # the call after which its sums are read
        self._gap = 1  # calls from one agreement to the next
        self._calls = 1  # calls between the last two, which may have been more
        self._pending: Agreement | None = None
        self._posted_in, self._posted_at = 0, perf_counter()

    def before(self, call: int) -> None:
        """Post an agreement if one is due; to be called at the beginning of every call."""
        if call < self._next or self._pending is not None or self._group is None:
            return
        now = perf_counter()
        noticed = self._noticed()
        took = min(int((now - self._posted_at) * _MICROSECONDS), _LONGEST)
        values = [int(noticed), self._group.rank * noticed, int(noticed and self._expired()), took]
        self._pending = self._group.agree(values, f"call {call} of the preemption handler")
        self._calls = max(1, call - self._posted_in)
        self._posted_in, self._posted_at = call, now
        self._look = call + self._gap // 2

    def after(self, call: int) -> SaveDecision | None:
        """What to do before the next call, None for nothing; to be called at the end of every call.

        Raises:
          Mismatch: the workers have not made the same number of calls.
          CollectiveError: a worker is gone or late.
        """
        if self._group is None:
            return SaveDecision(0, self._expired()) if self._noticed() else None
        if self._pending is None or call < self._look:
            return None
        pending, self._pending = self._pending, None
        noticed, ranks, expired, took = pending.result()
        seconds = took / _MICROSECONDS / self._group.size / self._calls
        self._gap = max(1, min(_MOST_CALLS, 2 * self._gap, int(_EVERY_SECONDS / max(seconds, 1e-9))))
        self._next = max(call + 1, self._posted_in + self._gap)
        if not noticed:
            return None
        return SaveDecision(ranks if noticed == 1 else None, expired > 0)

    def close(self) -> None:
        """Wait for a pending agreement, and leave the group; may be called again."""
        group, self._group = self._group, None
        if group is not None:
            if self._pending is not None:
                with suppress(CollectiveError):
                    self._pending.result(_CLOSE_SECONDS)
            group.close()


# ---- `PreemptionCheckpointHandler`

_log = logging.getLogger("distinput")

_RESERVE = 3.0
"""Time reserved at the end of a grace period, as a multiple of what saving and a step took before."""

_KEPT = 2
"""How many checkpoints are kept in a folder that the handler manages: one more in case the latest is damaged."""


class PreemptionCheckpointHandler(Closing):
    """Saves a checkpoint on all workers at the same step, and ends them, when any of them is told to end.

    On creation, it restores the latest checkpoint. From then on it watches for a notice, usually SIGTERM. A worker that
    receives one tells the others while they compute; before the same later call of `run`, all of them save together and end
    with the same exit code. The restarted program continues with the step that would have followed.

    Create it after everything that the checkpoint holds, on all workers, in the main thread.

    An iterator is saved at its position at the end of the previous call of `run`; whatever was taken from it since belongs to
    the step that was not made. Everything else is saved as it is. So a loop may take a batch, pass it to `run`, and count
    afterwards; no record is lost, and none is delivered twice.

    Args:
      cluster_resolver: accepted for compatibility with TensorFlow. The workers are those of the checkpoint: of the strategy in
        whose scope it was made, or of what it holds.
      checkpoint_or_checkpoint_manager: a `train.CheckpointManager` or a `train.Checkpoint`.
      checkpoint_dir: a folder for the checkpoints, of which two are kept; needed with a `Checkpoint`.
      termination_config: how a notice arrives and how to end.

    Raises:
      ValueError: a `Checkpoint` without a `checkpoint_dir`.
      FailedPreconditionError: it is not the main thread, and the notice is SIGTERM.
      Exception: see `CheckpointManager.restore_or_initialize`.

    >>> import tempfile
    >>> import numpy as np
    >>> import distinput as di
    >>> total = np.zeros(1)
    >>> checkpoint = di.train.Checkpoint(total=total)
    >>> config = di.distribute.experimental.TerminationConfig(termination_watcher_fn=lambda: False)
    >>> with di.distribute.experimental.PreemptionCheckpointHandler(None, checkpoint, tempfile.mkdtemp(), config) as handler:
    ...     for x in range(3):
    ...         handler.run(total.__iadd__, x)
    array([0.])
    array([1.])
    array([3.])

    Source: `tf.distribute.experimental.PreemptionCheckpointHandler`.
    """

    def __init__(
        self,
        cluster_resolver: Any,
        checkpoint_or_checkpoint_manager: Any,
        checkpoint_dir: str | os.PathLike[str] | None = None,
        termination_config: TerminationConfig | None = None,
    ) -> None:
        del cluster_resolver
        self._manager = _manager_of(checkpoint_or_checkpoint_manager, checkpoint_dir)
        self._checkpoint = self._manager.checkpoint
        self._config = termination_config or TerminationConfig()
        crew = self._checkpoint._crew_now()
        self._rank, self._size = crew.rank, crew.size
        self._manager.restore_or_initialize()
        self._calls = 0  # in this process, of `run` and `save_checkpoint_if_preempted`
        self._decision: SaveDecision | None = None
        self._saved_at: float | None = None  # in a grace period
        self._save_seconds = self._step_seconds = 0.0
        self._ended: float | None = None  # the time of the end of the call before
        self._ending = False
        self._alignment = Alignment(crew.channel("preemption"), self._is_noticed, self._is_expired)
        self._notice: Notice | None = Notice(self._config.termination_watcher_fn)

    @property
    def total_run_calls(self) -> int:
        """The number of calls of `run`, including those before a restart.

        Source: `tf.distribute.experimental.PreemptionCheckpointHandler.total_run_calls`.
        """
        return int(self._checkpoint._run_calls)

    def run(self, distributed_train_function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Make a step; or, if a worker must end, save and end.

        All workers must call this the same number of times.

        Args:
          distributed_train_function: makes a step.
          *args: its arguments.
          **kwargs: its named arguments.

        Returns:
          Its result.

        Raises:
          SystemExit: all workers have saved.
          Mismatch: the workers did not call this the same number of times.
          Exception: what the function raised, or saving.

        Source: `tf.distribute.experimental.PreemptionCheckpointHandler.run`.
        """
        if self._decision is not None:
            self._act()
        call = self._begin_call()
        result = distributed_train_function(*args, **kwargs)
        self._checkpoint._run_calls += 1
        self._decision = self._end_call(call)
        if self._decision is not None:
            self._checkpoint._hold_positions()
        return result

    def save_checkpoint_if_preempted(self, *args: Any, **kwargs: Any) -> None:
        """Save and end if a worker must end; to be called after every step by loops that do not use `run`.

        All workers must call this the same number of times. Iterators are saved at their present positions.

        Args:
          *args: for the `save_fn` of the configuration, or for `CheckpointManager.save`.
          **kwargs: the same.

        Raises:
          SystemExit: all workers have saved.
          Mismatch: the workers did not call this the same number of times.

        Source: `tf.distribute.experimental.PreemptionCheckpointHandler.save_checkpoint_if_preempted`.
        """
        self._decision = self._decision or self._end_call(self._calls)
        if self._decision is not None:
            self._act(*args, **kwargs)
        self._begin_call()

    @contextmanager
    def watch_preemption_scope(self) -> Iterator[Self]:
        """A `with` block for the training loop, at whose end the handler stops watching.

        A SIGTERM that came too late for the loop ends the process at the end of the block, as it would without a handler.

        Source: `tf.distribute.experimental.PreemptionCheckpointHandler.watch_preemption_scope`.
        """
        if self._notice is None:
            self._notice = Notice(self._config.termination_watcher_fn)
        try:
            yield self
        finally:
            self._watch_no_more()

    def close(self) -> None:
        """Stop watching and leave the group of workers; may be called again. SIGTERM then has its previous effect."""
        self._alignment.close()
        self._watch_no_more()

    def _watch_no_more(self) -> None:
        notice, self._notice = self._notice, None
        if notice is not None:
            notice.close(ending=self._ending)

    # ---- calls

    def _begin_call(self) -> int:
        self._calls += 1
        self._alignment.before(self._calls)
        return self._calls

    def _end_call(self, call: int) -> SaveDecision | None:
        if call == 0:
            return None
        now = time.monotonic()
        if self._ended is not None:
            self._step_seconds = now - self._ended
        self._ended = now
        decision = self._alignment.after(call)
        if decision is not None and self._saved_at is not None and not decision.final:
            return None  # the checkpoint at the beginning of the grace period is there already
        return decision

    def _is_noticed(self) -> bool:
        notice = self._notice
        if notice is None:
            return False
        if notice.error is not None:
            raise notice.error
        return notice.when is not None

    def _is_expired(self) -> bool:
        grace = self._config.grace_period
        if not grace or self._notice is None or self._notice.when is None:
            return not grace
        reserve = _RESERVE * (self._save_seconds + self._step_seconds) + (LATENCY if self._size > 1 else 0)
        return time.monotonic() + reserve >= self._notice.when + grace

    def _act(self, *args: Any, **kwargs: Any) -> None:
        """Save, and end unless this is the beginning of a grace period."""
        decision, self._decision = self._decision, None
        assert decision is not None
        began = time.monotonic()
        try:
            path = self._save(*args, **kwargs)
        finally:
            self._checkpoint._release_positions()
        self._save_seconds = time.monotonic() - began
        path = path or self._manager.latest_checkpoint  # this step was saved already
        who = "several workers" if decision.worker is None else f"worker {decision.worker}"
        who = who if self._size > 1 else "this process"
        text = self._notice.text if self._notice is not None else "a notice"
        if not decision.final:
            self._saved_at = time.monotonic()
            _log.warning("%s received %s: saved %s; training continues for the grace period", who, text, path)
            return
        _log.warning("%s received %s: saved %s after %d steps; ending", who, text, path, self.total_run_calls)
        if self._notice is not None:
            self._notice.acted_on()
        self._saved_at = None
        self._ending = True
        try:
            (self._config.exit_fn or partial(sys.exit, EXIT_CODE))()
        except SystemExit as end:
            end.agreed = True  # type: ignore[attr-defined]  # every worker ends here, so none has to be told
            raise
        self._ending = False

    def _save(self, *args: Any, **kwargs: Any) -> Any:
        if self._config.save_fn is not None:
            return self._config.save_fn(*args, **kwargs)
        return self._manager.save(*args, **{"check_interval": False, **kwargs} if not args else kwargs)


def _manager_of(given: Any, folder: str | os.PathLike[str] | None) -> Any:
    if hasattr(given, "restore_or_initialize"):
        return given
    if not hasattr(given, "_managed_in"):
        raise TypeError(
            "PreemptionCheckpointHandler: needs a train.CheckpointManager or a train.Checkpoint, got a "
            f"{type(given).__name__}"
        )
    if folder is None:
        raise ValueError(
            "PreemptionCheckpointHandler: a Checkpoint needs a checkpoint_dir; or give a CheckpointManager"
        )
    return given._managed_in(folder, _KEPT)
