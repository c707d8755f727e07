# SPDX-License-Identifier: Apache-2.0
"""The record of a folder."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.errors import DataLossError, InputWarning
from distinput.train import Checkpoint, CheckpointManager, latest_checkpoint
from distinput.train.manager import CheckpointIndex, is_whole


def test_a_record_is_read_as_it_was_written(tmp_path: Any) -> None:
    record = CheckpointIndex(str(tmp_path), "b-2", {"a-1": 1.5, "b-2": 2.5}, ["c-3"], 0.25)
    record.write()
    assert CheckpointIndex.read(str(tmp_path)) == record
    assert list(record.newest_first()) == ["b-2", "a-1", "c-3"]


def test_an_empty_folder_has_nothing(tmp_path: Any) -> None:
    assert CheckpointIndex.read(str(tmp_path / "nothing")) == CheckpointIndex(str(tmp_path / "nothing"))
    assert latest_checkpoint(tmp_path) is None


def test_numbers_tell_the_order_where_there_is_no_record(tmp_path: Any) -> None:
    for name in ("ckpt-9", "ckpt-10", "best"):
        Checkpoint(a=np.ones(1)).write(tmp_path / name)
    (tmp_path / ".ckpt-11.npz.0.distinput-unfinished").write_bytes(b"PK")
    assert CheckpointIndex.read(str(tmp_path)).others == ["ckpt-9", "ckpt-10"]
    assert latest_checkpoint(str(tmp_path)) == f"{tmp_path}/ckpt-10"


def test_save_does_not_give_its_checkpoints_to_a_manager(tmp_path: Any) -> None:
    checkpoint = Checkpoint(a=1)
    path = checkpoint.save(tmp_path / "mine")
    manager = CheckpointManager(checkpoint, tmp_path, max_to_keep=1)
    assert manager.latest_checkpoint == path
    assert manager.checkpoints == []
    for _ in range(3):
        manager.save()
    assert sorted(found.name for found in tmp_path.iterdir()) == ["checkpoint", "ckpt-4.npz", "mine-1.npz"]


def test_another_name_for_the_record_is_refused(tmp_path: Any) -> None:
    with pytest.raises(ValueError, match="always named 'checkpoint', got latest_filename='other'"):
        latest_checkpoint(tmp_path, "other")


def test_what_was_verified_is_not_verified_again_unless_it_changed(tmp_path: Any) -> None:
    path = Checkpoint(a=np.ones(1)).write(tmp_path / "ckpt-1")
    assert not is_whole(path)
    assert latest_checkpoint(tmp_path) == path
    assert is_whole(path)
    content = bytearray((tmp_path / "ckpt-1.npz").read_bytes())
    content[60] ^= 1
    (tmp_path / "ckpt-1.npz").write_bytes(content)
    assert not is_whole(path)
    with pytest.raises(DataLossError):
        latest_checkpoint(tmp_path)


@pytest.mark.parametrize("name", ["../victim", "/tmp/victim", "a/../victim", "..", "", 3])
@pytest.mark.parametrize("at", ["latest", "managed", "others", "removed"])
def test_a_record_names_files_of_its_folder(tmp_path: Path, at: str, name: Any) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    (tmp_path / "victim.npz").write_bytes(b"precious")
    forged: dict[str, Any] = {
        "format": "distinput.checkpoints", "latest": None, "managed": [], "others": [], "preserved": None, "removed": [],
    }  # fmt: skip
    forged[at] = name if at == "latest" else [[name, 0.0]] if at == "managed" else [name]
    (folder / "checkpoint").write_text(json.dumps(forged))
    checkpoint = di.train.Checkpoint(x=np.zeros(2))
    with pytest.warns(InputWarning, match=r"the record of checkpoints is damaged .* is not the name of a file"):
        manager = di.train.CheckpointManager(checkpoint, str(folder), max_to_keep=1)
    with pytest.warns(InputWarning):
        assert di.train.latest_checkpoint(str(folder)) is None
    assert manager.checkpoints == []
    with pytest.warns(InputWarning):
        manager.save()
    manager.save()
    assert (tmp_path / "victim.npz").read_bytes() == b"precious"


def test_a_checkpoint_that_is_a_link_out_of_the_folder_is_not_the_latest(tmp_path: Path) -> None:
    di.train.Checkpoint(x=np.arange(2.0)).write(str(tmp_path / "outside"))
    folder = tmp_path / "run"
    checkpoint = di.train.Checkpoint(x=np.zeros(2))
    first = checkpoint.save(str(folder / "ckpt"))
    last = checkpoint.save(str(folder / "ckpt"))
    os.unlink(f"{last}.npz")
    os.symlink(tmp_path / "outside.npz", f"{last}.npz")
    with pytest.warns(InputWarning, match="is a symbolic link out of its folder"):
        assert di.train.latest_checkpoint(str(folder)) == first
    checkpoint.write(last)  # takes the place of the link
    assert di.train.load_variable(str(tmp_path / "outside"), "x").tolist() == [0.0, 1.0]
