# SPDX-License-Identifier: Apache-2.0
"""Law 10: a job that stops on (w, r) goes on on any (w', r') with the same global batches, under every policy."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import distinput as di
from distinput.data.seal import sealed
from distinput.errors import StateError
from distinput.plan.options import AutoShardPolicy
from tests.depth import DEEP
from tests.distribute.workers import on_workers

POLICIES = ["FILE", "BALANCED", "OFF", "HINT", "DATA", "AUTO"]
MOST = 6 if DEEP else 3
JOBS = st.tuples(st.integers(1, MOST), st.integers(1, MOST))


def lines(folder: Any, rows: Sequence[int]) -> list[str]:
    """Text files with so many lines; each line is in no other file."""
    paths = []
    for number, count in enumerate(rows):
        path = folder / f"{number}.txt"
        path.write_text("".join(f"{number} {line}\n" for line in range(count)))
        paths.append(str(path))
    return paths


def pipeline(paths: Sequence[str], policy: str, size: int, filtered: bool, cached: bool = False) -> Any:
    dataset = di.data.TextLineDataset(list(paths)).shuffle(5, seed=1)
    if cached:  # what each worker of the earlier job kept, one of the later job keeps for it
        dataset = dataset.cache()
    if filtered:  # so that nobody can count the rows
        dataset = dataset.filter(lambda line: len(line) != 3 or line[2:3] != b"1")
    if policy == "HINT":
        dataset = dataset.shard(di.data.experimental.SHARD_HINT, di.data.experimental.SHARD_HINT)
    options = di.data.Options()
    options.experimental_distribute.auto_shard_policy = AutoShardPolicy[policy]
    return dataset.batch(size).with_options(options)


def rows_of_steps(found: Sequence[list[list[list[Any]]]], *, whole: bool) -> list[list[Any]]:
    """The rows of each step of all workers, as they stand in the global batch.

    Args:
      found: of each worker, of each step, of each replica: its rows.
      whole: True if global batches were cut, of which a worker has every W-th piece.
    """
    workers = len(found)
    assert len({len(steps) for steps in found}) == 1, "all workers take equally many steps"
    batches = []
    for step in range(len(found[0])):
        parts = [found[worker][step] for worker in range(workers)]
        if whole:
            parts = [[parts[worker][replica] for replica in range(len(parts[0])) for worker in range(workers)]]
        batches.append([row for worker in parts for part in worker for row in part])
    return batches


def part_rows(strategy: Any, step: Any) -> list[list[Any]]:
    return [np.asarray(part).tolist() for part in strategy.experimental_local_results(step)]


def taken(iterator: Any, strategy: Any, count: int | None) -> list[list[list[Any]]]:
    steps = []
    while count is None or len(steps) < count:
        optional = iterator.get_next_as_optional()
        if not optional.has_value():
            break
        steps.append(part_rows(strategy, optional.get_value()))
    return steps


def is_whole(state: Any) -> bool:
    return state["cut"] in ("batches", "lanes")


def check_elastic(
    make: Any, jobs: Sequence[tuple[int, int]], stops: Sequence[int], *, empty: bool = True, tail: Any = "partial"
) -> None:
    """A job that goes on on other workers after each stop has the global batches of one that never stops.

    Unless `empty`, batches without a row are not looked at.
    """
    options = di.distribute.InputOptions(tail=tail)

    def never_stops(strategy: Any, worker: int) -> Any:
        dataset = strategy.experimental_distribute_dataset(make(), options)
        with iter(dataset) as iterator:
            return taken(iterator, strategy, None), is_whole(iterator.state())

    def second_pass(strategy: Any, worker: int) -> Any:
        dataset = strategy.experimental_distribute_dataset(make(), options)
        list(dataset)
        return [part_rows(strategy, step) for step in dataset]

    reference = on_workers([jobs[0][1]] * jobs[0][0], never_stops)
    errors = [each for each in reference if isinstance(each, Exception)]
    if errors:  # fewer files than workers, which policy FILE says
        assert all(type(error).__name__ == "TooFewFilesError" for error in errors), errors
        return
    expected = rows_of_steps([steps for steps, _ in reference], whole=reference[0][1])

    states: Any = None
    delivered: list[list[Any]] = []
    for number, (workers, replicas) in enumerate(jobs):
        last = number == len(jobs) - 1

        def job(strategy: Any, worker: int, states: Any = states, number: int = number, last: bool = last) -> Any:
            dataset = strategy.experimental_distribute_dataset(make(), options)
            iterator = iter(dataset) if states is None else dataset.restore(states)
            with iterator:
                steps = taken(iterator, strategy, None if last else stops[number])
                state = json.loads(json.dumps(iterator.state()))
            return steps, state, ([part_rows(strategy, step) for step in dataset] if last else None)

        found = on_workers([replicas] * workers, job)
        errors = [each for each in found if isinstance(each, Exception)]
        if errors and type(errors[0]).__name__ == "TooFewFilesError":
            return
        assert not errors, (errors[0], getattr(errors[0], "__notes__", ()))
        states = [state for _, state, _ in found]
        delivered += rows_of_steps([steps for steps, _, _ in found], whole=is_whole(states[0]))
    assert [batch for batch in delivered if batch or empty] == [batch for batch in expected if batch or empty]
    fresh = on_workers([jobs[-1][1]] * jobs[-1][0], second_pass)
    assert [passes for _, _, passes in found] == fresh, "the next pass is planned for the new job"


@given(
    st.sampled_from(POLICIES), st.lists(st.integers(0, 9), min_size=3, max_size=5), st.integers(1, 7), st.booleans(),
    st.booleans(), st.lists(JOBS, min_size=2, max_size=3), st.tuples(st.integers(0, 3), st.integers(0, 2)),
    st.sampled_from(["drop", "partial"]),
)  # fmt: skip
def test_a_job_goes_on_on_any_workers_and_replicas(
    tmp_path_factory: pytest.TempPathFactory,
    policy: str, rows: list[int], size: int, filtered: bool, cached: bool, jobs: list[tuple[int, int]],
    stops: tuple[int, int], tail: str,
) -> None:  # fmt: skip
    paths = lines(tmp_path_factory.mktemp("files"), rows)
    check_elastic(lambda: pipeline(paths, policy, size, filtered, cached), jobs, stops, tail=tail)


@pytest.mark.parametrize("policy", ["FILE", "BALANCED", "HINT"])
def test_lanes_of_one_process_keep_their_elements_apart(tmp_path: Any, policy: str) -> None:
    paths = lines(tmp_path, [3, 4])
    check_elastic(lambda: pipeline(paths, policy, 2, False, cached=True), [(2, 1), (1, 1)], [0])


def test_a_state_of_one_of_several_workers_says_what_is_missing(tmp_path: Any) -> None:
    paths = lines(tmp_path, [4, 4, 4])

    def stopped(strategy: Any, worker: int) -> Any:
        iterator = iter(strategy.experimental_distribute_dataset(pipeline(paths, "FILE", 4, False)))
        next(iterator)
        return iterator.state()

    states = on_workers([1, 1], stopped)
    dataset = di.distribute.OneDeviceStrategy("CPU:0").experimental_distribute_dataset(
        pipeline(paths, "FILE", 4, False)
    )
    with pytest.raises(StateError, match="give restore a list of the states of all workers"):
        dataset.restore(states[0])
    with pytest.raises(StateError, match="had 2 workers, and here are the states of 1"):
        dataset.restore(states[:1])
    with pytest.raises(StateError, match="worker 0 of the earlier job"):
        dataset.restore(states[::-1])


def test_other_rows_of_two_lanes_say_what_to_do(tmp_path: Any) -> None:
    paths = lines(tmp_path, [4, 4])

    def of_length(line: Any) -> Any:
        return np.zeros(1 + int(line[:1]))

    def dataset_of(strategy: Any) -> Any:
        lengths = di.data.TextLineDataset(paths).map(of_length, output_signature=di.TensorSpec((None,), "float64"))
        options = di.data.Options()
        options.experimental_distribute.auto_shard_policy = AutoShardPolicy.FILE
        return strategy.experimental_distribute_dataset(lengths.batch(2).with_options(options))

    def stopped(strategy: Any, worker: int) -> Any:
        iterator = iter(dataset_of(strategy))
        next(iterator)
        return iterator.state()

    states = on_workers([1, 1], stopped)
    alone = dataset_of(di.distribute.OneDeviceStrategy("CPU:0"))
    with pytest.raises(di.errors.FailedPreconditionError, match=r"they differ in shape: .*; pad them to one shape"):
        next(alone.restore(states))


def test_a_checkpoint_of_two_workers_goes_on_with_one_and_with_three(tmp_path: Any) -> None:
    paths = lines(tmp_path, [5, 6, 7])

    def built(strategy: Any) -> Any:
        iterator = iter(strategy.experimental_distribute_dataset(pipeline(paths, "FILE", 4, False)))
        return iterator, di.train.Checkpoint(iterator=iterator)

    def saves(strategy: Any, worker: int) -> Any:
        with strategy.scope():
            iterator, checkpoint = built(strategy)
            first = taken(iterator, strategy, 1)
            path = checkpoint.save(str(tmp_path / "saved"))
            return first, path, taken(iterator, strategy, None)

    def goes_on(strategy: Any, worker: int) -> Any:
        with strategy.scope():
            iterator, checkpoint = built(strategy)
            checkpoint.restore(path).assert_consumed()
            return taken(iterator, strategy, None)

    two = on_workers([1, 1], saves)
    path = two[0][1]
    rest = rows_of_steps([steps for _, _, steps in two], whole=False)
    for replicas in ([1], [2], [1, 1, 1], [2, 2]):
        found = on_workers(replicas, goes_on)
        assert not any(isinstance(each, Exception) for each in found), found
        same = len(replicas) == 2 and replicas[0] == 1
        assert rows_of_steps(found, whole=not same) == rest


def test_datasets_of_a_function_go_on_where_their_elements_have_rows() -> None:
    def dataset_fn(context: Any) -> Any:
        numbers = di.data.Dataset.range(23).shard(context.num_input_pipelines, context.input_pipeline_id)
        return numbers.shuffle(4, seed=2).batch(context.get_per_replica_batch_size(12))

    def stopped(strategy: Any, worker: int) -> Any:
        iterator = iter(strategy.distribute_datasets_from_function(dataset_fn))
        first = taken(iterator, strategy, 1)
        return first, iterator.state(), taken(iterator, strategy, None)

    def goes_on(strategy: Any, worker: int) -> Any:
        dataset = strategy.distribute_datasets_from_function(dataset_fn)
        assert "elastic:  yes" in dataset.explain()
        return taken(dataset.restore(states), strategy, None)

    found = on_workers([2, 2], stopped)
    states = [state for _, state, _ in found]
    rest = rows_of_steps([steps for _, _, steps in found], whole=False)
    for replicas in ([1], [3], [1, 1, 1]):
        steps = on_workers(replicas, goes_on)
        assert not any(isinstance(each, Exception) for each in steps), steps
        assert rows_of_steps(steps, whole=True) == rest


def test_elements_without_rows_cannot_be_cut_anew() -> None:
    def dataset_of(replicas: int) -> Any:
        strategy = di.distribute.MirroredStrategy([f"CPU:{i}" for i in range(replicas)])
        return strategy.distribute_datasets_from_function(lambda context: di.data.Dataset.range(6))

    iterator = iter(dataset_of(2))
    next(iterator)
    assert "elastic:  no: elements have no axis of rows" in dataset_of(2).explain()
    with pytest.raises(StateError, match="taken with replicas=2, this dataset has replicas=3"):
        dataset_of(3).restore(iterator.state())


def test_records_of_a_pass_over_lanes_are_asked_of_the_earlier_job(tmp_path: Any) -> None:
    paths = lines(tmp_path, [4, 4, 4])
    mirrored = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    iterator = iter(mirrored.experimental_distribute_dataset(pipeline(paths, "OFF", 4, False)))
    next(iterator)
    state = iterator.state()
    alone = di.distribute.OneDeviceStrategy("CPU:0").experimental_distribute_dataset(pipeline(paths, "OFF", 4, False))
    said = r"inputs of an earlier job \(1 worker with 2 replicas\)"
    with pytest.raises(di.errors.UnimplementedError, match=said):
        alone.restore(state).locate(2, read=True)
    ledger = di.train.Ledger(tmp_path / "ledger")
    with ledger, alone.restore(state) as rest, pytest.raises(di.errors.UnimplementedError, match=said):
        next(iter(ledger.follow(rest)))


@pytest.mark.parametrize(
    "change", [{"workers": None}, {"workers": "2"}, {"replicas": 0}, {"workers": 10**9}, {"inputs": 3}, {"inputs": [7]}]
)
def test_a_forged_state_of_a_worker_is_refused(change: dict[str, Any], tmp_path: Any) -> None:
    paths = lines(tmp_path, [4, 4, 4])
    mirrored = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    iterator = iter(mirrored.experimental_distribute_dataset(pipeline(paths, "OFF", 4, False)))
    next(iterator)
    state = {key: value for key, value in iterator.state().items() if key not in ("version", "check", "plan")}
    alone = di.distribute.OneDeviceStrategy("CPU:0").experimental_distribute_dataset(pipeline(paths, "OFF", 4, False))
    forged = sealed({**state, **change})
    for states in (forged, [forged], [forged, forged]):
        with pytest.raises(StateError):
            alone.restore(states)
    lanes = sealed({**state, "cut": "lanes", "inputs": [{"lanes": state["inputs"]}], **change})
    with pytest.raises(StateError):
        alone.restore(lanes)


@pytest.mark.parametrize("policy", ["BALANCED", "OFF"])
@pytest.mark.parametrize("jobs", [[(2, 1), (1, 1)], [(3, 1), (2, 1)], [(2, 2), (1, 1), (2, 1)]])
def test_a_step_without_a_row_is_left_out_where_a_job_goes_on(policy: str, jobs: list[tuple[int, int]]) -> None:
    """Parts of a batch of one row leave replicas without rows; no job takes a step of such parts alone."""
    options = di.data.Options()
    options.experimental_distribute.auto_shard_policy = AutoShardPolicy[policy]
    dataset = di.data.Dataset.range(10).batch(1).rebatch(2).with_options(options)
    check_elastic(lambda: dataset, jobs, [1, 1], empty=False)
    states = on_workers([1] * 2, lambda strategy, _: iter(strategy.experimental_distribute_dataset(dataset)).state())

    def rest(strategy: Any, _: int) -> Any:
        return taken(strategy.experimental_distribute_dataset(dataset).restore(states), strategy, None)

    assert all(rows for (rows,) in on_workers([1], rest)[0])


@pytest.mark.parametrize("jobs", [[(2, 1), (3, 2)], [(1, 2), (2, 2)], [(2, 2), (1, 2)], [(2, 1), (2, 1), (1, 1)]])
@pytest.mark.parametrize("policy, tail", [("DATA", "partial"), ("DATA", "drop"), ("OFF", "partial")])
@pytest.mark.parametrize("kind", ["order", "kept"])
def test_the_pass_after_a_restart_is_the_next_one(
    kind: str, policy: str, tail: str, jobs: list[tuple[int, int]]
) -> None:
    """Its order is that of its number, or the one that a cache keeps, also where a state has seeds that steps drew."""
    options = di.data.Options()
    options.experimental_distribute.auto_shard_policy = AutoShardPolicy[policy]

    def make() -> Any:
        if kind == "order":
            return di.data.Dataset.range(13).shuffle(13, seed=1).batch(8).with_options(options)
        numbers = di.data.Dataset.range(4).interleave(lambda x: di.data.Dataset.range(3 * x, 3 * x + 3), cycle_length=2)
        return numbers.shuffle(12, seed=1).cache().batch(8).with_options(options)

    check_elastic(make, jobs, [1, 0], tail=tail)
