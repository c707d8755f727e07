# SPDX-License-Identifier: Apache-2.0
"""What an index is good for, whatever the format."""

from pathlib import Path

import numpy as np
import pytest

import distinput as di
from distinput.errors import InvalidArgumentError
from distinput.formats.text import IndexedTextLines
from distinput.sharding.policies import auto_shard


def test_rows_that_a_file_does_not_have(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one\ntwo\n")
    with pytest.raises(InvalidArgumentError, match=r"a\.txt: rows must be from 0 to 1, got \[0, 2\]"):
        IndexedTextLines().fetch(str(path), np.array([0, 2]))


def test_workers_share_the_lines_of_one_file(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("".join(f"{line}\n" for line in range(101)))
    ds = di.data.TextLineDataset(str(path), index=str(tmp_path / "indices"))
    options = di.data.Options()
    options.experimental_distribute.auto_shard_policy = di.data.experimental.AutoShardPolicy.BALANCED
    parts = [di.data.Dataset(auto_shard(ds.with_options(options).node, 4, worker, 4)).to_list() for worker in range(4)]
    assert [int(line) for part in parts for line in part] == list(range(101))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    assert sorted(ds.global_shuffle(seed=1)) == sorted(ds)
    assert [child.name for child in tmp_path.iterdir()].count("a.txt") == 1
    assert len(list((tmp_path / "indices").iterdir())) == 1


def test_compressed_files_have_no_index() -> None:
    with pytest.raises(InvalidArgumentError, match="text: an index needs files without compression, got 'GZIP'"):
        di.data.TextLineDataset("a.txt", "GZIP", index=True)
