# SPDX-License-Identifier: Apache-2.0
"""Distributing sizes over workers so that their loads are balanced."""

from __future__ import annotations

from heapq import heapreplace

import numpy as np

from distinput.kernels.kernel import Ints, IntsOut, kernel

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
        load, slot = loads[worker], 0
        while True:
            child = 2 * slot + 1
            if child >= workers:
                break
            right = child + 1
            if right < workers:
                a, b = heap[child], heap[right]
                if loads[b] < loads[a] or (loads[b] == loads[a] and b < a):
                    child = right
            other = heap[child]
            if load < loads[other] or (load == loads[other] and worker < other):
                break
            heap[slot] = other
            slot = child
        heap[slot] = worker
