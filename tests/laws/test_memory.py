# SPDX-License-Identifier: Apache-2.0
"""What users do with arrays in place does not reach other elements, later passes, or data that is theirs."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.values.nest import structure_of

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
