# SPDX-License-Identifier: Apache-2.0
"""Workers that read only their own rows of each global batch do what workers do that go through all batches."""

import itertools
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import distinput as di
from distinput.distribute import InputOptions
from distinput.distribute.input.sources import CutBatches, OwnBatches, OwnPiecesSource
from distinput.errors import AbortedError
from tests.depth import cases
from tests.distribute.workers import by_step, on_workers, rows_of, with_policy
from tests.sharding.counting import bytes_read, put

Dataset = di.data.Dataset
DATA = di.data.experimental.AutoShardPolicy.DATA


@contextmanager
def through_all_batches() -> Iterator[None]:
    """Nothing is pushed into the sources."""
    usual = OwnBatches.__dict__["of"]
    OwnBatches.of = staticmethod(lambda *_: None)  # type: ignore[method-assign]
    try:
        yield
    finally:
        OwnBatches.of = usual  # type: ignore[method-assign]


def own(strategy: Any, dataset: Any, options: Any = None) -> Any:
    """Distributed so that only own rows are read, which is asserted."""
    distributed = strategy.experimental_distribute_dataset(dataset, options)
    alone = strategy.num_replicas_in_sync == strategy._replicas.count
    assert isinstance(distributed._source, OwnPiecesSource) or alone or distributed.cardinality == 0
    return distributed


ROWS = {
    "map": lambda ds, k: ds.map(lambda x: x * 2),
    "shuffle": lambda ds, k: ds.shuffle(k + 1, seed=k),
    "seedless": lambda ds, k: ds.shuffle(k + 1),
    "once": lambda ds, k: ds.shuffle(k + 1, reshuffle_each_iteration=False),
    "global": lambda ds, k: ds.global_shuffle(seed=k),
    "seedless global": lambda ds, k: ds.global_shuffle(),
    "skip": lambda ds, k: ds.skip(k),
    "repeat": lambda ds, k: ds.repeat(k % 3),
}
BATCHES = {
    "repeat": lambda ds, k: ds.repeat(k % 3),
    "take": lambda ds, k: ds.take(k),
    "skip": lambda ds, k: ds.skip(k % 3),
    "prefetch": lambda ds, k: ds.prefetch(2),
}
Steps = list[tuple[str, int]]
rows_steps = st.lists(st.tuples(st.sampled_from(sorted(ROWS)), st.integers(0, 7)), max_size=3)
batch_steps = st.lists(st.tuples(st.sampled_from(sorted(BATCHES)), st.integers(0, 5)), max_size=2)


def pipeline(n: int, before: Steps, batch: int, drop: bool, after: Steps) -> Any:
    dataset = Dataset.range(n)
    for name, k in before:
        dataset = ROWS[name](dataset, k)
    dataset = dataset.batch(batch, drop)
    for name, k in after:
        dataset = BATCHES[name](dataset, k)
    return with_policy(dataset, DATA)


@given(
    st.integers(0, 30), rows_steps, st.integers(1, 9), st.booleans(), batch_steps,
    st.integers(2, 4), st.integers(1, 3), st.booleans(), st.integers(0, 9), st.integers(1, 4), st.integers(1, 2), st.booleans(),
)  # fmt: skip
@settings(max_examples=cases(20, 1000))
def test_steps_and_states_are_those_of_going_through_all_batches(
    n: int, before: Steps, batch: int, drop: bool, after: Steps,
    workers: int, replicas: int, balanced: bool, at: int, others: int, more: int, back: bool,
) -> None:  # fmt: skip
    """Law 10 between both ways: stopped by one of them, gone on by the other, on other workers."""
    options = InputOptions(balanced_split=balanced)
    state, rests = "", []

    def dataset() -> Any:
        return pipeline(n, before, batch, drop, after)

    def begin(strategy: Any, worker: int) -> Any:
        make = strategy.experimental_distribute_dataset if back else (lambda *given: own(strategy, *given))
        with iter(make(dataset(), options)) as iterator:
            steps = []
            for _ in range(at):
                step = next(iterator, None)
                if step is None:
                    break
                steps.append(step)
            return rows_of(strategy, steps), json.dumps(iterator.state())

    def go_on(strategy: Any, worker: int) -> Any:
        distributed = strategy.experimental_distribute_dataset(dataset(), options)
        with distributed.restore(json.loads(state)) as iterator:
            steps = list(itertools.islice(iterator, 2))
            again = json.dumps(iterator.state())
        return rows_of(strategy, steps) + rows_of(strategy, distributed.restore(json.loads(again)))

    def first_ones() -> list[Any]:
        return on_workers([replicas] * workers, begin)

    if back:
        with through_all_batches():
            results = first_ones()
    else:
        results = first_ones()
    first = by_step([result if isinstance(result, Exception) else result[0] for result in results])
    # A place can be told in several ways: a worker that was held up sends what it has, a shorter block.
    for state in {result[1] for result in results}:  # noqa: B007
        rest = by_step(on_workers([more] * others, go_on))
        rests.append(rest)
    assert all(other == rests[0] for other in rests), "the states of all workers tell one place"
    with through_all_batches():
        assert by_step(on_workers([more] * others, go_on)) == rest
        alone = by_step(on_workers([1], go_on))
    assert [sorted(x for part in step for x in part) for step in rest] == [
        sorted(x for part in step for x in part) for step in alone
    ]
    if not any(name in ("seedless", "once", "seedless global") for name, _ in before):
        whole = [sorted(b.tolist()) for b in dataset()]
        assert [sorted(x for part in step for x in part) for step in first + rest] == whole


def test_each_cut_gives_the_replicas_the_same_rows_either_way() -> None:
    for balanced in (False, True):

        def body(strategy: Any, worker: int, balanced: bool = balanced) -> Any:
            dataset = with_policy(Dataset.range(23).shuffle(5, seed=1).batch(7), DATA)
            return rows_of(
                strategy, strategy.experimental_distribute_dataset(dataset, InputOptions(balanced_split=balanced))
            )

        pushed = on_workers([2, 2], body)
        with through_all_batches():
            assert on_workers([2, 2], body) == pushed


def test_eight_workers_read_every_record_once() -> None:
    n = 20_000
    paths = [put(f"own-batches-{i}.bin", np.arange(i * n, (i + 1) * n).tobytes()) for i in range(2)]

    def body(strategy: Any, worker: int) -> Any:
        dataset = with_policy(di.data.FixedLengthRecordDataset(paths, 8).batch(800), DATA)
        distributed = own(strategy, dataset)
        assert distributed.num_steps == 50
        assert "only this worker's rows" in distributed.explain()
        return sum(len(part) for step in distributed for part in strategy.experimental_local_results(step))

    bytes_read()
    assert on_workers([1] * 8, body) == [5000] * 8
    assert bytes_read() <= 1.05 * 2 * n * 8
    with through_all_batches():
        results = on_workers([1] * 8, body)
    assert all(isinstance(result, AssertionError) for result in results), "this test can fail"


def test_a_batch_smaller_than_the_number_of_replicas_leaves_some_without_rows_for_ever() -> None:
    def body(strategy: Any, worker: int) -> Any:
        dataset = with_policy(Dataset.range(2).repeat().batch(2), DATA)
        with iter(own(strategy, dataset)) as iterator:
            return rows_of(strategy, [next(iterator) for _ in range(5)])

    assert by_step(on_workers([1, 1, 1], body)) == [[[0], [1], []]] * 5


def test_a_failure_of_one_worker_ends_the_others_with_its_reason() -> None:
    def poison(x: Any) -> Any:
        if x == 13:
            raise KeyError("poison")
        return x

    def body(strategy: Any, worker: int) -> Any:
        dataset = with_policy(Dataset.range(40).map(poison, output_signature=di.TensorSpec([], "int64")).batch(8), DATA)
        return [int(strategy.reduce("SUM", step, axis=0)) for step in own(strategy, dataset)]

    zero, one = on_workers([1, 1], body)
    assert isinstance(one, KeyError)
    assert isinstance(zero, AbortedError)
    assert "the input of worker 1 failed in step 1" in str(zero)
    assert "poison" in str(zero)


def test_own_rows_are_read_by_all_workers_or_by_none() -> None:
    usual = OwnBatches.__dict__["of"]
    worker_of = {}

    def sometimes(*given: Any) -> Any:
        return None if worker_of[threading.get_ident()] == 1 else usual.__func__(*given)

    def body(strategy: Any, worker: int) -> Any:
        worker_of[threading.get_ident()] = worker
        distributed = strategy.experimental_distribute_dataset(with_policy(Dataset.range(20).batch(4), DATA))
        assert isinstance(distributed._source, CutBatches)
        return rows_of(strategy, distributed)

    OwnBatches.of = staticmethod(sometimes)  # type: ignore[method-assign]
    try:
        steps = by_step(on_workers([1, 1, 1], body))
    finally:
        OwnBatches.of = usual  # type: ignore[method-assign]
    assert [sorted(x for part in step for x in part) for step in steps] == [
        list(range(i, i + 4)) for i in range(0, 20, 4)
    ]


def test_a_failure_in_a_pipeline_without_end_ends_the_others_too() -> None:
    paths = [put(f"endless-{i}.bin", bytes([i] * 4)) for i in range(2)]

    def poison(x: Any) -> Any:
        if x == b"\x01":
            raise KeyError("poison")
        return np.int64(x[0])

    def body(strategy: Any, worker: int) -> Any:
        records = di.data.FixedLengthRecordDataset(paths, 1).map(poison, output_signature=di.TensorSpec([], "int64"))
        endless = with_policy(records.repeat().batch(4), di.data.experimental.AutoShardPolicy.FILE)
        return [int(strategy.reduce("SUM", step, axis=0)) for step in strategy.experimental_distribute_dataset(endless)]

    zero, one = on_workers([1, 1], body)
    assert isinstance(one, KeyError)
    assert isinstance(zero, AbortedError)
    assert "the input of worker 1 failed in step 0" in str(zero)
