# SPDX-License-Identifier: Apache-2.0
"""`distinput doctor` prints a diagnosis, and its status says whether something is wrong."""

import json

import pytest

import distinput as di
from distinput.cli import main, tools
from distinput.diagnosis import Advice, Diagnosis, Machine, Package

MACHINE = Machine("Linux x86_64", "3.12.1", 8, 1.5, 4 << 30, 65536)
PACKAGES = (
    Package("obstore", "obstore", "0.6", None),
    Package("torch", "torch", "2.6", "2.7"),
    Package("numpy", "", "2.0", "2.1"),
)


def test_this_machine(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    once = tools.diagnose()  # between two looks other processes may compile kernels
    monkeypatch.setattr(tools, "diagnose", lambda: once)
    status = main(["doctor"])
    shown = capsys.readouterr().out
    assert shown.startswith(f"distinput {di.__version__}, Python ")
    assert main(["doctor", "--json"]) == status
    found = json.loads(capsys.readouterr().out)
    assert (status == 0) is found["well"]
    assert all(one["text"] in shown for one in found["advice"])


@pytest.mark.parametrize("wrong, status, word", [(True, 3, "WRONG"), (False, 0, "better")])
def test_what_is_wrong_is_told_from_what_could_be_better(
    wrong: bool, status: int, word: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = Diagnosis("1.0", MACHINE, PACKAGES, {"a": True, "b": False}, [Advice(wrong, "install it")])
    monkeypatch.setattr(tools, "diagnose", lambda: found)
    assert main(["doctor"]) == status
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "8 cores (1.5 of them busy at a time), 4 GiB of memory, 1 of 2 kernels compiled"
    assert [line.split()[:3] for line in lines[4:7]] == [
        ["numpy", "2.1", ">=2.0"],
        ["torch", "2.7", ">=2.6"],
        ["obstore", "-", ">=0.6"],
    ]
    assert lines[-1] == f"{word}: install it"


def test_kernels_are_listed_and_compiled(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(tools, "cached_kernels", lambda: {"a": True, "b": False})
    assert main(["kernels"]) == 0
    assert [line.split() for line in capsys.readouterr().out.splitlines()[-2:]] == [["a", "yes"], ["b", "-"]]
    assert main(["kernels", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"a": True, "b": False}
    monkeypatch.setattr(tools, "compile_all", lambda: iter([("b", 1.5)]))
    assert main(["kernels", "build"]) == 0
    assert capsys.readouterr().out.split() == ["b", "1.50", "s"]
    assert main(["kernels", "build", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"b": 1.5}
