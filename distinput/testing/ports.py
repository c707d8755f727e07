# SPDX-License-Identifier: Apache-2.0
"""Ports of this machine for processes that are about to start."""

import itertools
import os
import socket
from contextlib import suppress

_FIRST, _OWN = 10_000, 100
_numbers = itertools.count()
_begin = os.urandom(1)[0]


def free_ports(count: int) -> list[int]:
    """Ports on which nobody listens, and which nobody else is given before somebody does.

    The system gives those from 32768 on to whoever asks for any: a port that it told a moment ago may be another program's by
    now. These lie below. Each process begins with a hundred of its own, and is given none twice.

    >>> first, second = free_ports(2)
    >>> first != second, 10_000 <= first < 30_000
    (True, True)
    """
    ports: list[int] = []
    while len(ports) < count:
        hundreds, number = divmod(next(_numbers), _OWN)
        port = _FIRST + (os.getpid() + hundreds) % 200 * _OWN + (_begin + number) % _OWN
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("", port))
            ports.append(port)
    return ports
