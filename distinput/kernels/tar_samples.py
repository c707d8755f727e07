# SPDX-License-Identifier: Apache-2.0
"""Samples in tar archives: consecutive files whose names differ in their extensions only.

An archive is a sequence of blocks of 512 bytes. A member is a header, which has a checksum, and its content, filled up to whole
blocks. A header may be preceded by others that hold a long name or a large size: those of POSIX (pax) and those of GNU. A block
of zeros is the end.

A name is split at the first dot behind the last slash: `train/07.seg.png` has the key `train/07` and the extension `seg.png`.
Ignored are links, directories and devices; files without a dot, or whose names begin with one; and what is named
`__like_this__`, or is in such a folder. Refused are sparse files and parts of archives of several volumes, whose content is not
in one piece, and names that lead out of a folder: those that begin with a slash or have `..` among their parts.

Source: POSIX.1-2017, "pax Interchange Format" and "ustar Interchange Format"; the GNU tar manual, "Basic Tar Format". What is a
sample, and which files are none, is as the library webdataset has it.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from distinput.kernels.kernel import Bytes, BytesOut, Ints, IntsOut, inlined, kernel
from distinput.kernels.machine import copy_bytes, has_text, load_u8, load_u64, signed

BLOCK = 512
LONGEST_EXTENSION = 1 << 20  # bytes of a header that holds a name
LARGEST = 1 << 60  # bytes of a file
NAME, SIZE, SUM, TYPE, MAGIC, PREFIX = 0, 124, 148, 156, 257, 345  # where the fields of a header are
NAME_BYTES, SIZE_BYTES, SUM_BYTES, PREFIX_BYTES = 100, 12, 8, 155

# Why a scan stopped.
OK = 0  # no more room for spans, or the archive ended
INCOMPLETE = 1  # the sample continues after the end of the buffer
BAD_CHECKSUM = 2  # a header does not match its checksum
BAD_NUMBER = 3  # a size is not a number, negative, or too large
BAD_EXTENSION = 4  # a header of POSIX or GNU that extends the next one is malformed
BAD_NAME = 5  # a name is empty, or leads out of the folder
UNSUPPORTED = 6  # a sparse file, a part of several volumes, or a type that is unknown
AFTER_END = 7  # something follows the end of the archive
UNKNOWN = 8  # a file has an extension that was not expected
TWICE = 9  # two files of a sample have the same extension
NO_ROOM = 10  # the keys need more room

END, FILE, OTHER = 0, 1, 2  # kinds of members: the end, a file of a sample, and what is ignored

# Types in headers.
REGULAR = b"\x0007"
WITHOUT_CONTENT = b"123456"  # links, devices, folders, pipes
IGNORED = b"DNV"  # lists of files, labels of volumes
EXTENDING = b"KLxXg"
LONG_LINK, LONG_NAME, PAX, PAX_OF_SOLARIS, PAX_OF_ALL = EXTENDING

DOT, SLASH, UNDERSCORE, SPACE, EQUALS, NEWLINE = b"./_ =\n"

FIRST_WITHOUT, LAST_WITHOUT = b"16"  # types without content
_ZERO, _SEVEN, _NINE = b"079"
_D, _N, _V = b"DNV"
_KEYS = np.frombuffer(b"pathsizeGNU.sparse.", np.uint8)  # of extended headers, of which the last one is a beginning
_SIX_BYTES, _USTAR = np.uint64((1 << 48) - 1), np.uint64(0x007261747375)  # "ustar" and a zero


@inlined
def _whole_blocks(size: int) -> int:
    return (size + BLOCK - 1) // BLOCK * BLOCK


# ----------------------------------------------------------------------------
# The members of tar archives: their headers, and how a name is split into a key and an extension.
# ----------------------------------------------------------------------------


class Member(NamedTuple):
    """A member of an archive.

    Args:
      status: `OK`, or what is wrong.
      where: the offset of the header that is wrong, or, where the buffer is too short, the end of what is needed.
      kind: end, file or other; also where the content is not whole.
      after: the offset at which the next member begins.
      content: the offset of its content.
      size: of its content.
      key: the name without the extension.
      extension: in lower case.
    """

    status: int
    where: int
    kind: int = END
    after: int = 0
    content: int = 0
    size: int = 0
    key: bytes = b""
    extension: bytes = b""


class _Fault(Exception):
    """A member is not whole or malformed, or there is none any more: its status, and where."""


def read_number(field: bytes, at: int) -> int:
    """A number of a header: octal digits between spaces, up to a zero byte, or a byte 128 and a number of 11 bytes."""
    if field[0] == 128:
        value = int.from_bytes(field[1:], "big")
    else:
        text = field.lstrip(b" ")
        digits = text[: next((k for k, byte in enumerate(text) if byte in b" \0"), len(text))]
        if any(digit not in b"01234567" for digit in digits):
            raise _Fault(BAD_NUMBER, at)
        value = int(digits or b"0", 8)
    if value > LARGEST:
        raise _Fault(BAD_NUMBER, at)
    return value


def read_pax(content: bytes, at_header: int) -> tuple[bytes | None, int | None]:
    """The name and the size in an extended header of POSIX: lines "LENGTH KEY=VALUE", whose length counts all of the line."""
    name, size, at = None, None, 0
    while at < len(content) and content[at]:
        length, space, _ = content[at : at + 12].partition(b" ")
        if not space or not length or any(digit not in b"0123456789" for digit in length):
            raise _Fault(BAD_EXTENSION, at_header)
        line = content[at : at + int(length)]
        if int(length) > len(line) or int(length) < len(length) + 2 or line[-1] != NEWLINE:
            raise _Fault(BAD_EXTENSION, at_header)
        key, equals, value = line[len(length) + 1 : -1].partition(b"=")
        if not equals:
            raise _Fault(BAD_EXTENSION, at_header)
        if key == b"path":
            name = value
        elif key == b"size":
            if not 1 <= len(value) <= 18 or any(digit not in b"0123456789" for digit in value):
                raise _Fault(BAD_EXTENSION, at_header)
            size = int(value)
        elif key.startswith(b"GNU.sparse."):
            raise _Fault(UNSUPPORTED, at_header)
        at += len(line)
    return name, size


def read_member(buffer: Bytes, at: int) -> Member:
    """The member whose first header is at `at`."""
    try:
        return _read_last(buffer, *_read_headers(buffer, at))
    except _Fault as fault:
        return Member(*fault.args)


def _read_headers(buffer: Bytes, at: int) -> tuple[int, bytes, bytes | None, int | None]:
    """Where the last header of a member is, that header, and the name and the size in those before it."""
    name: bytes | None = None
    size: int | None = None
    first = at
    while True:
        if at + BLOCK > buffer.size:
            raise _Fault(INCOMPLETE, at + BLOCK)
        header = buffer[at : at + BLOCK].tobytes()
        if not any(header):
            raise _Fault(OK if at == first else BAD_EXTENSION, at)
        _check_sum(header, at)
        own = read_number(header[SIZE : SIZE + SIZE_BYTES], at)
        if header[TYPE] not in EXTENDING:
            return at, header, name, size
        if own > LONGEST_EXTENSION:
            raise _Fault(BAD_EXTENSION, at)
        content, after = at + BLOCK, at + BLOCK + _whole_blocks(own)
        if after > buffer.size:
            raise _Fault(INCOMPLETE, after + BLOCK)
        held = buffer[content : content + own].tobytes()
        path, told = None, None
        if header[TYPE] == LONG_NAME:
            path = held.partition(b"\0")[0]
        elif header[TYPE] != LONG_LINK:
            path, told = read_pax(held, at)
            if header[TYPE] == PAX_OF_ALL and (path is not None or told is not None):
                raise _Fault(BAD_EXTENSION, at)
        name = path if name is None else name
        size = told if size is None else size
        at = after


def _read_last(buffer: Bytes, at: int, header: bytes, name: bytes | None, size: int | None) -> Member:
    """The member with this last header, and the name and the size that those before it hold."""
    kind, content = header[TYPE], at + BLOCK
    if name is None:
        name = header[NAME : NAME + NAME_BYTES].partition(b"\0")[0]
        prefix = header[PREFIX : PREFIX + PREFIX_BYTES].partition(b"\0")[0]
        if header[MAGIC : MAGIC + 6] == b"ustar\0" and prefix:
            name = prefix + b"/" + name
    if kind in WITHOUT_CONTENT or (kind == 0 and name.endswith(b"/")):
        return Member(OK, at, OTHER, content)
    size = read_number(header[SIZE : SIZE + SIZE_BYTES], at) if size is None else size
    after = content + _whole_blocks(size)
    if kind not in REGULAR and kind not in IGNORED:
        raise _Fault(UNSUPPORTED, at)
    if kind in REGULAR and (not name or name.startswith(b"/") or b".." in name.split(b"/") or b"\0" in name):
        raise _Fault(BAD_NAME, at)
    folder, slash, base = name.rpartition(b"/")
    stem, dot, extension = base.partition(b".")
    top = name.partition(b"/")[0]
    meta = len(top) >= 4 and top.startswith(b"__") and top.endswith(b"__")
    whole = after <= buffer.size
    status, where = (OK, at) if whole else (INCOMPLETE, after + BLOCK)
    if kind in IGNORED or not stem or not dot or meta:
        return Member(status, where, OTHER, after)
    return Member(status, where, FILE, after, content, size, folder + slash + stem, extension.lower())


def _check_sum(header: bytes, at: int) -> None:
    told = read_number(header[SUM : SUM + SUM_BYTES], at)
    counted = header[:SUM] + b" " * SUM_BYTES + header[SUM + SUM_BYTES :]
    unsigned = sum(counted)
    if told not in (unsigned, unsigned - 256 * sum(byte > 127 for byte in counted)):
        raise _Fault(BAD_CHECKSUM, at)


# ----------------------------------------------------------------------------
# The members of tar archives, as compiled code reads them: what `read_member` does in Python.
#
# Positions and lengths are those of the buffer; -1 means none, or malformed.
# ----------------------------------------------------------------------------


@inlined
def _number(buffer: Bytes, at: int, length: int) -> int:
    """The number in a field of a header; -1 if it is malformed."""
    value = 0
    if load_u8(buffer, at) == 128:
        for k in range(1, length):
            if value > LARGEST >> 8:
                return -1
            value = value << 8 | load_u8(buffer, at + k)
        return value if value <= LARGEST else -1
    stop = at + length
    while at < stop and load_u8(buffer, at) == SPACE:
        at += 1
    while at < stop:
        byte = load_u8(buffer, at)
        if byte == 0 or byte == SPACE:
            return value
        if byte < _ZERO or byte > _SEVEN:
            return -1
        value = value << 3 | (byte - _ZERO)
        at += 1
    return value


@inlined
def _is_zero(buffer: Bytes, at: int) -> bool:
    """True if all of the block at `at` is zero."""
    for k in range(0, BLOCK, 8):
        if load_u64(buffer, at + k) != np.uint64(0):
            return False
    return True


@inlined
def _sums_up(buffer: Bytes, at: int) -> int:
    """`OK` if the header at `at` matches its checksum, or what is wrong."""
    told = _number(buffer, at + SUM, SUM_BYTES)
    if told < 0:
        return BAD_NUMBER
    even, eight = np.uint64(0x00FF00FF00FF00FF), np.uint64(8)
    lanes = np.uint64(0)  # four sums of 16 bits; 64 words of two bytes each do not exceed them
    for k in range(0, BLOCK, 8):
        word = load_u64(buffer, at + k)
        lanes += (word & even) + (word >> eight & even)
    total = 0
    for k in range(4):
        total += signed(lanes >> np.uint64(16 * k) & np.uint64(0xFFFF))
    for k in range(SUM, SUM + SUM_BYTES):
        total += SPACE - load_u8(buffer, at + k)
    if told == total:
        return OK
    for k in range(BLOCK):  # some old programs added signed bytes
        if load_u8(buffer, at + k) > 127 and not SUM <= k < SUM + SUM_BYTES:
            total -= 256
    return OK if told == total else BAD_CHECKSUM


@inlined
def _until_zero(buffer: Bytes, at: int, most: int) -> int:
    """How many bytes there are before the first zero, at most `most`."""
    for k in range(most):
        if load_u8(buffer, at + k) == 0:
            return k
    return most


@inlined
def _pax(buffer: Bytes, at: int, stop: int) -> tuple[int, int, int, int]:
    """The status of an extended header, the span of the name in it (-1: none), and the size (-1: none)."""
    name_at, name_size, size = -1, 0, -1
    while at < stop and load_u8(buffer, at) != 0:
        length, place = 0, at
        while place < stop and place < at + 12 and _ZERO <= load_u8(buffer, place) <= _NINE:
            length = 10 * length + load_u8(buffer, place) - _ZERO
            place += 1
        if place == at or place >= stop or place >= at + 12 or load_u8(buffer, place) != SPACE:
            return BAD_EXTENSION, -1, 0, -1
        end = at + length
        if end > stop or end < place + 2 or load_u8(buffer, end - 1) != NEWLINE:
            return BAD_EXTENSION, -1, 0, -1
        key = place + 1
        value = key
        while value < end - 1 and load_u8(buffer, value) != EQUALS:
            value += 1
        if value == end - 1:
            return BAD_EXTENSION, -1, 0, -1
        length = value - key
        if length == 4 and has_text(buffer, key, _KEYS, 0, 4):
            name_at, name_size = value + 1, end - 2 - value
        elif length == 4 and has_text(buffer, key, _KEYS, 4, 8):
            if not 1 <= end - 2 - value <= 18:
                return BAD_EXTENSION, -1, 0, -1
            size = 0
            for k in range(value + 1, end - 1):
                digit = load_u8(buffer, k) - _ZERO
                if digit < 0 or digit > 9:
                    return BAD_EXTENSION, -1, 0, -1
                size = 10 * size + digit
        elif length >= 11 and has_text(buffer, key, _KEYS, 8, 19):
            return UNSUPPORTED, -1, 0, -1
        at = end
    return OK, name_at, name_size, size


@inlined
def _leads_out(buffer: Bytes, at: int, size: int) -> bool:
    """True if a part of a path is `..`, or if it has a zero byte."""
    part = at
    for k in range(at, at + size + 1):
        byte = load_u8(buffer, k) if k < at + size else SLASH
        if byte == SLASH:
            if k - part == 2 and load_u8(buffer, part) == DOT and load_u8(buffer, part + 1) == DOT:
                return True
            part = k + 1
        elif byte == 0:
            return True
    return False


@inlined
def _is_meta(buffer: Bytes, at: int, size: int) -> bool:
    """True if the first part of a path is `__like_this__`."""
    top = 0
    while top < size and load_u8(buffer, at + top) != SLASH:
        top += 1
    if top < 4 or load_u8(buffer, at) != UNDERSCORE or load_u8(buffer, at + 1) != UNDERSCORE:
        return False
    return load_u8(buffer, at + top - 1) == UNDERSCORE and load_u8(buffer, at + top - 2) == UNDERSCORE


@inlined
def _headers(buffer: Bytes, at: int) -> tuple[int, int, int, int, int, int]:
    """The headers of a member from the one at `at` on.

    Returns:
      The status; where the fault is, what is needed, or the last header; the span of the name in those before it (-1: none);
      the size in them (-1: none); and the size in the last one (-1: the archive ends here).
    """
    first = at
    name_at, name_size, told = -1, 0, -1
    while True:
        if at + BLOCK > buffer.size:
            return INCOMPLETE, at + BLOCK, -1, 0, -1, 0
        if load_u8(buffer, at) == 0 and _is_zero(buffer, at):
            return (OK if at == first else BAD_EXTENSION), at, -1, 0, -1, -1
        status = _sums_up(buffer, at)
        if status != OK:
            return status, at, -1, 0, -1, 0
        kind, content = load_u8(buffer, at + TYPE), at + BLOCK
        own = _number(buffer, at + SIZE, SIZE_BYTES)
        if own < 0:
            return BAD_NUMBER, at, -1, 0, -1, 0
        pax = kind == PAX or kind == PAX_OF_SOLARIS or kind == PAX_OF_ALL
        if not pax and kind != LONG_LINK and kind != LONG_NAME:
            return OK, at, name_at, name_size, told, own
        if own > LONGEST_EXTENSION:
            return BAD_EXTENSION, at, -1, 0, -1, 0
        after = content + _whole_blocks(own)
        if after > buffer.size:
            return INCOMPLETE, after + BLOCK, -1, 0, -1, 0
        path_at, path_size, size = -1, 0, -1
        if kind == LONG_NAME:
            path_at, path_size = content, _until_zero(buffer, content, own)
        elif pax:
            status, path_at, path_size, size = _pax(buffer, content, content + own)
            if status == OK and kind == PAX_OF_ALL and (path_at >= 0 or size >= 0):
                status = BAD_EXTENSION
            if status != OK:
                return status, at, -1, 0, -1, 0
        if name_at < 0:
            name_at, name_size = path_at, path_size
        if told < 0:
            told = size
        at = after


@inlined
def _dot(buffer: Bytes, at: int, stop: int) -> int:
    """The first dot behind the last slash; -1 if there is none, or nothing between them."""
    base, dot = at, -1
    for k in range(at, stop):
        byte = load_u8(buffer, k)
        if byte == SLASH:
            base, dot = k + 1, -1
        elif byte == DOT and dot < 0:
            dot = k
    return -1 if dot == base else dot


@inlined
def _is_name(buffer: Bytes, prefix_at: int, prefix_size: int, name_at: int, name_size: int) -> bool:
    """True if the name is not empty and does not lead out of the folder."""
    if prefix_size + name_size == 0 or load_u8(buffer, prefix_at if prefix_size else name_at) == SLASH:
        return False
    return not (_leads_out(buffer, name_at, name_size) or _leads_out(buffer, prefix_at, prefix_size))


@inlined
def member(buffer: Bytes, at: int) -> tuple[int, int, int, int, int, int, int, int, int, int, int]:
    """The member whose first header is at `at`.

    Returns:
      status, where, kind, after, content and size as `Member` has them; the span of the prefix of the key, which a slash
      follows if it is not empty; the span of the rest of the key; and the end of the extension, which begins one
      byte behind the key.
    """
    status, at, name_at, name_size, told, own = _headers(buffer, at)
    if status != OK or own < 0:
        return status, at, END, 0, 0, 0, 0, 0, 0, 0, 0
    kind, content = load_u8(buffer, at + TYPE), at + BLOCK
    prefix_at, prefix_size = 0, 0
    if name_at < 0:
        name_at, name_size = at + NAME, _until_zero(buffer, at + NAME, NAME_BYTES)
        if load_u64(buffer, at + MAGIC) & _SIX_BYTES == _USTAR:
            prefix_at, prefix_size = at + PREFIX, _until_zero(buffer, at + PREFIX, PREFIX_BYTES)
    last = load_u8(buffer, name_at + name_size - 1) if name_size else SLASH if prefix_size else 0
    if FIRST_WITHOUT <= kind <= LAST_WITHOUT or (kind == 0 and last == SLASH):
        return OK, at, OTHER, content, 0, 0, 0, 0, 0, 0, 0
    size = own if told < 0 else told
    after = content + _whole_blocks(size)
    regular = kind == 0 or kind == _ZERO or kind == _SEVEN
    if not regular and kind != _D and kind != _N and kind != _V:
        return UNSUPPORTED, at, END, 0, 0, 0, 0, 0, 0, 0, 0
    if regular and not _is_name(buffer, prefix_at, prefix_size, name_at, name_size):
        return BAD_NAME, at, END, 0, 0, 0, 0, 0, 0, 0, 0
    status, where = (OK, at) if after <= buffer.size else (INCOMPLETE, after + BLOCK)
    dot = _dot(buffer, name_at, name_at + name_size) if regular else -1
    front_at, front_size = (prefix_at, prefix_size) if prefix_size else (name_at, name_size)
    if dot < 0 or _is_meta(buffer, front_at, front_size):
        return status, where, OTHER, after, 0, 0, 0, 0, 0, 0, 0
    return (
        status,
        where,
        FILE,
        after,
        content,
        size,
        prefix_at,
        prefix_size,
        name_at,
        dot - name_at,
        name_at + name_size,
    )


@inlined
def key_byte(buffer: Bytes, k: int, prefix_at: int, prefix_size: int, name_at: int) -> int:
    """Byte k of a key."""
    if prefix_size == 0:
        return load_u8(buffer, name_at + k)
    if k < prefix_size:
        return load_u8(buffer, prefix_at + k)
    return SLASH if k == prefix_size else load_u8(buffer, name_at + k - prefix_size - 1)


def scan_reference(
    buffer: Bytes, start: int, starts: IntsOut, sizes: IntsOut, ended: bool
) -> tuple[int, int, int, int]:
    """Find the samples of buffer[start:], until `starts` is full or a sample may continue after the end of the buffer.

    Args:
      buffer: a piece of an archive.
      start: the offset at which a sample, or the end of the archive, begins.
      starts: out; the offset of each sample, with what is ignored before it.
      sizes: out; the bytes of each sample, with its headers and what is ignored behind it.
      ended: true if the archive ends with the buffer.

    Returns:
      The number of samples found; the offset of the next one; `OK` or what is wrong; and, for `INCOMPLETE`, how many bytes from
      there on are needed to continue, otherwise the offset of what is wrong.
    """
    if not 0 <= start <= buffer.size or starts.size != sizes.size:
        raise ValueError("scan_samples: start must be in the buffer, starts and sizes must have the same size")
    count, begin, position, key = 0, start, start, None
    while True:
        member = read_member(buffer, position)
        if member.status not in (OK, INCOMPLETE):
            return count, begin, member.status, member.where
        ends = member.kind == END and member.status == OK
        if key is not None and (ends or (member.kind == FILE and member.key != key)):
            if count == starts.size:
                return count, begin, OK, 0
            starts[count], sizes[count] = begin, position - begin
            count, begin, key = count + 1, position, None
        if member.status == INCOMPLETE:
            return count, begin, INCOMPLETE, member.where - begin
        if member.kind == END:
            rest = np.flatnonzero(buffer[position:])
            if rest.size:
                return count, begin, AFTER_END, position + int(rest[0])
            # One block of zeros is kept, so that what follows is seen to be behind the end.
            return (
                count,
                begin if ended or count else position + (buffer.size - position) // BLOCK * BLOCK - BLOCK,
                OK,
                0,
            )
        if member.kind == FILE:
            key = member.key
        position = member.after


def locate_reference(
    buffer: Bytes,
    starts: Ints,
    sizes: Ints,
    names: Bytes,
    ends: Ints,
    columns: Ints,
    strict: bool,
    content: IntsOut,
    lengths: IntsOut,
    keys: BytesOut,
    key_ends: IntsOut,
) -> tuple[int, int, int, int]:
    """Find the contents of the files of samples that `scan_samples` found.

    Args:
      buffer: the piece of an archive.
      starts: [n], the offset of each sample.
      sizes: [n], the bytes of each.
      names: the extensions looked for, one after the other.
      ends: [e], where each of them ends.
      columns: [e], the column of each.
      strict: true if there must be no other extensions.
      content: [c * n]; out: the offset of a content, by column, then by sample; left as it is where there is none.
      lengths: [c * n]; in: -1 everywhere; out: the size of each content.
      keys: out; the keys, one after the other.
      key_ends: [n]; out: where each of them ends.

    Returns:
      The number of samples before the first one at fault; `OK`, or `UNKNOWN`, `TWICE` or `NO_ROOM` (for keys); the offset of
      the member at fault, or the bytes that all keys so far need; and how many bytes of `keys` were written.
    """
    _check_locate(buffer, starts, sizes, names, ends, columns, content, lengths, key_ends)
    rows = starts.size
    texts = [names[begin:end].tobytes() for begin, end in pairwise([0, *ends.tolist()])]
    key_bytes = 0
    for row, (start, size) in enumerate(zip(starts.tolist(), sizes.tolist(), strict=True)):
        position, stop, named = start, start + size, False
        while position < stop:
            member = read_member(buffer, position)
            if member.status != OK or member.kind == END:
                return row, member.status or BAD_EXTENSION, position, key_bytes
            if member.kind == FILE:
                if not named:
                    named = True
                    if key_bytes + len(member.key) > keys.size:
                        return row, NO_ROOM, key_bytes + len(member.key), key_bytes
                    keys[key_bytes : key_bytes + len(member.key)] = np.frombuffer(member.key, np.uint8)
                    key_bytes += len(member.key)
                found = texts.index(member.extension) if member.extension in texts else -1
                if found < 0 and strict:
                    return row, UNKNOWN, position, key_bytes
                if found >= 0:
                    place = int(columns[found]) * rows + row
                    if lengths[place] >= 0:
                        return row, TWICE, position, key_bytes
                    content[place], lengths[place] = member.content, member.size
            position = member.after
        key_ends[row] = key_bytes
    return rows, OK, 0, key_bytes


@kernel(scan_reference)
def scan_samples(buffer: Bytes, start: int, starts: IntsOut, sizes: IntsOut, ended: bool) -> tuple[int, int, int, int]:
    """See `scan_reference`."""
    if start < 0 or start > buffer.size or starts.size != sizes.size:
        raise ValueError("scan_samples: start must be in the buffer, starts and sizes must have the same size")
    count, begin, position = 0, start, start
    p_at, p_size, n_at, n_size = 0, 0, -1, 0  # the key of the sample
    while True:
        status, where, kind, after, _, _, prefix_at, prefix_size, name_at, name_size, _ = member(buffer, position)
        if status != OK and status != INCOMPLETE:
            return count, begin, status, where
        other = kind == END and status == OK
        if kind == FILE and n_at >= 0:
            mine = p_size + n_size + (1 if p_size else 0)
            other = mine != prefix_size + name_size + (1 if prefix_size else 0)
            k = mine - 1  # keys differ at their ends
            while k >= 0 and not other:
                new = key_byte(buffer, k, prefix_at, prefix_size, name_at)
                other = key_byte(buffer, k, p_at, p_size, n_at) != new
                k -= 1
        if other and n_at >= 0:
            if count == starts.size:
                return count, begin, OK, 0
            starts[count] = begin
            sizes[count] = position - begin
            count += 1
            begin = position
            n_at = -1
        if status == INCOMPLETE:
            return count, begin, INCOMPLETE, where - begin
        if kind == END:
            for k in range(position, buffer.size):
                if load_u8(buffer, k) != 0:
                    return count, begin, AFTER_END, k
            if not ended and count == 0:
                begin = position + (buffer.size - position) // BLOCK * BLOCK - BLOCK
            return count, begin, OK, 0
        if kind == FILE:
            p_at, p_size, n_at, n_size = prefix_at, prefix_size, name_at, name_size
        position = after


@inlined
def _found(buffer: Bytes, at: int, stop: int, names: Bytes, ends: Ints) -> int:
    """Which of the names the extension is, in lower case; -1 for none."""
    for which in range(ends.size):
        begin = ends[which - 1] if which else 0
        if ends[which] - begin != stop - at:
            continue
        same = True
        for k in range(stop - at):
            byte = load_u8(buffer, at + k)
            if 65 <= byte <= 90:
                byte += 32
            if byte != load_u8(names, begin + k):
                same = False
                break
        if same:
            return which
    return -1


@inlined
def _check_locate(
    buffer: Bytes,
    starts: Ints,
    sizes: Ints,
    names: Bytes,
    ends: Ints,
    columns: Ints,
    content: IntsOut,
    lengths: IntsOut,
    key_ends: IntsOut,
) -> None:
    """Raise an error for arguments of `locate_members` that do not fit together."""
    rows = starts.size
    if sizes.size != rows or key_ends.size != rows or ends.size != columns.size or content.size != lengths.size:
        raise ValueError(
            "locate_members: starts, sizes and key_ends, names and columns, content and lengths must agree"
        )
    for which in range(columns.size):
        if columns[which] < 0 or (rows > 0 and columns[which] >= lengths.size // rows):
            raise ValueError("locate_members: there must be a place for each sample in each column")
    for which in range(columns.size):
        if ends[which] < (ends[which - 1] if which else 0) or ends[which] > names.size:
            raise ValueError("locate_members: ends must not decrease and stay within the names")
    for row in range(rows):
        if starts[row] < 0 or sizes[row] < 0 or sizes[row] > buffer.size or starts[row] > buffer.size - sizes[row]:
            raise ValueError("locate_members: samples must be within the buffer")


@kernel(locate_reference)
def locate_members(
    buffer: Bytes,
    starts: Ints,
    sizes: Ints,
    names: Bytes,
    ends: Ints,
    columns: Ints,
    strict: bool,
    content: IntsOut,
    lengths: IntsOut,
    keys: BytesOut,
    key_ends: IntsOut,
) -> tuple[int, int, int, int]:
    """See `locate_reference`."""
    _check_locate(buffer, starts, sizes, names, ends, columns, content, lengths, key_ends)
    rows = starts.size
    key_bytes = 0
    for row in range(rows):
        position, stop, named = starts[row], starts[row] + sizes[row], False
        while position < stop:
            status, _, kind, after, begin, size, prefix_at, prefix_size, name_at, name_size, end = member(
                buffer, position
            )
            if status != OK or kind == END:
                return row, (BAD_EXTENSION if status == OK else status), position, key_bytes
            if kind == FILE:
                if not named:
                    named = True
                    need = key_bytes + name_size + (prefix_size + 1 if prefix_size else 0)
                    if need > keys.size:
                        return row, NO_ROOM, need, key_bytes
                    if prefix_size:
                        copy_bytes(keys, key_bytes, buffer, prefix_at, prefix_size)
                        keys[key_bytes + prefix_size] = SLASH
                        key_bytes += prefix_size + 1
                    copy_bytes(keys, key_bytes, buffer, name_at, name_size)
                    key_bytes = need
                found = _found(buffer, name_at + name_size + 1, end, names, ends)
                if found < 0 and strict:
                    return row, UNKNOWN, position, key_bytes
                if found >= 0:
                    place = columns[found] * rows + row
                    if lengths[place] >= 0:
                        return row, TWICE, position, key_bytes
                    content[place] = begin
                    lengths[place] = size
            position = after
        key_ends[row] = key_bytes
    return rows, OK, 0, key_bytes
