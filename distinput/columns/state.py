# SPDX-License-Identifier: Apache-2.0
"""States: plain JSON values that say where a stream stands, with a checksum; and short hashes of values."""

import os
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, Self

import numpy as np

from distinput.columns.column import Array, Column, Dense, Ints, Strings
from distinput.columns.ragged import Ragged
from distinput.errors import StateError
from distinput.url_secrets import public_url

# ----------------------------------------------------------------------------
# States: plain JSON values that say where a stream stands.
#
# The whole contract: a stream yields `(block, state)`, and whoever starts again with that state receives exactly what would
# have followed. A state holds positions, seeds and counts, never elements; the one exception is the carried value of
# `scan`, which only the user's function can make.
# ----------------------------------------------------------------------------


State = dict[str, Any]

VERSION = 3
"""The version written into every saved state. It is raised when the layout of states changes (`tests/states`)."""

READABLE = (2, 3)
"""The versions that are restored."""

Mark = dict[str, Any]
"""Where a row stands in an input: `{"input": state, "skip": rows to pass over from there}`."""


# ----------------------------------------------------------------------------
# A checksum in every saved state, so that a changed one is refused before anything of it is used.
# ----------------------------------------------------------------------------


@cache
def _crc32() -> Callable[[bytes, int], int]:
    from zlib import crc32  # for states, which few first batches come with

    return crc32


@cache
def _encoder(item_separator: str, key_separator: str) -> Any:
    from json import JSONEncoder  # as well

    return JSONEncoder(sort_keys=True, separators=(item_separator, key_separator)).encode


def compact(value: Any) -> str:
    """JSON of a part of a state with sorted keys and no blanks, of which check words are made."""
    text: str = _encoder(",", ":")(value)
    return text


def spaced(value: Any) -> str:
    """JSON of a part of a state, as `json.dumps(value, sort_keys=True)` writes it."""
    text: str = _encoder(", ", ": ")(value)
    return text


def start_of(plan: Any) -> int:
    """The checksum of a plan, with which that of a whole state begins; it is the same for all states of a pipeline."""
    return _crc32()(compact(plan).encode(), 0)


def sealed(place: State, plan: Any = None) -> State:
    """The state of a place in a pipeline.

    Args:
      place: all of it but for its version, plan and check word.
      plan: a JSON value that stands for the pipeline; None: there is none.
    """
    check = _crc32()(compact(place).encode(), start_of(plan))
    if plan is None:
        return {"version": VERSION, "check": check, **place}
    return {"version": VERSION, "check": check, "plan": plan, **place}


def opened(state: Any, who: str, keys: set[str]) -> State:
    """A copy of an unchanged state, in plain JSON values, without its version and checksum.

    Args:
      state: what a user hands in.
      who: for the messages.
      keys: what it must have.

    Raises:
      StateError: it is not a state, was changed, or has another version.
    """
    if not isinstance(state, dict) or "version" not in state:
        raise StateError(f"{who}: expected a state as iterator.state() gives it, got {_short(type(state).__name__)}")
    version = state["version"]
    if type(version) is not int or version not in READABLE:
        raise StateError(
            f"{who}: the state has version {_short(version)}, this distinput reads versions "
            f"{' and '.join(map(str, READABLE))}; restore it with the distinput that saved it"
        )
    missing = {"check", *keys} - {key for key in state if isinstance(key, str)}
    if missing:
        raise StateError(f"{who}: the state lacks {sorted(missing)}; it must be what iterator.state() gave")
    from json import loads

    try:
        place = {key: value for key, value in state.items() if key not in ("version", "check", "plan")}
        plan, text = state.get("plan"), compact(place)
        check, found = _crc32()(text.encode(), start_of(plan)), {**loads(text), "plan": loads(compact(plan))}
    except (TypeError, ValueError, RecursionError) as error:
        raise StateError(f"{who}: a state holds nothing but JSON values: {_short(error)}") from None
    if type(state["check"]) is not int or state["check"] != check:
        raise StateError(
            f"{who}: the state is not as it was saved: something in it was changed, added or left out, as its check word "
            "tells; hand in what iterator.state() gave, or what JSON made of that"
        )
    return found


def _short(value: Any) -> str:
    try:
        text = value if isinstance(value, str) else repr(value) if not isinstance(value, Exception) else str(value)
    except Exception:  # noqa: BLE001 - whatever was handed in, the message is about the state
        text = type(value).__name__
    return text if len(text) <= 80 else text[:77] + "..."


# ----------------------------------------------------------------------------
# Short hashes of values, the same in every process, in bounded time.
#
# Up to `MOST_BYTES` of an array are hashed whole; of a larger one, `_PIECES` pieces at equal distances, its ends included.
# ----------------------------------------------------------------------------


MOST_BYTES = 16 << 20
"""Of an array or of a column of text, hashed whole."""

_PIECES = 256
_MOST_ITEMS = 4096


class Digest:
    """Takes values in and gives a word.

    Args:
      size: bytes of the word, which has two letters for each.
    """

    def __init__(self, size: int = 4) -> None:
        from hashlib import blake2b  # it is for states, which few first batches come with

        self._hash = blake2b(digest_size=size)

    @property
    def word(self) -> str:
        """For what was taken in so far."""
        return self._hash.hexdigest()

    def add(self, *values: Any) -> Self:
        """Take in values whose `repr` says all of them, but for secrets in URLs: with another signature a file is the same."""
        text = repr(values)
        self._hash.update((public_url(text) if "://" in text else text).encode(errors="surrogatepass"))
        return self

    def array(self, array: Array) -> Self:
        """Take in an array of anything but Python objects."""
        self.add(array.dtype.str, array.shape)
        if array.nbytes <= MOST_BYTES:
            self._hash.update(array.tobytes())
            return self
        flat: Any = array.reshape(-1) if array.flags.c_contiguous else array.flat
        count = max(1, MOST_BYTES // _PIECES // array.itemsize)
        for start in evenly(array.size - count + 1, _PIECES).tolist():
            self._hash.update(np.asarray(flat[start : start + count]).tobytes())
        return self

    def texts(self, texts: Sequence[bytes]) -> Self:
        """Take in texts, in order."""
        self._hash.update(np.fromiter(map(len, texts), np.int64, len(texts)).tobytes())
        self._hash.update(b"".join(texts))
        return self

    def column(self, column: Column) -> Self:
        """Take in the rows of a column."""
        column = column.materialize()
        self.add(type(column).__name__, len(column))
        match column:
            case Dense():
                return self.array(column.array)
            case Strings():
                return self.add(column.starts.shape).texts(texts_of(column))
            case Column(ragged_rank=int()):
                return self.array(np.asarray(column.lengths())).column(column.unstack())
            case Ragged():
                self.array(column.sizes)
                each = int(column.sizes.sum()) // max(1, len(column))
                rows: Iterable[Any] = column.take(_some(len(column), max(1, each))).values()
            case _:
                rows = column.take(evenly(len(column), _MOST_ITEMS)).values()
        for row in rows:
            if isinstance(row, np.ndarray) and row.dtype != object:
                self.array(row)
            elif isinstance(row, np.ndarray):
                self.add(row.shape).texts(row.reshape(-1).tolist())
            else:
                self.add(row)
        return self


def word_of(column: Column) -> str:
    """The hash of a column's rows."""
    return Digest(8).column(column).word


def evenly(size: int, most: int) -> Ints:
    """At most so many of the numbers below `size`, at equal distances, the first and the last included.

    >>> evenly(10, 4).tolist(), evenly(3, 4).tolist()
    ([0, 3, 6, 9], [0, 1, 2])
    """
    if size <= most:
        return np.arange(size)
    return np.arange(most) * (size - 1) // (most - 1)


def texts_of(column: Strings) -> list[bytes]:
    """The texts of a column in order, URLs without secrets; of very many or very long ones, those at equal distances."""
    starts, sizes = column.starts.reshape(-1), column.sizes.reshape(-1)
    total = int(sizes.sum())
    if total > MOST_BYTES:
        some = _some(len(sizes), total // len(sizes))
        starts, sizes = starts[some], np.minimum(sizes[some], MOST_BYTES // 16)
    view = memoryview(column.data)  # type: ignore[arg-type]  # numpy's stubs do not name the buffer protocol
    texts = [bytes(view[a : a + n]) for a, n in zip(starts.tolist(), sizes.tolist(), strict=True)]
    return [os.fsencode(public_url(os.fsdecode(text))) if b"://" in text else text for text in texts]


def _some(rows: int, each: int) -> Ints:
    return evenly(rows, max(16, MOST_BYTES // max(64, each)))


def common_folder(names: Sequence[bytes]) -> bytes:
    """What all names begin with, as far as its last `/`.

    >>> common_folder([b"data/a/1.txt", b"data/b.txt"]), common_folder([b"a.txt", b"b.txt"])
    (b'data/', b'')
    """
    if not names:
        return b""
    low, high = min(names), max(names)
    same = next((i for i, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), min(len(low), len(high)))
    return low[: low.rfind(b"/", 0, same) + 1]
