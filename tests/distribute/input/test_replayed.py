# SPDX-License-Identifier: Apache-2.0
"""A step once more, bit for bit, also where positions cannot be computed and where replicas have no rows."""

import numpy as np
import pytest

import distinput as di


def mirrored(count: int) -> di.distribute.MirroredStrategy:
    return di.distribute.MirroredStrategy([f"CPU:{i}" for i in range(count)])


def test_steps_behind_a_filter_are_made_anew_from_the_first() -> None:
    strategy = mirrored(2)

    def make() -> object:
        ds = di.data.Dataset.range(40).filter(lambda x: x % 3 == 0).shuffle(4, seed=1).batch(4)
        return strategy.experimental_distribute_dataset(ds)

    steps = [repr(step) for step in make()]
    assert [repr(make().replay(number)) for number in range(len(steps))] == steps


def test_replicas_without_rows_get_what_they_got() -> None:
    strategy = mirrored(4)

    def make() -> object:
        ds = di.data.Dataset.range(5).map(lambda x: np.full(3, x)).padded_batch(4, padded_shapes=[None])
        return strategy.experimental_distribute_dataset(ds)

    steps = [[part.shape for part in strategy.experimental_local_results(step)] for step in make()]
    for number, shapes in enumerate(steps):
        assert [part.shape for part in strategy.experimental_local_results(make().replay(number))] == shapes


def test_there_is_no_step_behind_the_end() -> None:
    dataset = mirrored(2).experimental_distribute_dataset(di.data.Dataset.range(5).batch(2))
    with pytest.raises(IndexError, match="no step 3, there are 3"):
        dataset.replay(3)
