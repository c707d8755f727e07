# SPDX-License-Identifier: Apache-2.0
"""What does it cost to save the place in a shuffled dataset, and to go on from there?"""

import itertools
import json
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from benchmarks.harness import SEED, BenchmarkError, Case, Contender, Work, scaled

QUESTION = "range(1e6).shuffle(10000).batch(256): save the state, restore it and get the next batch"
NOTES = """
Most of the time of a save as a dict is that of `json.dumps`. A state of distinput says which pipeline it is of and has a
checksum; one of Grain is the number of the next batch. The limit has the position as text and the checksum of the pipeline. It
computes the checksum of both, makes the dict, and calls `json.dumps`; that gives the very text of our state.
"""
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

    def least() -> Work:
        """The same state, where the position and the checksum of the pipeline are at hand."""
        state = ours()[1].state()
        plan = state["plan"]
        place = {key: state[key] for key in ("epoch", "at", "skip")}
        start, position = crc32(_compact(plan)), _compact(place)

        def text() -> str:
            return json.dumps({"version": state["version"], "check": crc32(position, start), "plan": plan, **place})

        if text() != json.dumps(state):
            raise BenchmarkError("the limit does not give the state that we give")
        return Work(lambda: _dropped(text()), _same, lambda: {"bytes": len(text())})

    def text() -> Work:
        """As tools that expect Grain's iterators ask for it."""
        _, iterator = ours()
        return Work(lambda: _dropped(iterator.get_state()), _same, lambda: {"bytes": len(iterator.get_state())})

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

    return [
        Case(
            f"save after {place:,}",
            {"save": 1},
            [
                Contender("distinput", "ours", save, most={"seconds": 50e-6, "bytes": 1024}),
                Contender("the same JSON and its checksum", "limit", least),
                Contender("tf.train.Checkpoint", "peer", save_tensorflow, ("tensorflow",), 100.0),
                Contender("grain", "peer", lambda: _save_grain(rows, steps), ("grain",), 0.5),
            ],
        ),
        Case(
            f"text of a state after {place:,}",
            {"save": 1},
            [
                Contender("distinput", "ours", text),
                Contender("grain", "peer", lambda: _save_grain(rows, steps), ("grain",), 0.5),
            ],
        ),
        Case(
            f"restore + next after {place:,}",
            {"restore": 1},
            [
                Contender("distinput", "ours", restore, most={"seconds": 1e-3}),
                Contender("tf.train.Checkpoint", "peer", restore_tensorflow, ("tensorflow",), 100.0),
                Contender("grain", "peer", lambda: _restore_grain(rows, steps), ("grain",)),
            ],
        ),
    ]


def _grain(rows: int, steps: int) -> tuple[Any, Any]:
    """Shuffled as a whole, for that order can be computed at any place; a window would have to be filled again."""
    import grain.python as grain

    dataset = grain.MapDataset.range(rows).seed(SEED).shuffle().batch(BATCH).to_iter_dataset()
    iterator = iter(dataset)
    for _ in itertools.islice(iterator, steps):
        pass
    return dataset, iterator


def _save_grain(rows: int, steps: int) -> Work:
    _, iterator = _grain(rows, steps)

    def text() -> str:
        return json.dumps(iterator.get_state())

    return Work(lambda: _dropped(text()), _same, lambda: {"bytes": len(text())})


def _restore_grain(rows: int, steps: int) -> Work:
    dataset, iterator = _grain(rows, steps)
    saved = iterator.get_state()
    expected = next(iterator)

    def again() -> Any:
        restored = iter(dataset)
        restored.set_state(saved)
        return restored, next(restored)

    return Work(again, lambda: _restored(again()[1], expected))


def _compact(value: Any) -> bytes:
    """JSON of a part of a state, as checksums of states are made of it."""
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


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
