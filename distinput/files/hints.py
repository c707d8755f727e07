# SPDX-License-Identifier: Apache-2.0
"""What is known of a remote file before it is opened, for whatever this thread opens: it need not be asked for again."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from distinput.files.described_bytes import DescribedBytes

__all__ = ["HINTS", "beginning_with", "stamped", "telling", "wanted_until"]


class _Hints(threading.local):
    """The hints of a thread.

    Attributes:
      stamp: a file and its stamp; see `stamp_of`.
      begun: a file, what its server says of it, and its first bytes.
      until: the byte from which on nothing is wanted of a file.
      requested: called once the last byte of a file has been requested.
    """

    stamp: tuple[str, str] | None = None
    begun: tuple[str, DescribedBytes] | None = None
    until: int | None = None
    requested: Callable[[], None] | None = None


HINTS = _Hints()
"""Those of the calling thread."""


@contextmanager
def _hinted(name: str, value: Any) -> Iterator[None]:
    before = getattr(HINTS, name)
    setattr(HINTS, name, value)
    try:
        yield
    finally:
        setattr(HINTS, name, before)


@contextmanager
def stamped(path: str, stamp: str | None) -> Iterator[None]:
    """`stamp_of` does not ask for the stamp of a remote file again, which is known; None: it does.

    >>> from distinput.files.source import stamp_of
    >>> with stamped("https://example.com/a", "1"):
    ...     stamp_of("https://example.com/a")
    '1'
    """
    with _hinted("stamp", HINTS.stamp if stamp is None else (path, stamp)):
        yield


@contextmanager
def beginning_with(path: str, found: DescribedBytes | None) -> Iterator[None]:
    """A `FileStream` of the file does not ask for its beginning again, which is there; None: it does."""
    with _hinted("begun", HINTS.begun if found is None else (path, found)):
        yield


@contextmanager
def wanted_until(stop: int | None) -> Iterator[None]:
    """A `FileStream` asks for nothing from this byte on when it is opened; None: it does."""
    with _hinted("until", stop):
        yield


@contextmanager
def telling(requested: Callable[[], None] | None) -> Iterator[None]:
    """A `FileStream` of a remote file calls this once it has requested the last byte; None: it tells nobody."""
    with _hinted("requested", requested):
        yield
