# SPDX-License-Identifier: Apache-2.0
"""Commands over files that are damaged, or meant to do harm, end with a message and a status; never with a traceback."""

from pathlib import Path
from random import Random

import pytest

from distinput.cli import main
from distinput.formats import FORMATS
from tests.depth import DEEP, cases
from tests.formats.hostile.attacks import archives, pickled, tables
from tests.formats.hostile.samples import SAMPLES

COMMANDS = (["head"], ["info"], ["stats"], ["verify", "--workers", "2"])


def check(path: Path, format: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """All commands come to their end."""
    for command in COMMANDS:
        status = main([command[0], str(path), *command[1:], *format])
        told = capsys.readouterr()
        assert status in (0, 1, 3)
        assert status != 1 or "failed: " in told.err
        assert (status == 3) <= (command[0] == "verify")
        assert "Traceback" not in told.err


def format_of(name: str) -> str | None:
    """The format of a sample, which its name begins with."""
    word = name.split()[0].lower()
    return word if word in FORMATS and word not in ("csv_tuples", "fixed_length", "elements") else None


@pytest.mark.parametrize("number", range(cases(24, 2000)))
def test_damaged_files(tmp_path: Path, capsys: pytest.CaptureFixture[str], number: int) -> None:
    samples = [sample for sample in SAMPLES if format_of(sample.name) is not None]
    sample = samples[number % len(samples)]
    path = tmp_path / "file"
    path.write_bytes(sample.written(sample.damage(sample.content, Random(number))))
    for ending, content in sample.beside.items():
        (tmp_path / f"file{ending}").write_bytes(content)
    check(path, ["--format", format_of(sample.name) or ""] if number % 3 else [], capsys)


ATTACKS = [
    attack
    for attack in (*pickled(), *archives(), *tables())
    if DEEP or not any(words in attack.name for words in ("not closed", "not end", "long", "20,000"))
]


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_attacks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], attack: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    attack.make(tmp_path)  # type: ignore[attr-defined]
    before = sorted(tmp_path.rglob("*"))
    name = attack.name.split()[0].lower()  # type: ignore[attr-defined]
    for path in [path for path in before if path.is_file()]:
        check(path, ["--format", name] if name in FORMATS else [], capsys)
    assert sorted(tmp_path.rglob("*")) == before
