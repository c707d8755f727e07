# SPDX-License-Identifier: Apache-2.0
"""`TFRecordDataset`: the records of TFRecord files."""

from collections.abc import Mapping
from typing import Any

from distinput.data.dataset import Dataset
from distinput.data.file_datasets.reading import reading
from distinput.formats import format_named
from distinput.plan.options import SkipErrors

__all__ = ["TFRecordDataset"]


class TFRecordDataset(Dataset[bytes]):
    """The records of TFRecord files, as bytes; both checksums of each are checked.

    Args:
      filenames: a path, pattern or directory, a list of them, or a dataset of paths; any URL of fsspec or obstore.
      compression_type: "" for none, "GZIP", "ZLIB", "BZ2", "ZSTD", "LZ4", "SNAPPY"; None and "AUTO" go by suffixes of names.
      buffer_size: accepted as TensorFlow's; read sizes are chosen by the reader.
      num_parallel_reads: files read at a time, whose records take turns; one after the other when None.
      name: a label.
      on_error: "raise", "skip" or `SkipErrors(...)`, for what cannot be read: a damaged record, or the rest of the file if no
        record is found behind it. None: as `Options.on_error` says, or "raise".
      index: true to count records and reach them by their numbers: the cardinality is known, `skip`, a shard and a restart go
        to their place, `global_shuffle` works, and policies DATA and BALANCED read nothing of other workers. The index beside
        a file (`distinput.io.write_tfrecord_index`) is used if there is one. Otherwise it is built when it is first needed, by
        reading the file once, and kept beside the file, under a hidden name; a path is a folder to keep it in.
      storage_options: for the file systems that the URLs name, such as credentials; see `distinput.io.mount`.
      filesystem: of fsspec or of PyArrow, or a store of obstore, that has the files; "obstore": the store that URLs name.

    Raises:
      NotFoundError: at iteration, a file is not there.
      OSError: with `index`, an index cannot be written.
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
        index: bool | str = False,
        on_error: str | SkipErrors | None = None,
        storage_options: Mapping[str, Any] | None = None,
        filesystem: Any = None,
    ) -> None:
        made = format_named("tfrecord", index, compression_type=compression_type)
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
