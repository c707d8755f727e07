# SPDX-License-Identifier: Apache-2.0
"""`distinput bench` prints a measurement, tries changes out, and writes a page about a pass."""

import itertools
import json
import sys
from pathlib import Path
from typing import Any

import pytest

import distinput as di
from distinput.cli import main
from distinput.data.progress import ProgressBar
from distinput.kernels import kernel
from distinput.kernels.checksums import crc32c
from distinput.kernels.kernel import Kernel
from distinput.reports.bench import CHANGES

PROGRAM = """
import distinput as di

def squared(x):
    return x * x

ds = di.data.Dataset.range(400).map(squared).batch(8)
prefetched = ds.prefetch(2)
broken = di.data.Dataset.range(400).map(lambda x: 1 // (int(x) - 399)).batch(8)
empty = ds.take(0)
endless = ds.repeat()
thinned = ds.filter(lambda x: True)
"""


@pytest.fixture(autouse=True)
def _program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "train_to_measure", raising=False)
    Path("train_to_measure.py").write_text(PROGRAM, encoding="utf-8")


def test_a_pass_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "train_to_measure:ds"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "elements/s, " in lines[0]
    assert "rows/s, about" in lines[0]
    assert lines[1].startswith("50 elements (all) in ")
    assert lines[3].split()[:3] == ["step", "blocks", "rows"]
    assert "A pass as short as this says little about the rate." in lines
    parts = ("is the slowest step, with", "The loop that takes the elements is the slowest part, with")
    assert sum(any(part in line for part in parts) for line in lines) == 1  # one of the two: a step, or this loop


@pytest.mark.parametrize(
    "words, low, high",
    [
        (["ds"], 50, 50),
        (["ds", "--elements", "60"], 50, 50),
        (["ds", "--elements", "20"], 20, 20),
        (["thinned"], 0, 50),
        (["thinned", "--elements", "20"], 0, 20),
        (["endless", "--elements", "20"], 20, 20),
        (["endless", "--seconds", "0.01"], 0, None),
    ],
)
def test_the_bar_knows_the_bounds(
    words: list[str], low: int, high: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Any] = []

    def noting(low: int, high: int | None, *, leave: bool) -> ProgressBar:
        told.append((low, high, leave))
        return ProgressBar(low, high, leave=leave)

    monkeypatch.setattr("distinput.cli.dataset_commands.ProgressBar", noting)
    assert main(["bench", f"train_to_measure:{words[0]}", *words[1:]]) == 0
    assert told == [(low, high, False)]


def test_what_ends_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "train_to_measure:endless", "--seconds", "0", "--elements", "60", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["elements"], found["ended"], found["trials"]) == (60, False, [])
    assert main(["bench", "train_to_measure:endless", "--seconds", "0"]) == 1
    assert "has no end" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["bench", "train_to_measure:ds", "--seconds", "-1"])


def test_changes_are_tried(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    in_threads = "map(num_parallel_calls=AUTOTUNE)"
    monkeypatch.setattr("distinput.reports.bench.CHANGES", {in_threads: CHANGES[in_threads]})
    assert main(["bench", "train_to_measure:ds", "--try"]) == 0
    out = capsys.readouterr().out
    assert "--try" not in out, "who has tried it is not sent to try it"
    (line,) = [line for line in out.splitlines() if line.startswith(f"  {in_threads}: ")]
    assert line.endswith(("times as fast", "no gain", "times as long"))
    assert ("Nothing that was tried helps." in out) == (not line.endswith("times as fast"))


def test_a_page_and_a_timeline(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "train_to_measure:prefetched", "--html", "a.html", "--trace", "a.json"]) == 0
    assert "prefetch(2) at the end" not in capsys.readouterr().out
    assert Path("a.html").read_text(encoding="utf-8").startswith("<!")
    assert json.loads(Path("a.json").read_bytes())["traceEvents"]


def test_nothing_is_measured_of_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "train_to_measure:empty"]) == 0
    assert capsys.readouterr().out.startswith("no elements\n0 elements (all)")


def test_an_error_of_the_users_function_is_shown_with_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "train_to_measure:broken"]) == 1
    shown = capsys.readouterr().err
    assert "train_to_measure:broken: ZeroDivisionError" in shown
    assert "train_to_measure.py:9, in <lambda>" in shown


def test_kernels_are_compiled_before_the_clock_starts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On a fresh machine a pass waits for what it needs, also behind its first element; then the pass is measured."""
    waited: list[str] = []
    waiting: list[int] = []  # seconds
    looks = itertools.count()
    monkeypatch.setattr("distinput.reports.bench._clock", lambda: next(looks) / 1000 + sum(waiting))

    class Slow(Kernel[..., int]):
        def wait(self, timeout: float | None = None) -> bool:
            waited.append(self.name)
            waiting.append(100)
            self._function = self.reference
            return True

    monkeypatch.delenv("DISTINPUT_KERNELS", raising=False)
    monkeypatch.setattr(kernel, "cached_kernels", lambda: {"crc32c": bool(waited)})
    monkeypatch.setitem(kernel.KERNELS, "crc32c", Kernel(crc32c.source, crc32c.reference, None))
    monkeypatch.setattr(di, "slow_kernel", Slow(crc32c.source, crc32c.reference, None), raising=False)
    Path("train_to_measure.py").write_text(
        "import distinput as di\nimport numpy as np\n\n"
        "def called(x):\n    if x == 3:\n        di.slow_kernel(np.zeros(9, np.uint8))\n    return x\n\n"
        "ds = di.data.Dataset.range(4).map(called)\n",
        encoding="utf-8",
    )
    assert main(["bench", "train_to_measure:ds", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert waited == ["crc32c"]
    assert told["elements"] == 4
    assert told["seconds"] < 1
