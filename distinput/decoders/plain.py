# SPDX-License-Identifier: Apache-2.0
"""Text and numbers that are written as text."""

import numpy as np

from distinput.errors import InvalidArgumentError

__all__ = ["decode_bytes", "decode_class", "decode_text"]


def decode_bytes(contents: bytes) -> bytes:
    """The bytes themselves."""
    return contents


def decode_text(contents: bytes) -> bytes:
    """Text, which stays bytes, as texts are in elements; checked to be UTF-8.

    Raises:
      InvalidArgumentError: it is not.
    """
    try:
        contents.decode()
    except UnicodeDecodeError as error:
        raise InvalidArgumentError(f"it is not UTF-8: {error}; decode it as 'bytes'") from None
    return contents


def decode_class(contents: bytes) -> np.int64:
    r"""An integer in decimal digits.

    Raises:
      InvalidArgumentError: it is none, or does not fit into 64 bits.

    >>> decode_class(b" 7\n")
    np.int64(7)
    """
    text = contents.strip()
    if not 0 < len(text) < 21 or not text.removeprefix(b"-").isdigit() or not -(1 << 63) <= int(text) < 1 << 63:
        raise InvalidArgumentError(f"it must be an integer of 64 bits, got {contents[:40]!r}; decode it as 'bytes'")
    return np.int64(int(text))
