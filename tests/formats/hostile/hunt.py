# SPDX-License-Identifier: Apache-2.0
"""Many damaged files, read in processes of their own, so that one that ends over a file is counted and not the end.

    python -m tests.formats.hostile.hunt COUNT [NAME]

prints what is wrong, and a table of what came of the files of each sample. What counts as right, `worker.outcome` says.
"""

import os
import select
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[3]
SECONDS = 60
"""After which a file that is not read is one that never will be."""

FINE = ("error", "refused", "same", "text", "unsure")
"""What may come of a file; see `worker.outcome`."""


def environment() -> dict[str, str]:
    """In which the modules of the tests are found."""
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def outcomes(first: int, stop: int, name: str = "") -> Iterator[tuple[int, str, str]]:
    """For each number: the name of its sample, and what came of it; `crash` and `hang` among it."""
    number, sample = first, "the beginning"
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as said:
        while number < stop:
            command = [sys.executable, "-m", "tests.formats.hostile.worker", folder, str(number), str(stop), name]
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
                        number += 1
                        sample = "the next"
                code = worker.poll()
                if code is None:
                    worker.kill()
            if number < stop:
                said.seek(0)
                what = "hang" if code is None else f"crash {code}"
                yield number, sample, f"{what} in {phase}: {said.read().decode(errors='replace')[-500:]}"
                number += 1


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
    count, *names = sys.argv[1:]
    table: dict[str, Counter[str]] = {}
    for number, sample, line in outcomes(0, int(count), *names):
        what = line.split(" ")[0]
        table.setdefault(sample, Counter())[what] += 1
        if what not in FINE:
            print(number, sample, line, flush=True)
    for sample, counts in sorted(table.items()):
        print(f"{sample:30}", *[f"{what} {count}" for what, count in sorted(counts.items())])
    print("all", dict(sum(table.values(), Counter())))


if __name__ == "__main__":
    main()
