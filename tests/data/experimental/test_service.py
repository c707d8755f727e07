# SPDX-License-Identifier: Apache-2.0
"""`tf.data.experimental.service` over `on_workers`, beside what TensorFlow's service delivers."""

import json
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import ExitStack
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.data.experimental import service
from distinput.data.experimental.service import ShardingPolicy, distribute
from distinput.errors import FailedPreconditionError, InvalidArgumentError, UnimplementedError
from distinput.testing import check_restart

Dataset = di.data.Dataset
HINT = di.data.experimental.SHARD_HINT
SQUARES = [x * x for x in range(10)]
LINES = [f"{file}{line}".encode() for file in range(3) for line in range(4)]


def square(x: Any) -> Any:
    return x * x


def same(x: Any) -> Any:
    return x


PIPELINES: dict[str, Callable[[list[str]], di.data.Dataset[Any]]] = {
    "range": lambda files: Dataset.range(10).map(square),
    "lines": lambda files: di.data.TextLineDataset(files).map(same),
    "interleave": lambda files: Dataset.from_tensor_slices(files).interleave(di.data.TextLineDataset, cycle_length=2),
    "batched": lambda files: Dataset.range(10).batch(3),
    "repeated": lambda files: Dataset.range(3).repeat(2),
    "taken": lambda files: Dataset.range(4).repeat().take(6),
    "hint": lambda files: Dataset.range(10).shard(HINT, HINT).map(square),
}

# What TensorFlow 2.21 delivers, as a multiset, with a dispatcher and two workers in one process; for the static policies the
# addresses of the workers are named in `DispatcherConfig(worker_addresses=...)`:
#
# > S = tf.data.experimental.service
# > dispatcher = S.DispatchServer()
# > workers = [S.WorkerServer(S.WorkerConfig(dispatcher.target.split("://")[1])) for _ in range(2)]
# > sorted(pipeline(files).apply(S.distribute(mode, dispatcher.target)))
#
# with the pipelines above, where the three files have the lines 00 to 03, 10 to 13 and 20 to 23. A number is how often each
# element of the pipeline comes; batches are compared by their rows, since DYNAMIC cuts them anew at each worker. Left out:
# "taken" under DYNAMIC, where each worker takes 6 and 12 come, and FILE over what reads no files, a NotFoundError there.
TENSORFLOW: dict[str, dict[str, int | type[Exception]]] = {
    "OFF": {"range": 2, "lines": 2, "interleave": 2, "batched": 2, "repeated": 2, "taken": 2},
    "parallel_epochs": {"range": 2, "lines": 2, "interleave": 2, "batched": 2, "repeated": 2, "taken": 2},
    "DYNAMIC": {"range": 1, "lines": 1, "interleave": 1, "batched": 1, "repeated": 1},
    "distributed_epoch": {"range": 1, "lines": 1, "interleave": 1, "batched": 1, "repeated": 1},
    "FILE": {"lines": 1, "interleave": 1},
    "DATA": {"range": 1, "lines": 1, "interleave": 1, "batched": 1, "hint": FailedPreconditionError},
    "FILE_OR_DATA": {"range": 1, "lines": 1, "interleave": 1, "batched": 1, "hint": FailedPreconditionError},
    "HINT": {"range": 2, "lines": 2, "interleave": 2, "batched": 2, "hint": 1},
}  # fmt: skip
ROWS: dict[str, list[Any]] = {
    "range": SQUARES,
    "lines": LINES,
    "interleave": LINES,
    "batched": [*range(10)],
    "repeated": [0, 0, 1, 1, 2, 2],
    "taken": [0, 0, 1, 1, 2, 3],
    "hint": SQUARES,
}
CASES = [(mode, name) for mode, answers in TENSORFLOW.items() for name in answers]


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    for file in range(3):
        (tmp_path / f"{file}.txt").write_text("".join([f"{file}{line}\n" for line in range(4)]))
    return [str(tmp_path / f"{file}.txt") for file in range(3)]


def mode_of(name: str) -> Any:
    return ShardingPolicy[name] if name in ShardingPolicy.__members__ else name


def rows_of(elements: list[Any]) -> list[Any]:
    return [row for one in elements for row in (one if isinstance(one, list) else [one])]


@pytest.mark.parametrize("mode, name", CASES)
def test_each_element_comes_as_often_as_from_tensorflow(mode: str, name: str, files: list[str]) -> None:
    expected = TENSORFLOW[mode][name]
    transformation = distribute(mode_of(mode), "threads:2")
    if isinstance(expected, type):
        with pytest.raises(expected):
            PIPELINES[name](files).apply(transformation).to_list()
        return
    found = PIPELINES[name](files).apply(transformation).to_list()
    assert sorted(rows_of(found)) == sorted(ROWS[name] * expected)


@pytest.mark.parametrize("name", [name for name in PIPELINES if name != "hint"])
@pytest.mark.parametrize("mode", ["DYNAMIC", "FILE", "DATA", "FILE_OR_DATA"])
def test_order_and_states_are_those_without_workers(mode: str, name: str, files: list[str]) -> None:
    plain = PIPELINES[name](files)
    there = PIPELINES[name](files).apply(distribute(mode_of(mode), "threads:2"))
    assert there.to_list() == plain.to_list()
    assert there.cardinality() == plain.cardinality()
    with iter(there) as iterator:
        next(iterator)
        state = iterator.state()
        rest = list(iterator)
    assert repr(list(plain.restore(state))) == repr(rest)


def test_passes_of_off_are_shuffled_by_themselves_and_restored() -> None:
    there = Dataset.range(20).shuffle(20, seed=1).map(square).apply(distribute("parallel_epochs", "threads:3"))
    found = there.to_list()
    passes = [found[:20], found[20:40], found[40:]]
    assert [sorted(one) for one in passes] == [sorted(map(square, range(20)))] * 3
    assert passes[0] != passes[1] != passes[2]
    with iter(there) as iterator:
        for _ in range(25):
            next(iterator)
        state = iterator.state()
        rest = list(iterator)
    assert len(rest) == 35
    assert list(there.restore(state)) == rest


def test_off_has_no_end_where_the_pipeline_has_none() -> None:
    endless = Dataset.range(3).map(square).repeat()
    assert (
        endless.apply(distribute("parallel_epochs", "tcp://127.0.0.1:1")).cardinality() == di.data.INFINITE_CARDINALITY
    )
    assert endless.apply(distribute("parallel_epochs", "threads:2")).take(4).to_list() == [0, 1, 4, 0]


@pytest.mark.parametrize("mode", ["OFF", "HINT"])
def test_off_at_a_cluster_comes_once_for_each_worker_that_it_has_at_the_beginning(mode: str) -> None:
    executor = ThreadPoolExecutor(2)
    there = Dataset.range(20).shuffle(20, seed=1).map(square).apply(distribute(mode_of(mode), executor))
    assert there.cardinality() == di.data.UNKNOWN_CARDINALITY
    elements = there.to_list()
    assert elements == Dataset.range(20).shuffle(20, seed=1).map(square).repeat(2).to_list()
    with iter(there) as iterator:
        for _ in range(25):
            next(iterator)
        state = json.loads(json.dumps(iterator.state()))
        rest = list(iterator)
    assert len(rest) == 15
    more = Dataset.range(20).shuffle(20, seed=1).map(square).apply(distribute(mode_of(mode), ThreadPoolExecutor(5)))
    assert list(more.restore(state)) == rest, "a pass that began goes on as it began"
    assert len(more.to_list()) == 100


def test_off_at_a_cluster_restarts_everywhere() -> None:
    check_restart(Dataset.range(5).map(square).apply(distribute("parallel_epochs", ThreadPoolExecutor(3))), most=20)


# What three consumers of TensorFlow 2.21 get in each round, from one worker:
#
# > options = {"job_name": "job", "num_consumers": 3}
# > mode, target = "parallel_epochs", dispatcher.target
# > consumers = [iter(ds.apply(S.distribute(mode, target, consumer_index=i, **options))) for i in range(3)]
#
# With two workers each round comes twice: every worker has the whole dataset.
ROUNDS = {
    "range": [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 0, 1], [2, 3, 4]],
    "buckets": [
        [[21, 28, 35, 24], [31, 38, 20, 27], [34, 23, 30, 37]],
        [[42, 49, 56, 45], [52, 59, 41, 48], [55, 44, 51, 58]],
        [[0, 7, 14, 3], [10, 17, 6, 13], [2, 9, 16, 5]],
        [[12, 19, 1, 8], [15, 4, 11, 18], [0, 7, 14, 3]],
        [[26, 33, 22, 29], [36, 25, 32, 39], [21, 28, 35, 24]],
        [[40, 47, 54, 43], [50, 57, 46, 53], [42, 49, 56, 45]],
        [[10, 17, 6, 13], [2, 9, 16, 5], [12, 19, 1, 8]],
        [[31, 38, 20, 27], [34, 23, 30, 37], [26, 33, 22, 29]],
    ],
}


def mixed(x: Any) -> Any:
    return x * 7 % 60


def in_rounds(name: str) -> di.data.Dataset[Any]:
    """A dataset whose neighbours, three at a time, are of one bucket."""
    if name == "range":
        return Dataset.range(10).repeat()
    batches = Dataset.range(60).map(mixed).repeat()
    return batches.group_by_window(lambda x: x // 20, lambda _, ds: ds.batch(4, drop_remainder=True), window_size=12)


def consumer(name: str, index: int, where: Any = "threads:2", mode: str = "DYNAMIC") -> di.data.Dataset[Any]:
    turns = {"job_name": "job", "consumer_index": index, "num_consumers": 3}
    return in_rounds(name).apply(distribute(mode_of(mode), where, **turns))


@pytest.mark.parametrize("where", ["threads", "executor"])
@pytest.mark.parametrize("mode", ["OFF", "DYNAMIC"])
@pytest.mark.parametrize("name", ROUNDS)
def test_consumers_take_turns_as_in_tensorflow(name: str, mode: str, where: str) -> None:
    service = ThreadPoolExecutor(2) if where == "executor" else "threads:2"
    with ExitStack() as stack:
        consumers = [stack.enter_context(iter(consumer(name, index, service, mode))) for index in range(3)]
        assert [[next(each).tolist() for each in consumers] for _ in ROUNDS[name]] == ROUNDS[name]


def test_a_consumer_that_comes_back_is_in_the_same_round() -> None:
    with iter(consumer("buckets", 1)) as elements:
        for row in ROUNDS["buckets"]:
            state = json.loads(json.dumps(elements.state()))
            with iter(consumer("buckets", 1, ThreadPoolExecutor(1)).restore(state)) as back:
                assert next(back).tolist() == row[1]
            assert next(elements).tolist() == row[1]


def test_consumers_of_one_service_have_their_elements_made_once() -> None:
    executor = Counting()
    with ExitStack() as stack:
        consumers = [stack.enter_context(iter(consumer("buckets", index, executor))) for index in range(3)]
        made = []
        for _ in range(60):
            for each in consumers:
                next(each)
            made.append(executor.calls)
    with iter(consumer("buckets", 0, alone := Counting())) as elements:
        for _ in range(60):
            next(elements)
    assert 0 < made[-1] < 1.3 * alone.calls + 6


def test_a_strategy_does_not_divide_what_consumers_divide() -> None:
    with iter(consumer("range", 2)) as elements:
        expected = [next(elements).tolist() for _ in range(3)]
    options = consumer("range", 2).options()
    assert options.experimental_distribute.auto_shard_policy is di.data.experimental.AutoShardPolicy.OFF
    assert expected == [2, 5, 8]


def test_consumers_need_a_dataset_without_end() -> None:
    turns = {"job_name": "job", "consumer_index": 0, "num_consumers": 2}
    with pytest.raises(
        FailedPreconditionError, match=r"need a dataset without end, .* cardinality 3; write repeat\(\)"
    ):
        Dataset.range(3).map(square).apply(distribute("parallel_epochs", "threads:2", **turns))


# What TensorFlow 2.21 delivers to consumers that name one job, with two workers: two passes of one dataset; then those of
# another dataset of the same steps and name; then two iterators that take turns, as a multiset.
#
# > ds = lambda n, job: tf.data.Dataset.range(n).map(lambda x: x * x).apply(S.distribute(mode, target, job_name=job))
# > once = ds(10, "one"); sorted(once), sorted(once); sorted(ds(10, "one")), sorted(ds(10, "one").repeat(2))
# > i, j = iter(ds(40, "two")), iter(ds(40, "two"))
#
# A number is how often each element comes. A second pass of a dataset is a second pass of the job.
JOBS = {"distributed_epoch": 1, "parallel_epochs": 2}


@pytest.mark.parametrize("mode", JOBS)
def test_consumers_of_a_job_have_each_element_once_in_all_as_in_tensorflow(mode: str) -> None:
    executor = ThreadPoolExecutor(2)

    def of_job(count: int, job: str) -> di.data.Dataset[Any]:
        return Dataset.range(count).map(square).apply(distribute(mode, executor, job_name=job))

    once = of_job(10, "one")
    assert sorted(once.to_list()) == sorted(once.to_list()) == sorted(SQUARES * JOBS[mode])
    assert of_job(10, "one").to_list() == []
    assert of_job(10, "one").repeat(3).to_list() == SQUARES * JOBS[mode], "of the third pass"
    turns = [iter(of_job(40, "two")) for _ in range(2)]
    found: list[list[int]] = [[], []]
    for own, turn in cycle(zip(found, turns, strict=True)):
        before = sum(map(len, found))
        own += [int(element) for element in islice(turn, 1)]
        if sum(map(len, found)) == before and own is found[1]:
            break
    found[0] += map(int, turns[0])
    assert sorted(found[0] + found[1]) == sorted([x * x for x in range(40)] * JOBS[mode])
    assert min(map(len, found)) > 5


class Counting(Executor):
    """An executor of two threads that counts its calls."""

    def __init__(self) -> None:
        self.inner, self.calls, self._max_workers = ThreadPoolExecutor(2), 0, 2

    def submit(self, function: Any, /, *given: Any) -> Any:  # type: ignore[override]
        self.calls += 1
        return self.inner.submit(function, *given)


def plus(number: int) -> Any:
    def added(x: Any) -> Any:
        return x + number

    return added


def job(executor: Any, most: int = 1 << 20, number: int = 1) -> di.data.Dataset[Any]:
    cache = service.CrossTrainerCache("trainer", most)
    numbers = Dataset.range(2000).shuffle(50, seed=2).map(plus(number), output_signature=di.TensorSpec([], "int64"))
    return numbers.apply(distribute("distributed_epoch", executor, job_name="job", cross_trainer_cache=cache))


@pytest.mark.needs("cloudpickle")
def test_jobs_that_are_at_one_place_cost_one() -> None:
    executor = Counting()
    expected = Dataset.range(2000).shuffle(50, seed=2).map(plus(1)).to_list()
    with iter(job(executor)) as first, iter(job(executor)) as second:
        found = [(int(x), int(y)) for x, y in zip(first, second, strict=True)]
    assert found == [(int(x), int(x)) for x in expected]
    once = Counting()
    assert job(once).to_list() == expected
    assert executor.calls <= once.calls + 8


@pytest.mark.needs("cloudpickle")
def test_a_job_that_is_far_behind_has_its_elements_made_again() -> None:
    executor = Counting()
    with iter(job(executor, most=1000)) as slow:
        first = [int(next(slow))]
        fast = job(executor, most=1000).to_list()
        between = executor.calls
        first += list(map(int, slow))
    assert first == list(map(int, fast))
    assert executor.calls > between + 50


@pytest.mark.needs("cloudpickle")
def test_jobs_that_do_otherwise_share_nothing() -> None:
    executor = Counting()
    with iter(job(executor)) as one, iter(job(executor, number=2)) as other:
        assert all(int(y) == int(x) + 1 for x, y in zip(one, other, strict=True))


def test_what_is_shared_may_be_changed() -> None:
    def rows(service: Any) -> Any:
        arrays = Dataset.from_tensor_slices(np.zeros((40, 50_000))).map(square)
        return arrays.on_workers(service, shared_bytes=1 << 30)

    executor = ThreadPoolExecutor(2)
    with iter(rows(executor)) as first, iter(rows(executor)) as second:
        for x, y in zip(first, second, strict=True):
            assert y.sum() == 0
            if x.flags.writeable:
                x += 1


@pytest.mark.needs("cloudpickle")
def test_a_call_that_another_job_gave_up_is_made_again() -> None:
    executor = Counting()
    with iter(job(executor)) as second:
        with iter(job(executor)) as first:
            next(first)
            next(second)
        assert len([*second]) == 1999


def test_a_cluster_of_dask_is_named_by_its_client_address_or_protocol() -> None:
    distributed = pytest.importorskip(
        "distributed", reason="distributed is not installed (`pip install 'distinput[dask]'`)"
    )
    squares = Dataset.range(10).map(square)
    from distinput.distribute.seats.local_cluster import LocalCluster

    with (
        LocalCluster(0, 0, inputs=1) as cluster,
        distributed.Client(cluster.address, set_as_default=False) as client,
    ):
        protocol, _, address = cluster.address.partition("://")
        for named in (client, cluster.address, (protocol, address)):
            assert squares.apply(distribute("distributed_epoch", named)).to_list() == SQUARES


@pytest.mark.parametrize(
    "more, error, says",
    [
        (
            {"job_name": "shared"},
            InvalidArgumentError,
            "job_name='shared' .*'threads:2'.*leave out job_name.*one Dask cluster.*consumer_index",
        ),
        ({"job_name": ""}, InvalidArgumentError, "job_name"),
        ({"job_name": 3}, InvalidArgumentError, "job_name"),
        ({"consumer_index": 0}, InvalidArgumentError, "must be set together, got 0, None and None"),
        ({"num_consumers": 2}, InvalidArgumentError, "must be set together"),
        ({"consumer_index": 0, "num_consumers": 2}, InvalidArgumentError, "must be set together, got 0, 2 and None"),
        (
            {"job_name": "x", "consumer_index": 2, "num_consumers": 2},
            InvalidArgumentError,
            "Index must be between 0 and 1",
        ),
        (
            {"job_name": "x", "consumer_index": -1, "num_consumers": 2},
            InvalidArgumentError,
            "Index must be between 0 and",
        ),
        (
            {"job_name": "x", "consumer_index": 0, "num_consumers": 0},
            InvalidArgumentError,
            "Number of shards must be greater",
        ),
        ({"cross_trainer_cache": object()}, InvalidArgumentError, "must be a CrossTrainerCache"),
        (
            {"cross_trainer_cache": service.CrossTrainerCache("x")},
            InvalidArgumentError,
            "Executor\\(2\\)`, or a Dask cluster",
        ),
        ({"target_workers": "LOCAL"}, UnimplementedError, "service='threads:4'"),
        ({"target_workers": "x"}, InvalidArgumentError, "target_workers must be 'AUTO' or 'ANY', got 'x'"),
        ({"compression": "GZIP"}, InvalidArgumentError, "compression must be .* got 'GZIP'"),
        ({"processing_mode": "x"}, InvalidArgumentError, "processing_mode must be a ShardingPolicy, .* got 'x'"),
        ({"processing_mode": 1}, InvalidArgumentError, "processing_mode must be a ShardingPolicy, .* got 1"),
        ({"max_outstanding_requests": 0}, InvalidArgumentError, "max_outstanding_requests"),
        ({"service": "grpc://localhost:5000"}, InvalidArgumentError, "service must be"),
        ({"service": ("grpc", "localhost:5000")}, InvalidArgumentError, "service must be"),
        ({"service": ("grpc", 5000)}, TypeError, "service must be"),
    ],
)
def test_what_is_declined_says_what_to_write(more: dict[str, Any], error: type[Exception], says: str) -> None:
    given = {"processing_mode": "distributed_epoch", "service": "threads:2", **more}
    with pytest.raises(error, match=says):
        Dataset.range(3).map(square).apply(distribute(**given))


@pytest.mark.parametrize(
    "more",
    [
        {"data_transfer_protocol": "grpc"},
        {"compression": None},
        {"compression": "SNAPPY"},
        {"target_workers": "ANY"},
        {"max_outstanding_requests": -1},
        {"max_outstanding_requests": 3},
    ],
)
def test_other_arguments_change_no_element(more: dict[str, Any]) -> None:
    there = Dataset.range(10).map(square).apply(distribute("distributed_epoch", "threads:2", **more))
    assert there.to_list() == SQUARES


def test_a_cache_of_trainers_needs_an_id_as_in_tensorflow() -> None:
    with pytest.raises(InvalidArgumentError, match="trainer_id must not be empty"):
        service.CrossTrainerCache("")
    with pytest.raises(InvalidArgumentError, match="max_bytes"):
        service.CrossTrainerCache("trainer", 0)


@pytest.mark.parametrize("name", ["DispatchServer", "register_dataset", "WorkerServer"])
def test_a_name_that_is_declined_says_what_to_write(name: str) -> None:
    with pytest.raises(AttributeError, match=r'"The data service" in docs/tensorflow\.md'):
        getattr(service, name)
