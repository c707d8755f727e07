# SPDX-License-Identifier: Apache-2.0
"""LitData, the format of Lightning: chunks of items, and an `index.json` in their folder that says what is in each."""

import struct
from collections.abc import Iterator
from dataclasses import field
from functools import cached_property, partial
from itertools import pairwise
from math import prod
from typing import Any, ClassVar

import numpy as np

from distinput.arrow.arrow import one_batch, taken
from distinput.columns.block import Block, ColumnBlock
from distinput.columns.column import Column, Dense, Ints, Strings
from distinput.columns.ragged import Ragged
from distinput.errors import DataLossError, InvalidArgumentError, UnimplementedError
from distinput.files.folder import split_path, without_notes
from distinput.files.source import read_range, size_of
from distinput.formats.format import BLOCK_ROWS
from distinput.formats.mds import (
    FolderIndex,
    IndexedFolders,
    ListedFile,
    PackedSamples,
    array_in,
    bounds_of,
    check_bounds,
    check_size,
    gathered,
    image_of,
    inflated,
    naming_corruption,
    shard_name,
)
from distinput.formats.tables import (
    as_nulls,
    check_nulls,
    checked_batch,
    naming_damage,
    rows_block,
    table_spec,
)
from distinput.names.lazy import dataclass
from distinput.plan.check import at_least, normalized
from distinput.values.spec import Spec, TensorSpec
from distinput.values.spec_json import MalformedJson, json_value, member

_NUMPY = str.split("""
    int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128 bool
""")
"""Dtypes by their numbers in arrays of NumPy."""

_TORCH = str.split("""
    float32 float32 float64 float64 complex64 complex64 complex128 complex128 float16 float16 bfloat16
    uint8 int8 int16 int16 int32 int32 int64 int64 bool uint16
""")
"""Dtypes by their numbers in tensors of PyTorch."""

_SCALARS = {"int": "<i8", "float": "<f8", "bool": "?"}
_BYTES = ("audio", "bytes", "file", "image", "jpeg", "mesh", "nifti", "pdf", "str", "text", "tifffile", "video")
"""Encodings whose bytes are given as they are."""

_MOST_CHUNK = (1 << 32) - 1  # bytes that its offsets can reach
_MOST_DEPTH = 32
_MOST_EMPTY = 1 << 16  # rows of an array that has no values
_MOST_INFLATED, _MOST_RATIO = 256 << 20, 100

_FRAMED = struct.Struct("<8sHHIII")
_FRAMED_MAGIC = b"LDFZ01\0\0"
_FRAME = np.dtype([("first", "<u4"), ("items", "<u4"), ("start", "<u8"), ("packed", "<u4"), ("size", "<u4")])
_ARROW_MAGIC = b"LDARW01\0"


@dataclass(frozen=True)
class LitData(IndexedFolders):
    """The items of folders that LitData's `optimize` wrote, as the dicts, tuples or single values that they were.

    Items are counted, and any of them is reached by its number: `global_shuffle` holds nothing in memory, shards and restarts
    go straight to their place. Compressed chunks, and those that keep their rows as an Arrow table, are in memory as a whole
    while they are read.

    Numbers are scalars, arrays of NumPy and PyTorch arrays, `pil` arrays of uint8 [height, width, channels]. Text, files and
    encoded images are bytes, as they are. Lists of a known length are tuples. Nothing is unpickled.

    Args:
      block_size: of chunks of tokens: elements are so many tokens, as `TokensLoader(block_size)` gives them, and what is left
        of a chunk is dropped. None: an element is what one call of the writer's function gave.
      nulls: of chunks that keep their rows as an Arrow table: a dict with what to put in the place of nulls, by column;
        "error": each for which NumPy has no value is one.

    Raises:
      NotFoundError: a folder has no `index.json`, or a chunk that it names is not there.
      DataLossError: the index or a chunk is damaged, or they do not agree.
      UnimplementedError: chunks are encrypted, or of Parquet; a value is pickled, or of an encoding that is not known.
      InvalidArgumentError: the index does not name the file; `block_size` is given for items that are no tokens.

    Source: the layout is that of `BinaryWriter` in LitData.
    """

    name: ClassVar[str] = "litdata"
    called: ClassVar[tuple[str, str]] = "LitData", "chunk"
    block_size: int | None = None
    nulls: Any = "error"

    def __post_init__(self) -> None:
        normalized(self, "nulls", as_nulls("litdata", self.nulls, tells=False))
        if self.block_size is not None:
            at_least("litdata", "block_size", self.block_size, 1)

    @classmethod
    def of_folder(cls, paths: list[str]) -> list[str]:
        return super().of_folder(paths) or without_notes(paths)

    @staticmethod
    def of_json(index: str, content: Any) -> FolderIndex:
        return _of_json(index, content)

    def parsed(self, path: str, index: str, stamp: str, indexed: "_ChunkIndex", file: "_IndexedChunk") -> "_Chunk":
        there, content = size_of(path), None
        if split_path(path)[1] != file.names[0]:
            content = np.frombuffer(_inflated(path, read_range(path, 0, there), file.size), np.uint8)
            there = len(content)
        check_size(path, index, there, file.size)
        if not indexed.tokens and there >= 12:
            end = read_range(path, there - 12, there) if content is None else content[-12:].tobytes()
            if end[4:] == _ARROW_MAGIC:
                table = _table(path, file, int.from_bytes(end[:4], "little"), content)
                return _Chunk(path, stamp, np.zeros(file.rows + 1, np.int64), None, self, indexed, (), table)
        codings = tuple([_coding(index, number, each) for number, each in enumerate(indexed.encodings)])
        if indexed.packing == "batch":
            bounds, content = _of_frames(path, file, read_range(path, 0, there))
        else:
            bounds = bounds_of(path, index, "items", file.rows, there, content)
        if indexed.packing == "sample":
            parts = [_inflated(path, read_range(path, a, b), None) for a, b in pairwise(bounds.tolist())]
            bounds, content = np.cumsum([0, *map(len, parts)]), np.frombuffer(b"".join(parts), np.uint8)
        blocks, block_bytes = 0, 0
        if self.block_size is not None:
            (coding,) = codings if len(codings) == 1 else (None,)
            if not indexed.tokens or coding is None or coding.dtype is None or file.tokens is None:
                raise InvalidArgumentError(
                    f"{path}: block_size is for chunks that TokensLoader wrote, and {index} is of others"
                )
            tokens = int(bounds[-1] - bounds[0]) // coding.dtype.itemsize
            if tokens != file.tokens:
                raise DataLossError(f"{path}: has {tokens} tokens, but {index} says {file.tokens}")
            blocks, block_bytes = tokens // self.block_size, coding.dtype.itemsize * self.block_size
        return _Chunk(path, stamp, bounds, content, self, indexed, codings, None, blocks, block_bytes)


# ----------------------------------------------------------------------------
# The index.
# ----------------------------------------------------------------------------


@dataclass(frozen=True)
class _ItemCoding:
    """How a leaf of items is written.

    Args:
      kind: the encoding, without its options.
      dtype: of numbers, and of arrays that do not say theirs; None: each says its own.
    """

    kind: str
    dtype: np.dtype[Any] | None = None


@dataclass(frozen=True)
class _IndexedChunk(ListedFile):
    """What an index says of a chunk, which LitData's reader leaves without compression in the place of a compressed one.

    Args:
      names: as for `ListedFile`.
      size: as for `ListedFile`.
      rows: as for `ListedFile`.
      tokens: in all of them; None if they are no tokens.
    """

    tokens: int | None


@dataclass(frozen=True)
class _ChunkIndex(FolderIndex):
    """An index.

    Args:
      files: as for `FolderIndex`.
      encodings: of the values of an item.
      nest: of their numbers, as an item is one of values.
      packing: what is compressed: "chunk", "batch" or "sample"; "" if nothing is.
      tokens: whether items are tokens alone, without their sizes before them.
    """

    encodings: tuple[str, ...]
    nest: Any
    packing: str
    tokens: bool


def _of_json(index: str, given: Any) -> _ChunkIndex:
    config = member(given, "config", dict)
    if config.get("encryption"):
        raise UnimplementedError(f"{index}: its chunks are encrypted, and keys cannot be given; write them decrypted")
    loader = config.get("item_loader") or "PyTreeLoader"
    if loader not in ("PyTreeLoader", "TokensLoader"):
        of_parquet = loader == "ParquetLoader"
        cure = "ParquetDataset(folder) reads its files" if of_parquet else "known are PyTreeLoader, TokensLoader"
        raise UnimplementedError(f"{index}: its chunks are for {loader!r}; {cure}")
    compression, packing = config.get("compression"), config.get("compression_level") or "chunk"
    if compression and (not isinstance(compression, str) or compression.partition(":")[0] != "zstd"):
        raise UnimplementedError(f"{index}: its chunks are compressed with {compression!r}; known is zstd")
    if packing not in ("chunk", "batch", "sample"):
        raise UnimplementedError(f"{index}: its chunks are compressed by {packing!r}; known are chunk, batch, sample")
    encodings = tuple(member(config, "data_format", list))
    if not all(isinstance(each, str) for each in encodings):
        raise MalformedJson("data_format must be of texts")
    numbers, described = iter(range(len(encodings))), config.get("data_spec")
    if described is None and len(encodings) != 1:
        raise UnimplementedError(f"{index}: does not say of what form its items are (data_spec)")
    nest: Any = 0
    if described is not None:
        tree = json_value(member(config, "data_spec", str))
        if not isinstance(tree, list) or len(tree) != 2 or tree[0] != 1:
            raise MalformedJson("data_spec is no tree of version 1")
        nest = _nest(index, tree[1], numbers, 0)
        if next(numbers, None) is not None:
            raise MalformedJson("data_spec has fewer values than data_format")
    packing = packing if compression else ""
    compressed = f".{compression}." if packing == "chunk" else ""
    chunks = tuple([_chunk(each, compressed) for each in member(given, "chunks", list)])
    if len({chunk.names[0] for chunk in chunks}) != len(chunks):
        raise MalformedJson("a chunk is named twice")
    return _ChunkIndex(chunks, encodings, nest, packing, loader == "TokensLoader")


def _chunk(given: Any, compressed: str) -> _IndexedChunk:
    """What an index says of a chunk; `compressed` is what its name has in it if it is compressed as a whole, or empty."""
    name, tokens = shard_name(given, "filename"), given.get("dim")
    if "/" in name:
        raise MalformedJson(f"the chunk {name!r} is in another folder")
    nbytes, items = member(given, "chunk_bytes", int), member(given, "chunk_size", int)
    for what, number in (("bytes", nbytes), ("items", items), ("tokens", 0 if tokens is None else tokens)):
        if type(number) is not int or not 0 <= number <= _MOST_CHUNK:
            raise MalformedJson(
                f"{number!r:.60} {what}, and a chunk has no fewer than 0 and no more than {_MOST_CHUNK}"
            )
    plain = name.replace(compressed, ".", 1) if compressed else name
    return _IndexedChunk(tuple(dict.fromkeys((plain, name))), nbytes, items, tokens)


def _coding(index: str, number: int, encoding: str) -> _ItemCoding:
    kind, _, option = encoding.partition(":")
    if kind in ("pickle", "graph"):
        raise UnimplementedError(
            f"{index}: value {number} of items is pickled ({kind}), and unpickling runs code that the file holds; write it "
            "again as numbers, arrays, text or bytes"
        )
    if kind == "json":
        raise UnimplementedError(
            f"{index}: value {number} of items is a list or dict beside values that are none (json), which is not read; write "
            "it as text"
        )
    if kind in _SCALARS:
        return _ItemCoding(kind, np.dtype(_SCALARS[kind]))
    if kind in (*_BYTES, "pil", "numpy", "tensor"):
        return _ItemCoding(kind)
    if kind in ("no_header_numpy", "no_header_tensor"):
        return _ItemCoding(kind, _dtype(index, _NUMPY if kind == "no_header_numpy" else _TORCH, option))
    raise UnimplementedError(f"{index}: value {number} of items has the encoding {encoding!r}, which is not known")


def _dtype(where: str, names: list[str], number: Any) -> np.dtype[Any]:
    text = str(number)
    if not (text.isascii() and text.isdecimal() and len(text) < 4 and int(text) < len(names)):
        raise UnimplementedError(f"{where}: an array of the dtype number {text[:20]}, which is not known")
    name = names[int(text)]
    if name == "bfloat16":
        raise UnimplementedError(f"{where}: a tensor of bfloat16, which NumPy does not have; write it as float32")
    return np.dtype(name).newbyteorder("<")


def _nest(index: str, tree: Any, numbers: Iterator[int], depth: int) -> Any:
    """The nest of a tree of PyTorch, whose leaves are the next numbers."""
    kind, children = member(tree, "type"), member(tree, "children_spec", list)
    if kind is None:
        number = next(numbers, None)
        if number is None or children:
            raise MalformedJson("data_spec has more values than data_format")
        return number
    if depth >= _MOST_DEPTH:
        raise MalformedJson(f"data_spec is deeper than {_MOST_DEPTH}")
    inner = [_nest(index, child, numbers, depth + 1) for child in children]
    if kind in ("builtins.tuple", "builtins.list"):
        return tuple(inner)
    if kind not in ("builtins.dict", "collections.OrderedDict"):
        raise UnimplementedError(f"{index}: items hold a {kind!r:.60}; known are dicts, tuples and lists")
    keys = json_value(member(tree, "context", str))
    if not isinstance(keys, list) or len(keys) != len(inner) or not all(isinstance(key, str) for key in keys):
        raise MalformedJson("data_spec: a dict must have a text for each of its values")
    if len(set(keys)) != len(keys):
        raise MalformedJson("data_spec: a dict has a key twice")
    return dict(zip(keys, inner, strict=True))


# ----------------------------------------------------------------------------
# Chunks.
# ----------------------------------------------------------------------------


def _inflated(path: str, packed: bytes, size: int | None) -> bytes:
    """What is compressed with zstd.

    Args:
      path: of the file that has it.
      packed: the compressed bytes.
      size: how many there are; None: it is not known.
    """
    most = max(_MOST_INFLATED, _MOST_RATIO * len(packed)) if size is None else size
    with naming_corruption(path, "zstd"):
        content = inflated(packed, "ZSTD", most)
    if len(content) > most or (size is not None and len(content) != size):
        more = f"more than {most}" if len(content) > most else f"{len(content)}"
        raise DataLossError(
            f"{path}: holds {more} bytes, not compressed, and should hold {'fewer' if size is None else size}"
        )
    return content


def _of_frames(path: str, chunk: _IndexedChunk, packed: bytes) -> tuple[Ints, np.ndarray[Any, Any]]:
    """The bounds and the bytes of items that are compressed many together."""
    first = _FRAMED.size
    magic, version, _, items, _, count = _FRAMED.unpack_from(packed) if len(packed) >= first else (b"",) * 6
    if magic != _FRAMED_MAGIC or items != chunk.rows:
        raise DataLossError(f"{path}: should begin as a chunk of {chunk.rows} items in frames of zstd, and does not")
    if version != 1:
        raise UnimplementedError(f"{path}: has frames of version {version}, and only version 1 is known")
    head = first + 4 * (items + 1) + _FRAME.itemsize * count
    if head > len(packed):
        raise DataLossError(f"{path}: has {len(packed)} bytes, but its offsets alone take {head}")
    bounds = np.frombuffer(packed, "<u4", items + 1, first).astype(np.int64)
    frames = np.frombuffer(packed, _FRAME, count, first + 4 * (items + 1))
    sizes, starts = frames["size"].astype(np.int64), frames["start"].astype(np.uint64)
    check_bounds(path, bounds, 0, int(sizes.sum()))
    if sizes.sum() > max(_MOST_INFLATED, _MOST_RATIO * len(packed)):
        raise DataLossError(f"{path}: its {len(packed)} bytes cannot hold {sizes.sum()}")
    ends = starts + frames["packed"]
    if (starts < head).any() or (ends > len(packed)).any() or (ends < starts).any():
        raise DataLossError(f"{path}: damaged: a frame of zstd is not in the file")
    parts = [
        _inflated(path, packed[start:end], size)
        for start, end, size in zip(starts.tolist(), ends.tolist(), sizes.tolist(), strict=True)
    ]
    return bounds, np.frombuffer(b"".join(parts), np.uint8)


def _table(path: str, chunk: _IndexedChunk, size: int, content: np.ndarray[Any, Any] | None) -> Any:
    """The Arrow table at the end of a chunk."""
    import pyarrow as pa

    start = chunk.size - 12 - size
    if start < 0 or not size:
        raise DataLossError(f"{path}: damaged: its table would have {size} bytes")
    data = read_range(path, start, start + size) if content is None else content[start : start + size].tobytes()
    with naming_damage("a table of Arrow", path, "the table at its end"):
        table = (pa.ipc.open_file if data.startswith(b"ARROW1") else pa.ipc.open_stream)(data).read_all()
    for batch in table.to_batches():
        checked_batch(path, "the table at its end", batch)
    if table.num_rows != chunk.rows or not table.num_columns:
        raise DataLossError(
            f"{path}: its table has {table.num_rows} rows of {table.num_columns} columns, but its index says {chunk.rows} rows"
        )
    return table


@dataclass(frozen=True, eq=False)
class _Chunk(PackedSamples):
    """The items of one version of a chunk.

    Args:
      path: as for `PackedSamples`.
      stamp: as for `PackedSamples`.
      bounds: as for `PackedSamples`.
      content: as for `PackedSamples`.
      format: how it is read.
      index: of its folder.
      codings: of the values of an item.
      table: the rows as a pyarrow Table; None: they are not kept so.
      blocks: of tokens, where these are read.
      block_bytes: in each of them; 0: items are read.
    """

    format: LitData
    index: _ChunkIndex
    codings: tuple[_ItemCoding, ...]
    table: Any = field(repr=False)
    blocks: int = 0
    block_bytes: int = 0

    @property
    def rows(self) -> int:
        return self.blocks if self.block_bytes else super().rows

    @property
    def nbytes(self) -> int:
        return super().nbytes + (0 if self.table is None else int(self.table.nbytes))

    def ends(self, row: int) -> Ints:
        if self.block_bytes or self.table is not None:
            each = self.block_bytes or max(1, self.nbytes // self.rows)
            return np.arange(1, min(BLOCK_ROWS, self.rows - row) + 1) * each
        return super().ends(row)

    @cached_property
    def spec(self) -> Spec:
        """That of an item."""
        if self.table is not None:
            if self.format.nulls != "error":
                check_nulls(self.path, self.format.nulls, self.table.schema)
            return table_spec(self.path, self.table.schema, None)
        return Spec.of(_filled(self.index.nest, self.specs))

    @cached_property
    def specs(self) -> list[TensorSpec]:
        """Those of the values of an item."""
        return [self._spec(number, coding) for number, coding in enumerate(self.codings)]

    def _spec(self, number: int, coding: _ItemCoding) -> TensorSpec:
        if coding.kind in _BYTES:
            return TensorSpec((), bytes)
        if coding.kind == "pil":
            return TensorSpec((None, None, None), np.uint8)
        if coding.dtype is not None:
            shape = () if coding.kind in _SCALARS else (self.format.block_size,)
            return TensorSpec(shape, coding.dtype.newbyteorder("="))
        if not self.rows:
            return TensorSpec(None, "f8")
        data, starts, sizes = self._values(np.arange(1))  # an array says its dtype itself, and all agree with the first
        first = data[starts[number][0] :][: sizes[number][0]]
        return TensorSpec(
            None, _array(coding.kind, first.tobytes(), f"{self.path}: damaged: {_place(number, 0)}").dtype
        )

    def _values(self, rows: Ints) -> tuple[np.ndarray[Any, Any], list[Ints], list[Ints]]:
        if not self.index.tokens:
            return self.values(rows, [None] * len(self.codings))
        if self.block_bytes:
            starts, sizes = self.bounds[0] + rows * self.block_bytes, np.full(len(rows), self.block_bytes, np.int64)
        else:
            starts, sizes = self.bounds[rows], self.bounds[rows + 1] - self.bounds[rows]
        data, starts = self.bytes_of(starts, sizes)
        return data, [starts], [sizes]

    def block(self, rows: Ints) -> Block:
        """Items by their numbers, which are in range."""
        spec = self.spec
        if self.table is not None:
            batch = one_batch(taken(self.table, rows))
            return rows_block(self.path, "its table", batch, spec.structure, self.format.nulls, rows, tells=False)
        data, starts, sizes = self._values(rows)
        columns = [
            self._column(number, coding, rows, data, starts[number], sizes[number])
            for number, coding in enumerate(self.codings)
        ]
        return ColumnBlock(spec.structure, spec.structure.flatten(_filled(self.index.nest, columns)), len(rows))

    def _column(
        self, number: int, coding: _ItemCoding, rows: Ints, data: np.ndarray[Any, Any], starts: Ints, sizes: Ints
    ) -> Column:
        if coding.kind in _BYTES:
            return Strings(data, starts, sizes)
        dtype = coding.dtype
        if dtype is not None:
            wrong = sizes != dtype.itemsize if coding.kind in _SCALARS else sizes % dtype.itemsize != 0
            if wrong.any():
                bad = int(wrong.argmax())
                raise DataLossError(
                    f"{self.path}: damaged: {_place(number, int(rows[bad]))}: has {sizes[bad]} bytes, which are no {dtype.name}"
                )
            native = dtype.newbyteorder("=")
            if coding.kind in _SCALARS:
                flat = gathered(data, starts, dtype.itemsize).view(dtype).astype(native, copy=False)
                return Dense(flat.reshape(len(rows)))
            if self.block_bytes:
                return Dense(gathered(data, starts, self.block_bytes).view(dtype).astype(native, copy=False))
            parts = [data[a : a + n] for a, n in zip(starts.tolist(), sizes.tolist(), strict=True)]
            joined = np.concatenate(parts) if parts else np.empty(0, np.uint8)
            lengths = sizes // dtype.itemsize
            return Ragged(Dense(joined.view(dtype).astype(native, copy=False)), np.cumsum(lengths) - lengths, lengths)
        make = image_of if coding.kind == "pil" else partial(_array, coding.kind)
        return self.arrays(rows, (data, starts, sizes), self.specs[number].dtype, partial(_place, number), make)


def _place(number: int, row: int) -> str:
    return f"item {row}, value {number}"


def _filled(nest: Any, leaves: list[Any]) -> Any:
    """A nest of numbers with what has these numbers in a list."""
    if isinstance(nest, dict):
        return {key: _filled(inner, leaves) for key, inner in nest.items()}
    return tuple([_filled(inner, leaves) for inner in nest]) if isinstance(nest, tuple) else leaves[nest]


def _array(kind: str, content: bytes, where: str) -> np.ndarray[Any, Any]:
    """An array that says its dtype and its shape: of NumPy in little-endian numbers, of PyTorch in big-endian ones."""
    order: Any = "little" if kind == "numpy" else "big"
    first, axes = int.from_bytes(content[:4], order), int.from_bytes(content[4:8], order)
    begin = 8 + 4 * axes
    if len(content) < begin or axes > 63:
        raise DataLossError(f"{where}: ends within its shape")
    dtype = _dtype(where, _NUMPY if kind == "numpy" else _TORCH, first)
    shape = tuple(int.from_bytes(content[i : i + 4], order) for i in range(8, begin, 4))
    if not len(content) - begin and prod(axis or 1 for axis in shape) > _MOST_EMPTY:
        raise DataLossError(
            f"{where}: is an array {list(shape)} without values, whose rows would take memory nevertheless"
        )
    return array_in(content, begin, dtype, shape, where)
