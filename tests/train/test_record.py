# SPDX-License-Identifier: Apache-2.0
"""The record of a folder."""

from typing import Any

import numpy as np
import pytest

from distinput.errors import DataLossError
from distinput.train import Checkpoint, CheckpointManager, latest_checkpoint
from distinput.train.record import Record, is_whole


def test_a_record_is_read_as_it_was_written(tmp_path: Any) -> None:
    record = Record(str(tmp_path), "b-2", {"a-1": 1.5, "b-2": 2.5}, ["c-3"], 0.25)
    record.write()
    assert Record.read(str(tmp_path)) == record
    assert list(record.newest_first()) == ["b-2", "a-1", "c-3"]


def test_an_empty_folder_has_nothing(tmp_path: Any) -> None:
    assert Record.read(str(tmp_path / "nothing")) == Record(str(tmp_path / "nothing"))
    assert latest_checkpoint(tmp_path) is None


def test_numbers_tell_the_order_where_there_is_no_record(tmp_path: Any) -> None:
    for name in ("ckpt-9", "ckpt-10", "best"):
        Checkpoint(a=np.ones(1)).write(tmp_path / name)
    (tmp_path / ".ckpt-11.npz.0.distinput-unfinished").write_bytes(b"PK")
    assert Record.read(str(tmp_path)).others == ["ckpt-9", "ckpt-10"]
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
