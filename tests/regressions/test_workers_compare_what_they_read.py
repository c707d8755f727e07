# SPDX-License-Identifier: Apache-2.0
"""Workers whose datasets differ do not take a step: all of them say what differs, and on whom; equal ones take them all."""

import json
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.distribute import InputOptions
from distinput.errors import FailedPreconditionError, StateError
from distinput.ops.interleave import Interleave
from tests.distribute.workers import by_step, on_workers, rows_of, with_policy

Dataset = di.data.Dataset
POLICY = di.data.experimental.AutoShardPolicy
N = 40


def files(folder: Path, counts: tuple[int, ...] = (10, 10, 10, 10), size: int = 1) -> list[str]:
    """Text files a.txt, b.txt, ... with numbered lines."""
    folder.mkdir(parents=True, exist_ok=True)
    paths, number = [], 0
    for letter, count in zip("abcdefgh", counts, strict=False):
        path = folder / f"{letter}.txt"
        path.write_text("".join(f"{number + i:0{size}d}\n" for i in range(count)))
        number += count
        paths.append(str(path))
    return paths


def lines(paths: list[str]) -> Any:
    return di.data.TextLineDataset(paths).map(lambda line: np.int64(int(line)))


Make = Callable[[int, Path], Any]
"""A dataset of (worker, folder), batched."""


def less(x: int, y: int) -> bool:
    return x < y


def of_files(change: Callable[[int, list[str]], list[str]], policy: Any = POLICY.AUTO) -> Make:
    def make(worker: int, folder: Path) -> Any:
        paths = [str(folder / f"{letter}.txt") for letter in "abcd"]
        return with_policy(lines(change(worker, paths)).batch(4), policy)

    return make


def filtered(worker: int, _: Path) -> Any:
    bound = N - 10 * worker
    return Dataset.range(N).filter(lambda x: x < bound).batch(4)


def over(change: Callable[[int], Any]) -> Make:
    return lambda worker, _: change(worker)


DIFFERENT: dict[str, tuple[Make, str]] = {
    "seeds": (
        over(lambda w: Dataset.range(N).shuffle(N, seed=5 + 2 * w).batch(4)),
        r"worker 1: step 2 \(shuffle\): seed 7, worker 0: seed 5",
    ),
    "seeds of global_shuffle": (
        over(lambda w: Dataset.range(N).global_shuffle(seed=5 + 2 * w).batch(4)),
        r"worker 1: step 2 \(global_shuffle\): seed 7, worker 0: seed 5",
    ),
    "a seed on one worker": (
        over(lambda w: Dataset.range(N).shuffle(N, seed=w or None).batch(4)),
        r"worker 1: step 2 \(shuffle\): seed 1, worker 0: seed None",
    ),
    "seeds of a mixture": (
        over(lambda w: Dataset.sample_from_datasets([Dataset.range(N), Dataset.range(N)], seed=w).batch(4)),
        r"worker 1: step 3 \(sample_from_datasets\): seed 1, worker 0: seed 0",
    ),
    "batch sizes": (
        over(lambda w: Dataset.range(N).batch(4 + 4 * w)),
        r"worker 1: step 2 \(batch\): batch_size 8, worker 0: batch_size 4",
    ),
    "batch sizes with policy OFF": (
        over(lambda w: with_policy(Dataset.range(N).batch(4 + 4 * w), POLICY.OFF)),
        "worker 1: global batch size 8, worker 0: 4",
    ),
    "policies": (
        over(lambda w: with_policy(Dataset.range(N).batch(4), POLICY.DATA if w else POLICY.OFF)),
        "worker 1: policy DATA, worker 0: OFF",
    ),
    "lengths of arrays": (
        over(lambda w: Dataset.from_tensor_slices(np.arange(N - 10 * w)).batch(4)),
        r"worker 1: step 1 \(from_tensor_slices\): elements 30 rows of int64, worker 0: elements 40 rows",
    ),
    "contents of arrays": (
        over(lambda w: Dataset.from_tensor_slices(np.arange(N) + w).batch(4)),
        r"worker 1: step 1 \(from_tensor_slices\): holds other values than worker 0",
    ),
    "lengths of ranges": (
        over(lambda w: Dataset.range(N - w).batch(4)),
        r"worker 1: step 1 \(range\): stop 39, worker 0: stop 40",
    ),
    "lengths behind a filter": (
        over(lambda w: Dataset.range(N - 10 * w).filter(lambda x: True).batch(4)),
        r"worker 1: step 1 \(range\): stop 30, worker 0: stop 40",
    ),
    "what a filter keeps": (filtered, r"worker 1: step 2 \(filter\): its function reads other values from outside"),
    "functions": (
        over(lambda w: Dataset.range(N).map((lambda x: x + 1) if w else (lambda x: x * 2)).batch(4)),
        r"worker 1: step 2 \(map\): its function does something else than that of worker 0",
    ),
    "steps": (
        over(lambda w: (Dataset.range(N).repeat(2) if w else Dataset.range(N).shuffle(3, seed=1)).batch(4)),
        "worker 1: step 2 is repeat, worker 0: shuffle",
    ),
    "how many steps": (
        over(lambda w: Dataset.range(N).batch(4).repeat(2) if w else Dataset.range(N).batch(4)),
        "worker 1: 3 steps, the last one repeat, worker 0: 2 steps, the last one batch",
    ),
    "dtypes": (
        over(lambda w: with_policy(Dataset.range(N, output_type="int32" if w else "int64").batch(4), POLICY.OFF)),
        "worker 1: elements int32, worker 0: int64",
    ),
    "ends": (
        over(lambda w: with_policy(Dataset.range(N).repeat(None if w else 3).batch(4), POLICY.OFF)),
        "worker 1: endless True, worker 0: False",
    ),
    "order of files": (
        of_files(lambda w, paths: paths[::-1] if w else paths),
        r"step 1 \(from_tensor_slices\): the same 4 files in another order: file 1 is d.txt, worker 0: a.txt",
    ),
    "one file fewer": (
        of_files(lambda w, paths: paths[:2] + paths[3:] if w else paths),
        r"worker 1: step 1 \(from_tensor_slices\): 3 files, worker 0: 4 files: c.txt is missing",
    ),
    "one file fewer with policy FILE": (
        of_files(lambda w, paths: paths[1:] if w else paths, POLICY.FILE),
        r"3 files, worker 0: 4 files: a.txt is missing",
    ),
    "files and their number": (
        of_files(lambda w, paths: paths[:3] if w else paths[1:]),
        r"3 files, worker 0: 3 files: d.txt is missing, a.txt is not there on worker 0",
    ),
}


def outcome(make: Make, tmp_path: Path, options: Any = None, workers: int = 2) -> list[Any]:
    files(tmp_path)

    def body(strategy: Any, worker: int) -> Any:
        given = () if options is None else (options,)
        return rows_of(strategy, strategy.experimental_distribute_dataset(make(worker, tmp_path), *given))

    return on_workers([1] * workers, body)


@pytest.mark.parametrize("kind", DIFFERENT)
def test_all_workers_say_what_differs(kind: str, tmp_path: Path) -> None:
    make, text = DIFFERENT[kind]
    first, second = outcome(make, tmp_path)
    assert isinstance(first, FailedPreconditionError), first
    assert str(first) == str(second)
    assert re.search(text, str(first)), str(first)
    assert "dataset alike on every worker" in str(first)


def test_a_balanced_split_compares_with_policy_off_too(tmp_path: Path) -> None:
    make = over(lambda w: with_policy(Dataset.range(N - w).batch(4), POLICY.OFF))
    first, second = outcome(make, tmp_path, InputOptions(balanced_split=True))
    assert "step 1 (range): stop 39, worker 0: stop 40" in str(first) == str(second)


@pytest.mark.parametrize("option", [{"tail": "drop"}, {"balanced_split": True}], ids=str)
def test_options_are_compared(option: dict[str, Any]) -> None:
    def body(strategy: Any, worker: int) -> Any:
        strategy.experimental_distribute_dataset(Dataset.range(N).batch(4), InputOptions(**option if worker else {}))

    (name, value), *_ = option.items()
    for error in on_workers([1, 1], body):
        assert f"worker 1: {name} {value}, worker 0: " in str(error)


def test_the_odd_one_out_is_named_and_large_groups_are_one() -> None:
    def body(strategy: Any, worker: int) -> Any:
        strategy.experimental_distribute_dataset(Dataset.range(N + (worker == 0) + 2 * (worker == 3)).batch(4))

    for error in on_workers([1] * 6, body):
        assert isinstance(error, FailedPreconditionError)
        assert "worker 0: step 1 (range): stop 41, worker 1: stop 40" in str(error)
        assert "worker 3: step 1 (range): stop 42, worker 1: stop 40" in str(error)
        assert "worker 4" not in str(error)


def test_after_the_error_the_workers_can_go_on() -> None:
    def body(strategy: Any, worker: int) -> Any:
        with pytest.raises(FailedPreconditionError):
            strategy.experimental_distribute_dataset(Dataset.range(N + worker).batch(4))
        return rows_of(strategy, strategy.experimental_distribute_dataset(Dataset.range(N).batch(4)))

    assert sorted(x for step in by_step(on_workers([1, 1], body)) for part in step for x in part) == list(range(N))


def test_what_one_worker_cannot_build_all_hear_of() -> None:
    def body(strategy: Any, worker: int) -> Any:
        strategy.experimental_distribute_dataset(Dataset.range(N) if worker else Dataset.range(N).batch(4))

    first, second = on_workers([1, 1], body)
    assert str(first).startswith("on worker 1 of 2: experimental_distribute_dataset: ")
    assert "has no batch axis" in str(second)


# What may differ -----------------------------------------------------------------------------------------------------


def read_below(root: str) -> Any:
    return lambda name: lines([root + name.decode()])


EQUAL: dict[str, Make] = {
    "nothing": over(lambda w: Dataset.range(N).shuffle(N, seed=3).batch(4)),
    "no seed": over(lambda w: Dataset.range(N).shuffle(N).batch(4)),
    "no seed, global_shuffle": over(lambda w: Dataset.range(N).global_shuffle().batch(4)),
    "no seed, in windows": over(
        lambda w: Dataset.range(N).group_by_window(
            lambda x: x % 3, lambda key, window: window.shuffle(9).batch(4), window_size=7
        )
    ),
    "no seed, in a function": over(
        lambda w: Dataset.range(4).flat_map(lambda x: Dataset.range(10 * x, 10 * x + 10).shuffle(9)).batch(4)
    ),
    "how it runs": over(
        lambda w: (
            (Dataset.range(N).prefetch(2) if w else Dataset.range(N))
            .map(lambda x: x, num_parallel_calls=1 + w, deterministic=bool(w))
            .batch(4)
        )
    ),
    "names of steps": over(lambda w: Dataset.range(N).batch(4, name=f"worker {w}")),
    "what a map holds": over(lambda w: Dataset.range(N).map(lambda x: x * (w >= 0)).batch(4)),
}


@pytest.mark.parametrize("kind", EQUAL)
def test_what_does_not_matter_may_differ(kind: str, tmp_path: Path) -> None:
    steps = by_step(outcome(EQUAL[kind], tmp_path))
    assert sorted(x for step in steps for part in step for x in part) == list(range(N))


@pytest.mark.parametrize("policy", [POLICY.AUTO, POLICY.DATA, POLICY.FILE, POLICY.BALANCED])
@pytest.mark.parametrize("way", ["names", "list_files", "shuffled", "interleave", "in a function"])
def test_files_may_lie_in_other_folders(policy: Any, way: str, tmp_path: Path) -> None:
    roots = ["one", "other/mount"]
    for root in roots:
        files(tmp_path / root / "data")

    def make(worker: int, _: Path) -> Any:
        folder = tmp_path / roots[worker] / "data"
        paths = [str(folder / f"{letter}.txt") for letter in "abcd"]
        dataset = {
            "names": lambda: lines(paths),
            "list_files": lambda: lines(Dataset.list_files(f"{folder}/*.txt", shuffle=False)),
            "shuffled": lambda: lines(Dataset.list_files(f"{folder}/*.txt")),
            "interleave": lambda: Dataset.list_files(f"{folder}/*.txt").interleave(lines, cycle_length=2),
            "in a function": lambda: Dataset.from_tensor_slices(["a.txt", "b.txt", "c.txt", "d.txt"]).flat_map(
                read_below(f"{folder}/")
            ),
        }[way]()
        return with_policy(dataset.batch(4), policy)

    if way == "in a function" and policy == POLICY.BALANCED:
        pytest.skip("BALANCED looks for the files that a step names")
    steps = by_step(outcome(make, tmp_path))
    assert sorted(x for step in steps for part in step for x in part) == list(range(N))


def test_a_file_missing_in_another_folder_is_told_by_its_name(tmp_path: Path) -> None:
    files(tmp_path / "one" / "x")
    files(tmp_path / "two" / "x", (10, 10))
    files(tmp_path / "one" / "y")
    make = over(lambda w: lines(sorted(map(str, (tmp_path / ["one", "two"][w]).rglob("*.txt")))).batch(4))
    for error in outcome(make, tmp_path):
        assert "2 files, worker 0: 8 files: x/c.txt, x/d.txt, y/a.txt and 3 more are missing" in str(error)


def test_sizes_of_files_are_compared(tmp_path: Path) -> None:
    files(tmp_path / "one")
    files(tmp_path / "two", (10, 9, 10, 10))
    make = over(lambda w: lines(sorted(map(str, (tmp_path / ["one", "two"][w]).rglob("*.txt")))).batch(4))
    for error in outcome(make, tmp_path):
        assert "b.txt has 27 bytes, worker 0: has 30 bytes" in str(error)


def test_with_policy_off_and_from_functions_the_data_may_differ() -> None:
    def body(strategy: Any, worker: int) -> Any:
        mine = Dataset.range(100 * worker, 100 * worker + 8 + worker).shuffle(3, seed=worker)
        off = strategy.experimental_distribute_dataset(with_policy(mine.batch(4), POLICY.OFF))
        made = strategy.distribute_datasets_from_function(lambda context: mine.batch(2))
        return rows_of(strategy, off) + rows_of(strategy, made)

    expected = sorted([*range(8), *range(100, 109)] * 2)
    assert sorted(x for step in by_step(on_workers([1, 1], body)) for part in step for x in part) == expected


@pytest.mark.parametrize(
    "make, text",
    [
        (lambda w: Dataset.range(5, output_type="int32" if w else "int64").batch(2), "elements int32, worker 0: int64"),
        (
            lambda w: Dataset.range(5).map(lambda x: (x, x) if w else x).batch(2),
            r"elements \[0\] int64, \[1\] int64, worker 0: int64",
        ),
        (lambda w: Dataset.range(5).repeat(None if w else 2).batch(2), "endless True, worker 0: False"),
    ],
)
def test_datasets_from_functions_must_have_the_same_elements(make: Callable[[int], Any], text: str) -> None:
    def body(strategy: Any, worker: int) -> Any:
        strategy.distribute_datasets_from_function(lambda context: make(worker))

    for error in on_workers([1, 1], body):
        assert isinstance(error, FailedPreconditionError), error
        assert re.search(text, str(error)), str(error)


def test_machines_with_other_cores_interleave_alike(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    mine = threading.local()
    monkeypatch.setattr("distinput.ops.interleave.cores", lambda: mine.cores)
    monkeypatch.setattr("distinput.ops.interleave.Interleave.cycle", property(Interleave.cycle.func))

    def make(worker: int, _: Path) -> Any:
        mine.cores = 2 + 3 * worker
        return Dataset.range(8).interleave(lambda x: Dataset.range(5 * x, 5 * x + 5)).batch(4)

    steps = by_step(outcome(make, tmp_path))
    assert sorted(x for step in steps for part in step for x in part) == list(range(N))


# Places --------------------------------------------------------------------------------------------------------------


def restored(make: Callable[[int], Any], steps: tuple[int, int], way: str = "restore") -> list[Any]:
    """What workers get that go on after so many steps each; each -1 begins anew."""

    def states(strategy: Any, worker: int) -> Any:
        found = []
        with iter(strategy.experimental_distribute_dataset(make(worker))) as iterator:
            for _ in range(4):
                found.append(json.dumps(iterator.state()))
                next(iterator)
        return found

    saved = on_workers([1, 1], states)

    def body(strategy: Any, worker: int) -> Any:
        dataset = strategy.experimental_distribute_dataset(make(worker))
        if steps[worker] < 0:
            return rows_of(strategy, dataset)
        state = json.loads(saved[worker][steps[worker]])
        if way == "restore":
            return rows_of(strategy, dataset.restore(state))
        iterator = iter(dataset)
        iterator.load_state_dict(state)
        return rows_of(strategy, iterator)

    return on_workers([1, 1], body)


PLACES: dict[str, Callable[[int], Any]] = {
    "data": lambda w: Dataset.range(N).shuffle(N, seed=1).batch(4),
    "in lockstep": lambda w: Dataset.range(N).filter(lambda x: True).batch(4),
    "off": lambda w: with_policy(Dataset.range(N + w).batch(4), POLICY.OFF),
}


@pytest.mark.parametrize("way", ["restore", "load_state_dict"])
@pytest.mark.parametrize("kind", PLACES)
def test_checkpoints_one_step_apart(kind: str, way: str) -> None:
    for error in restored(PLACES[kind], (3, 2), way):
        assert isinstance(error, StateError), error
        assert "worker 1 restores step 2, worker 0 restores step 3" in str(error)
    for error in restored(PLACES[kind], (2, -1), way):
        assert isinstance(error, StateError), error
        assert "worker 1 begins at step 0, worker 0 restores step 2" in str(error)
    assert by_step(restored(PLACES[kind], (2, 2), way)) == by_step(restored(PLACES[kind], (-1, -1), way))[2:]


def test_a_pass_more_on_one_worker() -> None:
    def body(strategy: Any, worker: int) -> Any:
        dataset = strategy.experimental_distribute_dataset(Dataset.range(N).shuffle(N, seed=1).batch(4))
        if worker:
            iter(dataset).close()
        return rows_of(strategy, dataset)

    for error in on_workers([1, 1], body):
        assert isinstance(error, FailedPreconditionError)
        assert "worker 1 begins at step 0 of pass 1, worker 0 begins at step 0 of pass 0" in str(error)


# The end -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("split", [False, True])
def test_other_lengths_that_nobody_could_see_before_are_told_where_they_show(split: bool) -> None:
    def body(strategy: Any, worker: int) -> Any:
        length = 13 - 4 * (worker == 1)
        source = Dataset.from_generator(lambda: iter(range(length)), output_signature=di.TensorSpec([], "int64"))
        return rows_of(
            strategy, strategy.experimental_distribute_dataset(source.batch(4), InputOptions(balanced_split=split))
        )

    for error in on_workers([1] * 3, body):
        assert isinstance(error, FailedPreconditionError), error
        assert "worker 0 has a batch of 4 rows, worker 1 has a batch of 1 rows, worker 2 has a batch of 4 rows" in str(
            error
        )
        assert "worker 1: the function of step 1 (from_generator) reads other values from outside" in str(error)


def test_one_that_ends_early() -> None:
    def body(strategy: Any, worker: int) -> Any:
        left = [8, 4][worker]
        source = Dataset.range(20).filter(lambda x: next(count) < left)
        count = iter(range(10**6))
        return list(strategy.experimental_distribute_dataset(source.batch(4)))

    for error in on_workers([1, 1], body):
        assert isinstance(error, FailedPreconditionError), error
