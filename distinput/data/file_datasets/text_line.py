# SPDX-License-Identifier: Apache-2.0
"""`TextLineDataset`: the lines of text files."""

from collections.abc import Mapping
from typing import Any

from distinput.data.dataset import Dataset
from distinput.data.file_datasets.reading import reading
from distinput.formats import format_named
from distinput.plan.options import SkipErrors

__all__ = ["TextLineDataset"]


class TextLineDataset(Dataset[bytes]):
    r"""The lines of text files, as bytes without their line ends.

    A trailing "\r" is stripped too; a last line without newline counts; an empty file gives nothing.

    Args:
      filenames: a path, pattern or directory, a list of them, or a dataset of paths; any URL of fsspec or obstore.
      compression_type: "" for none, "GZIP", "ZLIB", "BZ2", "ZSTD", "LZ4", "SNAPPY"; None and "AUTO" go by suffixes of names.
      buffer_size: accepted as TensorFlow's; read sizes are chosen by the reader.
      num_parallel_reads: files read at a time, whose lines take turns; one after the other when None.
      name: a label.
      on_error: "raise", "skip" or `SkipErrors(...)`, for what cannot be read: a damaged record, or the rest of the file if no
        record is found behind it. None: as `Options.on_error` says, or "raise".
      index: true to count lines and reach them by their numbers, from an index that is built by reading each file once and kept
        beside it, under a hidden name; a path is a folder to keep it in. See `TFRecordDataset`.
      storage_options: for the file systems that the URLs name, such as credentials; see `distinput.io.mount`.
      filesystem: of fsspec or of PyArrow, or a store of obstore, that has the files; "obstore": the store that URLs name.

    Raises:
      NotFoundError: at iteration, a file is not there.

    >>> import distinput as di
    >>> import pathlib
    >>> _ = pathlib.Path("a.txt").write_text("one\ntwo\r\nthree")
    >>> list(di.data.TextLineDataset("a.txt"))
    [b'one', b'two', b'three']

    Source: `tf.data.TextLineDataset`.
    """

    def __init__(
        self,
        filenames: Any,
        compression_type: str | None = None,
        buffer_size: int | None = None,
        num_parallel_reads: int | None = None,
        name: str | None = None,
        *,
        index: bool | str = False,
        on_error: str | SkipErrors | None = None,
        storage_options: Mapping[str, Any] | None = None,
        filesystem: Any = None,
    ) -> None:
        made = format_named("text", index, compression_type=compression_type)
        super().__init__(
            reading(
                filenames,
                made,
                num_parallel_reads,
                name,
                on_error=on_error,
                storage_options=storage_options,
                filesystem=filesystem,
            )
        )
