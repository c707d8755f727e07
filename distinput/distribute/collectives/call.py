# SPDX-License-Identifier: Apache-2.0
"""The fixed-size record that workers exchange before a call, so that a wrong one harms nobody.

Bare engines answer arrays of different sizes with garbage, or by ending the process. So every worker first says what it
is about to do; when that differs, all of them see the same records, tell each other the words, and raise. A small array
travels inside the record, which makes it the only exchange.
"""

import hashlib
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from distinput.distribute.collectives.channel import Bytes

__all__ = ["ABOUT", "INLINE", "RECORD", "Call", "Purpose", "from_words", "table", "words"]

# magic, version, refused, length of `same`, of `about`, number, bytes, near, path
_HEAD = struct.Struct("<2sBBHHQQQQ")
_VERSION = 2
_SAME, ABOUT = 128, 104
_WORDS = 1024
INLINE = 128
"""Bytes of an array that travel inside the record."""
RECORD = _HEAD.size + _SAME + ABOUT + INLINE
"""Bytes of a record."""


@dataclass(frozen=True, slots=True)
class Purpose:
    """What a call is made for, where that says more than the call itself.

    Args:
      text: what has to be equal on all workers, such as "reduce SUM, axis=0".
      given: what this worker gives, for messages only.
    """

    text: str
    given: Callable[[], str] = str


@dataclass(frozen=True, slots=True)
class Call:
    """What one worker is about to do.

    Args:
      number: how many calls it made on this channel before.
      same: what has to be equal on all workers, readable.
      about: dtype and shape of its own array (`wire.describe`), or why it refuses its call.
      nbytes: how many bytes it will send.
      refused: its call cannot be made; the others must not wait for it.
      inline: the array itself, if it is small.
      near: as of a `CallSite`, 0 where places are not compared.
      path: likewise.
    """

    number: int
    same: str
    about: str = ""
    nbytes: int = 0
    refused: bool = False
    inline: bytes = b""
    near: int = 0
    path: int = 0

    def encode(self) -> Bytes:
        """[RECORD] bytes."""
        same, about = _fit(self.same.encode(), _SAME), _fit(self.about.encode(), ABOUT)
        record = np.zeros(RECORD, np.uint8)
        head = _HEAD.pack(
            b"di", _VERSION, self.refused, len(same), len(about), self.number, self.nbytes, self.near, self.path
        )
        parts = head + same.ljust(_SAME, b"\0") + about.ljust(ABOUT, b"\0") + self.inline
        record[: len(parts)] = np.frombuffer(parts, np.uint8)
        return record

    @classmethod
    def decode(cls, record: Bytes) -> "Call":
        """The call of another worker.

        Raises:
          ValueError: the record is of another version of distinput.
        """
        data = record.tobytes()
        magic, version, refused, same, about, number, nbytes, near, path = _HEAD.unpack_from(data)
        if magic != b"di" or version != _VERSION:
            raise ValueError("all workers must run the same version of distinput, got a record of another one")
        at = _HEAD.size
        inline = at + _SAME + ABOUT
        return cls(
            number,
            data[at : at + same].decode(errors="replace"),
            data[at + _SAME : at + _SAME + about].decode(errors="replace"),
            nbytes,
            bool(refused),
            data[inline : inline + nbytes] if nbytes <= INLINE else b"",
            near,
            path,
        )


def _fit(text: bytes, room: int) -> bytes:
    """The text, or its beginning and a digest of the whole, so that different texts stay different."""
    if len(text) <= room:
        return text
    digest = hashlib.blake2b(text, digest_size=8).hexdigest().encode()
    return text[: room - len(digest) - 3] + b".. " + digest


def words(text: str) -> Bytes:
    """[1024] bytes of a text, its beginning if it is longer."""
    return np.frombuffer(text.encode()[:_WORDS].ljust(_WORDS, b"\0"), np.uint8)


def from_words(data: Bytes) -> str:
    """The text that `words` wrote."""
    return data.tobytes().rstrip(b"\0").decode(errors="replace")


def table(texts: Sequence[str]) -> str:
    """Who called what, with equal neighbours in one line.

    >>> print(table(["barrier", "barrier", "all_reduce sum <f4 3"]))
      ranks 0-1: barrier
      rank 2: all_reduce sum <f4 3
    """
    lines: list[tuple[int, int, str]] = []
    for rank, text in enumerate(texts):
        if lines and lines[-1][2] == text:
            lines[-1] = (lines[-1][0], rank, text)
        else:
            lines.append((rank, rank, text))
    return "\n".join(f"  rank {a}: {text}" if a == b else f"  ranks {a}-{b}: {text}" for a, b, text in lines)
