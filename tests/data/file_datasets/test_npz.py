# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

import numpy as np

import distinput as di


def test_files_in_turns_and_restarts(tmp_path: Path) -> None:
    for number in range(2):
        np.savez(tmp_path / f"{number}.npz", x=np.arange(3) + 10 * number)
    paths = [str(tmp_path / f"{number}.npz") for number in range(2)]
    assert [int(row["x"]) for row in di.data.NpzDataset(paths)] == [0, 1, 2, 10, 11, 12]
    made = di.data.NpzDataset(paths, num_parallel_reads=2)
    iterator = iter(made)
    assert [int(next(iterator)["x"]) for _ in range(3)] == [0, 10, 1]
    assert [int(row["x"]) for row in made.restore(iterator.state())] == [11, 2, 12]
