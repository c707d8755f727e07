# SPDX-License-Identifier: Apache-2.0
"""`pack`: the rules for its arguments and errors; the laws are in tests/laws."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.errors import InvalidArgumentError
from tests.depth import cases

VECTORS: Any = di.data.Dataset.range(1, 8).map(lambda n: np.full(n, n), output_signature=di.TensorSpec([None], "int64"))


def sequences(count: int, seed: int) -> Any:
    """Sequences of log-normal lengths from 10 to 2000."""
    random = np.random.default_rng(seed)
    sizes = np.clip(random.lognormal(5, 1, count), 10, 2000).astype(np.int64)
    values = random.integers(1, 30_000, int(sizes.sum()), np.int32)
    return di.data.Dataset.from_tensor_slices(di.RaggedTensor.from_row_lengths(values, sizes)), values, sizes


def test_a_row_holds_whole_sequences_with_their_numbers_and_positions() -> None:
    ds = VECTORS.take(4).pack(6)
    assert ds.element_spec == (
        di.TensorSpec([6], "int64"),
        di.TensorSpec([6], "int32"),
        di.TensorSpec([6], "int32"),
    )
    first, second = ds.to_list()
    assert first == ([1, 3, 3, 3, 0, 0], [1, 2, 2, 2, 0, 0], [0, 0, 1, 2, 0, 0])
    assert second == ([2, 2, 4, 4, 4, 4], [1, 1, 2, 2, 2, 2], [0, 1, 0, 1, 2, 3])


def test_components_of_one_length_are_packed_alike() -> None:
    ds = VECTORS.map(lambda x: {"ids": x, "vectors": np.tile(x[:, None], (1, 2)).astype("float32")}).pack(10)
    assert ds.element_spec["vectors"] == di.TensorSpec([10, 2], "float32")
    for row in ds:
        np.testing.assert_array_equal(row["vectors"], np.tile(row["ids"][:, None], (1, 2)))
        np.testing.assert_array_equal(row["segment_ids"] > 0, row["ids"] > 0)


def test_padding_values() -> None:
    ds = VECTORS.map(lambda x: {"ids": x, "weights": np.ones(len(x), "float32")})
    (row,) = ds.take(2).pack(4, padding_values={"ids": -1, "weights": None})
    assert row["ids"].tolist() == [1, 2, 2, -1]
    assert row["weights"].tolist() == [1, 1, 1, 0]
    (row,) = ds.take(2).pack(4, padding_values=7)
    assert row["weights"].tolist() == [1, 1, 1, 7]


def test_a_longer_sequence_is_split_or_truncated_if_so_stated() -> None:
    ds = VECTORS.skip(4).take(1)
    assert [row[0].tolist() for row in ds.pack(3, on_longer="split")] == [[5, 5, 5], [5, 5, 0]]
    assert [row[2].tolist() for row in ds.pack(3, on_longer="split")] == [[0, 1, 2], [0, 1, 0]]
    assert [row[0].tolist() for row in ds.pack(3, on_longer="truncate")] == [[5, 5, 5]]


def test_a_longer_sequence_is_an_error_that_says_the_cure() -> None:
    with pytest.raises(
        InvalidArgumentError, match="pack: a sequence of 4 tokens is longer than a row of 3; give on_l"
    ) as e:
        list(VECTORS.pack(3))
    assert "on element array([4, 4, 4, 4])" in e.value.__notes__


def test_what_came_before_and_after_an_error_is_delivered() -> None:
    rows = VECTORS.pack(6).ignore_errors().to_list()
    assert sum(sum(ids) for ids, _, _ in rows) == sum(n * n for n in range(1, 7))  # all but the last, of 7 tokens
    failing: Any = VECTORS.map(_fails_at_three)
    assert [ids for ids, _, _ in failing.pack(100).ignore_errors().map(lambda *x: x).to_list()] == [
        [1, 2, 2, *[0] * 97],
        [4] * 4 + [5] * 5 + [6] * 6 + [7] * 7 + [0] * 78,
    ]


def _fails_at_three(x: Any) -> Any:
    if len(x) == 3:
        raise ValueError("three")
    return x


def test_components_of_different_lengths_are_an_error() -> None:
    ds = VECTORS.map(lambda x: {"a": x, "b": x[1:]})
    with pytest.raises(InvalidArgumentError, match="must have the same length, but component \\['a'\\] has 1, "):
        list(ds.pack(9))


def test_sequences_without_tokens_take_no_place() -> None:
    ds = di.data.Dataset.range(3).map(lambda n: np.full(n, n), output_signature=di.TensorSpec([None], "int64"))
    assert [row[1].tolist() for row in ds.pack(4)] == [[1, 2, 2, 0]]
    assert ds.take(1).pack(4).to_list() == []


@pytest.mark.parametrize("strategy", ["best_fit", "first_fit"])
def test_rows_are_filled_and_hold_every_sequence_once(strategy: str) -> None:
    ds, values, sizes = sequences(cases(6_000, 60_000), 1)
    tokens = filled = 0
    seen = []
    for ids, segments, _ in ds.pack(2048, strategy):
        tokens += ids.size
        filled += int((segments > 0).sum())
        ends = np.flatnonzero(np.diff(segments, append=0)) + 1
        starts = np.append(0, ends[:-1])
        seen += [ids[a:b].tobytes() for a, b in zip(starts, ends, strict=True) if segments[a]]
    assert filled == len(values)
    assert filled / tokens >= 0.98
    assert sorted(seen) == sorted(part.tobytes() for part in np.split(values, np.cumsum(sizes)[:-1]))


def test_a_window_of_few_rows_leaves_more_padding_and_keeps_the_order_closer() -> None:
    ds, _, _ = sequences(500, 2)
    near = [ids for ids, _, _ in ds.pack(2048, window=1)]
    far = [ids for ids, _, _ in ds.pack(2048, window=64)]
    assert len(near) > len(far)


def test_rows_are_batched_as_views_and_distributed() -> None:
    ds, values, _ = sequences(300, 3)
    batches = [segments for _, segments, _ in ds.pack(2048).batch(4)]
    assert {batch.shape for batch in batches[:-1]} == {(4, 2048)}
    assert sum(int((batch > 0).sum()) for batch in batches) == len(values)


def test_a_restart_in_the_middle_of_a_window() -> None:
    ds, _, _ = sequences(700, 4)
    rows = [ids.tobytes() for ids, _, _ in ds.pack(2048, window=16)]
    iterator = iter(ds.pack(2048, window=16))
    for _ in range(21):
        next(iterator)
    resumed = ds.pack(2048, window=16).restore(iterator.state())
    assert [ids.tobytes() for ids, _, _ in resumed] == rows[21:]


@pytest.mark.parametrize(
    "make, error, message",
    [
        (lambda: VECTORS.pack(0), InvalidArgumentError, "pack: length must be greater than zero, got 0"),
        (lambda: VECTORS.pack(2**31), InvalidArgumentError, "pack: length must be below 2\\*\\*31"),
        (
            lambda: VECTORS.pack(4, "worst_fit"),
            InvalidArgumentError,
            "pack: strategy must be one of 'best_fit', 'first_fit', got 'worst_fit'",
        ),
        (
            lambda: VECTORS.pack(4, on_longer="drop"),
            InvalidArgumentError,
            "pack: on_longer must be one of 'raise', 'split', 'truncate', got 'drop'",
        ),
        (lambda: VECTORS.pack(4, window=0), InvalidArgumentError, "pack: window must be greater than zero, got 0"),
        (
            lambda: VECTORS.pack(4, padding_values="x"),
            TypeError,
            "pack: the padding value of the element must have its dtype",
        ),
        (
            lambda: di.data.Dataset.range(3).pack(4),
            InvalidArgumentError,
            "pack: the element has no first dimension, so it is not a sequence; repeat it for each token",
        ),
        (
            lambda: (
                di.data.Dataset.from_tensors(np.zeros((2, 3)))
                .map(lambda x: x, output_signature=di.TensorSpec(None, "float64"))
                .pack(4)
            ),
            InvalidArgumentError,
            "pack: the element has an unknown rank, so it is not a sequence; give map an output_signature",
        ),
        (
            lambda: VECTORS.map(lambda x: x, output_signature=di.TensorSpec([None], "int64")).ragged_batch(2).pack(4),
            InvalidArgumentError,
            "pack: the element is a ragged tensor; unbatch it",
        ),
        (
            lambda: VECTORS.padded_batch(2).pack(4),
            InvalidArgumentError,
            "pack: only the first dimension of a sequence may be unknown, got shape",
        ),
        (
            lambda: di.data.Dataset.from_tensor_slices([["a", "b"]]).pack(4),
            TypeError,
            "pack: the element is text; map it to numbers first",
        ),
        (
            lambda: VECTORS.map(lambda x: {"ids": x, "positions": x}).pack(4),
            InvalidArgumentError,
            "pack: it adds a component 'positions', which the elements have already; rename theirs before",
        ),
    ],
)
def test_wrong_arguments_are_refused(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


def test_cumulative_lengths_say_where_sequences_begin() -> None:
    lengths = np.random.default_rng(5).integers(0, 40, 300).tolist()
    ds = di.data.Dataset.from_tensor_slices(lengths).map(
        lambda n: {"ids": np.arange(n)}, output_signature={"ids": di.TensorSpec([None], "int64")}
    )
    plain, told = list(ds.pack(64)), list(ds.pack(64, cu_seqlens=True))
    assert len(plain) == len(told)
    for row, beside in zip(plain, told, strict=True):
        ends = beside.pop("cu_seqlens")
        assert ends.dtype == np.int32
        assert all(np.array_equal(row[name], beside[name]) for name in row)
        assert ends[0] == 0
        assert ends[-1] == 64
        for begin, end in pairwise(ends.tolist()):
            assert len(set(row["segment_ids"][begin:end].tolist())) == 1
            if row["segment_ids"][begin]:
                assert row["positions"][begin:end].tolist() == list(range(end - begin))
        assert len(ends) - 1 == len(set(row["segment_ids"].tolist()))


def test_cumulative_lengths_of_a_name_that_is_taken() -> None:
    ds = di.data.Dataset.from_tensors({"cu_seqlens": np.arange(3)})
    assert set(next(iter(ds.pack(4)))) == {"cu_seqlens", "segment_ids", "positions"}
    with pytest.raises(InvalidArgumentError, match="it adds a component 'cu_seqlens', which the elements have already"):
        ds.pack(4, cu_seqlens=True)
