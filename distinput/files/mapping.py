# SPDX-License-Identifier: Apache-2.0
"""Local files mapped into memory: their bytes are there without being read, and only those looked at come from the disk.

A mapping shows the file as it is. Whoever replaces a file by another one (as renaming does) leaves mappings of the old one
whole; a file that is cut short in place while it is mapped takes the process with it when somebody looks at what is gone. So
`check_unchanged` or `stamp_of` are asked before every use; what is cut between that and the use they cannot see.
"""

from functools import lru_cache
from typing import Any

import numpy as np

from distinput.core.buffers import Bytes
from distinput.files.source import EMPTY, naming, stamp_of

__all__ = ["mapped"]


def mapped(path: str) -> Bytes:
    """The bytes of a local file, which cannot be written to; no file stays open for them.

    Args:
      path: for the operating system, no URL.

    Raises:
      NotFoundError: it is not there.
    """
    return _mapped(path, stamp_of(path))


@lru_cache(maxsize=1024)
def _mapped(path: str, stamp: str) -> Bytes:
    del stamp  # it tells one version of the file from the next
    import pyarrow as pa

    with naming(path):
        file: Any = pa.memory_map(path, "r")
    with file:  # what is mapped stays so until nobody refers to it; Python's own mmap would keep the file open too
        return np.frombuffer(file.read_buffer(), np.uint8) if file.size() else EMPTY
