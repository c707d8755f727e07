# SPDX-License-Identifier: Apache-2.0
"""Stores of obstore behave as other file systems do."""

import errno
import pickle
import re
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.errors import InvalidArgumentError, NotFoundError
from distinput.files import mounts, object_store
from distinput.files.mounts import mount
from distinput.files.object_store import ObjectStoreFiles
from distinput.files.paths import file_system, list_matching
from distinput.files.retries import _UNREACHABLE, transient

obstore = pytest.importorskip("obstore", reason="obstore is not installed")


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Any:
    from obstore.store import MemoryStore

    monkeypatch.setattr(mounts, "_MOUNTS", {})
    made = MemoryStore()
    for name in ("a.txt", "sub/b.txt", "sub/c.csv"):
        obstore.put(made, name, f"{name}\n".encode() * 3)
    return made


def test_files_are_listed_read_and_restored(store: Any) -> None:
    lines = di.data.TextLineDataset(["a.txt", "sub/*.txt"], filesystem=store)
    assert lines.to_list() == [b"a.txt"] * 3 + [b"sub/b.txt"] * 3
    iterator = iter(lines)
    for _ in range(4):
        next(iterator)
    assert len(list(lines.restore(iterator.state()))) == 2
    assert di.data.TextLineDataset("sub/", filesystem=store).to_list() == [b"sub/b.txt"] * 3 + [b"sub/c.csv"] * 3
    with pytest.raises(NotFoundError, match="missing; No such file"):
        di.data.TextLineDataset("missing", filesystem=store).to_list()


def test_files_are_written_and_appear_when_they_are_complete(store: Any) -> None:
    mount("lake://", store)
    with di.io.TFRecordWriter("lake://new/a.tfrecord") as writer:
        writer.write(b"one")
        assert not [name for name in list_matching("lake://**") if "new" in name]
    assert di.data.TFRecordDataset("lake://new/a.tfrecord").to_list() == [b"one"]
    di.io.write_parquet("lake://new/a.parquet", {"x": np.arange(5)}, row_group_size=2)
    assert [row["x"] for row in di.data.ParquetDataset("lake://new/a.parquet").skip(3)] == [3, 4]
    with pytest.raises(KeyError), di.io.TFRecordWriter("lake://new/b.tfrecord") as writer:
        raise KeyError
    assert list_matching("lake://new/*") == ["lake://new/a.parquet", "lake://new/a.tfrecord"]


def test_it_answers_as_file_systems_of_fsspec_do(store: Any) -> None:
    mount("lake://", store)
    system, name = file_system("lake://a.txt")
    assert system.info(name)["size"] == system.size(name) == 18
    assert system.cat_file(name) == b"a.txt\n" * 3
    assert system.cat_file(name, 2, 4) == system.cat_file(name, -16, -14) == b"tx"
    assert [bytes(each) for each in system.cat_ranges([name, "sub/b.txt", name], [0, 4, 3], [1, 9, 3])] == [
        b"a",
        b"b.txt",
        b"",
    ]
    assert system.exists("sub")
    assert system.isdir("sub")
    assert not system.exists("su")
    assert system.ls("sub", detail=False) == ["sub/b.txt", "sub/c.csv"]
    with system.open(name) as file:
        file.seek(6)
        assert bytes(file.read(5)) == b"a.txt"
    before = system.ukey(name)
    obstore.put(store, name, b"other")
    assert system.ukey(name) != before
    system.cp_file(name, "copy")
    system.rm_file(name)
    assert not system.exists(name)
    with pytest.raises(FileNotFoundError):
        system.rm_file(name)
    failed = system.cat_ranges([name], [0], [1])
    assert isinstance(failed[0], FileNotFoundError)


@pytest.mark.parametrize(
    "kind, options, prefix",
    [
        ("S3Store", {"bucket": "b", "prefix": "in/side"}, "s3://b/in/side/"),
        ("S3Store", {"bucket": "b"}, "s3://b/"),
        ("GCSStore", {"bucket": "b"}, "gs://b/"),
        ("AzureStore", {"container_name": "c", "account_name": "a"}, "az://c/"),
    ],
)
def test_urls_of_a_store_begin_with_its_bucket(kind: str, options: dict[str, str], prefix: str, store: Any) -> None:
    from distinput.files.mounts import stored

    made = getattr(obstore.store, kind)(**options)
    names, storage = stored(["x", prefix + "y"], None, made)
    assert names == [prefix + "x", prefix + "y"]
    assert mounts.mounted(prefix + "x").opened(prefix + "x")[1] == "x"  # type: ignore[union-attr]
    assert pickle.loads(pickle.dumps(storage)).mounts[0].same_as(mounts.mounted(prefix))


def test_obstore_by_name_opens_what_urls_name(store: Any) -> None:
    data = di.data.TextLineDataset("s3://bucket/a.txt", filesystem="obstore", storage_options={"region": "eu-west-1"})
    system, name = file_system("s3://bucket/a.txt")
    assert (system._store.config["region"], name) == ("eu-west-1", "a.txt")
    assert "eu-west-1" not in data.explain().__str__()


def test_urls_that_fsspec_has_no_package_for_are_obstores(store: Any) -> None:
    try:
        system, name = file_system("gs://bucket/a/b.txt")
    except di.errors.InvalidArgumentError:  # pragma: no cover
        pytest.fail("obstore opens gs://")
    assert name.endswith("a/b.txt")
    assert type(system).__name__ in ("ObjectStoreFiles", "GCSFileSystem")


def test_a_store_that_does_not_know_ends_is_not_asked_for_them_again(
    store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    mount("lake://", store)
    system, name = file_system("lake://a.txt")
    found, data = system.ending(name, 4)
    assert (found["size"], bytes(data)) == (18, b"txt\n")
    asked = list[Any]()

    def refusing(*args: Any, **kwargs: Any) -> Any:
        asked.append(args)
        raise obstore.exceptions.NotSupportedError("suffix ranges")

    monkeypatch.setattr(object_store.obstore, "get", refusing)
    for _ in range(2):
        with pytest.raises(NotImplementedError, match=r"a\.txt"):
            system.ending(name, 4)
    assert len(asked) == 1


@pytest.mark.parametrize("name", ["./a.txt", "a//b.txt", "sub/../a.txt"])
def test_what_is_no_name_of_an_object_is_named(name: str, store: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=f"{re.escape(name)}: cannot be the name of an object"):
        di.data.TextLineDataset(name, filesystem=store).to_list()


@pytest.mark.parametrize(
    "said, number, passes",
    [
        ("Server returned non-2xx status code: 403 Forbidden: ", errno.EINVAL, False),
        ("Server returned non-2xx status code: 400 Bad Request", errno.EINVAL, False),
        ("Server returned non-2xx status code: 429 Too Many Requests", errno.EIO, True),
        ("Server returned non-2xx status code: 503 Service Unavailable", errno.EIO, True),
        ("Error performing PUT http://169.254.169.254/latest/api/token in 5 s, after 1 retries", errno.EIO, True),
    ],
)
def test_what_a_store_refuses_is_not_asked_again(said: str, number: int, passes: bool, store: Any) -> None:
    from obstore.exceptions import GenericError

    with (
        pytest.raises(OSError, match=said.replace("(", r"\(")) as caught,
        ObjectStoreFiles(store, "s3://b/").naming("a"),
    ):
        raise GenericError(said)
    assert caught.value.errno == number
    assert transient(caught.value) is passes
    alone = "169.254" in said  # whoever has no credentials learns of it after seconds
    assert bool(_UNREACHABLE.search(str(caught.value))) is alone
    assert ("skip_signature" in str(caught.value)) is alone
