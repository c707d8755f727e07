# SPDX-License-Identifier: Apache-2.0
"""A ledger of workers that read different data: each has a file of its own."""

import os
from pathlib import Path
from typing import Any

import pytest

import distinput as di
from tests.distribute.workers import on_workers, with_policy
from tests.lineage.carried import corpus, ids, told


@pytest.mark.parametrize("counted", [True, False])
def test_workers_with_files_of_their_own(tmp_path: Path, counted: bool) -> None:
    found = corpus("parquet", (7, 3, 12))

    def dataset_of(strategy: Any) -> Any:
        ds = found.dataset() if counted else found.dataset().filter(lambda x: x % 4 > 0)
        policy = di.data.experimental.AutoShardPolicy.FILE
        return strategy.experimental_distribute_dataset(with_policy(ds.batch(4), policy))

    def body(strategy: Any, worker: int) -> Any:
        dataset = dataset_of(strategy)
        with di.train.Ledger(tmp_path) as ledger, iter(dataset) as iterator:
            steps = [ids(strategy.experimental_local_results(step)) for step in ledger.follow(iterator)]
        again = dataset_of(strategy)
        replayed = [ids(strategy.experimental_local_results(ledger.replay(again, n))) for n in range(len(steps))]
        located = [told(one) for one in ledger.seen(again)] if counted else None
        return steps, replayed, located

    results = on_workers([2, 2], body)
    for result in results:
        assert not isinstance(result, Exception), result
    for steps, replayed, _ in results:
        assert replayed == steps
    if counted:
        whole = [a + b for a, b in zip(results[0][0], results[1][0], strict=True)]
        assert results[0][2] == results[1][2] == whole
    assert sorted(os.listdir(tmp_path)) == ["worker-0.ledger", "worker-1.ledger"]


def test_another_number_of_replicas_is_refused_where_states_depend_on_it(tmp_path: Path) -> None:
    def dataset_of(count: int) -> Any:
        strategy = di.distribute.MirroredStrategy([f"CPU:{i}" for i in range(count)])
        return strategy.distribute_datasets_from_function(lambda context: di.data.Dataset.range(9))

    with di.train.Ledger(tmp_path) as ledger, iter(dataset_of(3)) as iterator:
        assert len(list(ledger.follow(iterator))) == 3
    with pytest.raises(di.errors.StateError, match=r"replicas=3, .* this dataset has workers=1 and replicas=2"):
        ledger.replay(dataset_of(2), 0)
