# SPDX-License-Identifier: Apache-2.0
"""Ports of this machine for processes that are about to start, and the command that starts those of MPI."""

import itertools
import os
import shutil
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

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


def mpiexec(size: int) -> list[str]:
    """The command that starts `size` processes with the MPI of this Python environment, or else that of the machine.

    Raises:
      FileNotFoundError: there is none.
    """
    beside = Path(sys.executable).with_name("mpiexec")
    found = str(beside) if beside.exists() else shutil.which("mpiexec")
    if found is None:
        raise FileNotFoundError("mpiexec: not found; use `pip install 'distinput[mpi]'`")
    version = subprocess.run([found, "--version"], capture_output=True, text=True, check=False, timeout=30).stdout
    extra = ["--allow-run-as-root", "--oversubscribe"] if "open" in version.lower() else []
    return [found, *extra, "-n", str(size)]
