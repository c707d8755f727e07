# SPDX-License-Identifier: Apache-2.0
"""`ArrayRecordDataset`: the records of ArrayRecord files."""

from collections.abc import Mapping
from typing import Any

from distinput.data.dataset import Dataset
from distinput.data.file_datasets.reading import reading
from distinput.formats import FORMATS
from distinput.plan.options import SkipErrors

__all__ = ["ArrayRecordDataset"]


class ArrayRecordDataset(Dataset[bytes]):
    """The records of ArrayRecord files, as bytes; the extra `arrayrecord` installs the package that reads them.

    Records are counted, and any of them is reached by its number: `global_shuffle` holds nothing in memory, shards and
    restarts go straight to their place. Files are local.

    Args:
      filenames: a path, a list of paths, or a dataset of paths.
      num_parallel_reads: files read at a time, whose records take turns; one after the other when None.
      name: a label.
      on_error: "raise", "skip" or `SkipErrors(...)`, for what cannot be read. None: as `Options.on_error` says, or "raise".
      storage_options: for the file systems that the URLs name, such as credentials; see `distinput.io.mount`.
      filesystem: of fsspec or of PyArrow, or a store of obstore, that has the files; "obstore": the store that URLs name.

    Raises:
      NotFoundError: a file is not there.
      EngineMissing: the package `array_record` is not installed.
      DataLossError: a file is damaged or cut short.
      UnimplementedError: a file is not local.
    """

    def __init__(
        self,
        filenames: Any,
        *,
        num_parallel_reads: int | None = None,
        name: str | None = None,
        on_error: str | SkipErrors | None = None,
        storage_options: Mapping[str, Any] | None = None,
        filesystem: Any = None,
    ) -> None:
        super().__init__(
            reading(
                filenames,
                FORMATS.find("array_record")(),
                num_parallel_reads,
                name,
                on_error=on_error,
                storage_options=storage_options,
                filesystem=filesystem,
            )
        )
