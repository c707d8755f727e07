# SPDX-License-Identifier: Apache-2.0
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import distinput as di
from distinput.functions import chain
from distinput.functions.chain import Chain
from distinput.rewrite import rewrite
from distinput.rewrite.rules import map_of_map
from distinput.run.run import Run, called
from distinput.testing import check_restart, check_rewrites
from distinput.testing.pipeline import MAPS, SIGNATURES
from tests.ops.iterating import Times, until_error

RANGE = di.data.Dataset.range
INT64 = di.TensorSpec([], "int64")


def one_after_the_other(dataset: di.data.Dataset, names: list[str]) -> di.data.Dataset:
    for name in names:
        dataset = dataset.map(MAPS[name], output_signature=SIGNATURES.get(name))
    return dataset


@given(st.lists(st.sampled_from(sorted(MAPS)), min_size=2, max_size=5), st.integers(0, 9))
def test_fused_maps_give_what_maps_one_after_the_other_give(names: list[str], rows: int) -> None:
    fused = one_after_the_other(RANGE(rows).enumerate(), names)
    assert rewrite(fused.node)[1] == ["map_of_map"] * sum([name not in SIGNATURES for name in names[:-1]])
    check_rewrites(fused)


def test_a_state_stands_anywhere_in_fused_maps() -> None:
    check_restart(RANGE(9).map(lambda x: (x, x + 1)).map(lambda a, b: a * b).batch(2))


@pytest.mark.parametrize(
    "first, then, element",
    [
        (lambda x: x + 1, lambda x: 1 // int(3 - x), "np.int64(3)"),
        (lambda x: 1 // int(2 - x), lambda x: x, "np.int64(2)"),
        (lambda x: (x, x + 1), lambda a, b: np.int64(1 // int(2 - a)), "(np.int64(2), np.int64(3))"),
        (lambda x: {"a": x}, lambda d: np.int64(1 // int(2 - d["a"])), "{'a': np.int64(2)}"),
        (lambda x: x, lambda x: 1 // int(x), "np.int64(0)"),
    ],
)
def test_an_error_names_the_function_and_what_it_was_given(first: Any, then: Any, element: str) -> None:
    signature = di.TensorSpec([], "int64")
    dataset = RANGE(5).map(first, name="first").map(then, name="then", output_signature=signature)
    before, error = until_error(dataset)
    assert isinstance(error, ZeroDivisionError)
    assert error.__notes__[0] == f"on element {element}"
    name = "first" if element == "np.int64(2)" else "then"
    assert error.__notes__[1].startswith(f"in map[{name}](")
    assert "test_chain.py:" in error.__notes__[1]
    slow = until_error(di.data.Dataset(dataset.node).take(-1).prefetch(1))[0]
    assert before == slow


def test_results_between_functions_are_elements() -> None:
    seen: list[Any] = []

    def look(*args: Any) -> Any:
        seen.append(args)
        return np.int64(0)

    di.data.Dataset.from_tensors(0).map(lambda x: [1, 2.5, "a", np.array(3), [4, 5]]).map(
        look, output_signature=INT64
    ).to_list()
    (a, b, c, d, e) = seen[0]
    assert (type(a), type(b), c, type(d)) == (np.int32, np.float32, b"a", np.int64)
    assert e.dtype == np.int32
    assert e.tolist() == [4, 5]


@pytest.mark.parametrize(
    "other, message",
    [
        (np.float32(0.0), r"got shape \[\] and dtype float32, np.float32\(0.0\), for element np.int64\(3\)"),
        (b"text", r"got shape \[\] and dtype string, b'text', for element np.int64\(3\)"),
    ],
)
def test_a_function_whose_results_change_kind_is_an_error(other: Any, message: str) -> None:
    dataset = RANGE(5).map(lambda x: other if x == 3 else x).map(lambda x: x, output_signature=INT64)
    error = until_error(dataset)[1]
    with pytest.raises(
        TypeError, match=rf"map: the function must return TensorSpec.*int64.* {message}; give output_sig"
    ):
        raise error


def test_maps_that_are_called_differently_stay_apart() -> None:
    dataset = RANGE(5).map(lambda x: x, num_parallel_calls=2).map(lambda x: x)
    assert map_of_map(dataset.node) is None
    assert dataset.to_list() == [0, 1, 2, 3, 4]


def test_fused_maps_can_be_fetched_by_row() -> None:
    fused = rewrite(RANGE(9).map(lambda x: x + 1).map(lambda x: [x, x * 2]).node)[0]
    assert fused.random_access
    assert list(fused.fetch(np.array([4, 1]), 0).elements()) == [(5, 10), (2, 4)]
    assert fused.fetch(np.array([], np.int64), 0).structure.num_leaves == 2


def test_a_chain_travels_without_what_was_written_for_it() -> None:
    chain = Chain([np.negative, np.abs])
    assert chain(np.int64(3)) == 3
    assert pickle.loads(pickle.dumps(chain))(np.int64(-5)) == 5


def test_explain_shows_what_was_fused() -> None:
    text = RANGE(3).map(np.negative).map(np.abs).explain()
    assert "rules: map_of_map" in text
    assert "fused_map(functions=negative, absolute)" in text


@pytest.mark.parametrize("maps", [1, 2])
def test_a_function_cannot_end_a_data_set_by_stop_iteration(maps: int) -> None:
    def stop(x: Any) -> Any:
        if x == 3:
            raise StopIteration
        return x

    dataset = RANGE(6).map(stop, output_signature=INT64)
    if maps == 2:
        dataset = dataset.map(lambda x: x, output_signature=INT64)
    before, error = until_error(dataset)
    assert before == [0, 1, 2]
    assert isinstance(error, RuntimeError)
    assert "StopIteration" in str(error)


def test_slow_calls_are_sent_one_by_one_and_quick_ones_together(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = Times(monkeypatch, here=0.006)
    monkeypatch.setattr("distinput.run.run.perf_counter", calls.now)
    blocks = RANGE(100).node.open({"row": 0}, Run())
    slow = called(blocks, {"input": {}, "skip": 0}, calls)
    assert len(next(slow)[0]) == 1
    calls.here = 1e-6
    blocks = RANGE(4096).node.open({"row": 0}, Run())
    quick = called(blocks, {"input": {}, "skip": 0}, calls)
    assert len(next(quick)[0]) > 50


ANY_RANK = di.TensorSpec(None, "int64")


@pytest.mark.parametrize(
    "step",
    [
        {},
        {"output_signature": ANY_RANK},
        {"vectorize": False},
        {"num_parallel_calls": 1},
    ],
)
@pytest.mark.parametrize("alone", [True, False])
def test_an_array_that_is_filled_again_is_copied_also_behind_a_number(step: dict[str, Any], alone: bool) -> None:
    held = np.zeros(2, np.int64)

    def filled(x: Any) -> Any:
        if x == 0:
            return np.int64(0)
        held[:] = x
        return held

    numbers = RANGE(1).concatenate(RANGE(1, 5))
    dataset = numbers.map(filled, **step) if alone else numbers.map(filled).map(lambda x: x, output_signature=ANY_RANK)
    assert [np.asarray(x).tolist() for x in dataset] == [0, [1, 1], [2, 2], [3, 3], [4, 4]]


def test_what_fits_is_compared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    fits = chain._fits

    def counted(*given: Any) -> bool:
        asked.append(given)
        return fits(*given)

    monkeypatch.setattr(chain, "_fits", counted)
    assert len(RANGE(50).map(int, vectorize=False).map(lambda x: x + 1, vectorize=False).to_list()) == 50
    assert len(asked) == 50
