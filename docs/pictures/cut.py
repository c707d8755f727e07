# SPDX-License-Identifier: Apache-2.0
"""How a batch is cut: records of files, one order, global batches, parts of replicas, and a restart on more of them.

Every number in the picture is what distinput delivers when the picture is made.
"""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pictures.drawing import KINDS, Picture

import distinput as di

__all__ = ["Cut", "cut", "draw"]

NAMES, SIZES, BATCH, BEFORE, AFTER = ("a.txt", "b.txt", "c.txt"), (4, 3, 4), 4, 2, 4
CELL, LEFT = 31, 152


@dataclass(frozen=True)
class Cut:
    """What is delivered: for each step, the records of each replica.

    Args:
      whole: all steps.
      rest: what follows the second step, restarted on more replicas.
    """

    whole: list[list[list[int]]]
    rest: list[list[list[int]]]


def cut() -> Cut:
    """Write the files, read them on two replicas, and go on from the state after the second step on four."""
    with tempfile.TemporaryDirectory() as folder:
        first = 0
        for name, size in zip(NAMES, SIZES, strict=True):
            lines = "".join(f"{record}\n" for record in range(first, first + size))
            Path(folder, name).write_text(lines, encoding="utf-8")
            first += size
        records = di.data.TextLineDataset(f"{folder}/*.txt").shuffle(first, seed=6, reshuffle_each_iteration=False)
        steps = iter(_distributed(records, BEFORE))
        whole = [_parts(next(steps)), _parts(next(steps))]
        state = steps.state()
        rest = _distributed(records, AFTER).restore(state)
        return Cut(whole + [_parts(step) for step in steps], [_parts(step) for step in rest])


def _distributed(records: di.data.Dataset, replicas: int) -> di.distribute.DistributedDataset:
    strategy = di.distribute.MirroredStrategy([f"CPU:{number}" for number in range(replicas)])
    return strategy.experimental_distribute_dataset(
        records.batch(BATCH), di.distribute.InputOptions(balanced_split=True)
    )


def _parts(step: di.distribute.PerReplica) -> list[list[int]]:
    return [[int(record) for record in part] for part in step.values]


def draw() -> str:
    """The picture."""
    found = cut()
    picture = Picture("How a global batch is cut for replicas, and where a restart on more replicas goes on", 824, 412)
    of_file = [KINDS[name] for name, size in enumerate(SIZES) for _ in range(size)]

    def cells(x: float, y: float, records: list[int]) -> float:
        for record in records:
            picture.box(x, y, CELL - 4, CELL - 4, of_file[record])
            picture.text(x + CELL / 2 - 2, y + 20, str(record), "ink strong", "middle")
            x += CELL
        return x

    _labels(picture, {52: ("files", "of any size"), 134: ("one order", "shuffled or not")})
    x, first = float(LEFT), 0
    for size, name in zip(SIZES, NAMES, strict=True):
        picture.text(x, 34, name, "soft small code")
        x, first = cells(x, 42, list(range(first, first + size))) + 22, first + size
    picture.arrow([(LEFT + 202, 84), (LEFT + 202, 112)])

    batches = [[record for part in step for record in part] for step in found.whole]
    starts, x = [], float(LEFT)
    for number, batch in enumerate(batches):
        starts.append(x)
        end = cells(x, 124, batch)
        picture.line([(x, 162), (x, 168), (end - 4, 168), (end - 4, 162)], "soft")
        name = f"global batch of {len(batch)}" if len(batch) == BATCH else f"the last {len(batch)}"
        picture.text((x + end - 4) / 2, 184, name, "soft small", "middle")
        picture.arrow([((x + end - 4) / 2, 192), ((x + end - 4) / 2, 210)])
        x = end + (20 if number == 0 else 46)
    _replicas(picture, found, starts, x, cells)
    return picture.svg()


def _labels(picture: Picture, labels: dict[int, tuple[str, str]]) -> None:
    for y, (name, words) in labels.items():
        picture.text(16, y + 4, name, "ink strong")
        picture.text(16, y + 22, words, "soft small")


def _replicas(
    picture: Picture, found: Cut, starts: list[float], right: float, cells: Callable[[float, float, list[int]], float]
) -> None:
    """The parts of replicas under each batch; on the right, those of the restart."""
    top, line = 222, 40
    for replica in range(AFTER):
        y = top + replica * line
        picture.text(16, y + 20, f"replica {replica}", "ink strong" if replica < BEFORE else "soft")
        columns = [*zip(starts, found.whole, strict=True), (right, found.rest[0])]
        for x, step in columns:
            if replica < len(step):
                end = cells(x, y, step[replica])
                if end == x:
                    picture.box(x, y, 3 * CELL - 4, CELL - 4, "grey", dashed=True)
                    picture.text(x + 1.5 * CELL - 2, y + 19, "no rows", "soft small", "middle")
    for number, x in enumerate(starts):
        picture.text(x, top + BEFORE * line + 12, f"step {number}", "soft small")
    last = starts[-1]
    picture.line([(last - 28, 112), (last - 28, 348)], "mark", dashed=True)
    picture.text(last - 34, 366, "stop anywhere: the state is small JSON,", "mark small", "end")
    picture.text(last - 34, 382, "positions and no data", "mark small", "end")
    picture.arrow([(last - 28, 348), (last - 28, 394), (right - 26, 394), (right - 26, 130), (right - 8, 130)], "mark")
    picture.text(right, 134, f"or go on with {AFTER}:", "mark strong")
    picture.text(right, 152, "exactly the rest, each row once;", "soft small")
    picture.text(right, 168, "nobody waits for a replica that", "soft small")
    picture.text(right, 184, "ran out; a mean is over 3 rows", "soft small")


if __name__ == "__main__":
    print(draw())
