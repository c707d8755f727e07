# SPDX-License-Identifier: Apache-2.0
"""Blocks for tests of vectorized functions, and the comparison of every element with a call of its own."""

from collections.abc import Callable
from typing import Any

import numpy as np

from distinput.columns.block import ColumnBlock
from distinput.columns.column import Dense
from distinput.functions.chain import Chain
from distinput.functions.vectorized.answers import same_bits
from distinput.functions.vectorized.whole_block import Vectorizer
from distinput.values.leaves import as_leaf
from distinput.values.nest import structure_of


def block_of(nest: Any) -> ColumnBlock:
    """A block of the rows of a nest of arrays."""
    structure = structure_of(nest)
    columns = [Dense(array) for array in structure.flatten(nest)]
    return ColumnBlock(structure, columns, len(columns[0]))


def judged(function: Callable[..., Any], nest: Any, *, measured: bool = False) -> str:
    """The verdict on a function for a block; every element of a whole block is compared with its own call."""
    chain, block = Chain([function]), block_of(nest)
    verdict = Vectorizer([function], chain, measured=measured)
    made = verdict.made(block)
    if made is not None:
        for row, element in enumerate(block.elements()):
            alone = chain(element)
            alone = tuple(alone) if type(alone) is list else alone
            assert structure_of(alone) == made.structure
            for leaf, column in zip(made.structure.flatten(alone), made.columnar().columns, strict=True):
                assert same_bits(as_leaf(leaf), column.row(row)), (row, leaf, column.row(row))
    return str(verdict)


RNG = np.random.default_rng(7)
SCALARS = RNG.normal(size=40).astype(np.float32)
VECTORS = RNG.normal(size=(40, 6)).astype(np.float32)
IMAGES = RNG.integers(0, 256, (40, 5, 4, 3), dtype=np.uint8)
LABELS = RNG.integers(0, 10, 40)
EYE = np.eye(10, dtype=np.float32)
MEAN = np.float32([0.48, 0.45, 0.4])
