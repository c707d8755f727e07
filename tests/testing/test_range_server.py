# SPDX-License-Identifier: Apache-2.0
"""Over HTTP only what is needed is asked for, with fsspec and with obstore."""

import socket
import struct
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import distinput as di
from distinput.files import mounts
from distinput.testing.range_server import Link, RangeServer

ROWS = 150_000
ENGINES = [
    pytest.param(None, marks=pytest.mark.needs("aiohttp")),
    pytest.param("obstore", marks=pytest.mark.needs("obstore")),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("served")
    dice = np.random.default_rng(0)
    columns: dict[str, Any] = {f"c{n}": dice.random(ROWS) for n in range(20)}
    columns["small"] = dice.integers(0, 200, ROWS).astype(np.uint8)
    di.io.write_parquet(str(made / "wide.parquet"), columns, row_group_size=50_000)
    (made / "a.txt").write_bytes(b"".join(b"%d\n" % n for n in range(400_000)))
    (made / "empty.txt").write_bytes(b"")
    return made


@pytest.fixture
def server(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RangeServer]:
    monkeypatch.setattr(mounts, "_MOUNTS", {})
    with RangeServer(folder, latency=0.02) as made:
        yield made


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> dict[str, Any]:
    if request.param == "obstore":
        pytest.importorskip("obstore", reason="obstore is not installed")
        return {"filesystem": "obstore", "storage_options": {"client_options": {"allow_http": True}}}
    return {}


@pytest.mark.parametrize("columns", [["c3"], ["small"], ["c0", "c19"], None])
def test_no_more_than_the_chunks_of_the_columns_are_sent(
    server: RangeServer, folder: Path, engine: dict[str, Any], columns: list[str] | None
) -> None:
    path = folder / "wide.parquet"
    footer = pq.read_metadata(path)
    wanted = sum(
        footer.row_group(group).column(i).total_compressed_size
        for group in range(footer.num_row_groups)
        for i in range(footer.num_columns)
        if columns is None or footer.schema.column(i).name in columns
    )
    url = f"{server.url}/wide.parquet"
    rows = di.data.ParquetDataset(url, columns=columns, **engine)
    assert len(rows) == ROWS  # its footer is read
    footer_bytes, before = server.sent, len(server.requests)
    found = rows.batch(50_000).to_list()
    assert len(found) == 3
    assert server.sent - footer_bytes <= 1.1 * wanted
    assert footer_bytes <= 64 << 10
    if columns == ["c3"]:
        assert wanted < path.stat().st_size / 15
        assert len(server.requests) - before == 3  # one for each row group


def test_records_are_read_once_with_several_requests_at_a_time(
    server: RangeServer, folder: Path, engine: dict[str, Any]
) -> None:
    lines = di.data.TextLineDataset(f"{server.url}/a.txt", **engine).batch(100_000).to_list()
    assert np.concatenate(lines).tolist() == [b"%d" % n for n in range(400_000)]
    assert server.sent == (folder / "a.txt").stat().st_size
    assert di.data.TextLineDataset(f"{server.url}/empty.txt", **engine).to_list() == []


def test_answers_share_the_bandwidth() -> None:
    link = Link(1000)
    assert [link.seconds(size, now=100.0) for size in (500, 250, 250)] == [0.5, 0.75, 1.0]
    assert link.seconds(500, now=100.5) == 1.0
    assert link.seconds(500, now=200.0) == 0.5  # what was not sent in time is not sent later


def test_a_bounded_bandwidth_changes_no_byte(folder: Path) -> None:
    with RangeServer(folder, bandwidth=1e9) as server:
        name = "a.txt"
        with urllib.request.urlopen(f"{server.url}/{name}") as answer:
            assert answer.read() == (folder / name).read_bytes()


@pytest.mark.parametrize("bandwidth", [0, -1, float("nan")])
def test_a_bandwidth_is_above_0(folder: Path, bandwidth: float) -> None:
    with pytest.raises(ValueError, match="bandwidth must be bytes a second, above 0"):
        RangeServer(folder, bandwidth=bandwidth)


def test_what_is_missing_is_an_error_at_once(server: RangeServer, engine: dict[str, Any]) -> None:
    with pytest.raises(di.errors.NotFoundError, match=r"missing\.txt; No such file"):
        di.data.TextLineDataset(f"{server.url}/missing.txt", **engine).to_list()


@pytest.mark.parametrize("pattern", ["*.txt", "**/*.txt", "folder/*.txt"])
def test_patterns_are_not_for_web_servers_that_obstore_reads(server: RangeServer, pattern: str) -> None:
    pytest.importorskip("obstore", reason="obstore is not installed")
    with pytest.raises(di.errors.InvalidArgumentError, match="a web server does not list its files; name each of them"):
        di.data.TextLineDataset(
            f"{server.url}/{pattern}", filesystem="obstore", storage_options={"client_options": {"allow_http": True}}
        )


def test_a_pass_that_is_broken_off_asks_for_little_more(server: RangeServer, engine: dict[str, Any]) -> None:
    iterator = iter(di.data.TextLineDataset(f"{server.url}/a.txt", **engine))
    assert next(iterator) == b"0"
    iterator.close()
    assert server.sent <= 1 << 20


def test_it_serves_one_folder_and_nothing_else(folder: Path) -> None:
    with RangeServer(folder) as server:
        for name in ("../conftest.py", "..%2f..%2fetc%2fpasswd", "no"):
            with pytest.raises(urllib.error.HTTPError, match="404"):
                urllib.request.urlopen(f"{server.url}/{name}")
        with urllib.request.urlopen(f"{server.url}/a.txt") as answer:
            assert len(answer.read()) == server.sent
        server.reset()
        assert (server.sent, server.requests) == (0, [])


def test_it_serves_as_a_program(folder: Path) -> None:
    command = [sys.executable, "-m", "distinput.testing.range_server", str(folder), "--latency", "0.001"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        url = process.stdout.readline().strip()
        with urllib.request.urlopen(f"{url}/a.txt") as answer:
            assert answer.status == 200
        process.stdin.close()
        assert process.wait(60) == 0


def test_a_client_that_broke_its_connection_does_not_keep_it_from_ending(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"x")
    with RangeServer(tmp_path, latency=0.3) as server:
        client = socket.create_connection(("127.0.0.1", int(server.url.rpartition(":")[2])))
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # the end is a reset
        client.sendall(b"GET /a.txt HTTP/1.1\r\nHost: x\r\n\r\n")
        while not server.connections:
            time.sleep(0.01)
        client.close()
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", int(server.url.rpartition(":")[2])))
