# SPDX-License-Identifier: Apache-2.0
"""Results of functions that lie side by side from the beginning are what they are anywhere else."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import distinput as di
from distinput.columns.block import ColumnBlock, side_by_side
from distinput.columns.column import Dense, Strings
from distinput.columns.regroup import whole_of
from distinput.columns.rows import Together
from distinput.testing import check_dataset
from distinput.values.nest import LEAF, structure_of

NESTS: list[Any] = [
    lambda image, n: image,
    lambda image, n: (image, n),
    lambda image, n: (n, image, image + 1),
    lambda image, n: {"image": image, "mask": image > 3, "key": b"%d" % n},
    lambda image, n: {"key": b"%d" % n, "more": {"image": image}} if n % 2 else {"more": {"image": image}, "key": b""},
    lambda image, n: [image, [n, n]],
    lambda image, n: (image, np.array(f"2024-01-{n % 28 + 1:02}", "M8[D]"), np.array(n)),
    lambda image, n: {"image": image, "words": np.array([b"%d" % n], object)},
]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have small arrays lie together."""
    monkeypatch.setattr("distinput.columns.rows._FEWEST_BYTES", 1)
    monkeypatch.setattr("distinput.columns.rows._FEWEST_TOGETHER", 1)
    monkeypatch.setattr("distinput.columns.rows._FEWEST_PAST_CACHES", 1)


def outcome(dataset: Any) -> list[str]:
    """The elements, and the error at the end; as texts, since nests of arrays cannot be compared."""
    seen: list[str] = []
    elements: Iterator[Any] = iter(dataset)
    try:
        seen.extend(map(repr, elements))
    except Exception as error:  # noqa: BLE001 - compared
        seen.append(f"{type(error).__name__} {error}")
    return seen


@given(
    nest=st.sampled_from(NESTS),
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=4),
    group=st.integers(1, 8),
    failing=st.sets(st.integers(0, 30), max_size=2),
    odd=st.sets(st.integers(0, 30), max_size=1),
    cached=st.sampled_from([0, 1 << 20]),
    tolerant=st.booleans(),
    ragged=st.booleans(),
)
def test_batches_are_those_of_results_that_lie_anywhere(
    nest: Any,
    sizes: list[int],
    group: int,
    failing: set[int],
    odd: set[int],
    cached: int,
    *,
    tolerant: bool,
    ragged: bool,
) -> None:
    held = np.zeros((3, 2), np.float32)

    def call(n: int) -> Any:
        if n in failing:
            raise ValueError(f"no {n}")
        held[...] = n
        image = held.T if n % 3 else np.full((2, 3), n, np.float32)  # its own array again, and new ones
        return nest(image[:1] if n in odd else image, n)

    def dataset() -> Any:
        rows = di.data.Dataset.range(0)
        for size, end in zip(sizes, np.cumsum(sizes).tolist(), strict=True):
            rows = rows.concatenate(di.data.Dataset.range(end - size, end))  # blocks that end within groups
        mapped = rows.map(call, vectorize=False)
        batches = mapped.ragged_batch(group) if ragged else mapped.batch(group)
        return batches.ignore_errors() if tolerant else batches

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("distinput.columns.rows._FEWEST_BYTES", 1 << 60)
        wanted = outcome(dataset())
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("distinput.columns.rows.most_in_caches", lambda: cached)
        assert outcome(dataset()) == wanted


@pytest.mark.parametrize("other", [1.0, [1.0, 2.0], b"text", np.ma.array([1.0, 2.0])])
@pytest.mark.parametrize("place", [0, 2, 5])
def test_what_is_no_plain_array_takes_no_row_of_those_that_are(other: Any, place: int) -> None:
    def call(n: int) -> Any:
        return other if n == place else np.full(2, float(n))

    def dataset() -> Any:
        return di.data.Dataset.range(7).map(call, vectorize=False).batch(3)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("distinput.columns.rows._FEWEST_BYTES", 1 << 60)
        wanted = outcome(dataset())
    assert outcome(dataset()) == wanted


def test_a_pass_goes_on_wherever_it_stopped() -> None:
    def call(n: int) -> Any:
        return np.full((2, 3), n, np.float32), n

    check_dataset(lambda: di.data.Dataset.range(11).map(call, vectorize=False).batch(3))


def test_a_batch_that_comes_in_several_blocks_is_copied_once() -> None:
    """Blocks of the input end within batches."""
    rows = di.data.Dataset.range(5).concatenate(di.data.Dataset.range(5, 16))
    dataset = rows.map(lambda n: (np.full(20_000, n), n), vectorize=False).batch(8)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("distinput.columns.regroup.empty", None)  # of the copy
        batches = list(dataset)
    assert [batch.tolist() for _, batch in batches] == [list(range(8)), list(range(8, 16))]
    assert [images[:, -1].tolist() for images, _ in batches] == [list(range(8)), list(range(8, 16))]


def test_large_results_of_another_shape_stay_few_in_a_block() -> None:
    together, results = Together(100), [np.zeros(2), np.zeros(3), np.zeros(3)]
    assert together.left() > 100
    assert together.begin(results[0]) == 100
    settled = [together.settle(result) for result in results]
    assert settled[0] is not results[0]
    assert settled[1] is results[1]
    assert not together.holds_all
    assert together.settle(results[2]) is results[2]
    assert together.left() > 100
    assert together.begin(results[0]) == 0


@pytest.mark.parametrize("other", [np.array(1), np.array(["2024-01-01"], "M8[D]"), np.array([b"text"], object)])
def test_a_small_array_of_another_kind_leaves_large_ones_together(monkeypatch: pytest.MonkeyPatch, other: Any) -> None:
    monkeypatch.setattr("distinput.columns.rows._FEWEST_BYTES", 100)
    together, image = Together(100), np.zeros(20)
    together.left()
    assert together.begin((image, other)) == 100
    (settled, beside), (_, large) = together.settle((image, other)), together.settle((image, np.zeros(20, "M8[D]")))
    assert settled is not image
    assert beside is other
    assert large.nbytes == 160
    assert not together.holds_all
    together = Together(100)
    assert together.begin((image, np.zeros(20, "M8[D]"))) == 0


@pytest.mark.parametrize("most, past", [(99, 2), (16 * 80, 0)])
def test_a_group_larger_than_the_caches_is_copied_past_them(
    monkeypatch: pytest.MonkeyPatch, most: int, past: int
) -> None:
    calls = []
    monkeypatch.setattr("distinput.columns.rows.most_in_caches", lambda: most)
    monkeypatch.setattr("distinput.kernels.spans.copy_past_caches", lambda *args: calls.append(args))
    together = Together(16)
    together.left()
    together.begin(np.zeros(10))
    for image in (np.zeros(10), np.zeros(20)[::2], np.ones(10)):  # the second one has gaps
        together.settle(image)
    assert [to for _, _, to in calls] == [0, 160][:past]


def test_results_become_large_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("distinput.columns.rows._FEWEST_BYTES", 100)

    def call(n: int) -> Any:
        return np.full(2 if n < 50 else 40, n)

    rows = di.data.Dataset.range(50).concatenate(di.data.Dataset.range(50, 120))
    batches = list(rows.map(call, vectorize=False).ragged_batch(5))
    assert [batch.values.tolist() for batch in batches] == [
        [n for n in range(first, first + 5) for _ in range(2 if n < 50 else 40)] for first in range(0, 120, 5)
    ]


@given(st.lists(st.integers(0, 6), min_size=3, max_size=3).map(sorted), st.booleans(), st.booleans())
def test_rows_side_by_side_are_a_view(cuts: list[int], one: bool, other: bool) -> None:
    array = np.arange(24, dtype=np.int16).reshape(6, 4)
    first, second = array[cuts[0] : cuts[1]], array[cuts[1] : cuts[2]]
    first.flags.writeable, second.flags.writeable = one, other
    whole = whole_of(first, second)
    if first.size and second.size and one == other:
        assert whole is not None
        assert np.array_equal(whole, np.concatenate([first, second]))
        assert np.shares_memory(whole, array)
        assert whole.flags.writeable == one
    else:
        assert whole is None
    for apart in (second, array[:, 1:][cuts[1] :], array.copy()[cuts[1] :], array[cuts[1] :].astype(np.int32)):
        assert whole_of(second, apart) is None


def test_blocks_side_by_side_are_one_unless_large_columns_lie_elsewhere() -> None:
    array, structure = np.arange(12).reshape(4, 3), structure_of((0, 0))

    def both(first: Any, second: Any) -> Any:
        return side_by_side(
            ColumnBlock(structure, [Dense(array[:1]), first], 1), ColumnBlock(structure, [Dense(array[1:]), second], 3)
        )

    texts = Strings.of([b"a", b"", b"cd", b"e"])
    joined = both(texts.rows(0, 1), texts.rows(1, 4))
    assert joined.columns[0].array.base is array.base
    assert list(joined.elements())[2][1] == b"cd"
    assert both(Dense(np.zeros((1, 4000))), Dense(np.zeros((3, 4000)))) is None
    assert side_by_side(ColumnBlock(LEAF, [texts], 4), ColumnBlock(LEAF, [texts], 4)) is None
