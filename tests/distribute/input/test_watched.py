# SPDX-License-Identifier: Apache-2.0
"""Steps from watched pipelines are the same steps, and their pipelines run as asked."""

from functools import partial
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.distribute.input.distributed_dataset import DistributedDataset, watched
from distinput.run.run import Run

RANGE = di.data.Dataset.range
STRATEGY = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


def distributed() -> list[DistributedDataset]:
    """Of all kinds of sources."""
    return [
        STRATEGY.experimental_distribute_dataset(RANGE(10).batch(4)),
        STRATEGY.experimental_distribute_dataset(RANGE(10).filter(lambda x: x != 3).batch(4)),
        STRATEGY.distribute_datasets_from_function(lambda _: RANGE(9).batch(2)),
    ]


@pytest.mark.parametrize("kind", range(3))
def test_the_steps_are_the_same_and_the_runs_are_made_as_asked(kind: int) -> None:
    dataset = distributed()[kind]
    made: list[Run] = []

    def make_run(*args: Any, **given: Any) -> Run:
        made.append(Run(*args, **given))
        return made[-1]

    source, inputs = watched(dataset._source, partial(make_run))
    steps = [[np.asarray(part).tolist() for part in STRATEGY.experimental_local_results(step)] for step in dataset]
    assert made == []
    again = type(dataset)(source, dataset._delivery)
    assert [
        [np.asarray(part).tolist() for part in STRATEGY.experimental_local_results(step)] for step in again
    ] == steps
    assert len(made) == len(inputs) == 1
    assert inputs[0].stats()
