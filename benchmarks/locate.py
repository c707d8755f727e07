# SPDX-License-Identifier: Apache-2.0
"""What does it cost to say which records are in a step, beside computing the permutation alone?"""

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import SEED, Case, Contender, Work, scaled

QUESTION = "the records of one replica in a step of 96 rows for 8 replicas, after a global shuffle of .npy files"
NOTES = """
The limit permutes the 12 numbers of the replica's rows and looks up their files. It is given the sizes of the files and the
key of the shuffle, and does nothing for the pipeline, the cut and the result.
"""
FILES, STEP, REPLICAS, CALLS = 20, 96, 8, 200


def prepare(folder: Path, scale: float) -> None:
    """Files of different sizes."""
    for number, rows in enumerate(_sizes(scale)):
        np.save(folder / f"{number:02}.npy", np.arange(rows))


def _sizes(scale: float) -> list[int]:
    return [scaled(1_000 * (number + 1), scale, 10) for number in range(FILES)]


def cases(folder: Path, scale: float) -> list[Case]:
    """Records of a step, and the step of a record."""
    sizes = _sizes(scale)
    rows = sum(sizes)
    files = [str(folder / f"{number:02}.npy") for number in range(FILES)]
    steps = rows // STEP

    def distributed() -> Any:
        import distinput as di

        dataset = di.data.NpyDataset(files).global_shuffle(seed=SEED).batch(STEP)
        strategy = di.distribute.MirroredStrategy([f"CPU:{replica}" for replica in range(REPLICAS)])
        return strategy.experimental_distribute_dataset(dataset)

    def located() -> Work:
        dataset = distributed()

        def once() -> int:
            return sum(len(dataset.locate(call % steps, call % REPLICAS)) for call in range(CALLS))

        return Work(once, lambda: str(once()))

    def permuted() -> Work:
        from distinput.kernels.random_orders import permute
        from distinput.plan.families import key_of

        key = key_of(SEED, 0)
        ends, each = np.cumsum([0, *sizes]), STEP // REPLICAS

        def once() -> int:
            count = 0
            for call in range(CALLS):
                begin = call % steps * STEP + call % REPLICAS * each
                numbers = np.empty(each, np.int64)
                permute(np.arange(begin, begin + each), key, rows, numbers)
                file = ends.searchsorted(numbers, "right") - 1
                count += len(numbers - ends[file])
            return count

        return Work(once, lambda: str(once()))

    def found() -> Work:
        dataset = distributed()

        def once() -> int:
            return sum(len(dataset.when(files[call], 7)) for call in range(FILES))

        return Work(once, lambda: str(once()))

    return [
        Case(
            "records of a step",
            {"call": CALLS},
            [
                Contender("distinput", "ours", located, most={"seconds": 1e-3}),
                Contender("permutation + search", "limit", permuted),
            ],
        ),
        Case("steps of a record", {"call": FILES}, [Contender("distinput", "ours", found)]),
    ]
