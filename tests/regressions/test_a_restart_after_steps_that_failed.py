# SPDX-License-Identifier: Apache-2.0
"""A restart after steps that failed gave empty steps in their place at the end, where the steps had been counted."""

from typing import Any

import pytest

import distinput as di
from distinput.distribute import MirroredStrategy, OneDeviceStrategy


def fails(x: Any) -> Any:
    if int(x) in (1, 3):
        raise ValueError("no")
    return x


def outcomes(strategy: Any, iterator: Any, most: int = 100) -> list[Any]:
    found: list[Any] = []
    while len(found) < most:
        try:
            found.append([part.tolist() for part in strategy.experimental_local_results(next(iterator))])
        except StopIteration:
            break
        except ValueError:
            found.append("failed")
    return found


@pytest.mark.parametrize("replicas", [0, 1, 2, 3])
def test_what_follows_is_what_would_have_followed(replicas: int) -> None:
    strategy = MirroredStrategy([f"CPU:{i}" for i in range(replicas)]) if replicas else OneDeviceStrategy("CPU:0")
    dataset = strategy.experimental_distribute_dataset(di.data.Dataset.range(5).map(fails).batch(1))
    every = outcomes(strategy, iter(dataset))
    assert every.count("failed") == 2
    for taken in range(len(every) + 1):
        iterator = iter(dataset)
        assert outcomes(strategy, iterator, taken) == every[:taken]
        assert outcomes(strategy, dataset.restore(iterator.state())) == every[taken:]
