# SPDX-License-Identifier: Apache-2.0
"""Dealing rows by their cost: equally many to each owner, and as equally dear as can be had quickly."""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np

from distinput.kernels.kernel import Ints, IntsOut, inlined, kernel

MOST = 1 << 60
EXCHANGES = 200


def deal_reference(costs: Ints, loads: IntsOut, owners: IntsOut) -> None:
    """Assign each row to an owner; the numbers of their rows differ by at most one, the first ones have more.

    The dearest row first, to the owner with the least load that has room. Then up to `EXCHANGES` times two rows change places
    between the owners with the most and the least load: those that bring their loads closest to each other. Of several owners
    or rows, the first is meant.

    Args:
      costs: [n], not negative, at most 2**60 in total.
      loads: [r], all 0; out: the sum of each owner's costs.
      owners: [n]; out: the owner of each row.
    """
    n, r = costs.size, loads.size
    wrong = r == 0 or owners.size != n or np.any(costs < 0) or np.any(loads != 0)
    if wrong or sum(costs.tolist()) > MOST:
        raise ValueError("deal_evenly: an owner for each row, costs from 0 to 2**60 in all, loads that are all 0")
    room = [n // r + (owner < n % r) for owner in range(r)]
    heap = [(0, owner) for owner in range(r) if room[owner]]
    for row in np.argsort(-costs, kind="stable").tolist():
        load, owner = heappop(heap)
        owners[row] = owner
        loads[owner] += costs[row]
        room[owner] -= 1
        if room[owner]:
            heappush(heap, (load + int(costs[row]), owner))
    for _ in range(EXCHANGES):
        high, low = int(loads.argmax()), int(loads.argmin())
        gap = loads[high] - loads[low]
        givers, takers = np.flatnonzero(owners == high), np.flatnonzero(owners == low)
        gains = costs[givers][:, None] - costs[takers][None, :]
        after = np.where(gains > 0, abs(gap - 2 * gains), gap)
        if not after.size or after.min() >= gap:
            return
        i, j = np.unravel_index(after.argmin(), after.shape)
        owners[givers[i]], owners[takers[j]] = low, high
        loads[high] -= gains[i, j]
        loads[low] += gains[i, j]


@inlined
def _sink(heap: IntsOut, size: int, owner: int, loads: Ints) -> None:
    """Put an owner in the place of the first one, and let it sink to its place: owners with less load are above."""
    slot = 0
    while True:
        child = 2 * slot + 1
        if child >= size:
            break
        if child + 1 < size:
            a, b = heap[child], heap[child + 1]
            if loads[b] < loads[a] or (loads[b] == loads[a] and b < a):
                child += 1
        other = heap[child]
        if loads[owner] < loads[other] or (loads[owner] == loads[other] and owner < other):
            break
        heap[slot] = other
        slot = child
    heap[slot] = owner


@inlined
def _extremes(loads: Ints) -> tuple[int, int]:
    """The first owners with the most and the least load."""
    high, low = 0, 0
    for owner in range(loads.size):
        if loads[owner] > loads[high]:
            high = owner
        if loads[owner] < loads[low]:
            low = owner
    return high, low


@inlined
def _exchange(costs: Ints, loads: IntsOut, owners: IntsOut, givers: IntsOut, takers: IntsOut) -> bool:
    """Exchange two rows between the owners with the most and the least load; False if that does not help."""
    high, low = _extremes(loads)
    gap = loads[high] - loads[low]
    given, taken = 0, 0
    for row in range(costs.size):
        if owners[row] == high:
            givers[given] = row
            given += 1
        if owners[row] == low:
            takers[taken] = row
            taken += 1
    best, giver, taker = gap, -1, -1
    for i in range(given):
        for j in range(taken):
            gain = costs[givers[i]] - costs[takers[j]]
            if gain > 0 and abs(gap - 2 * gain) < best:
                best, giver, taker = abs(gap - 2 * gain), givers[i], takers[j]
    if giver < 0:
        return False
    gain = costs[giver] - costs[taker]
    owners[giver], owners[taker] = low, high
    loads[high] -= gain
    loads[low] += gain
    return True


@kernel(deal_reference)
def deal_evenly(costs: Ints, loads: IntsOut, owners: IntsOut) -> None:
    """See `deal_reference`."""
    n, r = costs.size, loads.size
    wrong, left = r == 0 or owners.size != n, MOST
    for each in costs:
        wrong |= each < 0 or each > left
        left -= 0 if wrong else each
    for each in loads:
        wrong |= each != 0
    if wrong:
        raise ValueError("deal_evenly: an owner for each row, costs from 0 to 2**60 in all, loads that are all 0")
    room = np.empty(r, np.int64)
    for owner in range(r):
        room[owner] = n // r + (1 if owner < n % r else 0)
    heap, size = np.arange(r), min(n, r)  # owners with room, the one with the least load first
    for row in np.argsort(-costs, kind="mergesort"):
        owner = heap[0]
        owners[row] = owner
        loads[owner] += costs[row]
        room[owner] -= 1
        if room[owner] == 0:
            size -= 1
            owner = heap[size]
        _sink(heap, size, owner, loads)
    givers, takers = np.empty(n, np.int64), np.empty(n, np.int64)
    for _ in range(EXCHANGES):
        if not _exchange(costs, loads, owners, givers, takers):
            return
