# SPDX-License-Identifier: Apache-2.0
"""Statistics of the columns of files, in one pass: what is missing, lengths, ranges, means and histograms."""

from collections.abc import Sequence
from dataclasses import field
from datetime import date, timedelta
from math import frexp, sqrt
from typing import Any

import numpy as np

from distinput.errors import DataLossError, UnimplementedError
from distinput.formats.table_batches import schema_of_table, table_batches
from distinput.inspect.columns import LeafColumn, numbers_of, parts_of
from distinput.inspect.examples import DTYPES, ExampleScan, FeatureValues, Scanned, scanned
from distinput.inspect.files import open_files
from distinput.inspect.records import record_kind
from distinput.kernels.example_values import BYTES, MISSING
from distinput.names.lazy import dataclass

# ----------------------------------------------------------------------------
# A histogram in one pass and little memory, without knowing the range of the values beforehand.
# ----------------------------------------------------------------------------


MOST_BINS = 16
"""Bins of a histogram; there are more than half as many, unless all values are close to each other or equal."""

_FINEST = -1022
_DIGITS = 30
"""The width is at least so many binary digits below the largest value: what differs in later digits alone is in one bin."""


@dataclass
class Histogram:
    """Counts of finite numbers in bins of equal width.

    The width is a power of two, and edges are multiples of it, so two bins become one bin of twice the width, exactly: when a
    value is outside, bins are joined until there is room. The result depends on the values alone, and neither on their order
    nor on the pieces in which they come.

    Attributes:
      level: the width is 2 to the power of this.
      first: the number of the first bin; its lower edge is `first` times the width.
      counts: of the values in each bin [edge, next edge).

    >>> histogram = Histogram()
    >>> histogram.add(np.array([1.0, 2.0, 2.5, 9.0]))
    >>> histogram.add(np.array([40.0]))
    >>> histogram.edges()
    [0.0, 4.0, 8.0, 12.0, 16.0, 20.0, 24.0, 28.0, 32.0, 36.0, 40.0, 44.0]
    >>> histogram.counts
    [3, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1]
    """

    level: int = 0
    first: int = 0
    counts: list[int] = field(default_factory=list)
    _low: float = field(default=0.0, repr=False)
    _high: float = field(default=0.0, repr=False)

    def add(self, values: Any) -> None:
        """Count an array [n] of finite numbers."""
        values = np.asarray(values, np.float64)
        if not len(values):
            return
        low, high = float(values.min()), float(values.max())
        if self.counts:
            level = max(self.level, _level(min(low, self._low), max(high, self._high)))
        else:
            self._low, self._high, level = low, high, _level(low, high)
            self.level, self.first = level, _bin(low, level)
        self._low, self._high = min(low, self._low), max(high, self._high)
        self._join(level)
        begin, stop = _bin(self._low, level), _bin(self._high, level) + 1
        counts = np.zeros(stop - begin, np.int64)
        counts[self.first - begin : self.first - begin + len(self.counts)] = self.counts
        counts += np.bincount(_bins(values, level) - begin, minlength=stop - begin)
        self.first, self.counts = begin, counts.tolist()

    def edges(self) -> list[float]:
        """The edges of the bins, one more than there are bins."""
        numbers = np.arange(len(self.counts) + 1, dtype=np.float64) + self.first
        with np.errstate(over="ignore"):  # the upper edge of the largest numbers is infinite
            edges: list[float] = np.ldexp(numbers, self.level).tolist() if self.counts else []
        return edges

    def _join(self, level: int) -> None:
        """Make bins as wide as this."""
        by, first = level - self.level, self.first >> (level - self.level)
        joined = [0] * ((self.first + len(self.counts) - 1 >> by) - first + 1 if self.counts else 0)
        for place, number in enumerate(self.counts):
            joined[(self.first + place >> by) - first] += number
        self.level, self.first, self.counts = level, first, joined


def _level(low: float, high: float) -> int:
    """The least level at which few enough bins hold these numbers; it only grows with the range."""
    reach = max(abs(low), abs(high))
    level = max(_FINEST, frexp(reach)[1] - _DIGITS) if reach else _FINEST
    while _bin(high, level) - _bin(low, level) >= MOST_BINS:
        level += 1
    return level


def _bin(value: float, level: int) -> int:
    return int(_bins(np.array([value]), level)[0])


def _bins(values: Any, level: int) -> Any:
    """The numbers of the bins of values [n]: floor(value / 2 ** level)."""
    found = np.floor(np.ldexp(values, -level)).astype(np.int64)
    found[(values < 0) & (found == 0)] = -1  # too close to zero to be scaled
    return found


_KINDS = {type: kind for kind, type in DTYPES.items()}
_NONE = np.empty(0, np.int64)
_LARGE, _UNIT = 2.0**480, 2.0**600
"""Squares of floats above are infinite; they are counted in this unit."""
_CLOSE = 1024
"""Numbers whose range is so many times less than their size are counted from one of them."""


@dataclass
class NumericStatistics:
    """Numbers, as far as they are known without keeping them.

    Attributes:
      count: how many, NaN aside.
      nan: how many are NaN.
      least: the smallest; None if there is none.
      most: the largest.
      mean: of the finite ones.
      histogram: of the finite ones.
    """

    count: int = 0
    nan: int = 0
    least: Any = None
    most: Any = None
    mean: float = 0.0
    histogram: Histogram = field(default_factory=Histogram)
    _finite: int = field(default=0, repr=False)
    _base: int | float | None = field(default=None, repr=False)
    _shift: float = field(default=0.0, repr=False)
    _squares: float = field(default=0.0, repr=False)
    _unit: float = field(default=1.0, repr=False)

    def add(self, values: Any) -> None:
        """Take in an array [n] of numbers.

        Source: Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances" (1979).
        """
        if values.dtype.kind == "f":
            sound = values[~np.isnan(values)]
            self.nan += len(values) - len(sound)
            values = sound
        before = self.count
        self.count += len(values)
        if not len(values):
            return
        least, most = _comparable(values.min()), _comparable(values.max())
        if before:
            known = _comparable(self.least), _comparable(self.most)
            if type(known[0]) is not type(least) and (
                isinstance(least, np.generic) or isinstance(known[0], np.generic)
            ):
                raise ValueError("its values are of several kinds, such as times and numbers")
            least, most = min(least, known[0]), max(most, known[1])
        self.least, self.most = _plain(least), _plain(most)
        finite = values[np.isfinite(values)] if values.dtype.kind == "f" else values
        if not len(finite):
            return
        self.histogram.add(finite)
        if self._base is None:
            self._base = _base_of(finite)
        if self._unit == 1 and values.dtype.kind == "f" and float(np.abs(finite).max()) > _LARGE:
            self._unit, self._shift, self._squares = _UNIT, self._shift / _UNIT, self._squares / _UNIT / _UNIT
        apart = (
            _apart(finite, self._base) if self._unit == 1 else finite.astype(np.float64) / _UNIT - self._base / _UNIT
        )
        number, mean = len(finite), float(apart.mean())
        squares = float(np.square(apart - mean).sum())
        whole, step = self._finite + number, mean - self._shift
        self._squares += squares + step * step * self._finite * number / whole
        self._shift += step * number / whole
        self.mean = float(self._base / self._unit + self._shift) * self._unit
        self._finite = whole

    @property
    def std(self) -> float:
        """The standard deviation of the finite ones."""
        return sqrt(self._squares / self._finite) * self._unit if self._finite else 0.0

    def to_json(self) -> dict[str, Any]:
        """The figures, as JSON has them."""
        return {
            "count": self.count,
            "nan": self.nan,
            "min": self.least,
            "max": self.most,
            "mean": self.mean if self._finite else None,
            "std": self.std if self._finite else None,
            "histogram": {"edges": self.histogram.edges(), "counts": self.histogram.counts},
        }


Range = NumericStatistics
"""The name that it had before."""


def _base_of(values: Any) -> int | float:
    """The first of numbers or times that are close to each other beside their size, else 0."""
    low, high = float(values.min().astype(np.float64)), float(values.max().astype(np.float64))
    first: int | float = (values[:1].astype(np.int64) if values.dtype.kind in "mM" else values[:1]).item()
    return first if high / 2 - low / 2 <= abs(low) / _CLOSE else 0  # halves: the whole may be infinite


def _apart(values: Any, base: int | float) -> Any:
    """How far numbers or times [n] are from a number, float64: large ones that are close to it keep all their digits."""
    if values.dtype.kind == "f" or isinstance(base, float):
        return values.astype(np.float64) - base
    whole = values.astype(np.uint64 if values.dtype.kind == "u" else np.int64)
    high, low = divmod(base, 1 << 32)
    return ((whole >> 32).astype(np.float64) - high) * 2.0**32 + ((whole & 0xFFFFFFFF).astype(np.float64) - low)


def _comparable(value: Any) -> Any:
    """A number as Python has it, which compares all of them exactly, and a time as NumPy has it, in any unit."""
    if isinstance(value, np.datetime64 | np.timedelta64):
        return value
    if isinstance(value, date):
        return np.datetime64(value)
    return np.timedelta64(value) if isinstance(value, timedelta) else _plain(value)


def _plain(value: Any) -> Any:
    """A number or a time as Python has it; as NumPy has it where Python has no such time."""
    if not isinstance(value, np.generic):
        return value
    found = value.item()
    return value if value.dtype.kind in "mM" and isinstance(found, int) else found


@dataclass
class ColumnStatistics:
    """What is known of a column, or of a feature.

    Attributes:
      name: of the column; parts of a struct have a dot in it.
      type: of its values.
      rows: of the column.
      missing: rows without a value: nulls, or messages without the feature.
      lengths: values of each row that is a list, or bytes of each text; None for single numbers.
      values: of numbers, those in lists included; None for text.
    """

    name: str
    type: str
    rows: int = 0
    missing: int = 0
    lengths: NumericStatistics | None = None
    values: NumericStatistics | None = None

    def add_lengths(self, lengths: Any) -> None:
        """Take in an array [n] of lengths."""
        self.lengths = self.lengths or NumericStatistics()
        self.lengths.add(lengths)

    def add_values(self, values: Any) -> None:
        """Take in an array [n] of numbers."""
        self.values = self.values or NumericStatistics()
        self.values.add(values)

    def to_json(self) -> dict[str, Any]:
        """The figures, as JSON has them."""
        return {
            "column": self.name,
            "type": self.type,
            "rows": self.rows,
            "missing": self.missing,
            "lengths": None if self.lengths is None else self.lengths.to_json(),
            "values": None if self.values is None else self.values.to_json(),
        }


def statistics(
    filenames: Any, format: str | None = None, *, records: str | None = None, **options: Any
) -> dict[str, ColumnStatistics]:
    """Statistics of each column of files, by name.

    All files are read once; in memory is a block of them.

    Args:
      filenames: a path, pattern or directory, a list of them, or what `open_files` found.
      format: the name of their format; None: it is recognised.
      records: what records of bytes are: "example", "sequence_example" or "bytes"; None: the first ones are looked at.
      **options: as `open_files` takes them.

    Raises:
      NotFoundError: a file is not there.
      DataLossError: a file is damaged.
      UnimplementedError: the records are no columns of values.

    >>> import distinput as di
    >>> import pyarrow as pa
    >>> di.io.write_parquet("a.parquet", {"x": pa.array([1, None, 5]), "name": ["a", "bcd", ""]})
    >>> found = statistics("a.parquet")
    >>> found["x"].missing, found["x"].values.least, found["x"].values.mean, found["name"].lengths.most
    (1, 1, 3.0, 3)
    """
    files = open_files(filenames, format, **options)
    columns: dict[str, ColumnStatistics] = {}
    rows, scan = 0, ExampleScan()
    for path in files.paths:
        kind = record_kind(files, path, records)
        if kind == "sequence_example":
            raise UnimplementedError(
                f"{path}: statistics of SequenceExamples are not there; take those of the bytes: records='bytes'"
            )
        if kind == "example":
            for part in scanned(files, path, scan):
                _add_messages(columns, part)
                rows += part.size
        else:
            for batch in table_batches(files.format, path):
                _add_columns(columns, batch.schema.names, batch.columns)
                rows += batch.num_rows
    schema = None if rows else schema_of_table(files.format, files.paths[0])
    if schema is not None:  # there are columns without rows
        _add_columns(columns, schema.names, [column.combine_chunks() for column in schema.empty_table().columns])
    for column in columns.values():
        if "[]" in column.name:  # counted by items of lists
            continue
        column.missing += rows - column.rows  # in files, or messages, before the first that has it
        column.rows = rows
    return columns


def _add_columns(found: dict[str, ColumnStatistics], names: Sequence[str], arrays: Sequence[Any]) -> None:
    for name, array in zip(names, arrays, strict=True):
        try:
            for part in parts_of(name, array):
                _add_part(found.setdefault(part.name, ColumnStatistics(part.name, part.type)), part)
        except (ValueError, NotImplementedError, OverflowError) as error:  # of pyarrow
            raise UnimplementedError(
                f"column {name!r} of type {array.type}: {error}; leave it out with columns="
            ) from error


def _add_part(column: ColumnStatistics, part: LeafColumn) -> None:
    column.rows += part.rows
    column.missing += part.missing
    if part.lengths is not None:
        column.add_lengths(part.lengths)
    numbers = None if part.values is None else numbers_of(part.values)
    if numbers is not None:
        column.add_values(numbers)


def _add_messages(found: dict[str, ColumnStatistics], part: Scanned) -> None:
    """Take in messages."""
    for key, feature in part.features.items():
        there = np.flatnonzero(feature.kinds)
        if not len(there):
            continue
        column = found.get(key)
        kind = _kind_of(part, key, feature, column)
        if column is None:
            column = found[key] = ColumnStatistics(key, DTYPES[kind])
        elif column.type != DTYPES[kind]:  # so far it had lists without values only
            column.type, column.lengths, column.values = DTYPES[kind], None, None
            if kind != BYTES:
                column.add_lengths(np.zeros(column.rows, np.int64))
        before, column.rows = column.rows, column.rows + len(there)
        lengths, values = feature.counts[there], feature.values.get(kind, _NONE)
        if kind == BYTES:
            column.add_lengths(values)
            continue
        if (lengths != 1).any() or column.lengths is not None:
            if column.lengths is None and before:
                column.add_lengths(np.ones(before, np.int64))
            column.add_lengths(lengths)
        column.add_values(values)


def _kind_of(part: Scanned, key: str, feature: FeatureValues, column: ColumnStatistics | None) -> int:
    """The kind of the values of a feature.

    Raises:
      DataLossError: it has another kind in a message than before.
    """
    filled = np.flatnonzero(feature.counts)
    known = column.type if column is not None and _has_values(column) else None
    if not len(filled):
        kinds = feature.kinds[feature.kinds != MISSING]
        return int(kinds[0]) if column is None else _KINDS[column.type]
    kinds = feature.kinds[filled]
    kind = _KINDS[known] if known is not None else int(kinds[0])
    odd = np.flatnonzero(kinds != kind)
    if len(odd):
        raise DataLossError(
            f"{part.file}: record {part.row + int(filled[odd[0]])}: feature {key!r} is {DTYPES[int(kinds[odd[0]])]}, and "
            f"{DTYPES[kind]} in a record before; it must be of one kind in all messages"
        )
    return kind


def _has_values(column: ColumnStatistics) -> bool:
    numbers = column.lengths if column.type == "string" else column.values
    return numbers is not None and numbers.count + numbers.nan > 0
