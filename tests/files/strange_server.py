# SPDX-License-Identifier: Apache-2.0
"""A web server on loopback of which a test says how strange it is."""

from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, Self

__all__ = ["Answer", "StrangeServer"]


class Answer:
    """What is sent for a request: a plain answer, which a test changes.

    Attributes:
      method, path, number: of the request; the first one has number 0.
      encodings: which it accepts.
    """

    def __init__(
        self, method: str, path: str, wanted: str | None, number: int, content: bytes, encodings: str = ""
    ) -> None:
        self.method, self.path, self.number, self.encodings = method, path, number, encodings
        first, last = 0, len(content) - 1
        if wanted is not None:
            a, _, b = wanted.removeprefix("bytes=").partition("-")
            first, last = int(a), min(last, int(b or last))
        self.status = 200 if wanted is None else 206
        self.body = content[first : last + 1]
        self.headers = {"Accept-Ranges": "bytes", "Content-Length": str(len(self.body))}
        if wanted is not None:
            self.headers["Content-Range"] = f"bytes {first}-{last}/{len(content)}"

    def fail(self, status: int) -> None:
        """Send an error."""
        self.status, self.body, self.headers = status, b"", {"Content-Length": "0"}


class StrangeServer:
    """Serves one content under every path.

    Args:
      content: of every file.
      change: changes answers.
    """

    def __init__(self, content: bytes, change: Callable[[Answer], Any] = lambda _: None) -> None:
        self.requests: list[str] = []
        requests = self.requests

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                wanted, encodings = self.headers.get("Range"), self.headers.get("Accept-Encoding", "")
                answer = Answer(self.command, self.path, wanted, len(requests), content, encodings)
                requests.append(f"{self.command} {self.path}")
                change(answer)
                self.send_response(answer.status)
                for key, value in answer.headers.items():
                    self.send_header(key, value)
                self.end_headers()
                if self.command == "GET":
                    self.wfile.write(answer.body)

            do_HEAD = do_GET  # noqa: N815 - as the base class calls it

            def log_message(self, format: str, *args: Any) -> None:
                """Nothing is printed."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
