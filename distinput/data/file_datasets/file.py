# SPDX-License-Identifier: Apache-2.0
"""`FileDataset`: the records of files of any format."""

from collections.abc import Mapping
from typing import Any

from distinput.data.dataset import Dataset
from distinput.data.file_datasets.reading import reading, written_format
from distinput.formats import format_named
from distinput.formats.format import Format
from distinput.plan.options import SkipErrors

__all__ = ["FileDataset"]


class FileDataset(Dataset[Any]):
    r"""The records of files of any format: one of this library, or one that was registered.

    Args:
      filenames: a path, pattern or directory, a list of them, or a dataset of paths; any URL of fsspec or obstore.
      format: the name of a format ("arrow", "csv", "fixed_length", "jsonl", "npy", "parquet", "text", "tfrecord", or one
        that `distinput.extend.register_format` made known), or a `distinput.extend.Format` itself.
      num_parallel_reads: files read at a time, whose records take turns; one after the other when None.
      name: a label.
      on_error: "raise", "skip" or `SkipErrors(...)`, for what cannot be read: a damaged record, or the rest of the file if no
        record is found behind it. None: as `Options.on_error` says, or "raise".
      index: true to read the files by an index, which is built when it is first needed; see `TFRecordDataset`.
      **options: the options of the format, such as `compression_type="GZIP"` for text; none for a `Format`.
      partitioning: "hive": folders such as `year=2024` are columns, int64 or text; a dict of types by column states theirs;
        None leaves them out.
      storage_options: for the file systems that the URLs name, such as credentials; see `distinput.io.mount`.
      filesystem: of fsspec or of PyArrow, or a store of obstore, that has the files; "obstore": the store that URLs name.

    Without a format, a folder that `Dataset.write` has written is read as its manifest says. The format of other files, and
    their compression, is told by the suffix of their names, or else by the first bytes of the first file: see
    `distinput.inspect.recognise`.

    Raises:
      InvalidArgumentError: without a format, nothing tells it, or the files have several.
      ValueError: an unknown format, or one without index.
      TypeError: `format` is neither a name nor a `Format`; options were given with a `Format`; unknown options.
      NotFoundError: a file is not there.

    >>> import distinput as di
    >>> import pathlib
    >>> _ = pathlib.Path("a.bin").write_bytes(b"aabb")
    >>> di.data.FileDataset("a.bin", "fixed_length", record_bytes=2).to_list()
    [b'aa', b'bb']
    >>> _ = pathlib.Path("a.csv").write_text("x,y\n1,2\n")
    >>> di.data.FileDataset("a.csv").to_list()
    [{'x': 1, 'y': 2}]
    """

    def __init__(
        self,
        filenames: Any,
        format: str | Format | None = None,
        num_parallel_reads: int | None = None,
        name: str | None = None,
        *,
        index: bool | str = False,
        on_error: str | SkipErrors | None = None,
        storage_options: Mapping[str, Any] | None = None,
        filesystem: Any = None,
        partitioning: Any = "hive",
        **options: Any,
    ) -> None:
        if format is None:
            format, options = written_format(filenames, options, storage_options, filesystem)
        super().__init__(
            reading(
                filenames,
                _format(format, index, options),
                num_parallel_reads,
                name,
                on_error=on_error,
                storage_options=storage_options,
                filesystem=filesystem,
                partitioning=partitioning,
            )
        )


def _format(format: str | Format, index: bool | str, options: dict[str, Any]) -> Format:
    if isinstance(format, Format):
        given = [*options, *(["index"] if index else [])]
        if given:
            raise TypeError(f"FileDataset: {format.name} was given with its options, got {', '.join(given)} beside it")
        return format
    if not isinstance(format, str):
        raise TypeError(f"FileDataset: format must be a name or a Format, got {format!r}")
    return format_named(format, index, **options)
