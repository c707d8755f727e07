# SPDX-License-Identifier: Apache-2.0
"""`NcclAllReduce` and `HierarchicalCopyAllReduce` choose the order of additions."""

import numpy as np
import pytest

import distinput as di
from distinput.distribute import HierarchicalCopyAllReduce, NcclAllReduce, PerReplica
from distinput.distribute.core.mirrored import in_halves, in_ring

VALUES = [np.float32([x, x, x, x]) * 0.1 for x in (1e8, 3.0, -1e8, 7.0, 1e-3)]
STRATEGY = {
    "nccl": (NcclAllReduce, in_ring),
    "hierarchical": (HierarchicalCopyAllReduce, in_halves),
}


@pytest.mark.parametrize("kind", STRATEGY)
@pytest.mark.parametrize("num_packs", [0, 1])
def test_the_strategy_adds_in_this_order(kind: str, num_packs: int) -> None:
    cls, order = STRATEGY[kind]
    strategy = di.distribute.MirroredStrategy([f"CPU:{i}" for i in range(5)], cls(num_packs=num_packs))
    expected = order(VALUES)
    assert strategy.reduce("SUM", PerReplica(VALUES), axis=None).tobytes() == expected.tobytes()

    def step(value):
        return di.distribute.get_replica_context().all_reduce("SUM", value)

    for part in strategy.run(step, args=(PerReplica(VALUES),)).values:
        assert part.tobytes() == expected.tobytes()


def test_values_of_one_all_reduce_share_packs() -> None:
    strategy = di.distribute.MirroredStrategy([f"CPU:{i}" for i in range(5)], NcclAllReduce(num_packs=2))

    def step(value):
        return di.distribute.get_replica_context().all_reduce("SUM", (value[:1], value[1:]))

    first, second = strategy.run(step, args=(PerReplica(VALUES),))
    halves = [in_ring([value[:2] for value in VALUES]), in_ring([value[2:] for value in VALUES])]
    made = np.concatenate([first.values[0], second.values[0]])
    assert made.tobytes() == np.concatenate(halves).tobytes()


@pytest.mark.parametrize("kind, who", [("nccl", "NCCL all-reduce"), ("hierarchical", "HierarchicalCopy")])
def test_a_negative_number_of_packs_is_refused(kind: str, who: str) -> None:
    with pytest.raises(ValueError, match=f"{who} requires num_packs >= 0, but -1 is specified"):
        STRATEGY[kind][0](-1)
