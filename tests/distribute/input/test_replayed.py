# SPDX-License-Identifier: Apache-2.0
"""A step once more, bit for bit, also where positions cannot be computed and where replicas have no rows."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.distribute.rehearsal import rehearse


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


def test_steps_that_workers_leave_out_together_are_not_counted(tmp_path: Path) -> None:
    """A worker has rows in every other step; when the other worker has no more, those without rows are left out."""
    files = [tmp_path / "long.npy", tmp_path / "short.npy"]
    for file, rows in zip(files, (12, 4), strict=True):
        np.save(file, np.arange(rows))
    batches = di.data.FileDataset([str(file) for file in files], "npy").batch(2, drop_remainder=True)

    def twice(distributed: Any, _: Any) -> list[Any]:
        steps = [repr(step) for step in distributed]
        return [steps, [repr(distributed.replay(number)) for number in range(len(steps))]]

    for steps, again in rehearse(batches, 2, 2, twice):
        assert again == steps


def test_there_is_no_step_behind_the_end() -> None:
    dataset = mirrored(2).experimental_distribute_dataset(di.data.Dataset.range(5).batch(2))
    with pytest.raises(IndexError, match="no step 3, there are 3"):
        dataset.replay(3)
