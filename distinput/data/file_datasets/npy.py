# SPDX-License-Identifier: Apache-2.0
"""`NpyDataset`: the rows of arrays in `.npy` files."""

from collections.abc import Mapping
from typing import Any

from distinput.data.dataset import Dataset
from distinput.data.file_datasets.reading import reading
from distinput.formats import FORMATS
from distinput.plan.options import SkipErrors

__all__ = ["NpyDataset"]


class NpyDataset(Dataset[Any]):
    """The rows, along the first axis, of arrays in `.npy` files.

    Local files are mapped into memory: any rows in any order, as `global_shuffle` takes them, cost no more than they do in
    memory, once the system has read their pages. `Dataset.zip` puts the rows of several arrays together. Files must not be
    written in place while they are read; replace them by renaming.

    Args:
      filenames: a path, pattern or directory, a list of them, or a dataset of paths; any URL of fsspec or obstore.
      num_parallel_reads: files read at a time, whose rows take turns; one after the other when None.
      memory_map: map local files into memory. False: rows are read into memory of their own, so that a file that is cut short
        while it is read is a `DataLossError` and not the end of the process; random access costs a read for each run of rows.
      on_error: "raise", "skip" or `SkipErrors(...)`, for what cannot be read: a damaged record, or the rest of the file if no
        record is found behind it. None: as `Options.on_error` says, or "raise".
      storage_options: for the file systems that the URLs name, such as credentials; see `distinput.io.mount`.
      filesystem: of fsspec or of PyArrow, or a store of obstore, that has the files; "obstore": the store that URLs name.

    Raises:
      NotFoundError: a file is not there.
      UnimplementedError: an array of text, of objects, of several fields, or stored column by column.

    >>> import distinput as di
    >>> import numpy as np
    >>> np.save("images.npy", np.arange(6).reshape(3, 2))
    >>> np.save("labels.npy", np.array([7, 8, 9]))
    >>> pairs = di.data.Dataset.zip(di.data.NpyDataset("images.npy"), di.data.NpyDataset("labels.npy"))
    >>> pairs.to_list()
    [([0, 1], 7), ([2, 3], 8), ([4, 5], 9)]
    """

    def __init__(
        self,
        filenames: Any,
        num_parallel_reads: int | None = None,
        *,
        memory_map: bool = True,
        on_error: str | SkipErrors | None = None,
        storage_options: Mapping[str, Any] | None = None,
        filesystem: Any = None,
    ) -> None:
        super().__init__(
            reading(
                filenames,
                FORMATS.find("npy")(memory_map),
                num_parallel_reads,
                on_error=on_error,
                storage_options=storage_options,
                filesystem=filesystem,
            )
        )
