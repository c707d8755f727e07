# SPDX-License-Identifier: Apache-2.0
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from distinput.columns.block import Block, Failure
from distinput.functions.chain import Chain
from distinput.functions.workers import Done, FailedCall, Parts, work
from distinput.values.nest import LEAF

START = {"input": 0, "skip": 0}


def block(*numbers: int) -> Block:
    return Block.of_elements(LEAF, [np.int64(n) for n in numbers])


def stream(*blocks: Block, fails: bool = False) -> Iterator[tuple[Block, int]]:
    end = 0
    for rows in blocks:
        end += rows.size or 1
        yield rows, end
    if fails:
        raise ValueError("broken")


def numbers(rows: Block) -> list[int]:
    return [int(x) for x in rows.elements()]


def fails_at_odd(x: Any) -> Any:
    if x % 2:
        raise KeyError(int(x))
    return x * 10


def test_parts_begin_small_and_never_cross_a_block() -> None:
    parts = Parts(stream(block(*range(5)), block(5, 6)), START)
    sizes = []
    while (part := parts.next()) is not None:
        sizes.append(part[0].size)
        parts.size = 3
    assert sizes == [1, 3, 1, 2]
    assert parts.ended


def test_marks_lead_behind_so_many_rows_of_a_part() -> None:
    parts = Parts(stream(block(0, 1, 2), block(3, 4)), START)
    parts.size = 3
    first, at = parts.next() or pytest.fail("there is a part")
    assert numbers(first) == [0, 1, 2]
    assert at(1) == {"input": 0, "skip": 1}
    assert at(3) == {"input": 3, "skip": 0}
    _, at = parts.next() or pytest.fail("there is another part")
    assert at(1) == {"input": 3, "skip": 1}


def test_an_error_of_the_stream_waits_for_its_turn() -> None:
    parts = Parts(stream(block(0), fails=True), START)
    assert parts.next() is not None
    assert parts.next() is None
    with pytest.raises(ValueError, match="broken"):
        parts.close()


def test_a_failure_is_a_part_of_its_own() -> None:
    parts = Parts(stream(block(0), Failure(ValueError("lost")), block(1)), START)
    kinds = []
    while (part := parts.next()) is not None:
        kinds.append(type(part[0]) is Failure)
    assert kinds == [False, True, False]


def test_the_size_follows_the_time_that_a_part_takes() -> None:
    parts = Parts(stream(), START)
    parts.took(Done([block(0)], seconds=1e-6))
    assert parts.size == 4  # at most four times as many as before
    for _ in range(9):
        parts.took(Done([block(*range(parts.size))], seconds=1e-6 * parts.size))
    assert parts.size == 4096
    parts.took(Done([block(*range(100))], seconds=1.0))
    assert parts.size == 1
    parts.took(
        Done([FailedCall(ValueError(), 0, "")], seconds=1.0)
    )  # which tells nothing of the time that results take
    assert parts.size == 1


def test_fewer_large_parts_are_under_way() -> None:
    parts = Parts(stream(), START)
    assert parts.waiting(4) == 8
    parts.took(Done([Block.of_elements(LEAF, [np.zeros(1 << 22)])], seconds=0.001))
    assert parts.waiting(4) == 4


def test_work_ends_at_the_first_error_or_goes_on_behind_it() -> None:
    chain, given = Chain([fails_at_odd]), block(0, 2, 3, 4)
    done = work(chain, given, None, tolerant=False)
    assert [part if isinstance(part, FailedCall) else numbers(part) for part in done.parts[:1]] == [[0, 20]]
    assert isinstance(done.parts[1], FailedCall)
    assert len(done.parts) == 2
    done = work(chain, given, None, tolerant=True)
    assert [numbers(part) for part in done.parts if isinstance(part, Block)] == [[0, 20], [40]]
    assert done.rows == 3


def test_work_ends_early_where_it_is_told_to() -> None:
    calls: list[int] = []
    done = work(Chain([lambda x: calls.append(int(x)) or x]), block(*range(9)), lambda: len(calls) >= 3, tolerant=False)
    assert done.rows == 3


def test_work_of_which_each_call_fails_ends_early_too() -> None:
    calls: list[int] = []
    done = work(
        Chain([lambda x: calls.append(int(x)) or 1 // 0]), block(*range(9)), lambda: len(calls) >= 3, tolerant=True
    )
    assert calls == [0, 1, 2]
    assert done.rows == 0


@pytest.mark.parametrize("tolerant", [False, True])
def test_results_are_delivered_with_their_marks_and_an_error_in_its_place(tolerant: bool) -> None:
    given, notes = block(0, 2, 3, 4), []
    done = work(Chain([fails_at_odd]), given, None, tolerant=tolerant)
    results = done.delivered(given, lambda n: {"at": n}, lambda *told: notes.append(told), tolerant=tolerant)
    rows, at, of = next(results)
    assert (numbers(rows), at(rows.size), numbers(of)) == ([0, 20], {"at": 2}, [0, 2])
    if not tolerant:
        with pytest.raises(KeyError):
            next(results)
    else:
        failure, at, _ = next(results)
        assert isinstance(failure, Failure)
        assert at(0) == {"at": 3}
        rows, at, of = next(results)
        assert (numbers(rows), at(1), numbers(of)) == ([40], {"at": 4}, [4])
    assert [(type(error), index, element) for error, index, element in notes] == [(KeyError, 0, "element np.int64(3)")]
