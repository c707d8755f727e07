# SPDX-License-Identifier: Apache-2.0
"""Step 1 of the demo: the data as sharded files, in two formats."""

from pathlib import Path

import distinput as di
from distinput.cli.demo.digits import Digits, load_digits

__all__ = ["FORMATS", "SPLITS", "paths_of", "write_files"]

FORMATS = ("tfrecord", "parquet")
SPLITS = {"train": 4, "test": 2}
"""The number of files of each part of the data."""


def paths_of(directory: Path, split: str, file_format: str) -> list[Path]:
    """The files of one part of the data in one format."""
    count = SPLITS[split]
    return [directory / f"digits-{split}-{i:05}-of-{count:05}.{file_format}" for i in range(count)]


def write_files(directory: Path) -> tuple[dict[str, Digits], bool]:
    """Write all files, unless all of them exist.

    Returns:
      The contents of each part of the data, and whether anything was written.
    """
    digits = load_digits()
    is_test = digits.id % 5 == 0
    parts = {"train": digits.where(~is_test), "test": digits.where(is_test)}
    wanted = [(s, f) for s in SPLITS for f in FORMATS]
    if all(path.exists() for split, file_format in wanted for path in paths_of(directory, split, file_format)):
        return parts, False
    for split, file_format in wanted:
        part, write = parts[split], {"tfrecord": _write_tfrecord, "parquet": _write_parquet}[file_format]
        paths = paths_of(directory, split, file_format)
        for i, path in enumerate(paths):
            write(path, part.where(part.id % 7 % len(paths) == i))  # files of different lengths, as real ones are
    return parts, True


def _write_tfrecord(path: Path, digits: Digits) -> None:
    with di.io.TFRecordWriter(path) as writer:
        for number, image, label in zip(*digits, strict=True):
            writer.write(di.io.encode_example({"id": number, "image": image, "label": label}))


def _write_parquet(path: Path, digits: Digits) -> None:
    di.io.write_parquet(str(path), digits._asdict(), row_group_size=100)
