# SPDX-License-Identifier: Apache-2.0
"""What does it cost to save the place in a shuffled data set, and to go on from there?"""

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import SEED, BenchmarkError, Case, Contender, Work, scaled

QUESTION = "range(1e6).shuffle(10000).batch(256): save the state, restore it and get the next batch"
BATCH = 256
PLACES = (2_560, 102_400, 512_000)


def prepare(folder: Path, scale: float) -> None:
    """Checkpoints of tf.data go here."""
    (folder / "checkpoints").mkdir()


def cases(folder: Path, scale: float) -> list[Case]:
    """Both, early and late in the data."""
    steps = sorted({scaled(place, scale, BATCH) // BATCH for place in PLACES})
    return [case for number in steps for case in _cases(folder / "checkpoints", scale, number)]


def _cases(folder: Path, scale: float, steps: int) -> list[Case]:
    rows, buffer, place = scaled(1_000_000, scale, 4096), scaled(10_000, scale, 100), steps * BATCH

    def ours() -> tuple[Any, Any]:
        import distinput as di

        dataset = di.data.Dataset.range(rows).shuffle(buffer, seed=SEED).batch(BATCH)
        iterator = iter(dataset)
        for _ in itertools.islice(iterator, steps):
            pass
        return dataset, iterator

    def save() -> Work:
        _, iterator = ours()
        return Work(
            lambda: _dropped(json.dumps(iterator.state())), _same, lambda: {"bytes": len(json.dumps(iterator.state()))}
        )

    def restore() -> Work:
        dataset, iterator = ours()
        saved = json.dumps(iterator.state())
        expected = next(iterator)

        def again() -> Any:
            restored = dataset.restore(json.loads(saved))
            return restored, next(restored)

        return Work(again, lambda: _restored(again()[1], expected))

    def tensorflow() -> tuple[Any, Any, str]:
        import tensorflow as tf

        dataset = tf.data.Dataset.range(rows).shuffle(buffer, seed=SEED).batch(BATCH)
        iterator = iter(dataset)
        for _ in itertools.islice(iterator, steps):
            pass
        return dataset, iterator, tf.train.Checkpoint(iterator=iterator).write(str(folder / f"{place}"))

    def save_tensorflow() -> Work:
        import tensorflow as tf

        _, iterator, written = tensorflow()
        checkpoint = tf.train.Checkpoint(iterator=iterator)
        return Work(lambda: _dropped(checkpoint.write(written)), _same, lambda: {"bytes": _size(written)})

    def restore_tensorflow() -> Work:
        import tensorflow as tf

        dataset, iterator, written = tensorflow()
        expected = next(iterator).numpy()

        def again() -> Any:
            restored = iter(dataset)
            tf.train.Checkpoint(iterator=restored).restore(written)
            return restored, next(restored)

        return Work(again, lambda: _restored(again()[1].numpy(), expected))

    needs = ("tensorflow",)
    return [
        Case(
            f"save after {place:,}",
            {"save": 1},
            [
                Contender("distinput", "ours", save),
                Contender("tf.train.Checkpoint", "peer", save_tensorflow, needs, 100.0),
            ],
        ),
        Case(
            f"restore + next after {place:,}",
            {"restore": 1},
            [
                Contender("distinput", "ours", restore),
                Contender("tf.train.Checkpoint", "peer", restore_tensorflow, needs, 100.0),
            ],
        ),
    ]


def _same() -> str:
    return "saved"  # what was saved is checked where it is restored


def _restored(batch: Any, expected: Any) -> str:
    """The two shuffle in orders of their own, so each is compared with itself."""
    if not np.array_equal(batch, expected):
        raise BenchmarkError("the batch after a restore is not the one that would have followed")
    return "the batch that would have followed"


def _dropped(_: object) -> None:
    """Nothing has to be kept until the clock has stopped."""


def _size(written: str) -> int:
    path = Path(written)
    return sum(file.stat().st_size for file in path.parent.glob(f"{path.name}.*"))
