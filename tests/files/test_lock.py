# SPDX-License-Identifier: Apache-2.0
"""A lock that one process at a time holds, and that ends with it."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from distinput.errors import FailedPreconditionError
from distinput.files import paths as module
from distinput.files.paths import FileLock

_HOLD = """
import sys, time
from distinput.files.paths import FileLock
lock = FileLock(sys.argv[1])
print(lock.take(), flush=True)
time.sleep(60)
"""


def test_one_at_a_time(tmp_path: Path) -> None:
    with FileLock(str(tmp_path / "l")) as first, FileLock(str(tmp_path / "l")) as second:
        assert (first.take(), second.take()) == (True, False)
        assert second.holder().startswith(f"process {os.getpid()} on ")
        first.release()
        first.release()
        assert second.take() is True
    assert FileLock(str(tmp_path / "none")).holder() == "another process"


def test_a_process_that_is_killed_releases_it(tmp_path: Path) -> None:
    path = str(tmp_path / "l")
    with subprocess.Popen([sys.executable, "-c", _HOLD, path], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "True\n"
        with FileLock(path) as mine:
            assert mine.take() is False
            assert mine.holder().startswith(f"process {process.pid} ")
            process.send_signal(signal.SIGKILL)
            process.wait()
            assert mine.take() is True


def test_a_lock_of_a_file_that_was_removed_is_taken_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "l"
    answers = [False, True]
    monkeypatch.setattr(module, "has_name", lambda *_: answers.pop(0))
    with FileLock(str(path)) as made:
        assert made.take() is True
    assert answers == []


def test_file_systems_without_locks_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "locked", lambda _: None)
    assert FileLock(str(tmp_path / "l")).take() is None


def test_a_full_disk_does_not_keep_it_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    first = FileLock(str(tmp_path / "l"))
    with monkeypatch.context() as patched:
        patched.setattr(module.os, "write", full)
        assert first.take() is True  # who has it is not told
    first.release()
    with FileLock(str(tmp_path / "l")) as second:
        assert second.take() is True


def test_what_is_no_file_of_its_own_is_no_lock(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("precious")
    os.symlink("precious", tmp_path / "link")
    os.symlink("nothing", tmp_path / "dangling")
    os.symlink("loop", tmp_path / "loop")
    os.link(tmp_path / "precious", tmp_path / "hard")
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "dangling", "loop", "hard", "pipe"):
        lock = FileLock(str(tmp_path / name))
        with pytest.raises(FailedPreconditionError, match=f"{name}: is a link, a pipe or a device, and must be a file"):
            lock.take()
        if name != "hard":
            assert lock.holder() == "another process"
    assert (tmp_path / "precious").read_text() == "precious"
    assert not (tmp_path / "nothing").exists()
