# SPDX-License-Identifier: Apache-2.0
"""`MultiWorkerMirroredStrategy` on the in-process engine: exactly once, in step, the same everywhere, elastic."""

import itertools
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import distinput as di
from distinput.distribute import InputOptions
from distinput.errors import AbortedError, InvalidArgumentError, StateError
from tests.distribute.workers import by_step, on_workers, rows_of, with_policy
from tests.sharding.counting import put

Dataset = di.data.Dataset
POLICY = di.data.experimental.AutoShardPolicy


@given(st.integers(0, 60), st.integers(1, 9), st.integers(1, 4), st.integers(1, 3))
def test_under_data_every_row_is_delivered_once_in_the_steps_of_the_global_batches(
    n: int, batch: int, workers: int, replicas: int
) -> None:
    def body(strategy: Any, worker: int) -> Any:
        return rows_of(strategy, strategy.experimental_distribute_dataset(Dataset.range(n).batch(batch)))

    steps = by_step(on_workers([replicas] * workers, body))
    assert [sorted(x for part in step for x in part) for step in steps] == [
        list(range(i, min(i + batch, n))) for i in range(0, n, batch)
    ]


@given(st.integers(0, 40), st.integers(1, 9), st.lists(st.integers(1, 3), min_size=1, max_size=4))
def test_a_balanced_split_serves_workers_of_different_sizes(n: int, batch: int, replicas: list[int]) -> None:
    def body(strategy: Any, worker: int) -> Any:
        dataset = Dataset.range(n).batch(batch)
        return rows_of(strategy, strategy.experimental_distribute_dataset(dataset, InputOptions(balanced_split=True)))

    steps = by_step(on_workers(replicas, body))
    if sum(replicas) > 1:
        for step in steps:
            assert max(map(len, step)) - min(map(len, step)) <= 1
    assert [[x for part in step for x in part] for step in steps] == [
        list(range(i, min(i + batch, n))) for i in range(0, n, batch)
    ]


@given(
    st.integers(0, 40),
    st.integers(1, 8),
    st.integers(1, 5),
    st.integers(1, 2),
    st.integers(1, 5),
    st.integers(1, 2),
    st.booleans(),
    st.data(),
)
@settings(max_examples=40)
def test_a_state_goes_on_on_other_workers(
    n: int, batch: int, workers: int, replicas: int, others: int, more: int, balanced: bool, data: st.DataObject
) -> None:
    """Law 10: stopped at any step on (w, r), gone on on (w', r'): the batches of an uninterrupted run."""
    options = InputOptions(balanced_split=balanced)
    at = data.draw(st.integers(0, -(-n // batch)))

    def dataset() -> Any:
        return Dataset.range(n).shuffle(7, seed=3).map(lambda x: x * 2).batch(batch)

    def begin(strategy: Any, worker: int) -> Any:
        with iter(strategy.experimental_distribute_dataset(dataset(), options)) as iterator:
            steps = [next(iterator) for _ in range(at)]
            return rows_of(strategy, steps), json.dumps(iterator.state())

    def go_on(strategy: Any, worker: int) -> Any:
        distributed = strategy.experimental_distribute_dataset(dataset(), options)
        return rows_of(strategy, distributed.restore(json.loads(states.pop())))

    first = on_workers([replicas] * workers, begin)
    steps = by_step([result if isinstance(result, Exception) else result[0] for result in first])
    saved = {result[1] for result in first}
    assert len(saved) == 1, "the state is the same on every worker"
    states = list(saved) * others
    steps += by_step(on_workers([more] * others, go_on))
    assert [sorted(x for part in step for x in part) for step in steps] == [sorted(b.tolist()) for b in dataset()]


@pytest.mark.parametrize("balanced", [False, True])
def test_a_state_of_workers_goes_on_on_one_replica_without_any_others_and_back(balanced: bool) -> None:
    options = InputOptions(balanced_split=balanced)
    alone = di.distribute.MirroredStrategy(["CPU:0"])

    def whole() -> Any:
        return Dataset.range(23).shuffle(5, seed=1).filter(lambda x: x != 3).batch(4)

    def take(strategy: Any, state: Any, steps: int) -> Any:
        distributed = strategy.experimental_distribute_dataset(whole(), options)
        with iter(distributed) if state is None else distributed.restore(json.loads(state)) as iterator:
            return rows_of(strategy, itertools.islice(iterator, steps)), json.dumps(iterator.state())

    first, state = take(alone, None, 2)
    results = on_workers([1, 1], lambda strategy, worker: take(strategy, state, 2))
    middle = by_step([result if isinstance(result, Exception) else result[0] for result in results])
    last, _ = take(alone, results[0][1], 9)
    steps = [*first, *middle, *last]
    assert [sorted(x for part in step for x in part) for step in steps] == [sorted(b.tolist()) for b in whole()]


@pytest.mark.parametrize("policy", [POLICY.OFF, POLICY.FILE])
def test_one_state_of_workers_with_their_own_inputs_is_not_enough_for_others(policy: Any, tmp_path: Any) -> None:
    for i in range(4):
        (tmp_path / f"{i}.txt").write_text("a\nb\n")

    def body(strategy: Any, worker: int) -> Any:
        dataset = with_policy(
            Dataset.list_files(f"{tmp_path}/*.txt", shuffle=False).interleave(di.data.TextLineDataset), policy
        )
        distributed = strategy.experimental_distribute_dataset(dataset.batch(2))
        if strategy.num_replicas_in_sync == 2:
            with iter(distributed) as iterator:
                next(iterator)
                return iterator.state()
        distributed.restore(states[0])
        return None

    states = on_workers([1, 1], body)
    for error in on_workers([1, 1, 1], body):
        assert isinstance(error, StateError)
        assert "give restore a list of the states of all workers" in str(error)


def test_workers_that_have_run_out_get_empty_batches_until_all_have() -> None:
    def body(strategy: Any, worker: int) -> Any:
        def dataset_fn(context: Any) -> Any:
            return Dataset.range(3 if worker == 0 else 9).map(lambda x: (x, np.stack([x, x]))).batch(2)

        steps = list(strategy.distribute_datasets_from_function(dataset_fn))
        totals = [float(strategy.reduce("MEAN", step[0], axis=0)) for step in steps]
        shapes = [[part.shape for part in strategy.experimental_local_results(step[1])] for step in steps]
        return totals, shapes

    (totals, shapes), (others, _) = on_workers([1, 1], body)
    assert totals == others == [0.5, (2 + 2 + 3) / 3, 4.5, 6.5, 8.0]
    assert shapes == [[(2, 2)], [(1, 2)], [(0, 2)], [(0, 2)], [(0, 2)]]


def test_an_error_of_one_worker_is_raised_on_all_in_the_same_step() -> None:
    def poison(x: Any) -> Any:
        if x == 5:
            raise KeyError("poison")
        return x

    def body(strategy: Any, worker: int) -> Any:
        def dataset_fn(context: Any) -> Any:
            return Dataset.range(20).map(poison if worker == 1 else lambda x: x).batch(2)

        steps = 0
        try:
            for _ in strategy.distribute_datasets_from_function(dataset_fn):
                steps += 1
        except Exception as error:  # noqa: BLE001 - the test looks at what was raised
            assert strategy.reduce("SUM", np.float32(worker), axis=None) == 3, "the group still works"
            return steps, error
        return steps, None

    results = on_workers([1, 1, 1], body)
    assert [steps for steps, _ in results] == [2, 2, 2]
    assert isinstance(results[1][1], KeyError)
    for worker in (0, 2):
        assert isinstance(results[worker][1], AbortedError)
        assert "worker 1 of 3" in str(results[worker][1])
        assert "poison" in str(results[worker][1])


def test_an_iterator_that_is_closed_when_the_workers_lost_one_another_does_not_hide_the_reason() -> None:
    def body(strategy: Any, worker: int) -> Any:
        with iter(strategy.experimental_distribute_dataset(Dataset.range(99).filter(lambda x: True).batch(2))) as steps:
            next(steps)
            if worker == 1:
                strategy._replicas.peers.group.abort("enough")
            raise KeyError(worker)

    assert [repr(error) for error in on_workers([1, 1], body)] == ["KeyError(0)", "KeyError(1)"]


def test_a_shape_error_fails_that_call_alone_and_on_all_workers() -> None:
    def body(strategy: Any, worker: int) -> Any:
        with pytest.raises(InvalidArgumentError, match="same size and shape"):
            strategy.reduce("SUM", np.ones(2 + worker), axis=None)
        with pytest.raises(InvalidArgumentError, match="Shape mismatch"):
            strategy.gather(np.ones((1, 2 + worker)), axis=0)
        return strategy.reduce("SUM", np.ones(2), axis=None).tolist()

    assert on_workers([1, 1, 1], body) == [[3.0, 3.0]] * 3


def test_large_arrays_are_added_by_the_engine() -> None:
    def body(strategy: Any, worker: int) -> Any:
        value = di.distribute.PerReplica([np.full(100_000, worker + 1.0), np.full(100_000, 10.0)])
        total, mean = strategy.reduce("SUM", value, axis=None), strategy.reduce("MEAN", value, axis=None)
        with pytest.raises(InvalidArgumentError, match="on replica 2"):
            strategy.reduce("SUM", di.distribute.PerReplica([np.ones(100_000 + worker)] * 2), axis=None)
        return float(total[7]), float(mean[7])

    assert on_workers([2, 2], body) == [(23.0, 5.75)] * 2


@given(st.lists(st.floats(-1e30, 1e30), min_size=1, max_size=30), st.data())
def test_a_deterministic_reduction_has_the_same_bits_on_any_number_of_workers(
    values: list[float], data: st.DataObject
) -> None:
    whole = np.asarray(values, np.float32)
    seen = set()
    for workers in (1, 2, 3, 5):
        cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), min_size=workers - 1, max_size=workers - 1)))
        parts = np.split(whole, cuts)

        def body(strategy: Any, worker: int, parts: Any = parts) -> Any:
            mean = strategy.reduce("MEAN", di.distribute.PerReplica([parts[worker]]), axis=0, deterministic=True)
            return mean.tobytes()

        results = on_workers([1] * workers, body)
        assert all(isinstance(result, bytes) for result in results), results
        seen |= set(results)
    assert len(seen) == 1


def test_a_deterministic_reduction_of_integers_is_exact_across_workers() -> None:
    parts = [np.array([2**53, 1]), np.array([2**53 + 1])]

    def body(strategy: Any, worker: int) -> Any:
        value = di.distribute.PerReplica([parts[worker]])
        total = strategy.reduce("SUM", value, axis=0, deterministic=True)
        mean = strategy.reduce("MEAN", {"x": value}, axis=0, deterministic=True)["x"]
        each = strategy.reduce("MEAN", di.distribute.PerReplica([np.int64(worker)]), axis=None, deterministic=True)
        mixed = np.ones(1) if worker else np.ones(1, np.int64)
        with pytest.raises(InvalidArgumentError, match="same dtype"):
            strategy.reduce("SUM", di.distribute.PerReplica([mixed]), axis=0, deterministic=True)
        return int(total), float(mean), float(each)

    assert on_workers([1, 1], body) == [(2**54 + 2, (2**54 + 2) / 3, 0.5)] * 2


def test_replica_context_across_workers() -> None:
    def body(strategy: Any, worker: int) -> Any:
        def step() -> Any:
            context = di.distribute.get_replica_context()
            number = np.int64(context.replica_id_in_sync_group)
            return context.all_reduce("SUM", number), context.all_gather(np.full(int(number), number), axis=0)

        total, gathered = strategy.run(step)
        return [int(x) for x in strategy.experimental_local_results(total)], [
            x.tolist() for x in strategy.experimental_local_results(gathered)
        ]

    assert on_workers([2, 1], body) == [([3, 3], [[1, 2, 2]] * 2), ([3], [[1, 2, 2]])]


@pytest.mark.parametrize("balanced", [False, True])
def test_a_shuffle_without_a_seed_is_the_same_on_all_workers(balanced: bool) -> None:
    def body(strategy: Any, worker: int) -> Any:
        dataset = Dataset.range(30).shuffle(30).batch(4)
        distributed = strategy.experimental_distribute_dataset(dataset, InputOptions(balanced_split=balanced))
        return [rows_of(strategy, distributed) for _ in range(2)]

    results = on_workers([1, 2, 1] if balanced else [1, 1, 1], body)
    first, second = (by_step([result[epoch] for result in results]) for epoch in range(2))
    assert sorted(x for step in first for part in step for x in part) == list(range(30))
    assert sorted(x for step in second for part in step for x in part) == list(range(30))
    assert first != second, "a new order in each pass"


@given(st.lists(st.integers(0, 9), min_size=3, max_size=5), st.integers(1, 6), st.integers(1, 2), st.data())
@settings(max_examples=30)
def test_workers_with_counted_files_of_their_own_know_their_steps_and_do_not_speak(
    counts: list[int], batch: int, replicas: int, data: st.DataObject
) -> None:
    """Every record once, equal steps, and exactly the rest from any step, without a single agreement."""
    paths = [put(f"counted-{i}.bin", bytes(range(16 * i, 16 * i + n))) for i, n in enumerate(counts)]
    workers = 3
    speaks = batch < workers * replicas  # steps in which nobody has a row must be found out together
    at = data.draw(st.integers(0, 5))

    def body(strategy: Any, worker: int) -> Any:
        dataset = with_policy(di.data.FixedLengthRecordDataset(paths, 1).batch(batch), POLICY.FILE)
        distributed = strategy.experimental_distribute_dataset(dataset)
        assert distributed._source.agrees == speaks
        steps = rows_of(strategy, distributed)
        assert distributed.num_steps == (-2 if speaks else len(steps))
        with iter(distributed) as iterator:
            for _ in itertools.islice(iterator, at):
                pass
            state = json.loads(json.dumps(iterator.state()))
        assert rows_of(strategy, distributed.restore(state)) == steps[at:]
        return steps

    steps = by_step(on_workers([replicas] * workers, body))
    assert sorted(x[0] for step in steps for part in step for x in part) == [
        16 * i + k for i, n in enumerate(counts) for k in range(n)
    ]


def test_means_of_bfloat16_have_their_dtype() -> None:
    bfloat16 = np.dtype(pytest.importorskip("ml_dtypes").bfloat16)

    def body(strategy: Any, worker: int) -> list[Any]:
        small, large = (np.full(n, 1.5 + worker, bfloat16) for n in (3, 40_000))
        found = [strategy.reduce("MEAN", di.distribute.PerReplica([small]), axis=0)]
        found.append(strategy.reduce("MEAN", di.distribute.PerReplica([large]), axis=None)[0])
        return [(float(each), each.dtype == bfloat16) for each in found]

    assert on_workers([1, 1], body, timeout=60) == [[(2.0, True)] * 2] * 2


def test_elements_without_rows_are_refused_on_all_workers() -> None:
    def body(strategy: Any, worker: int) -> Any:
        scalars = di.data.Dataset.from_generator(
            lambda: iter((1.0, 2.0)), output_signature=di.TensorSpec(None, "float32")
        )
        return list(strategy.experimental_distribute_dataset(scalars))

    for found in on_workers([1, 1], body, timeout=60):
        assert isinstance(found, InvalidArgumentError)
        assert "at least one dimension to be cut" in str(found)


def test_a_state_after_an_error_of_the_input_is_before_it() -> None:
    def poisoned(x: int) -> int:
        if x == 3:
            raise ValueError("poison")
        return x

    def body(strategy: Any, worker: int) -> Any:
        dataset = di.data.Dataset.range(8).filter(lambda x: x >= 0).map(poisoned).batch(2)
        iterator = iter(strategy.experimental_distribute_dataset(dataset))
        next(iterator)
        with pytest.raises(ValueError, match="poison"):
            next(iterator)
        before = iterator.state()
        assert next(iterator, "no more") == "no more"
        assert iterator.state() == before
        return before["ended"], before["step"]

    assert on_workers([1, 1], body, timeout=60) == [(False, 1)] * 2


def test_text_of_several_workers_is_treated_as_that_of_one_process() -> None:
    """`as_text` delivers text of any width; it is gathered like other values, and there is no sum of it."""
    words = Dataset.from_tensor_slices(["a", "ba", "", "c" * 40, "e"]).as_text().batch(2)

    def body(strategy: Any, worker: int) -> Any:
        steps = list(strategy.experimental_distribute_dataset(words))
        for how in ({}, {"deterministic": True}):
            with pytest.raises(InvalidArgumentError, match="SUM needs numbers"):
                strategy.reduce("SUM", steps[0], axis=None, **how)
        inside = strategy.run(
            lambda rows: di.distribute.get_replica_context().all_gather(rows, axis=0), args=(steps[1],)
        )
        rows = [strategy.gather(step, axis=0) for step in steps]
        return [(each.dtype, each.tolist()) for each in (*rows, *strategy.experimental_local_results(inside)[:1])]

    for results in (on_workers([1, 1], body), [body(di.distribute.MirroredStrategy(["CPU:0", "CPU:1"]), 0)]):
        for result in results:
            assert [rows for _, rows in result] == [["a", "ba"], ["", "c" * 40], ["e"], ["", "c" * 40]]
            assert {dtype for dtype, _ in result} == {np.dtypes.StringDType()}
