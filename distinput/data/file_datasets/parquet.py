# SPDX-License-Identifier: Apache-2.0
"""`ParquetDataset`: the rows of Parquet files."""

from collections.abc import Mapping
from typing import Any

from distinput.data.dataset import Dataset
from distinput.data.file_datasets.reading import reading
from distinput.formats import format_named
from distinput.plan.options import SkipErrors

__all__ = ["ParquetDataset"]


class ParquetDataset(Dataset[dict[str, Any]]):
    """The rows of Parquet files, as dicts from column name to value.

    Only the named columns are read. Rows can be counted and reached by position from the files' footers.

    Args:
      filenames: a path, pattern or directory, a list of them, or a dataset of paths; any URL of fsspec or obstore.
      columns: names of the columns wanted; all when None.
      num_parallel_reads: files read at a time, whose rows take turns; one after the other when None.
      nulls: "error", or a dict with what to put in the place of nulls, by column.
      on_error: "raise", "skip" or `SkipErrors(...)`, for what cannot be read: a damaged record, or the rest of the file if no
        record is found behind it. None: as `Options.on_error` says, or "raise".
      schema: the columns of all files: a dict of types by column, a pyarrow Schema, or "union", that of all files together.
        What a file lacks is null there, as `nulls` has it, and numbers become wider ones. None: that of the first.
      valid: a dict from columns to names: a column of truth values of this name says which rows of the column are not null.
      partitioning: "hive": folders such as `year=2024` are columns, int64 or text; a dict of types by column states theirs;
        None leaves them out.
      storage_options: for the file systems that the URLs name, such as credentials; see `distinput.io.mount`.
      filesystem: of fsspec or of PyArrow, or a store of obstore, that has the files; "obstore": the store that URLs name.

    Raises:
      NotFoundError: a file is not there.

    >>> import distinput as di
    >>> import numpy as np
    >>> di.io.write_parquet("a.parquet", {"x": np.arange(3), "y": np.ones(3)})
    >>> di.data.ParquetDataset("a.parquet", columns=["x"]).to_list()
    [{'x': 0}, {'x': 1}, {'x': 2}]
    """

    def __init__(
        self,
        filenames: Any,
        columns: list[str] | None = None,
        num_parallel_reads: int | None = None,
        nulls: Any = "error",
        *,
        on_error: str | SkipErrors | None = None,
        storage_options: Mapping[str, Any] | None = None,
        filesystem: Any = None,
        schema: Any = None,
        valid: Mapping[str, str] | None = None,
        partitioning: Any = "hive",
    ) -> None:
        made = format_named(
            "parquet", columns=None if columns is None else tuple(columns), nulls=nulls, schema=schema, valid=valid
        )
        super().__init__(
            reading(
                filenames,
                made,
                num_parallel_reads,
                on_error=on_error,
                storage_options=storage_options,
                filesystem=filesystem,
                partitioning=partitioning,
            )
        )
