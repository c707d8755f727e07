# SPDX-License-Identifier: Apache-2.0
"""Byte strings as numbers, compressed and as text: `decode_raw`, `decode_compressed`, `encode_base64`, `decode_base64`."""

import base64
import binascii
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from distinput.errors import DataLossError, InvalidArgumentError
from distinput.plan.check import byte_string
from distinput.values.buffers import told_by
from distinput.values.leaves import STRING, Array, as_dtype

_GZIP = 31  # for zlib: the largest window, in the frame of gzip
_MOST_BYTES = 1 << 30
"""Bytes that a compressed string may become: a few bytes must not ask for all memory."""


def decode_raw(
    input_bytes: Any,
    out_type: Any,
    little_endian: bool = True,
    fixed_length: int | None = None,
    name: str | None = None,
) -> Array:
    r"""Decode the bytes of strings as arrays of numbers.

    Shapes: a string becomes [n]; an array [...] of strings becomes [..., n].

    Args:
      input_bytes: bytes, or an array or list of bytes of equal length.
      out_type: the dtype of the numbers.
      little_endian: whether the lowest byte of a number comes first.
      fixed_length: bytes of each string to use; longer ones are cut off, shorter ones are filled with zeros.
      name: ignored.

    Raises:
      InvalidArgumentError: a length does not fit the dtype, or the strings differ in length.

    >>> decode_raw(b"\x01\x02\x03\x04", "int16")
    array([ 513, 1027], dtype=int16)

    Source: `tf.io.decode_raw`.
    """
    del name
    dtype = as_dtype(out_type)
    if dtype == STRING:
        raise InvalidArgumentError("decode_raw: out_type must be a dtype of numbers, got string")
    strings = np.array(input_bytes, object)
    items = [byte_string("decode_raw", item) for item in strings.reshape(-1).tolist()]
    if fixed_length is not None:
        if fixed_length < 0 or fixed_length % dtype.itemsize:
            raise InvalidArgumentError(
                f"decode_raw: fixed_length ({fixed_length}) must be a multiple of the size of out_type ({dtype.itemsize})"
            )
        with told_by("decode_raw", [len(items), fixed_length // dtype.itemsize], dtype):
            items = [item[:fixed_length].ljust(fixed_length, b"\0") for item in items]
    sizes = sorted({len(item) for item in items})
    if len(sizes) > 1:
        raise InvalidArgumentError(
            f"decode_raw: all strings must have the same length, got {sizes[0]} and {sizes[-1]}; give fixed_length"
        )
    size = sizes[0] if sizes else 0
    if size % dtype.itemsize:
        raise InvalidArgumentError(
            f"decode_raw: the length of a string, {size}, must be a multiple of {dtype.itemsize}, the size of {dtype}"
        )
    order = dtype.newbyteorder("<" if little_endian else ">")
    return np.frombuffer(b"".join(items), order).astype(dtype).reshape(*strings.shape, size // dtype.itemsize)


def decode_compressed(bytes: Any, compression_type: str = "", name: str | None = None) -> Any:
    """The content of compressed strings.

    Args:
      bytes: bytes, or an array or list of bytes.
      compression_type: "", "GZIP" or "ZLIB".
      name: ignored.

    Raises:
      InvalidArgumentError: another compression.
      DataLossError: a string is damaged, or would become larger than 1 GiB.

    >>> import gzip
    >>> decode_compressed(gzip.compress(b"text"), "GZIP")
    b'text'

    Source: `tf.io.decode_compressed`.
    """
    del name
    forms = {"": None, "GZIP": _GZIP, "ZLIB": 15}
    if not isinstance(compression_type, str) or compression_type not in forms:
        raise InvalidArgumentError(
            f"decode_compressed: compression_type must be one of {', '.join(map(repr, forms))}, got {compression_type!r}"
        )
    form = forms[compression_type]
    return _each("decode_compressed", bytes, lambda item: item if form is None else _inflated(item, form))


def _inflated(data: bytes, form: int) -> bytes:
    """What a string holds: all members of a GZIP string, and what comes before the end of a ZLIB string."""
    parts: list[bytes] = []
    room, rest = _MOST_BYTES, data
    while not parts or (rest and form == _GZIP):
        inflater = zlib.decompressobj(form)
        try:
            parts.append(inflater.decompress(rest, room + 1))
        except zlib.error as error:
            raise DataLossError(f"decode_compressed: a string is damaged: {error}") from error
        room, rest = room - len(parts[-1]), inflater.unused_data
        if room < 0:
            raise DataLossError(
                f"decode_compressed: a string of {len(data)} bytes becomes more than {_MOST_BYTES} bytes"
            )
        if not inflater.eof:
            raise DataLossError("decode_compressed: a string is damaged: it ends in the middle")
    return parts[0] if len(parts) == 1 else b"".join(parts)


def encode_base64(input: Any, pad: bool = False, name: str | None = None) -> Any:
    """Strings as text that is safe in URLs and file names.

    Args:
      input: bytes, or an array or list of bytes.
      pad: fill up with "=" to a multiple of four characters.
      name: ignored.

    >>> encode_base64(b"abcd"), encode_base64(b"abcd", pad=True)
    (b'YWJjZA', b'YWJjZA==')

    Source: `tf.io.encode_base64`.
    """
    del name

    def encoded(item: bytes) -> bytes:
        made = base64.urlsafe_b64encode(item)
        return made if pad else made.rstrip(b"=")

    return _each("encode_base64", input, encoded)


def decode_base64(input: Any, name: str | None = None) -> Any:
    """What `encode_base64` was given.

    Args:
      input: text of the web-safe alphabet, or an array or list of it; without "=" at the end, or with as many as needed.
      name: ignored.

    Raises:
      InvalidArgumentError: a character that does not belong there, or a length that no text has.

    >>> decode_base64(b"YWJjZA")
    b'abcd'

    Source: `tf.io.decode_base64`.
    """
    del name

    def decoded(item: bytes) -> bytes:
        try:
            # Python takes "+" and "/" as well, and any number of "=".
            bare = item.rstrip(b"=")
            if b"+" in bare or b"/" in bare or len(item) - len(bare) not in (0, -len(bare) % 4):
                raise binascii.Error
            return base64.b64decode(bare + b"=" * (-len(bare) % 4), b"-_", validate=True)
        except binascii.Error as error:
            raise InvalidArgumentError(f"decode_base64: Invalid character found in base64: {item!r:.60}") from error

    return _each("decode_base64", input, decoded)


def _each(op: str, given: Any, function: Callable[[bytes], bytes]) -> Any:
    return for_each(given, lambda item: function(byte_string(op, item)))


def for_each(given: Any, function: Callable[[Any], bytes]) -> Any:
    """The results for a string, or for each of an array of them."""
    if isinstance(given, bytes | str):
        return function(given)
    array = np.asarray(given, object)
    made = np.array(list(map(function, array.reshape(-1).tolist())), object).reshape(array.shape)
    return made if made.shape else made[()]
