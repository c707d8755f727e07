# SPDX-License-Identifier: Apache-2.0
"""Many damaged files, read in processes of their own, so that one that ends over a file is counted and not the end.

    python -m tests.formats.hostile.hunt KIND COUNT [NAME]

tries so many files of a kind of damage ("random", "cuts", "flips", "lengths"), of the samples whose names begin with NAME,
prints what is wrong, and a table of what came of the files of each sample. What counts as right, `worker.outcome` says.
"""

import math
import os
import select
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.formats.hostile.kinds import count
from tests.formats.hostile.samples import SAMPLES

ROOT = Path(__file__).parents[3]
SECONDS = 60
"""After which a file that is not read is one that never will be."""

FINE = ("error", "refused", "same", "text", "unsure")
"""What may come of a file; see `worker.outcome`."""


def environment() -> dict[str, str]:
    """In which the modules of the tests are found."""
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def numbers(kind: str, wanted: int, name: str = "") -> range:
    """The numbers of about so many files of a kind, from the first to the last one."""
    if kind == "random":
        return range(wanted)
    there = count(kind, [sample for sample in SAMPLES if sample.name.startswith(name)])
    step = max(1, there // wanted)
    while step > 1 and math.gcd(step, 2 * 3 * 7 * 11) > 1:  # so that every form, bit and way to read has its turn
        step += 1
    return range(0, there, step)


def outcomes(kind: str, wanted: range, name: str = "") -> Iterator[tuple[int, str, str]]:
    """For each number: the name of its sample, and what came of it; `crash` and `hang` among it."""
    yield from _watched("worker", wanted, kind, name)


def attacked(wanted: range) -> Iterator[tuple[int, str, str]]:
    """For the number of each attack: its name, and what came of it."""
    yield from _watched("attacked", wanted)


def _watched(module: str, wanted: range, *arguments: str) -> Iterator[tuple[int, str, str]]:
    """What a module prints of each number, in a process that is begun anew behind a number at which it ends or hangs."""
    number, sample, stop, step = wanted.start, "the beginning", wanted.stop, wanted.step
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as said:
        while number < stop:
            numbers = map(str, (number, stop, step))
            command = [sys.executable, "-m", f"tests.formats.hostile.{module}", folder, *numbers, *arguments]
            with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=said, cwd=ROOT, env=environment()) as worker:
                phase = "read"
                for line in _lines(worker):
                    if line.startswith("begin "):
                        _, at, sample = line.split(" ", 2)
                        number, phase = int(at), "read"
                    elif line.startswith("read "):
                        phase = "strict"
                    else:
                        yield number, sample, line
                        number += step
                        sample = "the next"
                code = worker.poll()
                if code is None:
                    worker.kill()
            if number < stop:
                said.seek(0)
                what = "hang" if code is None else f"crash {code}"
                yield number, sample, f"{what} in {phase}: {said.read().decode(errors='replace')[-500:]}"
                number += step


def _lines(worker: "subprocess.Popen[bytes]") -> Iterator[str]:
    """The lines that a worker prints, until it ends, or is silent for too long."""
    assert worker.stdout is not None
    descriptor, rest = worker.stdout.fileno(), b""
    while select.select([descriptor], [], [], SECONDS)[0]:
        data = os.read(descriptor, 1 << 16)
        if not data:
            worker.wait()
            return
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            yield line.decode(errors="replace")


def main() -> None:
    kind, wanted, *names = sys.argv[1:]
    table: dict[str, Counter[str]] = {}
    for number, sample, line in outcomes(kind, numbers(kind, int(wanted), *names), *names):
        what = line.split(" ")[0]
        table.setdefault(sample, Counter())[what] += 1
        if what not in FINE:
            print(number, sample, line, flush=True)
    for sample, counts in sorted(table.items()):
        print(f"{sample:30}", *[f"{what} {count}" for what, count in sorted(counts.items())])
    print("all", dict(sum(table.values(), Counter())))


if __name__ == "__main__":
    main()
