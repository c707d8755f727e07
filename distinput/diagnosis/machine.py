# SPDX-License-Identifier: Apache-2.0
"""What the machine, or the container, lets this process use."""

import os
import platform
import sys
from dataclasses import dataclass
from pathlib import Path

from distinput.core.cores import cores

__all__ = ["Machine", "this_machine"]

_CGROUP = Path("/sys/fs/cgroup")
_UNLIMITED = 1 << 60


@dataclass(frozen=True)
class Machine:
    """What this process may use.

    Args:
      system: the operating system and the kind of its processor.
      python: the version of Python.
      cores: those that the process may run on.
      core_quota: cores that a container may keep busy, which can be fewer; None without such a limit.
      memory: bytes, of the machine or of the container, whichever has less; None if it is not known.
      open_files: how many a process may have open; None if it is not known.
    """

    system: str
    python: str
    cores: int
    core_quota: float | None
    memory: int | None
    open_files: int | None


def this_machine(cgroup: Path = _CGROUP) -> Machine:
    """This machine.

    Args:
      cgroup: where Linux has the limits of a container.

    Source: cpu.max and memory.max of Linux, Documentation/admin-guide/cgroup-v2.rst.
    """
    return Machine(
        f"{platform.system()} {platform.machine()}",
        ".".join(map(str, sys.version_info[:3])),
        cores(),
        _quota(cgroup),
        _memory(cgroup),
        _open_files(),
    )


def _quota(cgroup: Path) -> float | None:
    words = _words(cgroup / "cpu.max")
    return int(words[0]) / int(words[1]) if len(words) == 2 and words[0].isdigit() and words[1].isdigit() else None


def _memory(cgroup: Path) -> int | None:
    limits = [int(word) for word in _words(cgroup / "memory.max") if word.isdigit()]
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    return min(limits, default=None)


def _open_files() -> int | None:
    limit = os.sysconf("SC_OPEN_MAX") if hasattr(os, "sysconf") and "SC_OPEN_MAX" in os.sysconf_names else -1
    return limit if 0 < limit < _UNLIMITED else None


def _words(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="ascii").split()
    except (OSError, UnicodeDecodeError):
        return []
