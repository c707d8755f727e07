# SPDX-License-Identifier: Apache-2.0
import errno
import importlib.util
import itertools
import os
import signal
import subprocess
import sys
import time
import types
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from distinput.errors import UnavailableError
from distinput.run import processes
from distinput.run.processes import Dealer, Processes, Workforce, check_sendable
from distinput.run.segments import Closed
from distinput.testing.left_behind import _open_files
from tests.patience import wait_until


def always() -> bool:
    return True


def answer(order: Any) -> Any:
    """What the workers of these tests do."""
    match order if isinstance(order, str | tuple) else None:
        case "pid":
            return os.getpid()
        case "die":
            os.kill(os.getpid(), signal.SIGKILL)
        case "leave":
            os._exit(3)
        case "fail":
            raise ValueError("no such luck")
        case "view":
            return memoryview(b"")
        case ("sleep", seconds):
            time.sleep(seconds)
        case ("sleep once", mark):
            with suppress(FileExistsError), open(mark, "x"):
                time.sleep(600)
    return order


def is_gone(pid: int, seconds: float = 60.0) -> bool:
    """Whether a process has ended, or does within this time; one that nobody has waited for yet has."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
            threads = len(list(Path(f"/proc/{pid}/task").iterdir()))
        except OSError:
            return True
        if state == "Z" and threads == 1:  # its first thread may end before the others, and cannot be waited for then
            return True
        time.sleep(0.01)
    return False


def is_waited_for(pid: int, seconds: float = 60.0) -> bool:
    """Whether a process has ended and nothing is left of it, or soon will not be."""
    deadline = time.monotonic() + seconds
    while Path(f"/proc/{pid}").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    return not Path(f"/proc/{pid}").exists()


@pytest.fixture
def workers() -> Iterator[Processes]:
    made = Processes(answer, 2, "test")
    yield made
    made.close()


@pytest.mark.parametrize("kills", [1, 3])
def test_a_worker_that_is_killed_while_it_starts_is_replaced(kills: int, monkeypatch: pytest.MonkeyPatch) -> None:
    start, started = processes._started, []

    def killed() -> Any:
        started.append(start())
        if len(started) <= kills:
            started[-1][0].kill()
        return started[-1]

    monkeypatch.setattr(processes, "_started", killed)
    made = Processes(answer, 2, "test")
    try:
        for worker in (0, 1):
            made.send(worker, worker)
            assert made.receive(worker, always) == worker
        assert len(started) == 2 + kills
    finally:
        made.close()


@pytest.mark.parametrize("interrupted", [("_execute_child", 1), ("_execute_child", 2), ("wait", 1), ("wait", 2)])
def test_an_interrupt_while_workers_start_or_end_leaves_none(
    interrupted: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    name, number = interrupted
    call, calls, begun = getattr(subprocess.Popen, name), itertools.count(1), list[int]()

    def interrupting(self: "subprocess.Popen[bytes]", *args: Any, **kwargs: Any) -> Any:
        answer = call(self, *args, **kwargs) if name == "_execute_child" else None
        begun.append(self.pid)
        if next(calls) == number:
            signal.raise_signal(signal.SIGINT)
        return call(self, *args, **kwargs) if name == "wait" else answer

    monkeypatch.setattr(subprocess.Popen, name, interrupting)
    with pytest.raises(KeyboardInterrupt):
        Processes(answer, 2, "map(processes=True)").close()
    assert begun
    for pid in begun:
        assert is_waited_for(pid)


def test_workers_that_end_each_time_they_start_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    start = processes._started

    def killed() -> Any:
        made = start()
        made[0].kill()
        return made

    monkeypatch.setattr(processes, "_started", killed)
    with pytest.raises(UnavailableError, match="was ended by signal 9"):
        Processes(answer, 2, "test")


def test_each_worker_answers_in_order(workers: Processes) -> None:
    for worker in (0, 1):
        for order in ("pid", 7, "fail", np.arange(5), "view", "pid"):
            workers.send(worker, order)
        assert workers.receive(worker, always) == workers.pids[worker]
        assert workers.receive(worker, always) == 7
        with pytest.raises(RuntimeError, match=r"test: worker process \d+ failed:\n(.|\n)*ValueError: no such luck"):
            workers.receive(worker, always)
        assert workers.receive(worker, always).tolist() == [0, 1, 2, 3, 4]
        with pytest.raises(RuntimeError, match="memoryview"):
            workers.receive(worker, always)
        assert workers.receive(worker, always) == workers.pids[worker]


@pytest.mark.parametrize("order, how", [("die", "was ended by signal 9"), ("leave", "ended with status 3")])
def test_work_that_ends_its_worker_each_time_is_an_error_and_no_hang(workers: Processes, order: str, how: str) -> None:
    first = workers.pids
    workers.send(1, order)
    begin = time.monotonic()
    with pytest.raises(UnavailableError, match=rf"test: worker process \d+ {how} while it had work, and so did 3"):
        workers.receive(1, always)
    assert time.monotonic() - begin < 60
    assert workers.pids[0] == first[0]
    assert workers.pids[1] != first[1]
    assert workers.broken


def test_what_a_worker_had_not_answered_is_given_to_another(workers: Processes, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    long = ("sleep once", str(mark))  # so that the worker is killed before its answer, however late that is
    for order in (1, long, 3, np.arange(9)):
        workers.send(0, order)
    assert workers.receive(0, always) == 1
    lost = workers.pids[0]
    wait_until(mark.exists)
    os.kill(lost, signal.SIGKILL)
    assert workers.receive(0, always) == long
    assert is_gone(lost)
    assert workers.pids[0] != lost
    assert workers.receive(0, always) == 3
    assert workers.receive(0, always).tolist() == list(range(9))
    os.kill(workers.pids[0], signal.SIGKILL)
    assert is_gone(workers.pids[0])
    workers.send(0, 5)
    assert workers.receive(0, always) == 5
    assert not workers.broken
    workers.send(0, ("sleep", 60))
    os.kill(workers.pids[0], signal.SIGKILL)
    workers.drain(always)  # nobody asks for what it had
    workers.send(0, 6)
    assert workers.receive(0, always) == 6


def test_workers_in_the_middle_of_a_message_are_not_used_again(
    workers: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After an interrupt nobody knows which answers are still to come."""
    workers.send(0, 5)

    def interrupted(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr("distinput.run.segments.SegmentConnection.receive", interrupted)
    with pytest.raises(KeyboardInterrupt):
        workers.receive(0, always)
    assert not workers.alive


def test_waiting_for_a_worker_can_be_given_up(workers: Processes) -> None:
    workers.send(0, ("sleep", 60))
    with pytest.raises(Closed):
        workers.receive(0, lambda: False)
    begin = time.monotonic()
    pids = workers.pids
    workers.close()  # a worker that is busy is not waited for
    assert time.monotonic() - begin < 30
    assert all(map(is_gone, pids))


def test_workers_are_kept_until_nobody_has_use_for_them() -> None:
    force = Workforce(lambda: Processes(answer, 1, "test"))
    with force.lent() as first:
        pids = first.pids
        first.send(0, ("sleep", 0.01))  # an answer that is not waited for does not disturb the next user
        with force.lent() as other:
            assert other.pids != pids
            others = other.pids
    with force.lent() as again:
        again.drain(always)
        again.send(0, "pid")
        assert [again.receive(0, always)] in (pids, others)
    del first, other, again, force
    assert all(map(is_gone, [*pids, *others]))


def test_broken_workers_are_replaced() -> None:
    force = Workforce(lambda: Processes(answer, 1, "test"))
    with force.lent() as workers:
        workers.send(0, "die")
        with pytest.raises(UnavailableError):
            workers.receive(0, always)
    with force.lent() as workers:
        workers.send(0, 5)
        assert workers.receive(0, always) == 5


def test_workers_that_ended_while_they_were_idle_are_replaced() -> None:
    force = Workforce(lambda: Processes(answer, 1, "test"))
    with force.lent() as workers:
        (pid,) = workers.pids
    os.kill(pid, signal.SIGKILL)
    assert is_gone(pid)
    with force.lent() as workers:
        workers.send(0, "pid")
        assert workers.receive(0, always) == workers.pids[0] != pid


@pytest.mark.parametrize("function", [lambda x: x, types.SimpleNamespace(f=lambda x: x)])
def test_a_function_that_cannot_be_sent_is_an_error_with_a_cure(function: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(TypeError, match=r"test: .* cannot be sent to worker processes: .* install cloudpickle"):
        Processes(function, 1, "test")


def test_a_local_function_is_refused_before_anything_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(TypeError, match=r"map: .* it has no name that another process could import"):
        check_sendable("map", lambda x: x)
    check_sendable("map", answer)


def test_cloudpickle_is_used_where_it_is_installed() -> None:
    pytest.importorskip("cloudpickle", reason="cloudpickle is not installed")
    check_sendable("test", lambda x: x)
    workers = Processes(lambda x: (x, os.getpid()), 1, "test")
    try:
        workers.send(0, "pid")
        assert workers.receive(0, always) == ("pid", workers.pids[0])
    finally:
        workers.close()


SCRIPT = """
import os, signal, sys
import distinput as di

def twice(x):
    return x * 2

def run():
    ds = di.data.Dataset.range(5).map(twice, num_parallel_calls=1, processes=True)
    print(ds.to_list())
    if "die" in sys.argv:
        it = iter(ds)
        next(it)
        print(*[p for w in [ds._runs().node.workforce] for f in w._idle.workers for p in f.pids], flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
"""
GUARDED = SCRIPT + "\nif __name__ == '__main__':\n    run()\n"


def ran(folder: Path, text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "script.py").write_text(text)
    return subprocess.run(
        [sys.executable, "script.py", *arguments], cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )


@pytest.mark.skipif(
    importlib.util.find_spec("cloudpickle") is not None, reason="cloudpickle sends main's functions whole"
)
def test_a_function_of_the_main_script(tmp_path: Path) -> None:
    assert ran(tmp_path, GUARDED).stdout == "[0, 2, 4, 6, 8]\n"
    failed = ran(tmp_path, SCRIPT + "\nrun()\n")
    assert failed.returncode == 1
    assert "if __name__ == '__main__':" in failed.stderr


def test_workers_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    text = GUARDED.replace("next(it)", "list(it)")
    ended = ran(tmp_path, text, "die")
    assert ended.returncode == -signal.SIGKILL
    pids = [int(pid) for pid in ended.stdout.splitlines()[1].split()]
    assert len(pids) == 1
    assert all(map(is_gone, pids))


def test_a_worker_that_cannot_be_started_leaves_no_open_file(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*args: Any, **options: Any) -> Any:
        raise OSError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(subprocess, "Popen", fails)
    before = _open_files()
    with pytest.raises(OSError, match="temporarily unavailable") as caught:  # which holds the frames
        Processes(answer, 1, "map(processes=True)")
    assert caught.value.errno == errno.EAGAIN
    # A thread that compiles kernels has files, and what earlier tests left may be closed.
    begun = _open_files() - before
    assert not [name for name in begun if name.startswith(("/memfd:distinput ", "socket:", "pipe:"))]


class Told:
    """Two processes that answer when a test says so."""

    pids = (70, 71)

    def __init__(self) -> None:
        self.got: list[list[int]] = [[], []]
        self.answers: list[list[Any]] = [[], []]

    def __len__(self) -> int:
        return 2

    def send(self, worker: int, work: int) -> None:
        self.got[worker].append(work)

    def ready(self, worker: int) -> bool:
        return bool(self.answers[worker])

    def receive(self, worker: int, _: Callable[[], bool]) -> Any:
        answer = self.answers[worker].pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer


def test_work_goes_to_the_process_that_has_the_fewest() -> None:
    told = Told()
    dealer = Dealer(cast("Any", told), always)
    sent = [dealer.send(work) for work in range(4)]
    assert told.got == [[0, 2], [1, 3]]
    told.answers[1] = ["one", RuntimeError("three cannot be sent")]
    sent += [dealer.send(work) for work in (4, 5, 6)]
    assert told.got == [[0, 2, 6], [1, 3, 4, 5]], "the second one had answered"
    assert [bool(each.pid) for each in sent] == [False, True, False, True, False, False, False]
    assert not dealer.ready(sent[0])
    told.answers[0] = ["zero", "two"]
    assert [dealer.receive(each) for each in sent[:3]] == ["zero", "one", "two"]
    assert dealer.ready(sent[3])
    with pytest.raises(RuntimeError, match="three cannot be sent"):
        dealer.receive(sent[3])
    assert [each.pid for each in sent[:5]] == [70, 71, 70, 71, 0]


def test_workers_that_answer_at_once_have_their_turns() -> None:
    told = Told()
    dealer = Dealer(cast("Any", told), always)
    for work in range(4):
        dealer.send(work)
        told.answers[work % 2].append(None)
    assert told.got == [[0, 2], [1, 3]]


@pytest.mark.parametrize("error", [Closed("gave up"), UnavailableError("ended"), KeyboardInterrupt()])
def test_what_ends_a_pass_does_not_wait_for_its_turn(error: BaseException) -> None:
    told = Told()
    dealer = Dealer(cast("Any", told), always)
    dealer.send(0)
    told.answers[0] = [error]
    with pytest.raises(type(error)):
        dealer.send(1)
    assert told.got == [[0], []]
