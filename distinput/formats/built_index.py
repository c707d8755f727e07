# SPDX-License-Identifier: Apache-2.0
"""Indices that are built when they are first needed, and kept: the offsets of the records of a file.

An index is a NumPy array file of int64 [n + 1], the offset of each record in bytes and the end of the last one, followed by a
line of JSON: the version of the file, the options of its format, and a checksum. If one of them differs, it is built anew.
It lies beside the file, under a hidden name, which no pattern matches, or in a folder of indices.
"""

import json
import os
import zlib
from collections.abc import Callable, Iterator
from functools import lru_cache
from hashlib import blake2b
from threading import Lock
from typing import Any

import numpy as np

from distinput.core.column import Ints
from distinput.core.json_values import MalformedJson, json_value
from distinput.core.npy_header import MalformedArray, npy_array, npy_header
from distinput.errors import DataLossError, InvalidArgumentError, NotFoundError
from distinput.files.folder import join_path, make_folder, split_path
from distinput.files.paths import local_path
from distinput.files.sink import Sink
from distinput.files.source import naming, open_binary, version_of
from distinput.formats.record_index import ENDING, array_file
from distinput.kernels.own_folder import is_own
from distinput.url_secrets import public_url

__all__ = ["built_index", "index_path"]


class _OutdatedError(Exception):
    """An index that is of another version of its file, or damaged."""


_building: dict[str, Lock] = {}
"""A lock for each index, so that the threads of a process build it once."""


def index_path(path: str, format: str, folder: str | None) -> str:
    """Where the index that is built of a file lies.

    Args:
      path: the file.
      format: the name of its format.
      folder: where indices are collected; None: beside the file, under a hidden name, which no pattern matches.

    Raises:
      InvalidArgumentError: others may write to the folder: an index says where records begin.

    >>> index_path("data/a.txt", "text", None)
    'data/.a.txt.text.index'
    """
    beside, name = split_path(public_url(path))
    if folder is None:
        hidden = f".{name}.{format}{ENDING}"
        return join_path(beside, hidden) if beside else hidden
    _check_own(folder)
    place = blake2b(public_url(path).encode(errors="surrogateescape"), digest_size=8).hexdigest()
    return join_path(folder, f"{name}.{place}.{format}{ENDING}")


@lru_cache(maxsize=256)
def _check_own(folder: str) -> None:
    local = local_path(folder)
    if local is not None and not is_own(local or os.curdir):
        raise InvalidArgumentError(
            f"index={folder!r}: others could change what records are read: the folder must belong to you, and others must not "
            "be able to write to it or to one above it; `chmod go-w` it, or name a folder of your own"
        )


def built_index(path: str, index: str, options: str, offsets: Callable[[], Iterator[Ints]]) -> Ints:
    """[n + 1] the offsets of the records of a file, from an index that is built if there is none of this version.

    Args:
      path: the file.
      index: of the index.
      options: what else the offsets depend on.
      offsets: reads the file and yields the offsets of its records, and the end of the last one.

    Raises:
      NotFoundError: the file is not there.
      DataLossError: the file is damaged, or changed while it was read.
      OSError: the index cannot be written.
    """
    version = version_of(path)
    try:
        return _kept(index, version_of(index), version, options)
    except (NotFoundError, _OutdatedError):
        pass
    with _building.setdefault(index, Lock()):
        try:  # another thread may have built it meanwhile
            return _kept(index, version_of(index), version, options)
        except (NotFoundError, _OutdatedError):
            found = np.concatenate(list(offsets()))
        if version_of(path) != version:
            raise DataLossError(f"{path}: changed while its index was built; try again when nobody writes to it")
        _keep(path, index, found, {"version": version, "options": options})
        return _kept(index, version_of(index), version, options)


def _keep(path: str, index: str, offsets: Ints, facts: dict[str, Any]) -> None:
    told = json.dumps({**facts, "crc32": zlib.crc32(array_file(offsets))})
    try:
        folder = split_path(index)[0]
        if folder:
            make_folder(folder)
        with Sink(index, own=True) as sink:
            sink.write(array_file(offsets))
            sink.write(told.encode())
    except OSError as error:
        error.add_note(f"the index of {path} cannot be written to {index}: name a folder for it with index='...'")
        raise


@lru_cache(maxsize=256)
def _kept(index: str, stamp: str, version: str, options: str) -> Ints:
    """What an index says, if it is of this version of its file.

    Raises:
      NotFoundError: it is not there.
      _OutdatedError: it is of another version, or damaged.
    """
    del stamp  # only part of the cache key: it identifies the version of the index
    with naming(index), open_binary(index) as file:
        content = file.read()
    try:
        found = npy_array(content)
        header = npy_header(content)
        facts = json_value(content[header.start + found.nbytes :])
    except (MalformedArray, MalformedJson) as error:
        raise _OutdatedError(f"{index}: damaged: {error}") from error
    offsets: Ints = found.copy()
    whole = offsets.dtype == np.int64 and offsets.ndim == 1 and len(offsets) > 0
    wanted = {"version": version, "options": options, "crc32": zlib.crc32(array_file(offsets)) if whole else None}
    if not whole or facts != wanted:
        raise _OutdatedError(f"{index}: of another version of its file, or damaged")
    offsets.flags.writeable = False  # shared by all readers
    return offsets
