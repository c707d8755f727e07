# SPDX-License-Identifier: Apache-2.0
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import distinput as di
from distinput.ops.on_error import Quarantine


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_record_is_written_once_whoever_writes_it(tmp_path: Path) -> None:
    file = tmp_path / "bad.jsonl"
    one, other = Quarantine(file, 9), Quarantine(file, 9)
    assert [q.add({"row": row}) for q in (one, other) for row in (1, 2)] == [True, True, False, False]
    assert other.add({"row": 3})
    assert not one.add({"row": 3})
    assert lines(file) == [{"row": 1}, {"row": 2}, {"row": 3}]


def test_an_element_is_known_by_its_place_and_step(tmp_path: Path) -> None:
    file = tmp_path / "bad.jsonl"
    file.write_text("[1]\nno json\n")
    told = [
        Quarantine(file, 9).add({"file": name, "row": 3, "byte": byte, "op": op, "message": str(number)})
        for number, (name, byte, op) in enumerate([("a", 1, "map"), ("a", 2, "map"), ("b", 1, "map"), ("a", 1, "csv")])
    ]
    assert told == [True, False, True, True]


def test_it_is_bounded(tmp_path: Path) -> None:
    file = tmp_path / "bad.jsonl"
    one, other = Quarantine(file, 3), Quarantine(file, 3)
    assert [q.add({"row": row}) for row in range(5) for q in (one, other)] == [True, False] * 3 + [False] * 4
    assert Quarantine(tmp_path / "long", 1).add({"text": "x" * 10**6, "more": None})
    assert (tmp_path / "long").stat().st_size < 2000


def test_the_rest_of_a_line_of_a_process_that_died_is_removed(tmp_path: Path) -> None:
    file = tmp_path / "bad.jsonl"
    file.write_text('{"row": 1}\n{"row')
    assert Quarantine(file, 9).add({"row": 2})
    assert lines(file) == [{"row": 1}, {"row": 2}]


def test_a_file_that_was_emptied_is_begun_anew(tmp_path: Path) -> None:
    file = tmp_path / "bad.jsonl"
    one = Quarantine(file, 2)
    assert [one.add({"row": row}) for row in (1, 2)] == [True, True]
    os.truncate(file, 0)
    assert Quarantine(file, 2).add({"row": 3})
    assert lines(file) == [{"row": 3}]


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(
        di.errors.NotFoundError, match="the folder of this quarantine file does not exist; make it first"
    ):
        Quarantine(tmp_path / "no" / "bad.jsonl", 2).add({"row": 1})


WRITER = """
import sys
from distinput.ops.on_error import Quarantine
file = Quarantine(sys.argv[1], 1000)
for row in range(200):
    file.add({"row": row, "text": "t" * (row % 7 * 100)})
"""


def test_several_processes_write_at_the_same_time(tmp_path: Path) -> None:
    file = tmp_path / "bad.jsonl"
    workers = [subprocess.Popen([sys.executable, "-c", WRITER, str(file)]) for _ in range(3)]
    assert [worker.wait(timeout=300) for worker in workers] == [0, 0, 0]
    assert sorted(line["row"] for line in lines(file)) == list(range(200))  # type: ignore[type-var]
