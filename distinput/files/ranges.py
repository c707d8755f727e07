# SPDX-License-Identifier: Apache-2.0
"""Read many spans of one file at once, without what lies between them."""

import os

import numpy as np

from distinput.core.buffers import Bytes
from distinput.core.column import Ints
from distinput.errors import DataLossError
from distinput.files.paths import local_path
from distinput.files.range_requests import fetch
from distinput.files.source import naming
from distinput.kernels.ragged import gather_spans

__all__ = ["read_spans"]

_GAP = 4096
"""Spans of a local file are read together if at most so many bytes lie between them."""


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
            got = b"".join(fetch(path, starts.tolist(), (starts + sizes).tolist()))
            if len(got) == len(out):
                out[:] = np.frombuffer(got, np.uint8)
                return out
            raise _short(path)
        return _of_local(path, local, starts, sizes, out)


def _of_local(path: str, local: str, starts: Ints, sizes: Ints, out: Bytes) -> Bytes:
    """Spans of a local file: those near each other are read at once, since a call costs as much as some KiB."""
    order = np.argsort(starts, kind="stable")
    begins, ends = starts[order], np.maximum.accumulate((starts + sizes)[order])
    apart = np.flatnonzero(begins[1:] - ends[:-1] > _GAP) + 1
    firsts = np.append(0, apart) if len(begins) else apart
    runs, stops = begins[firsts], ends[np.append(apart, len(ends)) - 1] if len(ends) else ends
    offsets = np.append(0, np.cumsum(stops - runs))
    data = np.empty(int(offsets[-1]), np.uint8)
    view = memoryview(data)  # type: ignore[arg-type]  # numpy's stubs do not name the buffer protocol
    file = os.open(local, os.O_RDONLY)
    try:
        for at, end, run in zip(offsets[:-1].tolist(), offsets[1:].tolist(), runs.tolist(), strict=True):
            done = at
            while done < end:
                got = os.preadv(file, [view[done:end]], run + done - at)
                if not got:
                    raise _short(path)
                done += got
    finally:
        os.close(file)
    shifts = np.empty(len(starts), np.int64)
    shifts[order] = np.repeat(offsets[:-1] - runs, np.diff(np.append(firsts, len(starts)))) if len(starts) else 0
    gather_spans(data, starts + shifts, np.ascontiguousarray(sizes), out, np.append(0, np.cumsum(sizes)))
    return out


def _short(path: str) -> DataLossError:
    return DataLossError(f"{path}: ends before the last record that was counted; it changed")
