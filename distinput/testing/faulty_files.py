# SPDX-License-Identifier: Apache-2.0
"""A file system that fails on purpose: errors, short answers and answers that do not come."""

import random
from threading import Event, Lock
from typing import Any, ClassVar

from fsspec import AbstractFileSystem


class FaultyFiles(AbstractFileSystem):  # type: ignore[misc]
    r"""Files of another file system of fsspec, which fail some of the time.

    Args:
      inner: the file system that has the files.
      seed: of the faults.
      errors: the share of requests that fail.
      short: the share of ranges that come cut short.
      stalls: the share of requests that do not come back before `release`.

    Attributes:
      faults: how many there were, by kind.

    >>> import fsspec
    >>> import distinput as di
    >>> fsspec.filesystem("memory").pipe("/faulty/a.txt", b"one\ntwo\n")
    >>> faulty = FaultyFiles(fsspec.filesystem("memory"), seed=1, errors=0.5)
    >>> di.io.mount("faulty://", faulty, retries=di.io.Retries(first_pause=0.001))
    >>> di.data.TextLineDataset("faulty://faulty/a.txt").to_list()
    [b'one', b'two']
    >>> di.io.unmount("faulty://")
    """

    protocol: ClassVar[str] = "faulty"
    cachable: ClassVar[bool] = False

    def __init__(
        self, inner: Any, seed: int = 0, errors: float = 0.05, short: float = 0.05, stalls: float = 0.01
    ) -> None:
        super().__init__()
        self._inner, self._random, self._lock = inner, random.Random(seed), Lock()
        self._shares = {"error": errors, "short": short, "stall": stalls}
        self._released = Event()
        self.faults = dict.fromkeys(self._shares, 0)

    def release(self) -> None:
        """Let the requests that were stalled come back."""
        self._released.set()

    def _fault(self, *kinds: str) -> str | None:
        with self._lock:
            for kind in kinds:
                if self._random.random() < self._shares[kind]:
                    self.faults[kind] += 1
                    return kind
        return None

    def _may_fail(self) -> None:
        fault = self._fault("error", "stall")
        if fault == "error":
            raise ConnectionError("the connection was broken, on purpose")
        if fault == "stall":
            self._released.wait(30)

    def info(self, path: str, **options: Any) -> Any:
        self._may_fail()
        return self._inner.info(path, **options)

    def ukey(self, path: str) -> Any:
        self._may_fail()
        return self._inner.ukey(path)

    def ls(self, path: str, detail: bool = True, **options: Any) -> Any:
        return self._inner.ls(path, detail=detail, **options)

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **options: Any) -> bytes:
        self._may_fail()
        found: bytes = self._inner.cat_file(path, start, end, **options)
        if len(found) > 1 and self._fault("short"):
            with self._lock:
                return found[: self._random.randrange(len(found))]
        return found

    def _open(self, path: str, mode: str = "rb", **options: Any) -> Any:
        return self._inner._open(path, mode, **options)
