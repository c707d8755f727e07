# SPDX-License-Identifier: Apache-2.0
"""A manifest stands for a listing, and notices when it does not any more."""

from pathlib import Path

import pytest

import distinput as di
from distinput.errors import DataLossError, InvalidArgumentError, NotFoundError
from distinput.files import paths, source
from distinput.plan.options import AutoShardPolicy

NAMES = ["files.json", "files.parquet"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number in range(6):
        with di.io.TFRecordWriter(str(tmp_path / f"{number}.tfrecord")) as writer:
            for row in range(number + 1):
                writer.write(b"%d-%d" % (number, row))
    return tmp_path


@pytest.mark.parametrize("name", NAMES)
def test_a_manifest_gives_what_listing_gives(folder: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    manifest = str(folder / name)
    written = di.data.experimental.write_manifest(manifest, str(folder / "*.tfrecord"))
    listed = di.data.Dataset.list_files(str(folder / "*.tfrecord"), shuffle=False)
    for module in (paths, source):  # from here on nobody may list, nor ask for a size
        monkeypatch.setattr(module, "glob" if module is paths else "size_of", None)
    read = di.data.experimental.read_manifest(manifest)
    assert list(read) == list(written) == list(listed)
    found = []
    for worker in range(4):
        dataset = di.data.TFRecordDataset(read)
        options = di.data.Options()
        options.experimental_distribute.auto_shard_policy = AutoShardPolicy.BALANCED
        found += list(di.data.experimental.auto_shard_dataset(dataset.with_options(options), 4, worker))
    assert sorted(found) == sorted(di.data.TFRecordDataset(listed))


@pytest.mark.parametrize("policy", [AutoShardPolicy.FILE, AutoShardPolicy.BALANCED])
@pytest.mark.parametrize("name", NAMES)
def test_counted_records_make_the_steps_known(folder: Path, name: str, policy: AutoShardPolicy) -> None:
    manifest = str(folder / name)
    di.data.experimental.write_manifest(manifest, str(folder / "*.tfrecord"), di.data.TFRecordDataset)
    dataset = di.data.TFRecordDataset(di.data.experimental.read_manifest(manifest)).batch(2)
    plan = di.data.experimental.shard_plan(dataset, 2, 1, policy)
    assert plan.end == "beforehand"
    assert sum(worker.rows or 0 for worker in plan.workers) == 21


@pytest.mark.parametrize("reads", [None, 2])
def test_a_file_that_changed_is_an_error_with_the_cure(folder: Path, reads: int | None) -> None:
    manifest = str(folder / "files.json")
    di.data.experimental.write_manifest(manifest, str(folder / "*.tfrecord"))
    with di.io.TFRecordWriter(str(folder / "3.tfrecord")) as writer:
        writer.write(b"new")
    dataset = di.data.TFRecordDataset(di.data.experimental.read_manifest(manifest), num_parallel_reads=reads)
    with pytest.raises(DataLossError, match=r"3\.tfrecord: has changed since the manifest.*write the manifest again"):
        list(dataset)
    for policy in (AutoShardPolicy.BALANCED, AutoShardPolicy.FILE):
        options = di.data.Options()
        options.experimental_distribute.auto_shard_policy = policy
        mine = [
            di.data.experimental.auto_shard_dataset(dataset.with_options(options), 2, worker) for worker in range(2)
        ]
        with pytest.raises(DataLossError, match="has changed since the manifest"):
            [list(part) for part in mine]


def test_a_file_that_is_gone_is_named(folder: Path) -> None:
    manifest = str(folder / "files.json")
    di.data.experimental.write_manifest(manifest, str(folder / "*.tfrecord"))
    (folder / "2.tfrecord").unlink()
    with pytest.raises(NotFoundError, match=r"2\.tfrecord"):
        list(di.data.TFRecordDataset(di.data.experimental.read_manifest(manifest)))


@pytest.mark.parametrize("content", [b"", b"{}", b"[1]", b'{"distinput_manifest": 1}', b"PAR1"])
@pytest.mark.parametrize("name", NAMES)
def test_what_is_no_manifest_is_refused(tmp_path: Path, name: str, content: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataLossError, match="not a distinput manifest"):
        di.data.experimental.read_manifest(str(path))


def test_another_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "files.json"
    path.write_text('{"distinput_manifest": 2, "name": [], "size": [], "rows": [], "stamp": []}')
    with pytest.raises(InvalidArgumentError, match=r"version 2.*write it again"):
        di.data.experimental.read_manifest(str(path))
