# SPDX-License-Identifier: Apache-2.0
"""Law 5 over random pipelines: shards are disjoint and complete."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from distinput.data.dataset import Dataset
from distinput.errors import NotFoundError
from distinput.plan.options import AutoShardPolicy
from distinput.sharding.own_rows import with_common_order
from distinput.sharding.policies import auto_shard
from distinput.testing.elements import matches
from distinput.testing.pipelines import pipelines
from tests.depth import cases

# Ops after which a worker with its own part of the records delivers other elements than one with all of them.
OF_THE_WHOLE = {
    "batch", "bucket", "bucket_by_sequence_length", "group_by_window", "padded_batch", "rebatch", "window", "unbatch",
    "ragged_batch", "shard", "batch_by_tokens", "pack", "rejection_resample", "group_by_reducer", "sample_balanced", "snapshot",
    "cache_on_disk", "sparse_batch", "parse_batches",
}  # fmt: skip


def same_bag(given_elements: list[Any], expected: list[Any]) -> bool:
    """The same elements as often, in any order."""
    left = list(expected)
    for element in given_elements:
        found = next((i for i, other in enumerate(left) if matches(element, other)), None)
        if found is None:
            return False
        del left[found]
    return not left


@given(pipeline=pipelines(), num_workers=st.integers(1, 5))
@settings(max_examples=cases(20, 1000))
def test_data_deals_elements_in_turn(pipeline: Any, num_workers: int) -> None:
    if not pipeline.exact:
        return
    node = pipeline.build().node
    elements = pipeline.elements
    if num_workers > 1 and any(name == "interleave" for name, _ in pipeline.recipe):
        elements = list(Dataset(with_common_order(node)))  # several workers do not count the cores of one
        assert same_bag(elements, pipeline.elements)
    for worker in range(num_workers):
        mine = list(Dataset(auto_shard(node, num_workers, worker, policy=AutoShardPolicy.DATA)))
        expected = elements[worker::num_workers]
        assert len(mine) == len(expected)
        assert all(map(matches, mine, expected))


@given(pipeline=pipelines(), num_workers=st.integers(1, 5))
@settings(max_examples=cases(20, 1000))
def test_balanced_gives_each_record_to_one_worker(pipeline: Any, num_workers: int) -> None:
    if not pipeline.exact or OF_THE_WHOLE & {name for name, _ in pipeline.recipe}:
        return
    node = pipeline.build().node
    try:
        trees = [auto_shard(node, num_workers, w, policy=AutoShardPolicy.BALANCED) for w in range(num_workers)]
    except NotFoundError:
        return
    assert same_bag([element for tree in trees for element in Dataset(tree)], pipeline.elements)
