# SPDX-License-Identifier: Apache-2.0
"""Where a worker runs: enough to count the workers of one machine, and to see whether a neighbour's process still lives."""

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

__all__ = ["Seat"]

_FORMAT = struct.Struct("<16sQQ")


@dataclass(frozen=True, slots=True)
class Seat:
    """A process on a machine.

    Args:
      machine: 16 bytes, equal for processes that see each other's process numbers.
      process: its number.
      started: when it was started, in the machine's ticks, so that a reused number is not taken for it; 0 if unknown.
    """

    machine: bytes
    process: int
    started: int

    @classmethod
    def mine(cls) -> "Seat":
        """The seat of this process."""
        parts = [socket.gethostname()]
        for path in ("/proc/sys/kernel/random/boot_id", "/proc/self/ns/pid"):
            try:
                parts.append(os.readlink(path) if path.endswith("pid") else Path(path).read_text(encoding="ascii"))
            except OSError:
                continue
        machine = hashlib.blake2b("\n".join(parts).encode(), digest_size=16).digest()
        return cls(machine, os.getpid(), _look_up(os.getpid())[1])

    def encode(self) -> Bytes:
        """As bytes of a fixed size."""
        return np.frombuffer(_FORMAT.pack(self.machine, self.process, self.started), np.uint8)

    @classmethod
    def decode(cls, data: Bytes) -> "Seat":
        """The seat that `encode` wrote."""
        return cls(*_FORMAT.unpack(data.tobytes()))

    def state(self, neighbour: "Seat") -> Literal["alive", "dead", "stopped", "unknown"]:
        """What the process on this seat can tell of another one, without asking it."""
        if neighbour.machine != self.machine or not neighbour.started:
            return "unknown"
        letter, started = _look_up(neighbour.process)
        if started != neighbour.started or letter in "ZX":
            return "dead"
        return "stopped" if letter in "Tt" else "alive"


def _look_up(process: int) -> tuple[str, int]:
    """The state letter and the start of a process; `X` and 0 when there is none, or no way to know."""
    if sys.platform != "linux":
        return "X", 0
    try:
        text = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "X", 0
    fields = text[text.rindex(")") + 2 :].split()  # the name in brackets may hold anything
    return fields[0], int(fields[19])
