# SPDX-License-Identifier: Apache-2.0
"""`FixedLengthRecordDataset`: records of so many bytes each."""

from collections.abc import Mapping
from typing import Any

from distinput.data.dataset import Dataset
from distinput.data.file_datasets.reading import reading
from distinput.formats import FORMATS
from distinput.plan.options import SkipErrors

__all__ = ["FixedLengthRecordDataset"]


class FixedLengthRecordDataset(Dataset[bytes]):
    """Records of `record_bytes` bytes each.

    Args:
      filenames: a path, pattern or directory, a list of them, or a dataset of paths; any URL of fsspec or obstore.
      record_bytes: bytes in a record.
      header_bytes: bytes to leave out at the beginning of each file.
      footer_bytes: bytes to leave out at the end of each file.
      buffer_size: accepted as TensorFlow's; read sizes are chosen by the reader.
      compression_type: "" for none, "GZIP", "ZLIB", "BZ2", "ZSTD", "LZ4", "SNAPPY"; None and "AUTO" go by suffixes of names.
      num_parallel_reads: files read at a time, whose records take turns; one after the other when None.
      name: a label.
      on_error: "raise", "skip" or `SkipErrors(...)`, for what cannot be read: a damaged record, or the rest of the file if no
        record is found behind it. None: as `Options.on_error` says, or "raise".
      storage_options: for the file systems that the URLs name, such as credentials; see `distinput.io.mount`.
      filesystem: of fsspec or of PyArrow, or a store of obstore, that has the files; "obstore": the store that URLs name.

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
        *,
        on_error: str | SkipErrors | None = None,
        storage_options: Mapping[str, Any] | None = None,
        filesystem: Any = None,
    ) -> None:
        made = FORMATS.find("fixed_length")(record_bytes, header_bytes or 0, footer_bytes or 0, compression_type)
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
