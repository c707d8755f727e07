# SPDX-License-Identifier: Apache-2.0
"""After a state was loaded, the next pass is the one after it, whichever way it was loaded."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.plan.options import AutoShardPolicy

Dataset = di.data.Dataset


def shuffled() -> di.data.Dataset:
    return Dataset.range(12).shuffle(12, seed=3)


def distributed(balanced: bool, policy: str = "AUTO") -> Any:
    options = di.data.Options()
    options.experimental_distribute.auto_shard_policy = AutoShardPolicy[policy]
    strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    dataset = shuffled().batch(4).with_options(options)
    return strategy.experimental_distribute_dataset(dataset, di.distribute.InputOptions(balanced_split=balanced))


def from_function() -> Any:
    strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    return strategy.distribute_datasets_from_function(lambda _: shuffled().batch(2))


MAKERS: dict[str, Callable[[], Any]] = {
    "plain": shuffled,
    "prefetched": lambda: shuffled().batch(3).prefetch(2),
    "distributed": lambda: distributed(False),
    "balanced": lambda: distributed(True),
    "by batch": lambda: distributed(False, "DATA"),
    "from a function": from_function,
}


def elements(iterator: Any) -> list[Any]:
    return [
        [np.asarray(part).tolist() for part in getattr(step, "values", [step])]
        for step in iterator
    ]  # fmt: skip


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("passes", [1, 2])
def test_the_next_pass_follows(name: str, passes: int) -> None:
    make = MAKERS[name]
    whole = make()
    orders = [elements(iter(whole)) for _ in range(passes + 1)]
    assert orders[passes - 1] != orders[passes]
    saving = make()
    for _ in range(passes - 1):
        iter(saving).close()
    iterator = iter(saving)
    next(iterator)
    state = iterator.state_dict()

    loaded, restored = make(), make()
    going_on = iter(loaded)
    going_on.load_state_dict(state)
    assert elements(going_on) == orders[passes - 1][1:]
    assert elements(restored.restore(state)) == orders[passes - 1][1:]
    assert elements(iter(loaded)) == elements(iter(restored)) == orders[passes]
