# SPDX-License-Identifier: Apache-2.0
"""The processes and the shared memory of a run, as Linux tells of them; other systems tell nothing here."""

import contextlib
import os
import signal
from collections.abc import Collection, Iterable
from pathlib import Path

MEMORY = Path("/dev/shm")
"""Where shared memory has names."""


def living(mark: str, sessions: Collection[int]) -> dict[int, str]:
    """The processes that have a mark in their environment or belong to a session, with their names.

    Args:
      mark: a text that is in the environment of no other process.
      sessions: numbers of the processes that lead them.
    """
    found: dict[int, str] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended meanwhile, or belongs to somebody else
            start, _, rest = (folder / "stat").read_text(errors="replace").rpartition(")")
            state, _parent, _group, session = rest.split()[:4]
            if state in "ZX":
                continue
            if int(session) in sessions or mark.encode() in (folder / "environ").read_bytes():
                found[int(folder.name)] = start.partition("(")[2]
    return found


def end(processes: Iterable[int]) -> None:
    """Kill processes."""
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def memory() -> set[str]:
    """The names of all shared memory."""
    return set(os.listdir(MEMORY)) if MEMORY.is_dir() else set()


def mapped(processes: Iterable[int]) -> set[str]:
    """The names of the shared memory that processes have mapped."""
    found: set[str] = set()
    for process in processes:
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{process}/maps").read_text(errors="replace").splitlines():
                path = line.partition(f"{MEMORY}/")[2]
                if path and not path.endswith(" (deleted)"):
                    found.add(path)
    return found


def remove(names: Collection[str]) -> None:
    """Remove shared memory, but for what a living process has mapped."""
    if not names:
        return
    used = mapped(int(folder.name) for folder in Path("/proc").glob("[0-9]*"))
    for name in set(names) - used:
        with contextlib.suppress(OSError):
            (MEMORY / name).unlink()
