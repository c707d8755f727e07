# SPDX-License-Identifier: Apache-2.0
"""Index files that lie beside TFRecord files: the offsets of the records, written together with the file or for it.

The native format is `<file>.index`, a NumPy array file of int64 [n + 1]: the offset of each record in bytes, and the size of
the file. `<file>.idx`, as written by the `tfrecord2idx` scripts, is read as well: a line of offset and length for each record.
"""

import io
from functools import lru_cache

import numpy as np

from distinput.core.column import Ints
from distinput.core.npy_header import MalformedArray, npy_array
from distinput.errors import DataLossError, NotFoundError
from distinput.files.sink import Sink
from distinput.files.source import naming, open_binary, size_of, version_of
from distinput.kernels.tfrecord import FOOTER, HEADER

__all__ = ["CURE", "ENDING", "array_file", "index_beside", "index_sink"]

ENDING, OTHERS_ENDING = ".index", ".idx"
CURE = "write the index again with distinput.io.write_tfrecord_index"


def index_sink(path: str, offsets: Ints) -> Sink:
    """Write the index of a TFRecord file beside it; returns the sink, which is not closed yet.

    Args:
      path: of the TFRecord file.
      offsets: [n + 1] the offset of each record, and the size of the file.
    """
    sink = Sink(path + ENDING, own=True)
    sink.write(array_file(offsets))
    return sink


def index_beside(path: str) -> Ints | None:
    """[n + 1] the offset of each record of a TFRecord file, and the size of the file, from its index; None if it has none.

    Raises:
      NotFoundError: the file is not there.
      DataLossError: the index is damaged, or belongs to another version of the file.
    """
    size = size_of(path)
    for ending in (ENDING, OTHERS_ENDING):
        try:
            version = version_of(path + ending)
        except NotFoundError:
            continue
        offsets = _loaded(path + ending, version)
        if size and offsets[-1] != size:
            raise DataLossError(
                f"{path}: has {size} bytes, but its index {path + ending} is of a file of {offsets[-1]} bytes; {CURE}"
            )
        return offsets
    return None


@lru_cache(maxsize=256)
def _loaded(path: str, version: str) -> Ints:
    del version  # only part of the cache key: it identifies the version of the index
    with naming(path), open_binary(path) as file:
        content = file.read()
    try:
        lines = path.endswith(OTHERS_ENDING)
        offsets = _from_lines(content) if lines else _from_array(content)
        sizes = np.diff(offsets)
        if (sizes < HEADER + FOOTER).any():
            number = int((sizes < HEADER + FOOTER).argmax())
            raise MalformedArray(
                f"record {number} would have {sizes[number]} bytes; one takes at least {HEADER + FOOTER}"
            )
        if offsets[0]:
            raise MalformedArray(f"record 0 begins at byte {offsets[0]}, not at the beginning of the file")
    except MalformedArray as error:
        raise DataLossError(f"{path}: not an index of a TFRecord file, or damaged: {error}; {CURE}") from error
    offsets.flags.writeable = False  # shared by all readers
    found: Ints = offsets
    return found


def _from_array(content: bytes) -> Ints:
    try:
        offsets = npy_array(content)
    except MalformedArray as error:
        raise MalformedArray(f"its header at byte 0: {error}") from error
    if offsets.dtype != np.int64 or offsets.ndim != 1 or not len(offsets):
        raise MalformedArray("its header at byte 0: an index is int64 [records + 1]")
    return offsets.copy()


def _from_lines(content: bytes) -> Ints:
    words = [line.split() for line in content.splitlines()]
    bad = next((number for number, line in enumerate(words, 1) if len(line) != 2 or not all(map(_is_count, line))), 0)
    if bad:
        raise MalformedArray(
            f"line {bad}: expected the start and the size of a record, got {b' '.join(words[bad - 1])[:40]!r}"
        )
    lines = np.array(words, np.int64).reshape(-1, 2)
    offsets = np.append(lines[:, 0], lines[-1:].sum() if len(lines) else 0)
    wrong = np.diff(offsets) != lines[:, 1]
    if wrong.any():
        raise MalformedArray(f"line {int(wrong.argmax()) + 2}: each record must begin where the one before it ends")
    return offsets


def _is_count(word: bytes) -> bool:
    return word.isdigit() and len(word) < 19  # so that it fits into 64 bits


def array_file(offsets: Ints) -> bytes:
    """Offsets as a NumPy array file."""
    content = io.BytesIO()
    np.save(content, np.ascontiguousarray(offsets, "<i8"), allow_pickle=False)
    return content.getvalue()
