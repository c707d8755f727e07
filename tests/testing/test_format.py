# SPDX-License-Identifier: Apache-2.0
"""The suite for formats: ours pass, and each way to be wrong is caught under the name of its law."""

import gzip
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import distinput as di
from distinput.columns.block import Block, ColumnBlock
from distinput.columns.column import Dense, Ints
from distinput.errors import DataLossError, InvalidArgumentError, NotFoundError
from distinput.formats.arrow_ipc import ArrowIpc
from distinput.formats.csv import Csv
from distinput.formats.fixed_length import FixedLengthRecords
from distinput.formats.format import Format, Fragment, Position
from distinput.formats.jsonl import JsonLines
from distinput.formats.npy import Npy
from distinput.formats.parquet import Parquet
from distinput.formats.text import IndexedTextLines, TextLines
from distinput.formats.tfrecord import IndexedTFRecords, TFRecords
from distinput.testing import check_format
from distinput.testing.format import LAWS
from distinput.values.nest import LEAF
from distinput.values.spec import Spec

Write = Callable[[Path], list[Path]]


def texts(*contents: bytes) -> Write:
    def write(folder: Path) -> list[Path]:
        paths = [folder / f"{number}" for number in range(len(contents))]
        for path, content in zip(paths, contents, strict=True):
            path.write_bytes(content)
        return paths

    return write


def tables(write_one: Callable[..., None], **options: Any) -> Write:
    def write(folder: Path) -> list[Path]:
        paths = []
        for number, rows in enumerate((5, 1, 9)):
            paths.append(folder / f"{number}")
            names = [b"n%d" % row for row in range(rows)]
            write_one(str(paths[-1]), {"id": np.arange(rows) + 10 * number, "name": names}, **options)
        return paths

    return write


def tfrecords(index: bool) -> Write:
    def write(folder: Path) -> list[Path]:
        paths = [folder / "0", folder / "1"]
        for path, rows in zip(paths, (9, 0), strict=True):
            with di.io.TFRecordWriter(str(path), index=index) as writer:
                for row in range(rows):
                    writer.write(b"record" * (row % 3) + b"%d" % row)
        return paths

    return write


def arrays(folder: Path) -> list[Path]:
    paths = [folder / "0.npy", folder / "1.npy"]
    np.save(paths[0], np.arange(14, dtype=np.int32).reshape(7, 2))
    np.save(paths[1], np.zeros((0, 2), np.int32))
    return paths


OURS: dict[str, tuple[Format, Write, Any]] = {
    "arrow": (ArrowIpc(), tables(di.io.write_arrow), None),
    "csv": (
        Csv(schema={"x": int, "t": str}),
        texts(b'x,t\n1,a\n\n2,"b\n""c"""\r\n3,d', b"x,t\n", b"x,t\n1,\n"),
        [[{"x": 1, "t": "a"}, {"x": 2, "t": 'b\n"c"'}, {"x": 3, "t": "d"}], [], [{"x": 1, "t": ""}]],
    ),
    "fixed": (
        FixedLengthRecords(3, 2, 1),
        texts(b"HEaaabbbcccF", b"HEF", b"HEabcF"),
        [["aaa", "bbb", "ccc"], [], ["abc"]],
    ),
    "gzipped text": (TextLines("GZIP"), texts(gzip.compress(b"a\nbc\n")), [["a", "bc"]]),
    "jsonl": (
        JsonLines({"x": int}),
        texts(b'{"x":1}\n\n {"x": 2}\r\n{"x":3}', b"", b'\n{"x":1}\n'),
        [[{"x": 1}, {"x": 2}, {"x": 3}], [], [{"x": 1}]],
    ),
    "npy": (Npy(), arrays, None),
    "parquet": (Parquet(), tables(di.io.write_parquet, row_group_size=4), None),
    "text": (
        TextLines(),
        texts(b"one\n\ntwo\r\nthree", b"", b"\n", b"a\n" * 11),
        [["one", "", "two", "three"], [], [""], ["a"] * 11],
    ),
    "text with an index": (IndexedTextLines(), texts(b"one\n\ntwo\r\nthree", b"", b"a\n" * 11), None),
    "tfrecord": (TFRecords(), tfrecords(False), None),
    "tfrecord with an index": (IndexedTFRecords(), tfrecords(True), None),
}


@pytest.mark.parametrize("name", OURS)
def test_ours_keep_the_laws(name: str) -> None:
    made, write, records = OURS[name]
    leave_out = ("damage",) if "index" in name else ()  # which lies beside the file, and is of the whole one
    checked = check_format(made, write, records, leave_out=leave_out)
    assert {"value", "records", "positions", "seek", "fragments", "dataset"} <= set(checked)


# --- a format that is right, and what differs from it in one thing


@dataclass(frozen=True)
class Numbers(Format):
    """Bytes: each is a number."""

    name: ClassVar[str] = "numbers"
    counts_rows: ClassVar[bool] = True
    fetches: ClassVar[bool] = True
    most: int = 4

    def spec(self, path: str | None) -> Spec:
        return Spec.leaf((), np.uint8)

    def rows(self, path: str) -> int | None:
        return len(content(path))

    def seek(self, path: str, row: int) -> Position | None:
        return {"row": row}

    def read(self, path: str, position: Position | None = None) -> Iterator[tuple[Block, Position]]:
        row = (position or self.start())["row"]
        data = content(path)
        if row > len(data):
            raise DataLossError(f"{path}: has no record {row}")
        for first in range(row, len(data), self.most):
            made = block(data[first : first + self.most])
            yield made, {"row": first + made.size}

    def units(self, files: Any) -> Ints | None:
        return files.sizes  # type: ignore[no-any-return]

    def part(self, path: str, start: int, stop: int | None) -> Fragment:
        end = len(content(path)) if stop is None else stop
        return Fragment(path, {"row": start}, {"row": end}, end - start, end - start)

    def fetch(self, path: str, rows: Ints) -> Block:
        data = content(path)
        if len(rows) and not 0 <= rows.min() <= rows.max() < len(data):
            raise InvalidArgumentError(f"{path}: has no record {rows}")
        return block(data[rows])


def content(path: str) -> Any:
    try:
        return np.frombuffer(Path(path).read_bytes(), np.uint8)
    except FileNotFoundError:
        raise NotFoundError(f"{path}: no such file") from None


def block(values: Any) -> Block:
    return ColumnBlock(LEAF, [Dense(values)], len(values))


NUMBERS = texts(bytes(range(11)), b"", b"\7")


def test_a_format_of_somebody_else_that_is_right_keeps_all_laws() -> None:
    assert check_format(Numbers(), NUMBERS, [list(range(11)), [], [7]]) == tuple(n for n in LAWS if n != "portions")


class IsNoValue(Numbers):
    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__


class RepeatsARow(Numbers):
    def read(self, path: str, position: Position | None = None) -> Iterator[tuple[Block, Position]]:
        for made, after in super().read(path, position):
            yield made, {"row": max(0, after["row"] - 1)}


class PositionIsNotJson(Numbers):
    def read(self, path: str, position: Position | None = None) -> Iterator[tuple[Block, Position]]:
        for made, after in super().read(path, position):
            yield made, {**after, "at": np.int64(3)}


class GoesOnAtTheBlock(Numbers):
    def read(self, path: str, position: Position | None = None) -> Iterator[tuple[Block, Position]]:
        row = (position or self.start())["row"] // self.most * self.most
        yield from super().read(path, {"row": row} if row + self.most < len(content(path)) else position)


class CountsOneMore(Numbers):
    def rows(self, path: str) -> int | None:
        return len(content(path)) + 1


class SeeksTheNext(Numbers):
    def seek(self, path: str, row: int) -> Position | None:
        return {"row": min(row + 1, len(content(path)))}


class FragmentsOverlap(Numbers):
    def fragments(self, path: str) -> list[Fragment]:
        count = len(content(path))
        middle = count // 2
        return [self.part(path, 0, min(count, middle + 1)), self.part(path, middle, None)]


class PartsLoseTheirFirst(Numbers):
    def part(self, path: str, start: int, stop: int | None) -> Fragment:
        return super().part(path, min(start + 1, stop or 0) if start else 0, stop)


class PartSaysOneMore(Numbers):
    def part(self, path: str, start: int, stop: int | None) -> Fragment:
        made = super().part(path, start, stop)
        return Fragment(made.path, made.start, made.stop, (made.rows or 0) + 1, made.nbytes)


class FetchesSorted(Numbers):
    def fetch(self, path: str, rows: Ints) -> Block:
        return super().fetch(path, np.sort(rows))


class FetchesFromTheEnd(Numbers):
    def fetch(self, path: str, rows: Ints) -> Block:
        return block(content(path)[rows % max(1, len(content(path)))])


class GroupsLoseWhatIsLeft(Numbers):
    def read_groups(self, path: str, position: Any, size: int, given: int) -> Iterator[tuple[Block, Position]]:
        for made, after in self.read(path, position):
            if made.size == self.most:
                yield made, after


class MissingIsEmpty(Numbers):
    def read(self, path: str, position: Position | None = None) -> Iterator[tuple[Block, Position]]:
        return super().read(path, position) if Path(path).exists() else iter(())


class StumblesOverDamage(Numbers):
    """Its files begin with 0."""

    def read(self, path: str, position: Position | None = None) -> Iterator[tuple[Block, Position]]:
        data = content(path)
        assert json.loads("1") == 1
        if len(data) > 1 and data[0]:
            raise IndexError(f"{path}: {data[0]}")
        return super().read(path, position)


class MakesUpARecordOfWhatIsLeft(Numbers):
    """Records of two; what is left of one that was cut through shifts all others."""

    def read(self, path: str, position: Position | None = None) -> Iterator[tuple[Block, Position]]:
        data = content(path)
        whole = data if len(data) in (0, 1, 11) else data[::-1]
        row = (position or self.start())["row"]
        if len(whole[row:]):
            yield block(np.ascontiguousarray(whole[row:])), {"row": len(whole)}


class OtherSpec(Numbers):
    def spec(self, path: str | None) -> Spec:
        return Spec.leaf((), np.int64)


@pytest.mark.parametrize(
    "wrong, law, says",
    [
        (IsNoValue, "value", "make it a frozen dataclass"),
        (RepeatsARow, "positions", "must say so as 'row'"),
        (PositionIsNotJson, "positions", "not JSON serializable"),
        (GoesOnAtTheBlock, "seek", "from seek"),
        (CountsOneMore, "rows", "rows.. is 12, but there are 11"),
        (SeeksTheNext, "seek", "from seek"),
        (FragmentsOverlap, "fragments", "its fragments together"),
        (PartsLoseTheirFirst, "parts", "cut at units"),
        (PartSaysOneMore, "parts", "says that it has 1 records, but has 0"),
        (FetchesSorted, "fetch", "fetch"),
        (FetchesFromTheEnd, "fetch", r"fetch\(\[11\]\) of 11 records must raise"),
        (GroupsLoseWhatIsLeft, "groups", "read_groups of 2"),
        (MissingIsEmpty, "missing file", "read of a missing file must raise a NotFoundError"),
        (StumblesOverDamage, "damage", "must raise a DataLossError"),
        (MakesUpARecordOfWhatIsLeft, "damage", "all but its last record"),
        (OtherSpec, "dataset", "spec: "),
    ],
)
def test_a_format_that_is_wrong_is_caught_under_the_name_of_the_law(wrong: type[Numbers], law: str, says: str) -> None:
    with pytest.raises(AssertionError, match=rf"^{law}: .*{says}"):
        check_format(wrong(), NUMBERS)


def test_other_records_than_said_are_caught() -> None:
    with pytest.raises(AssertionError, match=r"^records: .*record 10 is .*, expected 11"):
        check_format(Numbers(), NUMBERS, [[*range(10), 11], [], [7]])
    with pytest.raises(AssertionError, match=r"^records: .*there are 0 records, expected 1"):
        check_format(Numbers(), NUMBERS, [[*range(11)], [0], [7]])


def test_what_cannot_be_checked_is_refused() -> None:
    with pytest.raises(ValueError, match="there is no law 'row'; known are value, records"):
        check_format(Numbers(), NUMBERS, leave_out=["row"])
    with pytest.raises(ValueError, match="records of 1 files were given, but there are 3"):
        check_format(Numbers(), NUMBERS, [[1]])
