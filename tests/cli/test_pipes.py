# SPDX-License-Identifier: Apache-2.0
"""Commands read pipes once, from their beginning to their end."""

import gzip
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import distinput as di
from distinput.cli import main

RUN = [sys.executable, "-m", "distinput"]
LINES = "".join(f"{n}\n" for n in range(100_000)).encode()


def piped(content: bytes, *words: str) -> tuple[int, str]:
    """Status and output of a command with standard input."""
    done = subprocess.run([*RUN, *words], input=content, capture_output=True, timeout=300, check=False)
    return done.returncode, done.stdout.decode() + done.stderr.decode()


@pytest.mark.parametrize("word", ["-", "/dev/stdin", "/dev/fd/0"])
def test_standard_input_is_read_from_its_beginning(word: str) -> None:
    status, shown = piped(LINES, "count", word, "--json")
    assert (status, json.loads(shown)["records"]) == (0, 100_000)
    status, shown = piped(b"a,b\n1,x\n", "head", "--format", "csv", "--json", word)
    assert (status, json.loads(shown)["value"]) == (0, {"a": 1, "b": "x"})


def test_what_comes_may_be_compressed() -> None:
    status, shown = piped(gzip.compress(LINES), "count", "--json", "-")
    assert (status, json.loads(shown)["records"]) == (0, 100_000)


def test_what_a_shell_puts_in_the_place_of_a_command(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'{"id": 1}\n{"id": 2}\n')
    shell = f"{sys.executable} -m distinput count <(cat {tmp_path}/a.jsonl) {tmp_path}/a.jsonl --json"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, timeout=300, check=True)
    assert json.loads(done.stdout)["records"] == 4


def test_fifos_are_read_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    fifo = tmp_path / "numbers.csv"
    os.mkfifo(fifo)
    for command in (
        ["count"],
        ["stats"],
        ["schema"],
        ["sample", "-n", "1"],
        ["verify"],
        ["convert", "--to", "csv", "-o", str(tmp_path)],
    ):
        writer = threading.Thread(target=fifo.write_bytes, args=(b"n\n1\n2\n",))
        writer.start()
        assert main([command[0], str(fifo), *command[1:]]) == 0
        writer.join()
        assert capsys.readouterr().out
    assert os.listdir(tmp_path / "temporary") == []


def test_fifos_of_a_folder_are_no_files_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    os.mkfifo(tmp_path / "b.txt")
    assert di.data.TextLineDataset(str(tmp_path)).to_list() == [b"one"]
    assert di.data.TextLineDataset(f"{tmp_path}/*.txt").to_list() == [b"one"]
    assert main(["count", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["records"] == 1


def test_formats_that_look_at_the_beginning_refuse_pipes() -> None:
    code = """import distinput as di
for made in (lambda: di.data.CsvDataset("/dev/stdin"), lambda: di.data.JsonLinesDataset("/dev/stdin", {"a": int})):
    try:
        print(len(made().to_list()))
    except di.errors.FailedPreconditionError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], input=b"a\n1\n", capture_output=True, timeout=300, check=True)
    assert done.stdout.count(b"is a pipe, which can be read once") == 2


def test_a_pipe_gets_no_index(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    writing = threading.Thread(target=path.write_text, args=("a\n",))
    writing.start()
    assert main(["index", str(path), "--format", "text"]) == 1
    writing.join()
    assert "an index is kept beside a file, and a pipe is none" in capsys.readouterr().err
