# SPDX-License-Identifier: Apache-2.0
"""`distinput verify` ends with status 3 where something does not hold."""

from pathlib import Path

import pytest

from tests.cli.commands_of_files import shown, told
from tests.inspect import kept

ROWS = [{"n": number, "x": number / 2, "t": b"abc"} for number in range(9)]


def test_sound_and_damaged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = kept.write(tmp_path / "a", ROWS, "tfrecord", shards=2)
    kept.write(tmp_path / "b", ROWS, "parquet")
    words = ("verify", str(tmp_path / "a"), "--workers", "2", "3", "--against", str(tmp_path / "b"))
    assert shown(capsys, *words).endswith("2 files, 9 records: all is well\n")
    found = told(capsys, *words)
    assert (found["files"], found["records"], found["findings"]) == (2, 9, [])
    content = bytearray(Path(paths[0]).read_bytes())
    content[-1] ^= 1
    Path(paths[0]).write_bytes(content)
    text = shown(capsys, *words[:2], status=3)
    assert f"checksum: {paths[0]}: its checksum is" in text
    assert f"records: {paths[0]}: cannot be read behind its first " in text
    found = told(capsys, *words[:2], status=3)
    assert [finding["check"] for finding in found["findings"]] == ["checksum", "records"]
    assert "2 workers" not in str(told(capsys, "verify", paths[1], "--workers", "0")["checked"])


def test_what_is_checked_is_not_told_as_if_it_held(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.parquet"
    path.touch()
    text = shown(capsys, "verify", str(path), status=3)
    assert text.startswith(
        f"checked: whether every record can be read\nrecords: {path}: cannot be read: {path}: not a Parquet file"
    )
    assert text.endswith("1 file, 0 records: 1 fault\n")
