# SPDX-License-Identifier: Apache-2.0
"""Processes and shared memory as Linux tells of them."""

import os
import subprocess
import sys
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path

import pytest

from distinput.testing.judge import traces

pytestmark = pytest.mark.skipif(not traces.MEMORY.is_dir() or not Path("/proc/self").exists(), reason="not Linux")


def test_processes_are_found_by_their_mark_and_by_their_session(tmp_path: Path) -> None:
    mark = f"DISTINPUT_OF_TEST={tmp_path}"
    words = [sys.executable, "-S", "-c", "import time; print(); time.sleep(600)"]
    environment = {**os.environ, "DISTINPUT_OF_TEST": str(tmp_path)}
    with subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        process.stdout.readline()  # it has its own environment now
        try:
            assert set(traces.living(mark, ())) == {process.pid}
            assert set(traces.living("no such mark", [process.pid])) == {process.pid}
        finally:
            traces.end([process.pid, process.pid])
        process.wait()
        assert traces.living(mark, [process.pid]) == {}


def test_shared_memory_that_is_in_use_is_not_removed() -> None:
    used, other = SharedMemory(create=True, size=4096), SharedMemory(create=True, size=4096)
    names = {used.name, other.name}
    assert names <= traces.mapped([os.getpid()])
    other.close()
    traces.remove(names)
    assert traces.memory() & names == {used.name}
    used.unlink()
    used.close()
