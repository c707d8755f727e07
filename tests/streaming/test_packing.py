# SPDX-License-Identifier: Apache-2.0
"""Sequences of any kind of column, from several blocks, in rows of one length."""

from typing import Any

import numpy as np
import pytest

from distinput.columns.block import Block, ColumnBlock
from distinput.columns.column import Column, Dense
from distinput.columns.ragged import Arrays, Objects, Ragged
from distinput.columns.regroup import column_of
from distinput.ops.pack import SequencePacking, spans_of_any
from distinput.values.nest import LEAF
from distinput.values.spec import TensorSpec

ROWS = [np.array([1, 2], np.int32), np.array([3], np.int32), np.array([4, 5, 6], np.int32)]


@pytest.mark.parametrize(
    "column",
    [
        Ragged(Dense(np.array([9, 4, 5, 6, 3, 1, 2], np.int32)), np.array([5, 4, 1]), np.array([2, 1, 3])),
        Arrays(ROWS, np.dtype(np.int32)),
        Objects(ROWS, np.dtype(np.int32)),
        column_of(ROWS),
    ],
)
def test_spans_of_every_kind_of_column(column: Column) -> None:
    flat, starts, sizes = spans_of_any(column)
    rows = [flat[start : start + size].tolist() for start, size in zip(starts, sizes, strict=True)]
    assert rows == [[1, 2], [3], [4, 5, 6]]


def test_spans_of_rows_of_one_length() -> None:
    flat, starts, sizes = spans_of_any(Dense(np.arange(12).reshape(3, 2, 2)))
    assert flat.shape == (6, 2)
    assert (starts.tolist(), sizes.tolist()) == ([0, 2, 4], [2, 2, 2])


def packed(parts: list[list[Any]], inner: tuple[int, ...] = (), first: int = 0) -> list[Any]:
    blocks: list[Block] = [ColumnBlock(LEAF, [Arrays(rows, rows[0].dtype)], len(rows)) for rows in parts]
    sizes = np.array([len(row) for rows in parts for row in rows])
    packing = SequencePacking(4, True, (TensorSpec([None, *inner], parts[0][0].dtype),), (-1,))
    return [arrays for arrays, _, _ in packing.rows(blocks, sizes, first)]


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_sequences_of_several_blocks(cut: int) -> None:
    ((values, segments, positions),) = packed([part for part in (ROWS[:cut], ROWS[cut:]) if part])
    assert values.tolist() == [[1, 2, -1, -1], [3, 4, 5, 6]]
    assert segments.tolist() == [[1, 1, 0, 0], [1, 2, 2, 2]]
    assert positions.tolist() == [[0, 1, 0, 0], [0, 0, 1, 2]]
    assert packed([ROWS], first=1)[0][0].tolist() == [[3, 4, 5, 6]]


def test_many_small_blocks_are_joined() -> None:
    rows = [np.full(4, n, np.int32) for n in range(40)]
    ((values, _, _),) = packed([[row] for row in rows])
    assert values.tolist() == [row.tolist() for row in rows]


def test_tokens_without_values() -> None:
    ((values, segments, _),) = packed([[np.zeros((3, 0)), np.zeros((1, 0))]], (0,))
    assert values.shape == (1, 4, 0)
    assert segments.tolist() == [[1, 1, 1, 2]]
