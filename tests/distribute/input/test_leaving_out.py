# SPDX-License-Identifier: Apache-2.0
"""Workers that leave out records stay in step, and all learn of a budget that is exceeded on one of them."""

from pathlib import Path
from typing import Any

import pytest

import distinput as di
from tests.distribute.workers import by_step, on_workers, with_policy

POLICY = di.data.experimental.AutoShardPolicy


def files(folder: Path) -> list[str]:
    """Four files of nine numbers; half of those of the second one are damaged, and one of the fourth."""
    made = []
    for name in range(4):
        path = folder / f"f{name}"
        with di.io.TFRecordWriter(path) as writer:
            for row in range(9):
                writer.write(b"%04d" % (100 * name + row))
        content = bytearray(path.read_bytes())
        for row in {1: (0, 3, 4, 8), 3: (5,)}.get(name, ()):
            content[row * 20 + 12] ^= 1
        path.write_bytes(content)
        made.append(str(path))
    return made


LEFT = sorted({100 * name + row for name in range(4) for row in range(9)} - {100, 103, 104, 108, 305})


def build(paths: list[str], policy: Any, on_error: Any) -> Any:
    ds = di.data.TFRecordDataset(paths, on_error=on_error).map(int, on_error=on_error)
    return with_policy(ds.batch(4), policy)


@pytest.mark.parametrize("policy", [POLICY.FILE, POLICY.DATA, POLICY.BALANCED])
def test_workers_stay_in_step(tmp_path: Path, policy: Any) -> None:
    paths = files(tmp_path)

    def body(strategy: Any, worker: int) -> Any:
        steps = strategy.experimental_distribute_dataset(build(paths, policy, "skip"))
        return [[part.tolist() for part in strategy.experimental_local_results(step)] for step in steps]

    steps = by_step(on_workers([1, 1], body))
    assert sorted(row for step in steps for part in step for row in part) == LEFT


def test_all_learn_of_a_budget_that_is_exceeded_on_one(tmp_path: Path) -> None:
    paths = files(tmp_path)

    def body(strategy: Any, worker: int) -> Any:
        steps = strategy.experimental_distribute_dataset(build(paths, POLICY.FILE, di.data.SkipErrors(2)))
        return list(steps)

    found = on_workers([1, 1], body)
    assert [type(error).__name__ for error in found].count("DataLossError") == 1
    assert all("allows fewer" in str(error) for error in found), found
