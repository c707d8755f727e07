# SPDX-License-Identifier: Apache-2.0
"""The strategy with variables on parameter servers."""

import copy
import gc
import pickle
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.distribute.cluster_resolver import ClusterSpec, LocalClusterResolver, SimpleClusterResolver
from distinput.distribute.coordinator.parameter_server import ParameterServerStrategy, _at_worker
from distinput.distribute.seats import Packing
from distinput.distribute.seats.threads import ThreadSeats
from distinput.distribute.variables import AggregatingVariable, ResourceVariable
from tests.distribute.coordinator.clusters import both_packings, cluster


def resolver(jobs: dict[str, list[str]], **task: Any) -> SimpleClusterResolver:
    return SimpleClusterResolver(ClusterSpec(jobs), **task)


@pytest.mark.parametrize(
    "given, text",
    [
        (resolver({}), "Cluster spec must be non-empty"),
        (resolver({"worker": ["a"]}), "There must be at least one ps"),
        (resolver({"ps": ["a"]}), "There must be at least one worker"),
        (resolver({"worker": ["a"], "ps": ["b"], "trainer": ["c"]}), "Disallowed task type found in cluster spec"),
        (resolver({"worker": ["a"], "ps": ["b"]}, task_type="trainer"), "Unrecognized task_type: trainer"),
        (resolver({"worker": ["a"], "ps": ["b"], "chief": ["c", "d"]}), "at most one 'chief' job"),
        (
            resolver({"worker": ["a"], "ps": ["b"]}, task_type="ps", task_id=0),
            "coordinator name should not be 'worker' or 'ps'",
        ),
    ],
)
def test_the_cluster_must_be_one_for_a_coordinator(given: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        ParameterServerStrategy(given, engine="threads")


def test_any_cluster_can_be_tried_out_in_threads() -> None:
    given = resolver(
        {"worker": ["a:1", "b:1"], "ps": ["c:1"], "chief": ["d:1"], "evaluator": ["e:1"]}, task_type="chief"
    )
    with ParameterServerStrategy(given, engine="threads") as strategy:
        assert strategy.cluster_resolver is given
        assert repr(strategy) == "ParameterServerStrategy(threads, 2 workers, 1 parameter server)"
        assert strategy.num_replicas_in_sync == 1
        assert strategy.extended.parameter_devices == ("/job:ps/replica:0/task:0/device:CPU:0",)


def test_an_unknown_engine_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown coordinator engine 'x'"):
        ParameterServerStrategy(LocalClusterResolver(), engine="x")


@both_packings
def test_variables_are_read_and_written_from_everywhere(packing: Packing) -> None:
    with cluster(servers=2, packing=packing) as (_, strategy, coordinator):
        with strategy.scope():
            v, w = di.Variable([1.0, 2.0], name="v"), di.Variable(np.int64(0), name="w")
        assert [v.device, w.device] == [
            "/job:ps/replica:0/task:0/device:CPU:0",
            "/job:ps/replica:0/task:1/device:CPU:0",
        ]
        assert isinstance(v, ResourceVariable)
        assert strategy.extended.variable_created_in_scope(v)

        def step(given: Any) -> Any:
            w.assign_add(1)
            given.assign_sub([1.0, 1.0])
            return given.name, di.distribute.get_strategy().extended.variable_created_in_scope(given)

        found = coordinator.fetch([coordinator.schedule(step, (v,)) for _ in range(50)])
        assert set(found) == {("v:0", True)}
        assert w.numpy() == 50
        np.testing.assert_array_equal(v, [-49, -48])
        v.assign([5, 5])
        np.testing.assert_array_equal(coordinator.schedule(lambda: v.read_value()).fetch(), [5, 5])
        np.testing.assert_array_equal(coordinator.schedule(lambda: v).fetch(), [5, 5])


def test_update_calls_its_function_with_the_one_variable() -> None:
    with cluster(partitioner=di.distribute.experimental.partitioners.FixedShardsPartitioner(2)) as (_, strategy, _):
        with strategy.scope():
            split, single = di.Variable([1.0, 2.0]), di.Variable(1.0)
        for v in (split, single):
            strategy.extended.update(v, lambda v, x: v.assign_add(x), args=(np.ones(v.shape),))
        np.testing.assert_array_equal(split, [2.0, 3.0])
        assert single.numpy() == 2.0


def test_a_variable_that_goes_with_another_one_is_whole_and_takes_no_turn() -> None:
    partitioner = di.distribute.experimental.partitioners.FixedShardsPartitioner(2)
    with cluster(servers=2, partitioner=partitioner) as (_, strategy, _), strategy.scope():
        first, second = di.Variable(1.0), di.Variable(1.0)
        with strategy.extended.colocate_vars_with(second):
            slot = di.Variable(np.zeros(4))
        third = di.Variable(1.0)
    assert isinstance(slot, ResourceVariable)
    assert [v.device for v in (first, second, slot, third)] == [
        f"/job:ps/replica:0/task:{i}/device:CPU:0" for i in (0, 1, 1, 0)
    ]


def test_variables_are_not_created_at_workers() -> None:
    with cluster() as (_, _, coordinator), pytest.raises(ValueError, match="are created on the coordinator"):
        coordinator.schedule(lambda: di.Variable(1.0)).fetch()


def test_a_variable_needs_an_open_strategy() -> None:
    with cluster() as (_, strategy, _):
        pass
    with strategy.scope(), pytest.raises(di.errors.UnavailableError, match="the strategy was closed"):
        di.Variable(1.0)


def test_with_a_partitioner_large_variables_are_split() -> None:
    partitioner = di.distribute.experimental.partitioners.MinSizePartitioner(min_shard_bytes=8, max_shards=2)
    with cluster(servers=2, partitioner=partitioner) as (_, strategy, coordinator):
        with strategy.scope():
            table, small, scalar = di.Variable(np.zeros(5)), di.Variable([1.0]), di.Variable(1.0)
        assert [type(v).__name__ for v in (table, small, scalar)] == [
            "ShardedVariable",
            "ResourceVariable",
            "ResourceVariable",
        ]
        assert strategy.extended.variable_created_in_scope(table)
        for _ in range(10):
            coordinator.schedule(lambda: table.assign_add(np.ones(5)))
        coordinator.join()
        np.testing.assert_array_equal(table, np.full(5, 10.0))


@both_packings
def test_run_and_reduce_are_over_the_replicas_of_one_worker(packing: Packing) -> None:
    with cluster(packing=packing, devices=["CPU:0", "CPU:1"]) as (_, strategy, coordinator):
        with strategy.scope():
            total = di.Variable(0.0, aggregation=di.VariableAggregation.SUM)
        assert isinstance(total, AggregatingVariable)
        assert strategy.num_replicas_in_sync == 2
        dataset = strategy.experimental_distribute_dataset(di.data.Dataset.range(6).batch(3))
        iterator = iter(coordinator.create_per_worker_dataset(dataset))

        def replica(x: Any) -> Any:
            context = di.distribute.get_replica_context()
            total.assign_add(np.float32(x.sum()))
            return x * (1 + context.replica_id_in_sync_group)

        def step(iterator: Any) -> Any:
            current = di.distribute.get_strategy()
            found = current.run(replica, args=(next(iterator),))
            return (
                current.reduce("SUM", found, axis=0),
                current.gather(found, axis=0),
                current.experimental_local_results(found),
                current.reduce("SUM", 7, axis=None),
            )

        reduced, gathered, parts, plain = coordinator.schedule(step, (iterator,)).fetch()
        np.testing.assert_array_equal(gathered, [0, 1, 4])
        assert (reduced, plain) == (5, 7)
        assert [part.tolist() for part in parts] == [[0, 1], [4]]
        assert total.numpy() == 3.0


def test_a_single_replica_is_not_wrapped() -> None:
    with cluster() as (_, strategy, coordinator):
        assert strategy.experimental_local_results(3) == (3,)
        assert strategy.experimental_distribute_values_from_function(lambda context: context.num_replicas_in_sync) == 1
        assert coordinator.schedule(lambda: strategy.run(lambda x: x + 1, args=(1,))).fetch() == 2


def test_every_worker_has_an_input_pipeline_of_its_own() -> None:
    with cluster(devices=["CPU:0", "CPU:1"]) as (_, strategy, coordinator):
        seen: list[Any] = []

        def dataset_fn(context: Any) -> Any:
            seen.append((context.num_input_pipelines, context.input_pipeline_id, context.num_replicas_in_sync))
            return di.data.Dataset.range(4)

        dataset = strategy.distribute_datasets_from_function(dataset_fn)
        assert not seen
        iterator = iter(coordinator.create_per_worker_dataset(dataset))
        parts = coordinator.schedule(lambda it: strategy.experimental_local_results(next(it)), (iterator,)).fetch()
        assert parts == (0, 1)
        assert set(seen) == {(1, 0, 2)}


def test_distributed_datasets_are_not_iterated_on_the_coordinator() -> None:
    with cluster() as (_, strategy, _):
        with pytest.raises(ValueError, match=r"ClusterCoordinator\.create_per_worker_dataset"):
            iter(strategy.experimental_distribute_dataset(di.data.Dataset.range(4).batch(2)))
        with pytest.raises(ValueError, match=r"ClusterCoordinator\.create_per_worker_dataset"):
            iter(strategy.distribute_datasets_from_function(lambda _: di.data.Dataset.range(4)))
        with pytest.raises(TypeError):
            strategy.experimental_distribute_dataset([1])
        with pytest.raises(TypeError):
            strategy.distribute_datasets_from_function(3)


def test_it_cannot_be_copied_and_arrives_at_workers_as_itself() -> None:
    with cluster(devices=["CPU:0", "CPU:1"]) as (_, strategy, coordinator):
        with pytest.raises(RuntimeError, match="cannot be copied"):
            copy.deepcopy(strategy)
        with pytest.raises(RuntimeError, match="Must only deepcopy"):
            copy.copy(strategy)
        sent = pickle.dumps(strategy)
        assert pickle.loads(sent) is strategy
    del strategy, coordinator
    gc.collect()
    there = pickle.loads(sent)  # as in another process
    assert there.num_replicas_in_sync == 2
    assert pickle.loads(sent) is there
    with pytest.raises(ValueError, match="not at a worker"):
        di.distribute.coordinator.ClusterCoordinator(there)
    _at_worker.cache_clear()


def test_given_seats_are_left_to_their_owner() -> None:
    seats = ThreadSeats(1, 1)
    with ParameterServerStrategy(seats=seats):
        pass
    assert seats.place("worker-0", list).call("__len__") == 0


def test_a_run_on_the_coordinator_is_told(caplog: pytest.LogCaptureFixture) -> None:
    resolver = di.distribute.cluster_resolver.LocalClusterResolver(num_workers=1, num_ps=1)
    with di.distribute.ParameterServerStrategy(resolver) as strategy:
        coordinator = di.distribute.coordinator.ClusterCoordinator(strategy)
        step = lambda: strategy.reduce("SUM", strategy.run(lambda: 2), axis=None)  # noqa: E731
        assert coordinator.schedule(step).fetch() == 2
        assert "without ClusterCoordinator.schedule" not in caplog.text
        assert step() == 2
        assert sum("without ClusterCoordinator.schedule" in text for text in caplog.messages) == 2
