# SPDX-License-Identifier: Apache-2.0
"""Which process on which machine a worker is: enough to count the workers of a machine, and to see whether one still runs."""

import hashlib
import os
import socket
import struct
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from distinput.distribute.collectives.channel import Bytes

__all__ = ["ProcessIdentity"]

_FORMAT = struct.Struct("<16sQQ")


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """A process on a machine.

    Args:
      machine: 16 bytes, equal for processes that see each other's process IDs.
      pid: the process ID.
      started: when the process was started, in clock ticks of the machine, so that a reused process ID is not mistaken for
        it; 0 if unknown.
    """

    machine: bytes
    pid: int
    started: int

    @classmethod
    def current(cls) -> "ProcessIdentity":
        """The identity of this process."""
        parts = [socket.gethostname()]
        for path in ("/proc/sys/kernel/random/boot_id", "/proc/self/ns/pid"):
            try:
                parts.append(os.readlink(path) if path.endswith("pid") else Path(path).read_text(encoding="ascii"))
            except OSError:
                continue
        machine = hashlib.blake2b("\n".join(parts).encode(), digest_size=16).digest()
        return cls(machine, os.getpid(), _look_up(os.getpid())[1])

    def encode(self) -> Bytes:
        """The identity as bytes of a fixed size."""
        return np.frombuffer(_FORMAT.pack(self.machine, self.pid, self.started), np.uint8)

    @classmethod
    def decode(cls, data: Bytes) -> "ProcessIdentity":
        """The identity that `encode` wrote."""
        return cls(*_FORMAT.unpack(data.tobytes()))

    def state_of(self, other: "ProcessIdentity") -> Literal["alive", "dead", "stopped", "unknown"]:
        """What this process can see of another one without asking it; "unknown" if it is on another machine."""
        if other.machine != self.machine or not other.started:
            return "unknown"
        letter, started = _look_up(other.pid)
        if started != other.started or letter in "ZX":
            return "dead"
        return "stopped" if letter in "Tt" else "alive"


def _look_up(pid: int) -> tuple[str, int]:
    """The state letter and the start time of a process; `X` and 0 if there is none, or the system does not tell."""
    if sys.platform != "linux":
        return "X", 0
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "X", 0
    fields = text[text.rindex(")") + 2 :].split()  # the name in brackets may contain anything
    return fields[0], int(fields[19])
