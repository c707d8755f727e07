# SPDX-License-Identifier: Apache-2.0
"""Ranks in processes of their own: started, watched, and nothing of them left behind."""

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from pathlib import Path
from typing import Any, TypeVar

from distinput.names.lazy import dataclass
from distinput.testing.judge import traces
from distinput.testing.judge.play import Play, PlayEvent, PlayTask, Walk, folded
from distinput.testing.judge.player import OVER, TASK
from distinput.testing.ports import free_ports

# ----------------------------------------------------------------------------
# Work that must not hang: it runs in a thread, and whoever waits for it gives up when it stands still.
# ----------------------------------------------------------------------------


T = TypeVar("T")


class Still(TimeoutError):
    """There was no sign of life for too long."""


def load_told() -> str:
    """What to say of a machine on which more wants to run than it has cores: a loader may be starved there, and not hang."""
    cores = os.cpu_count() or 1
    if not hasattr(os, "getloadavg") or (load := os.getloadavg()[0]) <= cores:
        return ""
    return f"; on average {load:.0f} programs want to run on {cores} cores here, so it may be starved: give it more patience"


def watched(work: Callable[[], T], patience: float, last: Callable[[], float]) -> T:
    """What the work returns or raises, unless it stands still.

    Args:
      work: called in a thread of its own.
      patience: seconds without a sign of life.
      last: the time of the last one, by `time.monotonic`.

    Raises:
      Still: the work stood still; its thread is left behind.

    >>> watched(lambda: 7, patience=5.0, last=lambda: 1e9)
    7
    """
    outcome: Future[T] = Future()

    def run() -> None:
        try:
            outcome.set_result(work())
        except BaseException as error:  # noqa: BLE001 - it is raised where somebody waits
            outcome.set_exception(error)

    threading.Thread(target=run, name="distinput-judge", daemon=True).start()  # one that hangs is left behind
    while not wait([outcome], min(0.2, patience / 4)).done:
        if time.monotonic() - last() > patience:
            raise Still
    return outcome.result()


# ----------------------------------------------------------------------------
# Ranks in processes of their own: started, watched, and nothing of them left behind.
# ----------------------------------------------------------------------------


HOWS = ("in turn", "processes", "threads")
"""Ways to play the ranks of a job: one after the other in this process; all at once, each in a new process with the environment
that `torchrun` gives it; all at once as threads of one new process."""

_MARK = "DISTINPUT_JUDGE_PLAY"
_KILLED = "died of SIGKILL"
_GRACE = 5.0
"""Seconds that others may stand still after a rank has failed, and that what a process has started may outlive it."""
_GLANCE = 0.5
"""Seconds between looks at the processes and the shared memory."""


@dataclass(frozen=True)
class Played:
    """What became of a run.

    Args:
      walks: of each rank that was played.
      left: what had not ended by itself: processes, and shared memory that has not been removed; both are gone now.
    """

    walks: tuple[Walk, ...]
    left: tuple[str, ...]


def unpicklable(*what: Any) -> str | None:
    """Why a loader cannot be made in another process; None if it can.

    >>> unpicklable(lambda: 0)
    "make_loader cannot be made in another process (...); make it a function of a module"
    """
    try:
        packed = pickle.dumps(what)
    except Exception as error:  # noqa: BLE001 - pickle raises errors of many kinds
        return f"make_loader cannot be made in another process ({error}); make it a function of a module"
    if b"__main__" in packed:
        return (
            "make_loader cannot be made in another process (it belongs to the program); make it a function of a module"
        )
    return None


def play_away(task: PlayTask, how: str, patience: float, beat: Callable[[], None]) -> Played:
    """Play ranks in new processes and wait for their end.

    What a rank prints is read only where it dies. A rank that fails ends the run, as with `torchrun`: others may come to their
    end, but are not waited for when they stand still. Whatever happens, no process, shared memory or temporary file is left.

    Args:
      task: what they do; everything in it can be pickled.
      how: one of `HOWS`; in turn, each rank is as alone in its process as it is in ours.
      patience: seconds that a rank may stand still, the start of its process among them.
      beat: called all the while.

    Raises:
      Still: a rank stood still.
      UnknownBatch: it cannot be told which records are in a batch.
      Exception: the task cannot be pickled.
    """
    packed = pickle.dumps(task)
    with tempfile.TemporaryDirectory(prefix="judge-", ignore_cleanup_errors=True) as folder:
        Path(folder, TASK).write_bytes(packed)
        Path(folder, "tmp").mkdir()
        run = _Run(Path(folder), task.play, how)
        try:
            run.start()
            run.wait(patience, beat)
        finally:
            left = run.end(beat)
        return Played(tuple([run.walk(rank) for rank in task.play.ranks]), left)


class _Run:
    """The processes of one run.

    Args:
      folder: for the files of the run alone.
      play: the run.
      how: one of `HOWS`.
    """

    def __init__(self, folder: Path, play: Play, how: str) -> None:
        self._folder, self._play, self._how = folder, play, how
        self._processes: dict[tuple[int, ...], subprocess.Popen[bytes]] = {}
        self._old_memory, self._memory = traces.memory(), set[str]()
        self._glanced = 0.0
        self._stopped: list[int] = []

    def start(self) -> None:
        """Start all processes."""
        groups = [self._play.ranks] if self._how == "threads" else [(rank,) for rank in self._play.ranks]
        (port,) = free_ports(1)
        path = os.pathsep.join([each for each in sys.path if each] + [os.getcwd()])
        shared = {"PYTHONPATH": path, "TMPDIR": str(self._folder / "tmp"), _MARK: str(self._folder)}
        for ranks in groups:
            words = [sys.executable, "-m", "distinput.testing.judge.player", str(self._folder), *map(str, ranks)]
            with self._output(ranks).open("wb") as output:
                self._processes[ranks] = subprocess.Popen(
                    words,
                    stdin=subprocess.PIPE,
                    stdout=output,
                    stderr=output,
                    env={**os.environ, **shared, **(self._variables(ranks[0], port))},
                    start_new_session=True,
                )

    def _variables(self, rank: int, port: int) -> dict[str, str]:
        """What `torchrun` tells a rank."""
        if self._how != "processes":
            return {}
        ranks = str(self._play.job.ranks)
        names = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": ranks, "LOCAL_WORLD_SIZE": ranks}
        return {**names, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}

    def wait(self, patience: float, beat: Callable[[], None]) -> None:
        """Until all ranks have come to their end, or one has failed and the others have ended or stand still.

        Raises:
          Still: a rank stands still, and none has failed.
        """
        seen: dict[int, tuple[int, float]] = {}  # of each rank, the size of its file and since when
        while waiting := [rank for rank in self._play.ranks if not self._over(rank) and not self._death(rank)]:
            beat()
            self._glance()
            time.sleep(0.02)
            now, failed = time.monotonic(), self._failed()
            for rank in waiting:
                path = self._folder / str(rank)
                size = path.stat().st_size if path.exists() else -1
                seen[rank] = seen[rank] if rank in seen and seen[rank][0] == size else (size, now)
            quiet = {rank: now - seen[rank][1] for rank in waiting}
            if failed and (self._play.kill == "rank" or min(quiet.values()) > min(patience, _GRACE)):
                self._stopped = [rank for rank in waiting if not self._death(rank)]
                return
            if not failed and max(quiet.values()) > patience:
                slow = [rank for rank, seconds in quiet.items() if 2 * seconds > patience]
                raise Still(f"{_ranks(slow)} of {self._play.job}: no step for {patience:g} seconds{load_told()}")
        if not self._failed():
            self._leave(patience, beat)

    def _leave(self, patience: float, beat: Callable[[], None]) -> None:
        """All ranks have come to their end; their processes end now."""
        self._glance(at_once=True)
        self._close()
        deadline = time.monotonic() + patience
        while waiting := [ranks for ranks, process in self._processes.items() if process.poll() is None]:
            beat()
            time.sleep(0.02)
            if time.monotonic() > deadline:
                slow = _ranks([rank for ranks in waiting for rank in ranks])
                raise Still(
                    f"{slow} of {self._play.job}: the process did not end for {patience:g} seconds after its last step"
                    f"{load_told()}"
                )

    def end(self, beat: Callable[[], None]) -> tuple[str, ...]:
        """Kill and remove all that is there; what the processes have started gets a moment to end by itself."""
        self._glance(at_once=True)
        for process in self._processes.values():
            process.kill()
            process.wait()
        self._close()
        for rank in self._play.ranks:
            for word, value in self._events(rank):
                self._memory |= value - self._old_memory if word == "memory" else set()
        deadline = time.monotonic() + _GRACE
        while (left := self._left()) and time.monotonic() < deadline:
            beat()
            time.sleep(0.05)
        while (living := self._living()) and time.monotonic() < deadline + _GRACE:
            traces.end(living)
            time.sleep(0.02)
        for process in self._processes.values():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)  # for systems that do not tell which processes there are
        traces.remove(self._memory & traces.memory())
        return tuple(left)

    def _close(self) -> None:
        """Close the pipes by which processes hear that all is over."""
        for process in self._processes.values():
            if process.stdin is not None:
                with contextlib.suppress(OSError):
                    process.stdin.close()

    def walk(self, rank: int) -> Walk:
        """What became of a rank."""
        return folded(self._events(rank))

    def _events(self, rank: int) -> Iterator[PlayEvent]:
        path = self._folder / str(rank)
        with contextlib.suppress(EOFError, pickle.UnpicklingError, FileNotFoundError), path.open("rb") as file:
            while True:  # up to what it was writing when it was killed
                yield pickle.load(file)
        death = self._death(rank)
        if death == _KILLED and self._play.kill == "rank" and rank == self._play.victim:
            yield "killed", None
        elif rank in self._stopped:
            yield "died", f"stopped, as {self._failed()}"
        elif death:
            yield "died", death

    def _over(self, rank: int) -> bool:
        return Path(self._folder, f"{rank}{OVER}").exists()

    def _death(self, rank: int) -> str | None:
        """How the process of a rank ended before the rank did; None if it did not."""
        ranks, process = next((ranks, process) for ranks, process in self._processes.items() if rank in ranks)
        status = process.poll()
        if status is None or self._over(rank) or rank in self._stopped:
            return None
        if status < 0:
            return f"died of {signal.Signals(-status).name}"
        lines = self._output(ranks).read_text(errors="replace").strip().splitlines()
        return f"died with exit status {status}" + (f": {lines[-1][:120]}" if lines else "")

    def _failed(self) -> str | None:
        """Which rank has failed, and how; None if none has."""
        for rank in self._play.ranks:
            death = self._death(rank)
            if death:
                return f"rank {rank} {death}"
            if self._over(rank) and Path(self._folder, f"{rank}{OVER}").stat().st_size:
                return f"rank {rank} failed"
        return None

    def _output(self, ranks: tuple[int, ...]) -> Path:
        return self._folder / f"{ranks[0]}.out"

    def _living(self) -> dict[int, str]:
        return traces.living(f"{_MARK}={self._folder}", [process.pid for process in self._processes.values()])

    def _left(self) -> list[str]:
        processes = [f"process {number} ({name})" for number, name in self._living().items()]
        return processes + [f"shared memory {name}" for name in sorted(self._memory & traces.memory())]

    def _glance(self, at_once: bool = False) -> None:
        """See which shared memory the processes use: once they have ended it does not tell whose it was."""
        if at_once or time.monotonic() - self._glanced > _GLANCE:
            self._glanced = time.monotonic()
            self._memory |= traces.mapped(self._living()) - self._old_memory


def _ranks(ranks: Sequence[int]) -> str:
    return f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {', '.join(map(str, ranks))}"
