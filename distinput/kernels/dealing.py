# SPDX-License-Identifier: Apache-2.0
"""Dealing rows and sizes to owners: balanced, equally many, or in fixed proportions."""

from __future__ import annotations

from heapq import heappop, heappush, heapreplace

import numpy as np

from distinput.kernels.kernel import Ints, IntsOut, inlined, kernel

# ----------------------------------------------------------------------------
# Distributing sizes over workers so that their loads are balanced.
# ----------------------------------------------------------------------------


MOST = 1 << 62


def deal_reference(sizes: Ints, loads: IntsOut, owners: IntsOut) -> None:
    """Assign each size, in order, to the worker with the least load so far; ties go to the first such worker.

    With sizes in descending order this is the rule "longest processing time first" (Graham 1969).

    Args:
      sizes: [n], not negative, at most 2**62 in total.
      loads: [w], all 0; out: the sum of each worker's sizes.
      owners: [n]; out: the worker of each size.
    """
    wrong = sizes.size != owners.size or loads.size == 0 or np.any(sizes < 0) or np.any(loads != 0)
    if wrong or sum(sizes.tolist()) > MOST:
        raise ValueError("deal_by_size: an owner for each size, sizes from 0 to 2**62 in all, loads that are all 0")
    workers = loads.size
    heap = list(range(workers))  # load * workers + worker
    order = []
    for size in sizes.tolist():
        least = heap[0]
        order.append(least % workers)
        heapreplace(heap, least + size * workers)
    owners[:] = order
    for item in heap:
        loads[item % workers] = item // workers


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


@kernel(deal_reference)
def deal_by_size(sizes: Ints, loads: IntsOut, owners: IntsOut) -> None:
    """See `deal_reference`."""
    workers = loads.size
    wrong = sizes.size != owners.size or workers == 0
    left = MOST
    for each in sizes:
        wrong |= each < 0 or each > left
        left -= 0 if wrong else each
    for each in loads:
        wrong |= each != 0
    if wrong:
        raise ValueError("deal_by_size: an owner for each size, sizes from 0 to 2**62 in all, loads that are all 0")
    heap = np.arange(workers)
    for i in range(sizes.size):
        worker = heap[0]
        owners[i] = worker
        loads[worker] += sizes[i]
        _sink(heap, workers, worker, loads)


# ----------------------------------------------------------------------------
# Dealing rows by their cost: equally many to each owner, and as equally dear as can be had quickly.
# ----------------------------------------------------------------------------


MOST_COST = 1 << 60
EXCHANGES = 200


def even_deal_reference(costs: Ints, loads: IntsOut, owners: IntsOut) -> None:
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
    if wrong or sum(costs.tolist()) > MOST_COST:
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


@kernel(even_deal_reference)
def deal_evenly(costs: Ints, loads: IntsOut, owners: IntsOut) -> None:
    """See `even_deal_reference`."""
    n, r = costs.size, loads.size
    wrong, left = r == 0 or owners.size != n, MOST_COST
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


# ----------------------------------------------------------------------------
# Turns in fixed proportions: counts stay within 1 - 1 / (2k - 2) of their shares at every step.
#
# Source: R. Tijdeman: The chairman assignment problem (Discrete Mathematics 32, 1980).
# ----------------------------------------------------------------------------


WHOLE = 1 << 40
"""The shares of a step sum to this."""

MOST_OWED = 16 * WHOLE
"""The most that a candidate owes or is owed: more than one turn where weights change that were not known before."""

LONGEST = 1 << 48
"""The most steps of a piece of a schedule."""

NEVER = 1 << 62


def choose_reference(debts: IntsOut, shares: Ints, steps: Ints, turns: IntsOut) -> None:
    """Whose turn it is in the next steps.

    In each step the debt of every candidate grows by its share, and the one whose turn it is pays `WHOLE`. Those with a debt
    of at least WHOLE / (2k - 2) come into question. Of these the one with the earliest deadline gets the turn: the first step
    at which its debt would be WHOLE * (1 - 1 / (2k - 2)) if it got none. The first one wins a tie.

    Args:
      debts: [k], from -`MOST_OWED` to `MOST_OWED`, summing to 0; in and out.
      shares: [p * k], not negative; those of each of the p pieces of the schedule sum to `WHOLE`.
      steps: [p], how many steps each piece lasts, at least 1; the last one lasts forever.
      turns: [n]; out: the numbers of the candidates.
    """
    k, p = debts.size, steps.size
    rows = shares.reshape(p, k).tolist() if p and k and shares.size == p * k else []
    if not rows or k > 1 << 16 or p > 1 << 13 or np.any(steps < 1) or np.any(steps > LONGEST):
        raise ValueError("choose_fairly: shares [p * k], steps [p] of 1 to 2**48")
    if any(min(row) < 0 or sum(row) != WHOLE for row in rows):
        raise ValueError("choose_fairly: the shares of each piece must not be negative and sum to 2**40")
    own = debts.tolist()
    if min(own) < -MOST_OWED or max(own) > MOST_OWED or sum(own) != 0:
        raise ValueError("choose_fairly: debts must be from -2**44 to 2**44 and sum to 0")
    d = max(2 * k - 2, 2)

    def deadline(i: int, piece: int, left: int) -> int:
        missing, after = (d - 1) * WHOLE - d * own[i], 0
        if missing <= 0:
            return 0
        while True:
            gain = d * rows[piece][i]
            wait = -(-missing // gain) if gain else NEVER
            if piece == p - 1 or wait <= left:
                return min(after + wait, NEVER)
            missing, after, piece = missing - gain * left, after + left, piece + 1
            left = int(steps[piece])

    piece, left = 0, int(steps[0])
    for turn in range(turns.size):
        if not left and piece < p - 1:
            piece += 1
            left = int(steps[piece])
        left = max(0, left - 1)
        own = [debt + share for debt, share in zip(own, rows[piece], strict=True)]
        chosen = min((deadline(i, piece, left), i) for i in range(k) if d * own[i] >= WHOLE)[1]
        own[chosen] -= WHOLE
        turns[turn] = chosen
    debts[:] = own


@inlined
def _deadline(missing: int, d: int, shares: Ints, k: int, i: int, steps: Ints, piece: int, left: int) -> int:
    """Steps until a debt has grown by `missing`, in 1 / d of a unit."""
    if missing <= 0:
        return 0
    after = 0
    while True:
        gain = d * shares[piece * k + i]
        wait = (missing + gain - 1) // gain if gain > 0 else NEVER
        if piece == steps.size - 1 or wait <= left:
            return min(after + wait, NEVER)
        missing, after, piece = missing - gain * left, after + left, piece + 1
        left = steps[piece]


@kernel(choose_reference)
def choose_fairly(debts: IntsOut, shares: Ints, steps: Ints, turns: IntsOut) -> None:
    """See `choose_reference`."""
    k, p = debts.size, steps.size
    wrong = k == 0 or p == 0 or k > 1 << 16 or p > 1 << 13 or shares.size != p * k
    for each in steps:
        wrong |= each < 1 or each > LONGEST
    if wrong:
        raise ValueError("choose_fairly: shares [p * k], steps [p] of 1 to 2**48")
    for row in range(p):
        total = 0
        for i in range(k):
            wrong |= shares[row * k + i] < 0 or shares[row * k + i] > WHOLE
            total += 0 if wrong else shares[row * k + i]
        wrong |= total != WHOLE
    if wrong:
        raise ValueError("choose_fairly: the shares of each piece must not be negative and sum to 2**40")
    total = 0
    for each in debts:
        wrong |= each < -MOST_OWED or each > MOST_OWED
        total += 0 if wrong else each
    if wrong or total != 0:
        raise ValueError("choose_fairly: debts must be from -2**44 to 2**44 and sum to 0")
    d = max(2 * k - 2, 2)
    piece, left = 0, steps[0]
    for turn in range(turns.size):
        if left == 0 and piece < p - 1:
            piece += 1
            left = steps[piece]
        left = max(0, left - 1)
        chosen, earliest = 0, NEVER + 1
        for i in range(k):
            debts[i] += shares[piece * k + i]
            if d * debts[i] >= WHOLE:
                deadline = _deadline((d - 1) * WHOLE - d * debts[i], d, shares, k, i, steps, piece, left)
                if deadline < earliest:
                    chosen, earliest = i, deadline
        debts[chosen] -= WHOLE
        turns[turn] = chosen
