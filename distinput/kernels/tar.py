# SPDX-License-Identifier: Apache-2.0
"""Samples in tar archives: consecutive files whose names differ in their extensions only."""

from __future__ import annotations

import numpy as np

from distinput.kernels.kernel import Bytes, BytesOut, Ints, IntsOut, inlined, kernel
from distinput.kernels.machine import copy_bytes, load_u8
from distinput.kernels.tar_header import (
    AFTER_END,
    BAD_EXTENSION,
    BLOCK,
    END,
    FILE,
    INCOMPLETE,
    NO_ROOM,
    OK,
    SLASH,
    TWICE,
    UNKNOWN,
    read_member,
)
from distinput.kernels.tar_member import key_byte, member


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
    rows, wide = starts.size, columns.size
    if sizes.size != rows or key_ends.size != rows or ends.size != wide or content.size != lengths.size:
        raise ValueError(
            "locate_members: starts, sizes and key_ends, names and columns, content and lengths must agree"
        )
    if np.any(columns < 0) or (rows and np.any(columns >= lengths.size // rows)):
        raise ValueError("locate_members: there must be a place for each sample in each column")
    if np.any(np.diff(ends, prepend=0) < 0) or (wide and ends[-1] > names.size):
        raise ValueError("locate_members: ends must not decrease and stay within the names")
    if np.any(starts < 0) or np.any(sizes < 0) or np.any(sizes > buffer.size) or np.any(starts > buffer.size - sizes):
        raise ValueError("locate_members: samples must be within the buffer")
    texts = [names[a:b].tobytes() for a, b in zip([0, *ends.tolist()[:-1]], ends.tolist(), strict=True)] if wide else []
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
def _check_names(names: Bytes, ends: Ints, columns: Ints, places: int, rows: int) -> None:
    for which in range(columns.size):
        if columns[which] < 0 or (rows > 0 and columns[which] >= places // rows):
            raise ValueError("locate_members: there must be a place for each sample in each column")
    for which in range(columns.size):
        if ends[which] < (ends[which - 1] if which else 0) or ends[which] > names.size:
            raise ValueError("locate_members: ends must not decrease and stay within the names")


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
    rows = starts.size
    if sizes.size != rows or key_ends.size != rows or ends.size != columns.size or content.size != lengths.size:
        raise ValueError(
            "locate_members: starts, sizes and key_ends, names and columns, content and lengths must agree"
        )
    _check_names(names, ends, columns, lengths.size, rows)
    for row in range(rows):
        if starts[row] < 0 or sizes[row] < 0 or sizes[row] > buffer.size or starts[row] > buffer.size - sizes[row]:
            raise ValueError("locate_members: samples must be within the buffer")
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
