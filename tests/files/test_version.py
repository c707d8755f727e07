# SPDX-License-Identifier: Apache-2.0
"""What is read of a remote file is of one version of it, or an error."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.errors import DataLossError
from distinput.files import mounts
from distinput.files.mounts import mount
from distinput.files.range_requests import FileMetadata, changed
from distinput.files.remote import RemoteFile, RemoteStream, asked, facts_of
from distinput.files.source import EMPTY, FileStream
from distinput.testing.range_server import RangeServer
from tests.ops.iterating import until_error

obstore = pytest.importorskip("obstore", reason="obstore is not installed")

OLD, NEW = ((name * 250 + b"\n") * 2400 for name in (b"old ", b"new "))  # 2.4 MB, of which the beginning is one


@pytest.fixture
def put(monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], Any]:
    """Puts another version of `lake://a`."""
    from obstore.store import MemoryStore

    monkeypatch.setattr(mounts, "_MOUNTS", {})
    store = MemoryStore()
    mount("lake://", store)
    return lambda data: obstore.put(store, "a", data)


def test_an_object_that_is_replaced_while_it_is_read_is_an_error(put: Callable[[bytes], Any]) -> None:
    put(OLD)
    lines = iter(di.data.TextLineDataset("lake://a"))
    found = [next(lines)]
    put(NEW)
    with pytest.raises(DataLossError, match=r"lake://a: changed while it was read: it was '2402400 bytes, ETag"):
        found.extend(lines)
    assert len(found) > 1000
    assert all(line.startswith(b"old") for line in found)


def test_one_that_is_replaced_by_a_shorter_one_is_an_error_at_once(put: Callable[[bytes], Any]) -> None:
    put(OLD)
    with FileStream("lake://a") as source:
        source.more(EMPTY, 1 << 20)
        put(NEW[:100])
        with pytest.raises(DataLossError, match="changed while it was read"):
            source.more(EMPTY, 1 << 20)


@pytest.mark.parametrize("kind", [RemoteFile, RemoteStream])
def test_many_ranges_are_compared_each(put: Callable[[bytes], Any], kind: Any) -> None:
    put(OLD)
    facts = asked("lake://a", facts_of)
    with kind("lake://a", len(OLD), facts) as file:
        file.keep([0, 100_000, 900_000], [10, 100_010, 900_010])
        assert bytes(file.read(10)) == OLD[:10]
        put(NEW)
        with pytest.raises(DataLossError, match="write another file instead of replacing it"):
            file.keep([0, 100_000, 900_000], [10, 100_010, 900_010])


def test_row_groups_are_of_the_version_of_their_footer(put: Callable[[bytes], Any]) -> None:
    for n in range(2):
        di.io.write_parquet(f"lake://{n}", {"x": np.full(4000, n)}, row_group_size=1000, compression="NONE")
    read = iter(di.data.ParquetDataset("lake://0"))
    first = next(read)
    obstore.copy(mounts.mounted("lake://0").opened("lake://0")[0].store, "1", "0")  # type: ignore[union-attr]
    found, error = until_error(read)
    assert first["x"] == 0
    assert isinstance(error, DataLossError)
    assert "changed while it was read" in str(error)
    assert all(row["x"] == 0 for row in found)


def test_a_web_server_is_asked_for_nothing_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mounts, "_MOUNTS", {})
    (tmp_path / "a").write_bytes(OLD)
    options: dict[str, Any] = {"filesystem": "obstore", "storage_options": {"client_options": {"allow_http": True}}}
    with RangeServer(tmp_path) as server:
        assert len(di.data.TextLineDataset(f"{server.url}/a", **options).to_list()) == 2400
        assert sorted(a for _, a, _ in server.requests)[:2] == [0, 1 << 20]
        assert sum(b - a for _, a, b in server.requests) == len(OLD)
        (tmp_path / "c").write_bytes(OLD)  # which was not read to its end before
        lines = iter(di.data.TextLineDataset(f"{server.url}/c"))
        next(lines)
        (tmp_path / "b").write_bytes(NEW)
        os.replace(tmp_path / "b", tmp_path / "c")
        with pytest.raises(DataLossError, match="changed while it was read"):
            list(lines)


def test_what_a_server_does_not_tell_is_not_compared() -> None:
    assert changed("a", FileMetadata(3), FileMetadata(3, etag="1", written="now")) is None
    assert changed("a", FileMetadata(None, etag="1"), FileMetadata(4, etag="1")) is None
    assert changed("a", FileMetadata(3, written="1"), FileMetadata(3, written="2")) is not None
    assert changed("a", FileMetadata(3), FileMetadata(4)) is not None
