# SPDX-License-Identifier: Apache-2.0
"""Packing sequences into rows of one length, and into batches of a limited number of tokens; and filling windows by group."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from distinput.kernels.kernel import Bytes, BytesOut, Int32sOut, Ints, IntsOut, inlined, kernel
from distinput.kernels.machine import trailing_zeros
from distinput.kernels.spans import fill_items, is_one_byte

if TYPE_CHECKING:
    import numpy.typing as npt

    Words = npt.NDArray[np.uint64]


# ----------------------------------------------------------------------------
# Packing sequences of different lengths into rows of one length: which row takes which sequence, and the numbers beside
# them.
#
# Source: first fit and best fit over items in descending order (Johnson, Demers, Ullman, Garey, Graham: Worst-case
# performance bounds for simple one-dimensional packing algorithms, SIAM Journal on Computing 3, 1974).
# ----------------------------------------------------------------------------


def plan_reference(sizes: Ints, length: int, best: bool, order: IntsOut, bounds: IntsOut) -> int:
    """Deal sequences to rows of `length`, the longest first, and those of one length in their order.

    Each goes into a row that has room for it, or else into a new one. First fit takes the first such row; best fit the one
    with the least room, and among several the one that got a sequence last. Rows are then put in the order of the first
    sequence that each of them holds.

    Args:
      sizes: [n], from 1 to `length`.
      length: tokens in a row, at least 1.
      best: best fit, else first fit.
      order: [n]; out: the sequences of the first row, then those of the second, and so on; in each row in their order.
      bounds: [n + 1]; out: where in `order` each row begins, and where the last one ends.

    Returns:
      The number r of rows; r + 1 items of `bounds` were written.
    """
    n = sizes.size
    if length < 1 or order.size != n or bounds.size != n + 1 or np.any(sizes < 1) or np.any(sizes > length):
        raise ValueError("plan_rows: sizes must be from 1 to the length of a row, order [n], bounds [n + 1]")
    rooms: list[int] = []
    last: list[int] = []  # when each row got a sequence
    rows: list[list[int]] = []
    for turn, sequence in enumerate(np.argsort(-sizes, kind="stable").tolist()):
        size = int(sizes[sequence])
        fitting = [row for row, room in enumerate(rooms) if room >= size]
        if not fitting:
            fitting = [len(rows)]
            rooms.append(length)
            last.append(turn)
            rows.append([])
        row = min(fitting, key=lambda row: (rooms[row], -last[row])) if best else fitting[0]
        rooms[row] -= size
        last[row] = turn
        rows[row].append(sequence)
    rows = sorted(map(sorted, rows))
    order[:] = [sequence for row in rows for sequence in row]
    bounds[: len(rows) + 1] = np.cumsum([0, *map(len, rows)])
    return len(rows)


@inlined
def _best_fit(
    sizes: Ints,
    length: int,
    order: Ints,
    row_of: IntsOut,
    tops: IntsOut,
    below: IntsOut,
    words: Words,
    summary: Words,
) -> int:
    """The row of each sequence, dealt in this order, each into the row with the least room that suffices; and how many rows.

    Rows are found by their room: `tops` and `below` are a stack of rows for each room, `words` has a bit for each stack that is
    not empty, and `summary` one for each word that is not 0.
    """
    rows = 0
    one, full = np.uint64(1), ~np.uint64(0)
    for sequence in order:
        size = sizes[sequence]
        at = size // 64
        found = words[at] & (full << np.uint64(size % 64))
        if found == 0:
            group, shift = (at + 1) // 64, np.uint64((at + 1) % 64)
            mask = full << shift
            while found == 0 and group < summary.size:
                groups = summary[group] & mask
                if groups != 0:
                    at = group * 64 + trailing_zeros(groups)
                    found = words[at]
                group, mask = group + 1, full
        if found == 0:
            row, room = rows, length
            rows += 1
        else:
            room = at * 64 + trailing_zeros(found)
            row = tops[room]
            tops[room] = below[row]
            if tops[room] < 0:
                words[at] &= ~(one << np.uint64(room % 64))
                if words[at] == 0:
                    summary[at // 64] &= ~(one << np.uint64(at % 64))
        row_of[sequence] = row
        room -= size
        below[row] = tops[room]
        tops[room] = row
        words[room // 64] |= one << np.uint64(room % 64)
        summary[room // 64 // 64] |= one << np.uint64(room // 64 % 64)
    return rows


@inlined
def _first_fit(sizes: Ints, order: Ints, row_of: IntsOut, most: IntsOut) -> int:
    """The row of each sequence, dealt in this order, each into the first row with room; and how many rows.

    `most` is a tree over the rows: each node, from number 1 on, knows the most room below it.
    """
    rows = 0
    leaves = most.size // 2
    for sequence in order:
        size = sizes[sequence]
        node = 1
        while node < leaves:
            node *= 2
            if most[node] < size:
                node += 1
        row_of[sequence] = node - leaves
        rows = max(rows, node - leaves + 1)
        most[node] -= size
        while node > 1:
            node //= 2
            most[node] = max(most[2 * node], most[2 * node + 1])
    return rows


@kernel(plan_reference)
def plan_rows(sizes: Ints, length: int, best: bool, order: IntsOut, bounds: IntsOut) -> int:
    """See `plan_reference`."""
    n = sizes.size
    wrong = length < 1 or order.size != n or bounds.size != n + 1
    for each in sizes:
        wrong |= each < 1 or each > length
    if wrong:
        raise ValueError("plan_rows: sizes must be from 1 to the length of a row, order [n], bounds [n + 1]")
    longest = 0
    for each in sizes:
        longest = max(longest, each)
    # The longest first: a counting sort, with `order` as its room.
    starts = np.zeros(longest + 2, np.int64)
    for each in sizes:
        starts[longest - each + 1] += 1
    for k in range(longest + 1):
        starts[k + 1] += starts[k]
    for i in range(n):
        place = longest - sizes[i]
        order[starts[place]] = i
        starts[place] += 1
    row_of = np.empty(n, np.int64)
    if best:
        words = np.zeros(length // 64 + 1, np.uint64)
        summary = np.zeros(words.size // 64 + 1, np.uint64)
        tops, below = np.full(length + 1, -1, np.int64), np.empty(n, np.int64)
        rows = _best_fit(sizes, length, order, row_of, tops, below, words, summary)
    else:
        leaves = 1
        while leaves < n:
            leaves *= 2
        rows = _first_fit(sizes, order, row_of, np.full(2 * leaves, length, np.int64))
    # Rows in the order of their first sequences, and the sequences of each in their order.
    number = np.full(n + 1, -1, np.int64)
    for row in range(rows + 1):
        bounds[row] = 0
    named = 0
    for i in range(n):
        row = row_of[i]
        if number[row] < 0:
            number[row] = named
            named += 1
        row_of[i] = number[row]
        bounds[row_of[i] + 1] += 1
    for row in range(rows):
        bounds[row + 1] += bounds[row]
        number[row] = bounds[row]
    for i in range(n):
        row = row_of[i]
        order[number[row]] = i
        number[row] += 1
    return rows


def number_reference(
    sizes: Ints, bounds: Ints, length: int, starts: IntsOut, segments: Int32sOut, positions: Int32sOut
) -> None:
    """Number the tokens of packed rows: by their sequence in the row, from 1, and by their place in it, from 0.

    What no sequence fills at the end of a row has segment 0 and position 0.

    Args:
      sizes: [n], the lengths of the sequences, row after row; not negative.
      bounds: [r + 1], from 0 to n: the sequences of each row.
      length: tokens in a row, fewer than 2**31; the sequences of a row fit into it.
      starts: [n]; out: the place of each sequence's first token among all tokens of all rows.
      segments: [r * length]; out.
      positions: [r * length]; out.
    """
    n, r = sizes.size, bounds.size - 1
    if r < 0 or not 1 <= length < 1 << 31 or starts.size != n or segments.size != positions.size:
        raise ValueError(
            "number_rows: rows of 1 to 2**31 - 1 tokens, a start for each sequence, two numbers for each token"
        )
    if segments.size != r * length or bounds[0] != 0 or bounds[-1] != n or np.any(np.diff(bounds) < 0):
        raise ValueError("number_rows: bounds must ascend from 0 to the number of sequences, one row after the other")
    if np.any(sizes < 0) or np.any(sizes > length):
        raise ValueError("number_rows: the sequences of a row must fit into it")
    segments[:] = 0
    positions[:] = 0
    for row in range(r):
        place, end = row * length, (row + 1) * length
        for segment, i in enumerate(range(bounds[row], bounds[row + 1])):
            size = int(sizes[i])
            if size > end - place:
                raise ValueError("number_rows: the sequences of a row must fit into it")
            starts[i] = place
            segments[place : place + size] = segment + 1
            positions[place : place + size] = np.arange(size)
            place += size


@kernel(number_reference)
def number_rows(
    sizes: Ints, bounds: Ints, length: int, starts: IntsOut, segments: Int32sOut, positions: Int32sOut
) -> None:
    """See `number_reference`."""
    n, r = sizes.size, bounds.size - 1
    if r < 0 or length < 1 or length >= 1 << 31 or starts.size != n or segments.size != positions.size:
        raise ValueError(
            "number_rows: rows of 1 to 2**31 - 1 tokens, a start for each sequence, two numbers for each token"
        )
    wrong = segments.size != r * length or bounds[0] != 0 or bounds[r] != n
    for row in range(r):
        wrong |= bounds[row + 1] < bounds[row]
    if wrong:
        raise ValueError("number_rows: bounds must ascend from 0 to the number of sequences, one row after the other")
    for each in sizes:
        if each < 0 or each > length:
            raise ValueError("number_rows: the sequences of a row must fit into it")
    for row in range(r):
        left = length
        for i in range(bounds[row], bounds[row + 1]):
            if sizes[i] > left:
                raise ValueError("number_rows: the sequences of a row must fit into it")
            left -= sizes[i]
    for row in range(r):
        place, end = row * length, (row + 1) * length
        for i in range(bounds[row], bounds[row + 1]):
            starts[i] = place
            segment = np.int32(i - bounds[row] + 1)
            for k in range(sizes[i]):
                segments[place + k] = segment
                positions[place + k] = np.int32(k)
            place += sizes[i]
        for k in range(place, end):
            segments[k] = 0
            positions[k] = 0


def fill_spans_reference(starts: Ints, ends: Ints, fill: Bytes, out: BytesOut) -> None:
    """Write `fill` over items starts[i] to ends[i] of `out`, for each i.

    Args:
      starts: [n], in items.
      ends: [n], in items.
      fill: one item as bytes, at least one.
      out: items as bytes.
    """
    item = fill.size
    if item == 0 or starts.size != ends.size or out.size % max(1, item):
        raise ValueError("fill_spans: an end for each start, and whole items")
    if np.any(starts < 0) or np.any(ends < starts) or np.any(ends > out.size // item):
        raise ValueError("fill_spans: each span must be within out")
    items = out.reshape(-1, item)
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        items[start:end] = fill


@kernel(fill_spans_reference)
def fill_spans(starts: Ints, ends: Ints, fill: Bytes, out: BytesOut) -> None:
    """See `fill_spans_reference`."""
    item = fill.size
    if item == 0 or starts.size != ends.size or out.size % max(1, item) != 0:
        raise ValueError("fill_spans: an end for each start, and whole items")
    items = out.size // item
    for i in range(starts.size):
        if starts[i] < 0 or ends[i] < starts[i] or ends[i] > items:
            raise ValueError("fill_spans: each span must be within out")
    same = is_one_byte(fill)
    for i in range(starts.size):
        fill_items(out, starts[i] * item, ends[i] * item, fill, same)


# ----------------------------------------------------------------------------
# Consecutive sequences in batches of a limited number of tokens.
# ----------------------------------------------------------------------------


def cut_reference(
    sizes: Ints, rows: int, tokens: int, most: int, most_rows: int, padded: bool, ends: IntsOut
) -> tuple[int, int, int]:
    """Put sequences into batches in order: a batch ends before the sequence with which it would have too many tokens or rows.

    A batch has as many tokens as its sequences together; if `padded`, as many as its rows times the longest of them. A
    sequence that has too many tokens itself is a batch of its own.

    Args:
      sizes: [n], not negative, at most 2**31.
      rows: sequences in the batch that is begun, fewer than 2**31.
      tokens: of these together; if `padded`, of the longest.
      most: tokens of a batch, at least 1.
      most_rows: sequences of a batch, at least 1.
      padded: whether the sequences of a batch are padded to the longest.
      ends: [n]; out: for each batch that ends, the number of sequences before its end.

    Returns:
      How many batches ended, and `rows` and `tokens` of the batch that is begun then.
    """
    if ends.size != sizes.size or min(rows, tokens) < 0 or min(most, most_rows) < 1 or max(rows, tokens) >= 1 << 31:
        raise ValueError("cut_by_tokens: an end for each sequence, numbers from 0 to below 2**31, limits of at least 1")
    if any(size < 0 or size > 1 << 31 for size in sizes.tolist()):
        raise ValueError("cut_by_tokens: sizes must be from 0 to 2**31")
    ended = 0
    for i, size in enumerate(sizes.tolist()):
        whole = (rows + 1) * max(tokens, size) if padded else tokens + size
        if rows and (whole > most or rows == most_rows):
            ends[ended] = i
            ended += 1
            rows = tokens = 0
        rows += 1
        tokens = max(tokens, size) if padded else tokens + size
    return ended, rows, tokens


@kernel(cut_reference)
def cut_by_tokens(
    sizes: Ints, rows: int, tokens: int, most: int, most_rows: int, padded: bool, ends: IntsOut
) -> tuple[int, int, int]:
    """See `cut_reference`."""
    limit = 1 << 31
    if ends.size != sizes.size or min(rows, tokens) < 0 or min(most, most_rows) < 1 or max(rows, tokens) >= limit:
        raise ValueError("cut_by_tokens: an end for each sequence, numbers from 0 to below 2**31, limits of at least 1")
    for size in sizes:
        if size < 0 or size > limit:
            raise ValueError("cut_by_tokens: sizes must be from 0 to 2**31")
    ended = 0
    for i in range(sizes.size):
        size = sizes[i]
        whole = (rows + 1) * max(tokens, size) if padded else tokens + size
        if rows > 0 and (whole > most or rows == most_rows):
            ends[ended] = i
            ended += 1
            rows, tokens = 0, 0
        rows += 1
        tokens = max(tokens, size) if padded else tokens + size
    return ended, rows, tokens


# ----------------------------------------------------------------------------
# Collecting rows by group until a group fills its window.
# ----------------------------------------------------------------------------


def fill_windows_reference(
    groups: Ints, waiting: IntsOut, sizes: Ints, order: IntsOut, ends: IntsOut, completing: IntsOut
) -> int:
    """Add rows to their groups in order; a group that reaches its size is complete and starts over without rows.

    Args:
      groups: [n], the group of each row, from 0 to g - 1.
      waiting: [g], in and out; number of waiting rows in each group, fewer than its size.
      sizes: [g], number of rows of a complete group, at least 1.
      order: [n]; out: all rows, first those of the first complete group, then those of the second, and so on, then the
        waiting rows, by group. Each of these parts is ascending.
      ends: [n + g]; out: the end of each part in `order`. Rows that were waiting before are in no part.
      completing: [n]; out: the row that completed each complete group.

    Returns:
      The number m of completed groups; m items of `completing` and m + g of `ends` were written.
    """
    n, g = groups.size, sizes.size
    if waiting.size != g or order.size != n or ends.size != n + g or completing.size != n:
        raise ValueError(
            "fill_windows: order and completing must have an item for each row, ends for each group as well"
        )
    if np.any(sizes < 1) or np.any(waiting < 0) or np.any(waiting >= sizes):
        raise ValueError("fill_windows: sizes must be at least 1, and fewer rows wait in each group")
    if np.any(groups < 0) or np.any(groups >= g):
        raise ValueError("fill_windows: groups must be from 0 to g - 1")
    parts: list[list[int]] = []
    open_parts: list[list[int]] = [[] for _ in range(g)]
    for row, group in enumerate(groups.tolist()):
        open_parts[group].append(row)
        waiting[group] += 1
        if waiting[group] == sizes[group]:
            completing[len(parts)] = row
            parts.append(open_parts[group])
            open_parts[group], waiting[group] = [], 0
    complete = len(parts)
    parts += open_parts
    order[:] = np.array([row for part in parts for row in part], np.int64)
    ends[: len(parts)] = np.cumsum(np.array([len(part) for part in parts], np.int64))
    return complete


@kernel(fill_windows_reference)
def fill_windows(
    groups: Ints, waiting: IntsOut, sizes: Ints, order: IntsOut, ends: IntsOut, completing: IntsOut
) -> int:
    """See `fill_windows_reference`."""
    n, g = groups.size, sizes.size
    if waiting.size != g or order.size != n or ends.size != n + g or completing.size != n:
        raise ValueError(
            "fill_windows: order and completing must have an item for each row, ends for each group as well"
        )
    for i in range(g):
        if sizes[i] < 1 or waiting[i] < 0 or waiting[i] >= sizes[i]:
            raise ValueError("fill_windows: sizes must be at least 1, and fewer rows wait in each group")
    for each in groups:
        if each < 0 or each >= g:
            raise ValueError("fill_windows: groups must be from 0 to g - 1")
    # The first row of a part draws a ticket; the position of the part is known when the part ends.
    ticket_of = np.empty(n, np.int64)
    rows_of = np.zeros(n, np.int64)
    place_of = np.empty(n, np.int64)
    current = np.full(g, -1, np.int64)
    tickets, complete = 0, 0
    for row in range(n):
        group = groups[row]
        if current[group] < 0:
            current[group] = tickets
            tickets += 1
        ticket = current[group]
        ticket_of[row] = ticket
        rows_of[ticket] += 1
        waiting[group] += 1
        if waiting[group] == sizes[group]:
            place_of[ticket] = complete
            completing[complete] = row
            complete += 1
            current[group], waiting[group] = -1, 0
    parts = complete + g
    for place in range(parts):
        ends[place] = 0
    for group in range(g):
        if current[group] >= 0:
            place_of[current[group]] = complete + group
    for ticket in range(tickets):
        ends[place_of[ticket]] = rows_of[ticket]
    total = 0
    for place in range(parts):  # the start of each part for now; below each row advances it by one
        rows = ends[place]
        ends[place] = total
        total += rows
    for row in range(n):
        place = place_of[ticket_of[row]]
        order[ends[place]] = row
        ends[place] += 1
    return complete
