# SPDX-License-Identifier: Apache-2.0
"""Which processes are seen, and what is seen of them."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from distinput.distribute.collectives.membership import ProcessIdentity
from tests.patience import wait_until


@pytest.fixture
def own() -> ProcessIdentity:
    own = ProcessIdentity.current()
    if not own.started:
        pytest.skip("this system does not show when a process was started")
    return own


def other(own: ProcessIdentity, pid: int) -> ProcessIdentity:
    """The identity of a process of this machine, with its start time read here."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return ProcessIdentity(own.machine, pid, int(fields[19]))


def test_an_identity_comes_back() -> None:
    own = ProcessIdentity.current()
    assert ProcessIdentity.decode(own.encode()) == own
    assert own.pid == os.getpid()
    assert len(own.machine) == 16


def test_a_process_of_another_machine_is_unknown() -> None:
    own = ProcessIdentity.current()
    assert own.state_of(ProcessIdentity(b"another machine!", own.pid, own.started)) == "unknown"
    assert own.state_of(ProcessIdentity(own.machine, own.pid, 0)) == "unknown"


def test_this_process_is_alive(own: ProcessIdentity) -> None:
    assert own.state_of(own) == "alive"


def test_a_reused_process_id_is_another_process(own: ProcessIdentity) -> None:
    assert own.state_of(ProcessIdentity(own.machine, own.pid, own.started + 1)) == "dead"


def test_a_process_that_is_stopped_and_then_killed(own: ProcessIdentity) -> None:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        identity = other(own, child.pid)
        assert own.state_of(identity) == "alive"
        child.send_signal(signal.SIGSTOP)
        wait_until(lambda: own.state_of(identity) == "stopped")
        child.kill()
        wait_until(lambda: own.state_of(identity) == "dead")  # a zombie: nobody has waited for it yet
    finally:
        child.kill()
        child.wait()
    assert own.state_of(identity) == "dead"
