# SPDX-License-Identifier: Apache-2.0
"""A ledger locates the records of steps that look at elements: held to ids that the records carry."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import distinput as di
from tests.depth import cases
from tests.distribute.workers import on_workers, with_policy
from tests.lineage.carried import CUTS, KINDS, SIZES, Corpus, corpus, ids, told

FIXED: dict[str, Any] = {"suppress_health_check": [HealthCheck.function_scoped_fixture]}
Steps = Callable[[Any], Any]

LOOKING: dict[str, Steps] = {
    "filter": lambda ds: ds.filter(lambda x: x % 3 > 0),
    "filters": lambda ds: ds.filter(lambda x: x % 3 > 0).map(lambda x: x + 0).filter(lambda x: x % 2 > 0),
    "take_while": lambda ds: ds.take_while(lambda x: x < 2007),
    "filter of tuples": lambda ds: ds.map(lambda x: (x, x)).filter(lambda x, y: (x + y) % 3 > 0).map(lambda x, y: x),
    "filter of batches": lambda ds: ds.batch(3).filter(lambda x: x.sum() % 2 == 0).unbatch(),
    "enumerate": lambda ds: ds.enumerate().filter(lambda i, x: i % 3 > 0).map(lambda i, x: x),
    "filter of columns": lambda ds: ds.map(lambda x: {"x": x}).filter(pc.field("x") > 3).map(lambda row: row["x"]),
}
OTHERS: dict[str, Steps] = {
    "nothing": lambda ds: ds,
    "shuffle": lambda ds: ds.shuffle(5, seed=3),
    "own seed": lambda ds: ds.shuffle(4),
    "take": lambda ds: ds.skip(1).take(15),
    "repeat": lambda ds: ds.repeat(2),
    "prefetch": lambda ds: ds.prefetch(2),
    "shard": lambda ds: ds.shard(2, 1),
    "rebatch": lambda ds: ds.batch(4).rebatch(3).unbatch(),
}


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda file: None)


def mirrored(count: int) -> di.distribute.MirroredStrategy:
    return di.distribute.MirroredStrategy([f"CPU:{i}" for i in range(count)])


def located(folder: Path, dataset_of: Callable[[], Any], strategy: Any, passes: int = 2) -> None:
    """All steps of a ledger, which must be those that were delivered."""
    steps = []
    with di.train.Ledger(folder) as ledger:
        dataset = dataset_of()
        for _ in range(passes):
            steps += [ids(strategy.experimental_local_results(step)) for step in ledger.follow(iter(dataset))]
    again = dataset_of()
    assert [told(one) for one in di.train.Ledger(folder).seen(again)] == steps


@settings(max_examples=cases(8, 500), **FIXED)
@given(
    st.builds(corpus, st.sampled_from(KINDS), st.sampled_from(SIZES)), st.sampled_from(sorted(OTHERS)),
    st.sampled_from(sorted(LOOKING)), st.sampled_from(sorted(OTHERS)), st.integers(1, 4), st.integers(1, 3), CUTS,
)  # fmt: skip
def test_the_records_of_steps_that_look_at_elements(
    tmp_path_factory: pytest.TempPathFactory,
    found: Corpus,
    before: str,
    look: str,
    after: str,
    size: int,
    r: int,
    options: Any,
) -> None:
    assume("own seed" not in (before, after) or "shard" not in (before, after))  # which is warned of
    strategy = mirrored(r)

    def dataset_of() -> Any:
        ds = OTHERS[after](LOOKING[look](OTHERS[before](found.dataset())))
        return strategy.experimental_distribute_dataset(ds.batch(size), options)

    located(tmp_path_factory.mktemp("kept"), dataset_of, strategy)


def test_a_step_of_a_restored_job_is_located_behind_steps_that_were_left_out(tmp_path: Path) -> None:
    strategy = mirrored(2)
    found = corpus("npz", (9, 0, 4))

    def dataset_of() -> Any:
        ds = found.dataset().global_shuffle(seed=4).filter(lambda x: x % 4 > 0).batch(2)
        return strategy.experimental_distribute_dataset(ds)

    dataset = dataset_of()
    steps = [ids(strategy.experimental_local_results(step)) for step in dataset]
    again = dataset_of()
    with di.train.Ledger(tmp_path) as ledger, iter(again) as iterator:
        first = next(iter(ledger.follow(iterator)))
        state = iterator.state()
    with di.train.Ledger(tmp_path) as ledger:
        rest = list(ledger.follow(again.restore(state, skip=range(1, 3))))
    assert [ids(strategy.experimental_local_results(step)) for step in [first, *rest]] == [steps[0], *steps[3:]]
    ledger = di.train.Ledger(tmp_path)
    assert [told(one) for one in ledger.seen(dataset_of())] == [steps[0], *steps[3:]]
    half = [told(ledger.locate(dataset_of(), 0, replica)) for replica in range(2)]
    assert half[0] + half[1] == steps[0]
    with pytest.raises(IndexError, match="there are 2 replicas"):
        ledger.locate(dataset_of(), 0, 2)


def test_elements_dealt_and_sources_in_memory(tmp_path: Path) -> None:
    strategy = mirrored(2)

    def dataset_of() -> Any:
        return strategy.distribute_datasets_from_function(
            lambda context: di.data.Dataset.range(9).shuffle(4).filter(lambda x: x % 3 > 0)
        )

    with di.train.Ledger(tmp_path) as ledger:
        steps = [ids(strategy.experimental_local_results(step)) for step in ledger.follow(iter(dataset_of()))]
    seen = list(di.train.Ledger(tmp_path).seen(dataset_of()))
    assert [[place.record for place in one] for one in seen] == steps
    assert {place.file for one in seen for place in one} == {"<range>"}


def test_a_function_is_called_for_no_element_behind_the_step(tmp_path: Path) -> None:
    strategy = mirrored(1)

    def fits(x: Any) -> bool:
        if x == 6:
            raise ValueError("a record that the job failed on")
        return bool(x % 2 == 0)

    def dataset_of() -> Any:
        return strategy.experimental_distribute_dataset(di.data.Dataset.range(99).filter(fits).batch(2))

    with di.train.Ledger(tmp_path) as ledger, iter(dataset_of()) as iterator:
        assert ids([next(iter(ledger.follow(iterator)))]) == [0, 2]
    assert [place.record for place in di.train.Ledger(tmp_path).locate(dataset_of(), 0)] == [0, 2]


def test_a_worker_with_files_of_its_own_knows_its_own_replicas(tmp_path: Path) -> None:
    found = corpus("parquet", (7, 3, 12))

    def body(strategy: Any, worker: int) -> Any:
        ds = with_policy(
            found.dataset().filter(lambda x: x % 4 > 0).batch(4), di.data.experimental.AutoShardPolicy.FILE
        )
        dataset = strategy.experimental_distribute_dataset(ds)
        with di.train.Ledger(tmp_path) as ledger:
            steps = [ids(strategy.experimental_local_results(step)) for step in ledger.follow(iter(dataset))]
        ledger = di.train.Ledger(tmp_path)
        with pytest.raises(
            di.errors.UnimplementedError, match=rf"its own replicas, {worker} to {worker}; pass replica="
        ):
            ledger.locate(dataset, 0)
        return steps, [told(ledger.locate(dataset, number, worker)) for number in range(len(steps))]

    for result in on_workers([1, 1], body):
        assert not isinstance(result, Exception), result
        assert result[0] == result[1]


@pytest.mark.parametrize(
    "steps, why",
    [
        (lambda ds: ds.flat_map(lambda x: di.data.Dataset.range(x % 3)), "flat_map.*depends on what they hold"),
        (lambda ds: ds.cache().filter(lambda x: x > 3), "cache.*does not tell where it came from"),
    ],
)
def test_what_cannot_be_followed_is_refused_with_the_cure(tmp_path: Path, steps: Steps, why: str) -> None:
    strategy = mirrored(1)
    dataset = strategy.experimental_distribute_dataset(steps(di.data.Dataset.range(9)).batch(2))
    with di.train.Ledger(tmp_path) as ledger:
        delivered = list(ledger.follow(iter(dataset)))
    ledger = di.train.Ledger(tmp_path)
    with pytest.raises(di.errors.UnimplementedError, match=f"{why}.*; Ledger.replay gives the step itself"):
        ledger.locate(dataset, 0)
    np.testing.assert_array_equal(ledger.replay(dataset, 0), delivered[0])


def test_parts_of_files_that_a_condition_rules_out_are_no_places(tmp_path: Path) -> None:
    found, strategy = corpus("parquet", (7, 3, 12)), mirrored(1)

    def dataset_of() -> Any:
        ds = di.data.ParquetDataset(list(found.files)).filter(pc.field("id") > 1002).map(lambda row: row["id"])
        return strategy.experimental_distribute_dataset(ds.batch(2))

    with di.train.Ledger(tmp_path) as ledger:
        assert list(ledger.follow(iter(dataset_of())))
    with pytest.raises(di.errors.UnimplementedError, match="a condition rules out are passed over uncounted"):
        di.train.Ledger(tmp_path).locate(dataset_of(), 0)
