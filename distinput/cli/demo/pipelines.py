# SPDX-License-Identifier: Apache-2.0
"""Step 2 of the demo: the input pipelines, from files to batches. Your own program would have such a part."""

from pathlib import Path
from typing import Any

import numpy as np

import distinput as di
from distinput.cli.demo.files import paths_of

__all__ = ["FEATURES", "evaluation_batches", "training_batches"]

FEATURES = {
    "id": di.io.FixedLenFeature([], "int64"),
    "image": di.io.FixedLenFeature([64], "int64"),
    "label": di.io.FixedLenFeature([], "int64"),
}


def records(directory: Path, split: str, file_format: str) -> di.data.Dataset:
    """Dicts of id, image [64] and label, read from the files of one format."""
    paths = paths_of(directory, split, file_format)
    if file_format == "parquet":
        return di.data.ParquetDataset(paths, columns=["id", "image", "label"])
    return di.data.TFRecordDataset(paths).parse_example(FEATURES)


def scaled(record: dict[str, Any]) -> dict[str, Any]:
    """Pixels from 0 to 1. Called for many records at once: `image` is [n, 64]."""
    return {**record, "image": record["image"].astype(np.float32) / 16}


def training_batches(directory: Path, batch_size: int) -> di.data.Dataset:
    """Global batches of the training data, in a new order in every epoch."""
    return records(directory, "train", "tfrecord").map_rows(scaled).shuffle(1000, seed=7).batch(batch_size)


def evaluation_batches(directory: Path, file_format: str, batch_size: int, split: str = "test") -> di.data.Dataset:
    """Global batches in the order of the files; the last one may be short."""
    return records(directory, split, file_format).map_rows(scaled).batch(batch_size)
