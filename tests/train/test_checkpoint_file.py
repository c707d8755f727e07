# SPDX-License-Identifier: Apache-2.0
"""The file: whatever was changed in it is found, or changes nothing."""

import re
from typing import Any

import fsspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import distinput as di
from distinput.errors import DataLossError, NotFoundError, StateError
from distinput.train.checkpoint_file import CheckpointFile, file_of, write_checkpoint

ARRAYS = {"a/b": np.arange(6.0).reshape(2, 3), "é": np.asfortranarray(np.ones((2, 2), "i2")), "0": np.array(3)}
HEADER = {"entries": {"x": [1, 2.5, "ü\ud800", None]}}


@pytest.fixture(scope="module")
def content(tmp_path_factory: Any) -> bytes:
    path = str(tmp_path_factory.mktemp("file") / "ckpt-1")
    write_checkpoint(path, HEADER, ARRAYS)
    with CheckpointFile(path) as file:
        assert file.content()[:2] == b"PK"
        return file.content()


def read(content: bytes) -> tuple[Any, dict[str, Any]]:
    with CheckpointFile("somewhere", content) as file:
        return file.header["entries"], {name: file.array(name) for name in ARRAYS}


def test_what_was_written_is_read(content: bytes) -> None:
    entries, arrays = read(content)
    assert entries == HEADER["entries"]
    for name, array in ARRAYS.items():
        assert arrays[name].tolist() == array.tolist()
        assert arrays[name].dtype == array.dtype


@settings(max_examples=400)
@given(st.data())
def test_a_changed_byte_is_refused_or_changes_nothing(content: bytes, data: Any) -> None:
    """Law: flip any bits of any byte; what is read is what was written, or reading is a DataLossError."""
    at, bits = data.draw(st.integers(0, len(content) - 1)), data.draw(st.integers(1, 255))
    changed = bytearray(content)
    changed[at] ^= bits
    try:
        entries, arrays = read(bytes(changed))
    except DataLossError as error:
        assert "somewhere.npz: the checkpoint is damaged" in str(error)  # noqa: PT017 - either is right
    else:
        assert entries == HEADER["entries"]
        assert all(np.array_equal(arrays[name], array) for name, array in ARRAYS.items())


@settings(max_examples=100)
@given(st.data())
def test_a_file_that_was_cut_off_is_refused(content: bytes, data: Any) -> None:
    end = data.draw(st.integers(0, len(content) - 1))
    with pytest.raises(DataLossError, match="damaged or was not written to its end"):
        read(content[:end])


def test_an_array_of_another_checkpoint_is_refused(content: bytes, tmp_path: Any) -> None:
    import zipfile

    write_checkpoint(str(tmp_path / "other"), HEADER, {**ARRAYS, "0": np.array(4)})
    with zipfile.ZipFile(tmp_path / "other.npz") as other:
        members = {name: other.read(name) for name in other.namelist()}
    with zipfile.ZipFile(tmp_path / "mixed.npz", "w") as mixed:
        with CheckpointFile("x", content) as file:
            members["checkpoint.json"] = file._archive.read("checkpoint.json")
        for name, data in members.items():
            mixed.writestr(name, data)
    with pytest.raises(DataLossError, match=r"the checksum of '0\.npy' differs"):
        CheckpointFile(str(tmp_path / "mixed"))


def test_numpy_opens_it(tmp_path: Any) -> None:
    write_checkpoint(str(tmp_path / "ckpt-1"), HEADER, ARRAYS)
    with np.load(tmp_path / "ckpt-1.npz") as found:
        assert found["a/b"].tolist() == ARRAYS["a/b"].tolist()


def test_every_save_has_an_id_of_its_own(tmp_path: Any) -> None:
    path = str(tmp_path / "ckpt-1")
    first = write_checkpoint(path, HEADER, ARRAYS)
    with CheckpointFile(path) as file:
        assert file.id == first
    assert write_checkpoint(path, HEADER, ARRAYS) != first


def test_a_newer_version_and_other_archives_are_refused(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    np.savez(tmp_path / "other.npz", a=1)
    with pytest.raises(DataLossError, match=r"other\.npz: the checkpoint is damaged"):
        CheckpointFile(str(tmp_path / "other"))
    with monkeypatch.context() as changed:
        changed.setattr("distinput.train.checkpoint_file.VERSION", 2)
        write_checkpoint(str(tmp_path / "newer"), HEADER, {})
    with pytest.raises(StateError, match="has version 2, this distinput reads version 1"):
        CheckpointFile(str(tmp_path / "newer"))
    with pytest.raises(NotFoundError):
        CheckpointFile(str(tmp_path / "nothing"))


def test_the_name_of_the_file() -> None:
    assert file_of("a/ckpt-1") == file_of("a/ckpt-1.npz") == "a/ckpt-1.npz"


@pytest.mark.parametrize(
    "asked, said",
    [
        (
            "ck",
            "ck.npz: there is no such checkpoint; FOLDER has ck-1, as save appends a number: restore the path that save",
        ),
        ("model", "FOLDER has 11 others, the last one model-11, as save appends a number"),
        ("else", "FOLDER has 12 others, the last one model-11: restore the path that save returned"),
        (
            "",
            "FOLDER has 12 others, the last one model-11: restore the path that save returned, or that latest_checkpoint(",
        ),
    ],
)
@pytest.mark.parametrize("kind", ["folder", "URL"])
def test_a_checkpoint_that_is_not_there_names_those_that_are(asked: str, said: str, kind: str, tmp_path: Any) -> None:
    folder = str(tmp_path) if kind == "folder" else f"memory://{tmp_path.name}"
    checkpoint = di.train.Checkpoint(x=np.arange(3))
    checkpoint.save(f"{folder}/ck")
    for number in range(1, 12):
        checkpoint.write(f"{folder}/model-{number}")
    path = f"{folder}/{asked}" if asked else folder
    with pytest.raises(NotFoundError, match=re.escape(said.replace("FOLDER", folder))):
        checkpoint.restore(path)
    with pytest.raises(NotFoundError, match=r"nowhere/ck\.npz"):
        checkpoint.restore(f"{folder}/nowhere/ck")


def test_a_store_that_lists_nothing_says_that_the_checkpoint_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    def listed(*_: Any, **__: Any) -> Any:
        raise NotImplementedError("ls")

    monkeypatch.setattr(fsspec.get_filesystem_class("memory"), "ls", listed)
    with pytest.raises(NotFoundError, match=r"memory://nowhere/ck\.npz"):
        CheckpointFile("memory://nowhere/ck")
