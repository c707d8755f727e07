# SPDX-License-Identifier: Apache-2.0
"""Local files mapped into memory: only the pages that are accessed are read from disk.

A mapping shows the current contents of the file. Replacing a file by another one (as renaming does) leaves mappings of
the old one intact; truncating a file in place while it is mapped kills the process on the next access to the missing
part. Therefore `check_unchanged` or `stamp_of` must be called before every use; a truncation between that call and the
use goes undetected.
"""

from functools import lru_cache
from typing import Any

import numpy as np

from distinput.files.source import EMPTY, naming, stamp_of
from distinput.values.buffers import Bytes

__all__ = ["mapped"]


def mapped(path: str) -> Bytes:
    """The bytes of a local file as a read-only array; no file descriptor stays open.

    Args:
      path: a path of the operating system, not a URL.

    Raises:
      NotFoundError: it is not there.
    """
    return _mapped(path, stamp_of(path))


@lru_cache(maxsize=1024)
def _mapped(path: str, stamp: str) -> Bytes:
    del stamp  # only part of the cache key: it identifies the version of the file
    import pyarrow as pa

    with naming(path):
        file: Any = pa.memory_map(path, "r")
    with file:  # the mapping lives as long as it is referenced; Python's mmap would keep the file open too
        return np.frombuffer(file.read_buffer(), np.uint8) if file.size() else EMPTY
