# SPDX-License-Identifier: Apache-2.0
"""What `distinput demo --workers` is made of, without an engine: checks that fail, messages, saves, exact sums."""

import copy
import importlib.util
import json
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from distinput.cli import main
from distinput.cli.demo import multi_worker as jobs
from distinput.cli.demo.demo import TRAINING_BATCH, DemoReport
from distinput.cli.demo.multi_worker import ENGINES, DemoJob, _places, _together, check_engine
from distinput.cli.demo.program import Softmax, Training, evaluate, evaluation_batches, mirrored, train, write_files
from distinput.errors import FailedPreconditionError

ORDER = {"epochs": 2, "batch": TRAINING_BATCH}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("files")
    write_files(made)
    return made


def trained(place: Path, replicas: int, done: Training, stop: int = 10**9) -> list[list[int]]:
    """The ids of each step, up to one at which the training is broken off."""
    steps: list[list[int]] = []

    class Stopped(Exception):
        pass

    def on_step(now: Training, gave: dict[str, Any]) -> None:
        steps.append(gave["ids"])
        if now.step == stop:
            raise Stopped

    try:
        train(mirrored(replicas), place, ORDER, done, on_step)
    except Stopped:
        assert done.step == stop
    return steps


@pytest.fixture(scope="module")
def whole(place: Path) -> tuple[Training, list[list[int]]]:
    done = Training()
    return done, trained(place, 1, done)


@pytest.mark.parametrize("first, second", [(1, 3), (3, 1), (2, 4)])
def test_a_training_goes_on_from_a_save_to_the_same_bits(
    first: int, second: int, place: Path, tmp_path: Path, whole: tuple[Training, list[list[int]]]
) -> None:
    before = Training()
    steps = trained(place, first, before, stop=17)
    before.save(tmp_path / "saved.json")
    after = Training.load(tmp_path / "saved.json")
    assert (after.step, after.model.saved()) == (17, before.model.saved())
    steps += trained(place, second, after)
    alone, one_by_one = whole
    assert [sorted(step) for step in steps] == [sorted(step) for step in one_by_one]
    assert after.model.saved() == alone.model.saved()


def test_a_save_is_the_new_one_or_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "saved.json"
    Training(step=1).save(path)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        Training(step=2).save(path)
    assert Training.load(path).step == 1
    assert Training.load(tmp_path / "nothing").step == 0


@pytest.mark.parametrize("rows", [slice(0, 0), slice(0, 1), slice(5, 21), slice(3, None, 7)], ids=str)
def test_what_the_model_says_of_an_image_does_not_depend_on_its_neighbours(rows: slice) -> None:
    draw = np.random.default_rng(0)
    model = Softmax(64, 10)
    model.parameters = {"weights": draw.normal(size=(64, 10)), "bias": draw.normal(size=10)}
    images, labels = (draw.integers(0, 17, (64, 64)) / 16).astype(np.float32), draw.integers(0, 10, 64)
    for method in (model.scores, model.gradient_rows):
        every, some = method(images, labels), method(images[rows], labels[rows])
        assert {name: a[rows].tobytes() for name, a in every.items()} == {name: a.tobytes() for name, a in some.items()}


def test_the_rows_of_a_gradient_add_up_to_it() -> None:
    draw = np.random.default_rng(1)
    model = Softmax(64, 10)
    images, labels = draw.random((9, 64)), draw.integers(0, 10, 9)
    rows, sums = model.gradient_rows(images, labels), model.gradients(images, labels)
    for name, total in sums.items():
        np.testing.assert_allclose(rows[name].sum(axis=0), total, rtol=1e-12, atol=1e-12)


def changed(what: str, steps: list[list[int]], done: Training, evaluated: dict[str, Any]) -> None:
    if what == "each exactly once":
        steps[20][3] = steps[20][4]
    elif what == "the same steps":
        steps[1], steps[2] = steps[2], steps[1]
    elif what == "the same model":
        done.model.parameters["bias"][3] = np.nextafter(done.model.parameters["bias"][3], 1)
    elif what == "the same accuracy":
        evaluated["correct"] -= 1
    elif what == "each tested once":
        evaluated["ids"].pop()


@pytest.mark.parametrize(
    "what", ["", "each exactly once", "the same steps", "the same model", "the same accuracy", "each tested once"]
)
def test_a_difference_from_one_worker_is_found(
    what: str, place: Path, whole: tuple[Training, list[list[int]]], capsys: pytest.CaptureFixture[str]
) -> None:
    parts, _ = write_files(place)
    done, steps = copy.deepcopy(whole)
    found = evaluate(mirrored(1), done.model, evaluation_batches(place, "tfrecord", 50))
    evaluated = {"correct": found.correct, "loss": found.loss, "ids": list(found.ids)}
    changed(what, steps, done, evaluated)
    report = DemoReport()
    _together(report, place, steps, done, [evaluated], parts, ORDER)
    wrong = {"each exactly once": ["each exactly once", "the same steps"]}.get(what, [what] if what else [])
    assert [name for name in report.failed if "accuracy" not in name or "same" in name] == wrong, (
        capsys.readouterr().out
    )


@pytest.mark.parametrize("engine", sorted(ENGINES))
def test_an_engine_that_is_missing(
    engine: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    there = importlib.util.find_spec("json")
    monkeypatch.setattr(jobs, "find_spec", lambda name: None if name == ENGINES[engine] else there)
    assert main(["demo", "--workers", "3", "--engine", engine]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert f"the engine '{engine}' needs the Python package {ENGINES[engine]}, which is not installed" in said.err
    assert f"pip install 'distinput[{engine}]'" in said.err
    assert "--engine " + " or ".join(sorted({*ENGINES} - {engine})) in said.err


def test_a_launcher_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    there = importlib.util.find_spec("json")
    monkeypatch.setattr(jobs, "find_spec", lambda name: there)
    monkeypatch.setattr(jobs, "mpiexec", Mock(side_effect=FileNotFoundError))
    with pytest.raises(FailedPreconditionError, match=r"needs the command mpiexec.*distinput\[mpi\]"):
        check_engine("mpi")


def test_a_process_that_fails_is_told_with_its_last_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "check_engine", lambda engine: None)
    with DemoJob(tmp_path, 2, "torch", {"directory": str(tmp_path)}) as job:  # the order lacks what they need
        with pytest.raises(ChildProcessError, match=r"(?s)a process ended with status 1 before the start:.*KeyError"):
            job.wait_until(lambda: False, "the start", 60)
        job.wait(60)
    assert job.alive(0) == []
    assert json.loads((tmp_path / "job.json").read_text())["engine"] == "torch"


def test_workers_listen_on_ports_that_the_system_gives_to_nobody_else() -> None:
    configs = [json.loads(place["TF_CONFIG"]) for place in _places(3)]
    assert [config["task"]["index"] for config in configs] == [0, 1, 2]
    addresses = configs[0]["cluster"]["worker"]
    assert len(set(addresses)) == 3
    assert all(10_000 <= int(address.rpartition(":")[2]) < 30_000 for address in addresses)


def test_one_worker_is_not_enough(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["demo", "--workers", "1"])
    assert "must be at least 2" in capsys.readouterr().err
