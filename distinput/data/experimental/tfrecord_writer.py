# SPDX-License-Identifier: Apache-2.0
"""`TFRecordWriter` of `tf.data.experimental`: writes a whole dataset of byte strings."""

import os
from typing import Any

from distinput.core.leaves import STRING
from distinput.core.spec import TensorSpec
from distinput.data.dataset import Dataset
from distinput.formats.tfrecord import TFRecordWriter as RecordWriter

__all__ = ["TFRecordWriter"]


class TFRecordWriter:
    """Writes the elements of a dataset to a TFRecord file; `io.TFRecordWriter` writes records one by one.

    The file appears under its name once it is complete.

    Args:
      filename: where to write, a local path or a URL.
      compression_type: "" or None, "GZIP" or "ZLIB".

    Raises:
      InvalidArgumentError: the compression is unknown.

    >>> import distinput as di
    >>> di.data.experimental.TFRecordWriter("a.tfrecord").write(di.data.Dataset.from_tensor_slices(["one", "two"]))
    >>> di.data.TFRecordDataset("a.tfrecord").to_list()
    [b'one', b'two']

    Source: `tf.data.experimental.TFRecordWriter`.
    """

    def __init__(self, filename: str | os.PathLike[str], compression_type: str | None = None) -> None:
        self.filename, self.compression_type = filename, compression_type

    def write(self, dataset: Dataset[Any]) -> None:
        """Write all elements.

        Args:
          dataset: byte strings.

        Raises:
          TypeError: it is no dataset, or its elements are no byte strings.
          NotFoundError: the folder does not exist.
        """
        if not isinstance(dataset, Dataset):
            raise TypeError(f"TFRecordWriter: write takes a dataset, got {dataset!r}")
        spec = dataset.element_spec
        if not isinstance(spec, TensorSpec) or spec.dtype != STRING or spec.shape not in (None, ()):
            raise TypeError(f"TFRecordWriter: elements must be byte strings, got {spec}; make them one with map")
        with RecordWriter(self.filename, self.compression_type) as writer, iter(dataset) as elements:
            for element in elements:
                writer.write(element)
