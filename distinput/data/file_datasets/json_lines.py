# SPDX-License-Identifier: Apache-2.0
"""`JsonLinesDataset`: the objects in files of JSON Lines."""

from collections.abc import Mapping, Sequence
from typing import Any

from distinput.data.dataset import Dataset
from distinput.data.file_datasets.reading import reading
from distinput.formats import format_named
from distinput.plan.options import SkipErrors

__all__ = ["JsonLinesDataset"]


class JsonLinesDataset(Dataset[dict[str, Any]]):
    r"""The objects in files of JSON Lines, one a line, as dicts from key to value.

    The types of keys are stated by `schema`, or inferred from the beginning of the first file; then they hold for all files,
    and a value that does not fit is an error with file, line and key. Text becomes its UTF-8 bytes, an array a row of varying
    length, an object a dict.

    Args:
      filenames: a path, a list of paths, or a dataset of paths; any URL.
      schema: types by key, of which a dict may leave some out, or a pyarrow Schema. A `TensorSpec` with a shape is an array of
        this shape.
      columns: the keys to read; others are passed over. All when None, and a key that the schema does not have is an error.
      compression_type: "" for none, "GZIP" or another codec; None and "AUTO" go by the suffix of each name.
      nulls: "error", or a dict with what to put in the place of missing values, by key.
      num_parallel_reads: files read at a time, whose rows take turns; one after the other when None.
      name: a label.
      index: true to count records and reach them by their numbers, from an index that is built by reading each file once and
        kept beside it; a path is a folder to keep it in. See `TFRecordDataset`.
      on_error: "raise", "skip" or `SkipErrors(...)`, for what cannot be read.
      partitioning: "hive": folders such as `year=2024` are columns, int64 or text; a dict of types by column states theirs;
        None leaves them out.
      storage_options: for the file systems that the URLs name, such as credentials.
      filesystem: of fsspec or of PyArrow, or a store of obstore, that has the files.

    Raises:
      InvalidArgumentError: an option has an invalid value; at iteration, an object does not fit.
      NotFoundError: a file is not there.

    >>> import distinput as di
    >>> import pathlib
    >>> _ = pathlib.Path("a.jsonl").write_text('{"id": 1, "tags": ["x", "y"]}\n{"id": 2, "tags": []}\n')
    >>> di.data.JsonLinesDataset("a.jsonl").to_list()
    [{'id': 1, 'tags': [b'x', b'y']}, {'id': 2, 'tags': []}]
    """

    def __init__(
        self,
        filenames: Any,
        schema: Any = None,
        columns: Sequence[str] | None = None,
        compression_type: str | None = None,
        nulls: Any = "error",
        num_parallel_reads: int | None = None,
        name: str | None = None,
        *,
        index: bool | str = False,
        on_error: str | SkipErrors | None = None,
        storage_options: Mapping[str, Any] | None = None,
        filesystem: Any = None,
        partitioning: Any = "hive",
    ) -> None:
        super().__init__(
            reading(
                filenames,
                format_named(
                    "jsonl", index, schema=schema, columns=columns, nulls=nulls, compression_type=compression_type
                ),
                num_parallel_reads,
                name,
                on_error=on_error,
                storage_options=storage_options,
                filesystem=filesystem,
                partitioning=partitioning,
            )
        )
