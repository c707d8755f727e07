# SPDX-License-Identifier: Apache-2.0
"""The quarantine file: one line of JSON for each element that failed, which several processes append to."""

import json
import os
from hashlib import blake2b
from typing import Any

from distinput.errors import NotFoundError
from distinput.url_secrets import without_secrets

__all__ = ["Quarantine"]

_MOST_TEXT = 1000
"""Characters of a text in a line."""

_CHUNK = 1 << 20


class Quarantine:
    r"""A file with a line for each element that failed in a step, written by any number of processes.

    An element is known by its file, its place there and the step; where these are not known, by all that is said of it.

    A line is appended by one write under a lock of the file, after the lines of others were read, so no line is torn and none
    comes twice. What a process that died has left of a line is removed by the next one that writes.

    Args:
      path: the file; it is made when the first line is written.
      most: lines in the file.

    >>> import pathlib
    >>> Quarantine("bad.jsonl", 1).add({"file": "a", "row": 3}), Quarantine("bad.jsonl", 1).add({"file": "a", "row": 3})
    (True, False)
    >>> pathlib.Path("bad.jsonl").read_text()
    '{"file": "a", "row": 3}\n'
    """

    def __init__(self, path: str | os.PathLike[str], most: int) -> None:
        self.path, self.most = os.fspath(path), most
        self._seen: set[bytes] = set()
        self._read = 0  # bytes of the file whose lines are in `_seen`

    def add(self, record: dict[str, Any]) -> bool:
        """Append a record, unless the file has it, or is full. Texts are cut to a length that cannot fill a disk.

        Raises:
          NotFoundError: the folder does not exist.
          OSError: the file cannot be written.
        """
        line = json.dumps({key: _short(value) for key, value in record.items()}).encode() + b"\n"
        word = _word(line, record)
        if word in self._seen or len(self._seen) >= self.most:
            return False
        from fcntl import LOCK_EX, flock  # not on every system

        try:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
        except FileNotFoundError:
            raise NotFoundError(
                f"{self.path}: the folder of this quarantine file does not exist; make it first"
            ) from None
        try:
            flock(descriptor, LOCK_EX)  # until it is closed
            self._catch_up(descriptor)
            if word in self._seen or len(self._seen) >= self.most:
                return False
            os.write(descriptor, line)
            self._seen.add(word)
            self._read += len(line)
            return True
        finally:
            os.close(descriptor)

    def _catch_up(self, descriptor: int) -> None:
        """Read the lines that others have appended."""
        size = os.fstat(descriptor).st_size
        if size < self._read:  # somebody has emptied it
            self._seen.clear()
            self._read = 0
        rest = b""
        while data := os.pread(descriptor, _CHUNK, self._read + len(rest)):
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                self._seen.add(_word(line + b"\n", _record(line)))
                self._read += len(line) + 1
        if rest:
            os.ftruncate(descriptor, self._read)


def _word(line: bytes, record: dict[str, Any]) -> bytes:
    """What tells one element that failed from the others."""
    place = record.get("row") if record.get("row") is not None else record.get("byte")
    if record.get("file") is not None and place is not None:
        line = json.dumps([record["file"], place, record.get("op")]).encode()
    return blake2b(line, digest_size=12).digest()


def _record(line: bytes) -> dict[str, Any]:
    """What a line says; nothing where somebody else has written it."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _short(value: Any) -> Any:
    value = without_secrets(value) if isinstance(value, str) else value
    if isinstance(value, str) and len(value) > _MOST_TEXT:
        return value[:_MOST_TEXT] + "..."
    return value
