# SPDX-License-Identifier: Apache-2.0
"""How fast is the index of a file built, and how fast are lines reached with it?"""

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import text_lines
from benchmarks.checksum import in_any_order
from benchmarks.harness import SEED, Case, Contender, Work, delivering, scaled

QUESTION = "building the index of a text file and of a TFRecord file; lines of a shuffled file, batch(256)"
BATCH = 256


def prepare(folder: Path, scale: float) -> None:
    """A text file with lines of 20 to 180 letters, and a TFRecord file with records of 200 to 400 bytes."""
    import distinput as di

    text_lines.prepare(folder, scale)
    random = np.random.default_rng(SEED)
    with di.io.TFRecordWriter(folder / "records.tfrecord") as writer:
        for size in random.integers(200, 400, scaled(400_000, scale, 1_000)).tolist():
            writer.write(bytes(size))
    di.io.write_index(folder / "lines.txt", "text", folder=str(folder / "indices"))


def cases(folder: Path, scale: float) -> list[Case]:
    """Both files; then the lines in a random order."""
    text, records = folder / "lines.txt", folder / "records.tfrecord"

    def building(path: Path, format: str) -> Work:
        from distinput.formats import format_named

        made: Any = format_named(format, True)

        def once() -> None:
            for _ in made.offsets(str(path)):
                pass

        def check() -> str:
            offsets = np.concatenate(list(made.offsets(str(path))))
            return f"{len(offsets)} {zlib.crc32(offsets.tobytes())}"

        return Work(once, check)

    def case(path: Path, format: str, reach: float) -> Case:
        return Case(
            f"build, {format}",
            {"byte": path.stat().st_size},
            [
                Contender("distinput", "ours", lambda: building(path, format)),
                Contender("read", "limit", lambda: text_lines.reading(path), reach=reach),
            ],
        )

    def shuffled() -> Work:
        import distinput as di

        lines = di.data.TextLineDataset(str(text), index=str(folder / "indices"))
        return delivering(lambda: lines.global_shuffle(seed=SEED).batch(BATCH), plain=_digests, checksum=in_any_order)

    def python() -> Work:
        """What a program does that reads the file into memory and shuffles its lines."""

        def batches() -> Iterator[Any]:
            lines = np.array(text.read_bytes().split(b"\n")[:-1], object)
            order = np.random.default_rng(SEED).permutation(len(lines))
            for first in range(0, len(lines), BATCH):
                yield lines[order[first : first + BATCH]]

        return delivering(batches, plain=_digests, checksum=in_any_order)

    count = text.read_bytes().count(b"\n")
    return [
        case(text, "text", 0.2),
        case(records, "tfrecord", 0.2),
        Case(
            "shuffled lines",
            {"line": count},
            [Contender("distinput", "ours", shuffled), Contender("all lines in memory", "peer", python)],
        ),
    ]


def _digests(lines: Any) -> Any:
    return np.array([zlib.crc32(line) for line in lines.tolist()], np.int64)
