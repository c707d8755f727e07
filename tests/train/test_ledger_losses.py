# SPDX-License-Identifier: Apache-2.0
"""Losses that were noted lead back to records: after restarts, on other workers, and past steps that were left out."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import distinput as di
from distinput.distribute.rehearsal import rehearse
from distinput.errors import UnimplementedError
from distinput.lineage.history import LedgerFile
from tests.depth import cases
from tests.distribute.workers import on_workers, with_policy
from tests.lineage.carried import ID, corpus
from tests.temporary import temporary_folder

BALANCED = di.distribute.InputOptions(balanced_split=True)


def mirrored(count: int) -> di.distribute.MirroredStrategy:
    return di.distribute.MirroredStrategy([f"CPU:{i}" for i in range(count)])


def results(found: list[Any]) -> list[Any]:
    for one in found:
        if isinstance(one, BaseException):
            raise one
    return found


def loss_of(number: Any) -> Any:
    """A loss of its own for each record."""
    return (np.asarray(number, np.int64) * 37 % 101).astype(np.float32)


def id_of(row: Any) -> int:
    (record,) = row.records
    return int(record.file.rsplit("n-")[-1].split(".")[0]) * ID + int(record.records)


def noted(
    strategy: Any, ledger: di.train.Ledger, iterator: Any, count: int, wrong: float = 0.0
) -> tuple[list[int], Any]:
    """The records of at most so many steps, whose losses are noted, and the state behind them."""
    seen: list[int] = []
    with iterator:
        for step in ledger.follow(iterator):
            parts = [np.asarray(part, np.int64) for part in strategy.experimental_local_results(step)]
            ledger.note(iterator.step - 1, [loss_of(part) + wrong for part in parts])
            seen += [int(number) for part in parts for number in part]
            if not (count := count - 1):
                break
        return seen, json.loads(json.dumps(iterator.state()))


@settings(max_examples=cases(6, 100), deadline=None)
@given(st.integers(1, 3), st.integers(1, 3), st.integers(1, 4), st.integers(1, 2), st.booleans(), st.integers(1, 2))
def test_losses_are_those_of_their_records_on_any_number_of_workers(
    before: int, after: int, saved: int, lost: int, balanced: bool, asked: int
) -> None:
    found = corpus("parquet", (7, 3, 12))
    folder = temporary_folder()
    options = BALANCED if balanced or before != after else None

    def dataset_of(strategy: Any) -> Any:
        ds = found.dataset().shuffle(6, seed=2).batch(6)
        policy = di.data.experimental.AutoShardPolicy.DATA
        return strategy.experimental_distribute_dataset(with_policy(ds, policy), options)

    def begin(strategy: Any, worker: int) -> Any:
        with di.train.Ledger(folder) as ledger:
            seen, state = noted(strategy, ledger, iter(dataset_of(strategy)), saved)
            noted(strategy, ledger, dataset_of(strategy).restore(state), lost, wrong=1000.0)  # in vain
        return seen, state

    def go_on(strategy: Any, worker: int) -> Any:
        with di.train.Ledger(folder) as ledger:
            return noted(strategy, ledger, dataset_of(strategy).restore(state), 99)[0]

    first = results(on_workers([1] * before, begin))
    state = first[0][1]
    second = results(on_workers([1] * after, go_on))
    seen = [number for one, _ in first for number in one] + [number for one in second for number in one]
    strategy = mirrored(asked)
    ledger = di.train.Ledger(folder)
    if balanced or before != after:
        rows = ledger.worst(dataset_of(strategy), 99)
    else:  # what is cut as in TensorFlow is asked about with as many replicas on as many workers
        rows = results(on_workers([1] * after, lambda strategy, _: ledger.worst(dataset_of(strategy), 99)))[0]
    assert sorted(id_of(row) for row in rows) == sorted(seen)
    assert [row.loss for row in rows] == sorted([float(loss_of(id_of(row))) for row in rows], reverse=True)


@pytest.mark.parametrize("counted", [True, False])
def test_losses_of_rows_that_were_dealt_by_their_cost_are_those_of_their_records(tmp_path: Path, counted: bool) -> None:
    def dataset_of(strategy: Any) -> Any:
        ds = di.data.Dataset.range(30).shuffle(30, seed=4)
        options = di.distribute.InputOptions(balance_replicas=loss_of)
        return strategy.experimental_distribute_dataset(
            (ds if counted else ds.filter(lambda x: x != 5)).batch(8), options
        )

    with di.train.Ledger(tmp_path) as ledger:
        noted(mirrored(2), ledger, iter(dataset_of(mirrored(2))), 99)
    rows = di.train.Ledger(tmp_path).worst(dataset_of(mirrored(2)), 99)
    assert len(rows) == 30 - (not counted)
    assert [row.loss for row in rows] == [float(loss_of(row.records[0].records)) for row in rows]
    with pytest.raises(
        UnimplementedError, match="dealt to 2 replicas on 1 workers; ask with a strategy that has as many"
    ):
        di.train.Ledger(tmp_path).worst(dataset_of(mirrored(3)), 99)


@pytest.mark.parametrize("counted", [True, False])
def test_a_spike_names_its_records_and_a_restart_leaves_them_out(tmp_path: Path, counted: bool) -> None:
    strategy = mirrored(2)

    def dataset_of() -> Any:
        ds = di.data.Dataset.range(80).shuffle(30, seed=4)
        return strategy.experimental_distribute_dataset((ds if counted else ds.filter(lambda x: x != 5)).batch(8))

    with di.train.Ledger(tmp_path) as ledger, iter(dataset_of()) as iterator:
        state = iterator.state()
        for step in ledger.follow(iterator):
            losses = strategy.run(lambda x: 1 + x % 3 * 0.1 + np.isin(x, [13, 44]) * 5.0, args=(step,))
            ledger.note(iterator.step - 1, losses)
    ledger, dataset = di.train.Ledger(tmp_path), dataset_of()
    rows = [row for number in range(len(ledger)) for row in ledger.spike(dataset, number)]
    assert {record.records for row in rows for record in row.records} == {13, 44}
    assert {round(row.loss, 1) for row in rows} <= {6.1, 6.2}
    assert all(len(ledger.spike(dataset, row.number)) == 1 for row in rows)
    skip = [record for row in rows for record in row.records] if counted else [range(r.step, r.step + 1) for r in rows]
    left = [int(x) for step in dataset.restore(state, skip=skip) for part in step.values for x in part]
    assert not {13, 44} & set(left)
    gone = [len(part) for row in rows for part in ledger.replay(dataset, row.number).values]
    assert len(left) == (80 if counted else 79) - sum(gone)


def test_what_is_no_number_is_the_worst_and_late_notes_cross_steps_left_out(tmp_path: Path) -> None:
    strategy = mirrored(1)
    dataset = strategy.experimental_distribute_dataset(di.data.Dataset.range(40).batch(4))
    with di.train.Ledger(tmp_path) as ledger:
        iterator = dataset.restore(iter(dataset).state(), skip=[range(3, 5)])
        kept = [(iterator.step - 1, step) for step in ledger.follow(iterator)]
        for number, step in kept[::-1]:  # after all of them, and out of order
            losses = np.where(step == 21, np.nan, np.where(step == 9, np.inf, step / 100))
            ledger.note(number, np.where(step == 30, -np.inf, losses))
    rows = di.train.Ledger(tmp_path).worst(dataset, 5)
    assert {row.records[0].records: str(row.loss) for row in rows[:3]} == {21: "nan", 9: "inf", 30: "-inf"}
    assert [row.records[0].records for row in rows[3:]] == [39, 38]
    assert str(rows[3]) == "loss 0.39: record 39 of <range>, in step 9 of epoch 0"
    assert rows[3].number == 7
    spiked = di.train.Ledger(tmp_path).spike(dataset, next(row.number for row in rows if row.loss == np.inf))
    assert [(row.records[0].records, row.loss) for row in spiked] == [(9, np.inf)]


def test_a_torn_end_of_the_losses_is_left_out_and_cut_off(tmp_path: Path) -> None:
    strategy = mirrored(1)
    dataset = strategy.experimental_distribute_dataset(di.data.Dataset.range(12).batch(4))

    def run() -> None:
        with di.train.Ledger(tmp_path) as ledger, iter(dataset) as iterator:
            for step in ledger.follow(iterator):
                ledger.note(iterator.step - 1, step * 1.0)

    run()
    file = tmp_path / "worker-0.losses"
    file.write_bytes(file.read_bytes()[:-3])
    assert [row.records[0].records for row in di.train.Ledger(tmp_path).worst(dataset, 2)] == [7, 6]
    file.write_bytes(file.read_bytes() + b"\x09")
    run()
    assert [row.records[0].records for row in di.train.Ledger(tmp_path).worst(dataset, 2)] == [11, 10]
    file.write_bytes(file.read_bytes().replace(b"N", b"M", 1))
    with pytest.raises(di.errors.DataLossError, match=r"worker-0\.losses: the ledger is damaged at byte"):
        di.train.Ledger(tmp_path).worst(dataset, 2)


def test_what_cannot_be_noted(tmp_path: Path) -> None:
    strategy = mirrored(2)
    dataset = strategy.experimental_distribute_dataset(di.data.Dataset.range(12).batch(4))
    ledger = di.train.Ledger(tmp_path)
    with pytest.raises(di.errors.FailedPreconditionError, match=r"no iterator is followed yet; .* ledger\.follow"):
        ledger.note(0, [1.0])
    with ledger, iter(dataset) as iterator:
        steps = ledger.follow(iterator)
        next(steps), next(steps)
        for step in (2, -1):
            with pytest.raises(
                di.errors.InvalidArgumentError, match=f"handed over: 0 to 1; got {step}. The last one is"
            ):
                ledger.note(step, [np.ones(2), np.ones(2)])
        unfit = [[1.0, [2.0]], [3.0]]
        for losses in (
            np.ones(4),
            [np.ones(2)],
            [np.float32(1), np.float32(2)],
            [np.ones(2), np.array(["a", "b"])],
            unfit,
        ):
            with pytest.raises(
                di.errors.InvalidArgumentError, match=r"each of the 2 replicas .* a number for each row, got"
            ):
                ledger.note(1, losses)
        with pytest.raises(TypeError, match=r"Ledger\.note: step must be an integer, got 0\.5"):
            ledger.note(0.5, [np.ones(2), np.ones(2)])  # type: ignore[arg-type]
        ledger.note(0, [np.ones(2), np.ones(3)])
        list(steps)
    with pytest.raises(
        di.errors.DataLossError, match="row 2 of replica 1 in step 0 of epoch 0, which had 2 rows; note the"
    ):
        ledger.worst(dataset, 5)
    with pytest.raises(di.errors.NotFoundError, match=r"no losses were noted of step 2; call ledger\.note"):
        ledger.spike(dataset, -1)
    with pytest.raises(IndexError, match="no step 3 among the 3"):
        ledger.spike(dataset, 3)


def test_what_a_ledger_is_asked_is_checked(tmp_path: Path) -> None:
    dataset = mirrored(2).experimental_distribute_dataset(di.data.Dataset.range(12).batch(4))
    with di.train.Ledger(tmp_path) as ledger, iter(dataset) as iterator:
        for _ in ledger.follow(iterator):
            ledger.note(iterator.step - 1, [np.array([1e300, 1.0]), np.ones(2)])
    asked: Any = di.train.Ledger(tmp_path)
    assert [(worst.row, worst.loss) for worst in asked.worst(dataset, 3)] == [(0, np.inf)] * 3
    for ask in (asked.spike, asked.locate, asked.replay):
        for wrong in (True, 1.5, "1", None):
            with pytest.raises(TypeError, match=rf"Ledger\.{ask.__name__}: number must be an integer, got"):
                ask(dataset, wrong)
    with pytest.raises(TypeError, match=r"Ledger\.locate: replica must be an integer, got 0\.5"):
        asked.locate(dataset, 0, 0.5)
    for few in (0, -1):
        with pytest.raises(di.errors.InvalidArgumentError, match=rf"Ledger\.worst: n must be .* got {few}"):
            asked.worst(dataset, few)
    for ask in (asked.worst, lambda given: asked.spike(given, 0), lambda given: list(asked.seen(given))):
        with pytest.raises(TypeError, match=r"the distributed dataset that the job had, .* got Dataset"):
            ask(di.data.Dataset.range(12).batch(4))


def test_elements_that_were_dealt_are_asked_about_with_as_many_replicas(tmp_path: Path) -> None:
    def dataset_of(count: int) -> Any:
        make = lambda context: di.data.Dataset.range(12).batch(2)  # noqa: E731 - a dataset_fn
        return mirrored(count).distribute_datasets_from_function(make)

    with di.train.Ledger(tmp_path) as ledger, iter(dataset_of(2)) as iterator:
        for step in ledger.follow(iterator):
            ledger.note(iterator.step - 1, [part * 1.0 for part in step.values])
    assert [row.records[0].records for row in ledger.worst(dataset_of(2), 3)] == [11, 10, 9]
    with pytest.raises((di.errors.UnimplementedError, di.errors.StateError)):
        ledger.worst(dataset_of(3), 3)


@pytest.mark.parametrize("told", [True, False])
def test_notes_of_a_job_on_other_workers_do_not_count(
    told: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def job(height: float) -> Any:
        def body(distributed: Any, strategy: Any) -> None:
            with di.train.Ledger(tmp_path) as ledger, iter(distributed) as iterator:
                for step in ledger.follow(iterator):
                    parts = strategy.experimental_local_results(step)
                    ledger.note(iterator.step - 1, [height + np.asarray(part) / 100 for part in parts])

        return body

    ds = di.data.Dataset.range(16).batch(8)
    if told:
        rehearse(ds, 4, 1, job(1000.0))  # it ends before its first checkpoint
    else:  # files of earlier versions do not tell how many workers there were
        begin = LedgerFile.begin

        def earlier(file: LedgerFile, part: Any) -> None:
            begin(file, {name: part[name] for name in part if name != "workers" or part["inputs"]})

        monkeypatch.setattr(LedgerFile, "begin", earlier)
    rehearse(ds, 2, 2, job(1.0))
    rows = di.train.Ledger(tmp_path).worst(mirrored(4).experimental_distribute_dataset(ds), 40)
    assert [round(row.loss, 2) for row in rows] == [round(1 + n / 100, 2) for n in range(15, -1, -1)]


def test_losses_may_be_of_bfloat16(tmp_path: Path) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    strategy = mirrored(2)
    distributed = strategy.experimental_distribute_dataset(di.data.Dataset.range(6).batch(6))
    with di.train.Ledger(tmp_path) as ledger, iter(distributed) as iterator:
        for step in ledger.follow(iterator):
            parts = strategy.experimental_local_results(step)
            ledger.note(0, [np.asarray(part).astype(ml_dtypes.bfloat16) for part in parts])
    assert [row.loss for row in di.train.Ledger(tmp_path).worst(distributed, 3)] == [5.0, 4.0, 3.0]
