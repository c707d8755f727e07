# SPDX-License-Identifier: Apache-2.0
"""Indexed datasets of Megatron: tokens in a file `.bin`, and beside it an index `.idx` of sequences and documents."""

import struct
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import numpy as np

from distinput.columns.block import Block, ColumnBlock
from distinput.columns.column import Column, Dense, Ints
from distinput.columns.ragged import Ragged
from distinput.errors import DataLossError, InvalidArgumentError, UnimplementedError
from distinput.files.folder import remove_file, without_notes
from distinput.files.paths import as_path
from distinput.files.sink import Sink
from distinput.files.source import check_unchanged, read_range, read_spans, size_of, stamp_of
from distinput.formats.format import BLOCK_ROWS, PlacedBlocks, Position
from distinput.formats.tables import CountedTable, LruCache
from distinput.names.lazy import dataclass
from distinput.values.nest import LEAF, tuple_of
from distinput.values.spec import Spec, TensorSpec

_MAGIC = b"MMIDIDX\0\0"
_VERSION = 1
_NAMES = "uint8 int8 int16 int32 int64 float64 float32 uint16"
DTYPES = {name: number for number, name in enumerate(_NAMES.split(), 1)}
"""The number that stands for each dtype of tokens."""

_HEAD = struct.Struct("<9sQBQQ")  # magic, version, dtype, sequences, entries of documents
_KEPT_BYTES = 256 << 20
_DATA, _INDEX = ".bin", ".idx"


@dataclass(frozen=True)
class Megatron(CountedTable):
    """The sequences of Megatron's indexed datasets: of each `.bin`, whose index `.idx` stands beside it, arrays [length].

    Sequences are counted, and any of them is reached by its number: `global_shuffle` holds nothing in memory, shards and
    restarts go straight to their place. The index of a file is in memory while it is read, 12 bytes a sequence.

    Args:
      documents: records are whole documents, each the tokens of all its sequences.
      multimodal: records are pairs of a sequence and its mode, an int8, which the index of such files has.

    Raises:
      NotFoundError: a file, or its index, is not there.
      DataLossError: an index is damaged, or the tokens it names are not there.
      InvalidArgumentError: an index is named instead of its tokens; both options are given, or an index has no modes.
      UnimplementedError: an index of another kind; or the sequences of a document do not lie one after the other.

    >>> import distinput as di
    >>> di.io.write_megatron("corpus.bin", [[[5, 6, 7], [8]], [[9]]], documents=True)
    3
    >>> di.data.MegatronDataset("corpus.bin").to_list()
    [[5, 6, 7], [8], [9]]
    >>> di.data.MegatronDataset("corpus.bin", documents=True).to_list()
    [[5, 6, 7, 8], [9]]

    Source: the layout is that of `IndexedDataset` in Megatron-LM, version 1.
    """

    suffixes: ClassVar[tuple[str, ...]] = (_DATA,)
    name: ClassVar[str] = "megatron"
    documents: bool = False
    multimodal: bool = False

    def __post_init__(self) -> None:
        if self.documents and self.multimodal:
            raise InvalidArgumentError(
                "megatron: modes are of sequences, and documents=True joins those; give one of documents and multimodal"
            )

    @classmethod
    def of_folder(cls, paths: list[str]) -> list[str]:
        paths = without_notes(paths)
        return [path for path in paths if path.lower().endswith(_DATA)] or paths

    def spec_of(self, path: str) -> Spec:
        tokens = TensorSpec((None,), self.opened(path).dtype)
        if not self.multimodal:
            return Spec(LEAF, (tokens,))
        return Spec(tuple_of([LEAF, LEAF]), (tokens, TensorSpec((), np.int8)))

    def read_groups(self, path: str, position: Position | None, size: int, given: int) -> PlacedBlocks:
        row, index = self.first_row(path, position), self.opened(path)

        def ends(row: int) -> Ints:
            sizes = index.sizes[row : row + BLOCK_ROWS]
            return np.cumsum(sizes, dtype=np.int64) * index.dtype.itemsize

        yield from self.groups_of(path, index, row, ends, size, given)

    def opened(self, path: str) -> "_Index":
        stamp, beside = stamp_of(path), _index_path(path)
        key = (self, path, stamp, stamp_of(beside))
        found = _KEPT.get(key)
        if found is None:
            found = _parsed(path, beside, stamp, self.documents, self.multimodal)
            _KEPT.put(key, found, found.nbytes)
        return found


def _index_path(path: str) -> str:
    """The index beside a file of tokens: `a.idx` for `a.bin`.

    Raises:
      InvalidArgumentError: the file is an index itself.
    """
    if path.endswith(_INDEX):
        raise InvalidArgumentError(
            f"{path}: megatron: this is an index; name the file of tokens, {path.removesuffix(_INDEX)}{_DATA}, and leave the "
            "index beside it"
        )
    return (path[: -len(_DATA)] if path.lower().endswith(_DATA) else path) + _INDEX


@dataclass(frozen=True, eq=False)
class _Index:
    """The records of one version of a file.

    Args:
      path: of the tokens.
      stamp: of the version.
      dtype: of the tokens, as users have them.
      starts: [n] the byte at which each record begins.
      sizes: [n] tokens in it.
      modes: [n] of the records; None: they have none, or none are wanted.
    """

    path: str
    stamp: str
    dtype: np.dtype[Any]
    starts: Ints
    sizes: np.ndarray[Any, Any]
    modes: np.ndarray[Any, Any] | None

    @property
    def rows(self) -> int:
        return len(self.sizes)

    @property
    def nbytes(self) -> int:
        return self.starts.nbytes + self.sizes.nbytes + (0 if self.modes is None else self.modes.nbytes)

    def block(self, rows: Ints) -> Block:
        """Records by their numbers, which are in range."""
        starts, sizes = self.starts[rows], self.sizes[rows].astype(np.int64)
        data = read_spans(self.path, starts, sizes * self.dtype.itemsize)
        check_unchanged(self.path, self.stamp)
        tokens = data.view(self.dtype.newbyteorder("<")).astype(self.dtype, copy=False)
        columns: list[Column] = [Ragged(Dense(tokens), np.cumsum(sizes) - sizes, sizes)]
        if self.modes is None:
            return ColumnBlock(LEAF, columns, len(rows))
        return ColumnBlock(tuple_of([LEAF, LEAF]), [*columns, Dense(self.modes[rows])], len(rows))


_KEPT: LruCache[_Index] = LruCache(_KEPT_BYTES)
"""Indices of files that were read last."""


def _parsed(path: str, beside: str, stamp: str, documents: bool, multimodal: bool) -> _Index:
    """The index of a file, all of which is checked.

    Args:
      path: of the tokens.
      beside: of the index.
      stamp: of the tokens.
      documents: whether records are documents.
      multimodal: whether records have modes.
    """
    there = size_of(path)
    content = read_range(beside, 0, size_of(beside))
    if content[: len(_MAGIC)] != _MAGIC:
        if content.startswith(b"TNTIDX"):
            raise UnimplementedError(
                f"{beside}: is an index of the older kind that is not mapped (TNTIDX); make it again with Megatron's builder "
                "of today"
            )
        raise _damaged(beside, f"begins with {content[:9]!r}, not with {_MAGIC!r}")
    if len(content) < _HEAD.size:
        raise _damaged(beside, f"has {len(content)} bytes, and its header alone takes {_HEAD.size}; it was cut short")
    _, version, code, sequences, entries = _HEAD.unpack_from(content)
    if version != _VERSION:
        raise UnimplementedError(f"{beside}: is of version {version}, and only version {_VERSION} is known")
    names = {number: name for name, number in DTYPES.items()}
    if code not in names:
        raise _damaged(beside, f"byte 17: {code} stands for no dtype; known are {', '.join(map(str, names))}")
    dtype = np.dtype(names[code])
    plain = _HEAD.size + 12 * sequences + 8 * entries
    if len(content) not in (plain, plain + sequences):
        raise _damaged(
            beside,
            f"has {len(content)} bytes, and {sequences} sequences and {entries} entries of documents take {plain}, or "
            f"{plain + sequences} with modes",
        )
    sizes = np.frombuffer(content, "<i4", sequences, _HEAD.size).astype(np.int32)
    starts = np.frombuffer(content, "<i8", sequences, _HEAD.size + 4 * sequences).astype(np.int64)
    bounds = np.frombuffer(content, "<i8", entries, _HEAD.size + 12 * sequences).astype(np.int64)
    outside = (sizes < 0) | (starts < 0) | (starts > there)
    outside |= starts + np.where(outside, 0, sizes).astype(np.int64) * dtype.itemsize > there
    if outside.any():
        row = int(outside.argmax())
        raise DataLossError(
            f"{path}: has {there} bytes, but {beside} says that sequence {row} of {sequences} is {sizes[row]} tokens of "
            f"{dtype} from byte {starts[row]} on; one of them was cut short, or they are not of one dataset"
        )
    if not entries or bounds[0] != 0 or bounds[-1] != sequences or (np.diff(bounds) < 0).any():
        raise _damaged(beside, f"the documents do not go in order from sequence 0 to {sequences}")
    modes = None
    if multimodal:
        if len(content) != plain + sequences:
            raise InvalidArgumentError(f"{beside}: has no modes of sequences; read it without multimodal=True")
        modes = np.frombuffer(content, np.int8, sequences, plain).copy()
    if documents:
        starts, sizes = _joined(beside, starts, sizes, bounds, dtype.itemsize)
    return _Index(path, stamp, dtype, starts, sizes, modes)


def _joined(
    beside: str, starts: Ints, sizes: np.ndarray[Any, Any], bounds: Ints, width: int
) -> tuple[Ints, np.ndarray[Any, Any]]:
    """The starts and sizes of documents, from those of their sequences.

    Args:
      beside: the index.
      starts: bytes at which the sequences begin.
      sizes: tokens in each.
      bounds: [documents + 1] the sequences where documents begin and end.
      width: bytes of a token.
    """
    follows = starts[1:] == starts[:-1] + sizes[:-1].astype(np.int64) * width
    begins = np.zeros(len(sizes) + 1, bool)
    begins[bounds] = True
    apart = ~follows & ~begins[1 : len(sizes)]
    if apart.any():
        row = int(apart.argmax())
        raise UnimplementedError(
            f"{beside}: sequence {row + 1} does not follow sequence {row} of the same document; read the sequences, "
            "without documents=True"
        )
    return np.append(starts, 0)[bounds[:-1]], np.diff(np.append(0, np.cumsum(sizes, dtype=np.int64))[bounds])


def _damaged(beside: str, what: str) -> DataLossError:
    return DataLossError(f"{beside}: not an index of Megatron, or damaged: {what}")


# ----------------------------------------------------------------------------
# Writing.
# ----------------------------------------------------------------------------


def write_megatron(
    filename: Any, sequences: Iterable[Any], *, dtype: Any = "int32", documents: bool = False, multimodal: bool = False
) -> int:
    """Write an indexed dataset of Megatron, byte for byte as its builder does: tokens, and the index beside them.

    Args:
      filename: of the tokens, ending in `.bin`; local or any URL of fsspec.
      sequences: such as a dataset: arrays [length], each a document by itself.
      dtype: of the tokens. Megatron takes uint16 where a vocabulary has fewer than 65,500 words, else int32.
      documents: elements are documents: lists of sequences, or ragged tensors.
      multimodal: sequences are pairs with their modes.

    Returns:
      The number of sequences.

    Raises:
      InvalidArgumentError: the name does not end in `.bin`, the layout has no such dtype, a sequence is no array [length], or a
        token or a mode does not fit; no file is left then.

    >>> import distinput as di
    >>> di.io.write_megatron("tokens.bin", [[5, 6, 7], [8]], dtype="uint16")
    2
    >>> di.data.MegatronDataset("tokens.bin").to_list()
    [[5, 6, 7], [8]]
    """
    path = as_path(filename)
    if not path.endswith(_DATA):
        raise InvalidArgumentError(f"write_megatron: the name of the tokens must end in {_DATA}, got {path!r}")
    kind = np.dtype(dtype)
    if kind.name not in DTYPES:
        raise InvalidArgumentError(f"write_megatron: dtype must be one of {', '.join(DTYPES)}, got {kind.name}")
    sizes: list[int] = []
    modes: list[int] = []
    bounds = [0]
    with Sink(path) as tokens, Sink(_index_path(path)) as index:
        for element in sequences:
            for given in _members(element, len(bounds) - 1) if documents else (element,):
                which = f"write_megatron: sequence {len(sizes)}"
                sequence, mode = _with_mode(which, given) if multimodal else (given, 0)
                found = as_tokens(which, sequence, kind)
                tokens.write(found.tobytes())
                sizes.append(len(found))
                modes.append(mode)
            bounds.append(len(sizes))
        index.write(index_bytes(kind, np.array(sizes, np.int64), np.array(bounds), modes if multimodal else None))
        # An older index must never stand beside these tokens, not even if this process ends here.
        remove_file(index.path)
        tokens.close()
    return len(sizes)


def _members(document: Any, number: int) -> Iterable[Any]:
    """The sequences of a document."""
    if not isinstance(document, Iterable):
        raise InvalidArgumentError(
            f"write_megatron: document {number} must be a list of sequences, got {document!r:.60}"
        )
    return document


def _with_mode(which: str, given: Any) -> tuple[Any, int]:
    """A sequence, and its mode."""
    try:
        sequence, mode = given
    except (TypeError, ValueError):
        raise InvalidArgumentError(
            f"{which}: must be a pair of an array [length] and its mode, got {given!r:.60}; leave multimodal out for arrays"
        ) from None
    number = _array(mode)
    if number.shape or number.dtype.kind not in "iuf" or not -128 <= number <= 127 or number != int(number):
        raise InvalidArgumentError(f"{which}: its mode must be an int8, got {mode!r}")
    return sequence, int(number)


def index_bytes(dtype: np.dtype[Any], sizes: Ints, bounds: Ints, modes: Sequence[int] | None = None) -> bytes:
    """An index of sequences that lie one after the other.

    Args:
      dtype: of the tokens.
      sizes: [n] tokens in each sequence.
      bounds: [documents + 1] the sequences where documents begin and end.
      modes: of the sequences; None: they have none.
    """
    head = _HEAD.pack(_MAGIC, _VERSION, DTYPES[dtype.name], len(sizes), len(bounds))
    starts = (np.cumsum(sizes) - sizes) * dtype.itemsize
    parts = (sizes.astype("<i4"), starts.astype("<i8"), bounds.astype("<i8"), np.array(modes or [], np.int8))
    return head + b"".join(part.tobytes() for part in parts)


def _array(value: Any) -> np.ndarray[Any, Any]:
    try:
        return np.asarray(value)
    except ValueError:  # lists of several lengths
        return np.asarray(value, object)


def as_tokens(which: str, sequence: Any, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """A sequence as it is stored.

    Args:
      which: sequence it is, for messages.
      sequence: an array [length].
      dtype: of the tokens.
    """
    array = _array(sequence)
    if array.ndim != 1 or (len(array) and array.dtype.kind not in "iuf"):
        raise InvalidArgumentError(
            f"{which} must be an array of numbers [length], got {array.dtype}{list(array.shape)}"
        )
    if len(array) > np.iinfo(np.int32).max:
        raise InvalidArgumentError(
            f"{which} has {len(array)} tokens, and an index counts to {np.iinfo(np.int32).max}; divide it"
        )
    with np.errstate(invalid="ignore", over="ignore"):
        cast = array.astype(dtype.newbyteorder("<"))
    wrong = (cast != array) & ~((cast != cast) & (array != array))
    if wrong.any():
        raise InvalidArgumentError(f"{which} holds {array[wrong][0]}, which is no {dtype.name}; say dtype=")
    return cast
