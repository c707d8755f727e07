# SPDX-License-Identifier: Apache-2.0
"""Plain objects of JSON Lines straight to columns: what most files are made of; the rest is left to pyarrow's reader."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import cast

import numpy as np

from distinput.kernels.kernel import Bytes, BytesOut, Ints, IntsOut, inlined, kernel
from distinput.kernels.machine import has_text, load_u8, load_u64, store_u32, store_u64, trailing_zeros
from distinput.kernels.plain_csv import (
    AS_WRITTEN,
    FLOAT32,
    FLOAT64,
    INT32,
    INT64,
    LEFT_OUT,
    NO_DECIMAL,
    TEXT,
    TRUTH,
    decimal_prefix,
    is_kind,
    lies_within,
    long_whole,
    nearest_float32,
    read_number,
    whole_prefix,
)

# Status codes.
OK, NOT_PLAIN, ESCAPED = 0, 1, 2

_NEWLINE, _QUOTE, _BACKSLASH, _COLON, _COMMA, _OPEN, _CLOSE = 10, 34, 92, 58, 44, 123, 125
_ONES, _HIGHS = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)
_QUOTES, _BACKSLASHES, _SPACES = (np.uint64(0x0101010101010101 * each) for each in (_QUOTE, _BACKSLASH, 32))
_NONE, _NO_BITS, _1 = -1, np.uint64(0), np.uint64(1)
_WORDS = np.frombuffer(b"truefalsenull", np.uint8)
_SHORT = np.zeros(128, np.uint8)
for _letter, _meant in zip(b'"\\/bfnrt', b'"\\/\b\f\n\r\t', strict=True):
    _SHORT[_letter] = _meant

_BLANK = re.compile(rb"[ \t\r]*")
_BLANK_LINES = re.compile(rb"[ \t\r\n]*")
_STRING = re.compile(rb'"((?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*)"')
_NUMBER = re.compile(rb"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_ESCAPE = re.compile(rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.)")


def _unescaped(text: bytes) -> bytes | None:
    """The text that a string means; None: half a pair of surrogates, or a zero."""
    right = True

    def meaning(found: re.Match[bytes]) -> bytes:
        nonlocal right
        part = found[0]
        if part[1:2] != b"u":
            return _SHORT[part[1] : part[1] + 1].tobytes()
        code = int(part[2:6], 16)
        if len(part) == 12:
            code = 0x10000 + (code - 0xD800 << 10) + int(part[8:], 16) - 0xDC00
        elif code == 0 or 0xD800 <= code < 0xE000:
            right = False
            return b""
        return chr(code).encode()

    made = _ESCAPE.sub(meaning, text)
    return made if right else None


def _skip(pattern: re.Pattern[bytes], content: bytes, at: int) -> int:
    return cast(re.Match[bytes], pattern.match(content, at)).end()


def _read_value(content: bytes, at: int, kind: int) -> tuple[object, int] | None:
    """What is at an offset, and where it ends: a number, a bool, start and end of text, or None if it is left out."""
    for word in (b"true", b"false", b"null"):
        if content.startswith(word, at) and (kind == LEFT_OUT or (kind == TRUTH and word != b"null")):
            return np.uint8(word == b"true"), at + len(word)
    if content[at] == _QUOTE:
        found = _STRING.match(content, at)
        if kind not in (LEFT_OUT, TEXT) or found is None or _unescaped(found[1]) is None:
            return None
        return found.span(1), found.end()
    number = _NUMBER.match(content, at)
    if number is None or kind in (TEXT, TRUTH):
        return None
    value = read_number(number[0], FLOAT64 if kind == LEFT_OUT else kind)
    if value is None or (kind % AS_WRITTEN not in (INT64, INT32) and value == 0 and b"e" in number[0].lower()):
        return None  # of a zero with an exponent, pyarrow may find that it is too big
    return value, number.end()


def _read_object(content: bytes, at: int, keys: list[bytes], kinds: list[int]) -> tuple[dict[int, object], int] | None:
    """The values of the object at an offset by the number of their key, and where its line ends; None: it is not plain."""
    values: dict[int, object] = {}
    if content[at] != _OPEN:
        return None
    while True:
        at = _skip(_BLANK, content, at + 1)
        if content[at] != _QUOTE:
            return None
        j = next((j for j, key in enumerate(keys) if j not in values and content.startswith(key, at)), _NONE)
        if j == _NONE:
            return None
        at = _skip(_BLANK, content, at + len(keys[j]))
        if content[at] != _COLON:
            return None
        found = _read_value(content, _skip(_BLANK, content, at + 1), kinds[j])
        if found is None:
            return None
        values[j], at = found
        at = _skip(_BLANK, content, at)
        if content[at] == _CLOSE:
            at = _skip(_BLANK, content, at + 1)
            return (values, at + 1) if content[at] == _NEWLINE and len(values) == len(keys) else None
        if content[at] != _COMMA:
            return None


def plain_json_reference(
    data: Bytes, n: int, keys: Bytes, columns: Ints, out: BytesOut, text: BytesOut
) -> tuple[int, int]:
    r"""Read n objects to columns.

    The objects must be plain, each on a line of its own: with each of the keys once, in any order, and no others; and
    without arrays, objects and nulls, but for nulls that are left out. Whole numbers have up to 18 digits, decimal ones
    are as `decimal_prefix` reads them.

    Args:
      data: whole lines, which end with "\n"; lines of white space are none.
      n: how many objects there are.
      keys: as they are written, with their quotes, one after the other.
      columns: [k * 3] (that is [k, 3]): for each key where it ends in `keys`, the kind of its values, and the offset of its
        column in `out`, a multiple of 8. `plain_csv.AS_WRITTEN` may be added to a kind of numbers. Numbers are
        [n], truth values [n] bytes; text is [2, n] of int64, start and length of each in `text`.
      out: out; the columns.
      text: out; a copy of the data, in which text with escapes is replaced by what it means, so that it becomes shorter; or
        nothing, if there is no such text.

    Returns:
      `OK`, `NOT_PLAIN`, or `ESCAPED` if there is no `text` but needs to be; and 0. Unless it is `OK`, what is out is
      undefined.
    """
    _check(data, n, keys, columns, out, text)
    ends, kinds, _ = columns.reshape(-1, 3).T.tolist()
    names = [keys[begin:end].tobytes() for begin, end in pairwise([0, *ends])]
    content, position = data.tobytes(), 0
    if content[-1:] != b"\n":
        return (OK if n == 0 and not content else NOT_PLAIN), 0
    for row in range(n):
        position = _skip(_BLANK_LINES, content, position)
        record = _read_object(content, position, names, kinds) if position < len(content) else None
        if record is None:
            return NOT_PLAIN, 0
        values, position = record
        for j, value in values.items():
            kind, place = kinds[j], columns[3 * j + 2]
            if kind == LEFT_OUT:
                continue
            if kind != TEXT:
                dtype = np.asarray(value).dtype
                out[place : place + dtype.itemsize * n].view(dtype)[row] = value
                continue
            start, stop = cast(tuple[int, int], value)
            meant = cast(bytes, _unescaped(content[start:stop]))
            if len(meant) < stop - start:
                if not text.size:
                    return ESCAPED, 0
                text[start : start + len(meant)] = np.frombuffer(meant, np.uint8)
            both = out[place : place + 16 * n].view(np.int64)
            both[row], both[n + row] = start, len(meant)
    return (OK if _skip(_BLANK_LINES, content, position) == len(content) else NOT_PLAIN), 0


# What follows may look at the byte behind any byte but the last newline of the data, at which everything ends.


@inlined
def _after_blanks(data: Bytes, at: int) -> int:
    byte = load_u8(data, at)
    while byte == 32 or byte == 9 or byte == 13:
        at += 1
        byte = load_u8(data, at)
    return at


@inlined
def _text_end(data: Bytes, at: int) -> int:
    """The first byte from `at` on that is a quote, a backslash or no part of text."""
    while at + 8 <= data.size:
        word = load_u64(data, at)
        quotes, escapes = word ^ _QUOTES, word ^ _BACKSLASHES
        # Only bytes behind the first one found may be found wrongly, by a borrow.
        found = (quotes - _ONES) & ~quotes | (escapes - _ONES) & ~escapes | (word - _SPACES) & ~word
        found &= _HIGHS
        if found != _NO_BITS:
            return at + (trailing_zeros(found) >> 3)
        at += 8
    byte = load_u8(data, at)
    while byte != _QUOTE and byte != _BACKSLASH and byte >= 32:
        at += 1
        byte = load_u8(data, at)
    return at


@inlined
def _four_digits(data: Bytes, at: int) -> int:
    """The number of four hexadecimal digits; -1: there are others."""
    code = 0
    for i in range(4):
        byte = load_u8(data, at + i)
        if 48 <= byte <= 57:
            code = 16 * code + byte - 48
        elif 97 <= byte | 32 <= 102:
            code = 16 * code + (byte | 32) - 87
        else:
            return _NONE
    return code


@inlined
def _escape(data: Bytes, at: int) -> tuple[int, int]:
    """The code point that the escape at `at` means, and where it ends; -1: none that is plain."""
    letter = load_u8(data, at + 1)
    if letter != 117:
        code = int(_SHORT[letter]) if letter < 128 else 0
        return (code if code > 0 else _NONE), at + 2
    code = _four_digits(data, at + 2)
    at += 6
    if code <= 0 or 0xDC00 <= code < 0xE000:
        return _NONE, at
    if code < 0xD800 or code >= 0xE000:
        return code, at
    if load_u8(data, at) != _BACKSLASH or load_u8(data, at + 1) != 117:
        return _NONE, at
    low = _four_digits(data, at + 2)
    if low < 0xDC00 or low >= 0xE000:
        return _NONE, at
    return 0x10000 + ((code - 0xD800) << 10) + low - 0xDC00, at + 6


@inlined
def _put_letter(text: BytesOut, to: int, code: int) -> int:
    """Write a code point as UTF-8, and say where it ends."""
    if code < 0x80:
        text[to] = code
        return to + 1
    if code < 0x800:
        text[to], text[to + 1] = 0xC0 | code >> 6, 0x80 | code & 63
        return to + 2
    if code < 0x10000:
        text[to], text[to + 1], text[to + 2] = 0xE0 | code >> 12, 0x80 | code >> 6 & 63, 0x80 | code & 63
        return to + 3
    text[to], text[to + 1] = 0xF0 | code >> 18, 0x80 | code >> 12 & 63
    text[to + 2], text[to + 3] = 0x80 | code >> 6 & 63, 0x80 | code & 63
    return to + 4


@inlined
def _unescape(data: Bytes, at: int, to: int, text: BytesOut, written: bool) -> tuple[int, int]:
    """Write text from its first escape on, unless it is only read; the end of it in the data, and of what was written.

    The end is -1 if the text is not plain.
    """
    byte = load_u8(data, at)
    while byte != _QUOTE:
        if byte < 32:
            return _NONE, to
        if byte == _BACKSLASH:
            code, at = _escape(data, at)
            if code < 0:
                return _NONE, to
            if written:
                to = _put_letter(text, to, code)
        else:
            if written:
                text[to] = byte
            to, at = to + 1, at + 1
        byte = load_u8(data, at)
    return at, to


@inlined
def _after_word(data: Bytes, at: int) -> int:
    """Where true, false or null end; -1: it is none of them."""
    if has_text(data, at, _WORDS, 0, 4) or has_text(data, at, _WORDS, 9, 13):
        return at + 4
    return at + 5 if has_text(data, at, _WORDS, 4, 9) else _NONE


@inlined
def _put_text(
    data: Bytes, at: int, place: int, row: int, n: int, out: BytesOut, text: BytesOut, written: bool
) -> tuple[int, bool]:
    """See `_put_value`, for the text behind a quote."""
    stop = _text_end(data, at)
    ended, escaped = stop, False
    if load_u8(data, stop) != _QUOTE:
        if load_u8(data, stop) != _BACKSLASH:
            return _NONE, False
        escaped = written and text.size == 0
        stop, ended = _unescape(data, stop, stop, text, written and not escaped)
        if stop < 0:
            return _NONE, False
    if written:
        store_u64(out, place + 8 * row, np.uint64(at))
        store_u64(out, place + 8 * (n + row), np.uint64(ended - at))
    return stop + 1, escaped


@inlined
def _put_number(data: Bytes, at: int, given: int, place: int, row: int, out: BytesOut) -> int:
    """Write a number, unless it is left out, and say where it ends; -1: not plain."""
    kind = given % AS_WRITTEN
    first = at + 1 if load_u8(data, at) == 45 else at
    if load_u8(data, first) == 48 and 48 <= load_u8(data, first + 1) <= 57:
        return _NONE  # a zero in front of other digits
    if kind == INT64 or kind == INT32:
        number, after = whole_prefix(data, at, data.size)
        if after < 0 or (kind == INT32 and (number < -(2**31) or number >= 2**31)):
            return _NONE
        if kind == INT64:
            store_u64(out, place + 8 * row, np.uint64(number))
        else:
            store_u32(out, place + 4 * row, np.uint32(number & 0xFFFFFFFF))
        return after
    bits, after = decimal_prefix(data, at, data.size)
    if bits == NO_DECIMAL or (given >= AS_WRITTEN and long_whole(data, at, after)):
        return _NONE
    if bits << _1 == _NO_BITS:
        for i in range(at, after):
            if load_u8(data, i) | 32 == 101:
                return _NONE  # a zero with an exponent, which pyarrow may find too big
    if kind == FLOAT64:
        store_u64(out, place + 8 * row, bits)
    elif kind == FLOAT32:
        bits = nearest_float32(bits)
        if bits == NO_DECIMAL:
            return _NONE
        store_u32(out, place + 4 * row, np.uint32(bits))
    return after


@inlined
def _put_value(
    data: Bytes, at: int, kind: int, place: int, row: int, n: int, out: BytesOut, text: BytesOut
) -> tuple[int, bool]:
    """Write a value, unless it is left out; where it ends, -1: not plain, and whether `text` is needed for it."""
    byte = load_u8(data, at)
    if byte == _QUOTE:
        if kind != TEXT and kind != LEFT_OUT:
            return _NONE, False
        return _put_text(data, at + 1, place, row, n, out, text, kind == TEXT)
    if byte == 116 or byte == 102 or byte == 110:
        if kind != LEFT_OUT and (kind != TRUTH or byte == 110):
            return _NONE, False
        if kind == TRUTH:
            out[place + row] = byte == 116
        return _after_word(data, at), False
    if kind == TEXT or kind == TRUTH:
        return _NONE, False
    return _put_number(data, at, kind, place, row, out), False


@inlined
def _key_at(data: Bytes, at: int, guess: int, row: int, keys: Bytes, columns: Ints, seen: IntsOut) -> int:
    """The number of the key at an offset, which most often is the guess; -1: none that is new in this row."""
    k = seen.size
    for i in range(k):
        j = guess + i
        if j >= k:
            j -= k
        begin = columns[3 * j - 3] if j > 0 else 0
        if seen[j] <= row and has_text(data, at, keys, begin, columns[3 * j]):
            return j
    return _NONE


@inlined
def _put_object(
    data: Bytes, at: int, row: int, n: int, keys: Bytes, columns: Ints, out: BytesOut, text: BytesOut, seen: IntsOut
) -> tuple[int, bool]:
    """Write the object at an offset; where its line ends, -1: not plain, and whether `text` is needed for it."""
    escaped, j = False, -1
    if load_u8(data, at) != _OPEN:
        return _NONE, False
    for _ in range(seen.size):
        at = _after_blanks(data, at + 1)
        if load_u8(data, at) != _QUOTE:
            return _NONE, False
        j = _key_at(data, at, j + 1, row, keys, columns, seen)
        if j < 0:
            return _NONE, False
        seen[j] = row + 1
        at = _after_blanks(data, at + columns[3 * j] - (columns[3 * j - 3] if j > 0 else 0))
        if load_u8(data, at) != _COLON:
            return _NONE, False
        at = _after_blanks(data, at + 1)
        at, needed = _put_value(data, at, columns[3 * j + 1], columns[3 * j + 2], row, n, out, text)
        if at < 0:
            return _NONE, False
        escaped = escaped or needed
        at = _after_blanks(data, at)
        if load_u8(data, at) != _COMMA:
            break
    for each in seen:
        if each <= row:
            return _NONE, False
    if load_u8(data, at) != _CLOSE:
        return _NONE, False
    at = _after_blanks(data, at + 1)
    return (at + 1 if load_u8(data, at) == _NEWLINE else _NONE), escaped


@inlined
def _check(data: Bytes, n: int, keys: Bytes, columns: Ints, out: BytesOut, text: BytesOut) -> None:
    """Raise an error for keys and columns that do not fit together, or that do not lie within `out`."""
    if n < 0 or columns.size < 3 or columns.size % 3 != 0 or (text.size != 0 and text.size != data.size):
        raise ValueError("plain_json: there must be a key, with an end, a kind and an offset for each")
    begin = 0
    for j in range(columns.size // 3):
        end, given = columns[3 * j], columns[3 * j + 1]
        if end <= begin or end > keys.size or not is_kind(given, TRUTH):
            raise ValueError("plain_json: each key must have an end behind the one before, and a kind")
        if not lies_within(given, columns[3 * j + 2], n, out.size):
            raise ValueError("plain_json: each column must lie within out at a multiple of 8")
        begin = end


@kernel(plain_json_reference)
def plain_json(data: Bytes, n: int, keys: Bytes, columns: Ints, out: BytesOut, text: BytesOut) -> tuple[int, int]:
    """See `plain_json_reference`."""
    _check(data, n, keys, columns, out, text)
    if data.size == 0 or load_u8(data, data.size - 1) != _NEWLINE:
        return (OK if n == 0 and data.size == 0 else NOT_PLAIN), 0
    seen = np.zeros(columns.size // 3, np.int64)
    at = 0
    for row in range(n + 1):
        while at < data.size and (load_u8(data, at) == _NEWLINE or _after_blanks(data, at) > at):
            at += 1
        if row == n or at == data.size:
            return (OK if row == n and at == data.size else NOT_PLAIN), 0
        at, escaped = _put_object(data, at, row, n, keys, columns, out, text, seen)
        if at < 0:
            return NOT_PLAIN, 0
        if escaped:
            return ESCAPED, 0
    return NOT_PLAIN, 0
