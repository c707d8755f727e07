# SPDX-License-Identifier: Apache-2.0
"""The conformance suite of `Collectives`: the same checks and the same faults on every engine, in real processes.

A new engine is tested by `check_processes("package.module:open_group", size=2)`, in which `open_group` is what
`distinput.distribute.backends.COLLECTIVES` names for the engines here; or from a shell by
`python -m distinput.testing.collectives --engine torch --size 2`.
"""

import argparse
import contextlib
import faulthandler
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from distinput.distribute.backends import (
    COLLECTIVES,
    Aborted,
    CollectiveError,
    Collectives,
    CollectiveTimeout,
    Mismatch,
    PeerLost,
    Poisoned,
    open_collectives,
)
from distinput.distribute.backends.fold import OPS, fold

__all__ = [
    "CHECKS",
    "FAULTS",
    "SLOW_CHECKS",
    "Outcome",
    "Report",
    "check_processes",
    "check_threads",
    "fault_threads",
    "run_checks",
]

Array: TypeAlias = npt.NDArray[Any]
Check: TypeAlias = Callable[[Collectives], None]

CHECKS: dict[str, Check] = {}
"""What holds on every engine: a name and a function that every worker calls with its group."""

SLOW_CHECKS: dict[str, Check] = {}
"""What holds too, and takes longer than the timeout of the group; open one with a short one."""

NUMBERS = ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16")
_SLOW = 2.0  # seconds within which an error that needs no waiting has to come, on a machine that is busy


def _check(function: Check) -> Check:
    CHECKS[function.__name__.removeprefix("_")] = function
    return function


def _made(rank: int, dtype: str, shape: Sequence[int], seed: int = 0) -> Array:
    """What a worker brings; every worker can make that of every other one."""
    generator = np.random.Generator(np.random.Philox(key=[seed, rank]))
    bits = generator.integers(-100, 100, size=tuple(shape))
    if dtype[0] in "fc":
        return (bits * 0.37 * (1 + 0.5j if dtype[0] == "c" else 1)).astype(dtype)
    return bits.astype(dtype)  # negative ones become large unsigned ones, whose sums wrap


def _same(actual: Array, expected: Array) -> None:
    assert actual.dtype == expected.dtype, f"dtype {actual.dtype}, expected {expected.dtype}"
    assert actual.shape == expected.shape, f"shape {actual.shape}, expected {expected.shape}"
    np.testing.assert_array_equal(actual, expected)
    assert actual.flags.c_contiguous, "the result is not C-contiguous"
    assert actual.flags.writeable, "the result cannot be written to"


def _raises(kind: type[BaseException] | tuple[type[BaseException], ...], call: Callable[[], object]) -> BaseException:
    begin = time.monotonic()
    found: BaseException | None = None
    try:
        result = call()
    except kind as error:
        found = error
    if found is None:
        raise AssertionError(f"expected {kind}, got {result!r}")
    took = time.monotonic() - begin
    assert took < _SLOW, f"{type(found).__name__} came after {took:.2f} s"
    return found


@_check
def _places(group: Collectives) -> None:
    places = [tuple(place.tolist()) for place in group.all_gather([group.rank, group.size])]
    assert places == [(rank, group.size) for rank in range(group.size)]
    assert 0 <= group.local_rank < group.local_size <= group.size


@_check
def _all_reduce_every_dtype(group: Collectives) -> None:
    for seed, dtype in enumerate(NUMBERS):
        for op in sorted(OPS):
            parts = [_made(rank, dtype, (3, 5), seed) for rank in range(group.size)]
            _same(group.all_reduce(parts[group.rank], op), fold(parts, op))


@_check
def _all_reduce_large(group: Collectives) -> None:
    for seed, dtype in enumerate(NUMBERS):
        for op in ("max", "sum"):
            parts = [_made(rank, dtype, (1500,), seed) for rank in range(group.size)]
            result = group.all_reduce(parts[group.rank], op)
            expected = fold(parts, op)
            if dtype[0] in "fc":
                np.testing.assert_allclose(result, expected, rtol=1e-2 if dtype == "f2" else 1e-4, atol=1e-3)
            else:
                _same(result, expected)
            others = group.all_gather(result)
            assert all(other.tobytes() == result.tobytes() for other in others), f"{dtype} {op} differs between ranks"


@_check
def _all_reduce_deterministic(group: Collectives) -> None:
    parts = [_made(rank, "f4", (3000,)) * np.float32(10.0**rank) for rank in range(group.size)]
    _same(group.all_reduce(parts[group.rank], deterministic=True), fold(parts, "sum"))


@_check
def _all_reduce_in_pieces(group: Collectives) -> None:
    parts = [np.full(600_000, 0.1 + rank) for rank in range(group.size)]  # 4.8 MB
    _same(group.all_reduce(parts[group.rank], deterministic=True), fold(parts, "sum"))


@_check
def _all_reduce_truth_values(group: Collectives) -> None:
    mine = np.array([True, False, group.rank == 0])
    _same(group.all_reduce(mine, "min"), np.array([True, False, group.size == 1]))
    _same(group.all_reduce(mine, "max"), np.array([True, False, True]))
    assert isinstance(_raises(TypeError, lambda: group.all_reduce(mine, "sum")), TypeError)


@_check
def _all_reduce_of_nothing_and_of_one(group: Collectives) -> None:
    _same(group.all_reduce(np.zeros((0, 3), "f4")), np.zeros((0, 3), "f4"))
    _same(group.all_reduce(np.float64(1.5)), np.array(1.5 * group.size))
    _same(group.all_reduce(2, "prod"), np.array(2**group.size))


@_check
def _all_reduce_nan_and_infinity(group: Collectives) -> None:
    for length in (2, 5000):  # inside the header, and by itself
        mine = np.full(length, float(group.rank))
        mine[0] = np.nan if group.rank == group.size - 1 else 0
        mine[1] = np.inf
        for op in ("max", "min", "sum"):
            assert np.isnan(group.all_reduce(mine, op)[0])
        assert group.all_reduce(mine, "sum")[1] == np.inf


@_check
def _any_layout(group: Collectives) -> None:
    base = np.arange(24, dtype=">i4").reshape(4, 6)
    frozen = np.arange(6.0)
    frozen.flags.writeable = False
    for mine in (base, base.T, base[::2, ::-3], np.asfortranarray(base), frozen):
        before = mine.copy()
        result = group.all_reduce(mine)
        _same(result, (mine * group.size).astype(mine.dtype.newbyteorder("=")))
        _same(group.all_gather(mine)[-1], mine.astype(mine.dtype.newbyteorder("=")))
        _same(group.broadcast(mine), mine.astype(mine.dtype.newbyteorder("=")))
        result[...] = 0
        np.testing.assert_array_equal(mine, before)


@_check
def _all_gather_every_dtype(group: Collectives) -> None:
    for dtype in ("?", *NUMBERS, "M8[us]", "m8[s]", "S3", "U2"):
        for rows in (lambda rank: rank, lambda rank: 400 * (rank % 2), lambda _: 3000, lambda _: 0):  # uneven, empty
            parts = [_made(rank, "i8", (rows(rank), 2)).astype(dtype) for rank in range(group.size)]
            gathered = group.all_gather(parts[group.rank])
            assert len(gathered) == group.size
            for actual, expected in zip(gathered, parts, strict=True):
                _same(actual, expected)


@_check
def _all_gather_scalars(group: Collectives) -> None:
    for rank, value in enumerate(group.all_gather(np.float32(group.rank))):
        _same(value, np.array(rank, "f4"))


@_check
def _all_gather_text(group: Collectives) -> None:
    parts = [
        np.array([b"", b"a\0b" * rank, "\u00fc\U0001f642"] * (1 + 100 * rank), object) for rank in range(group.size)
    ]
    for actual, expected in zip(group.all_gather(parts[group.rank]), parts, strict=True):
        assert (actual.dtype, actual.tolist()) == (expected.dtype, expected.tolist())
    widths = [np.array(["x" * (1 + rank), "y"]) for rank in range(group.size)]
    for actual, expected in zip(group.all_gather(widths[group.rank]), widths, strict=True):
        _same(actual, expected)


@_check
def _broadcast_from_every_root(group: Collectives) -> None:
    for root in range(group.size):
        for dtype, shape in (("f4", (2, 3)), ("u2", (0, 3)), ("c16", ()), ("f8", (4000,)), ("?", (9,)), ("S4", (3,))):
            expected = _made(root, "i8", shape).astype(dtype)
            _same(group.broadcast(expected if group.rank == root else None, root), expected)
        words = np.array([[b"x", "\u00fc"]], object)
        assert group.broadcast(words if group.rank == root else None, root).tolist() == words.tolist()


@_check
def _barrier_waits(group: Collectives) -> None:
    if group.rank == group.size - 1:
        time.sleep(0.2)
    arrived = time.monotonic()
    group.barrier()
    left = time.monotonic()
    if group.local_size == group.size:  # one machine, one clock
        assert left >= max(float(time_) for time_ in group.all_gather(arrived))


@_check
def _a_late_peer_within_the_time(group: Collectives) -> None:
    if group.rank == 0:
        time.sleep(1.0)
    assert group.all_reduce(1).item() == group.size


@_check
def _different_calls_are_refused_everywhere(group: Collectives) -> None:
    odd = group.rank == group.size - 1
    calls: list[Callable[[], object]] = [
        lambda: group.all_reduce(np.zeros(4 if odd else 3)),
        lambda: group.all_reduce(np.zeros((2, 3) if odd else (3, 2))),
        lambda: group.all_reduce(np.zeros(5000 if odd else 3)),
        lambda: group.all_reduce(np.zeros(3, "f4" if odd else "f8")),
        lambda: group.all_reduce(np.zeros(3), "max" if odd else "sum"),
        lambda: group.all_reduce(np.zeros(3), deterministic=odd),
        lambda: group.all_gather(np.zeros((2, 3 if odd else 4))),
        lambda: group.all_gather(np.zeros(() if odd else (1,))),
        lambda: group.all_gather(np.zeros(2, "i4" if odd else "u4")),
        lambda: group.all_gather(np.array(["x"], object if odd else "U1")),
        lambda: group.broadcast(np.zeros(2), group.size - 1 if odd else 0),
        lambda: group.barrier() if odd else group.all_reduce(1),
        lambda: group.dup("x" if odd else "y"),
    ]
    if group.size == 1:
        return
    for call in calls:
        error = _raises(Mismatch, call)
        assert f"rank {group.size - 1}: " in str(error), f"no table of who called what: {error}"
        assert group.all_reduce(1).item() == group.size  # and the next call works


@_check
def _an_impossible_call_of_one_worker(group: Collectives) -> None:
    odd = group.rank == group.size - 1
    calls: list[tuple[type[BaseException], Callable[[], object]]] = [
        (TypeError, lambda: group.all_reduce(np.array([None]) if odd else 1)),
        (TypeError, lambda: group.all_reduce("x" if odd else 1)),
        (ValueError, lambda: group.all_reduce(1, "median" if odd else "sum")),
        (TypeError, lambda: group.all_gather(np.array([{}]) if odd else [1])),
        (ValueError, lambda: group.broadcast(1, group.size if odd else 0)),
        (TypeError, lambda: group.broadcast(None, group.size - 1)),
    ]
    for kind, call in calls:
        error = _raises(kind if odd else Mismatch, call)
        assert isinstance(error, kind if odd else Mismatch)
        assert group.all_reduce(1).item() == group.size


@_check
def _agreements_ahead(group: Collectives) -> None:
    ranks = sum(range(group.size))
    ahead = []
    for step in range(12):
        ahead.append(group.agree([1, group.rank, -step]))
        if step % 3 == 0:
            assert group.all_reduce(step).item() == step * group.size  # in between, while agreements are under way
        if len(ahead) > 4:
            assert ahead.pop(0).result() == [group.size, ranks, -(step - 4) * group.size]
    last = ahead[-1]
    assert last.result() == [group.size, ranks, -11 * group.size]
    assert all(agreement.done() for agreement in ahead)  # they complete in the order of posting
    assert last.result() == last.result()


@_check
def _an_agreement_is_not_done_early(group: Collectives) -> None:
    if group.size == 1:
        return
    group.barrier()
    if group.rank == group.size - 1:
        time.sleep(0.5)
        assert group.agree([7]).result() == [7 * group.size]
        return
    agreement = group.agree([7])
    assert not agreement.done()
    deadline = time.monotonic() + 10
    while not agreement.done() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert agreement.done()
    assert agreement.result() == [7 * group.size]


@_check
def _agreements_of_different_lengths(group: Collectives) -> None:
    odd = group.rank == group.size - 1 and group.size > 1
    first = group.agree([1] * (2 if odd else 1))
    second = group.agree([1])
    if group.size > 1:
        _raises(Mismatch, first.result)
    assert second.result() == [group.size]
    if group.size > 1:
        if odd:
            _raises(ValueError, lambda: group.agree([1 << 62]))
        else:
            third = group.agree([1])
            _raises(Mismatch, third.result)
    assert group.agree([-(1 << 40)]).result() == [-(1 << 40) * group.size]


@_check
def _two_groups_in_opposite_order(group: Collectives) -> None:
    with group.dup("first") as first, group.dup("second") as second:
        pairs = [(first, 1), (second, 10)]
        met = threading.Barrier(2)

        def work(pair: tuple[Collectives, int]) -> list[int]:
            mine, factor = pair
            met.wait(10)
            return [int(mine.all_reduce(factor * i)) for i in range(5)]

        with ThreadPoolExecutor(2) as pool:
            results = list(pool.map(work, pairs if group.rank % 2 else pairs[::-1]))
        if not group.rank % 2:
            results.reverse()
        assert results == [[i * group.size for i in range(5)], [10 * i * group.size for i in range(5)]]
        # And from one thread: a group that waits does not hold up the other one.
        if group.rank == 0:
            later = first.agree([1])
            assert second.all_reduce(1).item() == group.size
            assert later.result() == [group.size]
        else:
            assert second.all_reduce(1).item() == group.size
            assert first.agree([1]).result() == [group.size]


@_check
def _one_thread_at_a_time(group: Collectives) -> None:
    with group.dup("busy") as busy:
        errors: list[BaseException] = []
        if group.rank == 0 and group.size > 1:
            thread = threading.Thread(target=busy.barrier)
            thread.start()
            time.sleep(0.2)
            errors.append(_raises(RuntimeError, busy.barrier))
            group.barrier()
            thread.join()
            assert "dup" in str(errors[0])
        else:
            group.barrier()
            busy.barrier()


@_check
def _a_closed_group_says_so(group: Collectives) -> None:
    other = group.dup("closed")
    other.barrier()
    other.close()
    other.close()
    assert "closed" in str(_raises(RuntimeError, other.barrier))
    group.barrier()


@_check
def _a_timeout_must_be_a_time(group: Collectives) -> None:
    _raises(ValueError, lambda: group.barrier(timeout=-1))
    _raises(ValueError, lambda: group.barrier(timeout=float("nan")))
    group.barrier()


def _an_agreement_outlives_the_timeout(group: Collectives) -> None:
    late = group.rank == group.size - 1
    if late:
        time.sleep(1.5 * group.timeout)
    agreement = group.agree([1])
    if not late:
        time.sleep(1.5 * group.timeout)  # nobody waits, so nobody is late
    assert agreement.result() == [group.size]
    group.barrier()


SLOW_CHECKS["an_agreement_outlives_the_timeout"] = _an_agreement_outlives_the_timeout


# Faults -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fault:
    """A way in which one worker fails the others.

    Args:
      act: what it does; given its group and the time that the others wait at most.
      expected: what the others get.
      waits: whether that comes only when their time is over.
      wait: what the others are in, by default an all_reduce.
    """

    act: Callable[[Collectives], None]
    expected: type[CollectiveError]
    waits: bool = False
    wait: Callable[[Collectives], object] = lambda group: group.all_reduce(1.0)


def _kill(_: Collectives) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _freeze(_: Collectives) -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def _raise(group: Collectives) -> None:
    with group:
        raise OSError("record 7 of part-3 is damaged")


def _come_too_late(group: Collectives) -> None:
    time.sleep(1.5 * group.timeout)
    # What the others gave to the first call may still be there; they take part in no further one.
    error = _raises(CollectiveError, lambda: (group.all_reduce(1.0), group.all_reduce(1.0)))
    assert isinstance(error, Aborted | PeerLost), f"got {type(error).__name__}: {error}"


def _stay_away(group: Collectives) -> None:
    time.sleep(2 * group.timeout)


def _transfer(group: Collectives) -> None:
    mine = np.zeros(1 << 23)  # 64 MB
    while True:
        group.all_reduce(mine)


def _kill_in_transfer(group: Collectives) -> None:
    threading.Timer(0.2, _kill, [group]).start()
    _transfer(group)


def _agree_forever(group: Collectives) -> None:
    ahead = [group.agree([1]) for _ in range(4)]
    while True:
        ahead.append(group.agree([1]))
        ahead.pop(0).result()


FAULTS: dict[str, Fault] = {
    "close": Fault(lambda group: group.close(), PeerLost),
    "come_too_late": Fault(_come_too_late, CollectiveTimeout, waits=True),
    "exit": Fault(lambda _: sys.exit(0), PeerLost),
    "freeze": Fault(_freeze, CollectiveTimeout, waits=True),
    "freeze_in_agreement": Fault(_freeze, CollectiveTimeout, waits=True, wait=_agree_forever),
    "kill": Fault(_kill, PeerLost),
    "kill_in_agreement": Fault(_kill, PeerLost, wait=_agree_forever),
    "kill_in_transfer": Fault(_kill_in_transfer, PeerLost, wait=_transfer),
    "raise": Fault(_raise, Aborted),
    "raise_in_agreement": Fault(_raise, Aborted, wait=_agree_forever),
    "stay_away": Fault(_stay_away, CollectiveTimeout, waits=True),
}
"""What may happen to a worker, and what the others must get from it."""

IN_THREADS = ("close", "come_too_late", "raise", "raise_in_agreement", "stay_away")
"""The faults that a thread can have without taking the process along."""


@dataclass
class Outcome:
    """What one worker saw.

    Args:
      rank: the worker.
      failed: for each check that did not hold, why.
      passed: the checks that held.
      seconds: how long all took; for a fault, how long after it the error came.
      error: for a fault, the name of the error's class.
      culprit: for a fault, whom the error named.
      message: for a fault, its text.
    """

    rank: int
    failed: dict[str, str] = field(default_factory=dict)
    passed: list[str] = field(default_factory=list)
    seconds: float = 0.0
    error: str = ""
    culprit: list[int] = field(default_factory=list)
    message: str = ""


def run_checks(group: Collectives, names: Sequence[str] | None = None) -> Outcome:
    """All checks, or some, on a group; every worker calls this.

    Args:
      group: fresh or used, but not failed.
      names: keys of `CHECKS` and `SLOW_CHECKS`; by default all of the former.
    """
    outcome = Outcome(group.rank)
    begin = time.monotonic()
    for name in CHECKS if names is None else names:
        try:
            (CHECKS | SLOW_CHECKS)[name](group)
        except Exception as error:  # noqa: BLE001 - it is what the outcome is made of
            outcome.failed[name] = f"{type(error).__name__}: {error}"
            if isinstance(error, Poisoned | CollectiveTimeout | PeerLost):
                break
        else:
            outcome.passed.append(name)
    outcome.seconds = time.monotonic() - begin
    return outcome


def _run_fault(group: Collectives, name: str, victim: int) -> Outcome:
    """One fault: one worker has it, the others report what they got, and that the group is used up then."""
    fault, outcome = FAULTS[name], Outcome(group.rank)
    at = float(group.broadcast(time.monotonic() + 0.3, victim))
    if group.rank == victim:
        time.sleep(max(0.0, at - time.monotonic()))
        with contextlib.suppress(OSError):
            fault.act(group)
        return outcome
    try:
        fault.wait(group)
    except CollectiveError as error:
        outcome.seconds = time.monotonic() - at
        outcome.error, outcome.message = type(error).__name__, str(error)
        ranks = error.ranks if isinstance(error, CollectiveTimeout) else [getattr(error, "rank", None)]
        outcome.culprit = [rank for rank in ranks if rank is not None]
        problems = list(_problems(group, fault, victim, error, outcome))
        if problems:
            outcome.failed[name] = "; ".join(problems)
    else:
        outcome.failed[name] = "no error came"
    outcome.passed = [] if outcome.failed else [name]
    return outcome


def _problems(group: Collectives, fault: Fault, victim: int, error: CollectiveError, outcome: Outcome) -> Iterator[str]:
    if type(error) is not fault.expected:
        yield f"expected {fault.expected.__name__}, got {type(error).__name__}: {error}"
    if outcome.culprit not in ([], [victim]):
        yield f"rank {victim} was to blame, got {outcome.culprit}: {error}"
    limit = group.timeout + _SLOW if fault.waits else _SLOW
    if outcome.seconds > limit:
        yield f"the error came after {outcome.seconds:.2f} s, allowed are {limit:g} s"
    begin = time.monotonic()
    try:
        group.barrier()
    except Poisoned:
        if time.monotonic() - begin > 0.1:
            yield f"Poisoned came after {time.monotonic() - begin:.2f} s"
    else:
        yield "the group can still be used"


# Running them --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Report:
    """What all workers saw.

    Args:
      engine: which one.
      size: how many workers.
      outcomes: of the workers that reported, in rank order.
      codes: how the processes ended, in rank order; with mpiexec its own.
      output: what they printed.
      seconds: how long it took.
    """

    engine: str
    size: int
    outcomes: tuple[Outcome, ...]
    codes: tuple[int | None, ...] = ()
    output: str = ""
    seconds: float = 0.0

    @property
    def problems(self) -> list[str]:
        """What did not hold, with the worker that saw it."""
        return [f"rank {o.rank}: {name}: {why}" for o in self.outcomes for name, why in o.failed.items()]

    @property
    def latest(self) -> float:
        """The longest time that a worker took."""
        return max((outcome.seconds for outcome in self.outcomes), default=0.0)


def check_threads(groups: Sequence[Collectives], names: Sequence[str] | None = None) -> Report:
    """All checks on groups that live in threads of this process."""
    begin = time.monotonic()
    with ThreadPoolExecutor(len(groups)) as pool:
        outcomes = tuple(pool.map(lambda group: run_checks(group, names), groups))
    return Report("local", len(groups), outcomes, seconds=time.monotonic() - begin)


def fault_threads(groups: Sequence[Collectives], name: str) -> Report:
    """One fault, of `IN_THREADS`, on groups that live in threads of this process."""
    begin = time.monotonic()
    with ThreadPoolExecutor(len(groups)) as pool:
        outcomes = tuple(pool.map(lambda group: _run_fault(group, name, len(groups) - 1), groups))
    return Report("local", len(groups), outcomes[:-1], seconds=time.monotonic() - begin)


def check_processes(
    engine: str,
    size: int,
    *,
    fault: str | None = None,
    victim: int = -1,
    names: Sequence[str] | None = None,
    timeout: float = 10.0,
    limit: float = 60.0,
    launcher: Sequence[str] = (),
) -> Report:
    """The checks, or one fault, with an engine in processes of this machine; none of them outlives the call.

    Args:
      engine: a key of `COLLECTIVES`, or `package.module:function` of a new one.
      size: how many processes.
      fault: a key of `FAULTS`.
      victim: the rank that has it; by default the last one. Rank 0 may host what others need.
      names: keys of `CHECKS`; by default all.
      timeout: of the group.
      limit: seconds after which all processes are killed.
      launcher: a command that starts `size` processes, such as `["mpiexec", "-n", "2"]`; without it each is started
        with its rank and the address of rank 0.
    """
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "distinput.testing.collectives", "--worker", folder, "--engine", engine]
        command += ["--timeout", str(timeout), "--limit", str(limit)]
        command += ["--fault", fault, "--victim", str(victim % size)] if fault else []
        command += ["--checks", ",".join(names)] if names is not None else []
        if launcher:
            commands = [[*launcher, *command]]
        else:
            place = ["--size", str(size), "--address", f"127.0.0.1:{_free_port()}", "--rank"]
            commands = [[*command, *place, str(rank)] for rank in range(size)]
        codes, output = _run_all(commands, limit, stuck=victim % size if fault and "freeze" in fault else None)
        reports = [Path(folder, f"{rank}.json") for rank in range(size)]
        outcomes = tuple(Outcome(**json.loads(path.read_text("utf-8"))) for path in reports if path.exists())
    return Report(engine, size, outcomes, tuple(codes), output, time.monotonic() - begin)


def _run_all(commands: Sequence[Sequence[str]], limit: float, stuck: int | None) -> tuple[list[int | None], str]:
    environment = {"GLOO_SOCKET_IFNAME": "lo", **os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "default"}
    deadline = time.monotonic() + limit
    with tempfile.TemporaryFile() as output:
        processes = [
            subprocess.Popen(command, stdout=output, stderr=output, env=environment, start_new_session=True)
            for command in commands
        ]
        try:
            # A frozen process does not end by itself and is not waited for; a launcher ends the whole job.
            for process in [p for i, p in enumerate(processes) if i != stuck or len(processes) == 1]:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(max(0.1, deadline - time.monotonic()))
            codes = [process.poll() for process in processes]
        finally:
            for process in processes:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        output.seek(0)
        return codes, output.read().decode(errors="replace")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _open(arguments: argparse.Namespace) -> Collectives:
    place = {"rank": arguments.rank, "size": arguments.size, "address": arguments.address}
    if arguments.engine in COLLECTIVES:
        return open_collectives(arguments.engine, **place, timeout=arguments.timeout)
    module, function = arguments.engine.split(":")
    group: Collectives = getattr(import_module(module), function)(
        arguments.rank, arguments.size, arguments.address, timeout=arguments.timeout, name="distinput"
    )
    return group


def _work(arguments: argparse.Namespace) -> int:
    """One worker: run what was asked, and leave the outcome as a file."""
    faulthandler.dump_traceback_later(arguments.limit, exit=True)  # also where the launcher cannot kill it
    opening = time.monotonic()
    while True:
        try:
            group = _open(arguments)
            break
        except TimeoutError:  # a busy machine may start the processes far apart
            if time.monotonic() - opening > arguments.limit / 2:
                raise
    outcome = (
        _run_fault(group, arguments.fault, arguments.victim)
        if arguments.fault
        else run_checks(group, arguments.checks.split(",") if arguments.checks else None)
    )
    report = Path(arguments.worker, f"{group.rank}.json")
    report.with_suffix(".part").write_text(json.dumps(asdict(outcome)), "utf-8")
    os.replace(report.with_suffix(".part"), report)  # a launcher may end a worker at any moment
    group.close()
    return 1 if outcome.failed else 0


def _main() -> int:
    parser = argparse.ArgumentParser(description="The conformance suite of distinput's collectives.")
    parser.add_argument("--engine", required=True, help=f"{', '.join(sorted(COLLECTIVES))}, or module:function")
    parser.add_argument("--size", type=int, help="how many workers")
    parser.add_argument("--fault", choices=sorted(FAULTS), help="one fault instead of the checks")
    parser.add_argument("--victim", type=int, default=-1, help="the rank that has the fault, by default the last")
    parser.add_argument("--checks", help="some checks only, with commas between them")
    parser.add_argument("--timeout", type=float, default=10.0, help="seconds that a call waits")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds after which everything is killed")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--address", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        return _work(arguments)
    size = arguments.size or 2
    launcher = mpiexec(size) if arguments.engine == "mpi" else ()
    names = arguments.checks.split(",") if arguments.checks else None
    report = check_processes(
        arguments.engine,
        size,
        fault=arguments.fault,
        victim=arguments.victim,
        names=names,
        timeout=arguments.timeout,
        limit=arguments.limit,
        launcher=launcher,
    )
    for outcome in report.outcomes:
        print(
            f"rank {outcome.rank}: {len(outcome.passed)} held, {len(outcome.failed)} did not, {outcome.seconds:.2f} s"
        )
        if outcome.error:
            print(f"  {outcome.error}: {outcome.message}")
    for problem in report.problems:
        print(problem)
    print(f"{report.engine}, {report.size} workers, {report.seconds:.1f} s, exit codes {list(report.codes)}")
    if report.problems or not report.outcomes:
        print(report.output)
    return 1 if report.problems or not report.outcomes else 0


def mpiexec(size: int) -> list[str]:
    """The command that starts `size` processes with the MPI of this Python environment, or else that of the machine.

    Raises:
      FileNotFoundError: there is none.
    """
    beside = Path(sys.executable).with_name("mpiexec")
    found = str(beside) if beside.exists() else shutil.which("mpiexec")
    if found is None:
        raise FileNotFoundError("mpiexec: not found; use `pip install 'distinput[mpi]'`")
    version = subprocess.run([found, "--version"], capture_output=True, text=True, check=False, timeout=30).stdout
    extra = ["--allow-run-as-root", "--oversubscribe"] if "open" in version.lower() else []
    return [found, *extra, "-n", str(size)]


if __name__ == "__main__":
    sys.exit(_main())
