# SPDX-License-Identifier: Apache-2.0
"""Theorems: each cut of a global batch gives every row to exactly one piece. N pieces, G rows a batch; b is a batch."""

from typing import Any

from tests.proofs.prover import Theorem
from tests.proofs.statements import all_of, smaller

__all__ = ["THEOREMS"]

CUTS = {"balanced": {"balanced": True}, "equal": {}, "fixed": {"fixed": True}}
"""Sizes that differ by at most one; ceil(rows / N) with a short batch cut anew; and the same places in each batch."""


def piece(proof: Any, cut: str, rows: Any, G: Any, N: Any, b: Any, j: Any) -> tuple[Any, Any]:
    """Where piece j of batch b begins and ends."""
    code = proof.code("distinput.plan.batch_sizes")
    pieces = code.RowRanges(rows, G, False, code.Assignment(N, 0, 1, **CUTS[cut]))
    proof.dividing(N, b, j)
    number = b * N + j
    begin, end = pieces.bounds(number, number + 1)
    return begin, end


def batch(proof: Any, N: Any, G: Any, rows: Any, b: Any) -> None:
    """The numbers are those of a batch that there is."""
    proof.given(N >= 1, G >= 1, b >= 0, b * G < rows)


def begins(proof: Any, N: Any, G: Any, rows: Any, b: Any, cut: str) -> Any:
    batch(proof, N, G, rows, b)
    return piece(proof, cut, rows, G, N, b, 0)[0] == b * G


def follow(proof: Any, N: Any, G: Any, rows: Any, b: Any, j: Any, cut: str) -> Any:
    batch(proof, N, G, rows, b)
    proof.given(j >= 0, j + 1 < N)
    return piece(proof, cut, rows, G, N, b, j)[1] == piece(proof, cut, rows, G, N, b, j + 1)[0]


def ends(proof: Any, N: Any, G: Any, rows: Any, b: Any, cut: str) -> Any:
    batch(proof, N, G, rows, b)
    return piece(proof, cut, rows, G, N, b, N - 1)[1] == smaller(b * G + G, rows)


def is_a_range(proof: Any, N: Any, G: Any, rows: Any, b: Any, j: Any, cut: str) -> Any:
    batch(proof, N, G, rows, b)
    proof.given(j >= 0, j < N)
    begin, end = piece(proof, cut, rows, G, N, b, j)
    return all_of(b * G <= begin, begin <= end, end <= rows, end <= b * G + G)


def differ_by_one(proof: Any, N: Any, G: Any, rows: Any, b: Any, i: Any, j: Any) -> Any:
    batch(proof, N, G, rows, b)
    proof.given(i >= 0, i <= j, j < N)
    (a, c), (d, e) = piece(proof, "balanced", rows, G, N, b, i), piece(proof, "balanced", rows, G, N, b, j)
    return all_of((c - a) - (e - d) >= 0, (c - a) - (e - d) <= 1)


def later_are_not_longer(proof: Any, N: Any, G: Any, rows: Any, b: Any, j: Any, cut: str) -> Any:
    batch(proof, N, G, rows, b)
    proof.given(j >= 0, j + 1 < N)
    (a, c), (d, e) = piece(proof, cut, rows, G, N, b, j), piece(proof, cut, rows, G, N, b, j + 1)
    return e - d <= c - a


THEOREMS = [
    *[
        Theorem(f"{what}, {cut} cut", statement, {"cut": cut})
        for what, statement in {
            "piece 0 begins where its batch begins": begins,
            "a piece ends where the next one begins": follow,
            "piece N - 1 ends where its batch ends": ends,
            "a piece is a range of rows of its batch": is_a_range,
            "a later piece is not longer": later_are_not_longer,
        }.items()
        for cut in CUTS
    ],
    Theorem("sizes of two pieces differ by at most one, balanced cut", differ_by_one),
]
