# SPDX-License-Identifier: Apache-2.0
"""The handler: all save at the same step, end alike, and continue exactly where they were."""

import json
import logging
import random
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import distinput as di
from distinput.distribute.experimental import PreemptionCheckpointHandler, TerminationConfig
from distinput.errors import CollectiveError, Mismatch
from distinput.train import Checkpoint, CheckpointManager
from tests.depth import new_seed
from tests.distribute.workers import on_workers
from tests.patience import Clock, wait_until

Dataset = di.data.Dataset
NEVER = TerminationConfig(termination_watcher_fn=lambda: False)


def dataset() -> Any:
    return Dataset.range(40).shuffle(6, seed=3).batch(3)


def train(strategy: Any, worker: int, folder: Any, stops: dict[int, int], form: str, config: Any = NEVER) -> Any:
    """Train until the end or until the workers are told to end: how it ended, and the value of the variable.

    Args:
      strategy: whose workers train.
      worker: this one.
      folder: for checkpoints.
      stops: for each worker that has a notice the step in which it arrives.
      form: how the loop takes its batches.
      config: of the handler.
    """
    iterator = iter(strategy.experimental_distribute_dataset(dataset()))
    with strategy.scope():
        value = di.Variable(np.int64(7))
        checkpoint = Checkpoint(value=value, iterator=iterator, steps=0)
        handler = PreemptionCheckpointHandler(strategy.cluster_resolver, checkpoint, folder, config)
    begun: int = checkpoint.steps

    def step(batch: Any) -> None:
        if stops.get(worker) == checkpoint.steps:
            handler._notice.arrived()
        total = int(strategy.reduce("SUM", batch, axis=0))
        value.assign(value.numpy() * 3 + total)

    try:
        if form == "batch before run":
            for batch in iterator:
                handler.run(step, batch)
                checkpoint.steps += 1
        elif form == "batch inside run":
            for _ in range(begun, 14):
                handler.run(lambda: step(next(iterator)))
                checkpoint.steps += 1
        else:
            with handler.watch_preemption_scope():
                for batch in iterator:
                    step(batch)
                    checkpoint.steps += 1
                    handler.save_checkpoint_if_preempted()
    except SystemExit as end:
        return end.code, int(value.numpy()), checkpoint.steps, handler.total_run_calls
    return "done", int(value.numpy()), checkpoint.steps, handler.total_run_calls


def expected() -> int:
    value = np.int64(7)
    for batch in dataset():
        value = value * 3 + batch.sum()
    return int(value)


FORMS = ["batch before run", "batch inside run", "after the step"]


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(FORMS),
    st.lists(
        st.tuples(st.integers(1, 3), st.dictionaries(st.integers(0, 2), st.integers(0, 16), max_size=2)), max_size=3
    ),
)
def test_interrupted_runs_end_as_one_that_was_not(tmp_path_factory: Any, form: str, runs: Any) -> None:
    """Law: whoever is told to end, at whatever step, and however many workers go on: the result is the same."""
    folder = tmp_path_factory.mktemp("preemption")
    for workers, stops in [*runs, (2, {})]:
        ends = on_workers([1] * workers, lambda s, w, stops=stops: train(s, w, folder, stops, form))
        assert len(set(ends)) == 1, ends
        assert ends[0][0] in (143, "done")
        if form != "after the step":
            assert ends[0][3] == ends[0][2] or ends[0][0] == 143
    assert ends[0][:3] == ("done", expected(), 14)


@pytest.mark.parametrize("form", FORMS)
def test_all_end_within_two_steps(tmp_path: Any, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("distinput.distribute.preemption._EVERY_SECONDS", 0)  # as long steps have it
    ends = on_workers([1, 1], lambda s, w: train(s, w, tmp_path, {1: 3}, form))
    assert [end[0] for end in ends] == [143, 143]
    assert ends[0] == ends[1]
    assert 4 <= ends[0][2] <= 6


def test_a_notice_after_the_last_step_changes_nothing(tmp_path: Any) -> None:
    for stop in (13, 14, 99):
        ends = on_workers(
            [1, 1], lambda s, w, stop=stop: train(s, w, tmp_path / str(stop), {0: stop}, "batch before run")
        )
        assert [end[:3] for end in ends] == [("done", expected(), 14)] * 2


class StepClock(threading.local, Clock):
    """One for each worker, which only its own steps move: what is left of a grace period is a number of steps."""


@pytest.mark.parametrize("workers", [1, 2])
def test_a_grace_period_is_used_for_training(
    tmp_path: Any, workers: int, caplog: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = StepClock()
    monkeypatch.setattr("distinput.distribute.preemption.time", clock)
    monkeypatch.setattr("distinput.distribute.preemption.perf_counter", clock.monotonic)
    config = TerminationConfig(lambda: False, grace_period=2.0)

    def slow(strategy: Any, worker: int) -> Any:
        iterator = iter(strategy.experimental_distribute_dataset(Dataset.range(10_000).batch(workers)))
        with strategy.scope():
            value = di.Variable(np.int64(0))
            checkpoint = Checkpoint(value=value, iterator=iterator)
            handler = PreemptionCheckpointHandler(None, checkpoint, tmp_path, config)
        told = 0.0

        def step(batch: Any) -> None:
            nonlocal told
            clock.now += 0.01
            value.assign(value.numpy() + int(strategy.reduce("SUM", batch, axis=0)))
            if handler.total_run_calls == 5:
                told = clock.now
                if worker == 0:
                    handler._notice.arrived()

        try:
            for batch in iterator:
                handler.run(step, batch)
        except SystemExit as end:
            return end.code, clock.now - told, handler.total_run_calls, int(value.numpy())
        return None

    with caplog.at_level(logging.WARNING, logger="distinput"):
        ends = on_workers([1] * workers, slow)
    assert [end[0] for end in ends] == [143] * workers
    assert all(1.6 < end[1] <= 2.0 for end in ends), "all of the grace period but what saving needs"
    assert ends[0][2] > 160, "training went on"
    assert any("training continues for the grace period" in record.message for record in caplog.records)
    who = "worker 0" if workers > 1 else "this process"
    assert any(f"{who} received notice of its end: saved {tmp_path}/ckpt-2" in text for text in caplog.messages)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint", "ckpt-1.npz", "ckpt-2.npz"]
    rows = ends[0][2] * workers
    assert ends[0][3] == rows * (rows - 1) // 2


def test_functions_of_the_user_save_and_end(tmp_path: Any) -> None:
    called: list[Any] = []
    config = TerminationConfig(
        lambda: False,
        exit_fn=lambda: called.append("exit"),
        save_fn=lambda *args, **kwargs: called.append((args, kwargs)),
    )
    handler = PreemptionCheckpointHandler(None, Checkpoint(a=1), tmp_path, config)
    handler.save_checkpoint_if_preempted(1, b=2)
    assert handler._notice is not None
    handler._notice.arrived()
    handler.save_checkpoint_if_preempted(1, b=2)
    assert called == [((1,), {"b": 2}), "exit"]
    handler.save_checkpoint_if_preempted(1, b=2)
    assert len(called) == 2, "the notice was acted on"
    assert handler.run(lambda x: x + 1, 2) == 3


def test_a_manager_saves_though_its_interval_has_not_passed(tmp_path: Any) -> None:
    step = np.array(0)
    manager = CheckpointManager(
        Checkpoint(step=step), tmp_path, 3, step_counter=lambda: int(step), checkpoint_interval=100
    )
    manager.save()
    handler = PreemptionCheckpointHandler(None, manager, termination_config=NEVER)
    step += 5
    assert handler._notice is not None
    handler.run(handler._notice.arrived)
    with pytest.raises(SystemExit) as end:
        handler.run(print)
    assert end.value.code == 143
    assert manager.latest_checkpoint == f"{tmp_path}/ckpt-2"
    assert handler.total_run_calls == 1


def test_a_new_iterator_is_saved_as_it_was_when_it_was_set(tmp_path: Any) -> None:
    checkpoint: Any = Checkpoint(iterator=iter(Dataset.range(2)))
    handler = PreemptionCheckpointHandler(None, checkpoint, tmp_path, NEVER)
    for _ in checkpoint.iterator:
        handler.run(handler._notice.arrived)  # type: ignore[union-attr]
        break
    checkpoint.iterator = iter(Dataset.range(5))
    batch = next(checkpoint.iterator)
    with pytest.raises(SystemExit):
        handler.run(print, batch)
    other: Any = Checkpoint(iterator=iter(Dataset.range(5)))
    PreemptionCheckpointHandler(None, other, tmp_path, NEVER)
    assert [int(x) for x in other.iterator] == [0, 1, 2, 3, 4]


def test_an_error_of_the_watching_function_is_raised_in_the_loop(tmp_path: Any) -> None:
    def ask() -> bool:
        raise OSError("no metadata server")

    handler = PreemptionCheckpointHandler(None, Checkpoint(a=1), tmp_path, TerminationConfig(ask))
    wait_until(lambda: handler._notice is not None and handler._notice.error is not None)
    with pytest.raises(OSError, match="no metadata server"):
        handler.run(time.sleep, 0)


def test_workers_that_call_it_unequally_often_are_told(tmp_path: Any) -> None:
    def body(strategy: Any, worker: int) -> Any:
        with strategy.scope():
            handler = PreemptionCheckpointHandler(None, Checkpoint(a=1), tmp_path, NEVER)
        handler._calls += worker
        handler.run(time.sleep, 0)

    for error in on_workers([1, 1], body):
        assert isinstance(error, Mismatch)
        assert "call 1 of the preemption handler" in str(error)
        assert "call 2 of the preemption handler" in str(error)

    def fewer(strategy: Any, worker: int) -> Any:
        with strategy.scope():
            handler = PreemptionCheckpointHandler(None, Checkpoint(a=1), tmp_path, NEVER)
        for _ in range(10 + 200 * worker):
            handler.run(time.sleep, 0)
        return worker

    first, error = on_workers([1, 1], fewer)
    assert first == 0
    assert isinstance(error, CollectiveError)


def test_wrong_arguments_are_refused(tmp_path: Any) -> None:
    with pytest.raises(ValueError, match="a Checkpoint needs a checkpoint_dir"):
        PreemptionCheckpointHandler(None, Checkpoint(a=1))
    with pytest.raises(TypeError, match=r"needs a train\.CheckpointManager or a train\.Checkpoint, got a dict"):
        PreemptionCheckpointHandler(None, {}, tmp_path)


_GROUP_PROGRAM = """
import os, signal, sys
import numpy as np
import distinput as di
def double(x):
    return 2 * x
if __name__ == "__main__":
    iterator = iter(di.data.Dataset.range(200_000).map(double, num_parallel_calls=2, processes=True).batch(500))
    checkpoint = di.train.Checkpoint(total=np.zeros(1, np.int64), iterator=iterator)
    config = di.distribute.experimental.TerminationConfig(exit_fn=lambda: print("saved"))  # and go on
    handler = di.distribute.experimental.PreemptionCheckpointHandler(None, checkpoint, sys.argv[1], config)
    def step(batch):
        checkpoint.total += batch.sum()
        if handler.total_run_calls == 10:
            os.killpg(0, signal.SIGTERM)
    for batch in iterator:
        handler.run(step, batch)
    print(int(checkpoint.total[0]))
"""


def test_a_signal_to_the_whole_group_leaves_the_processes_of_map_to_their_parent(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(_GROUP_PROGRAM)
    words = [sys.executable, str(program), str(tmp_path / "run")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False, start_new_session=True)
    assert done.stdout == f"saved\n{200_000 * 199_999}\n", done.stderr


_PROGRAM = """
import json, os, signal, sys, threading, time
import numpy as np
import distinput as di
folder, pause, told_after = sys.argv[1], *map(float, sys.argv[2:])
iterator = iter(di.data.Dataset.range(300).shuffle(50, seed=2).batch(3))
total = np.zeros(1, np.int64)
checkpoint = di.train.Checkpoint(total=total, iterator=iterator, seen=[])
handler = di.distribute.experimental.PreemptionCheckpointHandler(None, checkpoint, folder)
def step(batch):
    time.sleep(pause)
    total[:] = total * 3 + batch.sum()
    checkpoint.seen.extend(batch.tolist())
    if pause and len(checkpoint.seen) == 300:
        notice.join()  # else the program may end first
if pause:
    notice = threading.Timer(told_after, os.kill, (os.getpid(), signal.SIGTERM))
    notice.daemon = True
    notice.start()
for batch in iterator:
    handler.run(step, batch)
print(json.dumps([total.tolist(), checkpoint.seen]))
"""


@pytest.mark.slow
def test_a_process_that_gets_sigterm_again_and_again_ends_right(tmp_path: Any) -> None:
    """Law, with real signals at random moments: every record once, and the same number at the end."""
    seed = new_seed()
    draw = random.Random(seed)
    codes = []
    for round_ in range(30):
        pause, told_after = ("0.003", str(draw.uniform(0, 0.08))) if round_ < 6 else ("0", "0")
        words = [sys.executable, "-c", _PROGRAM, str(tmp_path), pause, told_after]
        done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
        said, errors = done.stdout, done.stderr
        codes.append(done.returncode)
        if done.returncode != 143:
            break
        assert "this process received SIGTERM: saved" in errors
    assert codes[-1] == 0, f"seed {seed}: {codes}\n{errors}"
    assert len(codes) > 1, "nothing was interrupted"
    total, seen = json.loads(said)
    assert sorted(seen) == list(range(300))
    value = np.zeros(1, np.int64)
    for batch in Dataset.range(300).shuffle(50, seed=2).batch(3):
        value[:] = value * 3 + batch.sum()
    assert total == value.tolist()
