# SPDX-License-Identifier: Apache-2.0
"""Datasets over files: `ArrowDataset`, `FixedLengthRecordDataset`, `NpyDataset`, `ParquetDataset`, `TextLineDataset`, ..."""

from typing import Any

import numpy as np

from distinput import ops
from distinput.data.dataset import Dataset
from distinput.files.paths import as_paths
from distinput.formats import FORMATS
from distinput.formats.format import Format
from distinput.ops.files import Files
from distinput.ops.reader import Reader
from distinput.ops.slices import from_tensor_slices
from distinput.plan.node import Node

__all__ = [
    "ArrowDataset",
    "FileDataset",
    "FixedLengthRecordDataset",
    "NpyDataset",
    "ParquetDataset",
    "TFRecordDataset",
    "TextLineDataset",
]


_FILES = 16
"""Files read at a time with AUTOTUNE, the same on every machine."""


class FileDataset(Dataset[Any]):
    """The records of files of any format: one of this library, or one that was registered.

    Args:
      filenames: a path, a list of paths, or a dataset of paths; any fsspec URL.
      format: the name of a format ("arrow", "fixed_length", "indexed_tfrecord", "npy", "parquet", "text", "tfrecord", or one
        that `distinput.extend.register_format` made known), or a `distinput.extend.Format` itself.
      num_parallel_reads: files read at a time, whose records take turns; one after the other when None.
      name: a label.
      **options: the options of the format, such as `compression_type="GZIP"` for text; none for a `Format`.

    Raises:
      ValueError: an unknown format.
      TypeError: `format` is neither a name nor a `Format`; options were given with a `Format`; unknown options.
      NotFoundError: a file is not there.

    >>> import distinput as di
    >>> import pathlib
    >>> _ = pathlib.Path("a.bin").write_bytes(b"aabb")
    >>> di.data.FileDataset("a.bin", "fixed_length", record_bytes=2).to_list()
    [b'aa', b'bb']
    """

    def __init__(
        self,
        filenames: Any,
        format: str | Format,
        num_parallel_reads: int | None = None,
        name: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(_reading(filenames, _format(format, options), num_parallel_reads, name))


class TextLineDataset(Dataset[bytes]):
    r"""The lines of text files, as bytes without their line ends.

    A trailing "\r" is stripped too; a last line without newline counts; an empty file gives nothing.

    Args:
      filenames: a path, a list of paths, or a dataset of paths; any fsspec URL.
      compression_type: "" or None, "GZIP" or "ZLIB".
      buffer_size: accepted as TensorFlow's; read sizes are chosen by the reader.
      num_parallel_reads: files read at a time, whose lines take turns; one after the other when None.
      name: a label.

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
    ) -> None:
        super().__init__(_reading(filenames, FORMATS.find("text")(compression_type), num_parallel_reads, name))


class TFRecordDataset(Dataset[bytes]):
    """The records of TFRecord files, as bytes; both checksums of each are checked.

    Args:
      filenames: a path, a list of paths, or a dataset of paths; any fsspec URL.
      compression_type: "" or None, "GZIP" or "ZLIB".
      buffer_size: accepted as TensorFlow's; read sizes are chosen by the reader.
      num_parallel_reads: files read at a time, whose records take turns; one after the other when None.
      name: a label.
      index: true where each file has an index beside it (`distinput.io.write_tfrecord_index`). Then records are counted
        and reached by their numbers: the cardinality is known, `skip`, a shard and a restart go to their place, and
        policies DATA and BALANCED read nothing of other workers.

    Raises:
      NotFoundError: at iteration, a file is not there; with `index`, a file has no index.
      InvalidArgumentError: `index` and a compression.
      DataLossError: at iteration, a checksum differs or a file ends inside a record.

    >>> import distinput as di
    >>> with di.io.TFRecordWriter("a.tfrecord") as writer:
    ...     writer.write(b"one")
    >>> list(di.data.TFRecordDataset("a.tfrecord"))
    [b'one']

    Source: `tf.data.TFRecordDataset`.
    """

    def __init__(
        self,
        filenames: Any,
        compression_type: str | None = None,
        buffer_size: int | None = None,
        num_parallel_reads: int | None = None,
        name: str | None = None,
        *,
        index: bool = False,
    ) -> None:
        made = FORMATS.find("indexed_tfrecord" if index else "tfrecord")
        super().__init__(_reading(filenames, made(compression_type), num_parallel_reads, name))


class FixedLengthRecordDataset(Dataset[bytes]):
    """Records of `record_bytes` bytes each.

    Args:
      filenames: a path, a list of paths, or a dataset of paths; any fsspec URL.
      record_bytes: bytes in a record.
      header_bytes: bytes to leave out at the beginning of each file.
      footer_bytes: bytes to leave out at the end of each file.
      buffer_size: accepted as TensorFlow's; read sizes are chosen by the reader.
      compression_type: "" or None, "GZIP" or "ZLIB".
      num_parallel_reads: files read at a time, whose records take turns; one after the other when None.
      name: a label.

    Raises:
      InvalidArgumentError: at iteration, a file is not a whole number of records.

    >>> import distinput as di
    >>> import pathlib
    >>> _ = pathlib.Path("a.bin").write_bytes(b"HEADaabb")
    >>> list(di.data.FixedLengthRecordDataset("a.bin", 2, header_bytes=4))
    [b'aa', b'bb']

    Source: `tf.data.FixedLengthRecordDataset`.
    """

    def __init__(
        self,
        filenames: Any,
        record_bytes: int,
        header_bytes: int | None = None,
        footer_bytes: int | None = None,
        buffer_size: int | None = None,
        compression_type: str | None = None,
        num_parallel_reads: int | None = None,
        name: str | None = None,
    ) -> None:
        made = FORMATS.find("fixed_length")(record_bytes, header_bytes or 0, footer_bytes or 0, compression_type)
        super().__init__(_reading(filenames, made, num_parallel_reads, name))


class ParquetDataset(Dataset[dict[str, Any]]):
    """The rows of Parquet files, as dicts from column name to value.

    Only the named columns are read. Rows can be counted and reached by position from the files' footers.

    Args:
      filenames: a path, a list of paths, or a dataset of paths; any fsspec URL.
      columns: names of the columns wanted; all when None.
      num_parallel_reads: files read at a time, whose rows take turns; one after the other when None.
      nulls: "error", or a dict with what to put in the place of nulls, by column.

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
    ) -> None:
        made = FORMATS.find("parquet")(None if columns is None else tuple(columns), nulls=nulls)
        super().__init__(_reading(filenames, made, num_parallel_reads))


class ArrowDataset(Dataset[dict[str, Any]]):
    """The rows of Arrow IPC files ("Feather version 2") or streams, as dicts from column name to value.

    Local files are mapped into memory: any rows in any order, as `global_shuffle` takes them, cost no more than they do in
    memory, once the system has read their pages. Compressed files, and those that are not local, are read a record batch at a
    time. Files must not be written in place while they are read; replace them by renaming, as `io.write_arrow` does.

    Args:
      filenames: a path, a list of paths, or a dataset of paths; any fsspec URL.
      columns: names of the columns wanted; all when None.
      num_parallel_reads: files read at a time, whose rows take turns; one after the other when None.
      nulls: "error", or a dict with what to put in the place of nulls, by column.
      trusted: skip the check made once for each record batch, before its values are used: that its offsets, views and
        indices stay within it. A damaged file may then end the process, or yield values that it does not contain.

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
    ) -> None:
        made = FORMATS.find("arrow")(columns, nulls, trusted)
        super().__init__(_reading(filenames, made, num_parallel_reads))


class NpyDataset(Dataset[Any]):
    """The rows, along the first axis, of arrays in `.npy` files.

    Local files are mapped into memory: any rows in any order, as `global_shuffle` takes them, cost no more than they do in
    memory, once the system has read their pages. `Dataset.zip` puts the rows of several arrays together. Files must not be
    written in place while they are read; replace them by renaming.

    Args:
      filenames: a path, a list of paths, or a dataset of paths; any fsspec URL.
      num_parallel_reads: files read at a time, whose rows take turns; one after the other when None.

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

    def __init__(self, filenames: Any, num_parallel_reads: int | None = None) -> None:
        super().__init__(_reading(filenames, FORMATS.find("npy")(), num_parallel_reads))


def _reading(filenames: Any, file_format: Format, num_parallel_reads: int | None, name: str | None = None) -> Node:
    """A reader of the named files, or several readers that take turns."""
    names = _names(filenames)
    table = names.table if isinstance(names, Files) else None
    if num_parallel_reads is None:
        return Reader(names, file_format, table, name=name)

    def reader(path: bytes) -> Node:
        return Reader(_names(path), file_format, table)

    cycle = _FILES if num_parallel_reads < 1 else num_parallel_reads
    return ops.interleave.Interleave(names, reader, cycle, 1, num_parallel_reads, name=name)


def _format(format: str | Format, options: dict[str, Any]) -> Format:
    if isinstance(format, Format):
        if options:
            raise TypeError(
                f"FileDataset: {format.name} was given with its options, got {', '.join(options)} beside it"
            )
        return format
    if not isinstance(format, str):
        raise TypeError(f"FileDataset: format must be a name or a Format, got {format!r}")
    made = FORMATS.find(format)(**options)
    if not isinstance(made, Format):
        raise TypeError(f"FileDataset: {format!r} is registered as a format, but makes {made!r}, which is no Format")
    return made


def _names(filenames: Any) -> Node:
    if isinstance(filenames, Dataset):
        return filenames.node
    return from_tensor_slices(np.array([path.encode() for path in as_paths(filenames)], dtype=object))
