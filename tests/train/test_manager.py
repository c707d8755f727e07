# SPDX-License-Identifier: Apache-2.0
"""The manager: which checkpoints stay, which one is the latest, and what becomes of damage and of killed processes."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from distinput.errors import DataLossError, FailedPreconditionError, InputWarning
from distinput.train import Checkpoint, CheckpointManager, latest_checkpoint
from tests.distribute.workers import on_workers


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_latest_stay_and_the_next_manager_continues(tmp_path: Any) -> None:
    checkpoint = Checkpoint(a=np.zeros(1))
    manager = CheckpointManager(checkpoint, tmp_path, max_to_keep=2)
    assert (manager.latest_checkpoint, manager.checkpoints, manager.restore_or_initialize()) == (None, [], None)
    for number in range(3):
        checkpoint.a[:] = number
        manager.save()
    assert names(tmp_path) == ["checkpoint", "ckpt-2.npz", "ckpt-3.npz"]
    other = Checkpoint(a=np.full(1, 9.0))
    manager = CheckpointManager(other, tmp_path, max_to_keep=2)
    assert manager.checkpoints == [f"{tmp_path}/ckpt-2", f"{tmp_path}/ckpt-3"]
    assert manager.restore_or_initialize() == f"{tmp_path}/ckpt-3" == manager.latest_checkpoint
    assert other.a.tolist() == [2]
    assert manager.save() == f"{tmp_path}/ckpt-4"
    assert names(tmp_path) == ["checkpoint", "ckpt-3.npz", "ckpt-4.npz"]
    assert (manager.directory, manager.checkpoint) == (str(tmp_path), other)


def test_all_stay_where_no_number_is_given(tmp_path: Any) -> None:
    manager = CheckpointManager(Checkpoint(a=1), tmp_path / "deep" / "er", max_to_keep=None, checkpoint_name="model")
    paths = [manager.save() for _ in range(4)]
    assert manager.checkpoints == paths == [f"{tmp_path}/deep/er/model-{number}" for number in range(1, 5)]


def test_some_stay_for_good(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1_000_000.0]
    monkeypatch.setattr("distinput.train.manager.time.time", lambda: now[0])
    manager = CheckpointManager(Checkpoint(a=1), tmp_path, 1, keep_checkpoint_every_n_hours=2)
    for _ in range(7):
        now[0] += 3600
        manager.save()
    # Saved in the hours 1 to 7: the first that is two hours behind the start is that of hour 2, then those of 4 and 6.
    assert names(tmp_path) == ["checkpoint", "ckpt-2.npz", "ckpt-4.npz", "ckpt-6.npz", "ckpt-7.npz"]
    assert manager.checkpoints == [f"{tmp_path}/ckpt-7"]


def test_the_interval_is_counted_in_steps(tmp_path: Any) -> None:
    step = np.array(0)
    manager = CheckpointManager(
        Checkpoint(step=step), tmp_path, None, step_counter=lambda: int(step), checkpoint_interval=3
    )
    saved = []
    for number in range(8):
        step[...] = number
        if manager.save() is not None:
            saved.append(number)
    assert saved == [0, 3, 6]
    assert manager.save(check_interval=False) is not None
    assert manager.save(check_interval=False) is None, "this step was saved already"
    manager = CheckpointManager(
        Checkpoint(step=step), tmp_path, None, step_counter=lambda: int(step), checkpoint_interval=3
    )
    manager.restore_or_initialize()
    assert manager.save() is None
    assert manager.checkpoint_interval == 3


def test_numbers_may_be_given(tmp_path: Any) -> None:
    checkpoint = Checkpoint(a=1)
    manager = CheckpointManager(checkpoint, tmp_path, 2)
    assert manager.save(checkpoint_number=np.int64(40)) == f"{tmp_path}/ckpt-40"
    assert manager.save() == f"{tmp_path}/ckpt-2"
    assert int(checkpoint.save_counter) == 2


def test_init_fn_is_called_where_there_is_nothing(tmp_path: Any) -> None:
    called = []
    manager = CheckpointManager(Checkpoint(a=1), tmp_path, 2, init_fn=lambda: called.append(1))
    assert manager.restore_or_initialize() is None
    manager.save()
    assert manager.restore_or_initialize() is not None
    assert called == [1]


def test_wrong_arguments_are_refused(tmp_path: Any) -> None:
    with pytest.raises(ValueError, match="positive integer or `None` for `max_to_keep`, got 0"):
        CheckpointManager(Checkpoint(), tmp_path, 0)
    for wrong in ("a", 1.5):
        with pytest.raises(TypeError, match=f"CheckpointManager: max_to_keep must be an integer, got {wrong!r}"):
            CheckpointManager(Checkpoint(), tmp_path, wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="`step_counter` should be passed"):
        CheckpointManager(Checkpoint(), tmp_path, 1, checkpoint_interval=3)
    with pytest.raises(ValueError, match="must be the name of a file, got 'a/b'"):
        CheckpointManager(Checkpoint(), tmp_path, 1, checkpoint_name="a/b")


# ---- damage


def damaged(path: Path, how: str) -> None:
    content = bytearray(path.read_bytes())
    if how == "cut off":
        path.write_bytes(content[: len(content) // 2])
    elif how == "changed":
        content[len(content) // 3] ^= 4
        path.write_bytes(content)
    elif how == "empty":
        path.write_bytes(b"")
    else:
        path.unlink()


@pytest.mark.parametrize("how", ["cut off", "changed", "empty", "gone"])
def test_the_one_before_a_damaged_one_is_taken(tmp_path: Any, how: str) -> None:
    checkpoint = Checkpoint(a=np.zeros(50))
    manager = CheckpointManager(checkpoint, tmp_path, None)
    for number in range(3):
        checkpoint.a[:] = number
        manager.save()
    damaged(tmp_path / "ckpt-3.npz", how)
    other = Checkpoint(a=np.zeros(50))
    says = r"ckpt-3\.npz: (the checkpoint is damaged|is not there).*ckpt-2 is taken"
    with pytest.warns(InputWarning, match=says):
        path = CheckpointManager(other, tmp_path, None).restore_or_initialize()
    assert path == f"{tmp_path}/ckpt-2"
    assert other.a.tolist() == [1] * 50
    with pytest.warns(InputWarning, match=says):
        assert latest_checkpoint(tmp_path) == path


def test_where_all_are_damaged_nobody_starts_from_nothing(tmp_path: Any) -> None:
    manager = CheckpointManager(Checkpoint(a=1), tmp_path, None)
    for _ in range(2):
        manager.save()
    for path in tmp_path.glob("*.npz"):
        damaged(path, "cut off")
    with pytest.raises(DataLossError, match=r"no checkpoint in this folder can be read.*ckpt-2.*ckpt-1"):
        manager.restore_or_initialize()


@pytest.mark.parametrize("content", [b"", b"{", b'{"format": "distinput.checkpoints"}', b"\xff", b"[]", b"model: 3"])
def test_a_damaged_record_is_made_up_from_the_names(tmp_path: Any, content: bytes) -> None:
    manager = CheckpointManager(Checkpoint(a=1), tmp_path, None)
    for _ in range(11):
        manager.save()
    (tmp_path / "checkpoint").write_bytes(content)
    with pytest.warns(InputWarning, match="the record of checkpoints is damaged"):
        assert latest_checkpoint(tmp_path) == f"{tmp_path}/ckpt-11"
    (tmp_path / "checkpoint").unlink()
    assert latest_checkpoint(tmp_path) == f"{tmp_path}/ckpt-11"


def test_what_a_process_could_not_remove_any_more_is_removed_by_the_next_save(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager = CheckpointManager(Checkpoint(a=1), tmp_path, 1)
    manager.save()
    with monkeypatch.context() as killed:
        killed.setattr("distinput.train.manager.remove_file", lambda path: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            manager.save()
    again = CheckpointManager(Checkpoint(a=1), tmp_path, 1)
    again.restore_or_initialize()
    again.save()
    assert [name for name in names(tmp_path) if name.endswith(".npz")] == [
        f"{again.checkpoints[0].rpartition('/')[2]}.npz"
    ]


_SAVER = """
import sys, numpy as np, distinput as di
from distinput.train import Checkpoint, CheckpointManager
iterator = iter(di.data.Dataset.range(1_000_000_000))
checkpoint = Checkpoint(a=np.zeros(200_000), b=[np.zeros(3)], iterator=iterator, n=0)
manager = CheckpointManager(checkpoint, sys.argv[1], max_to_keep=2)
manager.restore_or_initialize()
while True:
    checkpoint.n += 1
    checkpoint.a += 1
    checkpoint.b[0] += 1
    assert next(iterator) == checkpoint.n - 1
    manager.save()
    sys.stdout.write(f"{checkpoint.n}\\n")
    sys.stdout.flush()
"""


@pytest.mark.slow
def test_a_process_killed_at_any_moment_leaves_what_it_saved(tmp_path: Any) -> None:
    """Law: after SIGKILL at any moment, the latest checkpoint is whole and is the last one that `save` returned, or newer."""
    seed = random.randrange(1 << 30)
    draw = random.Random(seed)
    last = 0
    for _ in range(8):
        with subprocess.Popen(
            [sys.executable, "-c", _SAVER, str(tmp_path)], stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            told = [int(process.stdout.readline())]
            assert told[0] >= last + 1, f"seed {seed}: begun again behind what was saved"
            time.sleep(draw.uniform(0, 0.15))
            os.kill(process.pid, signal.SIGKILL)
            told += [int(line) for line in process.stdout.read().splitlines(keepends=True) if line.endswith("\n")]
        iterator: Any = iter(range(0))
        import distinput as di

        iterator = iter(di.data.Dataset.range(1_000_000_000))
        checkpoint: Any = Checkpoint(a=np.zeros(200_000), b=[np.zeros(3)], iterator=iterator, n=0)
        path = CheckpointManager(checkpoint, tmp_path, max_to_keep=2).restore_or_initialize()
        last = checkpoint.n
        assert last in (told[-1], told[-1] + 1), f"seed {seed}: {path}"
        assert (checkpoint.a == last).all()
        assert (checkpoint.b[0] == last).all()
        assert next(iterator) == last
        iterator.close()
        assert sum(name.endswith(".npz") for name in names(tmp_path)) <= 4, "what was to be removed stays behind"


# ---- several workers


def test_the_first_worker_decides(tmp_path: Any) -> None:
    def body(strategy: Any, worker: int) -> Any:
        with strategy.scope():
            checkpoint = Checkpoint(a=np.zeros(2))
            manager = CheckpointManager(checkpoint, tmp_path / f"disk {worker}", max_to_keep=2)
        assert manager.restore_or_initialize() is None
        for number in range(3):
            checkpoint.a[:] = number
            manager.save()
        checkpoint.a[:] = 9
        path = manager.restore_or_initialize()
        return checkpoint.a.tolist(), os.path.basename(str(path)), len(manager.checkpoints), manager.latest_checkpoint

    results = on_workers([1, 1], body)
    assert [result[:3] for result in results] == [([2, 2], "ckpt-3", 2)] * 2
    assert results[1][3] == f"{tmp_path}/disk 1/ckpt-3"
    assert names(tmp_path) == ["disk 0"]


def test_a_worker_that_sees_another_latest_checkpoint_is_named(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("distinput.train.manager._STALE_SECONDS", 0.2)
    for worker in range(2):
        manager = CheckpointManager(Checkpoint(a=1), tmp_path / str(worker), None)
        for _ in range(1 + worker):
            manager.save()

    def body(strategy: Any, worker: int) -> Any:
        with strategy.scope():
            CheckpointManager(Checkpoint(a=1), tmp_path / str(worker), None).restore_or_initialize()

    for error in on_workers([1, 1], body):
        assert isinstance(error, FailedPreconditionError)
        assert "is ckpt-2 on worker 1 and ckpt-1 on worker 0" in str(error)


def test_workers_take_the_one_before_a_damaged_one_together(tmp_path: Any) -> None:
    manager = CheckpointManager(Checkpoint(a=np.arange(2)), tmp_path, None)
    for _ in range(2):
        manager.save()
    damaged(tmp_path / "ckpt-2.npz", "cut off")

    def body(strategy: Any, worker: int) -> Any:
        with strategy.scope():
            manager = CheckpointManager(Checkpoint(a=np.zeros(2, np.int64)), tmp_path, None)
        return manager.restore_or_initialize()

    with pytest.warns(InputWarning, match="damaged"):
        assert on_workers([1, 1, 1], body) == [f"{tmp_path}/ckpt-1"] * 3


def test_a_checkpoint_saved_again_under_a_removed_name_stays(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that was killed left the removal of the older one to the next save."""
    checkpoint = Checkpoint(a=np.zeros(1))
    manager = CheckpointManager(checkpoint, tmp_path, max_to_keep=1)
    manager.save()
    with monkeypatch.context() as killed:
        killed.setattr(CheckpointManager, "_remove", lambda self, names: None)
        manager.save()
    assert names(tmp_path) == ["checkpoint", "ckpt-1.npz", "ckpt-2.npz"]
    assert Checkpoint(a=np.ones(1)).save(tmp_path / "ckpt") == f"{tmp_path}/ckpt-1"
    manager.save()
    assert names(tmp_path) == ["checkpoint", "ckpt-1.npz", "ckpt-3.npz"]
