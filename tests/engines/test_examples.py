# SPDX-License-Identifier: Apache-2.0
"""The examples that feed other frameworks' loops: every record once, in step, and the same numbers on one and on several."""

import re
import sys
from pathlib import Path

import pytest

from tests.depth import sampled
from tests.engines.processes import ROOT, environments, start, wait_for

SECONDS = 90


def output(engine: str, folder: Path, example: str, processes: int, *words: str, launcher: tuple[str, ...] = ()) -> str:
    """What the first process of an example prints; all must end well."""
    command = [sys.executable, str(ROOT / "examples" / example), *words]
    places = environments(processes) if processes > 1 and not launcher else [{}]
    files = [folder / f"said-{i}" for i in range(len(places))]
    running = []
    for path, place in zip(files, places, strict=True):
        with path.open("wb") as said:
            running.append(start([*launcher, *command[bool(launcher) :]], place, said, engine))
    codes = wait_for(running, SECONDS)
    texts = [path.read_text(errors="replace") for path in files]
    assert set(codes) == {0}, f"{codes}:\n" + "\n".join(texts)
    return texts[0]


def losses(text: str) -> list[float]:
    return [float(loss) for loss in re.findall(r"^epoch \d: loss ([\d.]+)", text, re.MULTILINE)]


TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone")


THEN_LOOK = """
import pathlib, re, runpy, sys, time
runpy.run_path(sys.argv[1], run_name="__main__")
for _ in range(1200):  # a thread that was told to end may still be at it
    threads = " ".join([path.read_text().strip() for path in pathlib.Path("/proc/self/task").glob("*/comm")])
    if not re.search("gloo|tcpstore", threads):
        break
    time.sleep(0.05)
print("threads:", threads)
"""


@pytest.mark.needs_engine("torch")
@pytest.mark.parametrize("processes, launcher", sampled([(3, ())], [(1, ()), (2, TORCHRUN)]))
def test_torch_ddp(processes: int, launcher: tuple[str, ...], tmp_path: Path) -> None:
    program = tmp_path / "then_look.py"
    program.write_text(THEN_LOOK, encoding="utf-8")
    example = str(ROOT / "examples" / "torch_ddp.py")
    text = output("torch", tmp_path, str(program), processes, example, launcher=launcher)
    assert f"{processes} processes, every record exactly once in each of 3 epochs: True" in text
    # The last batch has one row, so all processes but one have none; none of them waits for ever.
    assert re.findall(r", (\d) parts without rows$", text, re.MULTILINE) == [str(processes - 1)] * 3
    assert losses(text) == pytest.approx([2.041464, 0.000001, 0.0], abs=2e-6)
    # A thread of gloo that needs the interpreter when that has ended aborts the process. It seldom does, so none may be left.
    threads = re.findall("^threads:(.*)$", text, re.MULTILINE)
    assert threads
    assert not re.search("gloo|tcpstore", " ".join(threads))


@pytest.mark.needs_engine("jax")
@pytest.mark.parametrize("processes, devices", sampled([(1, 2), (2, 1)], [(1, 1)]))
def test_jax_loop(processes: int, devices: int, tmp_path: Path) -> None:
    text = output("jax", tmp_path, "jax_loop.py", processes, str(devices))
    assert f"{processes * devices} devices, every record exactly once in each of 3 epochs: True" in text
    assert re.findall(r", (\d+) steps$", text, re.MULTILINE) == ["16"] * 3
    assert losses(text) == pytest.approx([1.562643, 0.000001, 0.0], abs=2e-6)


@pytest.mark.needs("distributed")
def test_input_workers(tmp_path: Path) -> None:
    text = output("dask", tmp_path, "input_workers.py", 1)
    assert "at workers: map(map_func=features)" in text
    assert "96 images, 96 of them different" in text
