# SPDX-License-Identifier: Apache-2.0
"""Turns in fixed proportions: counts stay within 1 - 1 / (2k - 2) of their shares at every step.

Source: R. Tijdeman: The chairman assignment problem (Discrete Mathematics 32, 1980).
"""

from __future__ import annotations

import numpy as np

from distinput.kernels.kernel import Ints, IntsOut, inlined, kernel

WHOLE = 1 << 40
"""The shares of a step sum to this."""

LONGEST = 1 << 48
"""The most steps of a piece of a schedule."""

NEVER = 1 << 62


def choose_reference(debts: IntsOut, shares: Ints, steps: Ints, turns: IntsOut) -> None:
    """Whose turn it is in the next steps.

    In each step the debt of every candidate grows by its share, and the one whose turn it is pays `WHOLE`. Those with a debt
    of at least WHOLE / (2k - 2) come into question. Of these the one with the earliest deadline gets the turn: the first step
    at which its debt would be WHOLE * (1 - 1 / (2k - 2)) if it got none. The first one wins a tie.

    Args:
      debts: [k], from -WHOLE to WHOLE, summing to 0; in and out.
      shares: [p * k], not negative; those of each of the p pieces of the schedule sum to `WHOLE`.
      steps: [p], how many steps each piece lasts, at least 1; the last one lasts for ever.
      turns: [n]; out: the numbers of the candidates.
    """
    k, p = debts.size, steps.size
    rows = shares.reshape(p, k).tolist() if p and k and shares.size == p * k else []
    if not rows or k > 1 << 16 or p > 1 << 13 or np.any(steps < 1) or np.any(steps > LONGEST):
        raise ValueError("choose_fairly: shares [p * k], steps [p] of 1 to 2**48")
    if any(min(row) < 0 or sum(row) != WHOLE for row in rows):
        raise ValueError("choose_fairly: the shares of each piece must not be negative and sum to 2**40")
    own = debts.tolist()
    if min(own) < -WHOLE or max(own) > WHOLE or sum(own) != 0:
        raise ValueError("choose_fairly: debts must be from -2**40 to 2**40 and sum to 0")
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
        wrong |= each < -WHOLE or each > WHOLE
        total += 0 if wrong else each
    if wrong or total != 0:
        raise ValueError("choose_fairly: debts must be from -2**40 to 2**40 and sum to 0")
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
