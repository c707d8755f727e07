# SPDX-License-Identifier: Apache-2.0
"""`NpzDataset`: the rows of the arrays in `.npz` archives."""

from collections.abc import Mapping
from typing import Any

from distinput.data.dataset import Dataset
from distinput.data.file_datasets.reading import reading
from distinput.formats import FORMATS
from distinput.plan.options import SkipErrors

__all__ = ["NpzDataset"]


class NpzDataset(Dataset[dict[str, Any]]):
    """The rows, along the first axis, of the arrays in `.npz` archives, as dicts by the names of the arrays.

    All arrays must have equally many rows. Local archives that `numpy.savez` wrote are mapped into memory: any rows in any
    order cost no more than they do in memory. What `savez_compressed` wrote, and what is not local, is in memory as a whole.
    Nothing is unpickled.

    Args:
      filenames: a path, a list of paths, or a dataset of paths; any fsspec URL.
      columns: names of the arrays wanted; all when None.
      num_parallel_reads: files read at a time, whose rows take turns; one after the other when None.
      name: a label.
      memory_map: map local files into memory. False: rows are read into memory of their own, so that a file that is cut short
        while it is read is a `DataLossError` and not the end of the process; arrays are read as a whole.
      on_error: "raise", "skip" or `SkipErrors(...)`, for what cannot be read. None: as `Options.on_error` says, or "raise".
      partitioning: "hive": folders such as `year=2024` are columns, int64 or text; a dict of types by column states theirs;
        None leaves them out.
      storage_options: for the file systems that the URLs name, such as credentials; see `distinput.io.mount`.
      filesystem: of fsspec or of PyArrow, or a store of obstore, that has the files; "obstore": the store that URLs name.

    Raises:
      NotFoundError: a file is not there.
      InvalidArgumentError: arrays have different numbers of rows, or take more memory than 4 GiB.
      UnimplementedError: an array of text or of objects.

    >>> import distinput as di
    >>> import numpy as np
    >>> np.savez("train.npz", x=np.arange(6).reshape(3, 2), y=np.array([7, 8, 9]))
    >>> di.data.NpzDataset("train.npz").to_list()
    [{'x': [0, 1], 'y': 7}, {'x': [2, 3], 'y': 8}, {'x': [4, 5], 'y': 9}]
    """

    def __init__(
        self,
        filenames: Any,
        columns: list[str] | None = None,
        *,
        memory_map: bool = True,
        num_parallel_reads: int | None = None,
        name: str | None = None,
        on_error: str | SkipErrors | None = None,
        storage_options: Mapping[str, Any] | None = None,
        filesystem: Any = None,
        partitioning: Any = "hive",
    ) -> None:
        super().__init__(
            reading(
                filenames,
                FORMATS.find("npz")(columns, memory_map),
                num_parallel_reads,
                name,
                on_error=on_error,
                storage_options=storage_options,
                filesystem=filesystem,
                partitioning=partitioning,
            )
        )
