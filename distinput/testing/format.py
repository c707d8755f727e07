# SPDX-License-Identifier: Apache-2.0
"""The suite for a format: reading files from every position, in parts, by row number, and when they are damaged."""

import copy
import json
import pickle
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from distinput.columns.block import Block
from distinput.data.dataset import Dataset
from distinput.errors import DistinputError, InvalidArgumentError, NotFoundError
from distinput.files.manifest import FileTable
from distinput.files.paths import as_paths
from distinput.formats.format import Format, Fragment, Position
from distinput.names.lazy import dataclass
from distinput.ops.reader import Reader
from distinput.ops.slices import from_tensor_slices
from distinput.testing.dataset import check_dataset
from distinput.testing.elements import check_same, exact, hold, matches

_MOST_CUTS = 40
"""The most places to try: cuts between parts, rows to seek, bytes to damage."""


@dataclass(frozen=True)
class _Files:
    """A format, and files of it."""

    format: Format
    paths: tuple[str, ...]
    expected: tuple[Sequence[Any], ...] | None
    folder: Path

    @cached_property
    def records(self) -> dict[str, list[Any]]:
        """The records of each file, as exact values."""
        return {path: _records(self.format.read(path)) for path in self.paths}

    def table(self) -> FileTable:
        """Size and name of each file."""
        return FileTable.of(self.paths)


def _records(blocks: Iterator[tuple[Block, Position]]) -> list[Any]:
    return [exact(element) for block, _ in blocks for element in block.elements()]


def _coded(position: Position) -> Position:
    made: Position = json.loads(json.dumps(position))
    return made


def _some(count: int) -> list[int]:
    """Numbers from 0 to `count`: all, or the first, the last and some between them."""
    if count <= _MOST_CUTS:
        return list(range(count + 1))
    return sorted({*np.linspace(0, count, _MOST_CUTS).astype(int).tolist(), 1, count - 1})


def _value(files: _Files) -> None:
    made = files.format
    try:
        again = pickle.loads(pickle.dumps(made))
    except (AttributeError, pickle.PicklingError):  # a class inside a function, or typed into a notebook
        again = copy.copy(made)
    if again != made or hash(again) != hash(made):
        raise AssertionError(f"{made!r} is not equal to its copy; make it a frozen dataclass")
    if not isinstance(made.name, str) or not made.name:
        raise AssertionError(f"the format has no name, got {made.name!r}")


def _reads(files: _Files) -> None:
    for number, (path, records) in enumerate(files.records.items()):
        check_same(f"{path}: a second time", _records(files.format.read(path)), records)
        check_same(f"{path}: from start() on", _records(files.format.read(path, files.format.start())), records)
        if files.expected is None:
            continue
        given = [element for block, _ in files.format.read(path) for element in block.elements()]
        expected = files.expected[number]
        if len(given) != len(expected):
            raise AssertionError(f"{path}: there are {len(given)} records, expected {len(expected)}")
        for row, (element, wanted) in enumerate(zip(given, expected, strict=True)):
            if not matches(element, wanted):
                raise AssertionError(f"{path}: record {row} is {element!r}, expected {wanted!r}")


def _positions(files: _Files) -> None:
    for path, records in files.records.items():
        done = 0
        for block, after in files.format.read(path):
            done += block.size
            if after.get("row") != done:
                raise AssertionError(f"{path}: the position behind {done} records must say so as 'row', got {after}")
            check_same(f"{path}: from {after} on", _records(files.format.read(path, _coded(after))), records[done:])


def _rows(files: _Files) -> None:
    for path, records in files.records.items():
        stated = files.format.rows(path)
        if stated is None and files.format.counts_rows:
            continue  # unknown for some files until they are read, such as compressed ones
        if stated not in (None, len(records)):
            raise AssertionError(f"{path}: rows() is {stated}, but there are {len(records)} records")


def _seek(files: _Files) -> None:
    for path, records in files.records.items():
        for row in _some(len(records)):
            position = files.format.seek(path, row)
            if position is None:
                if row == 0:
                    raise AssertionError(f"{path}: seek(0) must give the first position, got None")
                continue
            found = _records(files.format.read(path, _coded(position)))
            check_same(f"{path}: from seek({row}), {position}, on", found, records[row:])


def _fragment(files: _Files, fragment: Fragment) -> list[Any]:
    """The records of a fragment, which are the same from every position in it on."""
    records = _records(files.format.read_fragment(fragment))
    what = f"{fragment.path}: the fragment from {fragment.start} to {fragment.stop}"
    if fragment.rows is not None and fragment.rows != len(records):
        raise AssertionError(f"{what} says that it has {fragment.rows} records, but has {len(records)}")
    done = 0
    for block, after in files.format.read_fragment(fragment):
        done += block.size
        rest = _records(files.format.read_fragment(fragment, _coded(after)))
        check_same(f"{what}, from {after} on", rest, records[done:])
    return records


def _fragments(files: _Files) -> None:
    for path, records in files.records.items():
        found = [record for fragment in files.format.fragments(path) for record in _fragment(files, fragment)]
        check_same(f"{path}: its fragments together", found, records)


def _parts(files: _Files) -> bool | None:
    units = files.format.units(files.table())
    if units is None:
        return False
    if len(units) != len(files.paths):
        raise AssertionError(f"units() must give a number for each of {len(files.paths)} files, got {len(units)}")
    for (path, records), count in zip(files.records.items(), units.tolist(), strict=True):
        for cuts in ([0, cut, count] for cut in _some(count)):
            _same_parts(files, path, cuts, records)
        _same_parts(files, path, _some(count), records)
    return None


def _same_parts(files: _Files, path: str, cuts: Sequence[int], records: Sequence[Any]) -> None:
    found = [record for a, b in pairwise(cuts) for record in _fragment(files, files.format.part(path, a, b))]
    check_same(f"{path}: its parts, cut at units {list(cuts)}", found, records)


def _fetch(files: _Files) -> bool | None:
    counted = {path: records for path, records in files.records.items() if files.format.rows(path) is not None}
    if not files.format.fetches or not counted:
        return False
    for path, records in counted.items():
        count = len(records)
        for rows in (np.arange(count), np.arange(count)[::-1], np.arange(3 * count) * 7 % max(1, count)):
            block = files.format.fetch(path, np.ascontiguousarray(rows, np.int64))
            found = [exact(element) for element in block.elements()]
            check_same(f"{path}: fetch({rows.tolist()!s:.60})", found, [records[row] for row in rows])
        for row in (count, -1):
            try:
                files.format.fetch(path, np.array([row], np.int64))
            except InvalidArgumentError:
                continue
            raise AssertionError(f"{path}: fetch([{row}]) of {count} records must raise an InvalidArgumentError")
    return None


def _groups(files: _Files) -> None:
    for path, records in files.records.items():
        for size, given in ((2, 0), (3, 1), (1000, 7)):
            found = _records(files.format.read_groups(path, None, size, given))
            check_same(f"{path}: read_groups of {size} behind {given}", found, records)


def _portions(files: _Files) -> bool | None:
    if not files.format.in_portions:
        return False
    for path, records in files.records.items():
        found: list[Any] = []
        for portion in files.format.portions(path, None, None, 1, 0):
            rows = _records(portion.blocks(portion.decode()))
            if len(rows) != portion.rows:
                raise AssertionError(f"{path}: a portion of {portion.rows} rows gives {len(rows)}")
            found += rows
        check_same(f"{path}: its portions together", found, records)
    return None


def _missing(files: _Files) -> None:
    path = str(files.folder / "missing")
    calls: dict[str, Callable[[], Any]] = {"read": lambda: list(files.format.read(path))}
    if files.format.spec_from_file:
        calls["spec"] = lambda: files.format.spec(path)
    for name, call in calls.items():
        try:
            call()
        except NotFoundError as error:
            if path not in str(error):
                raise AssertionError(f"{name} of a missing file does not name it: {error}") from error
            continue
        raise AssertionError(f"{name} of a missing file must raise a NotFoundError")


def _damage(files: _Files) -> None:
    for path, records in files.records.items():
        if not Path(path).is_file():
            continue
        content = Path(path).read_bytes()
        for size in _some(len(content))[:-1]:
            found = _damaged(files, content[:size], f"{path}, cut to {size} of {len(content)} bytes")
            # The record at the cut may be delivered incomplete, as a line of text is.
            check_same(f"{path}, cut to {size} bytes: all but its last record", found[:-1], records[: len(found[:-1])])
        for byte in _some(len(content) - 1) if content else ():
            flipped = bytearray(content)
            flipped[byte] ^= 1 << byte % 8
            _damaged(files, bytes(flipped), f"{path}, with byte {byte} changed")


def _damaged(files: _Files, content: bytes, what: str) -> list[Any]:
    """The records before an error, which must be one that says what is wrong."""
    damaged = files.folder / f"damaged-{len(list(files.folder.iterdir()))}"
    damaged.write_bytes(content)
    elements: list[Any] = []
    try:
        files.format.spec(str(damaged) if files.format.spec_from_file else None)
        for block, _ in files.format.read(str(damaged)):
            elements += [exact(element) for element in block.elements()]
    except DistinputError as error:
        if str(damaged) not in f"{error} {getattr(error, '__notes__', '')}":
            raise AssertionError(f"{what}: the error does not name the file: {error!r}") from error
    except Exception as error:
        raise AssertionError(f"{what}: must raise a DataLossError or another DistinputError, got {error!r}") from error
    finally:
        damaged.unlink()
    return elements


def _dataset(files: _Files) -> bool | None:
    # Files without records do not tell how long lists are in the others.
    paths = [path for path, records in files.records.items() if records]
    if not paths:
        return False

    def make() -> Dataset:
        names = np.array([path.encode() for path in paths], dtype=object)
        return Dataset(Reader(from_tensor_slices(names), files.format))

    check_dataset(make, policies=("AUTO", "BALANCED", "DATA", "FILE"), leave_out=("another process",))
    return None


LAWS: Mapping[str, Callable[[_Files], bool | None]] = MappingProxyType(
    {
        "value": _value,
        "records": _reads,
        "positions": _positions,
        "rows": _rows,
        "seek": _seek,
        "fragments": _fragments,
        "parts": _parts,
        "fetch": _fetch,
        "groups": _groups,
        "portions": _portions,
        "missing file": _missing,
        "damage": _damage,
        "dataset": _dataset,
    }
)
"""The laws of formats by name. A function returns False where the law does not apply to the format."""


def check_format(
    format: Format,
    files: Any,
    records: Sequence[Sequence[Any]] | None = None,
    *,
    leave_out: Collection[str] = (),
) -> tuple[str, ...]:
    r"""Check all laws of formats on small files: give it one without records, one with a single record, one of many blocks.

    The laws, by name:

    * value: the format is a value, equal to a pickled copy of itself;
    * records: reading twice gives the same records, and these are `records` if given;
    * positions: from the position after each block, through JSON, exactly the rest follows;
    * rows, seek: the stated number of records is true, and `seek` leads to each of them;
    * fragments, parts: each record is in exactly one of them, wherever a file is cut;
    * fetch, groups, portions: other ways of reading, where the format has them, give the same records;
    * missing file: the error is a `NotFoundError` that names it;
    * damage: in a file that is truncated or changed, the records before a cut are right, and the error is a
      `DistinputError` that names the file, usually a `DataLossError`; a changed byte may also give another valid record;
    * dataset: `check_dataset` of the dataset that reads the files, with the policies AUTO, BALANCED, DATA and FILE.

    All records are read, from the position after each block; of rows to seek, places to cut a file, and bytes to damage, about
    40 are tried, the first and the last among them. `check_dataset` says how many it looks at.

    Args:
      format: what reads the files.
      files: their paths, or a function that writes them into an empty folder and returns the paths.
      records: the records of each file, compared as `check_same_as` does.
      leave_out: names of laws not to check.

    Returns:
      The names of the laws that were checked. Those that do not apply to this format are missing.

    Raises:
      AssertionError: a law is broken; the message begins with its name.
      ValueError: an unknown name in `leave_out`.

    >>> from distinput.formats.text import TextLines
    >>> def write(folder):
    ...     (folder / "a.txt").write_bytes(b"one\ntwo")
    ...     (folder / "b.txt").write_bytes(b"")
    ...     return [folder / "a.txt", folder / "b.txt"]
    >>> "positions" in check_format(TextLines(), write, [["one", "two"], []])
    True
    """
    with tempfile.TemporaryDirectory(prefix="distinput-testing-") as made:
        folder = Path(made)
        paths = tuple(as_paths([str(path) for path in files(folder)] if callable(files) else files))
        if records is not None and len(records) != len(paths):
            raise ValueError(f"check_format: records of {len(records)} files were given, but there are {len(paths)}")
        subject = _Files(format, paths, None if records is None else tuple(records), folder)
        return hold("check_format", LAWS, lambda check: check(subject), leave_out)
