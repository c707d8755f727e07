# SPDX-License-Identifier: Apache-2.0
"""A ledger says what a model has seen: after restarts, on other workers, and after a kill at any point."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import distinput as di
from distinput.distribute.rehearsal import rehearse
from distinput.errors import StateError
from tests.depth import cases
from tests.distribute.workers import on_workers, with_policy
from tests.lineage.carried import Corpus, corpus, ids, pipelines, told
from tests.temporary import temporary_folder

FIXED: dict[str, Any] = {"suppress_health_check": [HealthCheck.function_scoped_fixture]}
BALANCED = di.distribute.InputOptions(balanced_split=True)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda file: None)


def mirrored(count: int) -> di.distribute.MirroredStrategy:
    return di.distribute.MirroredStrategy([f"CPU:{i}" for i in range(count)])


def flat(strategy: Any, step: Any) -> list[int]:
    return ids(strategy.experimental_local_results(step))


def taken(strategy: Any, ledger: di.train.Ledger, iterator: Any, count: int) -> tuple[list[list[int]], Any]:
    """At most so many steps, and the state behind them."""
    found = []
    with iterator:
        steps = ledger.follow(iterator)
        for _ in range(count):
            step = next(steps, None)
            if step is None:
                break
            found.append(flat(strategy, step))
        return found, json.loads(json.dumps(iterator.state()))


@settings(max_examples=cases(6, 300), **FIXED)
@given(pipelines(), st.sampled_from([None, "filter", "flat_map"]), st.integers(1, 3), st.data())
def test_what_was_seen_is_replayed_and_located(drawn: tuple[Corpus, Any], kind: str | None, r: int, data: Any) -> None:
    found, make = drawn
    strategy = mirrored(r)

    def dataset_of() -> Any:
        ds = make()
        if kind == "filter":
            ds = ds.unbatch().filter(lambda x: x % 3 > 0).batch(3)
        if kind == "flat_map":
            ds = ds.flat_map(lambda x: di.data.Dataset.from_tensor_slices(x)).batch(4)
        return strategy.experimental_distribute_dataset(ds, BALANCED)

    folder = temporary_folder()
    model: list[list[int]] = []
    with di.train.Ledger(folder) as ledger:
        dataset = dataset_of()
        for _ in range(2):  # passes
            begin = len(model)
            steps, state = taken(strategy, ledger, iter(dataset), data.draw(st.integers(0, 4)))
            further, _ = taken(strategy, ledger, dataset_of().restore(state), data.draw(st.integers(0, 3)))
            del further  # in vain: the job goes on from the state once more
            again = dataset_of().restore(state)
            rest, _ = taken(strategy, ledger, again, 99)
            model[begin:] = [*steps, *rest]
    notebook, ledger = dataset_of(), di.train.Ledger(folder)
    assert len(ledger) == len(model)
    for number, rows in enumerate(model):
        assert flat(strategy, ledger.replay(notebook, number)) == rows
        if kind == "filter":
            try:
                assert told(ledger.locate(notebook, number, read=found.read)) == rows
            except di.errors.UnimplementedError as error:  # after `cache` and mixtures
                assert "Ledger.replay gives the step itself" in str(error)  # noqa: PT017
        if kind is None:
            assert told(ledger.locate(notebook, number, read=found.read)) == rows
    if kind is None:
        assert [told(one) for one in ledger.seen(notebook, read=found.read)] == model


@settings(max_examples=cases(5, 100), **FIXED)
@given(st.integers(1, 3), st.integers(1, 3), st.integers(0, 4), st.integers(0, 2), st.booleans())
def test_restarts_on_other_workers(before: int, after: int, saved: int, lost: int, counted: bool) -> None:
    found = corpus("parquet" if counted else "text", (7, 3, 12))
    folder = temporary_folder()

    def dataset_of(strategy: Any) -> Any:
        ds = found.dataset().shuffle(6, seed=2)
        ds = ds if counted else ds.filter(lambda x: x % 5 > 0)
        policy = di.data.experimental.AutoShardPolicy.DATA
        return strategy.experimental_distribute_dataset(with_policy(ds.batch(4), policy), BALANCED)

    def begin(strategy: Any, worker: int) -> Any:
        with di.train.Ledger(folder) as ledger:
            steps, state = taken(strategy, ledger, iter(dataset_of(strategy)), saved)
            taken(strategy, ledger, dataset_of(strategy).restore(state), lost)
        return steps, state

    def go_on(strategy: Any, worker: int) -> Any:
        with di.train.Ledger(folder) as ledger:
            return taken(strategy, ledger, dataset_of(strategy).restore(state), 99)[0]

    first = results(on_workers([1] * before, begin))
    state = first[0][1]
    second = results(on_workers([1] * after, go_on))
    model = [ids(parts) for parts in zip(*[steps for steps, _ in first], strict=True)]
    model += [ids(parts) for parts in zip(*second, strict=True)]
    strategy = mirrored(2)
    notebook, ledger = dataset_of(strategy), di.train.Ledger(folder)
    assert [flat(strategy, ledger.replay(notebook, number)) for number in range(len(ledger))] == model
    assert [told(one) for one in ledger.seen(notebook)] == model
    assert os.listdir(folder) == ["worker-0.ledger"]  # one writes for all


def results(found: list[Any]) -> list[Any]:
    for result in found:
        if isinstance(result, Exception):
            raise result
    return found


@settings(max_examples=cases(6, 100), **FIXED)
@given(st.integers(0, 40), st.integers(0, 3), st.booleans())
def test_a_killed_process_leaves_what_it_was_given(kill_at: int, every: int, counted: bool) -> None:
    folder = Path(temporary_folder())

    def dataset_of() -> Any:
        ds = di.data.Dataset.range(60).shuffle(9, seed=1)
        ds = ds if counted else ds.filter(lambda x: x % 7 > 0)
        return mirrored(2).experimental_distribute_dataset(ds.batch(4))

    def job() -> None:
        """Take all steps, and save a state every few of them."""
        saved = folder / "state"
        iterator = dataset_of().restore(json.loads(saved.read_text())) if saved.exists() else iter(dataset_of())
        with di.train.Ledger(folder / "ledger") as ledger:
            for step in ledger.follow(iterator):
                with (folder / "seen").open("a") as seen:
                    seen.write(json.dumps([iterator.step - 1, flat(mirrored(2), step)]) + "\n")
                if every and iterator.step % every == 0:
                    (folder / "next").write_text(json.dumps(iterator.state()))
                    (folder / "next").replace(saved)

    died = _killed(job, kill_at)
    assert _killed(job, None) is False
    model: dict[int, list[int]] = {}
    for line in (folder / "seen").read_text().splitlines():
        step, rows = json.loads(line)
        model[step] = rows
    notebook, ledger = dataset_of(), di.train.Ledger(folder / "ledger")
    assert [flat(mirrored(2), ledger.replay(notebook, number)) for number in range(len(ledger))] == list(model.values())
    assert died or kill_at > 10


def _killed(job: Any, kill_at: int | None) -> bool:
    """Run a job in a fork, killed half-way through its write number `kill_at`; whether it was."""
    child = os.fork()
    if child == 0:
        try:
            writes, write = 0, os.write

            def half(file: int, data: bytes) -> int:
                nonlocal writes
                if kill_at is not None and writes == kill_at:
                    write(file, data[: len(data) // 2])
                    os.kill(os.getpid(), signal.SIGKILL)
                writes += 1
                return write(file, data)

            os.write = half
            job()
            os._exit(0)
        except BaseException:  # noqa: BLE001 - the fork must never go on as its parent
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.waitstatus_to_exitcode(status) == 0
    return os.WIFSIGNALED(status)


def test_what_it_refuses(tmp_path: Path) -> None:
    with pytest.raises(di.errors.InvalidArgumentError, match="local or mounted disk"):
        di.train.Ledger("s3://bucket/ledger")
    ledger = di.train.Ledger(tmp_path / "ledger")
    with pytest.raises(di.errors.NotFoundError, match=r"worker-0\.ledger"):
        len(ledger)
    with pytest.raises(TypeError, match="iterator of a distributed dataset"):
        next(ledger.follow(iter([1])))  # type: ignore[arg-type]
    dataset = mirrored(2).experimental_distribute_dataset(di.data.Dataset.range(9).batch(4))
    with iter(dataset) as iterator:
        assert len(list(ledger.follow(iterator))) == 3
    assert len(ledger) == 3
    other = mirrored(2).experimental_distribute_dataset(di.data.Dataset.range(8).batch(4))
    with pytest.raises(di.errors.StateError, match="another pipeline"):
        ledger.locate(other, 0)
    with pytest.raises(IndexError, match="no step 3 among the 3"):
        ledger.replay(dataset, 3)


def test_seeds_that_the_job_drew_are_those_of_its_ledger(tmp_path: Path) -> None:
    def dataset_of() -> Any:
        return mirrored(1).experimental_distribute_dataset(di.data.Dataset.range(99).shuffle(50).batch(8))

    with di.train.Ledger(tmp_path) as ledger, iter(dataset_of()) as iterator:
        steps = [step.tolist() for step in ledger.follow(iterator)]
    notebook = dataset_of()
    assert [ledger.replay(notebook, n).tolist() for n in range(13)] == steps
    assert [[place.record for place in one] for one in ledger.seen(notebook)] == steps
    assert ledger.locate(notebook, 0).assumes == ()


def test_a_step_of_a_filter_takes_a_few_bytes(tmp_path: Path) -> None:
    ds = di.data.Dataset.range(100_000).filter(lambda x: x % 3 > 0).batch(32)
    dataset = mirrored(2).experimental_distribute_dataset(ds)
    with di.train.Ledger(tmp_path) as ledger, iter(dataset) as iterator:
        count = len([1 for _ in ledger.follow(iterator)])
    assert (tmp_path / "worker-0.ledger").stat().st_size < 12 * count + 4000


@pytest.mark.parametrize("counted", [True, False])
def test_steps_that_were_left_out_were_not_seen(tmp_path: Path, counted: bool) -> None:
    def dataset_of() -> Any:
        ds = di.data.Dataset.range(60).shuffle(9, seed=1)
        return mirrored(2).experimental_distribute_dataset((ds if counted else ds.filter(lambda x: x % 7 > 0)).batch(4))

    plain = [flat(mirrored(2), step) for step in dataset_of()]
    with iter(dataset_of()) as iterator:
        next(iterator)
        state = iterator.state()
    with di.train.Ledger(tmp_path) as ledger:
        iterator = dataset_of().restore(state, skip=[range(2, 5), range(9, 10)])
        seen = [(iterator.step - 1, flat(mirrored(2), step)) for step in ledger.follow(iterator)]
    assert seen == [(n, rows) for n, rows in enumerate(plain) if n not in (0, 2, 3, 4, 9)]
    notebook = dataset_of()
    assert [flat(mirrored(2), ledger.replay(notebook, n)) for n in range(len(ledger))] == [rows for _, rows in seen]
    if counted:
        assert [one.step for one in ledger.seen(notebook)] == [n for n, _ in seen]


def test_what_can_be_left_out_is_a_range_of_steps() -> None:
    dataset = mirrored(2).experimental_distribute_dataset(di.data.Dataset.range(40).batch(4))
    state = iter(dataset).state()
    for wrong in (range(0, 9, 2), [3], range(-1, 2)):
        with pytest.raises(ValueError, match="expected ranges of steps"):
            dataset.restore(state, skip=wrong)  # type: ignore[arg-type]
    iterator = dataset.restore(state, skip=[range(1, 4), range(20, 30)])
    assert len(list(iterator)) == iterator.__length_hint__() + 7 == 7


def test_all_workers_leave_out_the_same_steps() -> None:
    def body(strategy: Any, worker: int) -> Any:
        dataset = strategy.experimental_distribute_dataset(di.data.Dataset.range(40).batch(4), BALANCED)
        return len(list(dataset.restore(iter(dataset).state(), skip=range(worker, 2))))

    for result in on_workers([1, 1], body):
        assert isinstance(result, di.errors.StateError)
        assert "leaving out other steps" in str(result)


def test_the_ledger_of_workers_that_shared_files_is_asked_without_them(tmp_path: Path) -> None:
    path = str(tmp_path / "ledger")
    ds = corpus("text", (7, 3, 12)).dataset().shuffle(9, seed=1).batch(4)

    def job(distributed: Any, strategy: Any) -> list[Any]:
        ledger = di.train.Ledger(path)
        with iter(distributed) as iterator:
            return [flat(strategy, step) for step in ledger.follow(iterator)]

    def asked(distributed: Any, strategy: Any) -> list[int]:
        ledger = di.train.Ledger(path)
        return [len(ledger.locate(distributed, number, read=True)) for number in range(len(ledger))]

    seen = rehearse(ds, 2, 1, job)
    rows = [sum(len(steps[number]) for steps in seen) for number in range(len(seen[0]))]
    assert rehearse(ds, 2, 1, asked) == [rows, rows]
    ledger = di.train.Ledger(path)
    with pytest.raises(
        StateError, match=r"workers=2 and replicas=2, .* workers=1 and replicas=2; .*rehearse\(dataset, 2, 1, body\)"
    ):
        ledger.locate(mirrored(2).experimental_distribute_dataset(ds), 1, read=True)
    alone = di.distribute.get_strategy().experimental_distribute_dataset(ds)
    with pytest.raises(
        TypeError, match=r"expected the distributed dataset that the job had, .* got .*Dataset; a strategy"
    ):
        ledger.locate(alone, 1)
