# SPDX-License-Identifier: Apache-2.0
"""What every file of the project keeps to: a licence line, no traces of one machine, a bounded size."""

import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = (".ci", "benchmarks", "distinput", "docs", "examples", "tests")
LICENCE = "SPDX-License-Identifier" + ": Apache-2.0"

# Kept byte for byte as they were received.
RECEIVED = {
    "tests/golden/adapter.py",
    "tests/golden/engine.py",
    "tests/golden/fns_np.py",
    "tests/golden/golden_common.py",
    "tests/golden/run_golden.py",
}
BYTES = 512 * 1024
LARGE = {"tests/golden/public.jsonl": "1 900 recorded answers of TensorFlow"}

# Put together from parts, so that this file does not contain what it looks for.
FOLDERS_OF_ONE = ("work", "home/[a-z]+", "root", "Users/[A-Za-z]+")
REGISTRIES = ("py" + "pi.org", "python" + "hosted.org", "ana" + "conda.org")
TRACES = {
    # It begins with a letter that is searched for quickly; what may not stand before it is looked at then.
    "a path of one machine": re.compile(rf"/(?<![\w.]/)(?:{'|'.join(FOLDERS_OF_ONE)})/"),
    "the host of a package registry": re.compile("|".join(map(re.escape, REGISTRIES))),
}


@cache
def files() -> tuple[Path, ...]:
    def walk(folder: Path) -> Iterator[Path]:
        for path in sorted(folder.iterdir()):
            if path.is_dir() and path.name not in ("__pycache__", "results"):
                yield from walk(path)
            elif path.is_file() and path.suffix not in (".pyc", ".nbi", ".nbc"):
                yield path

    # In a worktree of git `.git` is a file, which names a folder of this machine.
    top = (path for path in sorted(ROOT.iterdir()) if path.is_file() and path.name != ".git")
    return (*top, *(path for name in FOLDERS if (ROOT / name).is_dir() for path in walk(ROOT / name)))


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return ""


def test_every_python_file_begins_with_its_licence() -> None:
    python = [path for path in files() if path.suffix == ".py" and name(path) not in RECEIVED]
    assert [name(path) for path in python if text(path).split("\n", 1)[0] != f"# {LICENCE}"] == []


def test_the_licence_is_said_once() -> None:
    assert [name(path) for path in files() if path.suffix == ".py" and text(path).count(LICENCE) > 1] == []


@pytest.mark.parametrize("what", TRACES)
def test_no_file_names(what: str) -> None:
    found = [f"{name(path)}: {match.group()}" for path in files() for match in TRACES[what].finditer(text(path))]
    assert found == []


def test_no_file_is_large() -> None:
    large = {name(path): path.stat().st_size for path in files() if path.stat().st_size > BYTES}
    assert large.keys() <= LARGE.keys(), f"files above {BYTES} bytes: {large}"


def test_no_other_folder_is_kept() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("this is no checkout of git, which tells the files that are kept")
    kept = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    assert {path.split("/")[0] for path in kept if "/" in path} == {*FOLDERS}


def test_the_package_is_marked_as_typed() -> None:
    assert (ROOT / "distinput" / "py.typed").is_file()
