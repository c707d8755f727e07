# SPDX-License-Identifier: Apache-2.0
"""A real S3 server on loopback (moto), read and written through obstore, PyArrow and, where it is installed, s3fs."""

import importlib.util
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.files import mounts, object_store
from distinput.files.paths import file_system
from tests.patience import threads_since

SERVER = """
import sys
import threading
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print(server._server.port, flush=True)
sys.stdin.read()
server.stop()
"""
KEY, SECRET = "an-access-key", "a word that nobody may see"
LACKS = {name: importlib.util.find_spec(name) is None for name in ("moto", "flask_cors", "obstore", "s3fs")}


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    if LACKS["moto"] or LACKS["flask_cors"]:
        pytest.skip("moto or flask-cors is not installed, of which the server is made")
    with subprocess.Popen(
        [sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as made:
        assert made.stdout is not None
        assert made.stdin is not None
        url = f"http://127.0.0.1:{made.stdout.readline().strip()}"
        urllib.request.urlopen(urllib.request.Request(f"{url}/bucket", method="PUT")).close()
        yield url
        made.stdin.close()
        made.wait(60)


@pytest.fixture(params=["obstore", "obstore by name", "pyarrow", "s3fs"])
def storage(request: pytest.FixtureRequest, endpoint: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The arguments of a constructor that opens `s3://bucket/`."""
    monkeypatch.setattr(mounts, "_MOUNTS", {})
    package = request.param.split()[0]
    if LACKS.get(package):
        pytest.skip(f"{package} is not installed")
    config = {"endpoint": endpoint, "access_key_id": KEY, "secret_access_key": SECRET, "region": "us-east-1"}
    http = {"allow_http": True}
    match request.param:
        case "obstore":
            from obstore.store import S3Store

            return {"filesystem": S3Store("bucket", config=config, client_options=http)}
        case "obstore by name":
            return {"filesystem": "obstore", "storage_options": {**config, "client_options": http}}
        case "pyarrow":
            from pyarrow.fs import S3FileSystem

            host = endpoint.removeprefix("http://")
            system = S3FileSystem(
                access_key=KEY, secret_key=SECRET, endpoint_override=host, scheme="http", region="us-east-1"
            )
            return {"filesystem": system}
    return {"storage_options": {"key": KEY, "secret": SECRET, "endpoint_url": endpoint}}


def test_what_is_written_is_listed_read_and_restored(storage: dict[str, Any], request: pytest.FixtureRequest) -> None:
    root = f"s3://bucket/{request.node.callspec.id.replace(' ', '-')}"
    with pytest.raises(di.errors.NotFoundError):
        di.data.TFRecordDataset(f"{root}/0.tfrecord", **storage).to_list()  # and the bucket is mounted now
    for part in range(3):
        with di.io.TFRecordWriter(f"{root}/{part}.tfrecord") as writer:
            for n in range(10):
                writer.write(b"%d" % (10 * part + n))
    wanted = [b"%d" % n for n in range(30)]
    assert di.data.TFRecordDataset(f"{root}/*.tfrecord", **storage).to_list() == wanted
    assert di.data.TFRecordDataset(f"{root}/{{0..2}}.tfrecord", **storage).to_list() == wanted
    records = di.data.TFRecordDataset(f"{root}/", **storage)
    iterator = iter(records)
    head = [next(iterator) for _ in range(15)]
    state = iterator.state()
    assert head + list(records.restore(state)) == wanted
    names = di.data.Dataset.list_files(f"{root}/*", shuffle=False, **storage)
    assert names.to_list() == [f"{root}/{part}.tfrecord".encode() for part in range(3)]
    assert SECRET not in str(state) + str(records.explain()) + repr(records.node) + repr(names.node)


def test_columns_of_parquet_are_read_from_their_row_groups(storage: dict[str, Any]) -> None:
    rows = di.data.ParquetDataset("s3://bucket/table.parquet", columns=["x"], **storage)  # and the bucket is mounted
    columns = {"x": np.arange(1000), "y": np.ones(1000)}
    di.io.write_parquet("s3://bucket/table.parquet", columns, row_group_size=100)
    assert len(rows) == 1000
    assert [row["x"] for row in rows.skip(250).take(3)] == [250, 251, 252]


def test_wrong_names_and_missing_rights_are_errors_at_once(storage: dict[str, Any]) -> None:
    for name in ("s3://bucket/missing", "s3://bucket/missing.parquet"):
        with pytest.raises(di.errors.NotFoundError, match="missing"):
            di.data.TextLineDataset(name, **storage).to_list()
    with pytest.raises(di.errors.NoMatchError):
        di.data.TextLineDataset("s3://bucket/*.nothing", **storage)


@pytest.mark.parametrize("storage", ["obstore"], indirect=True)
def test_a_large_object_is_uploaded_in_parts_while_it_is_written(
    storage: dict[str, Any], endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_store, "PART_BYTES", 5 << 20)
    monkeypatch.setattr(object_store, "PART_BYTES", 5 << 20)
    part = np.random.default_rng(0).bytes(1 << 20)
    di.data.TextLineDataset("s3://bucket/x", **storage)  # mounts the bucket
    system, name = file_system("s3://bucket/parts/large")
    before = threading.enumerate()
    file = system.open(name, "wb")
    held = [file.write(part) and file._size for _ in range(12)]
    assert max(held) < 5 << 20
    assert not system.exists(name)
    file.close()
    assert system.cat_file(name) == part * 12
    dropped = system.open("parts/dropped", "wb")
    for _ in range(6):
        dropped.write(part)
    dropped.discard()
    assert system.find("parts") == ["parts/large"]
    assert b"<Upload>" not in urllib.request.urlopen(f"{endpoint}/bucket?uploads").read()  # no part is left
    assert threads_since(before, "distinput-upload") == []


@pytest.mark.needs("deltalake")
def test_a_version_of_a_delta_table(endpoint: str) -> None:
    import deltalake
    import pyarrow as pa
    from obstore.store import S3Store

    options = {"AWS_ENDPOINT_URL": endpoint, "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}
    options |= {"AWS_REGION": "us-east-1", "AWS_ALLOW_HTTP": "true", "AWS_S3_ALLOW_UNSAFE_RENAME": "true"}
    config = {"endpoint": endpoint, "access_key_id": KEY, "secret_access_key": SECRET, "region": "us-east-1"}
    table = pa.table({"x": [1, 2], "p": ["a b%", "é/"]})
    deltalake.write_deltalake("s3://bucket/a table", table, partition_by=["p"], storage_options=options)
    store = S3Store("bucket", config=config, client_options={"allow_http": True})
    made = di.interop.tables.from_delta("s3://bucket/a table", storage_options=options, filesystem=store)
    assert sorted(made.to_list(), key=lambda row: row["x"]) == [{"x": 1, "p": b"a b%"}, {"x": 2, "p": "é/".encode()}]
    with iter(made) as iterator:
        next(iterator)
        assert SECRET not in f"{made} {iterator.state()}"
