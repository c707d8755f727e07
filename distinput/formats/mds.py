# SPDX-License-Identifier: Apache-2.0
"""MDS, the format of MosaicML Streaming: shards of samples, and an `index.json` in their folder that says what is in each."""

import io
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from math import prod
from typing import Any, ClassVar

import numpy as np

from distinput.columns.block import DEFECTS, Block, ColumnBlock
from distinput.columns.column import Column, Dense, Ints, Strings
from distinput.columns.ragged import column_of_arrays
from distinput.errors import DataLossError, DistinputError, InvalidArgumentError, NotFoundError, UnimplementedError
from distinput.files.compression import CODECS, ArrowDecoder
from distinput.files.folder import join_path, plain_name, split_path, without_notes
from distinput.files.source import check_unchanged, read_range, read_spans, size_of, stamp_of
from distinput.formats.format import BLOCK_ROWS, PlacedBlocks, Position
from distinput.formats.tables import CountedTable, LruCache
from distinput.names.lazy import dataclass
from distinput.values.spec import Spec, TensorSpec
from distinput.values.spec_json import MalformedJson, json_value, member

_INDEX = "index.json"
_DTYPES = {
    bits + kind: f"{name}{bits}"
    for bits in (8, 16, 32, 64)
    for kind, name in enumerate(("uint", "int", "float") if bits > 8 else ("uint", "int"))
}
"""Dtypes of arrays by the byte that stands for each."""

_TEXTS = ("bytes", "str", "json", "jpeg", "png", "str_int", "str_float", "str_decimal")
"""Encodings whose bytes are given as they are."""

_CHANNELS = {
    **dict.fromkeys(("L", "P"), 1),
    **dict.fromkeys(("LA", "PA"), 2),
    **dict.fromkeys(("RGB", "YCbCr", "LAB", "HSV"), 3),
    **dict.fromkeys(("RGBA", "RGBX", "CMYK"), 4),
}
"""Bytes of a pixel, by the mode of an image."""

_COMPRESSIONS = {"br": "brotli", "zstd": "ZSTD", "gz": "GZIP", "bz2": "BZ2"}
_MOST_RATIO = 32  # of Snappy, which packs no more than 64 bytes into 3
_MOST_SHARD = (1 << 32) - 1  # bytes that its offsets can reach
_KEPT_BYTES = 256 << 20


# ----------------------------------------------------------------------------
# Folders whose index says what is in each of their files, as those of MDS and LitData.
# ----------------------------------------------------------------------------


@dataclass(frozen=True)
class ListedFile:
    """What an index says of a file.

    Args:
      names: that the file may have; the first one where it is not compressed.
      size: bytes in it, not compressed as a whole.
      rows: how many.
    """

    names: tuple[str, ...]
    size: int
    rows: int


@dataclass(frozen=True)
class FolderIndex:
    """What an index says.

    Args:
      files: in order, each a `ListedFile`.
    """

    files: tuple[Any, ...]

    @cached_property
    def named(self) -> dict[str, Any]:
        """Files by the names that they may have."""
        return {name: file for file in self.files for name in file.names}


class IndexedFolders(CountedTable):
    """A format of folders with an `index.json`."""

    __slots__ = ()
    called: ClassVar[tuple[str, str]]
    """The format, and one of its files, in words."""

    @staticmethod
    @abstractmethod
    def of_json(index: str, content: Any) -> FolderIndex:
        """What the content of an index says.

        Raises:
          MalformedJson: it is no index of this format.
        """

    @abstractmethod
    def parsed(self, path: str, index: str, stamp: str, indexed: Any, file: Any) -> Any:
        """A file whose offsets are checked.

        Args:
          path: of the file.
          index: of its folder.
          stamp: of the file.
          indexed: what the index says.
          file: what it says of the file.
        """

    @classmethod
    def indexed(cls, index: str) -> Any:
        """What an index says.

        Raises:
          DataLossError: it is damaged.
        """
        key = cls, index, stamp_of(index)
        found = _INDICES.get(key)
        if found is None:
            content = read_range(index, 0, size_of(index))
            try:
                found = cls.of_json(index, json_value(content))
            except MalformedJson as error:
                raise DataLossError(f"{index}: not an index of {cls.called[0]}, or damaged: {error}") from error
            _INDICES.put(key, found, len(content))
        return found

    @classmethod
    def of_folder(cls, paths: list[str]) -> list[str]:
        there = set(paths)
        found: dict[str, None] = {}
        for index in [path for path in paths if split_path(path)[1] == _INDEX]:
            for file in cls.indexed(index).files:
                chosen = next((path for name in file.names if (path := _inside(index, name)) in there), None)
                if chosen is None:
                    names = " or ".join(file.names)
                    raise NotFoundError(f"{index}: names the {cls.called[1]} {names}, which is not in the folder")
                if file.rows:
                    found[chosen] = None
        return list(found)

    def spec_of(self, path: str) -> Spec:
        found: Spec = self.opened(path).spec
        return found

    def read_groups(self, path: str, position: Position | None, size: int, given: int) -> PlacedBlocks:
        row, file = self.first_row(path, position), self.opened(path)
        yield from self.groups_of(path, file, row, file.ends, size, given)

    def opened(self, path: str) -> Any:
        folder, name = split_path(path)
        index, stamp = join_path(folder, _INDEX), stamp_of(path)
        key = (path, stamp, stamp_of(index), self)
        found = _KEPT.get(key)
        if found is None:
            indexed = self.indexed(index)
            file = indexed.named.get(name)
            if file is None:
                raise InvalidArgumentError(
                    f"{path}: {index} names no such {self.called[1]}; name the folder to read those it names"
                )
            found = self.parsed(path, index, stamp, indexed, file)
            _KEPT.put(key, found, found.nbytes)
        return found


def shard_name(data: Mapping[str, Any], key: str = "basename") -> str:
    """The name of a file, which may be in a folder below, as in an index that others were merged into."""
    return "/".join(map(plain_name, member(data, key, str).split("/")))


def _inside(index: str, name: str) -> str:
    """The path of a file by its name in the folder of an index, or in one below."""
    folder = split_path(index)[0]
    for part in name.split("/"):
        folder = join_path(folder, part)
    return folder


def check_size(path: str, index: str, there: int, size: int) -> None:
    """Refuse a file that has another size than its index says.

    Raises:
      DataLossError: it has.
    """
    if there != size:
        raise DataLossError(
            f"{path}: has {there} bytes, but {index} says {size}; it was cut short, or they are not of one dataset"
        )


def bounds_of(
    path: str, index: str, what: str, rows: int, size: int, content: np.ndarray[Any, Any] | None
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """[rows + 1] the bytes at which the rows of a file begin and end, which stand behind their number.

    Args:
      path: of the file.
      index: of its folder.
      what: the rows are, in words.
      rows: how many, as the index says.
      size: of the file.
      content: its bytes, if they are not those of the file.

    Raises:
      DataLossError: they are not in the file, or do not go up.
    """
    head = 4 * (rows + 2)
    if head > size:
        raise DataLossError(
            f"{path}: {index} says that it has {rows} {what} in {size} bytes, but their offsets alone take {head}"
        )
    numbers = np.frombuffer(read_range(path, 0, head) if content is None else content[:head], "<u4").astype(np.int64)
    if len(numbers) != rows + 2 or numbers[0] != rows:
        raise DataLossError(f"{path}: begins with {numbers[:1]} {what}, but {index} says {rows}")
    check_bounds(path, numbers[1:], head, size)
    return numbers[1:]


def check_bounds(path: str, bounds: Ints, first: int, end: int) -> None:
    """Refuse bounds of samples that do not go up from a byte, or from one behind it, to the end of a file.

    Raises:
      DataLossError: they do not.
    """
    falls = np.flatnonzero(np.diff(bounds) < 0)
    if bounds[0] < first or bounds[-1] != end or len(falls):
        at = f"sample {falls[0]} ends before it begins" if len(falls) else f"they go from {bounds[0]} to {bounds[-1]}"
        raise DataLossError(
            f"{path}: damaged: the offsets of samples must go up from byte {first} or later to {end}, but {at}"
        )


@contextmanager
def naming_corruption(path: str, codec: str) -> Iterator[None]:
    """Turn errors of a codec into one that names the file.

    Raises:
      DataLossError: what is compressed is damaged.
    """
    try:
        yield
    except (DistinputError, *DEFECTS):
        raise
    except Exception as error:
        raise DataLossError(f"{path}: corrupted {codec} data: {error}") from error


@dataclass(frozen=True, eq=False)
class PackedSamples:
    """Samples of one version of a file: the sizes of values that vary, then the values.

    Args:
      path: of the file.
      stamp: of the version.
      bounds: [n + 1] the bytes at which samples begin and end.
      content: all its bytes, if it is compressed.
    """

    path: str
    stamp: str
    bounds: Ints
    content: np.ndarray[Any, Any] | None

    @property
    def rows(self) -> int:
        return len(self.bounds) - 1

    @property
    def nbytes(self) -> int:
        return self.bounds.nbytes + (0 if self.content is None else self.content.nbytes)

    def ends(self, row: int) -> Ints:
        """The bytes from the beginning of a row to its end, and to the ends of the rows behind it."""
        behind: Ints = self.bounds[row + 1 : row + 1 + BLOCK_ROWS] - self.bounds[row]
        return behind

    def bytes_of(self, starts: Ints, sizes: Ints) -> tuple[np.ndarray[Any, Any], Ints]:
        """Bytes in which spans of the file are, and where in them each span begins."""
        if self.content is not None:
            return self.content, starts
        data = read_spans(self.path, starts, sizes)
        check_unchanged(self.path, self.stamp)
        return data, np.cumsum(sizes) - sizes

    def values(self, rows: Ints, widths: Sequence[int | None]) -> tuple[np.ndarray[Any, Any], list[Ints], list[Ints]]:
        """The bytes of samples, and for each column where in them its values start, and how long they are.

        Args:
          rows: the samples.
          widths: of the columns: bytes of a value; None if each says its own.
        """
        sizes = self.bounds[rows + 1] - self.bounds[rows]
        data, starts = self.bytes_of(self.bounds[rows], sizes)
        varied = sum(width is None for width in widths)
        self._check(rows, sizes, np.full(len(rows), 4 * varied), sizes >= 4 * varied)
        head = gathered(data, starts, 4 * varied).view("<u4").astype(np.int64) if varied else None
        at, where, lengths, seen = starts + 4 * varied, [], [], 0
        for width in widths:
            if width is not None:
                length = np.full(len(rows), width, np.int64)
            else:
                assert head is not None
                length, seen = head[:, seen], seen + 1
            where.append(at)
            lengths.append(length)
            at = at + length
        self._check(rows, sizes, at - starts, at == starts + sizes)
        return data, where, lengths

    def arrays(
        self,
        rows: Ints,
        spans: tuple[np.ndarray[Any, Any], Ints, Ints],
        dtype: np.dtype[Any],
        place: Callable[[int], str],
        made: Callable[[bytes, str], np.ndarray[Any, Any]],
    ) -> Column:
        """Arrays that say their dtype or their shape themselves, as a column.

        Args:
          rows: the samples.
          spans: bytes, where in them each value starts, and how long it is.
          dtype: of all.
          place: says in words where the value of a sample is.
          made: makes an array of its bytes, and of where they are, for errors.

        Raises:
          UnimplementedError: one of them has another dtype.
        """
        data, starts, sizes = spans
        arrays = []
        for row, start, size in zip(rows.tolist(), starts.tolist(), sizes.tolist(), strict=True):
            array = made(data[start : start + size].tobytes(), f"{self.path}: damaged: {place(row)}")
            if array.dtype != dtype:
                raise UnimplementedError(
                    f"{self.path}: {place(row)}: is an array of {array.dtype}, and the first one of {dtype}; arrays of a "
                    "column must have one dtype"
                )
            arrays.append(array)
        return column_of_arrays(arrays, dtype)

    def _check(self, rows: Ints, sizes: Ints, taken: Ints, sound: np.ndarray[Any, Any]) -> None:
        if not sound.all():
            bad = int(sound.argmin())
            raise DataLossError(
                f"{self.path}: damaged: sample {rows[bad]} has {sizes[bad]} bytes, but its columns take {taken[bad]}"
            )


# ----------------------------------------------------------------------------
# MDS.
# ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Mds(IndexedFolders):
    """The samples of folders in MDS, the format of MosaicML Streaming, as dicts in the order of the columns in `index.json`.

    Samples are counted, and any of them is reached by its number: `global_shuffle` holds nothing in memory, shards and
    restarts go straight to their place. Compressed shards are in memory as a whole while they are read.

    Numbers are scalars, `ndarray` arrays, `pil` arrays of uint8 [height, width, channels]. `str`, `json`, `jpeg`, `png` and
    decimal texts (`str_int`) are bytes, as they are. Nothing is unpickled.

    Raises:
      NotFoundError: a folder has no `index.json`, or a shard that it names is not there.
      DataLossError: the index or a shard is damaged, or they do not agree.
      UnimplementedError: a column of `pkl`, an encoding, compression or version that is not known.
      InvalidArgumentError: the index does not name the file.

    Source: the layout is that of `MDSWriter` in MosaicML Streaming, version 2.
    """

    suffixes: ClassVar[tuple[str, ...]] = (".mds",)
    name: ClassVar[str] = "mds"
    called: ClassVar[tuple[str, str]] = "MDS", "shard"

    @classmethod
    def of_folder(cls, paths: list[str]) -> list[str]:
        if any(split_path(path)[1] == _INDEX for path in paths):
            return super().of_folder(paths) or paths
        return [path for path in without_notes(paths) if ".mds" in split_path(path)[1].lower()] or paths

    @staticmethod
    def of_json(index: str, content: Any) -> FolderIndex:
        _check_version(index, member(content, "version", int))
        return FolderIndex(tuple([_told(index, each) for each in member(content, "shards", list)]))

    def parsed(self, path: str, index: str, stamp: str, indexed: FolderIndex, file: "_Told") -> "_Shard":
        packed = split_path(path)[1] != file.names[0]
        check_size(path, index, size_of(path), file.packed_size if packed else file.size)
        content = _unpacked(path, file) if packed else None
        bounds = bounds_of(path, index, "samples", file.rows, file.size, content)
        return _Shard(path, stamp, bounds, content, file.codings)


# ----------------------------------------------------------------------------
# The index.
# ----------------------------------------------------------------------------


@dataclass(frozen=True)
class _Coding:
    """How the values of a column are written.

    Args:
      name: of the column.
      kind: the encoding, without its options.
      dtype: of numbers and arrays, little-endian; None: each array says its own.
      shape: of arrays; None: each says its own.
    """

    name: str
    kind: str
    dtype: np.dtype[Any] | None = None
    shape: tuple[int, ...] | None = None

    @property
    def size(self) -> int | None:
        """Bytes of a value; None if each says its own."""
        return None if self.dtype is None or self.shape is None else prod(self.shape) * self.dtype.itemsize


@dataclass(frozen=True)
class _Told(ListedFile):
    """What an index says of a shard.

    Args:
      names: as for `ListedFile`.
      size: as for `ListedFile`.
      rows: as for `ListedFile`.
      packed_size: bytes in it, compressed.
      compression: how.
      codings: of the columns.
    """

    packed_size: int
    compression: str
    codings: tuple[_Coding, ...]


def _check_version(index: str, version: int) -> None:
    if version != 2:
        raise UnimplementedError(f"{index}: is of version {version}, and only version 2 is known")


def _told(index: str, shard: Any) -> _Told:
    form = member(shard, "format", str)
    if form != "mds":
        raise UnimplementedError(f"{index}: names shards in the format {form!r}; MdsDataset reads those in 'mds'")
    _check_version(index, member(shard, "version", int))
    names, encodings, sizes = (member(shard, f"column_{of}", list) for of in ("names", "encodings", "sizes"))
    if not len(names) == len(encodings) == len(sizes) or not names:
        raise MalformedJson(f"{len(names)} names of columns, {len(encodings)} encodings and {len(sizes)} sizes")
    if not all(isinstance(each, str) for each in [*names, *encodings]) or len(set(names)) != len(names):
        raise MalformedJson("names and encodings of columns must be texts, and each name another")
    codings = tuple(_coding(index, name, encoding) for name, encoding in zip(names, encodings, strict=True))
    for coding, size in zip(codings, sizes, strict=True):
        if type(size) not in (int, type(None)) or size != coding.size:
            raise MalformedJson(f"column {coding.name!r}: its size is {size!r}, but its encoding has {coding.size}")
    samples, raw, zipped = member(shard, "samples", int), member(shard, "raw_data", dict), shard.get("zip_data")
    size = member(raw, "bytes", int)
    packed_size = 0 if zipped is None else member(zipped, "bytes", int)
    for what, number in (("samples", samples), ("bytes of raw_data", size), ("bytes of zip_data", packed_size)):
        if not 0 <= number <= _MOST_SHARD:
            raise MalformedJson(f"{number} {what}, and a shard has no fewer than 0 and no more than {_MOST_SHARD}")
    compression = "" if zipped is None else member(shard, "compression", str).partition(":")[0]
    shards = tuple([shard_name(each) for each in (raw, zipped) if each is not None])
    return _Told(shards, size, samples, packed_size, compression, codings)


def _coding(index: str, name: str, encoding: str) -> _Coding:
    kind, _, options = encoding.partition(":")
    if kind == "pkl":
        raise UnimplementedError(
            f"{index}: column {name!r} is pickled (pkl), and unpickling runs code that the file holds; write it again with "
            "another encoding"
        )
    if kind in _TEXTS or kind == "pil":
        return _Coding(name, kind)
    if kind == "int" or kind in _DTYPES.values():
        return _Coding(name, kind, np.dtype("int64" if kind == "int" else kind).newbyteorder("<"), ())
    if kind != "ndarray":
        raise UnimplementedError(f"{index}: column {name!r} has the encoding {encoding!r}, which is not known")
    dtype, _, dims = options.partition(":")
    if dtype and dtype not in _DTYPES.values():
        raise MalformedJson(f"column {name!r}: {encoding!r} names no dtype; known are {', '.join(_DTYPES.values())}")
    shape = None
    if dims:
        parts = dims.split(",")
        if not all(part.isascii() and part.isdecimal() and len(part) < 11 and int(part) for part in parts):
            raise MalformedJson(f"column {name!r}: {encoding!r} names no shape")
        shape = tuple(map(int, parts))
        if len(shape) > 63 or prod(shape) > _MOST_SHARD:
            raise MalformedJson(f"column {name!r}: {encoding!r} names a shape that no shard holds")
    return _Coding(name, kind, np.dtype(dtype).newbyteorder("<") if dtype else None, shape)


# ----------------------------------------------------------------------------
# Shards.
# ----------------------------------------------------------------------------


def _unpacked(path: str, told: _Told) -> np.ndarray[Any, Any]:
    """What a compressed shard holds, which is no more than the index says."""
    packed = read_range(path, 0, told.packed_size)
    with naming_corruption(path, told.compression):
        if told.compression == "snappy":
            content = _of_snappy(packed, told.size)
        elif told.compression in _COMPRESSIONS:
            content = inflated(packed, _COMPRESSIONS[told.compression], told.size)
        else:
            raise UnimplementedError(
                f"{path}: its index says that it is compressed with {told.compression!r}; known are br, bz2, gz, snappy, zstd"
            )
    if len(content) != told.size:
        more = "more" if len(content) > told.size else str(len(content))
        raise DataLossError(f"{path}: its index says that it has {told.size} bytes, not compressed, but it has {more}")
    return np.frombuffer(content, np.uint8)


def inflated(packed: bytes, codec: str, most: int) -> bytes:
    """What is compressed, or one byte more than it should hold."""
    read, parts, left = io.BytesIO(packed).read, [], most + 1
    decoder = CODECS[codec].decoder(read) if codec in CODECS else ArrowDecoder(codec, read)
    while left and (part := decoder.decode(min(left, 1 << 20))):
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def _of_snappy(packed: bytes, size: int) -> bytes:
    import pyarrow as pa

    if size > _MOST_RATIO * len(packed):
        raise ValueError(f"{len(packed)} bytes cannot hold {size}")
    return bytes(pa.Codec("snappy").decompress(packed, decompressed_size=size, asbytes=True))


@dataclass(frozen=True, eq=False)
class _Shard(PackedSamples):
    """The samples of one version of a shard.

    Args:
      path: as for `PackedSamples`.
      stamp: as for `PackedSamples`.
      bounds: as for `PackedSamples`.
      content: as for `PackedSamples`.
      codings: of the columns.
    """

    codings: tuple[_Coding, ...]

    @cached_property
    def specs(self) -> dict[str, TensorSpec]:
        """Those of the columns, by their names."""
        return {coding.name: self._spec(number) for number, coding in enumerate(self.codings)}

    @property
    def spec(self) -> Spec:
        return Spec.of(self.specs)

    def _spec(self, number: int) -> TensorSpec:
        coding = self.codings[number]
        if coding.kind in _TEXTS:
            return TensorSpec((), bytes)
        if coding.kind == "pil":
            return TensorSpec((None, None, None), np.uint8)
        if coding.dtype is not None:
            return TensorSpec(coding.shape, coding.dtype.newbyteorder("="))
        # An array says its dtype itself, and all agree with the first.
        first = self._values(np.arange(min(1, self.rows)))
        data, starts, sizes = first[0], first[1][number], first[2][number]
        where = f"{self.path}: damaged: {_place(coding.name, 0)}"
        content = data[starts[0] : starts[0] + sizes[0]].tobytes() if self.rows else b""
        return TensorSpec(coding.shape, _array(coding, content, where).dtype if self.rows else "f8")

    def _values(self, rows: Ints) -> tuple[np.ndarray[Any, Any], list[Ints], list[Ints]]:
        return self.values(rows, [coding.size for coding in self.codings])

    def block(self, rows: Ints) -> Block:
        """Samples by their numbers, which are in range."""
        spec = self.spec
        data, starts, sizes = self._values(rows)
        columns: dict[str, Column] = {}
        for coding, start, size in zip(self.codings, starts, sizes, strict=True):
            if coding.kind in _TEXTS:
                columns[coding.name] = Strings(data, start, size)
            elif coding.size is not None and coding.dtype is not None and coding.shape is not None:
                flat = gathered(data, start, coding.size).view(coding.dtype)
                columns[coding.name] = Dense(
                    flat.astype(coding.dtype.newbyteorder("="), copy=False).reshape(len(rows), *coding.shape)
                )
            else:
                make = image_of if coding.kind == "pil" else partial(_array, coding)
                place = partial(_place, coding.name)
                dtype = np.dtype(self.specs[coding.name].dtype)
                columns[coding.name] = self.arrays(rows, (data, start, size), dtype, place, make)
        return ColumnBlock(spec.structure, spec.structure.flatten(columns), len(rows))


def _place(name: str, row: int) -> str:
    return f"sample {row}, column {name!r}"


_INDICES: LruCache[FolderIndex] = LruCache(_KEPT_BYTES >> 3)
"""Indices that were read last; the bytes are those of their files."""

_KEPT: LruCache[PackedSamples] = LruCache(_KEPT_BYTES)
"""Files that were read last: their offsets, and what compressed ones hold."""


def gathered(data: np.ndarray[Any, Any], starts: Ints, size: int) -> np.ndarray[Any, Any]:
    """[n, size] the bytes from each start on, all of which are there."""
    if not len(starts):
        return np.empty((0, size), np.uint8)
    return np.lib.stride_tricks.sliding_window_view(data, size)[starts]


def _array(coding: _Coding, content: bytes, where: str) -> np.ndarray[Any, Any]:
    """An array that says its dtype, its shape or both.

    Args:
      coding: of its column.
      content: the bytes.
      where: they are, for errors.
    """
    dtype, shape, at = coding.dtype, coding.shape, 0
    if dtype is None:
        if not content or content[0] not in _DTYPES:
            raise DataLossError(f"{where}: begins with {content[:1]!r}, which stands for no dtype")
        dtype, at = np.dtype(_DTYPES[content[0]]).newbyteorder("<"), 1
    if shape is None:
        if len(content) <= at:
            raise DataLossError(f"{where}: ends before its shape")
        axes, width = content[at] >> 2, 1 << (content[at] & 3)
        first, at = at + 1, at + 1 + axes * width
        if len(content) < at:
            raise DataLossError(f"{where}: ends within its shape")
        shape = tuple(int.from_bytes(content[i : i + width], "little") for i in range(first, at, width))
        if not shape or 0 in shape:
            raise DataLossError(
                f"{where}: is an array {list(shape)}, but an array has at least one axis, and none of size 0"
            )
    return array_in(content, at, dtype, shape, where)


def array_in(content: bytes, at: int, dtype: np.dtype[Any], shape: tuple[int, ...], where: str) -> np.ndarray[Any, Any]:
    """The array whose values are the bytes from `at` to the end."""
    if prod(shape) * dtype.itemsize != len(content) - at:
        raise DataLossError(f"{where}: has {len(content) - at} bytes of values, which is no {dtype.name} {list(shape)}")
    return np.frombuffer(content, dtype, offset=at).astype(dtype.newbyteorder("=")).reshape(shape)


def image_of(content: bytes, where: str) -> np.ndarray[Any, Any]:
    """An image [height, width, channels] of raw bytes, behind its size and its mode."""
    if len(content) < 12:
        raise DataLossError(f"{where}: ends within the size of its image")
    width, height, letters = (int.from_bytes(content[i : i + 4], "little") for i in (0, 4, 8))
    mode = content[12 : 12 + min(letters, 16)].decode("ascii", "replace")
    if mode not in _CHANNELS:
        raise UnimplementedError(f"{where}: an image of mode {mode!r}; known are {', '.join(_CHANNELS)}")
    shape = (height, width, _CHANNELS[mode])
    if prod(shape) != len(content) - 12 - letters or 0 in shape:
        raise DataLossError(
            f"{where}: has {len(content) - 12 - letters} bytes of pixels, which is no image {list(shape)}"
        )
    return np.frombuffer(content, np.uint8, offset=12 + letters).reshape(shape)
