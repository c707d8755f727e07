# SPDX-License-Identifier: Apache-2.0
"""How other packages add to distinput, and how it is called from a shell; docs/conventions.md lists the lines."""

import runpy
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import distinput as di
from distinput.testing import check_dataset

pytestmark = pytest.mark.fresh_process

ROOT = Path(__file__).parents[2]


def in_new_process(program: str, *, path: Path) -> subprocess.CompletedProcess[str]:
    code = f"import sys; sys.path.insert(0, {str(path)!r})\n{program}"
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False, cwd=ROOT
    )


def test_one_entry_point_registers_names_of_every_kind(tmp_path: Path) -> None:
    """One group, `distinput.extensions`, instead of one for each kind: a package names its module once, whatever is in it."""
    (tmp_path / "acme.py").write_text(
        "from distinput.extend import register_backend, register_engine, register_format, register_op\n"
        "from distinput.formats.text import TextLines\n"
        "register_op('acme_skip', 'distinput.ops.take:Skip')\n"
        "register_format('acme_lines', TextLines)\n"
        "register_engine('acme_workers', 'distinput.distribute.engines.local:open_group')\n"
        "register_backend('acme_threads', 'distinput.distribute.devices.threads:ThreadDevices')\n"
    )
    info = tmp_path / "acme-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[distinput.extensions]\nacme = acme\n")
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    run = in_new_process(
        "import distinput as di\n"
        "assert 'acme' not in sys.modules\n"
        f"ds = di.data.FileDataset({str(tmp_path / 'a.txt')!r}, 'acme_lines')\n"
        "print(ds.acme_skip(1).to_list())\n"
        "print(di.distribute.MirroredStrategy(['CPU:0'], backend='acme_threads').num_replicas_in_sync)\n"
        "from distinput.distribute.engines import open_collectives\n"
        "print(open_collectives('acme_workers').size)\n",
        path=tmp_path,
    )
    assert (run.stdout, run.stderr) == ("[b'two']\n1\n1\n", "")


def test_the_plugin_of_pytest_loads_nothing_until_it_is_asked() -> None:
    """An entry point `pytest11` is imported at the start of every pytest of every user: it is one file that imports nothing."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    assert project["entry-points"]["pytest11"] == {"distinput": "pytest_distinput"}
    run = in_new_process(
        "before = set(sys.modules)\nimport pytest_distinput\nprint(sorted(set(sys.modules) - before))", path=ROOT
    )
    assert (run.stdout, run.stderr) == ("['pytest_distinput']\n", "")
    assert "restart" in check_dataset(lambda: di.data.Dataset.range(4).batch(2))


def test_it_is_called_as_a_module(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["distinput", "--help"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("distinput", run_name="__main__")
    assert not ended.value.code
    printed = capsys.readouterr().out
    assert "usage: " in printed
    assert "demo" in printed
