# SPDX-License-Identifier: Apache-2.0
"""`ArrowDataset`: the rows of Arrow IPC files."""

from collections.abc import Mapping
from typing import Any

from distinput.data.dataset import Dataset
from distinput.data.file_datasets.reading import reading
from distinput.formats import format_named
from distinput.plan.options import SkipErrors

__all__ = ["ArrowDataset"]


class ArrowDataset(Dataset[dict[str, Any]]):
    """The rows of Arrow IPC files ("Feather version 2") or streams, as dicts from column name to value.

    Local files are mapped into memory: any rows in any order, as `global_shuffle` takes them, cost no more than they do in
    memory, once the system has read their pages. Compressed files, and those that are not local, are read a record batch at a
    time. Files must not be written in place while they are read; replace them by renaming, as `io.write_arrow` does.

    Args:
      filenames: a path, pattern or directory, a list of them, or a dataset of paths; any URL of fsspec or obstore.
      columns: names of the columns wanted; all when None.
      num_parallel_reads: files read at a time, whose rows take turns; one after the other when None.
      nulls: "error", or a dict with what to put in the place of nulls, by column.
      trusted: skip the check made once for each record batch, before its values are used: that its offsets, views and
        indices stay within it. A damaged file may then end the process, or yield values that it does not contain.
      memory_map: map local files into memory. False: rows are read into memory of their own, so that a file that is cut short
        while it is read is a `DataLossError` and not the end of the process; random access reads whole record batches.
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
    >>> di.io.write_arrow("a.arrow", {"x": np.arange(3), "y": [b"a", b"", b"ccc"]})
    >>> di.data.ArrowDataset("a.arrow").to_list()
    [{'x': 0, 'y': b'a'}, {'x': 1, 'y': b''}, {'x': 2, 'y': b'ccc'}]
    """

    def __init__(
        self,
        filenames: Any,
        columns: list[str] | None = None,
        num_parallel_reads: int | None = None,
        nulls: Any = "error",
        trusted: bool = False,
        *,
        memory_map: bool = True,
        on_error: str | SkipErrors | None = None,
        storage_options: Mapping[str, Any] | None = None,
        filesystem: Any = None,
        schema: Any = None,
        valid: Mapping[str, str] | None = None,
        partitioning: Any = "hive",
    ) -> None:
        options = {"columns": columns, "nulls": nulls, "trusted": trusted, "memory_map": memory_map}
        made = format_named("arrow", **options, schema=schema, valid=valid)
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
