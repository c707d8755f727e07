# SPDX-License-Identifier: Apache-2.0
"""What runs in a worker process: a function, called with what comes, until the parent has gone."""

import contextlib
import pickle
import signal
import socket
import sys
import traceback
from typing import Any

from distinput.core.segments import Closed, SegmentConnection

__all__ = ["main", "this_is_one"]

_HERE = False


def this_is_one() -> bool:
    """Whether this process is a worker."""
    return _HERE


def main(descriptor: int) -> None:
    """Serve the parent at the other end of a socket: the function first, then its arguments."""
    global _HERE
    _HERE = True
    # The parent, which gets these signals as well, decides: after SIGTERM it may still need elements until it has saved.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    channel = SegmentConnection(socket.socket(fileno=descriptor))
    with contextlib.closing(channel), contextlib.suppress(Closed):
        function = _function(channel)
        while True:
            _serve(channel, function)


def _function(channel: SegmentConnection) -> Any:
    path, preparation, payload = channel.receive()
    sys.path[:] = path
    try:
        if preparation is not None:
            from multiprocessing import spawn

            spawn.prepare(preparation)
        function = pickle.loads(payload)
    except Exception as error:  # noqa: BLE001 - told to the parent
        channel.send((None, f"{type(error).__name__}: {error}"))
        raise Closed from None
    channel.send((True, None))
    return function


def _serve(channel: SegmentConnection, function: Any) -> None:
    # In a function of its own, so that nothing of one task is held while the next one is waited for.
    try:
        answer: tuple[Any, str | None] = (function(channel.receive()), None)
    except Closed:
        raise
    except Exception:  # noqa: BLE001 - told to the parent
        answer = (None, traceback.format_exc())
    try:
        channel.send(answer)
    except Closed:
        raise
    except Exception as error:  # noqa: BLE001 - what the function made cannot be sent
        channel.send((None, f"{type(error).__name__}: {error}"))
