# SPDX-License-Identifier: Apache-2.0
"""The fixed-size record that workers exchange before a call, so that mismatched calls do no harm.

When arrays differ in size, bare engines return garbage or end the process. So every worker first says what it is about to
do; if that differs, all of them see the same records, exchange descriptions of their calls, and raise. A small array
travels inside the record, and then nothing else has to be sent.
"""

import hashlib
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from distinput.distribute.collectives.channel import Bytes

__all__ = ["ABOUT", "INLINE", "RECORD", "CallRecord", "Purpose", "decode_text", "encode_text", "list_by_rank"]

# magic, version, refused, length of `same`, of `about`, number, bytes, near, path
_HEAD = struct.Struct("<2sBBHHQQQQ")
_VERSION = 2
_SAME, ABOUT = 128, 104
_TEXT_BYTES = 1024
INLINE = 128
"""The largest size in bytes of an array that travels inside the record."""
RECORD = _HEAD.size + _SAME + ABOUT + INLINE
"""The size of a record in bytes."""


@dataclass(frozen=True, slots=True)
class Purpose:
    """The purpose of a call, for callers that know more than the call itself shows.

    Args:
      text: what has to be equal on all workers, such as "reduce SUM, axis=0".
      given: a description of this worker's values, for messages only.
    """

    text: str
    given: Callable[[], str] = str


@dataclass(frozen=True, slots=True)
class CallRecord:
    """The call that one worker is about to make.

    Args:
      number: how many calls it has made on this group before.
      same: what has to be equal on all workers, as readable text.
      about: dtype and shape of its own array (`array_bytes.describe`).
      nbytes: how many bytes it will send.
      refused: its call cannot be made, so the others must not wait for it.
      inline: the array itself, if it is small.
      near: that of its `CallSite`, 0 where call sites are not compared.
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
    def decode(cls, record: Bytes) -> "CallRecord":
        """The record that `encode` wrote on another worker.

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
    """The text, or its beginning and a digest of all of it, so that different texts stay different."""
    if len(text) <= room:
        return text
    digest = hashlib.blake2b(text, digest_size=8).hexdigest().encode()
    return text[: room - len(digest) - 3] + b".. " + digest


def encode_text(text: str) -> Bytes:
    """A text as [1024] bytes, cut off if it is longer."""
    return np.frombuffer(text.encode()[:_TEXT_BYTES].ljust(_TEXT_BYTES, b"\0"), np.uint8)


def decode_text(data: Bytes) -> str:
    """The text that `encode_text` wrote."""
    return data.tobytes().rstrip(b"\0").decode(errors="replace")


def list_by_rank(texts: Sequence[str]) -> str:
    """Lines that say who called what, with equal neighbours in one line.

    >>> print(list_by_rank(["barrier", "barrier", "all_reduce sum <f4 3"]))
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
