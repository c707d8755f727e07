# SPDX-License-Identifier: Apache-2.0
"""Indices: the offsets of the records of a file, kept beside it or in a folder, and what they add to its format."""

import io
import os
import zlib
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import field, fields
from functools import lru_cache
from itertools import pairwise
from threading import Lock
from typing import Any, ClassVar

import numpy as np

from distinput.columns.block import Block
from distinput.columns.column import Ints
from distinput.decoders.arrays import MalformedArray, npy_array, npy_header
from distinput.errors import DataLossError, InvalidArgumentError, NotFoundError, UnimplementedError
from distinput.files.folder import join_path, make_folder, split_path
from distinput.files.manifest import FileTable
from distinput.files.paths import ask_each, local_path
from distinput.files.sink import Sink
from distinput.files.source import naming, open_binary, read_spans, size_of, version_of
from distinput.formats.format import Format, Fragment, PlacedBlocks, Position, rows_in
from distinput.kernels.cache import is_own
from distinput.kernels.checksums import FOOTER, HEADER
from distinput.kernels.kernel import renewed
from distinput.names.lazy import dataclass, library
from distinput.url_secrets import public_url
from distinput.values.buffers import Bytes
from distinput.values.spec_json import MalformedJson, json_value

hashlib, json = library("hashlib"), library("json")  # for files that have no index yet

# ----------------------------------------------------------------------------
# Index files that lie beside TFRecord files: the offsets of the records, written together with the file or for it.
#
# The native format is `<file>.index`, a NumPy array file of int64 [n + 1]: the offset of each record in bytes, and the size
# of the file. `<file>.idx`, as written by the `tfrecord2idx` scripts, is read as well: a line of offset and length for each
# record.
# ----------------------------------------------------------------------------


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
        offsets: Ints = _from_lines(content) if lines else _from_array(content)
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
    return offsets


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


# ----------------------------------------------------------------------------
# Indices that are built when they are first needed, and kept: the offsets of the records of a file.
#
# An index is a NumPy array file of int64 [n + 1], the offset of each record in bytes and the end of the last one, followed
# by a line of JSON: the version of the file, the options of its format, and a checksum. If one of them differs, it is built
# anew. It lies beside the file, under a hidden name, which no pattern matches, or in a folder of indices.
# ----------------------------------------------------------------------------


class _OutdatedError(Exception):
    """An index that is it belongs to another version of its file, or is damaged."""


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
    place = hashlib.blake2b(public_url(path).encode(errors="surrogateescape"), digest_size=8).hexdigest()
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
    with _building.setdefault(index, renewed(Lock())):
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
    except (OSError, UnimplementedError) as error:
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
        facts = json_value(content[npy_header(content).start + found.nbytes :])
    except (MalformedArray, MalformedJson) as error:
        raise _OutdatedError(f"{index}: damaged: {error}") from error
    offsets: Ints = found.copy()
    whole = offsets.dtype == np.int64 and offsets.ndim == 1 and len(offsets) > 0
    wanted = {"version": version, "options": options, "crc32": zlib.crc32(array_file(offsets)) if whole else None}
    if not whole or facts != wanted:
        raise _OutdatedError(f"{index}: it belongs to another version of its file, or is damaged")
    offsets.flags.writeable = False  # shared by all readers
    return offsets


# ----------------------------------------------------------------------------
# What an index of the records of a file adds to its format: rows are counted, reached, fetched and cut by their numbers.
# ----------------------------------------------------------------------------


_FRAGMENT_BYTES = 1 << 20


def _position(offsets: Ints, row: int) -> Position:
    return {"byte": int(offsets[row]), "row": row}


@dataclass(frozen=True)
class Indexed(Format):
    """A format whose files have an index; derive from it first, and then from the format.

    The format has positions of "byte" and "row", and implements `offsets` and `parse_rows`. The index is built by reading the
    file once, when its records are first counted or reached, and kept: see `built_index`. It is compared with the size and
    time of the file before each use, and with what is read: a block that ends elsewhere than the index says is an error.

    Args:
      index_folder: where indices are kept; None: beside each file.

    Raises:
      InvalidArgumentError: the files are compressed.
    """

    counts_rows = fetches = states_cardinality = True
    stale: ClassVar[str] = "remove the index, and it is built again"
    """What to do about an index that is not of its file."""
    index_folder: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()  # type: ignore[misc]  # of the format
        compression = getattr(self, "compression", "")
        if compression:
            raise InvalidArgumentError(
                f"{self.name.removeprefix('indexed_')}: an index needs files without compression, got {compression!r}; read "
                "them without index"
            )

    @abstractmethod
    def offsets(self, path: str) -> Iterator[Ints]:
        """Read a file and yield the offsets of its records, in pieces, and at last the end of the last record.

        A record ends where the next one begins.

        Raises:
          DataLossError: the file is damaged.
        """

    @abstractmethod
    def parse_rows(self, path: str, data: Bytes, ends: Ints, rows: Ints) -> Block:
        """Records whose bytes are known.

        Args:
          path: the file.
          data: the bytes of the records, one after the other.
          ends: [n] where each record ends in `data`.
          rows: [n] the numbers of the records.

        Raises:
          DataLossError: these bytes are not those records.
        """

    def index(self, path: str) -> Ints:
        """[n + 1] the offset of each record of a file, and the end of the last one.

        Raises:
          NotFoundError: the file is not there.
          DataLossError: the file is damaged.
          OSError: there is no index, and none can be written.
        """
        name = self.name.removeprefix("indexed_")
        return built_index(path, index_path(path, name, self.index_folder), self._options, lambda: self.offsets(path))

    @property
    def _options(self) -> str:
        """The options of the format, which decide where records begin."""
        told: dict[str, Any] = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "index_folder"}
        return f"{self.name} {told}"

    def rows(self, path: str) -> int:
        return len(self.index(path)) - 1

    def seek(self, path: str, row: int) -> Position:
        return _position(self.index(path), row)

    def fragments(self, path: str) -> list[Fragment]:
        offsets = self.index(path)
        marks = np.arange(offsets[0], offsets[-1], _FRAGMENT_BYTES)
        cuts = [*dict.fromkeys(np.searchsorted(offsets, marks).tolist() or [0]), len(offsets) - 1]
        return [self._part(path, offsets, a, b) for a, b in pairwise(cuts)]

    def units(self, files: FileTable) -> Ints:
        """The number of records in each file."""
        if files.rows is not None and (files.rows >= 0).all():
            return files.rows
        return np.fromiter(ask_each(self.rows, files.paths()), np.int64, len(files))

    def unit_bytes(self, files: FileTable) -> int:
        """The average size of a record of these files in bytes."""
        return max(1, int(files.sizes.sum()) // max(1, int(self.units(files).sum())))

    def part(self, path: str, start: int, stop: int | None) -> Fragment:
        return self._part(path, self.index(path), start, stop)

    def _part(self, path: str, offsets: Ints, start: int, stop: int | None) -> Fragment:
        """With the index at hand: to get it takes a request for the version of a remote file."""
        end = len(offsets) - 1 if stop is None else stop
        behind = None if stop is None else _position(offsets, stop)
        begin = _position(offsets, start) if start else self.start()
        return Fragment(path, begin, behind, end - start, int(offsets[end] - offsets[start]))

    def read_fragment(self, fragment: Fragment, position: Position | None = None) -> PlacedBlocks:
        return Format.read_fragment(self, fragment, position)

    def read(self, path: str, position: Position | None = None) -> PlacedBlocks:
        return self._checked(path, super().read(path, position))  # type: ignore[safe-super]  # the format comes after this class

    def read_groups(self, path: str, position: Position | None, size: int, given: int) -> PlacedBlocks:
        return self._checked(path, super().read_groups(path, position, size, given))

    def read_until(self, path: str, position: Position, stop: Position) -> PlacedBlocks:
        return self._checked(path, super().read_until(path, position, stop))

    def _checked(self, path: str, blocks: PlacedBlocks) -> PlacedBlocks:
        """The same blocks, checked to end where the index says."""
        offsets = self.index(path)
        for block, after in blocks:
            if after["row"] >= len(offsets) or offsets[after["row"]] != after["byte"]:
                raise self.misplaced(path, after["row"])
            yield block, after

    def past(self, path: str, position: Position | None) -> Position | None:
        at, offsets = position or self.start(), self.index(path)
        known = at["row"] + 1 < len(offsets) and offsets[at["row"]] == at["byte"]
        return _position(offsets, at["row"] + 1) if known else super().past(path, position)

    def misplaced(self, path: str, row: int) -> DataLossError:
        """The error for a record that is not where the index says."""
        return DataLossError(
            f"{path}: record {row} is not where the index says, or damaged: the file has changed since the index was written; "
            f"{self.stale}"
        )

    def fetch(self, path: str, rows: Ints) -> Block:
        offsets = self.index(path)
        wanted = rows_in(path, rows, len(offsets) - 1)
        starts, ends = offsets[wanted], offsets[wanted + 1]
        return self.parse_rows(path, read_spans(path, starts, ends - starts), np.cumsum(ends - starts), wanted)
