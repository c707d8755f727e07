# SPDX-License-Identifier: Apache-2.0
"""Lists of files: their names, sizes and versions, as a few arrays, in a manifest, or as a fingerprint of a few words."""

import os
import stat
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from distinput.arrow.arrow import ArrowDamageError, NullsError, UnsupportedTypeError, to_column
from distinput.columns.column import Dense, Ints, Strings
from distinput.columns.state import Digest, common_folder, evenly, texts_of
from distinput.errors import DataLossError, InvalidArgumentError
from distinput.files.folder import is_utf8
from distinput.files.paths import Paths, ask_each, file_system, is_web, list_matching, local_path
from distinput.files.range_requests import facts_in, ukey_of
from distinput.files.sink import Sink
from distinput.files.source import naming, open_binary, size_of, version_of
from distinput.names.lazy import dataclass, library
from distinput.url_secrets import printed_without_secrets, public_url
from distinput.values.spec_json import MalformedJson, json_value, member

json = library("json")  # for those who write

# ----------------------------------------------------------------------------
# Many files as a few arrays: a million names take no more memory than their characters.
# ----------------------------------------------------------------------------


@printed_without_secrets
@dataclass(frozen=True, eq=False)
class FileTable:
    """An ordered list of files.

    Args:
      names: [n] paths or URLs over one buffer.
      sizes: [n] in bytes; 0 also where unknown.
      rows: [n] number of records, -1 where unknown; None: unknown for all files.
      stamps: [n] strings that identify the version of each file; None: unknown.
    """

    names: Strings
    sizes: Ints
    rows: Ints | None = None
    stamps: Strings | None = None

    @staticmethod
    def of(paths: Sequence[str], sizes: Any = None) -> "FileTable":
        """Make a table from paths; sizes are looked up unless they are given.

        Raises:
          NotFoundError: a file is not there.
        """
        known: Iterable[int] = ask_each(size_of, paths) if sizes is None else sizes
        return FileTable(Strings.of([os.fsencode(path) for path in paths]), np.fromiter(known, np.int64, len(paths)))

    def __len__(self) -> int:
        return len(self.sizes)

    def path(self, index: int) -> str:
        """The path of one file."""
        return os.fsdecode(self.names.row(index))

    def paths(self) -> list[str]:
        """The paths of all files."""
        return [os.fsdecode(name) for name in self.names.values()]

    def index(self, path: str) -> int:
        """The index of the file with this path, for names in ascending order; -1 if there is none."""
        name = os.fsencode(path)
        place = bisect_left(range(len(self)), name, key=self.names.row)
        return place if place < len(self) and self.names.row(place) == name else -1

    def check(self, index: int) -> None:
        """Reject a file that has changed since it was listed.

        Raises:
          NotFoundError: it is gone.
          DataLossError: it has changed.
        """
        if self.stamps is None or index < 0:
            return
        path, listed = self.path(index), self.stamps.row(index).decode()
        found = version_of(path)
        # Version 0.4.0 listed a hash of the URL for files of the web.
        if listed not in (found, found.partition(" ")[0]):
            raise DataLossError(
                f"{path}: has changed since the manifest was written (version {found}, listed {listed}); write the "
                "manifest again"
            )

    def take(self, indices: Ints) -> "FileTable":
        """The files at these indices, as copies."""
        return FileTable(
            _alone(self.names.take(indices)),
            self.sizes.take(indices),
            None if self.rows is None else self.rows.take(indices),
            None if self.stamps is None else _alone(self.stamps.take(indices)),
        )


def _alone(texts: Strings) -> Strings:
    """A compact copy of the strings; made with NumPy, since loading a kernel takes longer than copying a few names."""
    sizes = texts.sizes
    before = np.cumsum(sizes) - sizes
    places = np.arange(int(sizes.sum())) + np.repeat(texts.starts - before, sizes)
    return Strings(texts.data.take(places), before, sizes)


# ----------------------------------------------------------------------------
# A manifest: the names, sizes and versions of files, listed once so that workers need not list them.
# ----------------------------------------------------------------------------


_VERSION = 1
_COLUMNS = ("name", "size", "rows", "stamp")


def save_manifest(path: str, patterns: Paths, count: Callable[[str], int] | None = None) -> FileTable:
    """List files and save their names, sizes and stamps: as Parquet if `path` ends in `.parquet`, else as JSON.

    Args:
      path: of the manifest to write.
      patterns: of the files, as `list_files` takes them.
      count: returns the number of records of the file at a path; None: records are not counted.

    Raises:
      NotFoundError: no file matches.
      InvalidArgumentError: the name of one is not UTF-8.
    """
    names = sorted(set(list_matching(patterns)))
    unnamed = next((name for name in names if not is_utf8(name)), None)
    if unnamed is not None:
        raise InvalidArgumentError(
            f"{unnamed!r}: a manifest lists names in UTF-8, and this one is not; rename the file, or name the files without one"
        )
    stamps = list(ask_each(version_of, names))
    rows = [-1 if count is None else int(count(name)) for name in names]
    sizes = list(ask_each(size_of, names))
    columns = dict(zip(_COLUMNS, (names, sizes, rows, stamps), strict=True))
    with Sink(path) as sink:
        if path.endswith(".parquet"):
            import pyarrow as pa
            from pyarrow.parquet import write_table

            write_table(pa.table(columns), pa.PythonFile(sink, mode="w"))
        else:
            sink.write(json.dumps({"distinput_manifest": _VERSION, **columns}).encode())
    return _table(names, np.array(sizes, np.int64), np.array(rows, np.int64), stamps)


def load_manifest(path: str) -> FileTable:
    """Load the files that `save_manifest` saved.

    Raises:
      NotFoundError: there is no such manifest.
      DataLossError: it is not a manifest, or it is damaged.
      InvalidArgumentError: it was written by another version.
    """
    with naming(path), open_binary(path) as file:
        if path.endswith(".parquet"):
            return _from_parquet(path, file)
        text = file.read()
    try:
        found = json_value(text)
        version = member(found, "distinput_manifest")
        names, sizes, rows, stamps = [member(found, name, list) for name in _COLUMNS]
        _check_kinds(names, sizes, rows, stamps)
    except MalformedJson as error:
        raise _damage(path, str(error)) from error
    if version != _VERSION:
        raise InvalidArgumentError(
            f"{path}: a manifest of version {version}, this distinput reads {_VERSION}; write it again"
        )
    return _checked(path, _table(names, np.array(sizes, np.int64), np.array(rows, np.int64), stamps))


def _check_kinds(names: list[Any], sizes: list[Any], rows: list[Any], stamps: list[Any]) -> None:
    """Refuse names and stamps that are no texts, and sizes and rows that are not integers.

    Raises:
      MalformedJson: there is one.
    """
    for text in (*names, *stamps):
        if type(text) is not str or any("\ud800" <= letter <= "\udfff" for letter in text):
            raise MalformedJson(f"names and stamps must be texts, got {text!r:.60}")
    for number in (*sizes, *rows):
        if type(number) is not int or not -(1 << 63) <= number < 1 << 63:
            raise MalformedJson(f"sizes and rows must be integers, got {number!r:.60}")


def _checked(path: str, table: FileTable) -> FileTable:
    """The same table, checked to be complete.

    Raises:
      DataLossError: a column is shorter than another, or a size is negative.
    """
    lengths = {len(table.names), len(table.sizes), len(table.stamps if table.stamps is not None else table.names)}
    if len(lengths | ({len(table.rows)} if table.rows is not None else set())) > 1:
        raise _damage(path, "its columns have different lengths; each file must have a name, a size, rows and a stamp")
    if (table.sizes < 0).any():
        raise _damage(path, f"file {int((table.sizes < 0).argmax())} has a negative size")
    return table


def _damage(path: str, what: str) -> DataLossError:
    return DataLossError(f"{path}: not a distinput manifest, or damaged: {what}; write it again")


def _from_parquet(path: str, file: Any) -> FileTable:
    import pyarrow as pa
    from pyarrow.parquet import read_table

    try:
        found = read_table(pa.PythonFile(file, mode="r"), columns=list(_COLUMNS))
        missing = [column for column in _COLUMNS if found.column_names.count(column) != 1]
        if missing:
            raise _damage(path, f"it has no column {missing[0]!r}, or several")
        name, size, rows, stamp = [to_column(found.column(column), column) for column in _COLUMNS]
    except (pa.ArrowException, ArrowDamageError, NullsError, UnsupportedTypeError) as error:
        raise _damage(path, str(error)) from error
    except OSError as error:
        if error.errno is not None:  # from the operating system, not from pyarrow
            raise
        raise _damage(path, str(error)) from error
    if not (isinstance(name, Strings) and isinstance(stamp, Strings)):
        raise _damage(path, "names and stamps must be texts")
    if not (isinstance(size, Dense) and isinstance(rows, Dense) and size.dtype == rows.dtype == np.int64):
        raise _damage(path, "sizes and rows must be integers")
    return _checked(path, FileTable(name, size.array, _known(rows.array), stamp))


def _table(names: Sequence[str], sizes: Ints, rows: Ints, stamps: Sequence[str]) -> FileTable:
    texts = [Strings.of([text.encode() for text in column]) for column in (names, stamps)]
    return FileTable(texts[0], sizes, _known(rows), texts[1])


def _known(rows: Ints) -> Ints | None:
    return None if (rows < 0).all() else rows


# ----------------------------------------------------------------------------
# Fingerprints of a list of files, as a few short words: names, order, sizes and modification times.
# ----------------------------------------------------------------------------


MOST_STAMPS = 4096
"""Most files whose size and time are looked up; a longer list is sampled at equal distances."""
MOST_REMOTE = 16
"""Most remote files whose size and version are requested; beyond that only the names count."""
_MOST_EACH = 8
"""Most files that get a word each, so that an error can name the one that differs."""

_Stamp = tuple[int, str] | tuple[int, str, str] | None
"""Size and version of a file, the same on all machines, and the tag that a web server gives the version; None: not known."""

_GONE = -1, "gone"


class NamesFingerprint:
    """The fingerprint of a list of file names.

    Args:
      texts: [n] the names, in order.
      table: of the same files if they were listed before; then nothing is looked up.
    """

    def __init__(self, texts: Strings, table: FileTable | None = None) -> None:
        self._texts = texts.reshape((texts.starts.size,))
        self._table = table
        names = texts_of(self._texts)
        self.root = os.fsdecode(common_folder(names))
        """The deepest folder that contains all of them, with a trailing `/`."""
        within = [name[len(os.fsencode(self.root)) :] for name in names]
        self.words: dict[str, Any] = {"files": len(self._texts), "set": Digest().texts(sorted(within)).word}
        """The words derived from the names alone."""
        if self.root:
            self.words["root"] = Digest(3).add(self.root).word
        self._each = [Digest(2).add(name).word for name in within] if len(names) <= _MOST_EACH else []

    @property
    def local(self) -> bool:
        """True if the first name is an existing local file."""
        path = local_path(self.path(0)) if len(self._texts) else None
        try:
            return path is not None and stat.S_ISREG(os.stat(path).st_mode)
        except (OSError, ValueError):
            return False

    @property
    def remote(self) -> bool:
        """True if any of them is a URL that fsspec opens."""
        return any(local_path(self.path(i)) is None for i in range(len(self._texts)))

    def path(self, index: int) -> str:
        """The name at this index."""
        return os.fsdecode(self._texts.row(index))

    def paths(self) -> tuple[str, ...]:
        """All names."""
        return tuple([self.path(index) for index in range(len(self._texts))])

    def local_size(self, index: int) -> int:
        """The size in bytes of the local file of this name; -1 where there is none."""
        path = local_path(self.path(index))
        try:
            return -1 if path is None else os.stat(path).st_size
        except OSError:
            return -1

    @staticmethod
    def is_gone(path: str) -> bool:
        """True if there is no such file now."""
        return _stamp(path) is _GONE

    def stamps(self) -> dict[str, Any]:
        """The words derived from current sizes and times; those that are unknown are left out."""
        some = evenly(len(self._texts), MOST_STAMPS).tolist()
        stamps = self._looked_up(some) if self._table is None else _listed(self._table, some)
        sizes, times = [[None if stamp is None else stamp[part] for stamp in stamps] for part in (0, 1)]
        tags = [stamp[2:] for stamp in stamps if stamp is not None]
        words: dict[str, Any] = {}
        if sizes and None not in sizes:
            words["sizes"] = Digest().add(sizes).word
        if times and None not in times and "" not in times:
            words["times"] = Digest().add(times).word
        if any(tags) and len(tags) == len(stamps):
            words["tags"] = Digest().add(tags).word
        if self._each:
            words["each"] = [
                name + ("" if stamp is None else Digest(2).add(stamp).word)
                for name, stamp in zip(self._each, stamps, strict=True)
            ]
        return words

    def _looked_up(self, some: list[int]) -> list[_Stamp]:
        paths = [self.path(i) for i in some]
        if len(paths) > MOST_REMOTE and any(local_path(path) is None for path in paths):
            return [None] * len(paths)
        return [_stamp(path) for path in paths]


def _listed(table: FileTable, some: list[int]) -> list[_Stamp]:
    return [(int(table.sizes[i]), _listed_version(table, i)) for i in some]


def _listed_version(table: FileTable, index: int) -> str:
    """That of a file as it was listed; where none was, that of a local file now; empty: not known."""
    if table.stamps is not None:
        listed: str = table.stamps.row(index).decode()
        return listed
    path = table.path(index)
    stamp = None if local_path(path) is None else _stamp(path)
    return "" if stamp is None else stamp[1]


def _stamp(path: str) -> _Stamp:
    """What is known of a file now; opening one that is gone will raise the error."""
    local = local_path(path)
    if local is not None:
        try:
            status = os.stat(local)
        except (OSError, ValueError):
            return _GONE
        return status.st_size, f"{status.st_size}-{status.st_mtime_ns}"
    try:
        system, name = file_system(path)
        info = system.info(name)
        size = int(info.get("size") or 0)
        if not is_web(system):
            return size, ukey_of(system, name)
        facts = facts_in(info)  # fsspec's key is a hash of the URL
        return size, ukey_of(system, public_url(name)), facts.etag.removeprefix("W/") or facts.written
    except FileNotFoundError:
        return _GONE
    except Exception:  # noqa: BLE001 - whatever a store raises, its files are still identified by their names
        return None
