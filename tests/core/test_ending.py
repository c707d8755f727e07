# SPDX-License-Identifier: Apache-2.0
"""What runs in the background is ended once: by its owner, by a finalizer that waits for nothing, or with the program."""

import os
import subprocess
import sys
from weakref import WeakSet

import pytest

from distinput.run import threads
from distinput.run.threads import Ending

pytestmark = pytest.mark.fresh_process


class Background(Ending):
    def __init__(self) -> None:
        self.ends: list[float | None] = []
        self.begun()

    def end(self, patience: float | None) -> None:
        self.ends.append(patience)


def test_closing_waits_and_dropping_afterwards_does_nothing() -> None:
    each = Background()
    each.close()
    each.drop()
    assert each.ends == [None]
    each.close()
    assert each.ends == [None, None]


def test_dropping_waits_for_nothing_and_is_done_once() -> None:
    each = Background()
    each.drop()
    each.drop()
    assert each.ends == [0.0]


def test_a_fork_leaves_what_belongs_to_its_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    each = Background()
    process = os.getpid()
    monkeypatch.setattr(threads.os, "getpid", lambda: process + 1)
    each.drop()
    threads._end_all()
    assert not each.ends


def test_no_error_keeps_the_end_of_the_program_from_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(Background):
        def end(self, patience: float | None) -> None:
            super().end(patience)
            raise RuntimeError

    monkeypatch.setattr(threads, "_open", WeakSet())
    made = [Broken(), Background(), Broken(), Background()]
    made[1].close()
    threads._end_all()
    threads._end_all()
    assert [each.ends for each in made] == [[1.0], [None], [1.0], [1.0]]


def test_a_real_program_ends_what_is_open_before_its_modules_are_gone() -> None:
    code = (
        "from distinput.run.threads import Ending\n"
        "class Background(Ending):\n"
        "    def __init__(self): self.begun()\n"
        "    def end(self, patience):\n"
        "        import json\n"
        "        print(json.dumps(['ended', patience]))\n"
        "kept = Background()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=True)
    assert done.stdout.strip() == '["ended", 1.0]'


LATE = """
import threading
import distinput as di

def elements():
    threading.main_thread().join()  # Python waits for threads of the program, and has begun to end
    print(di.data.Dataset.range(5).map(lambda x: x + 1).batch(4).to_list())

threading.Thread(target=elements).start()
"""


def test_the_first_pass_may_begin_when_the_program_ends() -> None:
    run = subprocess.run([sys.executable, "-c", LATE], capture_output=True, text=True, check=False, timeout=300)
    assert run.stdout == "[[1, 2, 3, 4], [5]]\n", run.stderr
