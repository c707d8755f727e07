# SPDX-License-Identifier: Apache-2.0
"""What a benchmark is made of, and how it is measured.

A benchmark is a module with `QUESTION`, `prepare(folder, scale)` and `cases(folder, scale)`. A case is one amount of work
that several contenders do: distinput, limits of the machine, and peers. Each contender is a process of its own that waits
for orders (see `serve.py`), so that none shares thread pools, caches or the memory allocator with another:

1. every contender makes a pass whose delivered values are checked: the checksums of all must be equal;
2. every contender makes a pass that is not counted, unless the checked one was a long one;
3. in each round every contender is timed once, in turn: A B C A B C ...

Figures are medians over the rounds. A ratio is taken within each round (their time / our time) before the median, so that
a machine that slows down for a while slows both.
"""

import contextlib
import gc
import importlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter, process_time
from types import ModuleType
from typing import Any, Literal, Self

from benchmarks.checksum import in_order
from benchmarks.host import busy

__all__ = [
    "FEWEST_ROUNDS",
    "LEAST_SECONDS",
    "BenchmarkError",
    "Case",
    "Contender",
    "Mapped",
    "Measured",
    "Server",
    "Times",
    "Work",
    "delivering",
    "find_case",
    "measure",
    "missing_packages",
    "scaled",
    "timed",
]

ROOT = Path(__file__).resolve().parents[1]
SEED = 20_240_613
FEWEST_ROUNDS = 3
LONG_SECONDS = 5.0
"""A checked pass that takes this long has warmed up what there is to warm up, and one round of it says enough in a hurry."""
LEAST_SECONDS = 0.1
"""A contender repeats its pass until a round has taken at least this long."""


class BenchmarkError(Exception):
    """A benchmark cannot be believed: contenders delivered different values, or one of them failed."""


class Measured(float):
    """Seconds that a contender measured itself, in a process of its own for example."""


@dataclass(frozen=True)
class Work:
    """What a contender does, loaded and ready.

    Args:
      once: one pass, the timed region. What it returns is kept until the clock has stopped: destroying an iterator of
        tf.data waits for a sleeping thread. A `Measured` takes the place of the clock.
      check: one pass that returns a checksum over everything delivered; None for a limit that delivers no values.
      facts: figures beside the times, such as the bytes of a state.
      share: the part of the case's units that a pass does; its times are divided by it. One that does less than all
        cannot be checked.
    """

    once: Callable[[], Any]
    check: Callable[[], str] | None = None
    facts: Callable[[], Mapping[str, float]] = field(default=dict)
    share: float = 1.0


def delivering(
    batches: Callable[[], Iterable[Any]],
    *,
    plain: Callable[[Any], Any] | None = None,
    checksum: Callable[[Iterable[Any]], str] = in_order,
) -> Work:
    """Work that iterates to the end and drops each batch when the next one comes.

    Args:
      batches: begins a pass.
      plain: batch -> nest of arrays, for the checked pass only; None: `checksum.arrays_of` understands it.
      checksum: of all batches of a pass.
    """

    def once() -> Any:
        iterator = iter(batches())
        for _ in iterator:
            pass
        return iterator

    return Work(once, lambda: checksum(batches() if plain is None else map(plain, batches())))


@dataclass(frozen=True)
class Mapped:
    """A map-style dataset of PyTorch: what a function gives for each number.

    Args:
      function: of a number from 0.
      count: how many numbers.
    """

    function: Callable[[int], Any]
    count: int

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, number: int) -> Any:
        return self.function(number)


@dataclass(frozen=True)
class Contender:
    """One way to do the work of a case.

    Args:
      name: as it is printed.
      kind: "ours", once in every case; "limit" of the machine; or "peer".
      load: reads or makes the data and returns the work; called in the contender's own process.
      needs: packages without which it is left out.
      reach: the ratio (their time / our time) that we want to reach.
      reach_cpu: the same for the seconds of all cores together.
      most: of our own figures, those that are not to be exceeded: a fact by its name, or "seconds" of one first unit.
    """

    name: str
    kind: Literal["ours", "limit", "peer"]
    load: Callable[[], Work]
    needs: tuple[str, ...] = ()
    reach: float | None = None
    reach_cpu: float | None = None
    most: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    """One amount of work.

    Args:
      name: as it is printed.
      units: what a pass consists of, by name; the first is the one that times are given for, "byte" is shown as GB/s.
      contenders: ours, limits and peers.
    """

    name: str
    units: Mapping[str, float]
    contenders: Sequence[Contender]

    @property
    def ours(self) -> Contender:
        """The one that the others are compared with."""
        (found,) = [contender for contender in self.contenders if contender.kind == "ours"]
        return found


def scaled(full: int, scale: float, least: int = 1) -> int:
    """A size at this scale: 1 is the full one; quick runs and tests take less."""
    return max(least, round(full * scale))


def find_case(module: ModuleType, name: str, folder: Path, scale: float) -> Case:
    """The case of this name."""
    (found,) = [case for case in module.cases(folder, scale) if case.name == name]
    return found  # type: ignore[no-any-return]


def missing_packages(contender: Contender) -> list[str]:
    """What would have to be installed for it to take part."""
    return [name for name in contender.needs if importlib.util.find_spec(name) is None]


# ---- timing, in the contender's process


@dataclass(frozen=True)
class Times:
    """Seconds of one pass: on the clock, and of all cores together."""

    seconds: float
    cpu: float


def _cpu_seconds() -> float:
    spent = os.times()
    return process_time() + spent.children_user + spent.children_system


def timed(work: Work, least: float = LEAST_SECONDS) -> Times:
    """The mean over as many passes as it takes to fill `least` seconds."""
    gc.collect()
    kept: list[Any] = []
    measured: list[float] = []
    passes, elapsed = 0, 0.0
    cpu, begin = _cpu_seconds(), perf_counter()
    while True:
        result = work.once()
        passes += 1
        elapsed = perf_counter() - begin
        if isinstance(result, Measured):
            measured.append(result)
        elif result is not None:
            kept.append(result)
        result = None
        if elapsed >= least:
            break
    cpu = _cpu_seconds() - cpu
    seconds = sum(measured) if measured else elapsed
    # `kept` is given up here, after the clock has stopped and before the next contender's turn.
    return Times(seconds / passes / work.share, cpu / passes / work.share)


# ---- measuring, in the process that compares


class Server:
    """A contender in a process of its own.

    Args:
      module: the benchmark's module.
      case: which of its cases.
      contender: which of the case's contenders.
      folder: where `prepare` put the data.
      scale: of the data.
    """

    def __init__(self, module: str, case: str, contender: str, folder: Path, scale: float) -> None:
        self.name = contender
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        # Without a cache of compiled kernels their references would serve at first, and be measured.
        environment = {**os.environ, "DISTINPUT_KERNELS": "compiled", "TF_CPP_MIN_LOG_LEVEL": "3"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.serve", module, case, contender, str(folder), repr(scale)],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            text=True,
        )

    def ask(self, order: str, *arguments: Any) -> Any:
        """The answer to an order.

        Raises:
          BenchmarkError: the contender failed; the message ends with what it said last.
        """
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps([order, *arguments]) + "\n")
            process.stdin.flush()
            answer = process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            process.wait()
            self._said.seek(0)
            last = self._said.read().decode(errors="replace").strip().splitlines()[-12:]
            raise BenchmarkError(f"{self.name}: failed at {order!r}:\n  " + "\n  ".join(last))
        return json.loads(answer)

    def close(self) -> None:
        """End the process."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
        self._said.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def measure(
    module: str,
    case: Case,
    folder: Path,
    scale: float,
    rounds: int,
    least: float = LEAST_SECONDS,
    note: Callable[[str], None] = lambda _: None,
    until: float | None = None,
) -> dict[str, Any]:
    """All contenders of a case, each in its process; the result is plain JSON.

    Args:
      module: the benchmark's module, by its full name.
      case: what to measure.
      folder: where `prepare` put the data.
      scale: of the data.
      rounds: how often each contender is timed.
      least: seconds that a contender fills in a round.
      note: is told what is going on.
      until: when the clock `perf_counter` shows this, no further round begins once `FEWEST_ROUNDS` are there, nor a second
        one of a peer whose checked pass took `LONG_SECONDS`.

    Raises:
      BenchmarkError: contenders delivered different values; or ours or a limit failed. A peer that fails is left out.
    """
    servers: dict[str, Server] = {}
    try:
        kinds = {contender.name: contender.kind for contender in case.contenders}
        checks: dict[str, str | None] = {}
        long_peers: set[str] = set()
        for contender in case.contenders:  # all of them first: what they import and load need not wait for its turn
            servers[contender.name] = Server(module, case.name, contender.name, folder, scale)
        for contender in case.contenders:
            server = servers[contender.name]
            note(f"{case.name}: {contender.name}: checked pass")
            try:
                server.ask("load")
                begin = perf_counter()
                checks[contender.name] = server.ask("check")
                if checks[contender.name] is None or perf_counter() - begin < LONG_SECONDS:
                    server.ask("time", 0.0)
                elif contender.kind == "peer":
                    long_peers.add(contender.name)
            except BenchmarkError as error:
                if contender.kind != "peer":
                    raise
                print(f"left out: {error}", file=sys.stderr)
                servers.pop(contender.name).close()
                checks.pop(contender.name, None)
        _compare(case, checks)
        taken: dict[str, list[Times]] = {name: [] for name in servers}
        before = busy()
        for number in range(rounds):
            hurried = until is not None and perf_counter() > until
            if hurried and number >= FEWEST_ROUNDS:
                break
            for name, server in servers.items():
                if hurried and number and name in long_peers:
                    continue
                note(f"{case.name}: round {number + 1} of {rounds}: {name}")
                taken[name].append(Times(*server.ask("time", least)))
        facts = {name: server.ask("facts") for name, server in servers.items()}
    finally:
        for server in servers.values():
            server.close()
    return {
        "case": case.name,
        "units": dict(case.units),
        "rounds": len(taken[case.ours.name]),
        "scale": scale,
        "load": [before, busy()],
        "contenders": [
            {
                "name": contender.name,
                "kind": kinds[contender.name],
                "reach": contender.reach,
                "reach_cpu": contender.reach_cpu,
                "most": dict(contender.most),
                "seconds": [t.seconds for t in taken[contender.name]],
                "cpu": [t.cpu for t in taken[contender.name]],
                "facts": facts[contender.name],
            }
            for contender in case.contenders
            if contender.name in taken
        ],
    }


def _compare(case: Case, sums: Mapping[str, str | None]) -> None:
    expected = sums[case.ours.name]
    for name, found in sums.items():
        if found is not None and found != expected:
            raise BenchmarkError(
                f"{case.name}: {name} delivered other values than {case.ours.name}: {found} and {expected}; times of "
                "different work cannot be compared"
            )
