# SPDX-License-Identifier: Apache-2.0
"""An entrant of DLIO, with which MLPerf Storage measures: `++workload.reader.data_loader_classname=MODULE.Entrant`."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from dlio_benchmark.common.enumerations import DataLoaderType, DatasetType, FormatType, Shuffle
from dlio_benchmark.data_loader.base_data_loader import BaseDataLoader

import distinput as di

__all__ = ["Entrant"]


class Entrant(BaseDataLoader):  # type: ignore[misc]
    """Files of DLIO as global batches, of which each rank gets its rows."""

    def __init__(self, format_type: Any, dataset_type: Any, epoch: int) -> None:
        super().__init__(format_type, dataset_type, epoch, DataLoaderType.PYTORCH)
        self._dataset: Any = None
        self._passes = 0

    def read(self) -> None:
        """Describe the dataset."""
        told = self._args
        files = [
            str(file)
            for file in (told.file_list_train if self.dataset_type is DatasetType.TRAIN else told.file_list_eval)
        ]
        rows = self.batch_size * told.comm_size
        if self.format_type is FormatType.TFRECORD:
            records: Any = di.data.TFRecordDataset(files)
            if told.sample_shuffle is not Shuffle.OFF:
                records = records.shuffle(told.shuffle_size, seed=told.seed)
            features = {"image": di.io.FixedLenFeature([], "string"), "size": di.io.FixedLenFeature([], "int64")}
            batches = records.batch(rows, drop_remainder=True).parse_example(features)
        else:
            names = di.data.Dataset.from_tensor_slices(np.array(files, dtype=object))
            if told.file_shuffle is not Shuffle.OFF:
                names = names.global_shuffle(seed=told.seed)
            pictures = names.map(_Read(told.resized_image), num_parallel_calls=max(1, told.read_threads))
            batches = pictures.batch(rows, drop_remainder=True)
        if told.comm_size > 1:
            batches = batches.shard_batches(told.comm_size, told.my_rank)
        self._dataset = batches.prefetch(2)

    def next(self) -> Iterator[Any]:
        """The batches of an epoch."""
        self._passes += 1
        yield from self._dataset.iter_pass(self._passes - 1)

    def finalize(self) -> None:
        """Nothing is left open."""


class _Read:
    """Reads a file whole, and hands on a picture of the size that is trained with, as DLIO's own readers do."""

    def __init__(self, picture: Any) -> None:
        self._picture = np.asarray(picture)

    def __call__(self, name: Any) -> Any:
        path = name.decode() if isinstance(name, bytes) else str(name)
        with np.load(path) as file:
            file["x"]
        return self._picture
