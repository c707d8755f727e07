# SPDX-License-Identifier: Apache-2.0
"""Elements that stand in several blocks are, whatever is done with them, those of the blocks copied into one."""

from functools import reduce
from itertools import chain, islice
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import distinput as di
from distinput.arrow.adopt import frozen
from distinput.columns.block import Block, ColumnBlock, concat_blocks
from distinput.columns.column import Column, Dense, Strings
from distinput.columns.picked import Picked
from distinput.columns.ragged import Objects, Ragged
from distinput.columns.regroup import column_of
from distinput.columns.rows import ChunkedBlock, RowQueue, chunked
from distinput.values.nest import structure_of

STRUCTURES = [0, (0, 0), {"a": 0, "b": (0,)}]


def leaf(kind: str, first: int, count: int) -> Column:
    """Rows whose values tell their number."""
    numbers = np.arange(first, first + count)
    match kind:
        case "scalars":
            return Dense(numbers)
        case "arrays":
            return Dense(np.repeat(numbers, 6).reshape(count, 2, 3).astype(np.float32))
        case "picked":
            return Picked(np.arange(200 * 2).reshape(200, 2), numbers)
        case "spans":
            return Strings.of([b"%d" % number for number in numbers])
    return Strings.of_array(np.array([[b"%d" % number, b""] for number in numbers], object).reshape(count, 2))


KINDS = ["scalars", "arrays", "picked", "spans", "objects"]


@st.composite
def blocks(draw: st.DrawFn) -> list[Block]:
    structure = structure_of(draw(st.sampled_from(STRUCTURES)))
    kinds = [draw(st.sampled_from(KINDS)) for _ in structure.paths]
    made, first = [], 0
    for count in draw(st.lists(st.integers(1, 9), min_size=1, max_size=4)):
        made.append(ColumnBlock(structure, [leaf(kind, first, count) for kind in kinds], count))
        first += count
    return made


@given(blocks(), st.data())
def test_elements_of_several_blocks_are_those_of_one(parts: list[Block], data: st.DataObject) -> None:
    total = sum(block.size for block in parts)
    first = data.draw(st.integers(0, total - 1))
    size = data.draw(st.integers(1, total - first))
    left = chunked(parts, first, size)
    assert isinstance(left, ChunkedBlock)
    right = concat_blocks(parts).rows(first, first + size)
    depth = 0
    for _ in range(data.draw(st.integers(0, 4))):
        match data.draw(st.sampled_from(["rows", "stack", "unstack", "steps", "take", "again", "copied"])):
            case "rows":
                start = data.draw(st.integers(0, right.size))
                stop = data.draw(st.integers(start, right.size + 1))
                left, right = left.rows(start, stop), right.rows(start, stop)
            case "stack":
                group = data.draw(st.integers(1, max(1, right.size)))
                end = right.size // group * group
                left, right = left.rows(0, end).stack(group), right.rows(0, end).stack(group)
                depth += 1
            case "unstack" if all(c.lengths() is not None for c in right.columnar().columns):
                left, right = left.unstack(), right.unstack()
                depth = max(0, depth - 1)
            case "steps":
                left, right = left.rows(0, right.size, 2), right.rows(0, right.size, 2)
            case "take" if right.size:
                numbers = np.array(data.draw(st.lists(st.integers(0, right.size - 1), max_size=5)), np.int64)
                left, right = left.take(numbers), right.take(numbers)
            case "again" if right.size > 1 and not depth:
                cut = data.draw(st.integers(1, right.size - 1))
                found = chunked([left.rows(0, cut), left.rows(cut, right.size)], 0, right.size)
                assert found is not None
                left = found
            case "copied":
                left = left.copied()
    same(left, right)


def same(left: Block, right: Block) -> None:
    assert left.size == right.size
    assert left.structure == right.structure
    for a, b in zip(left.elements(), right.elements(), strict=True):
        equal(a, b)
    parts = left.shared_parts()
    for a, b in zip(right.elements(), [] if parts is None else chain.from_iterable(parts), strict=parts is not None):
        equal(a, b)
    for index in range(right.size):
        equal(left.row(index), right.row(index))
    for one, other in zip(left.columnar().columns, right.columnar().columns, strict=True):
        assert one.dtype == other.dtype
        assert repr(one.lengths()) == repr(other.lengths())
    if right.size:
        assert left.nbytes > 0


def equal(left: Any, right: Any) -> None:
    assert structure_of(left) == structure_of(right)
    for a, b in zip(structure_of(left).flatten(left), structure_of(right).flatten(right), strict=True):
        assert type(a) is type(b)
        assert np.shape(a) == np.shape(b)
        assert np.array_equal(a, b)


def test_only_rows_that_cross_a_border_are_copied() -> None:
    a, b = np.arange(10), np.arange(10, 20)
    made = chunked([ColumnBlock(structure_of(0), [Dense(array)], 10) for array in (a, b)], 1, 18)
    assert made is not None
    views = [np.shares_memory(batch, a) or np.shares_memory(batch, b) for batch in made.stack(6).elements()]
    assert views == [True, False, True]


@pytest.mark.parametrize(
    "other",
    [
        Dense(np.zeros((3, 2))),
        Dense(np.zeros(3, np.float32)),
        Objects([np.zeros(()), np.zeros(1), np.zeros(2)], np.dtype(float)),
        Ragged(Dense(np.zeros(3)), np.arange(3), np.ones(3, np.int64)),
    ],
)
def test_rows_that_may_not_stack_are_not_left_where_they_are(other: Column) -> None:
    columns: list[Column] = [Dense(np.zeros(3)), other]
    assert chunked([ColumnBlock(structure_of(0), [column], 3) for column in columns], 0, 6) is None


def test_a_queue_gives_all_whole_groups_that_wait_and_marks_what_is_left() -> None:
    made = [(ColumnBlock(structure_of(0), [Dense(np.arange(n, n + 5))], 5), {"n": n + 5}) for n in (0, 5, 10)]
    queue = RowQueue(iter(made), {"input": {"n": 0}, "skip": 0})
    assert queue.fill(13)
    rows = queue.take_groups(4, lazily=True)
    assert isinstance(rows, ChunkedBlock)
    assert list(rows.elements()) == list(range(12))
    assert queue.mark() == {"input": {"n": 10}, "skip": 2}


@pytest.mark.parametrize("size", [1, 3, 7, [2, 3]])
@pytest.mark.parametrize("lazily", [False, True])
def test_rebatch_and_batch_give_the_same_batches_to_whoever_asks(size: Any, lazily: bool) -> None:
    words = np.array([b"x" * n for n in range(20)], object)
    parts = [di.data.Dataset.from_tensors((np.arange(n, n + 5), words[n : n + 5])) for n in (0, 5, 10, 15)]
    rows = parts[0].concatenate(parts[1]).concatenate(parts[2]).concatenate(parts[3])
    made = rows.rebatch(size) if isinstance(size, list) else rows.rebatch(2).rebatch(size).unbatch().batch(size)
    by_block = (element for block in made.iter_blocks() for element in block.elements())
    found = list(made if lazily else by_block)
    assert np.concatenate([numbers for numbers, _ in found]).tolist() == list(range(20))
    assert np.concatenate([texts for _, texts in found]).tolist() == words.tolist()


STEPS = [lambda ds: ds, lambda ds: ds.take(9), lambda ds: ds.repeat(2), lambda ds: ds.copied()]


def blocks_of(dataset: di.data.Dataset) -> list[int]:
    """How many elements each block has that its iterator gets."""
    iterator = iter(dataset)
    return [block.size for block, _ in iterator._iteration.stream]


@pytest.mark.parametrize("steps", STEPS)
def test_an_iterator_gets_one_block_for_each_that_is_read(steps: Any) -> None:
    parts = [di.data.Dataset.from_tensors(np.arange(n, n + 10)) for n in (0, 10, 20)]
    read = parts[0].concatenate(parts[1]).concatenate(parts[2]).map_rows(lambda rows: rows)  # of whole blocks
    # With batches that cross: by themselves they would make 2, 1, 1, 1, 2.
    assert blocks_of(steps(read.rebatch(4)))[:3] == [2, 3, 2]


@pytest.mark.parametrize("steps", STEPS)
def test_small_sources_in_memory_are_read_several_at_a_time(steps: Any) -> None:
    parts = [di.data.Dataset.from_tensors(np.arange(n, n + 10)) for n in range(0, 100, 10)]
    read = reduce(lambda a, b: a.concatenate(b), parts)
    assert blocks_of(steps(read.rebatch(4)))[0] > 10 // 4
    iterator = iter(read.rebatch(4))
    assert [row for batch in islice(iterator, 7) for row in batch.tolist()] == list(range(28))
    rest = read.rebatch(4).restore(iterator.state())
    assert [row for batch in rest for row in batch.tolist()] == list(range(28, 100))


def test_rows_of_several_blocks_of_arrays_are_those_of_one() -> None:
    parts = [ColumnBlock(structure_of(0), [Dense(np.arange(n, n + 6).reshape(2, 3))], 2) for n in (0, 6, 12)]
    several = chunked(parts, 1, 4)
    assert isinstance(several, ChunkedBlock)
    assert list(several.unstack().elements()) == list(range(3, 15))
    assert list(ChunkedBlock(parts, 0, 0).unstack().elements()) == []


@pytest.mark.parametrize("sizes", [[0, 0], [0, 2, 0], [0] * 17 + [3], [2] * 20])
def test_small_sources_may_be_empty(sizes: list[int]) -> None:
    rows = np.arange(sum(sizes) * 3).reshape(-1, 3)
    ends = np.cumsum(sizes)
    parts = [di.data.Dataset.from_tensor_slices(rows[end - size : end]) for size, end in zip(sizes, ends, strict=True)]
    read = reduce(lambda a, b: a.concatenate(b), parts)
    assert [row.tolist() for row in read.copied()] == rows.tolist()
    assert [int(value) for value in read.unbatch()] == rows.reshape(-1).tolist()
    assert [value for batch in read.rebatch(4) for value in batch.tolist()] == rows.reshape(-1).tolist()


def test_strings_that_came_as_objects_are_handed_out_as_views_that_nobody_can_write_to() -> None:
    words = np.array([b"a", b"bc", b""], object)
    (batch,) = di.data.Dataset.from_tensor_slices(words).batch(3)
    words[0] = b"changed"
    assert batch.tolist() == [b"a", b"bc", b""]
    with pytest.raises(ValueError, match="read-only"):
        batch[0] = b"x"
    column = frozen(ColumnBlock(structure_of(0), [column_of([np.array([[b"y"]], object)])], 1)).columns[0]
    assert isinstance(column, Strings)
    assert column.row(0).tolist() == [[b"y"]]
    assert column.compact().made is None


@pytest.mark.parametrize("wrap", [lambda texts: texts, lambda texts: {"t": texts}], ids=["bare", "dict"])
def test_an_element_over_two_blocks_that_cannot_be_made_is_passed(wrap: Any) -> None:
    texts = [b"a", b"b", b"\xff", b"d", b"e", b"f", b"g", b"h"]
    sources = [di.data.Dataset.from_tensor_slices(wrap(texts[at : at + 3])) for at in (0, 3, 6)]
    steps = iter(reduce(di.data.Dataset.concatenate, sources).as_text().batch(2))
    next(steps)
    with pytest.raises(di.errors.InvalidArgumentError, match="as_text: a text is not UTF-8"):
        next(steps)
    assert [list(each["t"]) if isinstance(each, dict) else list(each) for each in steps] == [["e", "f"], ["g", "h"]]


@pytest.mark.parametrize("ask", [lambda ds: ds, lambda ds: ds.copied(), lambda ds: ds.shuffle(3, seed=1)])
def test_what_crosses_a_border_keeps_its_byte_order(ask: Any) -> None:
    numbers = np.arange(8, dtype=np.dtype(np.int32).newbyteorder())
    sources = [di.data.Dataset.from_tensor_slices(numbers[at : at + 3]) for at in (0, 3, 6)]
    batches = list(ask(reduce(di.data.Dataset.concatenate, sources).batch(2)))
    assert [batch.dtype for batch in batches] == [numbers.dtype] * 4
    assert sorted(np.concatenate(batches).tolist()) == list(range(8))


def test_ragged_tensors_that_a_function_returns_keep_their_byte_order() -> None:
    numbers = np.arange(6, dtype=np.dtype(np.int32).newbyteorder())
    ragged = di.data.Dataset.from_tensor_slices(di.RaggedTensor.from_row_lengths(numbers, [3, 1, 0, 2])).ragged_batch(2)
    assert [each.values.dtype for each in ragged.map(lambda rows: rows)] == [numbers.dtype] * 2
    assert [each.values.dtype for each in ragged.map(lambda rows: rows).rebatch(3)] == [numbers.dtype] * 2


class Refusing(dict[str, Any]):
    """A mapping of the user's that refuses a number."""

    def __setitem__(self, key: str, value: Any) -> None:
        if 4 in value:
            raise ValueError("four")
        super().__setitem__(key, value)


def test_elements_behind_one_that_crosses_and_cannot_be_built_come_all_the_same() -> None:
    structure = structure_of(Refusing(a=1))
    blocks = [ColumnBlock(structure, [Dense(np.arange(first, first + 5))], 5) for first in (0, 5)]
    elements = ChunkedBlock(blocks, 0, 3, (3,)).elements()
    assert next(elements)["a"].tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="four"):
        next(elements)
    assert [element["a"].tolist() for element in elements] == [[6, 7, 8]]


def test_ragged_batches_of_arrays_keep_their_byte_order() -> None:
    rows = di.data.Dataset.range(23).map(lambda x: np.full(x % 3, x, ">i4"))
    batches = rows.bucket_by_sequence_length(np.size, [2], [2, 2]).ragged_batch(3)
    assert {batch.dtype for batch in batches} == {np.dtype(">i4")}
    assert batches.take(1).to_list() == [[[[0], [1]], [[0], [4]], [[2, 2], [5, 5]]]]


def test_a_number_pads_rows_of_the_other_byte_order() -> None:
    rows = di.data.Dataset.range(3).map(lambda x: np.full(x, x, ">i4"))
    (batch,) = rows.padded_batch(3, padding_values=np.int32(-1))
    assert (batch.dtype, batch.tolist()) == (np.dtype(">i4"), [[-1, -1], [1, -1], [2, 2]])
