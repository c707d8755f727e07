# SPDX-License-Identifier: Apache-2.0
"""Rows in slots are exchanged and drained as their numbers are."""

import weakref
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import distinput as di
from distinput.columns.block import Block, ColumnBlock, concat_blocks
from distinput.columns.column import Column, Dense, Strings
from distinput.columns.ragged import Objects, Ragged
from distinput.columns.regroup import column_of
from distinput.kernels.random_orders import drain_steps, shuffle_steps
from distinput.ops import shuffle as module
from distinput.ops.shuffle import ShuffleBuffer
from distinput.values.nest import structure_of
from distinput.values.spec import Spec, TensorSpec

STRUCTURE = structure_of((0,) * 6)
SPEC = Spec(
    STRUCTURE,
    (
        TensorSpec((), "int64"),
        TensorSpec((3, 1), "uint8"),
        TensorSpec((), bytes),
        TensorSpec((None,), "float32"),
        TensorSpec((0,), "int32"),
        TensorSpec((None, None), "int16"),
    ),
)


def rows_of(first: int, stop: int) -> Block:
    """Rows that tell their numbers, of every kind of column."""
    numbers = np.arange(first, stop)
    sizes = numbers % 4
    flat = np.repeat(numbers, sizes).astype(np.float32)
    words = [str(number).encode() * 3 for number in numbers]
    odd = [np.full((number % 3, number % 2 + 1), number, np.int16) for number in numbers]
    columns: list[Column] = [
        Dense(numbers),
        Dense(np.repeat(numbers, 3).reshape(-1, 3, 1).astype(np.uint8)),
        Strings.of(words),
        Ragged(Dense(flat), np.cumsum(sizes) - sizes, sizes),
        Dense(np.empty((len(numbers), 0), np.int32)),
        column_of(odd, np.dtype(np.int16)),
    ]
    return ColumnBlock(STRUCTURE, columns, len(numbers))


def shown(block: Block) -> list[Any]:
    return [[np.asarray(leaf).tolist() for leaf in element] for element in block.elements()]


@given(
    size=st.integers(1, 9),
    key=st.integers(0, 2**64 - 1),
    position=st.integers(0, 2**40),
    chunks=st.lists(st.integers(1, 7), max_size=12),
    drained=st.integers(1, 5),
    data=st.data(),
)
def test_rows_move_as_their_numbers_do(
    size: int, key: int, position: int, chunks: list[int], drained: int, data: st.DataObject
) -> None:
    with mock.patch.object(module, "_FEWEST", 2), mock.patch.object(module, "_FIRST_BYTES", 16):
        held, numbers = ShuffleBuffer(SPEC, size), np.arange(size)
        while held.count < size:
            step = data.draw(st.integers(1, size - held.count))
            held.add(rows_of(held.count, held.count + step))
        next_row, sent, expected = size, [], []
        for chunk in chunks:
            out = np.empty(chunk, np.int64)
            shuffle_steps(numbers, key, position, np.arange(next_row, next_row + chunk), out)
            sent.append(held.exchange(key, position, rows_of(next_row, next_row + chunk)))
            expected += out.tolist()
            position, next_row = position + chunk, next_row + chunk
        while held.count:
            count = min(drained, held.count)
            out = np.empty(count, np.int64)
            drain_steps(numbers, key, position, held.count, out)
            sent.append(held.drain(key, position, count))
            expected += out.tolist()
            position += count
    made = [row for block in sent for row in shown(block)]
    assert made == [shown(rows_of(number, number + 1))[0] for number in expected]
    assert concat_blocks(sent).size == len(expected)


@pytest.mark.parametrize("kind", ["strings", "lists", "objects"])
def test_large_rows_that_were_sent_do_not_stay(kind: str) -> None:
    megabyte, left = 1 << 20, []

    def column(number: int) -> Column:
        made: Column
        if kind == "strings":
            made = Strings.of([bytes(megabyte)])
            left.append(weakref.ref(made.data))
        elif kind == "lists":
            flat = np.zeros(megabyte, np.uint8)
            made = Ragged(Dense(flat), np.zeros(1, np.int64), np.full(1, megabyte))
            left.append(weakref.ref(flat))
        else:
            made = Objects([np.zeros((1, megabyte), np.uint8)], np.dtype(np.uint8))
            left.append(weakref.ref(made.items[0]))
        return made

    structure = structure_of(0)
    shape = {"strings": (), "lists": (None,), "objects": (None, None)}[kind]
    slots = ShuffleBuffer(Spec(structure, (TensorSpec(shape, bytes if kind == "strings" else "uint8"),)), 2)
    slots.add(ColumnBlock(structure, [column(0)], 1))
    slots.add(ColumnBlock(structure, [column(1)], 1))
    for number in range(2, 100):
        slots.exchange(7, number, ColumnBlock(structure, [column(number)], 1))
    assert sum(reference() is not None for reference in left) <= 2 + 2 + 16


def test_rows_that_fill_a_buffer_are_numbered_once() -> None:
    # Numbering all of them again for each chunk took a fifth of a pass over two million rows.
    rows, numbered = 40_000, 0
    make = np.arange

    def counting(*args: Any, **options: Any) -> Any:
        nonlocal numbered
        made = make(*args, **options)
        numbered += len(made)
        return made

    ds = di.data.Dataset.from_tensor_slices(np.arange(rows).reshape(-1, 500)).unbatch().shuffle(rows, seed=1)
    with mock.patch.object(np, "arange", counting):
        assert sorted(ds) == list(range(rows))
    assert numbered <= 2 * rows
