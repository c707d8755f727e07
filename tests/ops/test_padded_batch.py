# SPDX-License-Identifier: Apache-2.0
import itertools
import math
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import distinput as di
from distinput.columns.block import Block
from distinput.errors import DataLossError, InvalidArgumentError
from distinput.kernels.spans import pad_spans
from distinput.streaming import padding
from distinput.streaming.padding import Padding
from distinput.testing import check_restart
from distinput.testing.block_sizes import small_blocks
from distinput.values.buffers import FEWEST_BYTES
from tests.ops.iterating import plain, until_error

RANGE = di.data.Dataset.range


def counting(*sizes: int) -> di.data.Dataset:
    """Vectors 0, 1, ... of these lengths."""
    rows = [np.arange(n) for n in sizes]
    return di.data.Dataset.from_generator(lambda: iter(rows), output_signature=di.TensorSpec([None], "int64"))


def test_elements_are_padded_to_the_longest_of_the_batch() -> None:
    assert [plain(x) for x in counting(1, 2, 3).padded_batch(2)] == [[[0, 0], [0, 1]], [[0, 1, 2]]]


def test_elements_of_one_shape_in_each_block_but_not_in_all() -> None:
    made = RANGE(3).batch(2).padded_batch(2)
    with small_blocks(1):
        assert [plain(x) for x in made] == [[[0, 1], [2, 0]]]


@pytest.mark.parametrize("width", [[4], (4,), 4])
def test_or_to_a_given_shape(width: Any) -> None:
    made = counting(1, 2).padded_batch(2, padded_shapes=width, padding_values=np.int64(9))
    assert made.element_spec == di.TensorSpec([None, 4], "int64")
    assert [plain(x) for x in made] == [[[0, 9, 9, 9], [0, 1, 9, 9]]]


@pytest.mark.parametrize("open_size", [None, -1])
def test_none_and_minus_one_leave_a_dimension_open(open_size: int | None) -> None:
    assert counting(1).padded_batch(2, padded_shapes=[open_size]).element_spec == di.TensorSpec([None, None], "int64")


def test_a_python_number_takes_the_dtype_of_its_component() -> None:
    made = RANGE(3).map(lambda x: (np.full(x, 0.5), np.full(x, 1))).padded_batch(3, padding_values=-1)
    assert [plain(x) for x in made] == [([[-1.0, -1.0], [0.5, -1.0], [0.5, 0.5]], [[-1, -1], [1, -1], [1, 1]])]


def test_a_python_number_becomes_no_infinite_one() -> None:
    halves = di.data.Dataset.from_tensors(np.ones(1, np.float16))
    with pytest.raises(InvalidArgumentError, match="is too large for float16, got 70000"):
        halves.padded_batch(1, padded_shapes=[2], padding_values=70_000)
    assert plain(next(iter(halves.padded_batch(1, padded_shapes=[2], padding_values=math.inf)))) == [[1.0, math.inf]]
    with pytest.raises(InvalidArgumentError, match=r"is too large for complex64, got 1e\+300"):
        di.data.Dataset.from_tensors(np.ones(1, np.complex64)).padded_batch(1, padded_shapes=[2], padding_values=1e300)


def test_strings_are_padded_with_nothing() -> None:
    made = RANGE(3).map(lambda x: np.array([b"a"] * int(x), object)).padded_batch(3)
    assert [plain(x) for x in made] == [[[b"", b""], [b"a", b""], [b"a", b"a"]]]


def test_the_last_batch_can_be_dropped() -> None:
    made = counting(1, 1, 1).padded_batch(2, drop_remainder=True)
    assert [plain(x) for x in made] == [[[0], [0]]]
    assert made.element_spec == di.TensorSpec([2, None], "int64")


def test_a_longer_element_is_an_error_at_iteration() -> None:
    before, error = until_error(counting(1, 2, 3).padded_batch(1, padded_shapes=[2]))
    assert before == [[[0, 0]], [[0, 1]]]
    assert isinstance(error, DataLossError)
    assert (
        "Attempted to pad to a smaller size than the input element: padded_shapes allows [2], an element needs [3]"
        in str(error)
    )


PAIRS = RANGE(3).map(lambda x: {"a": np.zeros([2], np.float32), "b": x})


@pytest.mark.parametrize(
    "kwargs, error, message",
    [
        ({"batch_size": 0}, InvalidArgumentError, "batch_size must be greater than zero, got 0"),
        (
            {"padded_shapes": {"a": [2, 2], "b": []}},
            InvalidArgumentError,
            r"The padded shape \(2, 2\) is not compatible with the shape \(2,\) of component \['a'\]: the ranks differ",
        ),
        (
            {"padded_shapes": {"a": [1], "b": []}},
            InvalidArgumentError,
            r"The padded shape \(1,\) is not compatible with the shape \(2,\) of component \['a'\]: it is smaller",
        ),
        ({"padded_shapes": {"a": [1]}}, TypeError, "the structures differ: expected a dict with keys"),
        (
            {"padding_values": {"a": [1.0], "b": 0}},
            InvalidArgumentError,
            r"the padding value of component \['a'\] must be a scalar, got \[1.0\]",
        ),
        (
            {"padding_values": {"a": np.float64(0), "b": 0}},
            TypeError,
            r"the padding value of component \['a'\] must have its dtype float32, got float64",
        ),
        ({"padding_values": {"a": "x", "b": 0}}, TypeError, "must have its dtype float32, got string"),
        (
            {"padding_values": {"a": 1e40, "b": 0}},
            InvalidArgumentError,
            r"the padding value of component \['a'\] is too large for float32, got 1e\+40",
        ),
    ],
)
def test_arguments_are_checked(kwargs: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        PAIRS.padded_batch(**{"batch_size": 2, **kwargs})


def test_padding_values_are_nested_as_the_element() -> None:
    # TensorFlow 2.21 answers with a TypeError too.
    with pytest.raises(TypeError, match="padded_batch: padding_values must be nested as the element, got"):
        counting(1).padded_batch(2, padding_values=(np.int64(0),))


def test_an_unknown_rank_needs_a_shape() -> None:
    dataset = di.data.Dataset.from_generator(lambda: [[1]], output_signature=di.TensorSpec(None, "int64"))
    with pytest.raises(InvalidArgumentError, match="has an unknown rank; give padded_shapes for it"):
        dataset.padded_batch(2)
    assert [plain(x) for x in dataset.padded_batch(2, padded_shapes=[None])] == [[[1]]]


@st.composite
def sequences(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Elements of every kind of leaf."""
    dtype = draw(st.sampled_from(["int16", "float32", "complex128", "bool"]))
    inner = draw(st.sampled_from([(), (2,)]))
    made = []
    for number, size in enumerate(draw(st.lists(st.integers(0, 9), max_size=20))):
        numbers = np.arange(1, size * 2 + 1).reshape(size, 2) + number
        rows = (numbers if inner else numbers.sum(axis=1)).astype(dtype)
        texts = np.array([b"%d" % number] * (size % 3), object)
        made.append({"pair": np.array([number, size]), "row": rows, "size": np.int64(size), "texts": texts})
    return made


@given(sequences(), st.integers(1, 4), st.integers(1, 7), st.booleans(), st.booleans(), st.booleans())
def test_batches_are_what_numpy_pads(
    elements: list[dict[str, Any]], size: int, rows: int, texts: bool, wide: bool, cached: bool
) -> None:
    if not elements:
        return
    keys = ["pair", "row", "size", *(["texts"] if texts else [])]
    shown = [{key: element[key] for key in keys} for element in elements]
    inner, dtype = elements[0]["row"].shape[1:], elements[0]["row"].dtype
    shapes = {"pair": [2 + wide], "row": [9 if wide else None, *inner], "size": [], "texts": [None]}
    fills = {"pair": 0, "row": dtype.type(1), "size": 0, "texts": "x"}
    signature = {
        "pair": di.TensorSpec([2], np.int64),
        "row": di.TensorSpec([None, *inner], dtype),
        "size": di.TensorSpec([], np.int64),
        "texts": di.TensorSpec([None], object),
    }
    source = di.data.Dataset.from_generator(lambda: iter(shown), output_signature={k: signature[k] for k in keys})
    if cached:
        source = source.cache()
        source.to_list()
    dataset = source.padded_batch(size, {k: shapes[k] for k in keys}, {k: fills[k] for k in keys})
    expected = []
    for first in range(0, len(shown), size):
        part = shown[first : first + size]
        batch: dict[str, Any] = {}
        for key in keys:
            items = [np.asarray(element[key]) for element in part]
            width = [max(dims) for dims in zip(*[item.shape for item in items], strict=True)]
            if wide and key in ("pair", "row"):
                width[0] = shapes[key][0]
            fill = b"x" if key == "texts" else fills[key]
            out = np.full((len(items), *width), fill, items[0].dtype)
            for row, item in enumerate(items):
                place: Any = (row, *map(slice, item.shape))
                out[place] = item
            batch[key] = out
        expected.append(plain(batch))
    with small_blocks(rows):
        assert [plain(batch) for batch in dataset] == expected
    assert [plain(batch) for batch in dataset] == expected
    check_restart(dataset)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=30), st.booleans(), st.data())
def test_many_batches_are_what_each_of_them_is_alone(sizes: list[int], lazily: bool, data: st.DataObject) -> None:
    rows = next(counting(*sizes).iter_blocks())
    counts, left = [], len(rows)
    while left:
        counts.append(data.draw(st.integers(1, left)))
        left -= counts[-1]
    late = (lambda _: None) if lazily else None
    pad = Padding(((data.draw(st.sampled_from([None, 6, 9])),),), (np.int64(-1),))

    def each(blocks: Any) -> list[Any]:
        found: list[Any] = []
        try:
            found.extend(plain(element) for block in blocks for element in block.elements())
        except DataLossError as error:
            found.append(str(error))
        return found

    def alone() -> Any:
        first = 0
        for count in counts:
            yield pad.batch([rows.rows(first, first + count)])
            first += count

    def together() -> Any:
        done = 0
        for block, size in pad.batches(rows, np.array(counts), late):
            assert isinstance(block, Block)
            done += size
            yield block
        assert done == len(rows)

    assert each(together()) == each(alone())


@pytest.mark.parametrize("cached", [False, True])
def test_batches_that_are_kept_are_not_written_over(cached: bool) -> None:
    width = FEWEST_BYTES // 8
    rows = [np.full(width - n, n) for n in range(6)]
    source = di.data.Dataset.from_generator(lambda: iter(rows), output_signature=di.TensorSpec([None], "int64"))
    if cached:
        source = source.cache()
        source.to_list()
    kept = list(source.padded_batch(1))
    assert [batch[0].tolist() for batch in kept] == [row.tolist() for row in rows]


@pytest.mark.parametrize("width", [None, 20])
def test_rows_that_are_gathered_late(width: int | None) -> None:
    images = np.arange(50 * 16).reshape(50, 16)
    dataset = di.data.Dataset.from_tensor_slices(images).shuffle(50, seed=3, reshuffle_each_iteration=False)
    expected = np.zeros((50, width or 16), np.int64)
    expected[:, :16] = list(dataset)
    made = list(dataset.padded_batch(7, [width]))
    assert np.concatenate(made).tolist() == expected.tolist()


def test_rows_that_lie_apart() -> None:
    # The spans of every third row do not lie side by side, which compiled kernels ask for.
    flat, sizes = np.arange(45), np.arange(10)
    lists = pa.LargeListArray.from_arrays(pa.array(np.append(0, sizes.cumsum())), pa.array(flat))
    rows = di.data.Dataset.from_tensor_slices(lists).shard(3, 1)
    with (
        mock.patch.object(padding, "pad_spans", pad_spans.compiled()),
        mock.patch.object(padding, "pad_spans", pad_spans.compiled()),
    ):
        assert [plain(x) for x in rows.padded_batch(2)] == [
            [[0, 0, 0, 0], [6, 7, 8, 9]],
            [[21, 22, 23, 24, 25, 26, 27]],
        ]


def test_rows_of_items_that_hold_nothing() -> None:
    rows = [np.zeros((size, 0), np.int64) for size in (1, 3, 2)]
    source = di.data.Dataset.from_generator(lambda: rows, output_signature=di.TensorSpec([None, 0], "int64")).cache()
    assert [batch.shape for batch in source.padded_batch(2)] == [(2, 3, 0), (1, 2, 0)]
    assert [batch.shape for batch in source.padded_batch(2)] == [(2, 3, 0), (1, 2, 0)]


@given(st.lists(st.integers(0, 9), max_size=30), st.integers(1, 4), st.sampled_from([None, 9]))
def test_what_looks_at_whole_blocks_sees_the_same(sizes: list[int], size: int, width: int | None) -> None:
    source = counting(*sizes).cache()
    source.to_list()
    dataset = source.padded_batch(size, [width])
    expected = [plain(batch) for batch in dataset]
    assert [plain(batch) for batch in dataset.prefetch(2)] == expected
    assert sorted(map(str, dataset.shuffle(3, seed=1).to_list())) == sorted(map(str, dataset.to_list()))
    rows = [row for batch in expected for row in batch]
    assert [plain(row) for row in dataset.unbatch()] == rows
    assert [plain(batch) for batch in dataset.skip(1).take(2)] == expected[1:3]


@pytest.mark.parametrize("mapped", [False, True])
def test_the_time_of_padding_is_counted_for_the_step_although_batches_have_been_sent(mapped: bool) -> None:
    source = counting(1, 2, 3).cache()
    source.to_list()
    dataset = source.padded_batch(1)
    if mapped:
        dataset = dataset.map(lambda batch: batch)
    with (
        mock.patch.object(padding, "GROUP_BYTES", 1),
        mock.patch.object(padding, "perf_counter", side_effect=itertools.count()),
        iter(dataset) as iterator,
    ):
        assert len(list(iterator)) == 3
        stats = iterator.stats()
    (name,) = [name for name in stats if name.endswith("padded_batch")]
    assert stats.slowest == name
    assert 3 <= stats[name]["busy"] < 4
    assert all(told["busy"] < 1 for other, told in stats.items() if other != name)
    assert stats.outside < 1
