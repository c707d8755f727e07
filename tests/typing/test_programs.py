# SPDX-License-Identifier: Apache-2.0
"""Programs as users write them: type checkers accept those that are right, and refuse each wrong line of the others."""

import importlib.util
import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
RIGHT = sorted(HERE.glob("programs/*.py"))
WRONG = sorted(HERE.glob("wrong/*.py"))

Errors = dict[str, dict[int, str]]
"""By the name of the file, and the line in it."""


def with_mypy(files: list[Path], folder: Path) -> Errors:
    """What mypy refuses, as strict as it is set up in pyproject.toml."""
    command = [sys.executable, "-m", "mypy", "--output", "json", *map(str, files)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found: Errors = defaultdict(dict)
    for line in done.stdout.splitlines():
        told = json.loads(line) if line.startswith("{") else {"severity": "none"}
        if told["severity"] == "error":
            found[Path(told["file"]).name][told["line"]] = told["message"]
    return found


def with_pyright(files: list[Path], folder: Path) -> Errors:
    """What Pyright refuses."""
    rules = {"typeCheckingMode": "standard", "pythonVersion": "3.11", "extraPaths": [str(ROOT)]}
    configured = {**rules, "include": [str(file) for file in files]}
    (folder / "pyrightconfig.json").write_text(json.dumps(configured), encoding="utf-8")
    command = [sys.executable, "-m", "basedpyright", "--outputjson", "--project", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found: Errors = defaultdict(dict)
    for told in json.loads(done.stdout)["generalDiagnostics"]:
        if told["severity"] == "error":
            found[Path(told["file"]).name][told["range"]["start"]["line"] + 1] = told["message"]
    return found


CHECKERS: dict[str, Callable[[list[Path], Path], Errors]] = {"basedpyright": with_pyright, "mypy": with_mypy}


@pytest.fixture(scope="module", params=CHECKERS)
def errors(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Errors:
    """What one of the checkers refuses in all programs."""
    if importlib.util.find_spec(request.param) is None:
        pytest.skip(f"{request.param} is not installed; `make types` installs it")
    return CHECKERS[request.param](RIGHT + WRONG, tmp_path_factory.mktemp("checked"))


@pytest.mark.slow
@pytest.mark.parametrize("program", RIGHT, ids=lambda program: program.stem)
def test_right_programs_are_accepted(errors: Errors, program: Path) -> None:
    assert errors.get(program.name, {}) == {}


@pytest.mark.slow
@pytest.mark.parametrize("program", WRONG, ids=lambda program: program.stem)
def test_each_wrong_line_is_refused(errors: Errors, program: Path) -> None:
    lines = dict(enumerate(program.read_text(encoding="utf-8").splitlines(), 1))
    marked = {number for number, line in lines.items() if line.endswith("# refused")}
    found = errors.get(program.name, {})
    assert marked
    assert {number: message for number, message in found.items() if number not in marked} == {}
    assert [lines[number] for number in sorted(marked - found.keys())] == []


@pytest.mark.parametrize("program", RIGHT, ids=lambda program: program.stem)
def test_right_programs_run(program: Path, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, str(program)], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
