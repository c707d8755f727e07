# SPDX-License-Identifier: Apache-2.0
import pickle
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import distinput as di
from distinput.columns.block import Block, ColumnBlock, Failure
from distinput.columns.column import Dense
from distinput.columns.ragged import Arrays
from distinput.functions.claim import (
    Claim,
    MadeBlock,
    SelfReferenceError,
    first_misfit,
    formed,
    held,
    is_exactly,
    unlike,
    widened,
)
from distinput.values.nest import LEAF
from distinput.values.spec import Spec

INT64 = Spec.of(di.TensorSpec([], "int64"))
VECTOR = Spec.of(di.TensorSpec([2], "int64"))


def block(*rows: Any) -> Block:
    return Block.of_elements(LEAF, list(rows))


@given(st.lists(st.sampled_from([None, 2, 3]), max_size=2), st.sampled_from(["int64", "int32", "float64"]), st.data())
def test_a_block_that_is_exactly_what_a_spec_says_needs_no_look(shape: Any, dtype: str, data: Any) -> None:
    spec = Spec.of(di.TensorSpec(shape, dtype))
    inner = data.draw(st.tuples(*[st.sampled_from([1, 2, 3])] * data.draw(st.integers(0, 2))))
    array = np.zeros((2, *inner), data.draw(st.sampled_from([np.int64, np.int32, np.dtype("float64")])))
    rows = ColumnBlock(
        spec.structure, [data.draw(st.sampled_from([Dense(array), Arrays(list(array), array.dtype)]))], 2
    )
    if is_exactly(rows, spec):
        assert widened(rows, spec) is rows
        assert first_misfit(rows, spec) is None
        assert rows.built_as(spec.structure) is rows
    assert is_exactly(ColumnBlock(LEAF, [Dense(np.zeros((2, 3), np.int64))], 2), Spec.of(di.TensorSpec([3], "int64")))


def made(*blocks: Block) -> Iterator[MadeBlock]:
    """Each block as what a function made of its own elements, with marks that count them."""
    first = 0
    for rows in blocks:
        yield rows, lambda done, first=first: {"done": first + done}, rows
        first += rows.size


def drained(stream: Any) -> list[tuple[Any, Any]]:
    return [
        (part.error if isinstance(part, Failure) else [x.tolist() for x in part.elements()], after)
        for part, after in stream
    ]


def test_the_spec_is_found_out_once() -> None:
    claim, calls = Claim(), []
    for _ in range(2):
        assert claim.asked("map", lambda: calls.append(1) or VECTOR) == VECTOR
    assert calls == [1]
    assert claim.wanted == VECTOR


def test_a_first_element_makes_a_claim_without_its_sizes() -> None:
    claim = Claim()
    assert claim.misfit(block(np.arange(2)), lambda: pytest.fail("nobody has asked")) is None
    assert claim.kind == Spec.of(di.TensorSpec([None], "int64"))
    assert claim.asked("map", lambda: VECTOR) == VECTOR


def test_a_first_element_that_contradicts_what_is_found_out_later_wins() -> None:
    claim = Claim()
    claim.misfit(block(np.float32(1)), lambda: INT64)
    assert claim.asked("map", lambda: INT64) == Spec.of(di.TensorSpec([], "float32"))


def test_what_is_asked_for_by_itself_is_an_error_on_its_own_thread_and_on_another() -> None:
    claim = Claim()

    def again() -> Spec:
        return claim.asked("map", lambda: INT64)

    with pytest.raises(
        SelfReferenceError, match="map: the function asks for the element_spec of the dataset that it makes"
    ):
        claim.asked("map", again)

    def on_threads() -> Spec:
        failures: list[BaseException] = []

        def run() -> None:
            try:
                claim.asked("map", on_threads)
            except SelfReferenceError as error:
                failures.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        if failures:
            raise failures[0]
        return INT64

    with pytest.raises(SelfReferenceError):
        claim.asked("map", on_threads)
    assert claim.asked("map", lambda: INT64) == INT64  # it is over then


def test_a_claim_travels_to_another_process_without_who_asks() -> None:
    claim = Claim()
    claim.asked("map", lambda: VECTOR)
    assert pickle.loads(pickle.dumps(claim)).spec == VECTOR


@pytest.mark.parametrize("tolerant", [False, True])
def test_what_differs_comes_after_the_rows_before_it(tolerant: bool) -> None:
    blocks = [block(np.int64(0), np.int64(1)), block(np.float32(2)), block(np.int64(3))]
    noted: list[Exception] = []
    claim = Claim()
    stream = held("map", made(*blocks), claim, None, lambda: INT64, noted.append, tolerant=tolerant)
    assert next(stream)[1] == {"done": 2}
    if not tolerant:
        with pytest.raises(
            TypeError, match=r"map: the function must return .* as it did at first, got shape \[\] and dtype float32"
        ):
            next(stream)
    else:
        (error, after), (rows, end) = drained(stream)
        assert isinstance(error, TypeError)
        assert (after, rows, end) == ({"done": 3}, [3], {"done": 4})
    assert len(noted) == 1


def test_a_row_in_the_middle_of_a_block_is_found() -> None:
    rows = Block.of_elements(LEAF, [np.arange(n) for n in (2, 2, 3, 2)])
    noted: list[Exception] = []
    stream = held("map", made(rows), Claim(), VECTOR, lambda: VECTOR, noted.append, tolerant=True)
    found = drained(stream)
    assert [found[0], found[2]] == [([[0, 1], [0, 1]], {"done": 2}), ([[0, 1]], {"done": 4})]
    assert "must return what output_signature says" in str(found[1][0])
    assert found[1][1] == {"done": 3}


def test_a_signature_makes_integers_wider() -> None:
    ((rows, _),) = held("map", made(block(np.int32(7))), Claim(), INT64, lambda: INT64, lambda _: None, tolerant=False)
    assert rows.columns[0].dtype == np.int64


def test_results_of_several_kinds_are_a_block_for_each_run_of_one_kind() -> None:
    found = list(formed([np.int64(0), np.int64(1), b"two", [np.int64(3), b"x"], (np.int64(4), b"y")]))
    assert [(first, end) for _, first, end in found] == [(0, 2), (2, 3), (3, 5)]
    blocks = [rows for rows, _, _ in found if isinstance(rows, Block)]
    assert [list(rows.elements()) for rows in blocks] == [[0, 1], [b"two"], [(3, b"x"), (4, b"y")]]


@pytest.mark.parametrize("wrap", [lambda array: array, lambda array: (array, 1), lambda array: {"a": array}])
def test_large_arrays_are_blocks_of_their_own_and_are_not_copied(wrap: Any) -> None:
    large = [np.full((1 << 17,), i, np.uint8) for i in range(3)]
    found = list(formed([wrap(each) for each in large]))
    assert [(first, end) for _, first, end in found] == [(0, 1), (1, 2), (2, 3)]
    for (block, _, _), array in zip(found, large, strict=True):
        assert isinstance(block, Block)
        assert np.shares_memory(block.columnar().columns[0].whole(), array)  # type: ignore[attr-defined]
    assert len(list(formed([wrap(each[:9]) for each in large]))) == 1


def test_a_bad_result_among_large_ones_is_an_error_in_its_place() -> None:
    large = np.zeros(1 << 17, np.uint8)
    found = list(formed([large, object(), large]))
    assert [(isinstance(block, Exception), first, end) for block, first, end in found] == [
        (False, 0, 1),
        (True, 1, 2),
        (False, 2, 3),
    ]


def test_a_result_that_cannot_be_an_element_is_an_error_in_its_place() -> None:
    found = list(formed([np.int64(0), object(), np.int64(2)]))
    assert [isinstance(rows, Exception) for rows, _, _ in found] == [False, True, False]
    assert [(first, end) for _, first, end in found] == [(0, 1), (1, 2), (2, 3)]


def test_messages_say_who_has_claimed_it() -> None:
    assert "as it did at first" in str(unlike("map", "a scalar", "a vector", np.int64(3)))
    signed = str(unlike("map", "a scalar", "a vector", np.int64(3), signed=True))
    assert "what output_signature says, a scalar, got a vector for element np.int64(3)" in signed


def test_a_call_that_an_interrupt_ended_is_not_taken_for_one_under_way() -> None:
    claim = Claim()
    claim._asking.append(threading.get_ident())  # before the note was taken back
    assert claim.asked("map", lambda: INT64) == INT64
    assert claim._asking == []
