# SPDX-License-Identifier: Apache-2.0
"""Theorems: cuts of lines, of batches in memory and of the row stream.

A line of T units has W stretches; a batch of G rows has N pieces; worker w has R replicas of N = W * R.
"""

from typing import Any

from tests.proofs.cut import piece
from tests.proofs.lemmas import apart, strictly
from tests.proofs.prover import Theorem
from tests.proofs.statements import all_of, at_least_one, smaller

__all__ = ["THEOREMS"]


def stretch(proof: Any, T: Any, W: Any, w: Any) -> Any:
    return proof.code("distinput.sharding.policies.balanced").range_of_worker(T, W, w)


def stretches_begin_and_end(proof: Any, T: Any, W: Any) -> Any:
    proof.given(T >= 0, W >= 1)
    proof.dividing(W, T, 0)
    proof.dividing(W, 0, 0)
    return all_of(stretch(proof, T, W, 0)[0] == 0, stretch(proof, T, W, W - 1)[1] == T)


def stretches_follow(proof: Any, T: Any, W: Any, w: Any) -> Any:
    proof.given(T >= 0, W >= 1, w >= 0, w + 1 < W)
    return stretch(proof, T, W, w)[1] == stretch(proof, T, W, w + 1)[0]


def stretches_are_even(proof: Any, T: Any, W: Any, w: Any) -> Any:
    """Each has floor(T / W) units, or one more: so two of them differ by at most one."""
    proof.given(T >= 0, W >= 1, w >= 0, w < W)
    begin, end = stretch(proof, T, W, w)
    units = end - begin
    return all_of(units >= T // W, units <= T // W + 1)


def in_memory(proof: Any, G: Any, rows: Any, b: Any, N: Any, j: Any, cut: str) -> Any:
    """A batch that a worker cuts in memory has the same pieces as one of which it reads its own rows alone."""
    proof.given(rows >= 1, G >= 1, b >= 0, b * G < rows, N >= 1, j >= 0, j < N)
    begin, end = piece(proof, cut, rows, G, N, b, j)
    proof.each(j)
    there = smaller(G, rows - b * G)
    if cut == "balanced":
        made = proof.code("distinput.columns.block").balanced_slice(there, N, j)
    else:
        cut_to = G if cut == "fixed" else there
        made = proof.item(proof.code("distinput.distribute.input.dealing").equal_slices(cut_to, N), j)
    return all_of(begin == b * G + smaller(made.start, there), end == b * G + smaller(made.stop, there))


def as_planned(proof: Any, rows: Any, N: Any, j: Any) -> Any:
    """The sizes that a plan counts with are those of the pieces."""
    proof.given(rows >= 1, N >= 1, j >= 0, j < N)
    begin, end = piece(proof, "equal", rows, rows, N, 0, j)
    proof.each(j)
    sizes = proof.code("distinput.plan.batch_sizes")._cut(proof.array(rows), N)
    return proof.item(sizes, j) == end - begin


def sizes(proof: Any, G: Any, W: Any, R: Any, w: Any) -> Any:
    """The batch sizes of one worker in the row stream, as a cycle."""
    proof.given(G >= 0, W >= 1, R >= 1, w >= 0, w < W)
    proof.lemma(strictly, R, w, W)
    return proof.code("distinput.sharding.own_rows").sizes_for_worker(G, W, R, w)


def stream_has_a_size_for_each_replica(proof: Any, G: Any, W: Any, R: Any, w: Any) -> Any:
    return proof.length(sizes(proof, G, W, R, w)) == W * R


def stream_is_balanced(proof: Any, G: Any, W: Any, R: Any, w: Any, i: Any) -> Any:
    """Size i of the cycle is that of piece (w * R + i) mod N of the balanced cut of G rows: a cycle sums to G."""
    found = sizes(proof, G, W, R, w)
    N = W * R
    proof.given(i >= 0, i < N)
    place = w * R + i
    proof.dividing(N, 0, place)
    proof.dividing(N, 1, place - N)
    part = proof.code("distinput.columns.block").balanced_slice(G, N, place % N)
    return proof.item(found, i) == part.stop - part.start


def stream_steps_are_whole(proof: Any, W: Any, R: Any, k: Any, w: Any, r: Any, v: Any, s: Any) -> Any:
    """In step k no two replicas have the same piece of the cycle: the N sizes of a step are those of a batch."""
    N = W * R
    proof.given(W >= 1, R >= 1, k >= 0, w >= 0, w <= v, v < W, r >= 0, r < R, s >= 0, s < R)
    proof.given(at_least_one(w != v, r != s))
    a, b = divmod((w + k) * R + r, N), divmod((v + k) * R + s, N)
    proof.lemma(apart, R, r, w, s, v)
    proof.lemma(strictly, R, w, v)
    proof.lemma(strictly, R, v - w, W)
    proof.lemma(apart, N, 0, a[0], (v - w) * R + s - r, b[0])
    return a[1] != b[1]


THEOREMS = [
    Theorem("the first stretch begins at 0, the last one ends at T", stretches_begin_and_end),
    Theorem("a stretch ends where the next one begins", stretches_follow),
    Theorem("stretches differ by at most one", stretches_are_even),
    *[
        Theorem(f"cutting in memory and reading own rows are the same, {cut} cut", in_memory, {"cut": cut})
        for cut in ("balanced", "equal", "fixed")
    ],
    Theorem("the sizes of a plan are those of the pieces", as_planned),
    Theorem("the row stream has a size for each replica", stream_has_a_size_for_each_replica),
    Theorem("the sizes of the row stream are those of a balanced cut", stream_is_balanced),
    Theorem("the sizes of a step of the row stream are those of a batch", stream_steps_are_whole),
]
