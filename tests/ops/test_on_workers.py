# SPDX-License-Identifier: Apache-2.0
import json
import operator
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis.strategies import integers, sampled_from

import distinput as di
from distinput.errors import InvalidArgumentError, UnavailableError
from distinput.ops import on_workers, piece_lanes
from distinput.testing import check_nothing_left, check_restart
from distinput.testing.elements import difference, exact
from distinput.testing.laws.trace import PassTrace
from distinput.testing.laws.trace import until_error as until_failure
from distinput.testing.pipelines import Pipeline, pipelines
from tests.depth import cases
from tests.ops.iterating import Times, until_error
from tests.patience import Beside

RANGE = di.data.Dataset.range
INT32, INT64 = di.TensorSpec([], "int32"), di.TensorSpec([], "int64")
NAMES = ["map", "filter", "map over filter", "batch", "shuffle between", "shuffle by position", "zip", "nothing"]
SERVICES = ["threads:3", "processes:2"]


def double(x: Any) -> Any:
    return x * 2


def odd(x: Any) -> Any:
    return x % 3 != 0


def some(x: Any) -> Any:
    if x in (3, 20, 21, 44):
        raise ValueError(f"no {x}")
    return x


def plain(elements: Any) -> list[Any]:
    return [np.asarray(element).tolist() for element in elements]


def made(name: str) -> di.data.Dataset[Any]:
    return {
        "map": RANGE(90).map(double),
        "filter": RANGE(90).map(double).filter(odd),
        "map over filter": RANGE(90).filter(odd).map(double),
        "batch": RANGE(90).map(double).batch(7),
        "shuffle between": RANGE(90).map(double).filter(odd).shuffle(9, 1, False).map_rows(double).batch(4),
        "shuffle by position": RANGE(90).map(double).shuffle(9, 1, False).map(abs),
        "zip": di.data.Dataset.zip(RANGE(40).map(double), RANGE(40).map(abs)).map(operator.add),
        "nothing": RANGE(30).batch(4),
    }[name]


@pytest.mark.parametrize("service", SERVICES)
@pytest.mark.parametrize("name", NAMES)
def test_elements_and_states_are_those_without_it(name: str, service: str) -> None:
    alone = made(name)
    served = alone.on_workers(service)
    elements = plain(alone)
    assert plain(served) == elements
    assert served.cardinality() == alone.cardinality()
    for position in (0, 1, 5, len(elements)):
        for saving, restoring in ((alone, served), (served, alone), (served, served)):
            with iter(saving) as iterator:
                assert plain(next(iterator) for _ in range(position)) == elements[:position]
                state = json.loads(json.dumps(iterator.state()))
            assert plain(restoring.restore(state)) == elements[position:]


@settings(max_examples=cases(10, 600), deadline=None)
@given(pipelines(most_ops=4, last="on_workers"))
def test_random_pipelines_restart_everywhere(pipeline: Pipeline) -> None:
    check_restart(pipeline.build(), most=60, state_bytes=20_000)  # mixtures of mixtures have a place for each input


def check_states(alone: di.data.Dataset[Any], served: di.data.Dataset[Any], most: int = 45, step: int = 1) -> None:
    "Elements and states are the same, and each state of one, or each `step`-th one, goes on in the other."
    without, with_it = PassTrace.of(iter(alone), most), PassTrace.of(iter(served), most)
    assert difference(with_it.elements, without.elements) is None
    assert with_it.failure == without.failure
    for saved, there, here in ((without, alone, served), (with_it, served, alone)):
        for position, state in [*enumerate(saved.states)][::step]:
            expected = saved.rest(position)
            with here.restore(json.loads(json.dumps(state))) as rest:
                found = [exact(element) for element in until_failure(rest, len(expected))]
            assert difference(found, expected) is None, (position, there, state)


@settings(max_examples=cases(7, 500), deadline=None)
@given(pipelines(most_ops=4))
def test_random_pipelines_go_on_with_and_without_it_at_every_place(pipeline: Pipeline) -> None:
    step = ("on_workers", {"most": None})
    recipes = [
        (*pipeline.recipe[:place], step, *pipeline.recipe[place:]) for place in range(1, len(pipeline.recipe) + 1)
    ]
    twice = [(made, *[step] * (1 + place % 2)) for place, made in enumerate(pipeline.recipe, 1)]  # at every other place
    recipes.append(tuple([part for parts in twice for part in parts]))
    for recipe in recipes:
        check_states(replace(pipeline).build(), replace(pipeline, recipe=recipe).build())


@settings(max_examples=cases(8, 300), deadline=None)
@given(pipelines(most_ops=4), sampled_from([{"target_workers": "AUTO"}, {"shared_bytes": 1 << 20}]))
def test_random_pipelines_are_the_same_where_results_are_shared_or_made_here(
    pipeline: Pipeline, more: dict[str, Any]
) -> None:
    with ThreadPoolExecutor(2) as executor:
        check_states(replace(pipeline).build(), replace(pipeline).build().on_workers(executor, **more))


@settings(max_examples=cases(8, 300), deadline=None)
@given(pipelines(most_ops=4), integers(0, 1 << 32))
def test_random_pipelines_are_the_same_wherever_pieces_are_cut(pipeline: Pipeline, seed: int) -> None:
    drawn, took = random.Random(seed), on_workers._Source.took

    def drawing(source: Any, *given: Any) -> None:
        took(source, *given)
        source.size = drawn.choice([1, 2, 3, 5, 8, 60])

    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(2) as executor:
        patch.setattr(on_workers._Source, "took", drawing)
        patch.setattr(on_workers._LearnedSize, "first_rows", property(lambda _: drawn.choice([1, 4, 60])))
        check_states(replace(pipeline).build(), replace(pipeline).build().on_workers(executor))


FILES: dict[str, Any] = {
    "npy": lambda names: di.data.NpyDataset([f"{name}.npy" for name in names]),
    "lines": lambda names: di.data.TextLineDataset([f"{name}.txt" for name in names], index=True),
    "fixed": lambda names: di.data.FixedLengthRecordDataset([f"{name}.bin" for name in names], 4),
}
CHOICES: dict[str, Any] = {
    "all": lambda ds: ds,
    "shuffle": lambda ds: ds.shuffle(9, 1, False),
    "some": lambda ds: ds.shuffle(70, 1, False).repeat(2).skip(3).take(100).shard(2, 1),
}


def named_files(folder: Path, counts: tuple[int, ...] = (30, 0, 41)) -> list[str]:
    for index, count in enumerate(counts):
        rows = 100 * index + np.arange(count, dtype=np.int32)
        np.save(folder / f"{index}.npy", rows)
        (folder / f"{index}.txt").write_text("".join([f"{row}\n" for row in rows]))
        (folder / f"{index}.bin").write_bytes(rows.tobytes())
    return [str(folder / str(index)) for index in range(len(counts))]


@pytest.fixture
def executor() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as made:
        yield made


@pytest.mark.parametrize("choice", list(CHOICES))
@pytest.mark.parametrize("kind", list(FILES))
def test_workers_read_records_that_can_be_fetched(
    kind: str, choice: str, tmp_path: Path, executor: ThreadPoolExecutor
) -> None:
    alone = CHOICES[choice](FILES[kind](named_files(tmp_path))).map(by_thread)
    served = alone.on_workers(executor)
    assert ": read at workers" in served.explain()
    expected = [x for x, _ in alone]
    assert [x for x, _ in served] == expected
    assert threading.get_ident() not in {int(thread) for _, thread in list(served)[1:]}
    for saving, restoring in ((alone, served), (served, alone), (served, served)):
        for taken in (0, 1, 29, 30, 31, 35):
            with iter(saving) as elements:
                assert [next(elements)[0] for _ in range(taken)] == expected[:taken]
                state = json.loads(json.dumps(elements.state()))
            assert [x for x, _ in restoring.restore(state)] == expected[taken:]


@pytest.mark.parametrize("choice", list(CHOICES))
def test_records_that_workers_have_in_another_version_are_read_here(
    choice: str, tmp_path: Path, executor: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = CHOICES[choice](FILES["npy"](named_files(tmp_path))).map(by_thread)
    served = alone.on_workers(executor, 2)
    monkeypatch.setattr(on_workers, "stamp_of", lambda path: "another")
    made = list(served)
    assert [x for x, _ in made] == [x for x, _ in alone]
    assert threading.get_ident() not in {int(thread) for _, thread in made[-10:]}, "but sent to workers"


def test_a_file_that_is_missing_comes_after_what_was_read(tmp_path: Path, executor: ThreadPoolExecutor) -> None:
    names = named_files(tmp_path)
    alone = FILES["npy"]([names[0], str(tmp_path / "none"), names[2]]).map(by_thread, output_signature=(INT32, INT64))
    before, error = until_error(alone)
    found, same = until_error(alone.on_workers(executor))
    assert [x for x, _ in found] == [x for x, _ in before]
    assert (type(same), str(same).partition("\n")[0]) == (type(error), str(error).partition("\n")[0])


def test_damage_comes_after_what_was_read_where_workers_read(tmp_path: Path, executor: ThreadPoolExecutor) -> None:
    path = tmp_path / "a.tfrecord"
    with di.io.TFRecordWriter(str(path)) as writer:
        for number in range(50):
            writer.write(b"%04d" % number)
    alone = di.data.TFRecordDataset(str(path), index=True).map(by_thread)
    assert "read at workers" in alone.on_workers(executor).explain()
    data = bytearray(path.read_bytes())
    data[20 * 37 + 13] ^= 1  # in record 37; each takes 20 bytes
    status = path.stat()
    path.write_bytes(data)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    before, error = until_error(alone)
    found, same = until_error(alone.on_workers(executor))
    assert [x for x, _ in found] == [x for x, _ in before]
    assert len(before) <= 37
    assert (type(same), str(same).partition("\n")[0]) == (type(error), str(error).partition("\n")[0])


def by_thread(x: Any) -> Any:
    return x, threading.get_ident()


def process_id(x: Any) -> Any:
    time.sleep(0.002)
    return x, os.getpid()


def between() -> dict[str, Any]:
    "Pipelines that run in other steps than they were described in; `put` puts a step at one or more places of each."
    slices = di.data.Dataset.from_tensor_slices
    zipped = di.data.Dataset.zip
    return {
        "maps": lambda put: put(RANGE(30).map(double)).map(abs),
        "maps over each other": lambda put: put(put(RANGE(30).map(double)).map(abs)).map(double).filter(odd),
        "maps, more of them": lambda put: put(put(RANGE(30).filter(odd).map(double).map(abs)).map(abs).map(double)),
        "maps of rows": lambda put: put(put(RANGE(30).map_rows(double)).map_rows(abs)).map_rows(double),
        "maps of what fails": lambda put: put(RANGE(50).map(some)).map(double).ignore_errors(),
        "maps, one in threads": lambda put: put(RANGE(30).map(double, num_parallel_calls=2)).map(abs),
        "takes": lambda put: put(RANGE(30).map(double).take(9)).take(7),
        "skips": lambda put: put(RANGE(30).map(double).skip(2)).skip(3),
        "a skip of a take": lambda put: put(RANGE(30).map(double).take(20)).skip(3),
        "a part of a range": lambda put: put(RANGE(30)).take(7),
        "zips": lambda put: zipped(put(zipped(RANGE(9).map(double), RANGE(9))), RANGE(9).map(abs)),
        "slices": lambda put: put(slices(np.arange(5))).concatenate(slices(np.arange(5))).map(double),
        "nothing between": lambda put: put(put(RANGE(30).map(double))),
    }


@pytest.mark.parametrize("service", SERVICES)
@pytest.mark.parametrize("name", between())
def test_steps_that_are_one_without_it_have_the_same_states(name: str, service: str) -> None:
    make = between()[name]
    alone, served = make(lambda dataset: dataset), make(lambda dataset: dataset.on_workers(service))
    check_states(alone, served, step=1 if service.startswith("threads") else 7)


def test_a_function_above_it_need_not_be_sent() -> None:
    lock = threading.Lock()

    def here(x: Any) -> Any:
        with lock:
            return x, os.getpid()

    def dataset(number: int) -> di.data.Dataset[Any]:
        made = RANGE(60).map(process_id)
        return (made if number else made.on_workers("processes:2")).map(lambda x, pid: (*here(x), pid))

    with iter(dataset(1)) as iterator:
        next(iterator)
        state = iterator.state()
    with dataset(0).restore(state) as rest:
        made = [tuple(map(int, element)) for element in rest]
    assert [x for x, _, _ in made] == list(range(1, 60))
    assert {pid for _, pid, _ in made} == {os.getpid()}
    assert {pid for _, _, pid in made} - {os.getpid()}
    explained = dataset(0).explain()
    assert "at workers: map(map_func=process_id)" in explained


@pytest.mark.parametrize("service", SERVICES)
def test_errors_keep_their_places(service: str) -> None:
    alone = RANGE(50).map(some, output_signature=INT64)

    def told(dataset: di.data.Dataset[Any]) -> list[Any]:
        seen: list[Any] = []
        with iter(dataset) as iterator:
            while True:
                try:
                    seen.append(int(next(iterator)))
                except StopIteration:
                    return seen
                except ValueError as error:
                    seen.append((str(error), error.__notes__[:2]))

    assert told(alone.on_workers(service)) == told(alone)


class TwoArgumentsError(Exception):
    """Cannot be pickled, as any whose arguments are not those of `Exception`."""

    def __init__(self, what: str, _: int) -> None:
        super().__init__(what)


def fails_oddly(x: Any) -> Any:
    if x == 3:
        raise TwoArgumentsError("odd", 1)
    return x


def test_an_error_that_cannot_be_sent_names_its_element_and_its_step() -> None:
    with pytest.raises(RuntimeError, match="TwoArgumentsError: odd") as caught:
        RANGE(5).map(fails_oddly).on_workers("processes:1").to_list()
    notes = caught.value.__notes__
    assert "on element np.int64(3)" in notes
    assert any(note.startswith("in map(map_func=fails_oddly)") for note in notes)


def test_what_cannot_be_sent_names_the_call_that_has_workers() -> None:
    pytest.importorskip("cloudpickle")
    lock = threading.Lock()
    windows = RANGE(4).window(2).map(lambda window: window, output_signature=RANGE(4).window(2).element_spec)
    for dataset in (windows, RANGE(4).map(RANGE), RANGE(4).window(2).filter(bool)):
        with pytest.raises(TypeError) as caught:
            dataset.on_workers("processes:1").to_list()
        assert (
            str(caught.value)
            == "on_workers: elements that hold datasets cannot be sent to worker processes; leave out on_workers"
        )
    for held in (RANGE(4).map(lambda x: (lock, x)[1]), RANGE(4).filter(lambda x: lock is not None)):
        with pytest.raises(TypeError, match=r"on_workers: .* cannot be sent to worker .*, or leave out on_workers\n"):
            held.on_workers("processes:1").to_list()


@pytest.mark.parametrize("service", SERVICES)
def test_what_is_left_out_is_counted_alike(service: str) -> None:
    def dropped(dataset: di.data.Dataset[Any]) -> tuple[list[int], list[int]]:
        elements = dataset.to_list()
        return elements, [step["dropped"] for step in dataset.stats().values() if "dropped" in step]

    failing = RANGE(50).map(some, output_signature=INT64)
    expected = dropped(failing.ignore_errors())
    assert expected[1] == [4]
    assert dropped(failing.ignore_errors().on_workers(service)) == expected
    assert dropped(failing.on_workers(service).ignore_errors()) == expected
    skipping = RANGE(50).map(some, output_signature=INT64, on_error="skip")
    assert dropped(skipping.on_workers(service)) == dropped(skipping)


def test_an_error_of_a_source_comes_after_what_was_read() -> None:
    def numbers() -> Any:
        yield from range(5)
        raise OSError("gone")

    dataset = di.data.Dataset.from_generator(numbers, output_signature=INT64).map(double).on_workers("threads:2")
    before, error = until_error(dataset)
    assert before == [0, 2, 4, 6, 8]
    assert "gone" in str(error)


def slowly(x: Any) -> Any:
    time.sleep(0.002)
    return np.array([x, os.getpid()])


def test_a_killed_worker_loses_nothing() -> None:
    seen, killed = [], set()
    for number, pid in RANGE(300).map(slowly).on_workers("processes:2"):
        seen.append(int(number))
        if pid != os.getpid() and len(seen) % 60 == 0 and pid not in killed:
            killed.add(pid)
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
    assert seen == list(range(300))
    assert killed


def fatal(x: Any) -> Any:
    if x == 20:
        os._exit(3)
    return x


def test_a_function_that_ends_its_worker_is_named() -> None:
    dataset = RANGE(40).map(fatal, output_signature=INT64).on_workers("processes:2")
    before, error = until_error(dataset)
    assert isinstance(error, UnavailableError)
    assert "ended with status 3" in str(error)
    assert any("map(map_func=fatal" in note for note in error.__notes__)
    assert before == list(range(len(before)))


class Late(Executor):
    "An executor whose workers are far away."

    _max_workers = 2

    def __init__(self, sending: Callable[[int], object] = int, calling: Callable[[int], object] = int) -> None:
        self.inner, self.sending, self.calling = ThreadPoolExecutor(2), sending, calling
        self.calls = self.rows = 0

    def submit(self, function: Any, /, *given: Any) -> Any:  # type: ignore[override]
        self.calls, self.rows = self.calls + 1, self.rows + given[-1].content.unpacked()[0].rows
        self.sending(0)
        return self.inner.submit(self._called, function, *given)

    def _called(self, function: Any, *given: Any) -> Any:
        self.calling(0)
        return function(*given)


def of_step(dataset: di.data.Dataset[Any]) -> dict[str, Any]:
    return next(told for name, told in dataset.stats().items() if name.endswith(":on_workers"))


def test_functions_that_are_cheaper_than_their_way_stay_here_by_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    elements, far = RANGE(200_000).map(double), Late(Times(monkeypatch, here=0.02))
    expected = plain(elements.batch(9000))
    served = elements.on_workers(far).batch(9000)
    assert plain(served) == expected
    assert "chose" not in of_step(served)
    assert "keeps cheap work here" in served.stats().bottleneck
    chosen = elements.on_workers(far, target_workers="AUTO").batch(9000)
    assert plain(chosen) == plain(chosen) == expected
    assert of_step(chosen)["chose"] == "here: the way to workers cost more than the work"
    assert "AUTO: here for now, since an element costs" in chosen.explain()
    before = far.calls
    assert plain(chosen) == expected
    assert far.calls - before < 40


LONG: list[Times] = []


def long(x: Any) -> Any:
    """Sent by its name to a service of this process."""
    return LONG[-1](x)


def test_functions_that_take_longer_than_their_way_go_to_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    LONG.append(Times(monkeypatch, here=0.0, elsewhere=0.002))
    served = RANGE(400).map(long, output_signature=INT64).on_workers(Late(), target_workers="AUTO")
    assert "AUTO: no pass has measured yet whether workers pay" in served.explain()
    assert [int(x) for x in served] == list(range(400))
    assert of_step(served)["chose"] == "workers"
    assert "AUTO: at workers" in served.explain()
    assert "one more than 2 workers would take up to 33% of that away" in served.stats().bottleneck


def large(x: Any) -> Any:
    return np.full(100_000, x)


def test_what_is_under_way_is_bounded_by_its_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_workers, "_BYTES_UNDER_WAY", 12 << 20)
    far, most, rows = Late(calling=lambda _: time.sleep(0.001)), 0, 0
    for _ in RANGE(300).map(large).on_workers(far, 200):
        most = max(most, far.rows - rows)
        rows += 1
    assert rows == far.rows + 1 == 300, "the first one is made here"
    assert 2 < most < 40, "of 800 kB each"


def test_two_chains_at_an_executor(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("a\nbb\nccc\n")
    lines = di.data.TextLineDataset(str(file)).map(spelled).as_text(["t"]).map(lengths)
    with ThreadPoolExecutor(2) as executor:
        assert lines.on_workers(executor).to_list() == lines.to_list() == [1, 2, 3]


def spelled(line: Any) -> Any:
    return {"t": line}


def lengths(row: Any) -> Any:
    assert isinstance(row["t"], str)
    return len(row["t"])


def test_calls_run_on_other_threads() -> None:
    another = Beside()

    def thread(x: Any) -> Any:
        another.wait()
        return threading.get_ident()

    seen = set(RANGE(60).map(thread, output_signature=INT64).on_workers("threads:3").to_list())
    assert len(seen - {threading.get_ident()}) > 1


@pytest.mark.parametrize("service", SERVICES)
def test_nothing_is_left_behind(service: str) -> None:
    check_nothing_left(lambda: RANGE(60).map(double).on_workers(service))


def test_an_arrays_rows_are_sent_alone() -> None:
    rows = np.arange(4000.0).reshape(1000, 4)
    dataset = di.data.Dataset.from_tensor_slices(rows).map(double).on_workers("processes:2", 3)
    assert np.array_equal(np.stack(list(dataset)), rows * 2)


def test_explain_says_what_goes_to_workers() -> None:
    text = RANGE(9).filter(odd).map(double).filter(odd).on_workers("threads:2").explain()
    assert "at workers: filter(predicate=odd), map(map_func=double), filter(predicate=odd)" in text
    assert "nothing goes to workers" in RANGE(9).batch(3).on_workers("threads:2").explain()


@pytest.mark.parametrize("service", ["threads", "threads:0", "processes:x", "http://here:1", ""])
def test_the_service_is_checked(service: str) -> None:
    with pytest.raises(InvalidArgumentError, match="on_workers: service must be 'threads:N' or 'processes:N'"):
        RANGE(3).on_workers(service)


def test_the_arguments_are_checked() -> None:
    with pytest.raises(TypeError, match="on_workers: service must be"):
        RANGE(3).on_workers(3)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="max_outstanding_requests"):
        RANGE(3).on_workers("threads:1", 0)
    with pytest.raises(InvalidArgumentError, match="shared_bytes"):
        RANGE(3).on_workers("threads:1", shared_bytes=-1)
    with pytest.raises(InvalidArgumentError, match="target_workers must be 'AUTO' or 'ANY', got 'LOCAL'"):
        RANGE(3).on_workers("threads:1", target_workers="LOCAL")


def twice_x(row: Any) -> Any:
    return row["x"] * 2


def reads_at_the_worker(row: Any) -> Any:
    return Path("/of/the/trainer/alone.txt").read_text()


def test_a_dataset_reads_parquet_here_and_a_function_its_files_at_the_worker(
    tmp_path: Path, executor: ThreadPoolExecutor
) -> None:
    pq.write_table(pa.table({"x": np.arange(6)}), tmp_path / "a.parquet")
    rows = di.data.ParquetDataset(str(tmp_path / "a.parquet"))
    there = rows.map(twice_x).on_workers(executor)
    assert "read here, and sent to workers" in there.explain()
    assert there.to_list() == [0, 2, 4, 6, 8, 10]
    with pytest.raises(FileNotFoundError, match=r"alone\.txt") as told:
        rows.map(reads_at_the_worker, output_signature=di.TensorSpec([], "str")).on_workers(executor).to_list()
    assert "under the same names at all workers" in "".join(told.value.__notes__)


def number_of(record: bytes) -> Any:
    return np.frombuffer(record, np.int32)[0]


def is_late(number: Any) -> bool:
    return bool(number >= 60)


def test_pieces_for_processes_become_smaller_towards_the_end() -> None:
    lanes = piece_lanes.ProcessLanes(cast("Any", [None] * 2), cast("Any", None), "")
    assert [lanes.piece_seconds(left) for left in (40.0, 0.2, 0.0)] == [0.1, 0.05, 0.02]
    assert lanes.piece_seconds(None) == 0.02, "an eighth of what was done"
    many = piece_lanes.ProcessLanes(cast("Any", [None] * 64), cast("Any", None), "")
    assert (lanes.most_bytes, many.most_bytes) == (16 << 20, 4 << 20)


def test_pieces_that_are_read_here_are_whole_beside_a_source_that_may_wait(tmp_path: Path) -> None:
    names = [str(tmp_path / f"{file:02}.bin") for file in range(40)]
    for file, name in enumerate(names):
        np.arange(5 * file, 5 * file + 5, dtype=np.int32).tofile(name)
    numbers: SimpleQueue[int] = SimpleQueue()
    for number in range(400):
        numbers.put(number)

    def waiting() -> Iterator[int]:
        while True:
            yield numbers.get()

    waits = di.data.Dataset.from_generator(waiting, output_signature=di.TensorSpec((), "int64")).take(250)
    served = di.data.FixedLengthRecordDataset(names, 4).map(number_of).filter(is_late).on_workers("processes:2")
    assert [int(late) for _, late in di.data.Dataset.zip((waits, served))] == list(range(60, 200))


NEIGHBOURS = {"map": di.data.Dataset.map, "map_rows": di.data.Dataset.map_rows}


@pytest.mark.parametrize("way", NEIGHBOURS)
def test_jobs_share_no_results_of_neighbouring_maps_that_hold_other_values(
    way: str, executor: ThreadPoolExecutor
) -> None:
    def scaled(factor: int) -> di.data.Dataset[Any]:
        numbers = NEIGHBOURS[way](RANGE(6), partial(operator.mul, factor))
        return NEIGHBOURS[way](numbers, double).on_workers(executor, shared_bytes=1 << 20)

    with iter(scaled(10)) as first:
        assert plain(next(first) for _ in range(5)) == [0, 20, 40, 60, 80]
        assert plain(scaled(100)) == [0, 200, 400, 600, 800, 1000]


@pytest.mark.parametrize("way", NEIGHBOURS)
def test_what_stands_below_neighbouring_maps_is_not_sent_with_them(way: str) -> None:
    numbers = di.data.Dataset.from_tensor_slices(np.zeros(100_000))
    served = NEIGHBOURS[way](NEIGHBOURS[way](numbers, double), abs).on_workers("processes:1")
    divided: Any = served._runs().node
    assert len(piece_lanes.steps_for_service(divided.divided._task(elsewhere=True))) < 10_000


def of_another_kind(x: Any) -> Any:
    return x.astype(np.float32 if x[0] == 0 else np.float64)


def test_the_first_element_decides_what_neighbouring_map_rows_return() -> None:
    served = RANGE(2).map_rows(of_another_kind).map_rows(double).on_workers("processes:2")
    elements, error = until_error(served)
    assert plain(elements) == [0]
    assert isinstance(error, TypeError)


def no_sevens(lengths: Any) -> Any:
    if 7 in lengths:
        raise ValueError("a seven")
    return lengths * 2


@pytest.mark.parametrize("below", ["executor", "scan", "workers"])
@pytest.mark.parametrize("kind", ["executor", "processes"])
def test_what_stays_here_below_a_chain_need_not_be_sent(
    kind: str, below: str, tmp_path: Path, executor: ThreadPoolExecutor
) -> None:
    lock = threading.Lock()

    def scanned(number: Any, line: Any) -> Any:
        with lock:
            return number + 1, len(line)

    file = tmp_path / "a.txt"
    file.write_text("a\nbb\nccc\nseven 7\nfive5\n")
    lines = di.data.TextLineDataset(str(file))
    sizes = {
        "executor": lambda: lines.map(len, executor=executor),
        "scan": lambda: lines.scan(0, scanned),
        "workers": lambda: lines.map(len).on_workers(executor),
    }[below]()
    alone = sizes.batch(2).map(no_sevens, output_signature=di.TensorSpec([None], "int64"))
    served = alone.on_workers(executor if kind == "executor" else "processes:1")
    expected, error = until_error(alone)
    found, same = until_error(served)
    assert plain(found) == plain(expected) == [[2, 4]]
    assert (type(same), str(same)) == (type(error), str(error))
    records = [] if below == "scan" else [f"record 2 of {file} and the 1 after it"]  # of a scan nobody knows them
    assert [note for note in error.__notes__ if note.startswith("record")] == records
    assert [note for note in same.__notes__ if note.startswith("record")] == records


@pytest.mark.parametrize("way", NEIGHBOURS)
def test_two_of_them_in_a_row_below_a_neighbouring_map(way: str, executor: ThreadPoolExecutor) -> None:
    twice = NEIGHBOURS[way](RANGE(6), double).on_workers("threads:2").on_workers(executor)
    assert plain(NEIGHBOURS[way](twice, abs)) == [0, 2, 4, 6, 8, 10]
    assert "at workers: " in NEIGHBOURS[way](twice, abs).explain()
