# SPDX-License-Identifier: Apache-2.0
"""A state is refused by a pipeline of the same steps over other files, arrays or functions."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.errors import StateError
from distinput.testing.range_server import RangeServer
from tests.distribute.workers import on_workers, with_policy

Dataset = di.data.Dataset
Text = di.data.TextLineDataset


def stopped(dataset: di.data.Dataset, after: int) -> tuple[Any, list[Any]]:
    """A state as it comes back from a file, and what followed it."""
    with iter(dataset) as iterator:
        for _ in range(after):
            next(iterator)
        return json.loads(json.dumps(iterator.state(), sort_keys=True)), list(iterator)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b", "c"):
        Path(f"{name}.txt").write_text("".join(f"{name}{i}\n" for i in range(5)))
    return tmp_path


WAYS: dict[str, Callable[[Any], di.data.Dataset]] = {
    "text": Text,
    "reads": lambda names: Text(names, num_parallel_reads=2),
    "flat_map": lambda names: Dataset.from_tensor_slices(names).flat_map(Text),
    "interleave": lambda names: Dataset.from_tensor_slices(names).interleave(Text, cycle_length=2),
    "map": lambda names: Dataset.from_tensor_slices(names).repeat(5).map(lambda name: name + b"!"),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("other", [["b.txt", "a.txt"], ["a.txt", "c.txt"], ["a.txt"], ["a.txt", "b.txt", "c.txt"]])
def test_a_state_of_other_files_is_refused(folder: Path, way: str, other: list[str]) -> None:
    make = WAYS[way]
    state, rest = stopped(make(["a.txt", "b.txt"]), 7)
    assert list(make(["a.txt", "b.txt"]).restore(state)) == rest
    with pytest.raises(StateError, match=r"another order|other files|here and|other values"):
        make(other).restore(state)


@pytest.mark.parametrize("way", WAYS)
def test_renamed_files(folder: Path, way: str) -> None:
    make = WAYS[way]
    state, _ = stopped(make(["a.txt", "b.txt"]), 7)
    for name in ("a", "b"):
        Path(f"{name}.txt").rename(f"new_{name}.txt")
    with pytest.raises(StateError, match="other files"):
        make(["new_a.txt", "new_b.txt"]).restore(state)


@pytest.mark.parametrize("way", WAYS)
def test_a_file_that_was_written_again(folder: Path, way: str) -> None:
    make = WAYS[way]
    names = ["a.txt", "b.txt"]
    dataset = make(names)
    state, rest = stopped(dataset, 7)
    Path("b.txt").write_text("".join(f"z{i}\n" for i in range(5)))
    os.utime("b.txt", (5, 5))
    for seen in (dataset, make(names)):
        with pytest.raises(StateError, match=r"b\.txt has another time of change"):
            seen.restore(state)
    Path("b.txt").write_text("b\n")
    with pytest.raises(StateError, match=r"b\.txt has another size"):
        make(names).restore(state)
    if way == "map":
        assert list(make(names).restore(state, may_differ="sizes")) == rest


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "gone, other, says",
    [
        ("a.txt", "b.txt", "the first is gone"),
        ("b.txt", "a.txt", r"a\.txt has another size"),
        ("b.txt", "c.txt", r"b\.txt is gone"),
    ],
)
def test_a_file_that_is_gone_hides_no_other_that_changed(
    folder: Path, way: str, gone: str, other: str, says: str
) -> None:
    names = ["a.txt", "b.txt"]
    state, rest = stopped(WAYS[way](names), 3)
    os.remove(gone)
    Path(other).write_text("".join(f"z{i}\n" for i in range(5)))
    with pytest.raises(StateError, match=says):
        WAYS[way](names).restore(state)
    if way == "map":
        assert list(WAYS[way](names).restore(state, may_differ="sizes")) == rest


def test_a_file_of_the_web_that_was_replaced(folder: Path) -> None:
    pytest.importorskip("aiohttp")
    with RangeServer(folder) as server:
        names = [f"{server.url}/{name}.txt" for name in ("a", "b")]
        state, rest = stopped(Text(names), 3)
        assert list(Text(names).restore(state)) == rest
        Path("b.txt").write_text("".join(f"z{i}\n" for i in range(5)))
        with pytest.raises(StateError, match=r"b\.txt has another version; may_differ='times'"):
            Text(names).restore(state)
        assert list(Text(names).restore(state, may_differ="times")) == [*rest[:2], *[b"z%d" % i for i in range(5)]]


@pytest.mark.parametrize("policy", ["FILE", "BALANCED", "DATA"])
def test_a_file_that_was_written_again_while_workers_share_it(folder: Path, policy: str) -> None:
    def begun(strategy: Any, worker: int) -> Any:
        dataset = with_policy(Text(["a.txt", "b.txt"]).batch(4), di.data.experimental.AutoShardPolicy[policy])
        with iter(strategy.experimental_distribute_dataset(dataset)) as iterator:
            next(iterator)
            return iterator.state()

    def goes_on(strategy: Any, worker: int) -> Any:
        dataset = with_policy(Text(["a.txt", "b.txt"]).batch(4), di.data.experimental.AutoShardPolicy[policy])
        return list(strategy.experimental_distribute_dataset(dataset).restore(states))

    states = on_workers([1, 1], begun)
    for name in ("a", "b"):
        Path(f"{name}.txt").write_text("".join(f"z{i}\n" for i in range(5)))
        os.utime(f"{name}.txt", (5, 5))
    assert [type(each) for each in on_workers([1, 1], goes_on)] == [StateError] * 2


def test_what_was_saved_again_in_the_same_folder(folder: Path) -> None:
    for first in (0, 100):
        shutil.rmtree("saved", ignore_errors=True)
        Dataset.range(first, first + 9).save("saved")
        os.utime(next(Path("saved").glob("*.arrow")), (first, first))
        if not first:
            state, _ = stopped(Dataset.load("saved"), 5)
    with pytest.raises(StateError, match="another time of change"):
        Dataset.load("saved").restore(state)


@pytest.mark.parametrize("way", WAYS)
def test_a_data_set_that_moved(folder: Path, way: str) -> None:
    make = WAYS[way]

    def names(root: str) -> list[str]:
        return [f"{root}/{name}.txt" for name in ("a", "b")]

    for root in ("old", "new"):
        Path(root).mkdir()
        for name in ("a", "b"):
            shutil.copy(f"{name}.txt", f"{root}/{name}.txt")
    state, rest = stopped(make(names("old")), 7)
    with pytest.raises(StateError, match=r"may_differ='root'"):
        make(names("new")).restore(state)
    if way != "map":
        assert list(make(names("new")).restore(state, may_differ="root")) == rest
        iterator = iter(make(names("new")))
        iterator.load_state_dict(state, may_differ=["root"])
        assert list(iterator) == rest
    with pytest.raises(StateError, match="another order"):
        make(names("new")[::-1]).restore(state, may_differ="root")


def test_files_in_a_store_that_is_not_local() -> None:
    import fsspec

    store = fsspec.filesystem("memory")
    for name in ("a", "b", "c"):
        store.pipe(f"/states/{name}.txt", "".join(f"{name}{i}\n" for i in range(5)).encode())
    names = ["memory://states/a.txt", "memory://states/b.txt"]
    state, rest = stopped(Text(names), 7)
    assert list(Text(names).restore(state)) == rest
    store.pipe("/states/b.txt", b"b\n")
    with pytest.raises(StateError, match=r"b\.txt has another size"):
        Text(names).restore(state)
    with pytest.raises(StateError, match="other files"):
        Text([names[0], "memory://states/c.txt"]).restore(state)


@pytest.mark.parametrize(
    "here, there",
    [
        (np.arange(9), np.arange(9)[::-1].copy()),
        (np.arange(9.0), np.arange(9.0) + 1e-9),
        ([f"x{i}" for i in range(9)], [f"y{i}" for i in range(9)]),
        ({"a": np.arange(9), "b": np.zeros(9)}, {"a": np.zeros(9, int), "b": np.arange(9.0)}),
    ],
)
def test_another_array_of_the_same_shape(here: Any, there: Any) -> None:
    make = Dataset.from_tensor_slices
    state, _ = stopped(make(here), 7)
    assert len(list(make(here).restore(state))) == 2
    with pytest.raises(StateError, match=r"slices.* holds other values|other arguments"):
        make(there).restore(state)


def numbers(first: int) -> Any:
    yield from range(first, first + 9)


FUNCTIONS: dict[str, tuple[Callable[[Any], di.data.Dataset], Any, Any]] = {
    "map": (lambda f: Dataset.range(9).map(f), lambda x: x + 1, lambda x: x + 2),
    "map in threads": (
        lambda f: Dataset.range(9).map(f, num_parallel_calls=2), lambda x: x + 1, lambda x: x - 1,
    ),
    "map_rows": (lambda f: Dataset.range(9).map_rows(f), lambda x: x + 1, lambda x: x * 1),
    "filter": (lambda f: Dataset.range(20).filter(f), lambda x: x > 1, lambda x: x > 2),
    "take_while": (lambda f: Dataset.range(20).take_while(f), lambda x: x < 18, lambda x: x < 19),
    "scan": (lambda f: Dataset.range(9).scan(np.int64(0), f), lambda s, x: (s + x, s), lambda s, x: (s + x, x)),
    "flat_map": (
        lambda f: Dataset.range(9).flat_map(f), lambda x: Dataset.range(x), lambda x: Dataset.range(x + 1),
    ),
    "group_by_window": (
        lambda f: Dataset.range(20).group_by_window(f, lambda _, group: group, 2), lambda x: x % 2, lambda x: x % 3,
    ),
    "bucket": (
        lambda f: Dataset.range(20).batch(1).bucket_by_sequence_length(f, [3], [2, 2]), len, lambda x: int(x[0]),
    ),
    "generator": (
        lambda f: Dataset.from_generator(f, output_signature=di.TensorSpec([], "int64")),
        lambda: numbers(0), lambda: numbers(1),
    ),
    "arguments of a generator": (
        lambda n: Dataset.from_generator(numbers, args=(n,), output_signature=di.TensorSpec([], "int64")), 0, 1,
    ),
    "scan, from another value": (
        lambda n: Dataset.range(9).scan(np.int64(n), lambda s, x: (s + x, s)), 0, 1,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_another_function(name: str) -> None:
    make, here, there = FUNCTIONS[name]
    state, rest = stopped(make(here), 7)
    with make(here).restore(state) as again:
        assert [np.asarray(x).tolist() for x in again] == [np.asarray(x).tolist() for x in rest]
    with pytest.raises(StateError, match=r"step \d \(.*\) has"):
        make(there).restore(state)
    if callable(there):
        make(there).restore(state, may_differ="functions").close()


def test_numba_functions_count_too() -> None:
    numba = pytest.importorskip("numba")
    make = Dataset.range(9).map
    state, _ = stopped(make(numba.njit(lambda x: x + 1)), 3)
    assert list(make(numba.njit(lambda x: x + 1)).restore(state)) == [4, 5, 6, 7, 8, 9]
    with pytest.raises(StateError, match="another body"):
        make(numba.njit(lambda x: x + 2)).restore(state)


def test_distributed_states_belong_to_their_data_too(folder: Path) -> None:
    strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])

    def made(names: list[str]) -> Any:
        return strategy.experimental_distribute_dataset(Text(names).batch(2))

    iterator = iter(made(["a.txt", "b.txt"]))
    next(iterator)
    state = json.loads(json.dumps(iterator.state()))
    assert len(list(made(["a.txt", "b.txt"]).restore(state))) == 4
    with pytest.raises(StateError, match="another order"):
        made(["b.txt", "a.txt"]).restore(state)
    Path("new").mkdir()
    for name in ("a.txt", "b.txt"):
        shutil.copy(name, f"new/{name}")
    moved = made(["new/a.txt", "new/b.txt"])
    with pytest.raises(StateError, match="another folder"):
        moved.restore(state)
    assert len(list(moved.restore(state, may_differ="root"))) == 4
    other = iter(moved)
    other.load_state_dict(state, may_differ="root")
    assert len(list(other)) == 4


@pytest.mark.parametrize(
    "make",
    [
        lambda f: Dataset.range(3, 6).flat_map(f),
        lambda f: Dataset.range(3, 6).interleave(f, cycle_length=2),
        lambda f: Dataset.range(9).group_by_window(lambda x: x % 2, lambda _, group: group.flat_map(f), 3),
    ],
)
def test_a_function_that_makes_other_steps_now(make: Callable[[Any], di.data.Dataset]) -> None:
    state, _ = stopped(make(lambda x: Dataset.range(x).concatenate(Dataset.range(2))), 4)
    with (
        make(lambda x: Dataset.range(9).batch(1).unbatch()).restore(state, may_differ="functions") as again,
        pytest.raises(StateError, match="the function made a dataset of other steps when the state was saved"),
    ):
        list(again)
