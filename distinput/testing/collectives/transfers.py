# SPDX-License-Identifier: Apache-2.0
"""`all_gather`, `broadcast` and `barrier`, and the layouts that all calls take."""

import time

import numpy as np

from distinput.distribute.engines import Collectives
from distinput.testing.collectives.parts import NUMBERS, Check, made, same

__all__ = ["TRANSFERS"]


def _places(group: Collectives) -> None:
    places = [tuple(place.tolist()) for place in group.all_gather([group.rank, group.size])]
    assert places == [(rank, group.size) for rank in range(group.size)]
    assert 0 <= group.local_rank < group.local_size <= group.size


def _any_layout(group: Collectives) -> None:
    base = np.arange(24, dtype=">i4").reshape(4, 6)
    frozen = np.arange(6.0)
    frozen.flags.writeable = False
    for mine in (base, base.T, base[::2, ::-3], np.asfortranarray(base), frozen):
        before = mine.copy()
        result = group.all_reduce(mine)
        same(result, (mine * group.size).astype(mine.dtype.newbyteorder("=")))
        same(group.all_gather(mine)[-1], mine.astype(mine.dtype.newbyteorder("=")))
        same(group.broadcast(mine), mine.astype(mine.dtype.newbyteorder("=")))
        result[...] = 0
        np.testing.assert_array_equal(mine, before)


def _all_gather_every_dtype(group: Collectives) -> None:
    for dtype in ("?", *NUMBERS, "M8[us]", "m8[s]", "S3", "U2"):
        for rows in (lambda rank: rank, lambda rank: 400 * (rank % 2), lambda _: 3000, lambda _: 0):  # uneven, empty
            parts = [made(rank, "i8", (rows(rank), 2)).astype(dtype) for rank in range(group.size)]
            gathered = group.all_gather(parts[group.rank])
            assert len(gathered) == group.size
            for actual, expected in zip(gathered, parts, strict=True):
                same(actual, expected)


def _all_gather_scalars(group: Collectives) -> None:
    for rank, value in enumerate(group.all_gather(np.float32(group.rank))):
        same(value, np.array(rank, "f4"))


def _all_gather_text(group: Collectives) -> None:
    parts = [
        np.array([b"", b"a\0b" * rank, "\u00fc\U0001f642"] * (1 + 100 * rank), object) for rank in range(group.size)
    ]
    for actual, expected in zip(group.all_gather(parts[group.rank]), parts, strict=True):
        assert (actual.dtype, actual.tolist()) == (expected.dtype, expected.tolist())
    widths = [np.array(["x" * (1 + rank), "y"]) for rank in range(group.size)]
    for actual, expected in zip(group.all_gather(widths[group.rank]), widths, strict=True):
        same(actual, expected)


def _broadcast_from_every_root(group: Collectives) -> None:
    for root in range(group.size):
        for dtype, shape in (("f4", (2, 3)), ("u2", (0, 3)), ("c16", ()), ("f8", (4000,)), ("?", (9,)), ("S4", (3,))):
            expected = made(root, "i8", shape).astype(dtype)
            same(group.broadcast(expected if group.rank == root else None, root), expected)
        words = np.array([[b"x", "\u00fc"]], object)
        assert group.broadcast(words if group.rank == root else None, root).tolist() == words.tolist()


def _barrier_waits(group: Collectives) -> None:
    if group.rank == group.size - 1:
        time.sleep(0.2)
    arrived = time.monotonic()
    group.barrier()
    left = time.monotonic()
    if group.local_size == group.size:  # one machine, one clock
        assert left >= max(float(time_) for time_ in group.all_gather(arrived))


def _a_late_peer_within_the_time(group: Collectives) -> None:
    if group.rank == 0:
        time.sleep(1.0)
    assert group.all_reduce(1).item() == group.size


TRANSFERS: tuple[Check, ...] = (
    _places,
    _any_layout,
    _all_gather_every_dtype,
    _all_gather_scalars,
    _all_gather_text,
    _broadcast_from_every_root,
    _barrier_waits,
    _a_late_peer_within_the_time,
)
