# SPDX-License-Identifier: Apache-2.0
"""A digest of many elements in which their order does not count: what parts have together is the sum of their digests."""

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Self

import numpy as np

from distinput.core.nest import structure_of

__all__ = ["RowsDigest", "hash_of"]

_BITS = 128


@dataclass(frozen=True)
class RowsDigest:
    """How many elements there are, and the sum of their hashes.

    >>> RowsDigest.of([1, 2, 2]) == RowsDigest.of([2]) + RowsDigest.of([2, 1])
    True
    >>> RowsDigest.of([1, 2, 2]) == RowsDigest.of([1, 1, 2])
    False

    Source: the multiset hash of sums, Clarke et al., "Incremental multiset hash functions and their application to memory
    integrity checking" (2003).
    """

    rows: int = 0
    total: int = 0

    @classmethod
    def of(cls, elements: Iterable[Any]) -> Self:
        """The digest of elements."""
        rows = total = 0
        for element in elements:
            total += hash_of(element)
            rows += 1
        return cls(rows, total % (1 << _BITS))

    def __add__(self, other: "RowsDigest") -> "RowsDigest":
        return RowsDigest(self.rows + other.rows, (self.total + other.total) % (1 << _BITS))


def hash_of(element: Any) -> int:
    """The hash of an element: of its structure, and of the dtype, shape and bits of each leaf."""
    structure = structure_of(element)
    made = blake2b(digest_size=_BITS // 8)
    if not structure.is_leaf:
        made.update(repr(structure.keys).encode())
    for leaf in [element] if structure.is_leaf else structure.flatten(element):
        _add(made, leaf)
    return int.from_bytes(made.digest(), "little")


def _add(made: Any, leaf: Any) -> None:
    if isinstance(leaf, bytes):
        made.update(b"b%d:" % len(leaf) + leaf)
        return
    if hasattr(leaf, "nested_row_splits"):  # a ragged tensor
        made.update(repr([each.tolist() for each in leaf.nested_row_splits]).encode())
        leaf = leaf.flat_values
    array = np.asarray(leaf)
    made.update(f"{array.dtype.str}{array.shape}:".encode())
    if array.dtype.hasobject:
        for item in array.reshape(-1).tolist():
            _add(made, item if isinstance(item, bytes) else repr(item).encode())
    else:
        made.update(array.tobytes())
