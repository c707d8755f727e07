# SPDX-License-Identifier: Apache-2.0
"""What users do with arrays in place does not reach other elements, later passes, or data that is theirs."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, reduce
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.functions import workers
from distinput.values.nest import structure_of
from tests.patience import Beside

Dataset = di.data.Dataset
N = 6


def refilled(size: int, wrap: Callable[[Any], Any] = lambda x: x) -> Callable[[Any], Any]:
    """A function that fills one buffer again and again."""
    buffer = np.zeros(size)

    def fill(i: Any) -> Any:
        buffer[:] = i
        return wrap(buffer)

    return fill


def turns(size: int) -> Callable[[Any], Any]:
    """The same with two buffers that take turns."""
    buffers = [np.zeros(size), np.zeros(size)]

    def fill(i: Any) -> Any:
        buffer = buffers[int(i) % 2]
        buffer[:] = i
        return buffer

    return fill


class Boxed:
    """An array of another library, which shares its memory with NumPy."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.array


WRAPS: dict[str, Callable[[Any], Any]] = {
    "whole": lambda x: x,
    "view": lambda x: x[1:],
    "reversed": lambda x: x[::-1],
    "tuple": lambda x: (x, 1),
    "list": lambda x: [x, x[:1]],
    "dict": lambda x: {"a": x, "b": {"c": x[:2]}},
    "nest after an array": lambda x: (x[:1], {"b": x}, [x]),
    "boxed": Boxed,
    "memory": lambda x: np.frombuffer(memoryview(x)),
    "frozen view": lambda x: np.broadcast_to(x, x.shape),
}


def firsts(elements: Any) -> list[float]:
    """The number that all arrays of an element hold."""
    found = []
    for element in elements:
        held = {float(x) for leaf in structure_of(element).flatten(element) if np.ndim(leaf) for x in leaf.flat[:2]}
        assert len(held) == 1, element
        found.append(held.pop())
    return found


@pytest.mark.parametrize("size", [3, 100_000])
@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("calls", [None, 1, di.data.AUTOTUNE])
def test_a_function_may_fill_one_buffer_again_and_again(size: int, wrap: str, calls: int | None) -> None:
    dataset = Dataset.range(N).map(refilled(size, WRAPS[wrap]), num_parallel_calls=calls)
    assert firsts(dataset) == list(range(N))
    chained = Dataset.range(N).map(lambda x: x).map(refilled(size, WRAPS[wrap]), num_parallel_calls=calls)
    assert firsts(chained) == list(range(N))


class Refilling:
    """A source that reads each item into one buffer."""

    def __init__(self, size: int, wrap: Callable[[Callable[[Any], Any]], Callable[[Any], Any]]) -> None:
        self._fill = wrap(refilled(size))

    def __len__(self) -> int:
        return MANY

    def __getitem__(self, index: int) -> Any:
        return self._fill(index)


MANY = 40


def slowly(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """So slow that threads pay."""

    def call(element: Any) -> Any:
        result = function(element)
        time.sleep(0.001)
        return result

    return call


def beside_another(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """So that each of two threads has calls, however busy the machine is."""
    another = Beside()

    def call(element: Any) -> Any:
        result = function(element)
        another.wait()
        return result

    return call


@pytest.mark.parametrize("wrap", WRAPS)
def test_threads_are_not_tried_with_a_function_that_fills_one_buffer(
    wrap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "_BEFORE_TRIAL", 0.0)
    filled = Dataset.range(MANY).map(slowly(refilled(3, WRAPS[wrap])), num_parallel_calls=di.data.AUTOTUNE)
    read = Dataset.from_source(Refilling(3, slowly), num_parallel_calls=di.data.AUTOTUNE)
    between = Dataset.range(MANY).map(refilled(3, WRAPS[wrap]), di.data.AUTOTUNE).map(slowly(np.copy), di.data.AUTOTUNE)
    for dataset in (filled, read, between) if wrap in ("whole", "view", "reversed") else (filled, read):
        for _ in range(2):
            assert firsts(dataset) == list(range(MANY))


def test_two_slow_calls_are_enough_to_see_it() -> None:
    def slow(x: Any) -> Any:
        time.sleep(2 * workers._BEFORE_TRIAL)
        return np.copy(x)

    between = Dataset.range(8).map(refilled(3), di.data.AUTOTUNE).map(slow, di.data.AUTOTUNE)
    assert firsts(between) == list(range(8))


@pytest.mark.parametrize("size", [3, 100_000])
@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("where", ["threads", "executor"])
def test_calls_on_threads_that_fill_one_buffer_are_found(size: int, wrap: str, where: str) -> None:
    with ThreadPoolExecutor(2) as pool:
        ways: dict[str, Any] = {"num_parallel_calls": 2} if where == "threads" else {"executor": pool}
        dataset = Dataset.range(MANY).map(beside_another(refilled(size, WRAPS[wrap])), on_error="skip", **ways)
        with pytest.raises(di.errors.InvalidArgumentError, match=r"^map: calls on several threads fill one array"):
            list(dataset)


SHARED, ANOTHER = np.zeros(3), Beside()


def fill_shared(element: Any) -> Any:
    """As it is sent to a service by its name, all threads there have one array."""
    SHARED[:] = element
    ANOTHER.wait()
    return SHARED


def test_pieces_on_threads_that_fill_one_buffer_are_found() -> None:
    message = r"^map: calls .*on several threads,? fill one array"
    with ThreadPoolExecutor(2) as pool, pytest.raises(di.errors.InvalidArgumentError, match=message):
        list(Dataset.range(20 * MANY).map(fill_shared).on_workers(pool))


def test_what_goes_from_one_function_to_the_next_is_looked_at() -> None:
    copied = beside_another(np.copy)
    filled = Dataset.range(MANY).map(refilled(3), num_parallel_calls=2).map(copied, num_parallel_calls=2)
    with pytest.raises(di.errors.InvalidArgumentError, match=r"^map: calls on several threads fill one array"):
        list(filled)


def test_reads_on_threads_that_fill_one_buffer_are_found() -> None:
    with pytest.raises(di.errors.InvalidArgumentError, match=r"^from_source: calls on several threads fill one array"):
        list(Dataset.from_source(Refilling(3, beside_another), num_parallel_calls=2))


def test_calls_on_threads_may_fill_buffers_of_their_own_and_return_arrays_that_stay_as_they_are() -> None:
    local, table = threading.local(), np.repeat(np.arange(MANY), 4).reshape(MANY, 4)

    def fill(i: Any) -> Any:
        if not hasattr(local, "buffer"):
            local.buffer = np.zeros(3)
        local.buffer[:] = i
        return local.buffer

    @lru_cache(maxsize=2)
    def made(i: int) -> Any:
        return np.full(3, i)

    functions: list[Callable[[Any], Any]] = [fill, lambda i: table[i], lambda i: made(int(i))]
    for function in functions:
        assert firsts(Dataset.range(MANY).map(slowly(function), num_parallel_calls=3)) == list(range(MANY))


@pytest.mark.parametrize("size", [3, 100_000])
def test_buffers_may_take_turns(size: int) -> None:
    assert firsts(Dataset.range(N).map(turns(size))) == list(range(N))
    assert firsts(Dataset.range(N).map(turns(size)).batch(2)) == [0, 2, 4]


@pytest.mark.parametrize("size", [3, 100_000])
@pytest.mark.parametrize("view", [False, True])
def test_a_generator_may_fill_one_buffer_again_and_again(size: int, view: bool) -> None:
    def generate() -> Iterator[Any]:
        buffer = np.zeros(size + 1)
        for i in range(N):
            buffer[:] = i
            yield buffer[1:] if view else buffer

    spec = di.TensorSpec([None], "float64")
    assert firsts(Dataset.from_generator(generate, output_signature=spec)) == list(range(N))


def test_a_function_of_blocks_may_fill_one_buffer_again_and_again() -> None:
    buffer = np.zeros(2)

    def fill(rows: Any) -> Any:
        buffer[:] = rows
        return buffer

    dataset = Dataset.range(N).batch(2).unbatch().map_rows(lambda x: x * 1.0)
    assert [float(x) for x in dataset] == list(range(N))
    blocks = Dataset.from_generator(lambda: iter(range(N)), output_signature=di.TensorSpec([], "int64"))
    assert len({id(x) for x in [fill(np.arange(2.0))]}) == 1
    held = [x.tolist() for x in blocks.batch(2).map(lambda x: fill(x))]
    assert held == [[0, 1], [2, 3], [4, 5]]


def test_the_arrays_of_a_pipeline_in_memory_are_not_changed() -> None:
    array = np.zeros((4, 2))
    for dataset in (
        Dataset.from_tensor_slices(array),
        Dataset.from_tensors(array),
        Dataset.from_tensor_slices(array).batch(2),
    ):
        for element in dataset:
            with pytest.raises(ValueError, match="read-only"):
                element += 1
    with pytest.raises(ValueError, match="read-only"):
        list(Dataset.from_tensor_slices({"a": array}).map(lambda x: x["a"].sort(), output_signature=None))
    assert not array.any()
    assert array.flags.writeable, "the array itself stays the user's"


def test_what_a_cache_keeps_is_not_changed() -> None:
    dataset = Dataset.range(3).map(lambda x: np.full(2, x)).cache()
    for _ in range(2):
        for element in dataset:
            with pytest.raises(ValueError, match="read-only"):
                element += 1
    assert [x.tolist() for x in dataset] == [[0, 0], [1, 1], [2, 2]]


def test_windows_that_overlap_do_not_change_one_another() -> None:
    windows = Dataset.range(4).map(lambda x: np.full(2, x)).window(2, shift=1).flat_map(lambda w: w)
    for element in windows:
        with pytest.raises(ValueError, match="read-only"):
            element += 1


def test_elements_made_on_the_way_can_be_changed() -> None:
    for batch in Dataset.from_tensor_slices(np.zeros((4, 2))).shuffle(4).batch(2).copied():
        batch += 1
    for batch in Dataset.range(4).map(lambda x: np.full(2, x)).batch(2):
        batch += 1


def test_a_scan_may_change_what_it_carries_in_place() -> None:
    def add(state: Any, x: Any) -> Any:
        state += x
        return state, state

    sums = Dataset.range(1, 4).scan(np.zeros(2), add)
    for _ in range(2):
        assert [x.tolist() for x in sums] == [[1, 1], [3, 3], [6, 6]]


def pairs(first: Any, second: Any) -> list[float]:
    """What two datasets give, in turn."""
    return [float(np.ravel(part)[0]) for pair in zip(first, second, strict=True) for part in pair]


def two_steps(kind: str, buffer: Any) -> tuple[Dataset, Dataset]:
    """Two datasets of MANY elements, whose functions fill one buffer."""

    def fill(x: Any) -> Any:
        buffer[:] = np.ravel(x)[0]
        time.sleep(0.001)
        return buffer[None] if kind == "map_rows" else buffer

    def generated(start: int) -> Callable[[], Iterator[Any]]:
        return lambda: map(fill, range(start, start + MANY))

    class Source:
        def __init__(self, start: int) -> None:
            self.start = start

        def __len__(self) -> int:
            return MANY

        def __getitem__(self, i: int) -> Any:
            return fill(self.start + i)

    spec = di.TensorSpec((3,), np.float64)
    makes: dict[str, Callable[[int], Dataset]] = {
        "map": lambda start: Dataset.range(start, start + MANY).map(lambda x: fill(x)),
        "map, map": lambda start: Dataset.range(start, start + MANY).map(lambda x: fill(x)).map(lambda x: x + 0),
        "map_rows": lambda start: reduce(
            Dataset.concatenate, [Dataset.range(i, i + 1) for i in range(start, start + MANY)]
        ).map_rows(lambda x: fill(x)),
        "scan": lambda start: Dataset.range(start, start + MANY).scan(0, lambda s, x: (s, fill(x))),
        "from_generator": lambda start: Dataset.from_generator(generated(start), output_signature=spec),
        "from_source": lambda start: Dataset.from_source(Source(start)),
        "executor": lambda start: Dataset.range(start, start + MANY).map(
            lambda x: fill(x), executor=lambda: ThreadPoolExecutor(1), num_parallel_calls=1
        ),
    }
    return makes[kind](0), makes[kind](1000)


KINDS = ("map", "map, map", "map_rows", "scan", "from_generator", "from_source", "executor")
IN_TURN = sorted([*range(MANY), *range(1000, 1000 + MANY)])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("where", ["both ahead", "one ahead", "interleave", "mixture", "two passes"])
def test_steps_on_threads_that_fill_one_buffer_are_found(kind: str, where: str) -> None:
    buffer = np.zeros(3)
    first, second = two_steps(kind, buffer)
    ways: dict[str, Callable[[], Any]] = {
        "both ahead": lambda: list(Dataset.zip((first.prefetch(2), second.prefetch(2)))),
        "one ahead": lambda: list(Dataset.zip((first, second.prefetch(2)))),
        "interleave": lambda: list(
            Dataset.range(2).interleave(lambda i: (first, second)[int(i)], cycle_length=2, num_parallel_calls=2)
        ),
        "mixture": lambda: list(Dataset.sample_from_datasets([first.prefetch(2), second.prefetch(2)], seed=1)),
        "two passes": lambda: pairs(first.prefetch(2), second.prefetch(2)),
    }
    if kind == "executor" and where == "one ahead":
        pytest.skip("both are on threads")
    with pytest.raises(di.errors.InvalidArgumentError, match=r"fill one array(, buffer,)? over each other's results"):
        ways[where]()


def test_the_error_names_the_functions_and_the_variable() -> None:
    shared = np.zeros(3)

    def left(x: Any) -> Any:
        shared[:] = x
        time.sleep(0.001)
        return shared

    def right(x: Any) -> Any:
        return left(x)

    dataset = Dataset.zip(
        (Dataset.range(MANY).map(left).prefetch(1), Dataset.range(MANY, 2 * MANY).map(right).prefetch(1))
    )
    with pytest.raises(di.errors.InvalidArgumentError) as raised:
        list(dataset)
    said = str(raised.value)
    assert "left" in said
    assert "right" in said
    assert "one array, shared, over" in said
    assert "threading.local" in said


@pytest.mark.parametrize("kind", KINDS[:-1])
def test_steps_that_take_turns_may_fill_one_buffer(kind: str) -> None:
    first, second = two_steps(kind, np.zeros(3))
    ways: list[Callable[[], list[float]]] = [
        lambda: pairs(first, second),
        lambda: firsts(first.prefetch(2).concatenate(second.prefetch(2))),
        lambda: firsts(Dataset.range(2).flat_map(lambda i: (first, second)[int(i)].prefetch(1))),
        lambda: firsts(Dataset.range(2).interleave(lambda i: (first, second)[int(i)], cycle_length=2)),
        lambda: [float(np.ravel(x)[0]) for pair in Dataset.zip((first, second)).prefetch(2) for x in pair],
    ]
    for way in ways:
        assert sorted(way()) == IN_TURN
    assert sorted(firsts(first.prefetch(1).repeat(2))) == sorted(2 * list(range(MANY)))


def test_threads_that_share_an_iterator_take_turns() -> None:
    iterator, lock = iter(Dataset.zip(two_steps("map", np.zeros(3)))), threading.Lock()
    taken: list[float] = []

    def take() -> None:
        while True:
            with lock:
                pair = next(iterator, None)
            if pair is None:
                return
            taken.extend(float(part[0]) for part in pair)
            time.sleep(0.0005)

    threads = [threading.Thread(target=take) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == IN_TURN


def test_a_pass_that_was_left_open_is_no_other_thread_that_fills() -> None:
    first, second = two_steps("map", np.zeros(3))
    left = iter(first.prefetch(1))
    next(left)
    time.sleep(0.05)  # its thread waits for room
    for _ in range(2):
        assert firsts(second) == list(range(1000, 1000 + MANY))
        assert firsts(second.prefetch(1)) == list(range(1000, 1000 + MANY))
