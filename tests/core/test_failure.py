# SPDX-License-Identifier: Apache-2.0
"""What can be made is made around each error, and the error that is raised is that of the first row at fault."""

import errno
import os
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import distinput as di
from distinput.columns.block import Block, Failure, of_all, sound_parts, stacked_parts
from distinput.values.nest import LEAF

Dataset = di.data.Dataset


@given(st.integers(1, 20), st.sets(st.integers(0, 19)))
def test_rows_around_those_at_fault_come_in_order(size: int, bad: set[int]) -> None:
    def make(first: int, end: int) -> Block:
        at_fault = sorted(bad & set(range(first, end)))
        if at_fault:
            raise ValueError(str(at_fault[0]))
        return Block.of_elements(LEAF, list(range(first, end)))

    found: list[object] = []
    ends = [0]
    for part, end in sound_parts(size, make, tolerant=True):
        found += [str(part.error)] if isinstance(part, Failure) else list(part.elements())
        ends.append(end)
    assert found == [str(row) if row in bad else row for row in range(size)]
    assert ends == sorted(set(ends))
    assert ends[-1] == size
    strict: list[object] = []

    def all_of_it() -> None:
        for part, _ in sound_parts(size, make, tolerant=False):
            strict.extend(part.elements())

    first_bad = min((row for row in bad if row < size), default=None)
    if first_bad is None:
        all_of_it()
    else:
        with pytest.raises(ValueError, match=f"^{first_bad}$"):
            all_of_it()
    assert strict == list(range(size if first_bad is None else first_bad))


def test_an_error_of_all_rows_is_not_looked_for_in_one_of_them() -> None:
    calls = []

    def make(first: int, end: int) -> Block:
        calls.append((first, end))
        raise of_all(ValueError("all"))

    (failure, end), *rest = sound_parts(8, make, tolerant=True)
    assert (str(failure.error), end, rest, calls) == ("all", 8, [], [(0, 8)])  # type: ignore[attr-defined]


def test_an_error_of_rows_together_is_raised_though_each_alone_is_sound() -> None:
    def make(first: int, end: int) -> Block:
        if end - first > 1:
            raise ValueError("together")
        return Block.of_elements(LEAF, [first])

    with pytest.raises(ValueError, match="together"):
        list(sound_parts(4, make, tolerant=False))
    assert [part.size for part, _ in sound_parts(4, make, tolerant=True)] == [1, 1, 1, 1]


@given(st.lists(st.integers(0, 1), max_size=12), st.integers(1, 3))
def test_batches_that_cannot_be_stacked_become_failures(lengths: list[int], size: int) -> None:
    lengths = lengths[: len(lengths) // size * size]
    block = Block.of_elements(LEAF, [np.zeros(n) for n in lengths]) if lengths else Block.of(LEAF, [])
    if not lengths:
        return
    groups = [lengths[first : first + size] for first in range(0, len(lengths), size)]
    found: list[bool] = []
    for part, done in stacked_parts(block, size, lambda error: ValueError(str(error)), tolerant=True):
        found += [False] if isinstance(part, Failure) else [True] * part.size
        assert done == len(found) * size
    assert found == [len(set(group)) == 1 for group in groups]
    if not all(found):
        with pytest.raises(ValueError, match="first element had shape"):
            list(stacked_parts(block, size, lambda error: ValueError(str(error)), tolerant=False))


def _fails_twice(x: Any) -> Any:
    if x in (2, 4):
        raise ValueError(f"{x} is no good")
    return x


def _misfits() -> Iterator[Any]:
    for x in range(8):
        yield "no number" if x in (2, 4) else x


FAILING: dict[str, Callable[[], Any]] = {
    "map": lambda: Dataset.range(8).map(_fails_twice),
    "map on threads": lambda: Dataset.range(8).map(_fails_twice, num_parallel_calls=2),
    "filter": lambda: Dataset.range(8).filter(lambda x: _fails_twice(x) >= 0),
    "scan": lambda: Dataset.range(8).scan(0, lambda s, x: (s, _fails_twice(x))),
    "flat_map": lambda: Dataset.range(8).flat_map(lambda x: Dataset.range(x, x + 1).map(_fails_twice)),
    "interleave": lambda: Dataset.range(8).interleave(lambda x: Dataset.range(x, x + 1).map(_fails_twice), 2),
    "generator": lambda: Dataset.from_generator(_misfits, output_signature=di.TensorSpec([], "int64")),
    "batch": lambda: Dataset.range(8).map(_fails_twice).batch(1).map(lambda x: x[0]),
    "padded": lambda: Dataset.range(8).map(lambda x: np.zeros(3 + (x in (2, 4)))).padded_batch(1, [3]).map(lambda _: 0),
    "prefetch": lambda: Dataset.range(8).map(_fails_twice).prefetch(2),
    "take_while": lambda: Dataset.range(8).take_while(lambda x: _fails_twice(x) >= 0),
    "window": lambda: Dataset.range(8).map(_fails_twice).window(1).flat_map(lambda w: w),
    "unbatch": lambda: Dataset.range(8).map(_fails_twice).batch(1).unbatch(),
    "group_by_window": lambda: Dataset.range(8).map(_fails_twice).group_by_window(lambda x: x, lambda _, w: w, 1),
}  # fmt: skip


@pytest.mark.parametrize("name", list(FAILING))
def test_who_clears_the_frames_of_an_error_does_not_end_the_stream(name: str) -> None:
    def outcomes(clear: bool) -> list[Any]:
        iterator, found = iter(FAILING[name]()), list[Any]()
        while len(found) < 20:
            try:
                found.append(int(next(iterator)))
            except StopIteration:
                break
            except (TypeError, ValueError, di.errors.InvalidArgumentError) as error:
                if clear:
                    traceback.clear_frames(error.__traceback__)
                found.append("error")
        return found

    assert outcomes(clear=True) == outcomes(clear=False)
    assert outcomes(clear=True).count("error") == 2
    assert len(outcomes(clear=True)) == 8


def _fails(_: Any) -> Any:
    raise ValueError("no good")


def _all_fail(signature: Any = None) -> Any:
    return Dataset.range(2).map(_fails, output_signature=signature)


def _sum_of(reduce: Callable[[Any, Any], Any]) -> Any:
    reducer = di.data.experimental.Reducer(lambda _: np.int64(0), reduce, lambda total: total)
    return di.data.experimental.group_by_reducer(lambda x: 0, reducer)


ONCE: dict[str, Callable[[Any], Any]] = {
    "reducer": lambda ds: ds.apply(_sum_of(lambda total, x: total + x)),
    "ragged": lambda ds: ds.ragged_batch(1),
    "sparse": lambda ds: ds.batch(1).sparse_batch(1, [None]),
    "ragged of batches": lambda ds: ds.batch(1).ragged_batch(1),
    "groups": lambda ds: ds.group_by_window(lambda x: x % 2, lambda _, window: window.batch(1), 2),
    "flat_map": lambda ds: ds.flat_map(lambda _: Dataset.range(3)),
    "interleave": lambda ds: ds.interleave(lambda _: Dataset.range(3), 2),
    "window": lambda ds: ds.window(1).flat_map(lambda window: window.batch(1)),
    "scan": lambda ds: ds.scan(0, lambda s, x: (s, x)),
    "unbatch": lambda ds: ds.unbatch(),
    "zip": lambda ds: Dataset.zip((ds.ragged_batch(1), Dataset.range(9))),
}


@pytest.mark.parametrize("signature", [None, di.TensorSpec([], "int64")])
@pytest.mark.parametrize("name", list(ONCE))
def test_where_every_element_fails_each_error_comes_once(name: str, signature: Any) -> None:
    if signature is not None and name in ("ragged", "unbatch", "zip"):
        pytest.skip("numbers are no rows")
    iterator, errors = iter(ONCE[name](_all_fail(signature))), 0
    while errors < 9:
        try:
            next(iterator)
        except StopIteration:
            break
        except ValueError:
            errors += 1
    assert errors == 2


@pytest.mark.parametrize("restart", [None, 0, 1, 2])
def test_an_element_whose_error_was_raised_is_left_out_of_its_group(restart: int | None) -> None:
    def reduce(total: Any, x: Any) -> Any:
        return total + _fails_twice(x)

    dataset = Dataset.range(6).apply(_sum_of(reduce))
    iterator, found = iter(dataset), list[Any]()
    while True:
        if len(found) == restart:
            iterator = dataset.restore(iterator.state())
        try:
            found.append(next(iterator))
        except StopIteration:
            break
        except ValueError as error:
            found.append(str(error))
    assert found == ["2 is no good", "4 is no good", 9]
    assert dataset.ignore_errors().to_list() == [9]


def test_a_result_that_fails_takes_no_other_along() -> None:
    reducer = di.data.experimental.Reducer(lambda key: key, lambda total, _: total, _fails_twice)
    sums = di.data.experimental.group_by_reducer(lambda x: x, reducer)
    assert Dataset.range(6).apply(sums).ignore_errors().to_list() == [0, 1, 3, 5]


OUT_OF_FILES = """
import os, resource, sys
import distinput as di
from distinput.formats import span_format

span_format.CHUNK_BYTES = int(sys.argv[3])
names = [os.path.join(sys.argv[1], f"{number}.txt") for number in range(80)]
for name in names:
    with open(name, "w") as file:
        file.write("a\\n")
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
lines = di.data.TextLineDataset
made = {
    "interleave": lambda: di.data.Dataset.from_tensor_slices(names).interleave(lines, cycle_length=80).to_list(),
    "zip": lambda: di.data.Dataset.zip(tuple(map(lines, names))).to_list(),
    "write": lambda: lines(names).filter(lambda x: True).write(sys.argv[1] + "/w", "text", shards=80),
    "iterators": lambda: [next(each) for each in [iter(lines(name)) for name in names]],
}[sys.argv[2]]
try:
    print(len(made()))
except OSError as error:
    print(error.errno, *error.__notes__, sep="\\n")
"""


@pytest.mark.skipif(os.name != "posix", reason="needs limits of POSIX")
@pytest.mark.fresh_process
@pytest.mark.parametrize("way", ["interleave", "zip", "write", "iterators"])
def test_a_process_without_descriptors_says_the_cure(way: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", OUT_OF_FILES, str(tmp_path), way, "1"]  # files of two bytes are not read whole
    found = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True).stdout
    assert found.startswith(f"{errno.EMFILE}\n"), found
    assert "as many files and connections open as it may" in found
    assert "ulimit -n 65536" in found
    assert "cycle_length" in found


@pytest.mark.skipif(os.name != "posix", reason="needs limits of POSIX")
@pytest.mark.fresh_process
@pytest.mark.parametrize("way", ["interleave", "zip", "iterators"])
def test_small_files_are_not_kept_open(way: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", OUT_OF_FILES, str(tmp_path), way, "100"]
    found = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True).stdout
    assert found == {"zip": "1\n"}.get(way, "80\n")


TAKES_ALL = """
import os, resource, sys
import distinput as di

def f(x):
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    try:
        while True:
            os.open(os.devnull, os.O_RDONLY)
    except OSError:
        raise ValueError("mine") from None

numbers = di.data.Dataset.range(3)
made = {
    "map": lambda: numbers.map(f),
    "parallel map": lambda: numbers.map(f, num_parallel_calls=2),
    "filter": lambda: numbers.filter(f),
    "flat_map": lambda: numbers.flat_map(f),
    "generator": lambda: di.data.Dataset.from_generator(lambda: map(f, [1]), output_signature=di.TensorSpec([], "int64")),
}[sys.argv[1]]()
try:
    made.to_list()
except ValueError as error:
    print(error)
"""


@pytest.mark.fresh_process
@pytest.mark.skipif(os.name != "posix", reason="needs limits of POSIX")
@pytest.mark.parametrize("step", ["map", "parallel map", "filter", "flat_map", "generator"])
def test_an_error_is_told_also_where_no_module_can_be_loaded(step: str) -> None:
    command = [sys.executable, "-c", TAKES_ALL, step]
    found = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert found.stdout == "mine\n", found.stderr
