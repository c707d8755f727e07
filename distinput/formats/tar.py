# SPDX-License-Identifier: Apache-2.0
"""Tar archives of samples, as WebDataset has them: consecutive files that differ in their extensions are a record."""

import os
from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import Any, ClassVar

import numpy as np

from distinput.columns.block import Block, ColumnBlock, trouble_of
from distinput.columns.column import Column, Dense, Strings
from distinput.errors import DataLossError, InvalidArgumentError, UnimplementedError
from distinput.files.compression import as_compression, compression_of
from distinput.files.source import stamp_of
from distinput.formats.format import PlacedBlocks, Position
from distinput.formats.indexed import Indexed
from distinput.formats.span_format import Found, Ints, Piece, SpanFormat
from distinput.kernels import tar_samples as tar
from distinput.kernels.tar_samples import locate_members, read_member, scan_samples
from distinput.names.lazy import dataclass
from distinput.values.buffers import Bytes
from distinput.values.spec import Spec, TensorSpec

# ----------------------------------------------------------------------------
# The members of a sample in a tar archive: which there are, and the columns that they become.
# ----------------------------------------------------------------------------


KEY, URL, COMPLETE = "__key__", "__url__", "__complete__"
SPECIAL = (KEY, URL, COMPLETE)
"""Members that are no files: the key of the sample, the name of the archive, and whether no member was missing."""

Members = tuple[tuple[str, tuple[str, ...]], ...]
"""The names of members and, for each, the extensions that it may have, or one of `SPECIAL`."""

Missing = str | tuple[tuple[str, bytes], ...]

_KEY_BYTES = 64  # of a key, at first; more are taken when they are needed


def as_members(members: Any) -> Members:
    """Members as users state them: names, or a dict from names to extensions, several of which are separated by ";".

    Raises:
      InvalidArgumentError: it is neither, a name comes twice, or an extension belongs to two members.

    >>> as_members(["__key__", "jpg"]), as_members({"image": "jpg;png"})
    ((('__key__', ('__key__',)), ('jpg', ('jpg',))), (('image', ('jpg', 'png')),))
    """
    if isinstance(members, Mapping):
        pairs = [(name, tuple(str(extensions).split(";"))) for name, extensions in members.items()]
    elif isinstance(members, Sequence) and not isinstance(members, str | bytes):
        pairs = [(each, tuple(each.split(";"))) if isinstance(each, str) else each for each in members]
    else:
        raise InvalidArgumentError(f"tar: members must be names, or a dict from names to extensions, got {members!r}")
    if not all(isinstance(pair, tuple | list) and len(pair) == 2 and _are_names(*pair) for pair in pairs):
        raise InvalidArgumentError(f"tar: members must be names, or a dict from names to extensions, got {members!r}")
    made = tuple([(name, tuple(map(in_lower_case, texts))) for name, texts in pairs])
    for what, names in (
        ("member", [name for name, _ in made]),
        ("extension", [text for _, texts in made for text in texts]),
    ):
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise InvalidArgumentError(f"tar: {what} {twice[0]!r} is named twice in members={members!r}")
    return made


def in_lower_case(extension: str) -> str:
    """An extension as the reader has it: letters of ASCII in lower case, all others as they are.

    >>> in_lower_case("JPÉG")
    'jpÉg'
    """
    return extension.encode(errors="surrogateescape").lower().decode(errors="surrogateescape")


def _are_names(name: Any, extensions: Any) -> bool:
    listed = isinstance(extensions, tuple | list)
    return isinstance(name, str) and listed and all(isinstance(each, str) for each in extensions)


def as_missing(missing: Any, members: Members | None) -> Missing:
    """What takes the place of members that are missing: "error", "empty", or pairs of names and bytes.

    Raises:
      InvalidArgumentError: it is none of these, or names what is not in `members`.
    """
    if missing in ("error", "empty"):
        return str(missing)
    if not isinstance(missing, Mapping | tuple):
        raise InvalidArgumentError(
            f'tar: missing must be "error", "empty" or a dict of bytes by member, got {missing!r}'
        )
    made = tuple(sorted(missing.items() if isinstance(missing, Mapping) else missing))
    for name, value in made:
        if not isinstance(value, bytes):
            raise InvalidArgumentError(f"tar: missing must give bytes for member {name!r}, got {value!r}")
        if members is None or name not in [member for member, texts in members if texts[0] not in SPECIAL]:
            raise InvalidArgumentError(f"tar: missing names {name!r}; name it in members= too")
    return made


def listed(names: Collection[str]) -> str:
    """The names of members in a message."""
    return ", ".join(map(repr, sorted(names))) or "no members"


def name_at(data: Any, at: int) -> str:
    """The name of the member whose header is at `at`, in a message."""
    member = read_member(data, at)
    name = data[at : at + 100].tobytes().split(b"\0")[0]
    if member.status == tar.OK:
        name = member.key + b"." + member.extension
    return repr(name.decode(errors="replace"))


def apart(path: str, key: bytes) -> InvalidArgumentError:
    """The error of a sample whose files are in several places of an archive."""
    shown = key.decode(errors="replace")
    return InvalidArgumentError(
        f"{path}: the key {shown!r} comes again: files of one sample are not one after the other, so each place is a sample "
        "that lacks the members of the others; write the archive again with the names sorted, such as `tar --sort=name`"
    )


def _of_key(key: bytes | None, said: str) -> InvalidArgumentError:
    """An error of a sample, which says in which; None: this one, or those before, are no whole samples."""
    error = InvalidArgumentError(said)
    trouble_of(error).keys = (key,) if key else ()
    return error


@dataclass(frozen=True)
class MemberTable:
    """The members that are read, as `locate_members` takes them.

    Args:
      members: their names and extensions.
      strict: whether other extensions are errors.
      missing: what takes the place of a member that is missing.
    """

    members: Members
    strict: bool
    missing: Missing

    @cached_property
    def spec(self) -> Spec:
        """The spec of a sample."""
        return Spec.of({name: TensorSpec((), bool if COMPLETE in texts else object) for name, texts in self.members})

    @cached_property
    def _files(self) -> Members:
        return tuple([(name, texts) for name, texts in self.members if texts[0] not in SPECIAL])

    @cached_property
    def _names(self) -> tuple[Any, Any, Any]:
        """The extensions one after the other, where each ends, and the column of each."""
        coded = [
            (text.encode(errors="surrogateescape"), place)
            for place, (_, texts) in enumerate(self._files)
            for text in texts
        ]
        joined = np.frombuffer(b"".join([text for text, _ in coded]), np.uint8)
        ends = np.array(list(accumulate([len(text) for text, _ in coded])), np.int64)
        return joined, ends, np.array([place for _, place in coded], np.int64)

    @cached_property
    def _fills(self) -> list[bytes | None]:
        """What takes the place of each file; None: it must be there."""
        if isinstance(self.missing, str):
            return [None if self.missing == "error" else b""] * len(self._files)
        return [dict(self.missing).get(name) for name, _ in self._files]

    def columns(
        self, path: str, spans: Strings, after: Position, halves: set[bytes] | None = None
    ) -> tuple[ColumnBlock, Exception | None]:
        """The samples before the first one at fault, and its error.

        Args:
          path: of the archive.
          spans: the samples, one after the other.
          after: the position behind them.
          halves: the keys of the samples so far that lack a member, to which those of these are added.
        """
        rows, room = len(spans), len(spans) * _KEY_BYTES
        places = np.ascontiguousarray(spans.starts), np.ascontiguousarray(spans.sizes)
        while True:
            contents, lengths = np.zeros(len(self._files) * rows, np.int64), np.full(len(self._files) * rows, -1)
            keys, ends = np.empty(room, np.uint8), np.zeros(rows, np.int64)
            given = spans.data, *places, *self._names, self.strict
            good, status, where, _ = locate_members(*given, contents, lengths, keys, ends)
            if status != tar.NO_ROOM:
                break
            room = max(2 * room, where)
        begins = np.concatenate(([0], ends))[:rows]
        found = _Found(path, spans.data, keys, begins, ends, contents.reshape(-1, rows), lengths.reshape(-1, rows))
        first = after["row"] - rows
        error = None if status == tar.OK else self._unexpected(found, first + good, status, where)
        needed = [place for place, fill in enumerate(self._fills) if fill is None]
        lacks = (found.lengths[needed, :good] < 0).any(axis=0)
        if lacks.any():
            good = int(lacks.argmax())
            error = self._lacking(found, first + good, good)
        again = None if halves is None else self._again(found, good, halves)
        if again is not None:
            good, error = again, apart(path, found.key(again))
        columns = {name: self._column(found, name, texts[0], good) for name, texts in self.members}
        structure = self.spec.structure
        return ColumnBlock(structure, structure.flatten(columns), good), error

    def _again(self, found: "_Found", good: int, halves: set[bytes]) -> int | None:
        """The first sample that lacks a member, as one of the same key before; None: there is none."""
        for index in np.flatnonzero((found.lengths[:, :good] < 0).any(axis=0)).tolist():
            if found.key(index) in halves:
                return int(index)
            halves.add(found.key(index))
        return None

    def _unexpected(self, found: "_Found", row: int, status: int, where: int) -> Exception:
        name = name_at(found.data, where)
        if status == tar.TWICE:
            return DataLossError(
                f"{found.path}: sample {row} has two files of one member, the second {name}; each sample needs a key of its own"
            )
        return _of_key(
            None,
            f"{found.path}: sample {row} has the file {name}, which the first sample has not; state the members that you want: "
            "members=['jpg', 'cls']",
        )

    def _lacking(self, found: "_Found", row: int, index: int) -> Exception:
        key = found.key(index).decode(errors="replace")
        absent = [
            name
            for (name, _), size, fill in zip(self._files, found.lengths[:, index], self._fills, strict=True)
            if size < 0 and fill is None
        ]
        return _of_key(
            found.key(index),
            f"{found.path}: sample {row}, {key!r}, has no member {listed(absent)}; leave such samples out with missing='skip' "
            f"of WebDataset, give bytes to take its place with missing={{{absent[0]!r}: b''}}, or leave the member out of "
            "members=",
        )

    def _column(self, found: "_Found", name: str, text: str, rows: int) -> Column:
        """The column of one member, of this first extension, for the first `rows` samples."""
        if text == KEY:
            return Strings(found.keys, found.begins[:rows], found.ends[:rows] - found.begins[:rows])
        if text == URL:
            url = np.frombuffer(os.fsencode(found.path), np.uint8)
            return Strings(url, np.zeros(rows, np.int64), np.full(rows, len(url)))
        if text == COMPLETE:
            return Dense((found.lengths[:, :rows] >= 0).all(axis=0))
        place = [file for file, _ in self._files].index(name)
        starts, sizes, fill = found.contents[place, :rows], found.lengths[place, :rows], self._fills[place]
        absent = sizes < 0
        texts = Strings(found.data, starts, np.maximum(sizes, 0))
        if not fill or not absent.any():
            return texts
        made = texts.objects()
        made[absent] = fill
        return Strings.of(made.tolist())


@dataclass(frozen=True, slots=True)
class _Found:
    """What `locate_members` found.

    Args:
      path: of the archive.
      data: the piece of it.
      keys: of all samples, one after the other.
      begins: [n], where each key begins.
      ends: [n], where it ends.
      contents: [c, n], where the content of each member begins in the data.
      lengths: [c, n], how long it is; -1 where there is none.
    """

    path: str
    data: Any
    keys: Any
    begins: Any
    ends: Any
    contents: Any
    lengths: Any

    def key(self, index: int) -> bytes:
        """The key of a sample."""
        return bytes(self.keys[self.begins[index] : self.ends[index]])


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


# ----------------------------------------------------------------------------
# Tar archives of samples, as WebDataset has them: consecutive files that differ in their extensions only are one sample.
# ----------------------------------------------------------------------------


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
            raise InvalidArgumentError(
                f"tar: also= may name {', '.join(SPECIAL)}, got {self.also}; other members go into members="
            )

    @property
    def spec_from_file(self) -> bool:  # type: ignore[override]  # it depends on an option
        """True unless the members are stated."""
        return self.members is None

    def spec(self, path: str | None) -> Spec:
        if self.members is None and path is None:
            raise InvalidArgumentError("tar: the members are those of the first sample; name a file, or state members=")
        table = self._table(path or "")
        if table is None:
            raise InvalidArgumentError(
                f"{path}: has no sample, so its members are not known; state them: members=['jpg', 'cls']"
            )
        return table.spec

    def check_spec(self, path: str, spec: Spec) -> None:
        table = self._table(path)
        if table is not None and table.spec != spec:
            raise InvalidArgumentError(
                f"{path}: its first sample has {listed(table.spec.nest)}, but that of the first file {listed(spec.nest)}; "
                "state the members that you want: members=['jpg', 'cls']"
            )

    def _read(self, path: str, wanted: Position, until: int | None, group: int = 1, given: int = 0) -> PlacedBlocks:
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
        super().__post_init__()

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
