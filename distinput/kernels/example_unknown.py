# SPDX-License-Identifier: Apache-2.0
"""Finding the first `tf.train.Example` message that has a feature of a key that is not among known ones."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from distinput.kernels.example import map_entry
from distinput.kernels.example_keys import find_key, make_table, table_size
from distinput.kernels.example_values import MALFORMED, OK, check_messages, not_offsets, outside
from distinput.kernels.kernel import Bytes, Ints, kernel
from distinput.kernels.protobuf import FIRST, MalformedError, field, read_fields

__all__ = ["UNKNOWN", "unknown_key"]

UNKNOWN = 16
"""A message has another key."""


def unknown_key_reference(
    data: Bytes, starts: Ints, lengths: Ints, first: int, keys: Bytes, key_offsets: Ints
) -> tuple[int, int]:
    """Find the first message with a feature whose key is not among those that are known.

    Args:
      data: the bytes that contain the messages.
      starts: [n] start of each message.
      lengths: [n] length of each message in bytes.
      first: the message to begin with.
      keys: the k known keys, concatenated, without duplicates.
      key_offsets: [k + 1] start and end of each key.

    Returns:
      `OK` and -1 if there is none; `UNKNOWN`, or `MALFORMED`, and the number of the message.
    """
    check_messages(data, starts, lengths)
    _check(starts, first, keys, key_offsets)
    known = {keys[a:b].tobytes() for a, b in pairwise(key_offsets.tolist())}
    for i in range(first, starts.size):
        message = data[starts[i] : starts[i] + lengths[i]].tobytes()
        try:
            for tag, start, stop in read_fields(message):
                for entry_tag, entry_start, entry_stop in read_fields(message[:stop], start) if tag == FIRST else ():
                    if entry_tag != FIRST:
                        continue
                    key = b""
                    for part_tag, part_start, part_stop in read_fields(message[:entry_stop], entry_start):
                        if part_tag == FIRST:
                            key = message[part_start:part_stop]
                    if key not in known:
                        return UNKNOWN, i
        except MalformedError:
            return MALFORMED, i
    return OK, -1


def _check(starts: Ints, first: int, keys: Bytes, key_offsets: Ints) -> None:
    if not 0 <= first <= starts.size:
        raise ValueError("unknown_key: first must be one of the messages")
    if key_offsets.size == 0 or key_offsets[0] < 0 or key_offsets[-1] > keys.size:
        raise ValueError("unknown_key: key_offsets must not decrease, and must stay within the keys")
    if np.any(key_offsets[1:] < key_offsets[:-1]):
        raise ValueError("unknown_key: key_offsets must not decrease, and must stay within the keys")


@kernel(unknown_key_reference)
def unknown_key(
    data: Bytes, starts: Ints, lengths: Ints, first: int, keys: Bytes, key_offsets: Ints
) -> tuple[int, int]:
    """See `unknown_key_reference`."""
    if starts.size != lengths.size:
        raise ValueError("example: starts and lengths must have an item for each message")
    if outside(data, starts, lengths):
        raise ValueError("example: each message must be within the data")
    if first < 0 or first > starts.size:
        raise ValueError("unknown_key: first must be one of the messages")
    if key_offsets.size == 0 or not_offsets(key_offsets, keys.size):
        raise ValueError("unknown_key: key_offsets must not decrease, and must stay within the keys")
    k = key_offsets.size - 1
    table, ends = np.empty(table_size(k), np.int64), np.empty((k, 2), np.uint64)
    make_table(keys, key_offsets, ends, table)
    for i in range(first, starts.size):
        at, stop = starts[i], starts[i] + lengths[i]
        while at < stop:
            tag, inner, at = field(data, at, stop)
            if at < 0:
                return MALFORMED, i
            while tag == FIRST and inner < at:
                entry_tag, content, inner = field(data, inner, at)
                if inner < 0:
                    return MALFORMED, i
                if entry_tag != FIRST:
                    continue
                key_start, key_stop, _, _, values = map_entry(data, content, inner)
                if values < 0:
                    return MALFORMED, i
                if find_key(data, key_start, key_stop, keys, key_offsets, ends, table) < 0:
                    return UNKNOWN, i
    return OK, -1
