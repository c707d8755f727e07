# SPDX-License-Identifier: Apache-2.0
"""`pytest --judge`: laws as tests, and nothing at all for those who do not ask."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from distinput.testing.judge.laws import LAWS
from distinput.testing.judge.pytest_laws import PytestLaws

ROOT = Path(__file__).parents[3]
LOADER = """
def make_loader(records, rank, ranks, batch):
    own = range(rank, records, ranks)
    return [list(own[i : i + batch]) for i in range(0, len(own), batch)]
"""


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    (folder / "mine.py").write_text(LOADER)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "pytest_distinput", "-p", "no:cacheprovider", *words]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": "", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=300, check=False, env=environment
    )


def test_each_law_is_a_test_and_without_files_nothing_else_is_run(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text("raise SystemError\n")
    words = ["--judge-records", "9", "--judge-ranks", "1,2", "--judge-report", "r.json"]
    ran = run(tmp_path, "--judge", "mine:make_loader", *words)
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert "FAILED mine:make_loader::equal_steps" in ran.stdout
    assert f"1 failed, 5 passed, {len(LAWS) - 6} skipped" in ran.stdout
    (report,) = json.loads((tmp_path / "r.json").read_text("utf-8"))
    assert [each["law"] for each in report["findings"] if each["verdict"] == "broken"] == ["equal steps"]
    assert report["jobs"] == ["9 records, 1 rank, batches of 4", "9 records, 2 ranks, batches of 4"]


class _Config:
    """As much of pytest's configuration as is looked at."""

    args_source = pytest.Config.ArgsSource.ARGS

    def __init__(self, **words: Any) -> None:
        self.words = {"judge": ["json:nothing"], "judge_report": None, **words}

    def getoption(self, name: str) -> Any:
        return self.words[name]


def test_wrong_words_are_errors_of_use() -> None:
    with pytest.raises(pytest.UsageError, match=r"--judge json:nothing: .* has no function 'nothing'"):
        PytestLaws(_Config()).pytest_collection_modifyitems(None, [])  # type: ignore[arg-type]
    with pytest.raises(pytest.UsageError, match=r"must end in .html, .json, .md, .txt, got report.pdf"):
        PytestLaws(_Config(judge_report="report.pdf"))  # type: ignore[arg-type]


@pytest.mark.fresh_process
def test_who_does_not_ask_loads_nothing(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(
        "import sys\n\n\ndef test_mine():\n"
        "    assert 'pytest_distinput' in sys.modules\n"
        "    assert not {name.partition('.')[0] for name in sys.modules} & {'distinput', 'numpy', 'hypothesis'}\n"
    )
    ran = run(tmp_path, "-p", "no:hypothesispytest", "test_mine.py")
    assert ran.returncode == 0, ran.stdout
