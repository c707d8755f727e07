# SPDX-License-Identifier: Apache-2.0
"""The members of tar archives: their headers, and how a name is split into a key and an extension.

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

from typing import NamedTuple

from distinput.kernels.kernel import Bytes

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
        return _member(buffer, *_headers(buffer, at))
    except _Fault as fault:
        return Member(*fault.args)


def _headers(buffer: Bytes, at: int) -> tuple[int, bytes, bytes | None, int | None]:
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


def _member(buffer: Bytes, at: int, header: bytes, name: bytes | None, size: int | None) -> Member:
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


def _whole_blocks(size: int) -> int:
    return -(-size // BLOCK) * BLOCK
