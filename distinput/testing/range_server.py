# SPDX-License-Identifier: Apache-2.0
"""An HTTP server of a folder, on loopback: ranges, a latency, a bandwidth, and counts of what was asked and sent.

`python -m distinput.testing.range_server FOLDER --latency 0.02` serves until its input ends, and prints its URL first.
"""

import argparse
import contextlib
import os
import socket
import sys
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread
from typing import Any, Self
from urllib.parse import unquote, urlsplit

_SLICE_BYTES = 1 << 17
"""How much is sent at a time where the bandwidth is bounded."""


class RangeServer:
    r"""Serves the files of a folder over HTTP, in this process, until the `with` block ends.

    Args:
      folder: what is served.
      latency: seconds before each answer.
      bandwidth: the most bytes a second, of all answers together; None: as many as the machine can send.

    Raises:
      ValueError: bandwidth is not above 0.

    Attributes:
      url: of the folder, without a slash at its end.
      requests: the name of a file, and the range that was asked for, of each request for bytes.
      sent: bytes of files that were sent.

    >>> import pathlib
    >>> import distinput as di
    >>> _ = pathlib.Path("a.txt").write_text("one\ntwo\n")
    >>> with RangeServer(".") as server:
    ...     di.data.TextLineDataset(f"{server.url}/a.txt").to_list(), server.sent
    ([b'one', b'two'], 8)
    """

    def __init__(self, folder: str | os.PathLike[str], latency: float = 0.0, bandwidth: float | None = None) -> None:
        if bandwidth is not None and not bandwidth > 0:
            raise ValueError(f"RangeServer: bandwidth must be bytes a second, above 0, or None, got {bandwidth}")
        self.folder, self.latency = Path(folder), latency
        self.link = None if bandwidth is None else Link(bandwidth)
        self.requests: list[tuple[str, int, int]] = []
        self.sent = 0
        self.lock = Lock()
        self.connections: set[socket.socket] = set()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.owner = self
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = Thread(target=self._server.serve_forever, name="range-server", args=(0.02,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        with self.lock:
            for each in self.connections:
                with contextlib.suppress(OSError):  # the client has broken it
                    each.shutdown(socket.SHUT_RDWR)  # its thread waits for the next request
        self._server.server_close()

    def reset(self) -> None:
        """Begin to count anew."""
        with self.lock:
            self.requests.clear()
            self.sent = 0


class Link:
    """A network that sends one byte after the other, so many a second.

    Args:
      bandwidth: in bytes a second.
    """

    def __init__(self, bandwidth: float) -> None:
        self.bandwidth = bandwidth
        self._idle_at = 0.0  # when all that was sent so far has arrived
        self._lock = Lock()

    def seconds(self, size: int, now: float) -> float:
        """Send these bytes behind all others; how long it takes from `now` on until they have arrived."""
        with self._lock:
            self._idle_at = max(now, self._idle_at) + size / self.bandwidth
            return self._idle_at - now


class _Server(ThreadingHTTPServer):
    owner: RangeServer
    daemon_threads = False  # they are waited for when the server is closed
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that go away are no errors."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16
    disable_nagle_algorithm = True

    def setup(self) -> None:
        super().setup()
        with self.server.owner.lock:
            self.server.owner.connections.add(self.connection)

    def finish(self) -> None:
        with self.server.owner.lock:
            self.server.owner.connections.discard(self.connection)
        super().finish()

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def _answer(self, body: bool) -> None:
        owner = self.server.owner
        if owner.latency:
            time.sleep(owner.latency)
        name = unquote(urlsplit(self.path).path).lstrip("/")
        path = (owner.folder / name).resolve()
        if not path.is_relative_to(owner.folder.resolve()) or not path.is_file():
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        status = path.stat()
        wanted = self._range(status.st_size)
        if wanted is None:
            self.send_error(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE)
            return
        start, stop = wanted
        part = "Range" in self.headers
        self.send_response(HTTPStatus.PARTIAL_CONTENT if part else HTTPStatus.OK)
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(stop - start))
        self.send_header("ETag", f'"{status.st_size}-{status.st_mtime_ns}"')
        self.send_header("Last-Modified", self.date_time_string(int(status.st_mtime)))
        if part:
            self.send_header("Content-Range", f"bytes {start}-{stop - 1}/{status.st_size}")
        self.end_headers()
        if not body:
            return
        with owner.lock:
            owner.requests.append((name, start, stop))
            owner.sent += stop - start
        self.wfile.flush()
        with path.open("rb") as file:
            most = max(1, stop - start) if owner.link is None else _SLICE_BYTES
            for at in range(start, stop, most):
                size = min(most, stop - at)
                if owner.link is not None:
                    time.sleep(owner.link.seconds(size, time.monotonic()))
                self.connection.sendfile(file, at, size)

    def _range(self, size: int) -> tuple[int, int] | None:
        first, _, last = self.headers.get("Range", "bytes=0-").removeprefix("bytes=").partition("-")
        if not first:
            return max(0, size - int(last)), size
        start, stop = int(first), min(size, int(last) + 1) if last else size
        return (start, stop) if start < size or not (start or last) else None

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is printed."""


def main() -> None:
    """Serve a folder until standard input ends."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--latency", type=float, default=0.0)
    parser.add_argument("--bandwidth", type=float)
    given = parser.parse_args()
    with RangeServer(given.folder, given.latency, given.bandwidth) as server:
        print(server.url, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
