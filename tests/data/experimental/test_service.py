# SPDX-License-Identifier: Apache-2.0
"""`tf.data.experimental.service` over `on_workers`, beside what TensorFlow's service delivers."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import distinput as di
from distinput.data.experimental import service
from distinput.data.experimental.service import ShardingPolicy, distribute
from distinput.errors import FailedPreconditionError, InvalidArgumentError, UnimplementedError

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
def test_off_at_a_cluster_is_declined_since_its_workers_change(mode: str) -> None:
    with pytest.raises(
        UnimplementedError, match=rf"{mode} delivers each .*; write ShardingPolicy.DYNAMIC .*repeat\(n\)"
    ):
        Dataset.range(3).map(square).apply(distribute(mode_of(mode), "tcp://127.0.0.1:1"))


def test_a_cluster_of_dask_is_named_by_its_client_address_or_protocol() -> None:
    distributed = pytest.importorskip(
        "distributed", reason="distributed is not installed (`pip install 'distinput[dask]'`)"
    )
    squares = Dataset.range(10).map(square)
    with (
        distributed.LocalCluster(
            n_workers=1,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            silence_logs="CRITICAL",
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        protocol, _, address = cluster.scheduler_address.partition("://")
        for named in (client, cluster.scheduler_address, (protocol, address)):
            assert squares.apply(distribute("distributed_epoch", named)).to_list() == SQUARES


@pytest.mark.parametrize(
    "more, error, says",
    [
        ({"job_name": "shared"}, UnimplementedError, "job_name='shared'.*leave it out.*shard"),
        ({"job_name": ""}, InvalidArgumentError, "job_name"),
        ({"job_name": 3}, InvalidArgumentError, "job_name"),
        ({"consumer_index": 0}, UnimplementedError, "let a strategy cut"),
        ({"num_consumers": 2}, UnimplementedError, "let a strategy cut"),
        ({"cross_trainer_cache": object()}, UnimplementedError, r"dataset\.cache\(filename\)"),
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


@pytest.mark.parametrize("name", ["DispatchServer", "register_dataset", "CrossTrainerCache"])
def test_a_name_that_is_declined_says_what_to_write(name: str) -> None:
    with pytest.raises(AttributeError, match=r'"The data service" in docs/tensorflow\.md'):
        getattr(service, name)
