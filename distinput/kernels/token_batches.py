# SPDX-License-Identifier: Apache-2.0
"""Consecutive sequences in batches of a limited number of tokens."""

from __future__ import annotations

from distinput.kernels.kernel import Ints, IntsOut, kernel


def cut_reference(
    sizes: Ints, rows: int, tokens: int, most: int, most_rows: int, padded: bool, ends: IntsOut
) -> tuple[int, int, int]:
    """Put sequences into batches in order: a batch ends before the sequence with which it would have too many tokens or rows.

    A batch has as many tokens as its sequences together; if `padded`, as many as its rows times the longest of them. A
    sequence that has too many tokens itself is a batch of its own.

    Args:
      sizes: [n], not negative, at most 2**31.
      rows: sequences in the batch that is begun, fewer than 2**31.
      tokens: of these together; if `padded`, of the longest.
      most: tokens of a batch, at least 1.
      most_rows: sequences of a batch, at least 1.
      padded: whether the sequences of a batch are padded to the longest.
      ends: [n]; out: for each batch that ends, the number of sequences before its end.

    Returns:
      How many batches ended, and `rows` and `tokens` of the batch that is begun then.
    """
    if ends.size != sizes.size or min(rows, tokens) < 0 or min(most, most_rows) < 1 or max(rows, tokens) >= 1 << 31:
        raise ValueError("cut_by_tokens: an end for each sequence, numbers from 0 to below 2**31, limits of at least 1")
    if any(size < 0 or size > 1 << 31 for size in sizes.tolist()):
        raise ValueError("cut_by_tokens: sizes must be from 0 to 2**31")
    ended = 0
    for i, size in enumerate(sizes.tolist()):
        whole = (rows + 1) * max(tokens, size) if padded else tokens + size
        if rows and (whole > most or rows == most_rows):
            ends[ended] = i
            ended += 1
            rows = tokens = 0
        rows += 1
        tokens = max(tokens, size) if padded else tokens + size
    return ended, rows, tokens


@kernel(cut_reference)
def cut_by_tokens(
    sizes: Ints, rows: int, tokens: int, most: int, most_rows: int, padded: bool, ends: IntsOut
) -> tuple[int, int, int]:
    """See `cut_reference`."""
    limit = 1 << 31
    if ends.size != sizes.size or min(rows, tokens) < 0 or min(most, most_rows) < 1 or max(rows, tokens) >= limit:
        raise ValueError("cut_by_tokens: an end for each sequence, numbers from 0 to below 2**31, limits of at least 1")
    for size in sizes:
        if size < 0 or size > limit:
            raise ValueError("cut_by_tokens: sizes must be from 0 to 2**31")
    ended = 0
    for i in range(sizes.size):
        size = sizes[i]
        whole = (rows + 1) * max(tokens, size) if padded else tokens + size
        if rows > 0 and (whole > most or rows == most_rows):
            ends[ended] = i
            ended += 1
            rows, tokens = 0, 0
        rows += 1
        tokens = max(tokens, size) if padded else tokens + size
    return ended, rows, tokens
