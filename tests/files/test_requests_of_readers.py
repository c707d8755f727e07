# SPDX-License-Identifier: Apache-2.0
"""How many requests readers make of small remote files, and that what they read is what is in them."""

import io
import json
import tarfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.files import mounts
from distinput.files.object_store import ObjectStoreFiles
from distinput.testing.range_server import RangeServer

pytest.importorskip("obstore", reason="obstore is not installed")

FILES, ROWS = 5, 30
LONG = "text " * 120


def write_arrow(path: Path, first: int) -> None:
    di.io.write_arrow(path, {"x": np.arange(first, first + ROWS)})


def write_csv(path: Path, first: int) -> None:
    path.write_text("x,y\n" + "".join(f"{first + row},text {row}\n" for row in range(ROWS)))


def write_jsonl(path: Path, first: int) -> None:
    mark = "\ufeff" if first % 2 else ""  # as editors of Windows write it
    path.write_text(mark + "".join(json.dumps({"x": first + row}) + "\n" for row in range(ROWS)))


def write_npy(path: Path, first: int) -> None:
    np.save(path, np.arange(first, first + ROWS))


def write_parquet(path: Path, first: int) -> None:
    di.io.write_parquet(path, {"x": np.arange(first, first + ROWS)})


def write_tar(path: Path, first: int) -> None:
    with tarfile.open(path, "w") as archive:
        for row in range(ROWS):
            content = f"{first + row}".encode()
            member = tarfile.TarInfo(f"{row:03}.cls")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


READERS: dict[str, tuple[Callable[[Path, int], None], Callable[[Sequence[str]], di.data.Dataset[Any]]]] = {
    "arrow": (write_arrow, di.data.ArrowDataset),
    "csv": (write_csv, lambda names: di.data.CsvDataset(names, [np.int64(0), b""], header=True)),
    "jsonl": (write_jsonl, di.data.JsonLinesDataset),
    "npy": (write_npy, di.data.NpyDataset),
    "parquet": (write_parquet, di.data.ParquetDataset),
    "tar": (write_tar, di.data.WebDataset),
}


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RangeServer]:
    monkeypatch.setattr(mounts, "_MOUNTS", {})
    with RangeServer(tmp_path) as made:
        di.io.mount(f"{made.url}/", "obstore")
        yield made


@pytest.fixture
def versions(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files whose size and version were asked for."""
    asked: list[str] = []
    info = ObjectStoreFiles.info

    def noted(self: ObjectStoreFiles, path: str, **options: Any) -> dict[str, Any]:
        asked.append(path)
        return info(self, path, **options)

    monkeypatch.setattr(ObjectStoreFiles, "info", noted)
    return asked


@pytest.mark.parametrize("kind", READERS)
def test_a_small_file_takes_one_request_behind_that_for_its_version(
    tmp_path: Path, server: RangeServer, versions: list[str], kind: str
) -> None:
    write, reader = READERS[kind]
    names = [f"{number}.{kind}" for number in range(FILES)]
    for number, name in enumerate(names):
        write(tmp_path / name, 1000 * number + number)
    remote, local = reader([f"{server.url}/{name}" for name in names]), reader([str(tmp_path / name) for name in names])
    wanted = local.to_list()
    assert remote.to_list() == wanted  # and what files say of themselves is known now
    server.reset()
    versions.clear()
    assert remote.to_list() == wanted
    assert sorted(name for name, *_ in server.requests) == names
    # What is read from the front says what it is in the answer that has its beginning.
    assert all(versions.count(name) <= (kind not in ("csv", "jsonl")) for name in names), versions
    with iter(remote) as iterator:
        found = [next(iterator) for _ in range(2 * ROWS + 7)]
        state = iterator.state()
    assert found + list(remote.restore(state)) == wanted


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_of_a_long_text_no_byte_is_asked_for_twice(tmp_path: Path, server: RangeServer, kind: str) -> None:
    rows = 4000
    lines = {"csv": "{0},%s\n", "jsonl": '{{"x": {0}, "y": "%s"}}\n'}[kind] % LONG
    path = tmp_path / f"long.{kind}"
    path.write_text(("x,y\n" if kind == "csv" else "") + "".join(map(lines.format, range(rows))))
    assert path.stat().st_size > 1 << 21
    reader = READERS[kind][1]
    remote, wanted = reader([f"{server.url}/{path.name}"]), reader([str(path)]).to_list()
    assert remote.to_list() == wanted
    server.reset()
    assert remote.to_list() == wanted
    assert server.sent == path.stat().st_size
    assert remote.skip(rows - 10).to_list() == wanted[-10:]


def test_of_a_part_of_a_long_file_of_json_a_few_bytes_of_its_beginning_are_asked_for(
    tmp_path: Path, server: RangeServer
) -> None:
    path = tmp_path / "long.jsonl"
    path.write_text("".join(f'{{"x": {row}, "y": "{LONG}"}}\n' for row in range(6000)))
    remote = di.data.JsonLinesDataset([f"{server.url}/{path.name}"])
    with iter(remote) as iterator:
        for _ in range(5000):
            next(iterator)
        state = iterator.state()
    server.reset()
    rest = list(remote.restore(state))
    assert [int(row["x"]) for row in rest] == list(range(5000, 6000))
    assert ("long.jsonl", 0, 10) in server.requests
    assert server.sent < path.stat().st_size // 2
