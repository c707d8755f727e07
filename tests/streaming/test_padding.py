# SPDX-License-Identifier: Apache-2.0
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distinput.columns.block import Block, ColumnBlock
from distinput.columns.column import Strings
from distinput.columns.ragged import Ragged
from distinput.columns.regroup import concat_columns
from distinput.errors import DataLossError, InvalidArgumentError
from distinput.streaming.padding import Padding
from distinput.values.nest import LEAF

VECTOR = Padding(((None,),), (np.int64(-1),))


def vectors(*sizes: int) -> Block:
    return Block.of_elements(LEAF, [np.arange(n) for n in sizes])


def plain(block: Block) -> Any:
    return [batch.tolist() for batch in block.elements()]


def test_rows_of_several_blocks_are_one_batch() -> None:
    assert plain(VECTOR.batch([vectors(1, 3), vectors(2)])) == [[[0, -1, -1], [0, 1, 2], [0, 1, -1]]]


def test_rows_of_several_ranks_below_the_first_are_padded_one_by_one() -> None:
    rows = Block.of_elements(LEAF, [np.ones((1, 2)), np.ones((2, 1))])
    batch = Padding(((None, None),), (0.0,)).batch([rows])
    assert plain(batch) == [[[[1.0, 1.0], [0.0, 0.0]], [[1.0, 0.0], [1.0, 0.0]]]]


def test_an_empty_block_adds_nothing() -> None:
    assert plain(VECTOR.batch([vectors(2), vectors(1).rows(0, 0)])) == [[[0, 1]]]


@given(sizes=st.lists(st.integers(0, 5), min_size=1, max_size=12), data=st.data())
def test_many_batches_at_once_equal_one_batch_after_the_other(sizes: list[int], data: st.DataObject) -> None:
    rows, counts = vectors(*sizes), []
    while sum(counts) < len(sizes):
        counts.append(data.draw(st.integers(1, len(sizes) - sum(counts))))
    ends = np.cumsum(counts).tolist()
    wanted = [plain(VECTOR.batch([rows.rows(end - n, end)]))[0] for n, end in zip(counts, ends, strict=True)]
    found, taken = [], 0
    for block, count in VECTOR.batches(rows, np.asarray(counts, np.int64)):
        found += plain(block)
        taken += count
    assert found == wanted
    assert taken == len(sizes)


WORDS = st.lists(st.binary(max_size=4), max_size=4)


@given(
    parts=st.lists(st.lists(WORDS, min_size=1, max_size=4), min_size=1, max_size=3),
    inner=st.sampled_from([(), (2,), (0,)]),
)
def test_rows_of_strings_end_with_empty_ones(parts: list[list[list[bytes]]], inner: tuple[int, ...]) -> None:
    def array(words: list[bytes]) -> Any:
        made = np.empty((len(words), *inner), object)
        for i, word in enumerate(words):
            made[i] = word
        return made

    blocks = []
    for rows in parts:
        sizes = np.array([len(row) for row in rows], np.int64)
        flat = Strings.of_array(array([word for row in rows for word in row]))
        blocks.append(ColumnBlock(LEAF, [Ragged(flat, np.cumsum(sizes) - sizes, sizes)], len(rows)))
    padding = Padding(((None,) * (1 + len(inner)),), (b"",))
    ((batch,),) = [
        list(block.elements()) for block, _ in padding.batches(_joined(blocks), np.array([sum(map(len, parts))]))
    ]
    rows = [row for part in parts for row in part]
    width = max(map(len, rows))
    assert batch.shape == (len(rows), width, *inner)
    for found, row in zip(batch, rows, strict=True):
        assert found.tolist() == array([*row, *[b""] * (width - len(row))]).tolist()
    (apart,) = list(padding.batch(blocks).elements())
    assert (apart.shape, apart.tolist()) == (batch.shape, batch.tolist())


def _joined(blocks: list[Any]) -> ColumnBlock:
    column = concat_columns([block.columns[0] for block in blocks])
    return ColumnBlock(LEAF, [column], len(column))


def test_batches_before_a_row_that_is_too_long_are_sent() -> None:
    padding = Padding(((2,),), (np.int64(0),))
    batches = padding.batches(vectors(1, 2, 3, 1), np.array([2, 2]))
    block, rows = next(batches)
    assert (plain(block), rows) == ([[[0, 0], [0, 1]]], 2)
    with pytest.raises(DataLossError, match=r"padded_shapes allows \[2\], an element needs \[3\]"):
        next(batches)


def test_another_rank_is_an_error() -> None:
    with pytest.raises(
        InvalidArgumentError, match=r"must have the rank of their padded shape \[None, None\], got shape \[2\]"
    ):
        Padding(((None, None),), (np.int64(0),)).batch([vectors(2)])
