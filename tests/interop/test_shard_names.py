# SPDX-License-Identifier: Apache-2.0
"""Names of shards are divided as names of files are, but no file of that name is looked for."""

from distinput.data.dataset import Dataset
from distinput.files.manifest import FileTable
from distinput.interop.rank_steps import ShardNames
from distinput.ops.shard import Shard

NAMES = [f"shard {number} of 4" for number in range(4)]


def test_names_are_divided_and_no_file_is_looked_for() -> None:
    node = ShardNames.of(FileTable.of(NAMES, [1] * 4))
    assert str(node) == "shards(elements='4 shards')"
    assert Dataset(node).to_list() == [name.encode() for name in NAMES]
    assert Dataset(Shard(node, 2, 1)).to_list() == [b"shard 1 of 4", b"shard 3 of 4"]
    assert node.file_facts() == {}
    with iter(Dataset(node)) as names:
        next(names)
        state = names.state()
    again = ShardNames.of(FileTable.of(NAMES, [1] * 4))
    assert Dataset(again).restore(state).__next__() == b"shard 1 of 4"
