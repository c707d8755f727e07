# SPDX-License-Identifier: Apache-2.0
"""The limits of a container are read; where there are none, or they are unreadable, there are none."""

import platform
from pathlib import Path

import pytest

from distinput.diagnosis import this_machine
from distinput.run.threads import cores, free_memory


def test_this_machine() -> None:
    found = this_machine()
    assert found.cores == cores()
    assert platform.python_version().startswith(found.python)
    assert found.system.startswith(platform.system())


@pytest.mark.parametrize("text, quota", [("150000 100000\n", 1.5), ("max 100000\n", None), ("", None), ("\xff", None)])
def test_the_cores_of_a_container(tmp_path: Path, text: str, quota: float | None) -> None:
    (tmp_path / "cpu.max").write_text(text, encoding="latin-1")
    assert this_machine(tmp_path).core_quota == quota


def test_the_memory_of_a_container(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text("max\n", encoding="ascii")
    whole = this_machine(tmp_path).memory
    (tmp_path / "memory.max").write_text("4096\n", encoding="ascii")
    assert this_machine(tmp_path).memory == 4096
    assert whole is None or whole > 4096


def test_the_free_memory_of_a_container(tmp_path: Path) -> None:
    machine = free_memory(tmp_path)
    for name, text in (("max", "4096\n"), ("current", "4000\n"), ("stat", "anon 10\ninactive_file 500\n")):
        (tmp_path / f"memory.{name}").write_text(text, encoding="ascii")
    assert free_memory(tmp_path) == 596
    (tmp_path / "memory.stat").unlink()
    assert free_memory(tmp_path) == 96
    (tmp_path / "memory.max").write_text("max\n", encoding="ascii")
    assert (free_memory(tmp_path) is None) == (machine is None)
