# SPDX-License-Identifier: Apache-2.0
"""Collecting rows by group until a group fills its window."""

from __future__ import annotations

import numpy as np

from distinput.kernels.kernel import Ints, IntsOut, kernel


def fill_reference(
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


@kernel(fill_reference)
def fill_windows(
    groups: Ints, waiting: IntsOut, sizes: Ints, order: IntsOut, ends: IntsOut, completing: IntsOut
) -> int:
    """See `fill_reference`."""
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
