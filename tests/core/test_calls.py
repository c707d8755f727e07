# SPDX-License-Identifier: Apache-2.0
"""Calls on the elements of a stream: whatever the blocks, the results come in order, and every mark leads to what is left."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import distinput as di
from distinput.columns.block import Block, Failure
from distinput.columns.rows import Together
from distinput.columns.state import Mark
from distinput.run.run import applied, bytes_of, called, calls_of, element_text
from distinput.values.nest import LEAF, structure_of

START: Mark = {"input": {"next": 0}, "skip": 0}
RANGE = di.data.Dataset.range(4)
SIZES = st.lists(st.one_of(st.integers(0, 80), st.just(-1)), max_size=5)
"""Rows of each block; -1: a failure."""


def stream(sizes: list[int], first: int = 0) -> Iterator[tuple[Block, dict[str, Any]]]:
    """Blocks from number `first` on; rows tell their own number."""
    for number in range(first, len(sizes)):
        rows = sum(max(0, size) for size in sizes[:number])
        size = sizes[number]
        values = [np.int64(row) for row in range(rows, rows + max(0, size))]
        block: Block = Failure(ValueError(f"block {number}")) if size < 0 else Block.of_elements(LEAF, values)
        yield block, {"next": number + 1}


def outcomes(sizes: list[int], mark: Mark, bad: set[int], most: int) -> list[tuple[list[Any], Mark]]:
    """What comes from a mark on, in parts, each with the mark after it; errors as their text."""

    def call(x: int) -> int:
        if x in bad:
            raise ValueError(f"element {x}")
        return 2 * int(x)

    found = []
    for results, rows, first, after in called(stream(sizes, mark["input"]["next"]), mark, call, most, tolerant=True):
        if type(rows) is Failure:
            found.append(([str(rows.error)], after))
        else:
            assert results == [2 * int(x) for x in rows.rows(first, first + len(results)).elements()]
            found.append((results, after))
    return found


@given(SIZES, st.sets(st.integers(0, 200)), st.integers(1, 100))
def test_every_element_has_its_result_and_every_mark_leads_to_the_rest(
    sizes: list[int], bad: set[int], most: int
) -> None:
    wanted: list[Any] = []
    row = 0
    for number, size in enumerate(sizes):
        wanted += [f"block {number}"] if size < 0 else []
        for x in range(row, row + max(0, size)):
            wanted.append(f"element {x}" if x in bad else 2 * x)
        row += max(0, size)
    parts = outcomes(sizes, START, bad, most)
    assert [item for part, _ in parts for item in part] == wanted
    seen = 0
    for part, mark in parts[:8]:
        assert 1 <= len(part) <= most
        seen += len(part)
        assert [item for rest, _ in outcomes(sizes, mark, bad, most) for item in rest] == wanted[seen:]


def test_what_was_made_before_an_error_is_sent_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("distinput.run.run.perf_counter", lambda: 0.0)  # a busy machine sends less at a time
    parts = called(stream([5]), START, lambda x: 1 // (3 - int(x)), 100)
    results, *_, mark = next(parts)
    assert (results, mark) == ([0, 0, 1], {"input": {"next": 0}, "skip": 3})
    with pytest.raises(ZeroDivisionError) as caught:
        next(parts)
    assert caught.value.__notes__ == ["on element np.int64(3)"]


def test_stop_iteration_of_a_function_is_an_error_and_no_end() -> None:
    def call(x: int) -> int:
        if x == 1:
            raise StopIteration
        return 0

    with pytest.raises(RuntimeError, match="raised StopIteration, which ends no dataset") as caught:
        list(called(stream([3]), START, call))
    assert caught.value.__notes__ == ["on element np.int64(1)"]


@pytest.mark.parametrize(
    "made",
    {
        "flat_map": lambda f: RANGE.flat_map(f),
        "interleave": lambda f: RANGE.interleave(f),
        "interleave on threads": lambda f: RANGE.interleave(f, num_parallel_calls=2),
        "group_by_window": lambda f: RANGE.group_by_window(lambda x: x, lambda _, rows: f(rows), window_size=2),
        "map": lambda f: RANGE.map(f),
        "map of rows": lambda f: RANGE.batch(2).map_rows(f),
        "filter": lambda f: RANGE.filter(f),
        "scan": lambda f: RANGE.scan(0, lambda carried, x: (carried, f(x))),
    }.items(),
    ids=lambda pair: pair[0],
)
def test_stop_iteration_is_told_alike_wherever_a_function_is_called(made: Any) -> None:
    def stopping(x: Any) -> Any:
        raise StopIteration

    with pytest.raises(RuntimeError, match="the function raised StopIteration, which ends no dataset"):
        list(made[1](stopping))


@pytest.mark.parametrize("unpack, wanted", [(True, [3, 7]), (False, [(1, 2), (3, 4)])])
def test_tuples_are_unpacked_when_asked_for(unpack: bool, wanted: list[Any]) -> None:
    block = Block.of_elements(structure_of((1, 2)), [(1, 2), (3, 4)])

    def call(*arguments: Any) -> Any:
        return int(sum(arguments)) if len(arguments) == 2 else tuple(map(int, arguments[0]))

    ((results, *_),) = called(iter([(block, {})]), {"input": {}, "skip": 0}, call, unpack=unpack)
    assert results == wanted


def test_large_results_are_sent_before_they_are_many() -> None:
    sent = [len(results) for results, *_ in called(stream([64]), START, lambda x: np.zeros(1 << 18, np.uint8))]
    assert sum(sent) == 64
    assert max(sent) < 32


def test_the_first_result_does_not_wait_for_those_of_a_slow_function(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr("distinput.run.run.perf_counter", lambda: clock[0])

    def call(x: int) -> int:
        clock[0] += 1.0
        return int(x)

    assert [results for results, *_ in called(stream([3]), START, call)] == [[0], [1], [2]]


@given(st.lists(st.integers(0, 200), max_size=4), st.integers(1, 80), st.floats(1e-5, 0.02))
def test_results_come_in_groups_unless_those_take_long(sizes: list[int], group: int, seconds: float) -> None:
    clock, sent, last = [0.0], 0, 0.0

    def call(x: int) -> int:
        clock[0] += seconds
        return int(x)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("distinput.run.run.perf_counter", lambda: clock[0])
        blocks = applied(
            stream(sizes), START, lambda rows: calls_of(call, rows, unpack=False), together=Together(group)
        )
        for results, rows, first, _ in blocks:
            assert results == list(range(sent, sent + len(results)))
            sent += len(results)
            lasted, last = clock[0] - last, clock[0]
            at_an_end = sent % group == 0 or first + len(results) == rows.size
            assert at_an_end or lasted > 0.016, "a part of a group that would have been whole soon"
            assert lasted < 0.016 + 16 * seconds, "results that nobody waits for so long"
    assert sent == sum(sizes)


def test_a_batch_waits_for_its_rows_together(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr("distinput.run.run.perf_counter", lambda: clock[0])

    def call(x: int) -> int:
        clock[0] += 0.001
        return int(x)

    with iter(di.data.Dataset.range(24).map(call, vectorize=False).batch(8)) as iterator:
        assert [batch.tolist() for batch in iterator] == np.arange(24).reshape(3, 8).tolist()
        assert [entry["blocks"] for name, entry in iterator.stats().items() if "map" in name] == [3]


@pytest.mark.parametrize("vectorize", [False, "auto"])
@pytest.mark.parametrize("group", [100, 200])
def test_results_of_a_batch_lie_together(vectorize: Any, group: int) -> None:
    rows = np.arange(400 * 8_000, dtype=np.int32).reshape(400, 8_000)

    def call(x: np.ndarray) -> np.ndarray:
        return x + 1

    with iter(di.data.Dataset.from_tensor_slices(rows).map(call, vectorize=vectorize).batch(group)) as iterator:
        assert np.array_equal(np.concatenate(list(iterator)), rows + 1)
        blocks = [entry["blocks"] for name, entry in iterator.stats().items() if "map" in name]
    assert blocks[0] <= 400 / group + 4


@pytest.mark.parametrize(
    "result, nbytes",
    [(1, 1), (b"abc", 3), ("", 1), (np.zeros(4), 32), ([], 1), ({"a": np.zeros(2), "b": (b"xy", 3)}, 18), (None, 1)],
)
def test_bytes_of_a_result(result: Any, nbytes: int) -> None:
    assert bytes_of(result) == nbytes


def test_the_text_of_a_long_element_is_cut() -> None:
    assert element_text((1, "a")) == "element (1, 'a')"
    assert element_text("x" * 500) == "element '" + "x" * 199 + "..."
