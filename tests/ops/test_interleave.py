# SPDX-License-Identifier: Apache-2.0
import gzip
import itertools
import json
import os
import random
import sys
import threading
import warnings
from collections.abc import Callable
from dataclasses import replace
from itertools import accumulate, count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.errors import InvalidArgumentError
from distinput.functions.dataset_functions import Making
from distinput.ops import interleave
from distinput.ops.interleave import _Cycle, _Pace
from distinput.ops.reader import Reader
from distinput.run.run import CoreUse, Run
from distinput.testing import check_restart
from tests.depth import cases, crossed
from tests.ops.iterating import until_error
from tests.patience import threads_since

Dataset = di.data.Dataset
RANGE = Dataset.range
AUTOTUNE = di.data.AUTOTUNE


def three(x: int) -> di.data.Dataset:
    return Dataset.from_tensors(x).repeat(3)


@pytest.mark.parametrize(
    "cycle, block, want",
    [
        (1, 1, [1, 1, 1, 2, 2, 2, 3, 3, 3]),
        (2, 1, [1, 2, 1, 2, 1, 2, 3, 3, 3]),
        (2, 2, [1, 1, 2, 2, 1, 2, 3, 3, 3]),
        (3, 2, [1, 1, 2, 2, 3, 3, 1, 2, 3]),
        (9, None, [1, 2, 3, 1, 2, 3, 1, 2, 3]),
    ],
)
@pytest.mark.parametrize("calls", [None, 1])
def test_elements_come_in_turns_of_block_length(
    cycle: int, block: int | None, calls: int | None, want: list[int]
) -> None:
    assert RANGE(1, 4).interleave(three, cycle, block, num_parallel_calls=calls).to_list() == want


def test_an_ended_slot_is_filled_when_the_round_comes_back_to_it() -> None:
    # TensorFlow 2.21 answers so: the turn of the dataset that ended goes to the next one, not to its successor.
    assert RANGE(1, 5).interleave(lambda x: Dataset.from_tensors(x).repeat(x), 2).to_list() == [
        1,
        2,
        2,
        3,
        3,
        4,
        3,
        4,
        4,
        4,
    ]


@pytest.mark.parametrize(
    "endless, calls, count",
    [
        # TensorFlow 2.21 answers so.
        (True, 2, di.data.INFINITE_CARDINALITY),
        (True, None, di.data.UNKNOWN_CARDINALITY),
        (False, 2, di.data.UNKNOWN_CARDINALITY),
    ],
)
def test_the_cardinality_is_unknown_or_infinite(endless: bool, calls: int | None, count: int) -> None:
    source = RANGE(3).repeat() if endless else RANGE(3)
    assert source.interleave(three, 2, num_parallel_calls=calls).cardinality() == count


@pytest.mark.parametrize(
    "kwargs, error, message",
    [
        ({"map_func": 1}, TypeError, "map_func must be a function, got 1"),
        ({"cycle_length": 0}, InvalidArgumentError, "cycle_length must be greater than zero, got 0"),
        ({"cycle_length": -2}, InvalidArgumentError, "cycle_length must be greater than zero, got -2"),
        ({"cycle_length": 1.5}, TypeError, "cycle_length must be an integer, got 1.5"),
        ({"block_length": 0}, InvalidArgumentError, "block_length must be greater than zero, got 0"),
        (
            {"cycle_length": 2, "num_parallel_calls": 3},
            InvalidArgumentError,
            "num_parallel_calls must be at most cycle_length 2, got 3",
        ),
        ({"num_parallel_calls": 0}, InvalidArgumentError, "num_parallel_calls must be at least 1, or AUTOTUNE, got 0"),
    ],
)
def test_arguments_are_checked(kwargs: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"interleave: {message}"):
        RANGE(3).interleave(**{"map_func": RANGE, **kwargs})


@pytest.mark.parametrize("op", ["flat_map", "interleave"])
def test_the_function_must_return_a_dataset(op: str) -> None:
    says = f"^{op}: the function must return a dataset, got int64"
    with pytest.raises(TypeError, match=says):
        getattr(RANGE(3), op)(lambda x: np.int64(x))  # the first element is in memory
    with pytest.raises(TypeError, match=says):
        getattr(RANGE(3).map(abs), op)(lambda x: np.int64(x)).to_list()


@pytest.mark.parametrize("op", ["flat_map", "interleave"])
def test_elements_before_an_error_arrive(op: str) -> None:
    def inner(x: int) -> di.data.Dataset:
        return RANGE(4).map(lambda y: 6 // int(x - y), output_signature=di.TensorSpec([], "int64"))

    before, error = until_error(getattr(RANGE(2, 3), op)(inner))
    assert before == [3, 6]
    assert isinstance(error, ZeroDivisionError)


@pytest.mark.parametrize("calls, cycle", [(None, 7), (AUTOTUNE, 3), (4, 4), (20, 7)])
@pytest.mark.parametrize("given", [None, AUTOTUNE])
def test_without_a_cycle_length_the_cores_decide(
    monkeypatch: pytest.MonkeyPatch, calls: int | None, cycle: int, given: int | None
) -> None:
    monkeypatch.setattr("distinput.ops.interleave.cores", lambda: 7)
    ds = RANGE(30).interleave(lambda x: RANGE(x, x + 2), given, num_parallel_calls=calls)
    assert ds.to_list() == RANGE(30).interleave(lambda x: RANGE(x, x + 2), cycle).to_list()
    it = iter(ds)
    first = [int(next(it)) for _ in range(11)]
    monkeypatch.setattr("distinput.ops.interleave.cores", lambda: 2)  # a state goes on as it began, on any machine
    again = RANGE(30).interleave(ds.node.map_func, given, num_parallel_calls=calls)
    assert first + [int(x) for x in again.restore(it.state())] == ds.to_list()


def test_workers_with_other_cores_have_one_order(monkeypatch: pytest.MonkeyPatch) -> None:
    ds = RANGE(40).interleave(lambda x: RANGE(x, x + 3)).batch(2)
    parts = []
    for worker, cores in enumerate([2, 96, 5]):
        monkeypatch.setattr("distinput.ops.interleave.cores", lambda cores=cores: cores)
        parts += di.data.experimental.auto_shard_dataset(ds, 3, worker).to_list()
    assert sorted(x for batch in parts for x in batch) == sorted(x for a in range(40) for x in range(a, a + 3))


def _seen(iterator: Any, states: list[Any]) -> list[Any]:
    """The elements, and the error at their end if there is one; adds the state behind each element to `states`."""
    found: list[Any] = []
    try:
        for element in iterator:
            found.append(int(element))
            states.append(iterator.state())
    except ZeroDivisionError as error:
        found.append(str(error))
    return found


@pytest.mark.parametrize("cycle", [1, 3, 5])
@pytest.mark.parametrize("fails", [-1, 4])
@pytest.mark.parametrize("tolerant", [False, True])
def test_opening_datasets_before_their_turn_changes_nothing(cycle: int, fails: int, tolerant: bool) -> None:
    def several(x: int) -> di.data.Dataset:
        return RANGE(10 * x, 10 * x + 1 + 6 // int(x - fails) % 3)

    one, other = (
        RANGE(9).interleave(several, cycle, 2, num_parallel_calls=calls, name="turns") for calls in (None, cycle)
    )
    if tolerant:
        one, other = one.ignore_errors(), other.ignore_errors()
    states: list[Any] = []
    found = _seen(iter(other), states)
    assert found == _seen(iter(one), [])
    for at, state in enumerate(states, 1):
        assert _seen(other.restore(state), []) == found[at:]


def test_all_datasets_of_the_cycle_are_opened_at_once() -> None:
    together = threading.Barrier(3)

    def waits(x: int) -> di.data.Dataset:
        return Dataset.from_tensors(x).map(
            lambda y: together.wait(60) * 0 + y, output_signature=di.TensorSpec([], "int64")
        )

    assert RANGE(6).interleave(waits, 3, num_parallel_calls=3).to_list() == list(range(6))  # successors also


def test_elements_are_not_asked_for_before_their_turn() -> None:
    asked = []

    def elements() -> Any:
        for n in range(9):
            asked.append(n)
            yield n

    source = Dataset.from_generator(elements, output_signature=di.TensorSpec([], "int64"))
    turns = source.interleave(three, 1, num_parallel_calls=1)
    with iter(turns) as iterator:
        plain = iter(source.interleave(three, 1))
        next(plain)
        before = list(asked)
        asked.clear()
        next(iterator)
        assert asked == before


def test_small_files_are_read_in_turn_until_that_is_slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for file in range(6):
        with di.io.TFRecordWriter(f"{tmp_path}/{file}.tfrecord") as writer:
            for record in range(file + 1):
                writer.write(b"%d %d" % (file, record))
    threads: list[str] = []
    monkeypatch.setattr(threading.Thread, "start", counted(threads, threading.Thread.start))

    def places(parallel: int | None, slow: bool) -> list[Any]:
        dataset = di.data.Dataset.list_files(f"{tmp_path}/*", shuffle=False).interleave(
            di.data.TFRecordDataset, cycle_length=2, num_parallel_calls=parallel
        )
        monkeypatch.setattr(_Pace, "in_turn", not slow)
        threads.clear()
        with iter(dataset) as it:
            found = []
            for element in it:
                rest = dataset.restore(it.state())
                found.append((element, list(rest)))
                rest.close()
        return found

    expected = places(None, slow=False)
    assert places(2, slow=False) == expected
    assert "distinput-prefetch" not in threads
    assert places(2, slow=True) == expected
    assert "distinput-prefetch" in threads


def _harmed_files(folder: Path, harm: str, kind: str, even: bool) -> list[str]:
    """Seven files of records, of which the fifth is harmed."""
    names = [f"{folder}/{file}" for file in range(7)]
    for file, name in enumerate(names):
        records = [b"%d %03d" % (file, record) for record in range(6 if even else 3 * file % 11)]
        if kind == "tfrecord":
            with di.io.TFRecordWriter(name) as writer:
                for record in records:
                    writer.write(record)
        else:
            Path(name).write_bytes(b"".join([record + b"\n" * (kind == "text") for record in records]))
    harmed = Path(names[4])
    if harm == "damaged":
        data = harmed.read_bytes()
        harmed.write_bytes(data[:-3] if kind != "text" else b"\xff" + data)
    elif harm == "empty":
        harmed.write_bytes(b"")
    elif harm != "none":
        harmed.unlink()
        if harm == "a folder":
            harmed.mkdir()

    return names


@pytest.mark.parametrize(
    "harm, even, kind, parallel, on_error",
    crossed(
        ["none", "damaged", "gone", "empty", "a folder"],
        [False, True],
        ["tfrecord", "text", "fixed"],
        [1, 2, 4, AUTOTUNE],
        [None, "skip", "by options"],
    ),
)
def test_files_that_are_alike_are_read_as_each_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, harm: str, even: bool, kind: str, parallel: int, on_error: Any
) -> None:
    """Their records, what follows the states between them, and what an error says."""
    names = _harmed_files(tmp_path, harm, kind, even)
    options: dict[str, Any] = {"num_parallel_reads": parallel, "on_error": "skip" if on_error == "skip" else None}
    if kind == "fixed":
        dataset: Any = di.data.FixedLengthRecordDataset(names, 5, **options)
    else:
        made: Any = di.data.TFRecordDataset if kind == "tfrecord" else di.data.TextLineDataset
        dataset = made(names, **options)
    if on_error == "by options":
        wanted = di.data.Options()
        wanted.on_error = "skip"
        dataset = dataset.with_options(wanted)

    def told(plain: bool, state: Any = None) -> tuple[list[Any], list[Any]]:
        found, states = [], []
        with monkeypatch.context() as patch, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if not plain:
                patch.setattr(Reader, "plain", False)
            iterator = iter(dataset) if state is None else dataset.restore(state)
            while True:
                states.append(iterator.state())
                try:
                    found.append(next(iterator))
                except StopIteration:
                    break
                except Exception as error:  # noqa: BLE001 - what it says is compared
                    found += [type(error), str(error), getattr(error, "__notes__", [])]
                    break
            iterator.close()
        return found, states

    found, states = told(plain=True)
    assert told(plain=False)[0] == found
    records = [each for each in found if isinstance(each, bytes)]
    for place in range(0, len(states), cases(7, 1)):  # of seven: each time another place in a file of six
        for plain in (True, False):
            rest = [each for each in told(plain, states[place])[0] if isinstance(each, bytes)]
            assert rest == records[place:]


def test_an_error_names_the_file_that_its_own_thread_has_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [str(tmp_path / name) for name in ("good", "bad", "late")]
    for name in (names[0], names[2]):
        Path(name).write_text("1\n2\n")
    told, late = itertools.count(1), threading.Event()
    reading, note = Run.reading, Run.note_record

    def tell(run: Run, where: Callable[[], str]) -> None:
        reading.__set__(run, where)  # type: ignore[attr-defined]
        if "late" in where() and next(told) == 2:  # opened, and then read
            late.set()

    def noted(run: Run, error: Exception, *more: Any) -> None:
        assert late.wait(60)
        note(run, error, *more)

    monkeypatch.setattr(_Pace, "in_turn", False)
    monkeypatch.setattr(Run, "reading", property(reading.__get__, tell))
    monkeypatch.setattr(Run, "note_record", noted)
    before, error = until_error(di.data.TextLineDataset(names, num_parallel_reads=3))
    assert before == [b"1"]
    assert [note for note in error.__notes__ if "last read: " in note] == [f"last read: {names[1]} at its beginning"]


def test_files_are_read_on_threads_after_several_that_had_to_wait_or_took_much_work() -> None:
    pace = _Pace()
    for seconds, worked, waits in [
        (1.0, 0.0, 0),
        (1.0, 0.0, 1),
        (1.0, 1.0, 0),
        (0.001, 0.001, 1),
        (1.0, 0.0, 1),
        (1.0, 0.0, 1),
    ]:
        pace.took(seconds, worked, waits)
        assert pace.in_turn
    pace.took(1.0, 0.0, 1)
    assert not pace.in_turn


def counted(names: list[str], start: Callable[[threading.Thread], None]) -> Callable[[threading.Thread], None]:
    def begin(thread: threading.Thread) -> None:
        names.append(thread.name)
        start(thread)

    return begin


@pytest.mark.parametrize("calls", [None, 3])
@pytest.mark.parametrize("cycle, block", [(1, 1), (3, 1), (3, 2), (6, 2)])
def test_states_that_follow_what_moved_are_those_of_all_open_datasets(
    cycle: int, block: int, calls: int | None
) -> None:
    calls = calls and min(calls, cycle)
    ds = RANGE(7).interleave(lambda x: RANGE(x % 4).map(lambda y: y + x), cycle, block, num_parallel_calls=calls)
    node: Any = ds.node
    with Run() as run:
        made = _Cycle(node, node.start(0), run)
        kept = []
        for _ in made.blocks():
            state = made.state()
            assert state["slots"] == [None if slot is None else slot.state() for slot in made.slots]
            kept.append((state, json.dumps(state)))
        assert all(json.dumps(state) == text for state, text in kept)


def test_no_thread_reads_ahead_what_is_in_memory() -> None:
    with iter(RANGE(3).interleave(lambda x: RANGE(x, 10), 3, num_parallel_calls=3)) as it:
        before = threading.enumerate()
        next(it)
        assert threads_since(before) == []


@pytest.mark.parametrize("then", ["elements", "batches", "lengths", "ragged"])
def test_long_strings_come_as_short_ones_do(tmp_path: Path, then: str) -> None:
    """Where they are not put side by side: in files that are equally long, and in others, which are longer."""
    chance = np.random.default_rng(3)
    files = [[chance.bytes(int(chance.integers(9000, 30000))) for _ in range(5 + (f > 5))] for f in range(8)]
    names = [f"{tmp_path}/{file}" for file in range(8)]
    for name, records in zip(names, files, strict=True):
        with di.io.TFRecordWriter(name) as writer:
            for record in records:
                writer.write(record)
    turns = [
        records for pair in range(0, 8, 2) for both in zip(*files[pair : pair + 2], strict=True) for records in both
    ]
    read: Any = di.data.TFRecordDataset(names, num_parallel_reads=2)
    made = {
        "elements": read,
        "batches": read.batch(3),
        "lengths": read.map(len, vectorize=False),
        "ragged": read.map(lambda r: np.frombuffer(r, np.uint8)).ragged_batch(3),
    }[then]
    wanted = {
        "elements": turns,
        "batches": [turns[at : at + 3] for at in range(0, len(turns), 3)],
        "lengths": list(map(len, turns)),
        "ragged": [[list(r) for r in turns[at : at + 3]] for at in range(0, len(turns), 3)],
    }[then]
    assert [
        each.tolist() if then == "batches" else each.to_list() if then == "ragged" else each for each in made
    ] == wanted
    check_restart(made)


@pytest.mark.parametrize("block", [1, 3])
@pytest.mark.parametrize("cycle", [1, 2, 5])
@pytest.mark.parametrize("long", [False, True])
def test_files_of_any_length_are_read_together(tmp_path: Path, cycle: int, block: int, long: bool) -> None:
    """The same elements as those of files read one by one, in few blocks, and behind each state what follows it."""
    chance, names = random.Random(cycle * block), [f"{tmp_path}/{file:02}" for file in range(30)]
    for name in names:
        with di.io.TFRecordWriter(name) as writer:
            for record in range(chance.randint(1, 12)):
                writer.write(f"{name[-2:]} {record}".encode() * (700 if long else 1))
    together: Any = di.data.TFRecordDataset(names, num_parallel_reads=cycle).node
    both = [Dataset(replace(together, block_length=block, num_parallel_calls=calls)) for calls in (None, cycle)]
    wanted = list(both[0])
    with iter(both[1]) as it:
        found = [(element, it.state()) for element in it]
    assert [element for element, _ in found] == wanted
    for place in range(0, len(wanted), 17):
        for dataset in both:
            assert list(dataset.restore(found[place][1])) == wanted[place + 1 :]
    with both[1].iter_blocks() as blocks:
        assert len(list(blocks)) < 30 + 10 * cycle


@pytest.mark.parametrize("seed", range(cases(40, 400)))
def test_turns_of_files_read_together_are_those_of_a_walk_from_turn_to_turn(seed: int) -> None:
    chance = random.Random(seed)
    cycle, length = chance.randint(1, 5), chance.choice([1, 1, 2, 3])
    turn, sizes = chance.randrange(cycle), [chance.randint(0, 9) for _ in range(2 * cycle + chance.randint(0, 3))]
    rows_of: Any = [SimpleNamespace(size=size) for size in sizes]
    files = [
        interleave._Whole({}, rows, {}, 0, first) for rows, first in zip(rows_of, accumulate([0, *sizes]), strict=False)
    ]
    for file in files[:cycle]:
        file.taken = chance.randint(0, file.rows.size)
    slots, coming = [file if chance.random() < 0.7 else None for file in files[:cycle]], files[cycle:]
    # the numbers of the rows that each slot has left, until a file would be opened that is not there
    left: list[Any] = [
        None if file is None else [file.first + n for n in range(file.taken, file.rows.size)] for file in slots
    ]
    others = [[file.first + n for n in range(file.rows.size)] for file in coming]
    wanted: list[int] = []
    at = turn
    while left[at] is not None or others:
        rows = left[at] if left[at] is not None else others.pop(0)
        wanted += rows[:length]
        left[at], at = None if len(rows) < length else rows[length:], (at + 1) % cycle
    walk: Any = SimpleNamespace(cycle=cycle, block_length=length, turn=turn)
    assert _Cycle._turns(walk, slots, coming).tolist() == wanted
    assert walk.turn == at
    assert [None if file is None else file.left for file in slots] == [
        None if rows is None else len(rows) for rows in left
    ]


@pytest.mark.parametrize("cycle", [2, 3])
@pytest.mark.parametrize("seed", range(cases(3, 24)))
def test_files_that_wait_at_random_moments_are_those_that_never_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cycle: int, seed: int
) -> None:
    """The same elements, and behind each state what follows it, though threads read some files and others are read in turn."""
    chance, names = random.Random(seed), [f"{tmp_path}/{file:02}" for file in range(40)]
    for name in names:
        with di.io.TFRecordWriter(name) as writer:
            for record in range(chance.randint(0 if seed else 1, 9)):
                writer.write(f"{name[-2:]} {record}".encode())
    dataset = di.data.TFRecordDataset(names, num_parallel_reads=cycle)
    wanted = list(dataset)
    ticks, waits = count(), accumulate(chance.randint(0, 1) for _ in count())
    monkeypatch.setattr(Run, "clock", staticmethod(lambda: 0.01 * next(ticks)))
    monkeypatch.setattr(interleave, "thread_use", lambda: CoreUse(0.0, next(waits)))
    monkeypatch.setattr(interleave, "_SLOW_SECONDS", 0.0)
    monkeypatch.setattr(interleave, "_SLOW_FILES", 1)
    monkeypatch.setattr(interleave, "_FEW_FILES", 1)
    monkeypatch.setattr(interleave, "AGAIN", 0.2)
    threads: list[str] = []
    monkeypatch.setattr(threading.Thread, "start", counted(threads, threading.Thread.start))
    dataset = di.data.TFRecordDataset(names, num_parallel_reads=cycle)
    with iter(dataset) as it:
        found = [(element, it.state()) for element in it]
    assert [element for element, _ in found] == wanted
    assert 0 < threads.count("distinput-prefetch") < len(names)
    for place in range(seed, len(wanted), 29):
        assert list(dataset.restore(found[place][1])) == wanted[place + 1 :]


def record_files(folder: Path, files: int, records: int, times: int) -> list[str]:
    """Files of records, each of which says so many times which one of which file it is."""
    names = [f"{folder}/{file:02}" for file in range(files)]
    for name in names:
        with di.io.TFRecordWriter(name) as writer:
            for record in range(records):
                writer.write(f"{name[-2:]} {record}".encode() * times)
    return names


def test_files_that_are_read_together_are_few_where_they_are_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = record_files(tmp_path, files=32, records=4, times=1000)

    def sizes() -> list[int]:
        with di.data.TFRecordDataset(names, num_parallel_reads=2).iter_blocks() as blocks:
            return [block.size for block in blocks]

    assert max(sizes()) > 4 * 4
    monkeypatch.setattr(interleave, "_MUCH_BYTES", 3 * Path(names[0]).stat().st_size)
    assert 2 * 4 < max(sizes()) <= 4 * 4
    seconds, worked = count(), list[float]()
    monkeypatch.setattr(interleave, "thread_use", lambda: CoreUse(next(seconds), 0))
    monkeypatch.setattr(_Pace, "took", lambda pace, seconds, each, waits: worked.append(each))
    sizes()
    assert min(worked) == 1 / 4


@pytest.mark.parametrize("together", [True, False])
def test_files_are_read_whole_where_their_readers_may_hold_them(
    tmp_path: Path, together: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = record_files(tmp_path, files=12, records=400, times=200)
    if not together:
        monkeypatch.setattr(_Cycle, "_files_together", lambda cycle: None)
    begun, early = set[bytes](), list[bool]()
    records, slot = _Cycle._records, _Cycle._slot

    def begin(self: _Cycle, like: Any, name: bytes) -> Any:
        begun.add(name)
        yield from records(self, like, name)

    def opened(self: _Cycle, stream: Any, made: Any, *args: Any, **rest: Any) -> Any:
        early.append(rest.get("whole") is not None or made.given in begun)
        return slot(self, stream, made, *args, **rest)

    monkeypatch.setattr(_Cycle, "_records", begin)
    monkeypatch.setattr(_Cycle, "_slot", opened)
    options, read = di.data.Options(), []
    for room in (4 << 20, 1 << 18):
        options.memory_budget = 4 * room
        read.append(list(di.data.TFRecordDataset(names, num_parallel_reads=4).with_options(options)))
        assert any(early) is (room == 4 << 20)
        begun.clear()
        early.clear()
    assert read[0] == read[1]


@pytest.mark.parametrize("together", [True, False])
def test_a_small_file_that_holds_much_is_read_as_it_is_handed_out(
    tmp_path: Path, together: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"{tmp_path}/{file:02}.gz" for file in range(6)]
    for file, name in enumerate(names):
        lines = 1 if file < 2 else 300_000
        Path(name).write_bytes(gzip.compress(f"a line of {name[-5:-3]}\n".encode() * lines))
    if not together:
        monkeypatch.setattr(_Cycle, "_files_together", lambda cycle: None)
    most, other = [0], Reader.other

    def counting(self: Reader, path: str, *args: Any) -> Any:
        rows = 0
        for item in other(self, path, *args):
            rows += item[0].size
            most.append(rows)
            yield item

    monkeypatch.setattr(Reader, "other", counting)
    dataset = di.data.TextLineDataset(names, num_parallel_reads=2)
    with iter(dataset) as it:
        begun = [next(it) for _ in range(8)]
    assert begun[2:] == [b"a line of 02", b"a line of 03"] * 3
    assert 1 < max(most) < 300_000
    assert sum(1 for _ in dataset) == 2 + 4 * 300_000
    assert max(most) == 300_000


def test_a_later_pass_makes_no_dataset_of_a_small_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"{tmp_path}/{file:02}" for file in range(9)]
    for name in names:
        Path(name).write_text("a line\n" * 3)
    # Threads would begin to read where a busy machine makes files slow.
    monkeypatch.setattr(_Pace, "took", lambda *_: None)
    dataset = di.data.TextLineDataset(names, num_parallel_reads=2)
    wanted = list(dataset)
    called: list[bytes] = []
    call = Making.__call__

    def counting(self: Making, name: bytes, number: int | None = None) -> Any:
        called.append(name)
        return call(self, name, number)

    monkeypatch.setattr(Making, "__call__", counting)
    assert list(dataset) == wanted
    assert called == []
    os.unlink(names[0])
    with pytest.raises(di.errors.NotFoundError, match="00"):
        list(dataset)


def test_a_damaged_record_of_files_read_together_is_an_error(tmp_path: Path) -> None:
    names = [f"{tmp_path}/{file}" for file in range(12)]
    for file, name in enumerate(names):
        with di.io.TFRecordWriter(name) as writer:
            for record in range(5):
                writer.write(b"%d %d" % (file, record))
    data = bytearray(Path(names[6]).read_bytes())
    data[-5] ^= 1
    Path(names[6]).write_bytes(data)
    found, error = until_error(di.data.TFRecordDataset(names, num_parallel_reads=2))
    assert len(found) == 38
    assert f"{names[6]}: corrupted record" in str(error)


def test_small_files_may_have_names_that_are_not_utf8(tmp_path: Path) -> None:
    names = [os.fsencode(tmp_path) + name for name in (b"/a.txt", b"/b\xff.txt", b"/c.txt")]
    for place, name in enumerate(names):
        with open(name, "wb") as file:
            file.write(b"%d\n" % place * 2)
    assert sorted(di.data.TextLineDataset(names, num_parallel_reads=2)) == [b"0", b"0", b"1", b"1", b"2", b"2"]


def test_a_restart_with_a_cycle_that_no_data_fills() -> None:
    dataset = (
        RANGE(3).filter(lambda x: x >= 0).interleave(lambda x: RANGE(2).map(lambda y: y + x), cycle_length=sys.maxsize)
    )
    with iter(dataset) as elements:
        first = [int(next(elements)) for _ in range(2)]
        state = elements.state()
    assert first + [int(x) for x in dataset.restore(state)] == dataset.to_list()
