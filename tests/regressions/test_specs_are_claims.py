# SPDX-License-Identifier: Apache-2.0
"""What is said of a function's results holds for all of them, or the first that differs is an error that says so."""

import json
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.errors import FailedPreconditionError
from distinput.testing.laws import check_restart, check_spec
from tests.ops.iterating import plain, until_error

RANGE = di.data.Dataset.range
WAYS: list[dict[str, Any]] = [{}, {"num_parallel_calls": 2}, {"num_parallel_calls": di.data.AUTOTUNE}]


def lines(folder: Path, *text: str) -> di.data.Dataset:
    path = folder / f"{len(list(folder.iterdir()))}.txt"
    path.write_text("".join([line + "\n" for line in text]))
    return di.data.TextLineDataset(str(path))


def check_unlike(dataset: di.data.Dataset, before: list[Any], element: str) -> None:
    for _ in range(2):  # the second pass knows what the first one found
        found, error = until_error(dataset)
        assert [plain(x) for x in found] == before
        assert isinstance(error, TypeError)
        assert "map: the function must return " in str(error)
        assert f"for element {element}" in str(error)
        assert "give output_signature=" in str(error)
        assert any("in map(" in note for note in error.__notes__)


# --- text and bytes: only what the first element shows


def test_no_text_is_made_up(tmp_path: Path) -> None:
    seen: list[bytes] = []
    dataset = lines(tmp_path, "a b", "c").map(lambda s: seen.append(s) or np.array(s.split()))
    assert dataset.element_spec == di.TensorSpec([None], "string")
    assert seen == [b"a b"]


def test_json_lists_of_one_length_are_tuples_and_of_others_an_error(tmp_path: Path) -> None:
    dataset = lines(tmp_path, "[1, 2]", "[3, 4]", "[5]", "[6, 7]").map(json.loads)
    check_unlike(dataset, [(1, 2), (3, 4)], "b'[5]'")
    array = lines(tmp_path, "[1, 2]", "[3]", "[]").map(lambda s: np.array(json.loads(s), np.int32))
    assert array.element_spec == di.TensorSpec([None], "int32")
    assert sorted([plain(x) for x in array.shuffle(10)]) == [[], [1, 2], [3]]
    assert [plain(x) for x in array.padded_batch(3)] == [[[1, 2], [3, 0], [0, 0]]]


def test_words_are_padded_and_delivered_to_every_replica(tmp_path: Path) -> None:
    words = lines(tmp_path, *["a", "b", "c", "d", "e", "f", "g"]).map(lambda s: np.array(s.split()))
    for replicas in (1, 2, 3):
        strategy = di.distribute.MirroredStrategy([f"CPU:{i}" for i in range(replicas)])
        found = []
        for step in strategy.distribute_datasets_from_function(lambda _: words):
            for part in strategy.experimental_local_results(step):
                found += part.tolist()
        assert found == [b"a", b"b", b"c", b"d", b"e", b"f", b"g"]
    (batch,) = lines(tmp_path, "ab", "c").map(lambda x: np.frombuffer(x, np.uint8)).padded_batch(2)
    assert batch.tolist() == [[97, 98], [99, 0]]


def test_a_first_line_that_fails_is_passed_over(tmp_path: Path) -> None:
    dataset = lines(tmp_path, "?", "1", "2").map(json.loads).ignore_errors()
    assert dataset.element_spec == di.TensorSpec([], "int32")
    assert dataset.map(lambda x: x + 1).element_spec == di.TensorSpec([], "int32")


def test_without_an_element_anything_may_be_said(tmp_path: Path) -> None:
    assert lines(tmp_path).map(lambda s: np.array(s.split())).element_spec == di.TensorSpec([None], "string")
    assert lines(tmp_path).map(json.loads).shuffle(3).to_list() == []


def test_the_first_element_is_found_without_filling_buffers(tmp_path: Path) -> None:
    calls: list[bytes] = []
    text = lines(tmp_path, *map(str, range(50))).map(lambda s: calls.append(s) or s)
    made = text.shuffle(40).cache().prefetch(5).map(json.loads)
    assert made.element_spec == di.TensorSpec([], "int32")
    assert len(calls) <= 2  # once for the spec of each map
    assert sorted(made.to_list()) == list(range(50))


# --- numbers


@pytest.mark.parametrize("rare", [4, 37, 99])
def test_a_rare_shape_is_not_denied(rare: int) -> None:
    def function(n: Any) -> Any:
        return np.zeros(2 if n == rare else 1)

    for dataset in (RANGE(100), RANGE(100).map(lambda n: n), RANGE(100).shuffle(7)):
        made = dataset.map(function)
        assert made.element_spec == di.TensorSpec([None], "float64")
        check_spec(made)


def test_a_shape_that_no_sample_shows_is_an_error() -> None:
    made = RANGE(3000).map(lambda n: np.zeros(1 + (str(n) == "1" * 4)))
    assert made.element_spec == di.TensorSpec([1], "float64")
    check_unlike(made, [[0.0]] * 1111, "np.int64(1111)")
    made = RANGE(3000).map(lambda n: np.zeros(1 + (str(n) == "1" * 4)))
    assert len(list(made)) == 3000  # nobody has asked, so nothing was said


@pytest.mark.parametrize(
    "function",
    [lambda x: x[x > 2], lambda x: np.unique(x), lambda x: np.flatnonzero(x), lambda x: x[x > 100]],
    ids=["mask", "unique", "nonzero", "rare mask"],
)
def test_shapes_that_follow_from_values_are_open(function: Any) -> None:
    rows = di.data.Dataset.from_tensor_slices(np.arange(12).reshape(4, 3)).map(lambda x: x * 1)
    assert rows.map(function).element_spec.shape == (None,)


def test_what_follows_from_shapes_is_known() -> None:
    rows = di.data.Dataset.from_tensor_slices(np.zeros((4, 3)))
    assert rows.map(lambda x: x * 2).element_spec.shape == (3,)
    assert rows.batch(2, drop_remainder=True).map(lambda x: x[:, :2]).element_spec.shape == (2, 2)
    assert RANGE(4).map(lambda n: np.full((2, 3), n)).element_spec.shape == (2, 3)


def test_a_rank_that_differs_is_open_whether_somebody_asks_or_not() -> None:
    def dataset() -> di.data.Dataset:
        return RANGE(3).map(lambda n: np.zeros((2,) * int(n)))

    assert dataset().element_spec == di.TensorSpec(None, "float64")
    assert [x.ndim for x in dataset()] == [0, 1, 2]
    assert dataset().map(np.ndim).to_list() == [0, 1, 2]


def test_a_value_that_stands_for_nothing_is_no_answer() -> None:
    known = {1000 + n: np.float32(n) for n in range(5)}
    numbers = di.data.Dataset.from_tensor_slices(np.array(list(known))).map(lambda n: n)
    made = numbers.map(lambda n: known.get(int(n)))
    assert made.element_spec == di.TensorSpec([], "float32")
    assert made.to_list() == [0, 1, 2, 3, 4]


# --- one kind, whatever the blocks and the clock


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("place", [1, 3, 70, 999])
def test_another_dtype_is_an_error_wherever_it_stands(way: dict[str, Any], place: int, tmp_path: Path) -> None:
    text = ["1"] * 1000
    text[place] = "1.5"
    for slow in (0.0, 0.002):
        if slow and place > 100:
            continue
        dataset = lines(tmp_path, *text).map(lambda s, slow=slow: time.sleep(slow) or json.loads(s), **way)
        check_unlike(dataset, [1] * place, "b'1.5'")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "odd", [2**40, 1.5, "text", None, {"a": 1}, (1, 2), [[1]], np.zeros(2, np.int32)], ids=lambda odd: str(odd)[:8]
)
def test_another_kind_is_an_error_in_every_way(odd: Any, way: dict[str, Any]) -> None:
    dataset = RANGE(600).map(lambda n: odd if n == 500 else 1, **way)
    check_unlike(dataset, [1] * 500, "np.int64(500)")


def test_keys_must_stay_the_same(tmp_path: Path) -> None:
    check_unlike(lines(tmp_path, '{"a": 1}', '{"b": 1}').map(json.loads), [{"a": 1}], """b'{"b": 1}'""")


def test_functions_before_others_are_held_to_the_same(tmp_path: Path) -> None:
    for way in WAYS:
        dataset = lines(tmp_path, *["1"] * 50, "1.5").map(json.loads, **way).map(lambda x: x + 1, **way)
        check_unlike(dataset, [2] * 50, "b'1.5'")


def test_a_restart_holds_to_the_first_element_of_all(tmp_path: Path) -> None:
    text = lines(tmp_path, "1", "2", "1.5", "2.5")

    def dataset() -> di.data.Dataset:
        return text.map(json.loads)

    check_restart(dataset(), fresh=dataset)
    check_restart(dataset().map(lambda x: x), fresh=lambda: dataset().map(lambda x: x))


def test_generated_filtered_and_flattened_elements_are_held_to_it(tmp_path: Path) -> None:
    signature = di.TensorSpec([], "string")
    given = di.data.Dataset.from_generator(lambda: iter(["1", "x", "2", "1.5"]), output_signature=signature)
    check_unlike(given.filter(lambda s: s != b"x").map(json.loads), [1, 2], "b'1.5'")
    check_unlike(given.batch(2).unbatch().filter(lambda s: s != b"x").map(json.loads), [1, 2], "b'1.5'")

    def made(n: Any) -> di.data.Dataset:
        return di.data.Dataset.from_tensors(np.zeros(2, np.float32 if n == 4 else np.int32))

    for flat in (RANGE(6).map(lambda n: n).flat_map(made), RANGE(6).map(lambda n: n).interleave(made, cycle_length=2)):
        found, error = until_error(flat)
        assert len(found) == 4
        assert "the datasets that the function makes must have elements of one kind" in str(error)
        assert "for element np.int64(4)" in str(error)


def test_what_scan_returns_is_held_to_it() -> None:
    growing = RANGE(4).scan(np.zeros(0), lambda s, x: (np.append(s, x), s))
    assert growing.element_spec == di.TensorSpec([None], "float64")
    check_spec(growing)
    before, error = until_error(RANGE(9).scan(0, lambda s, x: (s, 1.5 if x == 5 else 1)))
    assert before == [1] * 5
    assert "scan: the function must return " in str(error)


def test_elements_reached_by_position_are_held_to_it() -> None:
    wrong = RANGE(600).map(lambda n: 1.5 if n == 500 else 1)
    _, error = until_error(wrong.global_shuffle(seed=1))
    assert "give output_signature=" in str(error)


# --- a function that asks for itself


def check_refused(dataset: di.data.Dataset) -> None:
    for act in (lambda: dataset.element_spec, lambda: list(dataset), lambda: list(dataset.shuffle(3))):
        with pytest.raises(
            FailedPreconditionError, match="asks for the element_spec of the dataset that it makes itself"
        ):
            act()


def test_a_function_must_not_ask_for_what_it_makes() -> None:
    made = {}  # a variable would be that of the moment when the step is made
    made["map"] = RANGE(3).map(lambda x: x + len(str(made["map"].element_spec)))
    made["flat"] = RANGE(3).flat_map(lambda x: RANGE(x + len(str(made["flat"].element_spec))))
    made["scan"] = RANGE(3).scan(np.int64(0), lambda s, x: (s + len(str(made["scan"].element_spec)), s))
    made["rows"] = RANGE(3).map_rows(lambda x: x + len(str(made["rows"].element_spec)))
    for dataset in made.values():
        check_refused(dataset)


def test_a_function_reads_the_dataset_that_its_name_stood_for() -> None:
    ds = RANGE(3)
    ds = ds.map(lambda x: x + len(ds))
    assert ds.to_list() == [3, 4, 5]


def test_a_predicate_may_ask_for_what_it_only_hands_on(tmp_path: Path) -> None:
    made = {}
    made["ds"] = RANGE(3).filter(lambda x: x < len(str(made["ds"].element_spec)))
    assert made["ds"].to_list() == [0, 1, 2]
    made["text"] = lines(tmp_path, "1", "2").filter(lambda x: bool(made["text"].element_spec)).map(json.loads)
    check_refused(made["text"])


def test_threads_that_ask_at_the_same_time_each_get_the_answer() -> None:
    ds = RANGE(3).map(lambda x: time.sleep(0.001) or x * 2)
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(ds.element_spec)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [di.TensorSpec([], "int64")] * 8


def test_a_function_must_not_ask_on_another_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    made = {}

    def function(x: Any) -> Any:
        found: list[Any] = []
        thread = threading.Thread(target=lambda: found.append(made["ds"].element_spec))
        thread.start()
        thread.join()
        return x + len(str(found[0]))

    made["ds"] = RANGE(3).map(function)
    with pytest.raises(FailedPreconditionError, match="asks for the element_spec"):
        made["ds"].element_spec  # asking is the act  # noqa: B018
    made["parallel"] = RANGE(3).map(lambda x: x + len(str(made["parallel"].element_spec)), num_parallel_calls=2)
    with pytest.raises(FailedPreconditionError, match="asks for the element_spec"):
        list(made["parallel"])


def test_a_function_may_wait_for_a_thread_that_asks_for_another_spec() -> None:
    other = RANGE(2).map(lambda x: np.float32(x))

    def function(x: Any) -> Any:
        found: list[Any] = []
        thread = threading.Thread(target=lambda: found.append(other.element_spec))
        thread.start()
        thread.join(60)
        return x + len(found)

    ds = RANGE(3).map(function)
    assert ds.element_spec == di.TensorSpec([], "int64")
    assert ds.to_list() == [1, 2, 3]
