# SPDX-License-Identifier: Apache-2.0
"""Theorems: every piece is one worker's, all workers have equal steps, and counts are exact.

W workers of R replicas each; N pieces a batch; k and m are numbers among a worker's own pieces.
"""

from types import SimpleNamespace
from typing import Any

from distinput.ops.shard_batches import ShardBatches
from tests.proofs.lemmas import apart, strictly
from tests.proofs.prover import Theorem
from tests.proofs.statements import all_of, implies

__all__ = ["THEOREMS"]

DISTRIBUTION = "distinput.distribute.input.distribution"
ASSIGNMENT = "distinput.plan.batch_sizes"
OWN = "distinput.sharding.own_rows"


def own(proof: Any, W: Any, R: Any, w: Any, balanced: bool) -> Any:
    """The pieces of one of W workers with R replicas each, as distribution assigns them."""
    return of_replicas(
        proof, SimpleNamespace(total=W * R, first=w * R, count=R, rank=w, workers=W, peers=None), balanced
    )


def of_replicas(proof: Any, replicas: Any, balanced: bool) -> Any:
    options = SimpleNamespace(balanced_split=balanced)
    return proof.code(DISTRIBUTION)._assignment(SimpleNamespace(replicas=replicas), options)


def number(assignment: Any, k: Any) -> Any:
    """The number of a worker's piece k among all pieces."""
    return assignment.numbers(k, k + 1)


def job(proof: Any, W: Any, R: Any, *workers: Any) -> None:
    """The numbers are those of a job and of workers in it."""
    proof.given(W >= 1, R >= 1, *[w >= 0 for w in workers], *[w < W for w in workers])
    for w in workers:
        proof.lemma(strictly, R, w, W)


def owners_differ(proof: Any, W: Any, R: Any, w: Any, v: Any, k: Any, m: Any, balanced: bool) -> Any:
    job(proof, W, R, w, v)
    proof.given(w < v, k >= 0, m >= 0)
    proof.lemma(strictly, R, w, v)
    (s, i), (t, j) = divmod(k, R), divmod(m, R)
    proof.lemma(apart, *((W * R, w * R + i, s, v * R + j, t) if balanced else (W, w, k, v, m)))
    return number(own(proof, W, R, w, balanced), k) != number(own(proof, W, R, v, balanced), m)


def ascend(proof: Any, W: Any, R: Any, w: Any, k: Any, balanced: bool) -> Any:
    job(proof, W, R, w)
    proof.given(k >= 0)
    s, i = divmod(k, R)
    proof.dividing(R, s, i + 1)
    proof.dividing(R, s + 1, 0)
    proof.lemma(strictly, R, 0, W)
    mine = own(proof, W, R, w, balanced)
    return number(mine, k) < number(mine, k + 1)


def have_an_owner(proof: Any, W: Any, R: Any, p: Any, balanced: bool) -> Any:
    """Piece p is number k of worker w: k and w are said."""
    job(proof, W, R)
    proof.given(p >= 0)
    if balanced:
        batch, place = divmod(p, W * R)
        w, r = divmod(place, R)
        k = batch * R + r
        proof.dividing(R, batch, r)
    else:
        k, w = divmod(p, W)
    return all_of(w >= 0, w < W, k >= 0, number(own(proof, W, R, w, balanced), k) == p)


def equal_steps(proof: Any, W: Any, R: Any, w: Any, n: Any, balanced: bool) -> Any:
    """Of n batches, every worker has n * R pieces: one step with a piece for each replica for every batch."""
    job(proof, W, R, w)
    proof.given(n >= 0)
    proof.dividing(W, n * R, 0)
    proof.dividing(W * R, n, 0)
    return own(proof, W, R, w, balanced).count(n) == n * R


def in_step(proof: Any, W: Any, R: Any, w: Any, n: Any, r: Any, balanced: bool) -> Any:
    """The pieces of step n are pieces of batch n."""
    job(proof, W, R, w)
    proof.given(n >= 0, r >= 0, r < R)
    proof.dividing(R, n, r)
    proof.lemma(strictly, W, r, R)
    p = number(own(proof, W, R, w, balanced), n * R + r)
    return all_of(n * (W * R) <= p, p < (n + 1) * (W * R))


def unequal_owners_differ(proof: Any, N: Any, a: Any, A: Any, b: Any, B: Any, k: Any, m: Any) -> Any:
    """Workers with A and B replicas, the first of which are a and b of N."""
    proof.given(a >= 0, A >= 1, B >= 1, a + A <= b, b + B <= N, k >= 0, m >= 0)
    (s, i), (t, j) = divmod(k, A), divmod(m, B)
    proof.lemma(apart, N, a + i, s, b + j, t)
    return number(unequal(proof, N, a, A), k) != number(unequal(proof, N, b, B), m)


def unequal(proof: Any, N: Any, first: Any, count: Any) -> Any:
    return of_replicas(proof, SimpleNamespace(total=N, first=first, count=count), True)


def unequal_steps(proof: Any, N: Any, a: Any, A: Any, n: Any, r: Any) -> Any:
    proof.given(a >= 0, A >= 1, a + A <= N, n >= 0, r >= 0, r < A)
    proof.dividing(A, n, r)
    proof.dividing(N, n, 0)
    mine = unequal(proof, N, a, A)
    return all_of(mine.count(n) == n * A, number(mine, n * A + r) == n * N + a + r)


def count_is_exact(proof: Any, N: Any, S: Any, first: Any, own: Any, n: Any) -> Any:
    """Any assignment: of n batches a worker has so many pieces, the next one is behind them."""
    proof.given(N >= 1, first >= 0, own >= 1, first + own <= S, n >= 0)
    assignment = proof.code(ASSIGNMENT).Assignment(N, first, S, own)
    turns, _ = divmod(n * N, S)
    count = assignment.count(n)
    here = count - turns * own
    for add in (-1, 0, 1):
        for place in (here, here - 1, here - own, own - 1):
            proof.dividing(own, turns + add, place)
    return all_of(
        count >= 0,
        implies(count > 0, number(assignment, count - 1) < n * N),
        number(assignment, count) >= n * N,
    )


def batches_are_counted(proof: Any, rows: Any, G: Any, N: Any, drop: bool) -> Any:
    """All rows are in the batches that are counted; with drop_remainder, in all full ones."""
    proof.given(rows >= 0, G >= 1, N >= 1)
    code = proof.code(ASSIGNMENT)
    found = code.RowRanges(rows, G, drop, code.Assignment(N, 0, N, N)).count
    batches, rest = divmod(found, N)
    n, more = divmod(rows, G)
    proof.dividing(G, -n, 0)
    proof.dividing(G, -n - 1, G - more)
    if drop:
        proof.dividing(N, n, 0)
        return all_of(rest == 0, batches * G <= rows, rows < batches * G + G)
    proof.dividing(N, n + 1, 0)
    proof.dividing(N, n, 0)
    return all_of(rest == 0, rows <= batches * G, (batches - 1) * G < rows)


def shares_of_steps(proof: Any, S: Any, i: Any, W: Any, w: Any, k: Any) -> Any:
    """Every W-th batch of `shard_batches`, from w on: piece k is piece i of batch k * W + w."""
    proof.given(S >= 1, i >= 0, i < S, W >= 1, w >= 0, w < W, k >= 0)
    assignment = asked_for(proof, "own_steps", S, i, w, W)
    return assignment is not None and all_of(assignment.pieces == S, number(assignment, k) == (k * W + w) * S + i)


def shares(proof: Any, S: Any, i: Any, k: Any) -> Any:
    """`shard_batches`: piece k is piece i of batch k."""
    proof.given(S >= 2, i >= 0, i < S, k >= 0)
    assignment = asked_for(proof, "own_steps", S, i, 0, 1)
    return assignment is not None and all_of(assignment.pieces == S, number(assignment, k) == k * S + i)


def asked_for(proof: Any, function: str, S: Any, i: Any, *given: Any) -> Any:
    """The assignment that a function of own_rows asks for, of a `shard_batches` into S parts."""
    code = proof.code(OWN)

    class Batches(ShardBatches):
        def start_at(self, row: int, epoch: int) -> Any:
            return {}

    node = object.__new__(Batches)
    for name, value in (("num_shards", S), ("index", i), ("input", None)):
        object.__setattr__(node, name, value)
    seen: list[Any] = []
    code.own_pieces = lambda node, assignment: seen.append(assignment)
    assert getattr(code, function)(node, *given) is None
    return seen[0] if seen else None


THEOREMS = [
    *[
        Theorem(f"{what}, {cut} cut", statement, {"balanced": cut == "balanced"})
        for what, statement in {
            "no piece belongs to two workers": owners_differ,
            "a worker's pieces ascend": ascend,
            "every piece belongs to a worker": have_an_owner,
            "all workers have equally many steps, one for each batch": equal_steps,
            "the pieces of a step are of its batch": in_step,
        }.items()
        for cut in ("equal", "balanced")
    ],
    Theorem("no piece belongs to two workers with unequal replicas", unequal_owners_differ),
    Theorem("workers with unequal replicas have equally many steps", unequal_steps),
    Theorem("a worker's pieces are counted exactly", count_is_exact),
    Theorem("batches are counted exactly", batches_are_counted, {"drop": False}),
    Theorem("batches are counted exactly, drop_remainder", batches_are_counted, {"drop": True}),
    Theorem("a share of batches is a piece of each", shares),
    Theorem("a share of every W-th batch is a piece of each", shares_of_steps),
]
