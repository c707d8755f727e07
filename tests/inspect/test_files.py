# SPDX-License-Identifier: Apache-2.0
"""Files are found by names, patterns and folders; a manifest says what they are."""

from pathlib import Path

import numpy as np
import pytest

import distinput as di
from distinput.errors import InvalidArgumentError, NoMatchError
from distinput.inspect.files import open_files


def test_a_written_folder_says_what_it_is(tmp_path: Path) -> None:
    written = di.data.Dataset.range(7).write(str(tmp_path / "a"), "csv", shards=2, delimiter=";")
    files = open_files(str(tmp_path / "a"))
    assert files.paths == tuple(written.paths)
    assert files.written is not None
    assert files.recognised.format == "csv"
    assert files.dataset().map(lambda row: row["value"]).to_list() == list(range(7))
    assert files.only(files.paths[0]).paths == files.paths[:1]


def test_patterns_folders_and_lists(tmp_path: Path) -> None:
    for name in ("b.npy", "a.npy"):
        np.save(tmp_path / name, np.arange(3))
    wanted = (str(tmp_path / "a.npy"), str(tmp_path / "b.npy"))
    assert open_files(str(tmp_path / "*.npy")).paths == wanted
    assert open_files(str(tmp_path)).paths == wanted
    assert open_files(list(reversed(wanted))).paths == wanted[::-1]
    with pytest.raises(NoMatchError):
        open_files(str(tmp_path / "*.csv"))


def test_urls_with_storage_options() -> None:
    with di.io.TFRecordWriter("memory://inspect-files/a.tfrecord") as writer:
        writer.write(b"one")
    files = open_files("memory://inspect-files/a.tfrecord", storage_options={"skip_instance_cache": False})
    assert files.dataset().to_list() == [b"one"]
    di.io.unmount("memory://inspect-files/")


def test_an_option_that_the_format_lacks(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(3))
    with pytest.raises(InvalidArgumentError, match=r"^npy: unexpected option 'columns'"):
        open_files(str(tmp_path / "a.npy"), columns=["x"])
