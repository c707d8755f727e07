# SPDX-License-Identifier: Apache-2.0
"""How long does the command line take before it does anything?"""

import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from time import perf_counter

from benchmarks.harness import Case, Contender, Work, scaled

QUESTION = "the command line, until the process has ended: its help, and a pipeline explained"

PIPELINE = """
import distinput as di
ds = di.data.Dataset.range(1000).map(lambda x: x + 1).batch(8)
"""
PAIRS = 11
LIMIT = "seconds of the help, in parts of 1.3 times those of Python alone and 0.04"


def prepare(folder: Path, scale: float) -> None:
    """A program with a pipeline, and byte code of what the commands import."""
    (folder / "pipeline.py").write_text(PIPELINE, encoding="utf-8")
    for words in (["--help"], ["explain", str(folder / "pipeline.py:ds")]):
        _run("-m", "distinput", *words)


def cases(folder: Path, scale: float) -> list[Case]:
    """The help, which loads as little as it can, and a command that loads the library."""
    bare = Contender("python -c pass", "limit", lambda: Work(lambda: _run("-c", "pass")))
    ours = Contender("distinput", "ours", lambda: _help(scaled(PAIRS, scale)), most={LIMIT: 1.0})
    library = Contender("import numpy", "limit", lambda: Work(lambda: _run("-c", "import numpy")))
    return [
        Case("help", {"process": 1}, [ours, bare]),
        Case(
            "explain",
            {"process": 1},
            [Contender("distinput", "ours", lambda: _ours("explain", str(folder / "pipeline.py:ds"))), library],
        ),
    ]


def _help(pairs: int) -> Work:
    def facts() -> dict[str, float]:
        # In pairs, so that a machine that slows down for a while slows both.
        taken = [(_seconds("-c", "pass"), _seconds("-m", "distinput", "--help")) for _ in range(pairs)]
        return {LIMIT: median(ours / (1.3 * python + 0.040) for python, ours in taken)}

    work = _ours("--help")
    return Work(work.once, work.check, facts)


def _ours(*words: str) -> Work:
    return Work(lambda: _run("-m", "distinput", *words), lambda: _run("-m", "distinput", *words))


def _seconds(*words: str) -> float:
    begin = perf_counter()
    _run(*words)
    return perf_counter() - begin


def _run(*words: str) -> str:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    return subprocess.run(
        [sys.executable, *words], env=environment, stdout=subprocess.PIPE, text=True, check=True
    ).stdout
