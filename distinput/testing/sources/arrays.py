# SPDX-License-Identifier: Apache-2.0
"""Arrays of several kinds, as nests with a first axis."""

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from distinput.core.nest import structure_of
from distinput.core.ragged_tensor import RaggedTensor
from distinput.testing.functions import NamedRecord, Point

__all__ = ["COUNT", "KINDS", "SALT", "ragged", "rows_of", "words"]


def words(n: int, salt: int) -> Any:
    """Text of different lengths, empty among it."""
    made = np.empty(n, object)
    made[:] = [b"x" * ((i + salt) % 4) + (b"%d" % i if i % 5 else b"") for i in range(n)]
    return made


def ragged(n: int, salt: int, *, text: bool = False) -> RaggedTensor:
    """Rows of different lengths, empty ones among them."""
    lengths = (np.arange(n) * 3 + salt) % 4
    total = int(lengths.sum())
    return RaggedTensor.from_row_lengths(words(total, salt) if text else np.arange(total) * 2 + salt, lengths)


def _deep(n: int, salt: int) -> RaggedTensor:
    lengths = (np.arange(n) + salt) % 3
    return RaggedTensor.from_row_lengths(ragged(int(lengths.sum()), salt), lengths)


KINDS: dict[str, Callable[[int, int], Any]] = {
    "bool": lambda n, salt: (np.arange(n) + salt) % 3 == 0,
    "deep": lambda n, salt: {"x": ({"y": np.arange(n) * 2 + salt},), "z": (words(n, salt),)},
    "dict": lambda n, salt: {
        "b": np.arange(2 * n, dtype=np.float32).reshape(n, 2) + salt,
        "a": np.arange(n, dtype=np.int32),
    },
    "float": lambda n, salt: np.arange(n, dtype=np.float32) / 2 + salt,
    "int": lambda n, salt: np.arange(n) * 3 + salt,
    "int32": lambda n, salt: (np.arange(n, dtype=np.int32) + salt) % 7,
    "narrow": lambda n, salt: np.zeros((n, 0), np.int64) + salt,
    "pair": lambda n, salt: (np.arange(n) + salt, words(n, salt)),
    "point": lambda n, salt: Point(
        np.arange(n) + salt, (words(n, salt), np.arange(3 * n, dtype=np.int32).reshape(n, 3))
    ),
    "record": lambda n, salt: NamedRecord(np.arange(n) + salt, words(n, salt)),
    "rows": lambda n, salt: {
        "id": np.arange(n) + salt,
        "rows": ragged(n, salt),
        "words": ragged(n, salt + 1, text=True),
    },
    "rows_of_rows": lambda n, salt: _deep(n, salt),
    "single": lambda n, salt: (np.arange(n) + salt,),
    "str": words,
    "texts": lambda n, salt: words(2 * n, salt).reshape(n, 2),
    "wide": lambda n, salt: np.arange(4 * n).reshape(n, 4) + salt,
}
"""Arrays with a first axis of n, as nests of several kinds."""


def rows_of(arrays: Any) -> list[Any]:
    """The elements that slicing arrays gives."""
    structure = structure_of(arrays)
    leaves = structure.flatten(arrays)
    return [structure.build([leaf[i] for leaf in leaves]) for i in range(len(leaves[0]))]


COUNT = st.sampled_from([5, 8, 12, 3, 1, 2, 20, 0])
SALT = st.integers(0, 9)
