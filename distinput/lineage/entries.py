# SPDX-License-Identifier: Apache-2.0
"""The entries of a ledger file: appended one at a time, each with its length and a check, so that a torn end is found."""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

from distinput.core.state import State
from distinput.errors import DataLossError
from distinput.lineage.state_changes import changed, joined, numbers_of, read_varint, taken_apart, varint

__all__ = ["MAGIC", "Entry", "LedgerFile", "entries_of"]

MAGIC = b"distinput.ledger 1\n"

_BEGIN, _STEP, _CHANGE, _FORM = b"B", b"S", b"C", b"F"
_CHECK = 2
"""Bytes of the check of an entry: a torn end is mostly known by its length."""


@dataclass(frozen=True)
class Entry:
    """An entry.

    Args:
      begin: of a part that begins here: where it does, and what runs; None for a step.
      inputs: the states of the input pipelines after a step, if the ledger keeps them.
    """

    begin: Mapping[str, Any] | None = None
    inputs: list[State] | None = field(default=None, repr=False)


def entries_of(data: bytes, path: str) -> Iterator[tuple[Entry, int]]:
    """The entries of a file, each with the place behind it; a torn end is left out.

    Raises:
      DataLossError: it is no ledger, or is damaged before its end.
    """
    if not data:
        return
    solid = len(data.rstrip(b"\0"))  # a machine that loses power may leave zeros
    if not data.startswith(MAGIC):
        if MAGIC.startswith(data[:solid]):
            return  # torn while it was made
        raise DataLossError(f"{path}: this is no ledger of distinput; it must begin with {MAGIC!r}, not {data[:20]!r}")
    offset = len(MAGIC)
    form, numbers = "", [0]
    while offset < len(data):
        found = read_varint(data, offset)
        if found is None or found[1] + found[0] + _CHECK > len(data):
            return
        size, begin = found
        body = data[begin : begin + size]
        end = begin + size + _CHECK
        if not size or data[end - _CHECK : end] != _check(body):
            if end >= solid:
                return
            raise _damaged(path, offset)
        kind, rest = body[:1], body[1:]
        if kind == _BEGIN:
            told = json.loads(rest)
            form, numbers = taken_apart(told["inputs"])
            yield Entry(begin=told), end
        elif kind == _STEP:
            yield Entry(), end
        else:
            if kind == _FORM:
                form, numbers = taken_apart(json.loads(rest))
            else:
                numbers = numbers_of(numbers, rest)
            yield Entry(inputs=joined(form, numbers)), end
        offset = end


def _damaged(path: str, at: int) -> DataLossError:
    return DataLossError(f"{path}: the ledger is damaged at byte {at}; what comes before is whole")


def _check(body: bytes) -> bytes:
    return crc32(body).to_bytes(4, "little")[:_CHECK]


class LedgerFile:
    """Appends entries to a file; each is in the hands of the operating system before the call returns.

    Args:
      path: a local file; a torn end, which a killed process left, is cut off.

    Raises:
      DataLossError: it is no ledger, or is damaged.
    """

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
        with open(self._file, "rb", closefd=False) as file:
            data = file.read()
        end = 0
        for _, end in entries_of(data, path):  # noqa: B007 - the last one counts
            pass
        if not end:
            os.ftruncate(self._file, 0)
            os.lseek(self._file, 0, os.SEEK_SET)
            os.write(self._file, MAGIC)
            end = len(MAGIC)
        os.ftruncate(self._file, end)
        os.lseek(self._file, end, os.SEEK_SET)
        self._form, self._numbers = "", [0]

    def begin(self, told: Mapping[str, Any]) -> None:
        """A part begins; `told["inputs"]` are the states of the input pipelines there."""
        self._form, self._numbers = taken_apart(told["inputs"])
        self._put(_BEGIN + json.dumps(told, separators=(",", ":")).encode())
        os.fsync(self._file)

    def step(self, inputs: list[State] | None) -> None:
        """A step was delivered; `inputs` are the states after it, if they are to be kept."""
        if inputs is None:
            self._put(_STEP)
            return
        form, numbers = taken_apart(inputs)
        if form == self._form:
            self._put(_CHANGE + changed(self._numbers, numbers))
        else:
            self._put(_FORM + json.dumps(inputs, separators=(",", ":")).encode())
        self._form, self._numbers = form, numbers

    def _put(self, body: bytes) -> None:
        data = varint(len(body)) + body + _check(body)
        while data:
            data = data[os.write(self._file, data) :]

    def close(self) -> None:
        """Close the file; may be called again."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
