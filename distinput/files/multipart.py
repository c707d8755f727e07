# SPDX-License-Identifier: Apache-2.0
"""An object of obstore that is uploaded in parts while it is written, so that a few parts of it are in memory at a time."""

import threading
from collections.abc import Iterator
from queue import Empty, Full, Queue
from typing import Any

__all__ = ["PART_BYTES", "MultipartUpload"]

PART_BYTES = 8 << 20
"""The size of a part: stores take up to 10,000 of them, and ask for at least 5 MB."""

_AT_A_TIME = 4
"""Parts that are on their way."""

_WAITING = 2
"""Parts that wait for them."""


class MultipartUpload:
    """An upload on a thread; nothing can be seen of it before `finish`.

    Args:
      store: a store of `obstore.store`.
      key: the name in it.
    """

    def __init__(self, store: Any, key: str) -> None:
        self._store, self._key = store, key
        self._parts: Queue[bytes | None] = Queue(_WAITING)
        self._given_up = False
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="distinput-upload", daemon=True)
        self._thread.start()

    def add(self, part: bytes | None) -> None:
        """Upload a part, of any size; waits while enough others are under way.

        Raises:
          Exception: the upload has failed; nothing is left of it.
        """
        while self._error is None:
            try:
                self._parts.put(part, timeout=0.1)
            except Full:
                continue
            return
        self._thread.join()
        raise self._error

    def finish(self) -> None:
        """Complete the object.

        Raises:
          Exception: the upload has failed; nothing is left of it.
        """
        self.add(None)
        self._thread.join()
        if self._error is not None:
            raise self._error

    def discard(self) -> None:
        """Take back what was uploaded; may be called again, and after an error."""
        self._given_up = True
        self._thread.join()

    def _run(self) -> None:
        import obstore

        try:
            obstore.put(
                self._store,
                self._key,
                self._taken(),
                use_multipart=True,
                chunk_size=PART_BYTES,
                max_concurrency=_AT_A_TIME,
            )
        except BaseException as error:  # noqa: BLE001 - raised where the file is written
            self._error = error

    def _taken(self) -> Iterator[bytes]:
        while True:
            try:
                part = self._parts.get(timeout=0.1)
            except Empty:
                part = b""
            if self._given_up:
                raise InterruptedError(f"{self._key}: its upload was given up")  # by which obstore removes the parts
            if part is None:
                return
            if part:
                yield part
