# SPDX-License-Identifier: Apache-2.0
"""The members of a sample in a tar archive: which there are, and the columns that they become."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np

from distinput.columns.block import ColumnBlock
from distinput.columns.column import Column
from distinput.columns.dense import Dense
from distinput.columns.failure import trouble_of
from distinput.columns.strings import Strings
from distinput.errors import DataLossError, InvalidArgumentError
from distinput.formats.format import Position
from distinput.kernels import tar_header as tar
from distinput.kernels.tar import locate_members
from distinput.kernels.tar_header import read_member
from distinput.values.spec import Spec, TensorSpec

__all__ = [
    "COMPLETE",
    "KEY",
    "SPECIAL",
    "URL",
    "MemberTable",
    "Members",
    "as_members",
    "as_missing",
    "listed",
    "name_at",
]

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
    made = tuple([(name, tuple(map(str.lower, texts))) for name, texts in pairs])
    for what, names in (
        ("member", [name for name, _ in made]),
        ("extension", [text for _, texts in made for text in texts]),
    ):
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise InvalidArgumentError(f"tar: {what} {twice[0]!r} is named twice in members={members!r}")
    return made


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
    name = (
        member.key + b"." + member.extension
        if member.status == tar.OK
        else data[at : at + 100].tobytes().split(b"\0")[0]
    )
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
            f"{found.path}: sample {row}, {key!r}, has no member {listed(absent)}; leave such samples out with missing='skip', "
            f"give bytes to take its place with missing={{{absent[0]!r}: b''}}, or leave the member out of members=",
        )

    def _column(self, found: "_Found", name: str, text: str, rows: int) -> Column:
        """The column of one member, of this first extension, for the first `rows` samples."""
        if text == KEY:
            return Strings(found.keys, found.begins[:rows], found.ends[:rows] - found.begins[:rows])
        if text == URL:
            url = np.frombuffer(found.path.encode(), np.uint8)
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
