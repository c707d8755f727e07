# SPDX-License-Identifier: Apache-2.0
"""Batches that are padded late are, whatever is done with them, the batches that NumPy pads at once."""

import pickle
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distinput.columns.block import ColumnBlock, concat_blocks
from distinput.columns.column import Column, StackError
from distinput.columns.ragged import Objects
from distinput.columns.regroup import split, stack
from distinput.kernels.spans import pad_spans
from distinput.streaming import padding as module
from distinput.streaming.padding import Padded, groups
from distinput.values.buffers import FEWEST_BYTES
from distinput.values.nest import LEAF

INNER = [(), (3,), (2, 2)]
DTYPES = ["uint8", "int64", "float32", "complex128", "bool"]


def columns(data: st.DataObject) -> tuple[Padded, Objects]:
    """The same batches, to be padded late and padded by NumPy."""
    inner, dtype = data.draw(st.sampled_from(INNER)), np.dtype(data.draw(st.sampled_from(DTYPES)))
    flat = (1 + np.arange(20 * int(np.prod(inner)))).reshape(20, *inner).astype(dtype)
    fill = np.full(inner, data.draw(st.sampled_from([0, 1, 7])), dtype)
    spans, counts, widths, batches = [], [], [], []
    for sizes in data.draw(st.lists(st.lists(st.integers(0, 6), min_size=1, max_size=4), max_size=6)):
        width = max(sizes) + data.draw(st.integers(0, 2))
        batch = np.empty((len(sizes), width, *inner), dtype)
        batch[...] = fill
        for row, size in zip(batch, sizes, strict=True):
            start = data.draw(st.integers(0, 20 - size))
            spans.append((start, size))
            row[:size] = flat[start : start + size]
        counts.append(len(sizes))
        widths.append(width)
        batches.append(batch)
    starts, lengths = np.array(spans, np.int64).reshape(-1, 2).T.copy()
    late = Padded(flat, starts, lengths, np.array(counts, np.int64), np.array(widths, np.int64), fill)
    return late, Objects(batches, dtype)


def same(left: Padded, right: Column) -> None:
    """Every way to look at them."""
    assert len(left) == len(right)
    assert left.dtype == right.dtype
    for index in range(len(left)):
        equal(left.row(index), right.row(index))
    assert left.nbytes == sum(value.nbytes for value in left.values())
    assert left.lengths().tolist() == [len(value) for value in right.values()]
    for other in (left, left.copied(), left.materialize(), pickle.loads(pickle.dumps(left))):
        assert len(other) == len(right)
        for a, b in zip(other.values(), right.values(), strict=True):
            equal(a, b)


def equal(left: Any, right: Any) -> None:
    assert left.shape == right.shape
    assert left.dtype == right.dtype
    assert left.tobytes() == right.tobytes()


def outcome(call: Callable[..., Column], *arguments: Any) -> tuple[list[Any], str]:
    """What a call gives, or its error."""
    try:
        return [np.asarray(value).tolist() for value in call(*arguments).values()], ""
    except StackError as error:
        return [], str(error)


@given(st.data())
def test_batches_padded_late_are_those_padded_at_once(data: st.DataObject) -> None:
    left, right = columns(data)
    with mock.patch.object(module, "GROUP_BYTES", data.draw(st.sampled_from([1, 60, 1 << 18]))):
        for _ in range(data.draw(st.integers(0, 3))):
            if data.draw(st.booleans()):
                ends = data.draw(st.tuples(st.integers(0, len(right)), st.integers(0, len(right))))
                step = data.draw(st.integers(1, 3))
                left, right = left.rows(*ends, step), right.rows(*ends, step)
            elif len(right):
                indices = np.array(data.draw(st.lists(st.integers(0, len(right) - 1), max_size=9)), np.int64)
                left, right = left.take(indices), right.take(indices)
        same(left, right)
        if len(right):
            size = data.draw(st.sampled_from([n for n in range(1, len(right) + 1) if len(right) % n == 0]))
            assert outcome(stack, left, size) == outcome(stack, right, size)
            cut = data.draw(st.integers(0, len(right)))
            counts = np.array([cut, len(right) - cut])
            assert outcome(split, left, counts) == outcome(split, right, counts)
            assert outcome(left.unstack) == outcome(right.unstack)
        twice = [concat_blocks([ColumnBlock(LEAF, [column], len(column))] * 2).columns[0] for column in (left, right)]
        assert len(twice[0]) == len(twice[1])
        for a, b in zip(twice[0].values(), twice[1].values(), strict=True):
            equal(a, b)


def test_a_batch_is_padded_when_it_is_handed_out() -> None:
    width = FEWEST_BYTES
    starts, lengths = np.array([0, 5]), np.array([9, width])
    counts = np.array([1, 1])
    late = Padded(np.zeros(2 * width), starts, lengths, counts, lengths, np.zeros(()))
    with (
        mock.patch.object(module, "pad_spans", wraps=pad_spans) as pad,
        mock.patch.object(module, "GROUP_BYTES", 1),
    ):
        values = late.values()
        assert pad.call_count == 0
        next(values)
        assert pad.call_count == 1


def test_the_memory_of_a_batch_serves_another_when_it_was_dropped() -> None:
    width = FEWEST_BYTES
    starts, lengths = np.zeros(6, np.int64), np.full(6, width)
    late = Padded(np.zeros(width), starts, lengths, np.full(6, 1), lengths, np.zeros(()))
    seen = set()
    for batch in late.values():
        seen.add(batch.__array_interface__["data"][0])
        del batch
    assert len(seen) < 6


@pytest.mark.parametrize(
    "sizes, expected", [([], []), ([9], [(0, 1)]), ([2, 2, 3, 9, 0, 0], [(0, 2), (2, 3), (3, 4), (4, 6)])]
)
def test_groups_are_as_large_as_they_may_be(sizes: list[int], expected: list[tuple[int, int]]) -> None:
    assert list(groups(sizes, 4)) == expected
