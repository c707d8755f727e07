# SPDX-License-Identifier: Apache-2.0
"""Records that are left out take their whole steps with them, on all workers, and change no other step."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import distinput as di
from distinput.lineage import Records
from tests.depth import cases
from tests.distribute.workers import by_step, on_workers, rows_of, with_policy
from tests.lineage.carried import Corpus, corpus, ids, pipelines, records_of

Policy = di.data.experimental.AutoShardPolicy


def mirrored(count: int) -> di.distribute.MirroredStrategy:
    return di.distribute.MirroredStrategy([f"CPU:{i}" for i in range(count)])


@settings(max_examples=cases(5, 300))
@given(pipelines(), st.integers(1, 3), st.integers(0, 1), st.data())
def test_the_steps_with_a_record_are_left_out(drawn: tuple[Corpus, Any], r: int, epoch: int, data: Any) -> None:
    found, make = drawn
    strategy = mirrored(r)
    dataset = strategy.experimental_distribute_dataset(make())
    for _ in range(epoch):
        list(dataset)
    file, record = data.draw(st.sampled_from(records_of(found)))
    with iter(dataset) as iterator:
        state = iterator.state()
        steps = [ids(strategy.experimental_local_results(step)) for step in iterator]
    try:
        rest = dataset.restore(state, skip=Records(file, record, read=found.read))
    except ValueError as error:  # of a mixture
        assert "not known beforehand; give ranges of steps" in str(error)  # noqa: PT017
        return
    number = found.files.index(file) * 1000 + record
    assert [ids(strategy.experimental_local_results(step)) for step in rest] == [s for s in steps if number not in s]


@pytest.mark.parametrize("policy", ["FILE", "DATA"])
def test_all_workers_leave_out_the_same_steps(policy: str) -> None:
    found = corpus("parquet", (7, 3, 12))
    bad = [Records(found.files[2], range(3, 5)), range(2, 3)]

    def body(strategy: Any, worker: int) -> Any:
        dataset = strategy.experimental_distribute_dataset(with_policy(found.dataset().batch(4), Policy[policy]))
        every = rows_of(strategy, dataset)
        return [every, rows_of(strategy, dataset.restore(iter(dataset).state(), skip=bad))]

    results = on_workers([1, 1], body)
    every, left = (by_step([result[i] for result in results]) for i in range(2))
    assert left == [
        step
        for number, step in enumerate(every)
        if number != 2 and not {2003, 2004} & {x for part in step for x in part}
    ]
    assert len(left) < len(every) - 1


def test_what_is_left_out_must_be_known() -> None:
    found = corpus("parquet", (7, 3, 12))
    dataset = mirrored(2).experimental_distribute_dataset(found.dataset().batch(4))
    state = iter(dataset).state()
    with pytest.raises(ValueError, match=r"skip: Records\(file='other'.*none of the 3 files"):
        dataset.restore(state, skip=Records("other", 3))
    with pytest.raises(ValueError, match=r"n-1.parquet has no record 3"):
        dataset.restore(state, skip=Records(found.files[1], range(2, 5)))
    with pytest.raises(ValueError, match=r"skip: expected ranges of steps.*or lineage.Records, got 3"):
        dataset.restore(state, skip=[3])  # type: ignore[list-item]
    thinned = mirrored(2).experimental_distribute_dataset(found.dataset().filter(lambda x: x > 3).batch(4))
    with pytest.raises(di.errors.UnimplementedError, match=r"skip: Records.*give the ranges of steps instead.*filter"):
        thinned.restore(iter(thinned).state(), skip=Records(found.files[1], 1))


def test_workers_with_datasets_of_their_own_are_told_to_give_steps() -> None:
    def body(strategy: Any, worker: int) -> Any:
        dataset = strategy.distribute_datasets_from_function(lambda context: di.data.Dataset.range(9))
        with pytest.raises(di.errors.UnimplementedError, match=r"only their own dataset_fn makes.*ranges of steps"):
            dataset.restore(iter(dataset).state(), skip=Records("<range>", 1))

    assert on_workers([1, 1], body) == [None, None]
