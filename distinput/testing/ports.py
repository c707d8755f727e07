# SPDX-License-Identifier: Apache-2.0
"""Ports of this machine for processes that are about to start."""

import itertools
import os
import socket
from contextlib import suppress

_FIRST, _OWN = 10_000, 100
_numbers = itertools.count(int.from_bytes(os.urandom(2), "little"))


def free_ports(count: int) -> list[int]:
    """Ports on which nobody listens, and which nobody else is given before somebody does.

    The system gives those from 32768 on to whoever asks for any: a port that it told a moment ago may be another program's by
    now. These lie below, and each process takes them from a hundred of its own.

    >>> first, second = free_ports(2)
    >>> first != second, 10_000 <= first < 30_000
    (True, True)
    """
    ports: list[int] = []
    while len(ports) < count:
        port = _FIRST + os.getpid() % 200 * _OWN + next(_numbers) % _OWN
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("", port))
            ports.append(port)
    return ports
