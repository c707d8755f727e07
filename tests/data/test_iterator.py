# SPDX-License-Identifier: Apache-2.0
import json
import threading
from functools import reduce
from operator import length_hint
from typing import Any
from weakref import ref

import numpy as np
import pytest

import distinput as di
from distinput.errors import OutOfRangeError, StateError
from distinput.values.nest import flatten, map_leaves
from tests.ops.iterating import plain
from tests.patience import threads_since

RANGE = di.data.Dataset.range
DATASET = RANGE(7).shuffle(5, seed=3).batch(2)


@pytest.mark.parametrize("taken", range(5))
def test_a_state_restores_exactly_the_rest(taken: int) -> None:
    whole = [plain(x) for x in RANGE(7).shuffle(5, seed=3).batch(2)]
    it = iter(RANGE(7).shuffle(5, seed=3).batch(2))
    for _ in range(taken):
        next(it)
    state = json.loads(json.dumps(it.state()))
    assert [plain(x) for x in RANGE(7).shuffle(5, seed=3).batch(2).restore(state)] == whole[taken:]


def test_a_state_after_the_end_restores_nothing() -> None:
    it = iter(DATASET)
    list(it)
    assert list(DATASET.restore(it.state())) == []


def test_the_pass_after_a_restored_one_is_the_next() -> None:
    dataset, again = RANGE(9).shuffle(9, seed=1), RANGE(9).shuffle(9, seed=1)
    passes = [dataset.to_list() for _ in range(3)]
    it = iter(again)
    next(it)
    rest = again.restore(it.state())
    assert [plain(x) for x in rest] == passes[0][1:]
    assert again.to_list() == passes[1]


def test_the_names_pytorch_looks_for() -> None:
    it = iter(DATASET)
    next(it)
    saved = it.state_dict()
    rest = [plain(x) for x in it]
    other = iter(DATASET)
    other.load_state_dict(saved)
    assert [plain(x) for x in other] == rest


def test_get_next_raises_at_the_end() -> None:
    it = iter(RANGE(1))
    assert it.get_next() == 0
    with pytest.raises(OutOfRangeError, match="End of sequence"):
        it.get_next()


def test_the_end_stays_the_end() -> None:
    it = iter(RANGE(1))
    assert list(it) == [0]
    assert next(it, None) is None


def test_an_error_takes_the_place_of_an_element() -> None:
    it = iter(RANGE(2).map(lambda x: 1 // int(x), output_signature=di.TensorSpec([], "int64")))
    with pytest.raises(ZeroDivisionError):
        next(it)
    assert list(it) == [1]
    assert next(it, None) is None


def test_closing_ends_threads_and_elements() -> None:
    before = threading.enumerate()
    with iter(RANGE(1000).map(lambda x: x, num_parallel_calls=2).prefetch(2)) as it:
        next(it)
    it.close()
    assert threads_since(before) == []
    assert next(it, None) is None


def test_stats_count_elements() -> None:
    it = iter(RANGE(6).map(lambda x: x).batch(2))
    list(it)
    rows = {name.split(":")[1]: counter["rows"] for name, counter in it.stats().items()}
    assert rows == {"range": 6, "map": 6, "batch": 3}


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda state: 3, "restore: expected a state as iterator.state() gives it, got int"),
        (lambda state: {}, "restore: expected a state as iterator.state() gives it, got dict"),
        (lambda state: {**state, "version": 99}, "restore: the state has version 99, this distinput reads version"),
        (lambda state: {k: v for k, v in state.items() if k != "at"}, "restore: the state lacks ['at']"),
    ],
)
def test_what_is_no_state_is_refused(change: Any, message: str) -> None:
    with pytest.raises(StateError) as caught:
        DATASET.restore(change(iter(DATASET).state()))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "other, message",
    [
        (RANGE(7).shuffle(5, seed=3).batch(3), "step 3 (batch) has other arguments than when the state was saved"),
        (RANGE(7).shuffle(5, seed=3).take(2), "step 3 is take here and was batch when the state was saved"),
        (RANGE(7).shuffle(5, seed=3), "it has 2 steps here and had 3 when the state was saved"),
    ],
)
def test_a_state_of_another_pipeline_is_refused(other: di.data.Dataset, message: str) -> None:
    with pytest.raises(StateError, match="restore: the state belongs to another pipeline") as caught:
        other.restore(iter(DATASET).state())
    assert message in str(caught.value)


@pytest.mark.parametrize("columns", [1, 2])
def test_batches_that_cross_blocks_go_to_one_thread_each(columns: int) -> None:
    """And those left are counted, and the state after some of them leads to the others."""
    source = di.data.Dataset
    parts = [source.from_tensor_slices((np.arange(n, n + 40),) * columns) for n in range(0, 640, 40)]
    dataset = reduce(source.concatenate, parts).batch(3)
    found: list[list[int]] = []
    iterator = iter(dataset)
    assert [next(iterator)[0].tolist() for _ in range(14)][-1] == [39, 40, 41]
    assert length_hint(iterator) == 214 - 14
    rest = [batch[0].tolist() for batch in dataset.restore(iterator.state())]
    threads = [
        threading.Thread(target=lambda: found.extend([batch[0].tolist() for batch in iterator])) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == rest == [[*range(n, min(n + 3, 640))] for n in range(42, 640, 3)]


def test_states_taken_while_another_thread_goes_on_are_places_between_its_elements() -> None:
    source = di.data.Dataset.range
    dataset = reduce(di.data.Dataset.concatenate, [source(n, n + 40) for n in range(0, 1200, 40)]).batch(3)
    found: list[int] = []
    iterator = iter(dataset)
    taker = threading.Thread(target=lambda: found.extend(int(batch[0]) for batch in iterator))
    states = [iterator.state()]
    taker.start()
    while taker.is_alive():
        states.append(iterator.state())
    taker.join()
    assert found == [*range(0, 1200, 3)]
    texts = dict.fromkeys(map(json.dumps, states))
    following = [next((int(batch[0]) for batch in dataset.restore(json.loads(text))), 1200) for text in texts]
    assert following == sorted(following)
    assert {*following} <= {*found, 1200}


ROWS = np.arange(640).repeat(2).reshape(-1, 2)

ELEMENTS: dict[str, Any] = {"array": ROWS, "tuple": (ROWS, ROWS), "dict": {"x": ROWS, "y": ROWS}}


@pytest.mark.parametrize("batch", [None, 3])
@pytest.mark.parametrize("kind", ELEMENTS)
def test_a_finalizer_of_an_element_may_take_the_next_one(kind: str, batch: int | None) -> None:
    """As another thread may that gets its turn in a finalizer: nothing is lost, and the parts of an element are of one row."""
    source = di.data.Dataset
    cut = [
        source.from_tensor_slices(map_leaves(lambda x, n=n: x[n : n + 40], ELEMENTS[kind])) for n in range(0, 640, 40)
    ]
    dataset = reduce(source.concatenate, cut)
    iterator = iter(dataset if batch is None else dataset.batch(batch))
    found: list[list[int]] = []
    watched: list[Any] = []
    finalizing = False

    def take() -> bool:
        for element in iterator:
            arrays = flatten(element)
            found.append([int(array.flat[0]) for array in arrays])
            watched.extend([ref(array, finalized) for array in arrays])
            return True
        return False

    def finalized(_: Any) -> None:
        nonlocal finalizing
        if not finalizing:
            finalizing = True
            take()
            finalizing = False

    while take():
        pass
    assert sorted(found) == [[n] * len(flatten(ELEMENTS[kind])) for n in range(0, 640, batch or 1)]
