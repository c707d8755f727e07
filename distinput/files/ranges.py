# SPDX-License-Identifier: Apache-2.0
"""Read many spans of one file at once, without what lies between them."""

import os

import numpy as np

from distinput.core.buffers import Bytes
from distinput.core.column import Ints
from distinput.errors import DataLossError
from distinput.files.paths import file_system, local_path
from distinput.files.remote import ranges_of
from distinput.files.source import naming

__all__ = ["read_spans"]


def read_spans(path: str, starts: Ints, sizes: Ints) -> Bytes:
    """Read bytes starts[i] to starts[i] + sizes[i] of a file, and return the spans concatenated.

    Raises:
      NotFoundError: it is not there.
      DataLossError: the file ends before a span does.
    """
    out = np.empty(int(sizes.sum()), np.uint8)
    with naming(path):
        local = local_path(path)
        if local is None:
            system, name = file_system(path)
            got = b"".join(ranges_of(system, name, starts.tolist(), (starts + sizes).tolist()))
            if len(got) == len(out):
                out[:] = np.frombuffer(got, np.uint8)
                return out
            raise _short(path)
        view, at = memoryview(out), 0  # type: ignore[arg-type]  # numpy's stubs do not name the buffer protocol
        file = os.open(local, os.O_RDONLY)
        try:
            for start, size in zip(starts.tolist(), sizes.tolist(), strict=True):
                stop = at + size
                while at < stop:
                    done = os.preadv(file, [view[at:stop]], start + size - (stop - at))
                    if not done:
                        raise _short(path)
                    at += done
        finally:
            os.close(file)
    return out


def _short(path: str) -> DataLossError:
    return DataLossError(f"{path}: ends before the last record that was counted; it changed")
