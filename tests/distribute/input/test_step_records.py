# SPDX-License-Identifier: Apache-2.0
"""`locate` says which records are in a step: held to ids that the records carry, over real files."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import distinput as di
from distinput.lineage import Seen
from tests.depth import cases
from tests.distribute.workers import on_workers, with_policy
from tests.lineage.carried import CUTS, ID, Corpus, corpora, corpus, ids, pipelines, records_of, told

Policy = di.data.experimental.AutoShardPolicy


def mirrored(count: int) -> di.distribute.MirroredStrategy:
    return di.distribute.MirroredStrategy([f"CPU:{i}" for i in range(count)])


def parts_of(strategy: Any, step: Any) -> list[list[int]]:
    return [ids([part]) for part in strategy.experimental_local_results(step)]


@settings(max_examples=cases(15, 1000))
@given(pipelines(), st.integers(1, 4), CUTS, st.data())
def test_a_step_is_made_of_the_records_that_were_located(
    drawn: tuple[Corpus, Any], r: int, options: Any, data: Any
) -> None:
    found, make = drawn
    strategy = mirrored(r)
    dataset = strategy.experimental_distribute_dataset(make(), options)
    for epoch in range(2):
        steps = [parts_of(strategy, step) for step in dataset]
        for number, parts in enumerate(steps):
            assert told(dataset.locate(number, epoch=epoch, read=found.read)) == [x for part in parts for x in part]
            replica = data.draw(st.integers(0, r - 1))
            assert told(dataset.locate(number, replica, epoch=epoch, read=found.read)) == parts[replica]
        with pytest.raises(IndexError, match=f"no step {len(steps)}"):
            dataset.locate(len(steps), epoch=epoch, read=found.read)


@pytest.mark.parametrize("count", [2, 3])
def test_a_replica_without_rows_of_records_beside_each_other(count: int) -> None:
    found = corpus("text", (3,))
    both = di.data.Dataset.zip(found.dataset(), found.dataset()).batch(2)
    dataset = mirrored(count).experimental_distribute_dataset(both)
    for step, rows in enumerate(([0, 0, 1, 1], [2, 2])):
        assert told(dataset.locate(step, read=True)) == rows
        assert told(dataset.locate(step, count - 1, read=True)) == (rows[2:] if count == 2 else [])


@settings(max_examples=cases(12, 200))
@given(corpora, st.lists(st.integers(0, 30) | st.none(), min_size=1, max_size=2), st.booleans(), st.integers(1, 5))
def test_numbers_beside_records_end_the_pass(found: Corpus, ends: list[int | None], first: bool, size: int) -> None:
    numbers = [di.data.Dataset.counter() if end is None else di.data.Dataset.range(end) for end in ends]
    beside = [*numbers, found.dataset()] if first else [found.dataset(), *numbers]
    ds = di.data.Dataset.zip(tuple(beside)).map(lambda *each: each[-1 if first else 0]).batch(size)
    dataset = mirrored(1).experimental_distribute_dataset(ds)
    steps = [ids([step]) for step in dataset]
    assert [told(dataset.locate(step, read=found.read)) for step in range(len(steps))] == steps
    with pytest.raises(IndexError, match=f"no step {len(steps)}"):
        dataset.locate(len(steps), read=found.read)


def test_numbers_beside_records_that_nobody_can_count_are_refused() -> None:
    some = di.data.Dataset.range(9).filter(lambda x: x < 4)
    both = di.data.Dataset.zip(corpus("text", (7,)).dataset(), some).batch(2)
    with pytest.raises(
        di.errors.UnimplementedError, match=r"zip.*nobody knows where the numbers beside the records end"
    ):
        mirrored(1).experimental_distribute_dataset(both).locate(0, read=True)


@settings(max_examples=cases(12, 500))
@given(pipelines(), st.integers(1, 3), CUTS, st.integers(0, 1), st.data())
def test_when_is_the_inverse_of_locate(drawn: tuple[Corpus, Any], r: int, options: Any, epoch: int, data: Any) -> None:
    found, make = drawn
    dataset = mirrored(r).experimental_distribute_dataset(make(), options)
    count = len(list(dataset))
    places = [
        (p.file, p.record, Seen(epoch, step, p.replica, p.row))
        for step in range(count)
        for p in dataset.locate(step, epoch=epoch, read=found.read)
    ]
    file, record = data.draw(st.sampled_from(records_of(found)))
    seen = dataset.when(file, record, epoch=epoch, steps=range(count), read=found.read)
    assert list(seen) == [place for f, n, place in places if (f, n) == (file, record)]


@settings(max_examples=cases(12, 500))
@given(pipelines(), st.integers(1, 3), st.booleans(), st.data())
def test_a_step_is_replayed_bit_for_bit(drawn: tuple[Corpus, Any], r: int, balanced: bool, data: Any) -> None:
    _, make = drawn
    strategy, options = mirrored(r), di.distribute.InputOptions(balanced_split=balanced)
    dataset = strategy.experimental_distribute_dataset(make(), options)
    passes = [[parts_of(strategy, step) for step in dataset] for _ in range(2)]
    elsewhere = strategy.experimental_distribute_dataset(make(), options)  # as in a notebook, without the job
    epoch = data.draw(st.integers(0, 1))
    for number, parts in enumerate(passes[epoch]):
        assert parts_of(strategy, elsewhere.replay(number, epoch=epoch)) == parts
    with pytest.raises(IndexError, match="no step"):
        elsewhere.replay(len(passes[epoch]), epoch=epoch)
    assert [parts_of(strategy, step) for step in elsewhere] == passes[0]  # which pass comes next is as before


@settings(max_examples=cases(8, 200))
@given(
    corpora, st.integers(1, 3), st.integers(1, 2), st.integers(1, 8), st.sampled_from(["DATA", "FILE", "OFF", "AUTO"]),
    CUTS, st.booleans(), st.sampled_from(["partial", "drop"]),
)  # fmt: skip
def test_each_worker_locates_the_rows_of_all(
    found: Corpus, w: int, r: int, size: int, policy: str, options: Any, drop: bool, tail: str
) -> None:
    if policy == "FILE" and len(found.files) < w:
        return
    if policy != "DATA" and not options.balanced_split and size < w * r:
        return  # steps without rows are left out, which workers find out together

    def body(strategy: Any, worker: int) -> Any:
        ds = with_policy(found.dataset().shuffle(6, seed=2).batch(size, drop_remainder=drop), Policy[policy])
        dataset = strategy.experimental_distribute_dataset(ds, replace(options, tail=tail))
        steps = [parts_of(strategy, step) for step in dataset]
        said = [dataset.locate(n, read=found.read) for n in range(len(steps))]
        with pytest.raises(IndexError, match=f"no step {len(steps)}"):
            dataset.locate(len(steps), read=found.read)
        return steps, [[[*told(one[i : i + 1]), one[i].replica] for i in range(len(one))] for one in said]

    results = on_workers([r] * w, body)
    for result in results:
        if isinstance(result, Exception):
            raise result
    for number in range(len(results[0][0])):
        delivered = [
            [x, worker * r + local]
            for worker, (steps, _) in enumerate(results)
            for local, part in enumerate(steps[number])
            for x in part
        ]
        for _, said in results:
            assert said[number] == delivered


@settings(max_examples=cases(6, 200))
@given(corpora, st.integers(1, 3), st.integers(1, 3), st.integers(1, 6), st.data())
def test_a_restart_on_other_workers_goes_on_with_the_located_steps(
    found: Corpus, before: int, after: int, size: int, data: Any
) -> None:
    options = di.distribute.InputOptions(balanced_split=True)

    def dataset_of(strategy: Any) -> Any:
        ds = with_policy(found.dataset().shuffle(6, seed=2).batch(size), Policy.DATA)
        return strategy.experimental_distribute_dataset(ds, options)

    count = -(-len(records_of(found)) // size)
    stop = data.draw(st.integers(0, count))

    def begin(strategy: Any, worker: int) -> Any:
        with iter(dataset_of(strategy)) as iterator:
            for _ in range(stop):
                next(iterator)
            return json.dumps(iterator.state())

    def go_on(strategy: Any, worker: int) -> Any:
        dataset = dataset_of(strategy)
        steps = [parts_of(strategy, step) for step in dataset.restore(json.loads(state))]
        said = [dataset.locate(stop + n, read=found.read) for n in range(len(steps))]
        return steps, [told(one) for one in said]

    state = on_workers([1] * before, begin)[0]
    results = on_workers([1] * after, go_on)
    assert len(results[0][0]) == count - stop
    for number in range(count - stop):
        delivered = [x for steps, _ in results for part in steps[number] for x in part]
        assert all(said[number] == delivered for _, said in results)


def test_elements_dealt_one_to_a_replica_are_located() -> None:
    found = corpus("parquet", (7, 3, 12))
    strategy = mirrored(3)
    dataset = strategy.distribute_datasets_from_function(lambda context: found.dataset().shuffle(9, seed=1))
    steps = [parts_of(strategy, step) for step in dataset]
    assert [[told(dataset.locate(n, i)) for i in range(3)] for n in range(len(steps))] == steps
    with pytest.raises(IndexError, match="no step"):
        dataset.locate(len(steps))


def test_a_step_that_is_left_out_is_not_there() -> None:
    found = corpus("parquet", (7, 3, 12))
    options = di.distribute.InputOptions(tail="drop")
    dataset = mirrored(2).experimental_distribute_dataset(found.dataset().batch(4), options)
    assert len(list(dataset)) == 5
    with pytest.raises(IndexError, match="no step 5"):
        dataset.locate(5)


def test_what_cannot_be_computed_is_refused_with_the_reason() -> None:
    found = corpus("parquet", (7, 3, 12))
    dataset = mirrored(2).experimental_distribute_dataset(found.dataset().filter(lambda x: x > 3).batch(4))
    with pytest.raises(
        di.errors.UnimplementedError, match=r"filter\(.*test_step_records.py.*depends on what they hold.*Ledger"
    ):
        dataset.locate(0)
    text = corpus("text", (5,))
    dataset = mirrored(2).experimental_distribute_dataset(text.dataset().batch(4))
    with pytest.raises(di.errors.UnimplementedError, match=r"do not tell how many records.*read=True"):
        dataset.locate(0)


def test_a_seed_that_this_process_drew_is_said() -> None:
    found = corpus("parquet", (7, 3, 12))
    dataset = mirrored(2).experimental_distribute_dataset(found.dataset().shuffle(5).batch(4))
    (sentence,) = dataset.locate(0).assumes
    assert "shuffle" in sentence
    assert "given no seed" in sentence


def test_a_function_over_batches_is_taken_to_leave_rows_where_they_are() -> None:
    found = corpus("parquet", (7, 3, 12))
    dataset = mirrored(2).experimental_distribute_dataset(found.dataset().batch(4).map(lambda x: x))
    (sentence,) = dataset.locate(0).assumes
    assert "leaves each row of a batch where it is" in sentence


def test_rows_of_several_records_stand_there_once_for_each() -> None:
    found, other = corpus("parquet", (7, 3, 12)), corpus("parquet", (9, 0, 4))
    ds = di.data.Dataset.zip((found.dataset(), other.dataset().skip(1))).batch(4)
    dataset = mirrored(2).experimental_distribute_dataset(ds)
    first = dataset.locate(0, 1)
    assert [(p.record, p.row, p.file) for p in first] == [
        (2, 0, found.files[0]), (3, 0, other.files[0]), (3, 1, found.files[0]), (4, 1, other.files[0]),
    ]  # fmt: skip


@pytest.mark.parametrize("policy", ["FILE", "DATA", "OFF"])
def test_a_file_that_is_not_read_is_refused_by_every_policy(policy: str) -> None:
    found = corpus("parquet", (7, 3, 12))

    def body(strategy: Any, worker: int) -> Any:
        dataset = strategy.experimental_distribute_dataset(with_policy(found.dataset().batch(4), Policy[policy]))
        with pytest.raises(ValueError, match=r"when: 'other' is none of the 3 files that are read \(.*n-0.parquet"):
            dataset.when("other", 0)
        with pytest.raises(ValueError, match=r"parquet\); did you mean '.*/n-1.parquet'\?$"):
            dataset.when("n-1.parquet", 0)
        return [dataset.when(name, 2) for name in found.files]

    results = on_workers([1, 1], body)
    for result in results:
        assert not isinstance(result, Exception), result
    assert results[0] == results[1]
    times = 2 if policy == "OFF" else 1  # each worker reads everything
    assert [len(seen) for seen in results[0]] == [times] * 3


def test_a_worker_says_which_files_it_does_not_read_itself() -> None:
    found = corpus("parquet", (7, 3, 12))

    def body(strategy: Any, worker: int) -> Any:
        dataset = strategy.distribute_datasets_from_function(
            lambda context: di.data.ParquetDataset(found.files[context.input_pipeline_id])
        )
        with pytest.raises(ValueError, match=r"not the file that is read by this worker; .* ask there"):
            dataset.when(found.files[2], 0, steps=range(9))
        return dataset.when(found.files[worker], 2, steps=range(9))

    assert on_workers([1, 1], body) == [(Seen(0, 2, 0, 0),), (Seen(0, 2, 1, 0),)]


def test_steps_that_are_not_there_hold_no_record() -> None:
    found = corpus("parquet", (7, 3, 12))
    dataset = mirrored(2).experimental_distribute_dataset(found.dataset().batch(4))
    assert dataset.when(found.files[0], 5, steps=range(100)) == (Seen(0, 1, 0, 1),)
    assert dataset.when(found.files[0], 5, steps=range(2, 100)) == ()
    dealt = mirrored(2).distribute_datasets_from_function(lambda context: found.dataset().batch(4).unbatch())
    assert dealt.when(found.files[2], 11, steps=range(100)) == (Seen(0, 10, 1, 0),)


@pytest.mark.parametrize("kind", ["parquet", "npz", "text", "tfrecord"])
@pytest.mark.parametrize("behind", [lambda ds: ds.take(9), lambda ds: ds.prefetch(1).take(9)])
def test_a_cache_that_is_not_read_to_its_end_has_the_records_of_its_first_pass(kind: str, behind: Any) -> None:
    found = corpus(kind, (7, 3, 12))
    ds = behind(found.dataset().shuffle(100, seed=1).cache()).batch(4)
    dataset = mirrored(1).experimental_distribute_dataset(ds)
    for epoch, steps in enumerate([[ids([step]) for step in dataset] for _ in range(3)]):
        assert [told(dataset.locate(n, epoch=epoch, read=found.read)) for n in range(3)] == steps
        assert [ids([dataset.replay(n, epoch=epoch)]) for n in range(3)] == steps


def test_a_step_behind_the_last_one_is_not_there_behind_skip_too() -> None:
    dataset = mirrored(1).experimental_distribute_dataset(corpus("parquet", (7, 3, 12)).dataset().skip(2).batch(4))
    with pytest.raises(IndexError, match="no step 5, there are 5"):
        dataset.replay(5)


def test_a_replica_without_rows_has_no_records() -> None:
    found = corpus("parquet", (1, 1, 20, 2))
    ds = found.dataset().global_shuffle(seed=2).repeat(2).batch(47)
    dataset = mirrored(2).experimental_distribute_dataset(ds)
    assert list(dataset.locate(1, 1)) == []
    assert len(dataset.locate(1)) == 1


def test_wrong_numbers_are_refused() -> None:
    dataset = mirrored(2).experimental_distribute_dataset(di.data.Dataset.range(8).batch(4))
    for call in (lambda: dataset.locate(-1), lambda: dataset.locate(0, 2), lambda: dataset.replay(-1)):
        with pytest.raises(IndexError, match="from 0 on"):
            call()
    for argument, ask in {
        "step": lambda wrong: dataset.locate(wrong),
        "replica": lambda wrong: dataset.locate(0, wrong or "none"),
        "epoch": lambda wrong: dataset.locate(0, epoch=wrong),
        "step ": lambda wrong: dataset.replay(wrong),
        "epoch ": lambda wrong: dataset.replay(0, epoch=wrong),
        "record": lambda wrong: dataset.when("<range>", wrong),
        "epoch  ": lambda wrong: dataset.when("<range>", 0, epoch=wrong),
        "step  ": lambda wrong: iter(dataset).locate(wrong or "none"),
        "replica ": lambda wrong: iter(dataset).locate(0, wrong or "none"),
    }.items():
        for wrong in (True, 1.5, "1", None):
            with pytest.raises(TypeError, match=rf": {argument.strip()} must be an integer, got "):
                ask(wrong)
    with pytest.raises(di.errors.InvalidArgumentError, match="epoch must be at least 0, got -1"):
        dataset.locate(0, epoch=-1)
    assert [part.tolist() for part in dataset.replay(np.int64(1)).values] == [[4, 5], [6, 7]]  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="not the file that is read"):
        dataset.when("other", 0)
    endless = mirrored(2).experimental_distribute_dataset(di.data.Dataset.range(8).repeat().batch(4))
    with pytest.raises(ValueError, match="no end; pass steps="):
        endless.when("<range>", 0)
    assert [seen.step for seen in endless.when("<range>", 0, steps=range(5))] == [0, 2, 4]
    assert dataset.when("<range>", 9) == ()
    assert np.max([len(records_of(corpus("npz", (9, 0, 4))))]) < ID
