# SPDX-License-Identifier: Apache-2.0
"""Tar archives of samples, as WebDataset has them: consecutive files that differ in their extensions only are one sample."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from distinput.columns.block import Block
from distinput.columns.failure import trouble_of
from distinput.columns.strings import Strings
from distinput.errors import DataLossError, InvalidArgumentError, UnimplementedError
from distinput.files.compression import as_compression, compression_of
from distinput.files.source import stamp_of
from distinput.formats.format import Position
from distinput.formats.indexed import Indexed
from distinput.formats.span_format import Found, Ints, Piece, SpanFormat
from distinput.formats.tar_members import (
    KEY,
    SPECIAL,
    Members,
    MemberTable,
    apart,
    as_members,
    as_missing,
    listed,
    name_at,
)
from distinput.kernels import tar_header as tar
from distinput.kernels.tar import scan_samples
from distinput.kernels.tar_header import read_member
from distinput.values.buffers import Bytes
from distinput.values.spec import Spec

__all__ = ["MOST_BYTES", "IndexedTarSamples", "TarSamples", "TarSpans"]


# ----------------------------------------------------------------------------
# Samples in tar archives as spans of bytes: where each begins and ends, and what is wrong with an archive.
# ----------------------------------------------------------------------------


MOST_BYTES = 1 << 30
"""The most bytes of a sample, unless the user allows more."""

_REASONS = {
    tar.BAD_CHECKSUM: "it does not match its checksum",
    tar.BAD_NUMBER: "its size or checksum is not a number",
    tar.BAD_EXTENSION: "it extends the next header, with a long name for example, and is malformed",
    tar.AFTER_END: "it is behind the end of the archive; `tar --concatenate` puts archives together, `cat` does not",
}


@dataclass(frozen=True, kw_only=True)
class TarSpans(SpanFormat):
    """A format of samples in tar archives: finds them as spans of the headers and contents of all of their files.

    Args:
      compression_type: None or "" for none, "GZIP" or another codec; "AUTO" goes by the suffix of each name.
      max_sample_bytes: the most bytes of a sample.
    """

    compression_type: str | None = "AUTO"
    max_sample_bytes: int = MOST_BYTES

    @abstractmethod
    def spec(self, path: str | None) -> Spec: ...

    def find(self, piece: Piece, starts: Ints, sizes: Ints) -> Found:
        count, after, status, where = scan_samples(piece.data, piece.at, starts, sizes, piece.ended)
        if status == tar.OK:
            return Found(count, after)
        row, start = piece.row + count, piece.byte - piece.at
        if status == tar.INCOMPLETE:
            return Found(count, after, where, self._too_long(piece, row, after, where))
        place = f"{piece.path}: sample {row}, header at byte {start + where}"
        match status:
            case tar.UNSUPPORTED:
                error: Exception = UnimplementedError(
                    f"{place}: {name_at(piece.data, where)} is a sparse file, a part of an archive of several volumes, or of "
                    "an unknown type; write the archive again with `tar --format=posix`, without --sparse and --multi-volume"
                )
            case tar.BAD_NAME:
                error = DataLossError(
                    f"{place}: the name {name_at(piece.data, where)} is empty, begins with a slash, or contains '..' or a zero "
                    "byte; samples are named by paths that stay in their folder"
                )
            case _:
                error = DataLossError(f"{place}: {_REASONS[status]}{_is_it_tar(row)}")
        return Found(count, after, 0, error)

    def _too_long(self, piece: Piece, row: int, at: int, need: int) -> Exception | None:
        """The error for a sample that needs more bytes than there are, or than are allowed."""
        left = len(piece.data) - at
        if piece.size is not None and not piece.ended:
            left = max(left, piece.size - (piece.byte + at - piece.at))
        if piece.ended or (piece.size is not None and need > left):
            return DataLossError(
                f"{piece.path}: ends within sample {row} at byte {piece.byte + at - piece.at}, which needs at least {need} "
                f"bytes with the header or the end of the archive behind it, but {left} are left; it was cut short"
                f"{_is_it_tar(row)}"
            )
        if need > self.max_sample_bytes:
            return InvalidArgumentError(
                f"{piece.path}: sample {row} at byte {piece.byte + at - piece.at} takes at least {need} bytes, more than "
                f"max_sample_bytes={self.max_sample_bytes}; allow more if the archive is right"
            )
        return None


def _is_it_tar(row: int) -> str:
    return "" if row else "; is this a tar archive, and is its compression_type right?"


@dataclass(frozen=True, kw_only=True)
class TarSamples(TarSpans):
    """The samples of tar archives, as dicts from extension to content, in the grouping of WebDataset.

    `train/07.jpg` and `train/07.seg.png`, one after the other, are the sample with the key `train/07` and the members `jpg`
    and `seg.png`. Extensions are compared in lower case. Links, folders and devices are ignored; so are files without an
    extension, those whose names begin with a dot, and those named `__like_this__` or in such a folder. Nothing is ever written
    under a name from an archive; names that begin with a slash or contain `..`, sparse files and parts of archives of several
    volumes are refused.

    Args:
      members: what a sample has: names, or a dict from names to extensions, several of them separated by ";". The extension
        `__key__` stands for the key, `__url__` for the name of the archive, `__complete__` for whether no member was missing.
        None: `__key__` and the members of the first sample, which all samples must have, and no others.
      missing: "error"; "empty", which puts empty bytes in the place of a member that a sample lacks; or a dict from the names
        of members to the bytes that take their place.
      compression_type: None or "" for none, "GZIP" or another codec; "AUTO" goes by the suffix of each name.
      max_sample_bytes: the most bytes of a sample with its headers, all of which are in memory at once.
      also: more members that are no files, for samples whose members are not stated.
      when_empty: the members of archives without a sample, where they are not stated: those of another archive.

    Raises:
      InvalidArgumentError: an option has an invalid value.

    Source: the format of the library webdataset.
    """

    name: ClassVar[str] = "tar"
    members: Any = None
    missing: Any = "error"
    also: tuple[str, ...] = ()
    when_empty: Any = None

    def __post_init__(self) -> None:
        as_compression(self.compression_type)
        members = None if self.members is None else as_members(self.members)
        object.__setattr__(self, "members", members)
        object.__setattr__(self, "when_empty", None if self.when_empty is None else as_members(self.when_empty))
        object.__setattr__(self, "missing", as_missing(self.missing, members))
        if self.max_sample_bytes < 1:
            raise InvalidArgumentError(f"tar: max_sample_bytes must be at least 1, got {self.max_sample_bytes}")
        if not set(self.also) <= set(SPECIAL):
            raise InvalidArgumentError(f"tar: also may name {', '.join(SPECIAL)}, got {self.also}")

    @property
    def spec_from_file(self) -> bool:  # type: ignore[override]  # it depends on an option
        """True unless the members are stated."""
        return self.members is None

    def spec(self, path: str | None) -> Spec:
        if self.members is None and path is None:
            raise InvalidArgumentError("tar: the first sample tells its members; name at least one file, or members=")
        table = self._table(path or "")
        if table is None:
            raise InvalidArgumentError(
                f"{path}: has no sample that tells its members; state them: members=['jpg', 'cls']"
            )
        return table.spec

    def check_spec(self, path: str, spec: Spec) -> None:
        table = self._table(path)
        if table is not None and table.spec != spec:
            raise InvalidArgumentError(
                f"{path}: its first sample has {listed(table.spec.nest)}, but that of the first file {listed(spec.nest)}; "
                "state the members that you want: members=['jpg', 'cls']"
            )

    def _read(
        self, path: str, wanted: Position, until: int | None, group: int = 1, given: int = 0
    ) -> Iterator[tuple[Block, Position]]:
        table: MemberTable | None = None
        halves = None if self.missing == "error" else set[bytes]()
        samples = replace(self, compression_type=compression_of(self.compression, path))
        for block, after in TarSpans._read(samples, path, wanted, until, group, given):
            (spans,) = block.columnar().columns
            assert isinstance(spans, Strings)
            table = table or self._table(path)
            assert table is not None
            found, error = table.columns(path, spans, after, halves)
            if found.size:
                cut = int(spans.sizes[found.size :].sum())
                yield found, samples.after(after.get("byte", 0) - cut, after["row"] - (block.size - found.size))
            if error is not None:
                keys = trouble_of(error).keys
                again = () if keys is None else _keys_again(samples, path, stamp_of(path))
                key = next(iter((*(keys or ()), *again)), b"")
                if key in again:
                    raise apart(path, key) from error
                raise error

    def past(self, path: str, position: Position | None) -> Position | None:
        at = position or self.start()
        try:
            block, _ = next(TarSpans._read(self, path, at, None))
        except (DataLossError, InvalidArgumentError, StopIteration):
            return None  # where the archive is damaged, nothing says where the next sample begins
        (spans,) = block.columnar().columns
        assert isinstance(spans, Strings)
        return self.after(at.get("byte", 0) + int(spans.sizes[0]), at["row"] + 1)

    def held(self, paths: Iterable[str]) -> "TarSamples":
        if self.members is not None:
            return self
        return replace(self, when_empty=next(filter(None, map(self._first_sample, paths)), self.when_empty))

    def _first_sample(self, path: str) -> Members | None:
        one = TarSamples(compression_type=self.compression_type, max_sample_bytes=self.max_sample_bytes)
        return _first_sample(one, path, stamp_of(path))

    def _table(self, path: str) -> MemberTable | None:
        """The members of the samples of an archive; None if they are not stated, and it has no sample."""
        members = self.members
        if members is None:
            members = self._first_sample(path) or self.when_empty
            if members is None:
                return None
        more = [(name, (name,)) for name in self.also if name not in dict(members)]
        return MemberTable((*members, *more), self.members is None, self.missing)


@lru_cache(maxsize=4096)
def _first_sample(samples: TarSamples, path: str, stamp: str) -> Members | None:
    """The key and the members of the first sample; None if there is none."""
    del stamp  # only part of the cache key: it identifies the version of the file
    spans = TarSpans._read(samples, path, samples.start(), None)
    block = next((block for block, _ in spans), None)
    if block is None:
        return None
    sample = np.frombuffer(block.row(0), np.uint8)
    at, names = 0, [KEY]
    while at < len(sample):
        member = read_member(sample, at)
        if member.key and (name := member.extension.decode(errors="surrogateescape")) not in names:
            names.append(name)
        at = member.after
    return as_members(names)


@lru_cache(maxsize=64)
def _keys_again(samples: TarSamples, path: str, stamp: str) -> tuple[bytes, ...]:
    """The keys of an archive that are in several places; all of it is read, which is for errors only."""
    del stamp
    seen, again = set[bytes](), dict[bytes, None]()
    try:
        for block, _ in TarSpans._read(samples, path, samples.start(), None):
            for span in block.elements():
                data, at = np.frombuffer(span, np.uint8), 0
                member = read_member(data, at)
                while not member.key and member.after < len(data):
                    member = read_member(data, member.after)
                if member.key in seen:
                    again[member.key] = None
                seen.add(member.key)
    except (DataLossError, InvalidArgumentError):
        pass  # the reader says what is wrong there
    return tuple(again)


# ----------------------------------------------------------------------------
# Tar archives with an index, so that samples can be counted and accessed by number.
# ----------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class IndexedTarSamples(Indexed, TarSamples):
    """`TarSamples` for archives with an index; compressed archives have none.

    Args:
      index_folder: where indices are kept; None: beside each file.
    """

    name: ClassVar[str] = "indexed_tar"

    def __post_init__(self) -> None:
        if self.compression == "AUTO":
            object.__setattr__(self, "compression_type", None)
        TarSamples.__post_init__(self)
        Indexed.__post_init__(self)

    @property
    def _options(self) -> str:
        return str(self.max_sample_bytes)

    def offsets(self, path: str) -> Iterator[Ints]:
        end = 0
        for block, after in TarSpans._read(self, path, self.start(), None):
            (spans,) = block.columnar().columns
            assert isinstance(spans, Strings)
            end = after["byte"]
            yield end - np.cumsum(spans.sizes[::-1])[::-1]
        yield np.array([end])

    def parse_rows(self, path: str, data: Bytes, ends: Ints, rows: Ints) -> Block:
        starts = np.append(0, ends[:-1]) if len(ends) else ends
        table = self._table(path)
        if table is None:
            raise self.misplaced(path, 0)
        found, error = table.columns(path, Strings(data, starts, ends - starts), {"row": len(rows)})
        if error is not None:
            error.add_note(f"sample {int(rows[found.size])} of {path}")
            raise error
        return found
