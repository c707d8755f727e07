# SPDX-License-Identifier: Apache-2.0
"""Random orders that are a function of a key and a position, so that any position can be reached directly.

**Buffered.** `buffer` slots initially hold rows 0 to buffer - 1. Step p emits the row in slot `pick(key, p, buffer)`
and puts row p + buffer there. When there is no such row (p >= total - buffer) the slots drain: of the m = total - p
rows left, the one in slot `pick(key, p, m)` is emitted, and the row of slot m - 1 moves there. So the row emitted at
step p is below p + buffer, and key, position, buffer and total determine the slots (`slots_at`).

`pick(key, p, n)` is the upper half of the product of n and `mix(key + p * STEP)`: a number from 0 to n - 1,
uniform to within n / 2**64; a remainder would favor the small ones by as much. `mix` is the
finaliser of SplitMix64 (Steele, Lea and Flood, 2014) and STEP its increment.

**Global.** `permute` is a permutation of 0 to n - 1 that needs no memory. Numbers are written as (left, right), left
below a and right below b, where b is a power of two near the root of n and a * b just above n; a round adds to one
half, modulo its size, a number drawn from the other half and the key (a Feistel network as Black and Rogaway
generalised it, 2002). A result not below n is permuted again until it is, which is seldom: about 1 in sqrt(n). Up to
`FEW` the permutation is drawn whole (Fisher and Yates), which makes all permutations equally likely.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from distinput.kernels.kernel import Bytes, BytesOut, Ints, IntsOut, Key, inlined, kernel
from distinput.kernels.machine import MASK, multiply_high, signed, will_load
from distinput.kernels.spans import LINE, all_below, copy_row

STEP = np.uint64(0x9E3779B97F4A7C15)
FEW = 256  # below, halves of three bits would make pairs of rows move together more often than by chance
ROUNDS = 6  # an even number, since the halves alternate
CHUNK = 256  # rows whose rounds are computed together, so that they stay in the L1 cache

STEPS_AHEAD = 16  # short rows that are prefetched before their steps: each is read and written anywhere in the buffer
ROWS_AHEAD = 4  # the same for longer ones, all of whose lines are prefetched, since they are written too
ROW_BYTES_AHEAD = 4096  # the most bytes of each of them
FAR = 1 << 20  # bytes; smaller buffers stay in the second-level cache

_C1, _C2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_30, _27, _31, _32 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_M1, _M2 = np.uint64(0x9E3779B1), np.uint64(0x85EBCA77)  # odd, with bits everywhere

Words = np.ndarray[Any, np.dtype[np.uint64]]


@inlined
def mix(word: np.uint64) -> np.uint64:
    """A pseudorandom number, different for each word."""
    word = (word ^ (word >> _30)) * _C1
    word = (word ^ (word >> _27)) * _C2
    return word ^ (word >> _31)


@inlined
def pick(key: Key, position: int, n: int) -> int:
    """The slot of step `position`, from 0 to n - 1."""
    return signed(multiply_high(mix(np.uint64(key) + np.uint64(position) * STEP), np.uint64(n)))


@inlined
def load_soon(data: BytesOut | IntsOut, start: int, count: int) -> None:
    """Prefetch `count` bytes that will be copied soon; any offset is allowed."""
    for at in range(start, start + count, LINE):
        will_load(data, at)


@inlined
def _steps_ahead(size: int, width: int) -> int:
    """How many steps before its own a row is prefetched in a buffer of so many bytes; 0: it need not be."""
    return 0 if size < FAR else STEPS_AHEAD if width <= LINE else ROWS_AHEAD


def picks_reference(key: int, positions: Ints, n: int) -> Ints:
    """`pick` for many positions, in NumPy."""
    words = mix_reference(np.uint64(key & MASK) + positions.astype(np.uint64) * STEP)
    # The upper half of the product, from products of halves.
    low, high = words & _LOW, words >> _32
    n_low, n_high = np.uint64(n & 0xFFFFFFFF), np.uint64(n >> 32)
    middle = high * n_low + (low * n_low >> _32)
    middle_low = (middle & _LOW) + low * n_high
    slots: Ints = (high * n_high + (middle >> _32) + (middle_low >> _32)).astype(np.int64)
    return slots


def mix_reference(words: Words) -> Words:
    """`mix` for many words, in NumPy."""
    words = (words ^ (words >> _30)) * _C1
    words = (words ^ (words >> _27)) * _C2
    return words ^ (words >> _31)


def steps_reference(slots: IntsOut, key: Key, position: int, incoming: Ints, out: IntsOut) -> None:
    """Steps `position`, `position + 1`, ... of the buffered shuffle while there is input: one per row of `incoming`.

    Args:
      slots: in and out; the contents of the buffer, which is full.
      key: determines the order.
      position: number of rows emitted before.
      incoming: the rows to insert: numbers of rows (from `position + buffer` on), or other values that represent rows.
      out: the emitted rows, as many as `incoming`.
    """
    if slots.size == 0 or position < 0 or incoming.size != out.size:
        raise ValueError("shuffle_steps: there must be a slot, and as much room in out as there are rows in incoming")
    picked = picks_reference(key, np.arange(position, position + out.size), slots.size)
    for step, slot in enumerate(picked):
        out[step] = slots[slot]
        slots[slot] = incoming[step]


@kernel(steps_reference)
def shuffle_steps(slots: IntsOut, key: Key, position: int, incoming: Ints, out: IntsOut) -> None:
    """See `steps_reference`."""
    if slots.size == 0 or position < 0 or incoming.size != out.size:
        raise ValueError("shuffle_steps: there must be a slot, and as much room in out as there are rows in incoming")
    ahead = _steps_ahead(slots.nbytes, 8)
    for step in range(out.size):
        if ahead > 0:
            load_soon(slots, 8 * pick(key, position + step + ahead, slots.size), 8)
        slot = pick(key, position + step, slots.size)
        out[step] = slots[slot]
        slots[slot] = incoming[step]


def exchange_reference(stored: BytesOut, key: Key, position: int, width: int, incoming: Bytes, out: BytesOut) -> None:
    """`shuffle_steps` for the rows themselves, of `width` bytes each, instead of numbers that represent them.

    Args:
      stored: in and out; as many rows as there are slots.
      key: determines the order.
      position: number of rows emitted before.
      width: bytes of a row, at least 1.
      incoming: the rows to insert.
      out: the emitted rows, as many as `incoming`.
    """
    slots = stored.size // width if width > 0 else 0
    if slots == 0 or position < 0 or stored.size != slots * width or incoming.size % width or out.size != incoming.size:
        raise ValueError(
            "exchange_rows: there must be a slot, whole rows, and as much room in out as there is incoming"
        )
    count = incoming.size // width
    picked = picks_reference(key, np.arange(position, position + count), slots)
    rows, given, sent = (each.reshape(-1, width) for each in (stored, incoming, out))
    for step, slot in enumerate(picked):
        sent[step] = rows[slot]
        rows[slot] = given[step]


@kernel(exchange_reference)
def exchange_rows(stored: BytesOut, key: Key, position: int, width: int, incoming: Bytes, out: BytesOut) -> None:
    """See `exchange_reference`."""
    slots = stored.size // width if width > 0 else 0
    if slots == 0 or position < 0 or stored.size != slots * width or incoming.size % width or out.size != incoming.size:
        raise ValueError(
            "exchange_rows: there must be a slot, whole rows, and as much room in out as there is incoming"
        )
    ahead = _steps_ahead(stored.size, width)
    for step in range(incoming.size // width):
        if ahead > 0:
            load_soon(stored, width * pick(key, position + step + ahead, slots), min(width, ROW_BYTES_AHEAD))
        at, slot = step * width, pick(key, position + step, slots) * width
        copy_row(out, at, stored, slot, width)
        copy_row(stored, slot, incoming, at, width)


def drain_reference(slots: IntsOut, key: Key, position: int, left: int, out: IntsOut) -> int:
    """Steps `position`, `position + 1`, ... of the buffered shuffle when there is no more input.

    Args:
      slots: in and out; the rows left are in the first `left` slots.
      key: determines the order.
      position: number of rows emitted before.
      left: number of rows left.
      out: the emitted rows.

    Returns:
      How many rows were emitted: as many as fit in `out`, or all that were left.
    """
    if position < 0 or not 0 <= left <= slots.size:
        raise ValueError("drain_steps: no more rows can be left than there are slots")
    count = min(left, out.size)
    for step in range(count):
        slot = int(picks_reference(key, np.array([position + step]), left - step)[0])
        out[step] = slots[slot]
        slots[slot] = slots[left - step - 1]
    return count


@kernel(drain_reference)
def drain_steps(slots: IntsOut, key: Key, position: int, left: int, out: IntsOut) -> int:
    """See `drain_reference`."""
    if position < 0 or left < 0 or left > slots.size:
        raise ValueError("drain_steps: no more rows can be left than there are slots")
    count = min(left, out.size)
    ahead = _steps_ahead(8 * left, 8)
    for step in range(count):
        if 0 < ahead < left - step:
            load_soon(slots, 8 * pick(key, position + step + ahead, left - step - ahead), 8)
        slot = pick(key, position + step, left - step)
        out[step] = slots[slot]
        slots[slot] = slots[left - step - 1]
    return count


@inlined
def _check_drain(stored: BytesOut, position: int, left: int, width: int, out: BytesOut) -> None:
    if (
        width < 1
        or position < 0
        or left < 0
        or left > stored.size // width
        or out.size % width
        or out.size // width > left
    ):
        raise ValueError("drain_rows: no more rows can be left than there are slots, and no more be sent than are left")


def drain_rows_reference(stored: BytesOut, key: Key, position: int, left: int, width: int, out: BytesOut) -> None:
    """`drain_steps` for the rows themselves, of `width` bytes each, instead of numbers that represent them.

    Args:
      stored: in and out; the rows left are in the first `left` slots.
      key: determines the order.
      position: number of rows emitted before.
      left: number of rows left.
      width: bytes of a row, at least 1.
      out: the emitted rows, at most `left`.
    """
    _check_drain(stored, position, left, width, out)
    count = out.size // width
    rows = stored[: left * width].reshape(left, width)
    for step, sent in enumerate(out.reshape(count, width)):
        slot = int(picks_reference(key, np.array([position + step]), left - step)[0])
        sent[:] = rows[slot]
        rows[slot] = rows[left - step - 1]


@kernel(drain_rows_reference)
def drain_rows(stored: BytesOut, key: Key, position: int, left: int, width: int, out: BytesOut) -> None:
    """See `drain_rows_reference`."""
    _check_drain(stored, position, left, width, out)
    ahead = _steps_ahead(left * width, width)
    for step in range(out.size // width):
        if 0 < ahead < left - step:
            start = width * pick(key, position + step + ahead, left - step - ahead)
            load_soon(stored, start, min(width, ROW_BYTES_AHEAD))
        slot, last = pick(key, position + step, left - step), left - step - 1
        copy_row(out, step * width, stored, slot * width, width)
        if slot != last:  # copied ranges must not overlap
            copy_row(stored, slot * width, stored, last * width, width)


def slots_reference(key: Key, position: int, total: int, slots: IntsOut) -> int:
    """The numbers of the rows that are in the buffer before step `position`.

    Found by walking back until each slot has occurred, about n * ln(n) steps for n slots, whatever the position.

    Args:
      key: determines the order.
      position: number of rows emitted before.
      total: the number of input rows; -1: unknown, but the input has at least position + buffer rows.
      slots: out; its size is that of the buffer. Empty slots are set to -1.

    Returns:
      The number of rows in the buffer, which are in the first slots.
    """
    if slots.size == 0 or position < 0 or total < -1 or (total >= 0 and position > total):
        raise ValueError("slots_at: there must be a slot, and the position may not be after the end")
    steady = position if total < 0 else min(position, max(0, total - slots.size))
    slots[:] = -1
    stop = steady
    while stop and np.any(slots < 0):
        start = max(0, stop - max(1024, slots.size))
        steps = np.arange(start, stop)
        latest = np.full(slots.size, -1)
        # Of several steps at the same slot the last one counts.
        np.maximum.at(latest, picks_reference(key, steps, slots.size), steps + slots.size)
        slots[:] = np.where(slots < 0, latest, slots)
        stop = start
    slots[:] = np.where(slots < 0, np.arange(slots.size), slots)
    if total < 0:
        return slots.size
    left = min(slots.size, total - steady)
    drain_reference(slots, key, steady, left, np.empty(position - steady, np.int64))
    left -= position - steady
    slots[left:] = -1
    return left


@kernel(slots_reference)
def slots_at(key: Key, position: int, total: int, slots: IntsOut) -> int:
    """See `slots_reference`."""
    if slots.size == 0 or position < 0 or total < -1 or (total >= 0 and position > total):
        raise ValueError("slots_at: there must be a slot, and the position may not be after the end")
    steady = position
    if total >= 0:
        steady = min(position, max(0, total - slots.size))
    slots[:] = -1
    unknown, step, ahead = slots.size, steady - 1, _steps_ahead(slots.nbytes, 8)
    while unknown > 0 and step >= 0:
        if ahead > 0:
            load_soon(slots, 8 * pick(key, max(0, step - ahead), slots.size), 8)
        slot = pick(key, step, slots.size)
        if slots[slot] < 0:
            slots[slot] = step + slots.size
            unknown -= 1
        step -= 1
    for slot in range(slots.size):
        if slots[slot] < 0:
            slots[slot] = slot
    if total < 0:
        return slots.size
    left = min(slots.size, total - steady)
    for step in range(steady, position):
        slots[pick(key, step, left)] = slots[left - 1]
        left -= 1
    slots[left:] = -1
    return left


def permute_reference(rows: Ints, key: Key, n: int, out: IntsOut) -> None:
    """Apply a random permutation of 0 to n - 1 to each row; it is different for each key.

    Args:
      rows: numbers from 0 to n - 1.
      key: determines the order.
      n: the size of the permutation, at most 2**62.
      out: the permuted rows, as many as `rows`.
    """
    if n < 0 or n > 1 << 62 or out.size != rows.size or np.any((rows < 0) | (rows >= n)):
        raise ValueError("permute: rows must be from 0 to n - 1, n at most 2**62, out of the same size")
    if n <= FEW:
        order = np.arange(n)
        for last in range(n - 1, 0, -1):
            other = int(picks_reference(key, np.array([last]), last + 1)[0])
            order[last], order[other] = order[other], order[last]
        out[:] = order[rows]
        return
    bits = int(n - 1).bit_length() // 2
    keys = mix_reference(np.uint64(key & MASK) + np.arange(ROUNDS, dtype=np.uint64) * STEP)
    out[:] = _rounds_reference(rows, keys, n, bits)
    while np.any(walking := out >= n):
        out[walking] = _rounds_reference(out[walking], keys, n, bits)


def _rounds_reference(rows: Ints, keys: Words, n: int, bits: int) -> Ints:
    """The permutation of 0 to a * b - 1, where b is 2**bits and a is the least number with a * b >= n."""
    a, b = np.uint64(-(-n >> bits)), np.uint64(1 << bits)
    left, right = (each.astype(np.uint64) for each in np.divmod(rows, 1 << bits))
    for even, odd in keys.reshape(-1, 2):
        left = (left + (_drawn_reference(right, even) * a >> _32)) % a
        right = (right + _drawn_reference(left, odd)) % b
    return (left * b + right).astype(np.int64)


def _drawn_reference(half: Words, key: np.uint64) -> Words:
    """32-bit pseudorandom numbers derived from halves and a key."""
    product = ((half ^ key) & _LOW) * _M1
    product = ((product ^ (product >> _32) ^ (key >> _32)) & _LOW) * _M2
    return (product ^ (product >> _32)) & _LOW


@inlined
def _draw_order(key: Key, order: IntsOut) -> None:
    """Fill `order` with a random order of 0 to n - 1; all orders are equally likely."""
    for i in range(order.size):
        order[i] = i
    for last in range(order.size - 1, 0, -1):
        other = pick(key, last, last + 1)
        held = order[last]
        order[last] = order[other]
        order[other] = held


@inlined
def _drawn(half: np.uint64, key: np.uint64) -> np.uint64:
    """A 32-bit pseudorandom number from a half and a key; wider products are missing or slow in vector code."""
    product = ((half ^ key) & _LOW) * _M1
    product = ((product ^ (product >> _32) ^ (key >> _32)) & _LOW) * _M2
    return (product ^ (product >> _32)) & _LOW


@inlined
def _two_rounds(
    left: np.uint64, right: np.uint64, even: np.uint64, odd: np.uint64, a: np.uint64, low: np.uint64
) -> tuple[np.uint64, np.uint64]:
    """A round for each half."""
    left = left + ((_drawn(right, even) * (a & _LOW)) >> _32)
    left = min(left, left - a)  # where left is below a, the difference wraps to a huge number
    return left, (right + _drawn(left, odd)) & low


@inlined
def _rounds(words: IntsOut, start: np.uint64, stop: np.uint64, key: Key, a: np.uint64, bits: np.uint64) -> None:
    """The permutation of 0 to a * b - 1, where b is 2**bits, of each of the words from `start` to before `stop`."""
    low = (np.uint64(1) << bits) - np.uint64(1)
    for number in range(0, ROUNDS, 2):
        even, odd = _round_key(key, number), _round_key(key, number + 1)
        # Two rounds of all words at a time, since the rounds of one word depend on each other.
        for i in range(start, stop):
            word = np.uint64(words[i])
            left, right = _two_rounds(word >> bits, word & low, even, odd, a, low)
            words[i] = signed((left << bits) + right)


@inlined
def _round_key(key: Key, number: int) -> np.uint64:
    return mix(np.uint64(key) + np.uint64(number) * STEP)


@inlined
def _walk(rows: Ints, key: Key, n: int, out: IntsOut) -> None:
    """The permutation of 0 to n - 1, for n above `FEW`."""
    bits = np.uint64(0)
    while np.uint64(n - 1) >> (bits + bits + np.uint64(1)) != np.uint64(0):  # half the bits of n - 1
        bits += np.uint64(1)
    a = (np.uint64(n - 1) >> bits) + np.uint64(1)
    for begin in range(0, rows.size, CHUNK):
        # Unsigned indices cannot count from the end, which would prevent vectorization of the loops.
        start, stop = np.uint64(begin), np.uint64(min(begin + CHUNK, rows.size))
        for i in range(start, stop):
            out[i] = rows[i]
        _rounds(out, start, stop, key, a, bits)
        for i in range(start, stop):
            while out[i] >= n:
                _rounds(out, np.uint64(i), np.uint64(i) + np.uint64(1), key, a, bits)


@kernel(permute_reference)
def permute(rows: Ints, key: Key, n: int, out: IntsOut) -> None:
    """See `permute_reference`."""
    if n < 0 or n > 1 << 62 or out.size != rows.size or not all_below(rows, n):
        raise ValueError("permute: rows must be from 0 to n - 1, n at most 2**62, out of the same size")
    if n <= FEW:
        order = np.empty(n, np.int64)
        _draw_order(key, order)
        for i in range(rows.size):
            out[i] = order[rows[i]]
        return
    _walk(rows, key, n, out)
