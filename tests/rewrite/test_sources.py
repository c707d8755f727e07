# SPDX-License-Identifier: Apache-2.0
"""Positions are shuffled before their items are read."""

import distinput as di
from tests.rewrite.running import ops_after

SOURCE = di.data.Dataset.from_source


def test_positions_are_shuffled_before_they_are_read() -> None:
    dataset = SOURCE(list(range(20)), num_parallel_calls=2).global_shuffle(seed=3)
    assert ops_after(dataset, "read_after_shuffle") == ["range", "global_shuffle", "from_source"]
    assert dataset.to_list() == di.data.Dataset.range(20).global_shuffle(seed=3).to_list()


def test_items_are_read_in_the_new_order_and_few_ahead() -> None:
    read: list[int] = []

    class Noted:
        def __len__(self) -> int:
            return 50_000

        def __getitem__(self, index: int) -> int:
            read.append(index)
            return index

    dataset = SOURCE(Noted(), element_spec=di.TensorSpec([], "int64")).global_shuffle(seed=1)
    first = next(iter(dataset))
    assert read == [first]
