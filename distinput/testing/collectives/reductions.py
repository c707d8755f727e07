# SPDX-License-Identifier: Apache-2.0
"""`all_reduce`: every dtype, operation and layout, bit for bit."""

import numpy as np

from distinput.distribute.collectives.channel import OPS, fold
from distinput.distribute.engines import Collectives
from distinput.testing.collectives.outcome import raises
from distinput.testing.collectives.parts import NUMBERS, Check, made, same

__all__ = ["REDUCTIONS"]


def _all_reduce_every_dtype(group: Collectives) -> None:
    for seed, dtype in enumerate(NUMBERS):
        for op in sorted(OPS):
            parts = [made(rank, dtype, (3, 5), seed) for rank in range(group.size)]
            same(group.all_reduce(parts[group.rank], op), fold(parts, op))


def _all_reduce_large(group: Collectives) -> None:
    for seed, dtype in enumerate(NUMBERS):
        for op in ("max", "sum"):
            parts = [made(rank, dtype, (1500,), seed) for rank in range(group.size)]
            result = group.all_reduce(parts[group.rank], op)
            expected = fold(parts, op)
            if dtype[0] in "fc":
                np.testing.assert_allclose(result, expected, rtol=1e-2 if dtype == "f2" else 1e-4, atol=1e-3)
            else:
                same(result, expected)
            others = group.all_gather(result)
            assert all(other.tobytes() == result.tobytes() for other in others), f"{dtype} {op} differs between ranks"


def _all_reduce_deterministic(group: Collectives) -> None:
    parts = [made(rank, "f4", (3000,)) * np.float32(10.0**rank) for rank in range(group.size)]
    same(group.all_reduce(parts[group.rank], deterministic=True), fold(parts, "sum"))


def _all_reduce_in_pieces(group: Collectives) -> None:
    parts = [np.full(600_000, 0.1 + rank) for rank in range(group.size)]  # 4.8 MB
    same(group.all_reduce(parts[group.rank], deterministic=True), fold(parts, "sum"))


def _all_reduce_truth_values(group: Collectives) -> None:
    mine = np.array([True, False, group.rank == 0])
    same(group.all_reduce(mine, "min"), np.array([True, False, group.size == 1]))
    same(group.all_reduce(mine, "max"), np.array([True, False, True]))
    assert isinstance(raises(TypeError, lambda: group.all_reduce(mine, "sum")), TypeError)


def _all_reduce_of_nothing_and_of_one(group: Collectives) -> None:
    same(group.all_reduce(np.zeros((0, 3), "f4")), np.zeros((0, 3), "f4"))
    same(group.all_reduce(np.float64(1.5)), np.array(1.5 * group.size))
    same(group.all_reduce(2, "prod"), np.array(2**group.size))


def _all_reduce_nan_and_infinity(group: Collectives) -> None:
    for length in (2, 5000):  # inside the header, and by itself
        mine = np.full(length, float(group.rank))
        mine[0] = np.nan if group.rank == group.size - 1 else 0
        mine[1] = np.inf
        for op in ("max", "min", "sum"):
            assert np.isnan(group.all_reduce(mine, op)[0])
        assert group.all_reduce(mine, "sum")[1] == np.inf


REDUCTIONS: tuple[Check, ...] = (
    _all_reduce_every_dtype,
    _all_reduce_large,
    _all_reduce_deterministic,
    _all_reduce_in_pieces,
    _all_reduce_truth_values,
    _all_reduce_of_nothing_and_of_one,
    _all_reduce_nan_and_infinity,
)
