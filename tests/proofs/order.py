# SPDX-License-Identifier: Apache-2.0
"""Theorems: the global shuffle is a bijection, whatever the numbers that it draws are.

A row below n is written as (left, right), left below a and right below b, a power of two; a round adds a number to one
half that was drawn from the other one. What is different before a pair of rounds is different after it, so a pair is a
permutation of 0 to a * b - 1; so are several of them, and walking on from what is not below n makes it one of 0 to n - 1.
"""

from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np

from tests.proofs.prover import Theorem
from tests.proofs.statements import all_of, implies

__all__ = ["THEOREMS"]

SHUFFLE = "distinput.kernels.random_orders"
MOST = 1 << 31
"""Of a and of b, for up to 2**62 rows: `halves_are_small`."""


def halves(proof: Any, n: Any, bits: Any, *rows: Any) -> tuple[Any, Any, Any]:
    """The bits of the right half, a and b; the rows are below a * b."""
    some, b = proof.power(bits)
    a = -(-n // b)
    proof.given(n >= 1, a <= MOST, b <= MOST, *[x >= 0 for x in rows], *[x < a * b for x in rows])
    return some, a, b


def pair(proof: Any, bits: Any, n: Any, x: Any) -> Any:
    """A pair of rounds of row x, as the readable implementation has it."""
    code, keys = drawing(proof)
    return code._rounds_reference(x, SimpleNamespace(reshape=lambda *_: [keys]), n, bits)


def kernel_pair(proof: Any, bits: Any, a: Any, x: Any) -> Any:
    """The same as the kernel has it."""
    code, keys = drawing(proof)
    code.ROUNDS, code._round_key, code.signed = 2, lambda _, number: keys[number], lambda word: word.astype(np.int64)
    words = [x]
    code._rounds(words, 0, 1, None, a.astype(np.uint64), bits)
    return words[0]


def drawing(proof: Any) -> tuple[Any, tuple[Any, Any]]:
    """The code, where what is drawn from a half and a key is any 32 bits; and two keys."""
    code = proof.code(SHUFFLE)
    code._drawn_reference = code._drawn = proof.function("drawn", 1 << 32)
    return code, (proof.integer("even"), proof.integer("odd"))


def stay_in_the_domain(proof: Any, n: Any, bits: Any, x: Any) -> Any:
    some, a, b = halves(proof, n, bits, x)
    found = pair(proof, some, n, x)
    return all_of(found >= 0, found < a * b)


def are_injective(proof: Any, n: Any, bits: Any, x: Any, y: Any) -> Any:
    some, _, _ = halves(proof, n, bits, x, y)
    return implies(pair(proof, some, n, x) == pair(proof, some, n, y), x == y)


def kernel_is_the_same(proof: Any, n: Any, bits: Any, x: Any) -> Any:
    some, a, _ = halves(proof, n, bits, x)
    return kernel_pair(proof, some, a, x) == pair(proof, some, n, x)


class One(list[Any]):
    """An array of one row."""

    size = 1


class Reached(Exception):
    """What the rounds are called with."""


def reached(*given: Any) -> Any:
    raise Reached(*given)


def halves_are_small(proof: Any, n: Any, low: int, high: int) -> Any:
    """The kernel and its reference choose the same a and b; a * b >= n, and fewer than b words are walked over."""
    proof.given(n > low, n <= high)
    code = proof.code(SHUFFLE)
    code._rounds = code._rounds_reference = reached
    try:
        code.permute_reference(n - 1, 0, n, One([0]))
    except Reached as call:
        reference_bits = call.args[-1]
    try:
        code._walk(One([0]), None, n, One([0]))
    except Reached as call:
        *_, a, bits = call.args
    b = 1 << int(bits)
    return all_of(int(bits) == reference_bits, a == -(-n // b), a <= MOST, b <= MOST, n <= a * b, a * b < n + b)


def slots_are_below_n(proof: Any, word: Any, n: Any) -> Any:
    """The slot drawn from a word is the upper half of its product with n; no step before overflows."""
    proof.given(word >= 0, word < 1 << 64, n >= 1, n < 1 << 62)
    code = proof.code(SHUFFLE)
    code.mix_reference = lambda _: word.astype(np.uint64)
    found = code.picks_reference(0, SimpleNamespace(astype=lambda _: 0), n)
    return all_of(found == word * n // (1 << 64), found >= 0, found < n)


SIZES = (256, 1 << 26, 1 << 44, 1 << 62)
THEOREMS = [
    Theorem("a pair of rounds stays below a * b", stay_in_the_domain, numbers=False),
    Theorem("a pair of rounds keeps different rows apart", are_injective, numbers=False),
    Theorem("the kernel's pair of rounds is the reference's", kernel_is_the_same, numbers=False),
    *[
        Theorem(
            f"halves fit into 32 bits, n from {low + 1} to {high}",
            halves_are_small,
            {"low": low, "high": high},
            numbers=False,
        )
        for low, high in pairwise(SIZES)
    ],
    Theorem("a slot that is drawn is the upper half of a product, below n", slots_are_below_n, numbers=False),
]
