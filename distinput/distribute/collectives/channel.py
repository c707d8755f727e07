# SPDX-License-Identifier: Apache-2.0
"""The interface of an engine, on which `Collectives` is built: operations on bytes; arrays and records of calls as bytes."""

import json
import math
import struct
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Protocol, TypeAlias

import numpy as np

from distinput.names.lazy import dataclass
from distinput.values.leaves import dtype_code

# ----------------------------------------------------------------------------
# The interface of an engine on which `Collectives` is built: operations on bytes, and a status board.
#
# A channel never sees a call that could go wrong: `Collectives` has compared sizes, dtypes and operations before. So an
# engine of your own needs no checks of its arguments. It has to
#
# * start operations without blocking, and let `Handle.wait` wait no longer than it is told;
# * raise `ChannelLost` for whatever failure its transport reports; `Collectives` finds out which worker is at fault;
# * carry a short status of each worker to all others, beside the operations (`StatusBoard`).
#
# `distinput.distribute.engines.local.LocalChannel` is the shortest implementation to read, and
# `distinput.testing.check_collectives` tests a new one.
# ----------------------------------------------------------------------------


Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Bytes: TypeAlias = np.ndarray[Any, np.dtype[np.uint8]]


class ChannelLost(Exception):
    """Raised by a channel when its transport reports a failure.

    Users never see it: `Collectives` turns it into one of the errors in `distinput.errors`, which names the worker at fault.
    """


class Handle(Protocol):
    """One operation that has been started and may not be complete yet."""

    def wait(self, seconds: float) -> bool:
        """Wait for the operation, but no longer than this.

        Args:
          seconds: at least 0; with 0 the method only looks.

        Returns:
          True when the operation is complete; further calls return True at once.

        Raises:
          ChannelLost: it will never be complete.
        """

    def value(self) -> Any:
        """The result, in memory that nobody else uses; called only after `wait` returned True."""


class DeviceOperations(Protocol):
    """Operations on arrays of a library, on the devices where they are; what a channel returns from `on_devices`.

    As for a channel: every worker starts the same operations in the same order, and what could go wrong was compared before.
    """

    kind: str
    """The library and the kind of device, such as "torch cuda", the same on all workers; compared before each operation."""

    def reducible(self, dtype: str) -> bool:
        """True if `all_reduce` adds arrays of a dtype, in any order of workers."""

    def all_gather(self, flat: Any, sizes: Sequence[int]) -> Handle:
        """Gather from every worker as many items as it has.

        Args:
          flat: [sizes[rank]], of the same dtype on all workers.
          sizes: how many items each worker has, the same on all; 0 is allowed.

        Returns:
          A handle whose value is a list of [sizes[i]], in rank order, on this worker's device.
        """

    def all_reduce(self, flat: Any) -> Handle:
        """Add arrays.

        Args:
          flat: [n]; n and the dtype, which is reducible, are the same on all workers.

        Returns:
          A handle whose value is [n], on this worker's device and in new memory.
        """


class StatusBoard(Protocol):
    """One short text for each worker, which all others can read at any time, even while they wait in an operation.

    It is how workers learn why another one has stopped. `publish` and `read` may be called from any thread. They return
    within about a millisecond, with what is known by then, and raise `ChannelLost` when the board cannot be reached.
    """

    @property
    def host_rank(self) -> int | None:
        """The worker whose exit takes the board away; None if no worker hosts it."""

    def publish(self, status: str) -> None:
        """Replace this worker's status, a text of a few kilobytes."""

    def read(self) -> Mapping[int, str]:
        """The latest known status of each other worker, by rank; workers that have published none are left out."""

    def close(self) -> None:
        """Release what the board holds; this worker neither publishes nor reads any more."""


class Channel(Protocol):
    """A connection of this worker to all others; every worker starts the same operations in the same order.

    Operations are started by one thread at a time. `post_sum` is a stream of its own: it may be called by another thread,
    and its operations complete independently of the others, in the order in which they were posted.

    A method `on_devices(ops, device)` is optional. It returns `DeviceOperations` for the arrays of a library (`ArrayOps`) on a
    device of this worker, None if there are none. Without them, values on devices pass the host.

    Nothing may keep a reference to the arrays that are given once the operation is complete, and operations must not
    change them, except that `broadcast` may use its buffer. Arrays are one-dimensional and C-contiguous.
    """

    rank: int
    """The number of this worker, from 0."""
    size: int
    """The number of workers."""
    reducible: Mapping[str, frozenset[str]]
    """For each operation ("sum", "prod", "min", "max") the names of the dtypes that `all_reduce` supports, such as "float32".

    The result must be the same on all workers, bit for bit, and equal NumPy's, up to the order of a float sum or product.
    All other dtypes are gathered and reduced by NumPy in rank order, so an empty mapping is always right."""
    post_is_cheap: bool
    """Whether `post_sum` takes no longer than waking another thread does; if not, a background thread calls it."""

    @property
    def status_board(self) -> StatusBoard:
        """The board shared by this channel and all that `dup` made from it."""

    def all_gather(self, mine: Bytes) -> Handle:
        """Gather equally many bytes from every worker.

        Args:
          mine: [n], n the same on all workers.

        Returns:
          A handle whose value is [size, n], in rank order.
        """

    def all_gather_uneven(self, mine: Bytes, sizes: Sequence[int]) -> Handle:
        """Gather from every worker as many bytes as it has.

        Args:
          mine: [sizes[rank]].
          sizes: how many bytes each worker has, the same on all; 0 is allowed.

        Returns:
          A handle whose value is a list of [sizes[i]], in rank order.
        """

    def all_reduce(self, values: Array, op: str) -> Handle:
        """Reduce arrays element by element.

        Args:
          values: [n]; n and dtype are the same on all workers, and `reducible[op]` has the dtype.
          op: "sum", "prod", "min" or "max"; integers wrap around.

        Returns:
          A handle whose value is [n], the same on all workers.
        """

    def broadcast(self, values: Bytes, root: int) -> Handle:
        """Send the bytes of one worker to all.

        Args:
          values: [n] to be sent on the root; a buffer of the same size, which may be overwritten, on the others.
          root: the rank that sends.

        Returns:
          A handle whose value is [n], the bytes of the root.
        """

    def post_sum(self, values: Array) -> Handle:
        """Start to sum integers over all workers, on a stream of operations of its own, without blocking.

        Args:
          values: int64 [n], n the same on all workers.

        Returns:
          A handle whose value is int64 [n]. It may be waited for by any thread, long after it was posted.
        """

    def dup(self, name: str, timeout: float) -> "Channel":
        """Another channel between the same workers, whose operations do not interfere with those of this one.

        Args:
          name: the same on all workers, and not used for another channel of theirs.
          timeout: seconds to wait for the others.

        Raises:
          ChannelLost: the others did not come.
        """

    def close(self, *, broken: bool) -> None:
        """Release everything, without waiting for any other worker.

        Args:
          broken: there may be operations under way that will never complete.
        """


# ---- Reductions in rank order by NumPy: the reference for `all_reduce` on every engine

OPS: dict[str, np.ufunc] = {"max": np.maximum, "min": np.minimum, "prod": np.multiply, "sum": np.add}


def check_reducible(dtype: np.dtype[np.generic], op: str) -> None:
    """Raise if `op` is not defined for a dtype.

    Raises:
      ValueError: an unknown operation.
      TypeError: not numbers, or a sum or product of bools.
    """
    if op not in OPS:
        raise ValueError(f"all_reduce: op must be one of {', '.join(sorted(OPS))}, got {op!r}")
    if dtype.kind == "b" and op in ("prod", "sum"):
        raise TypeError(f"all_reduce: op {op!r} needs numbers, got bool; use 'min' (all), 'max' (any), or integers")
    if not _has_loop(dtype, op):
        raise TypeError(f"all_reduce: op {op!r} needs numbers, got {dtype}; use all_gather")


@cache
def _has_loop(dtype: np.dtype[np.generic], op: str) -> bool:
    if dtype.kind not in "biufcV" or dtype.names is not None:
        return False
    one = np.zeros(1, dtype)
    try:
        return bool(OPS[op](one, one).dtype == dtype)
    except TypeError:
        return False


def fold(parts: Sequence[Array], op: str) -> Array:
    """((parts[0] op parts[1]) op parts[2]) ..., element by element, in a fresh array; integers wrap around.

    Args:
      parts: arrays of one shape and dtype, in rank order.
      op: a key of `OPS`.

    >>> fold([np.array([250, 1], "u1"), np.array([10, 2], "u1")], "sum")
    array([4, 3], dtype=uint8)
    """
    shape = parts[0].shape
    # At least one axis, since NumPy scalars warn when they wrap around and arrays do not.
    result = parts[0].reshape(-1).copy()
    with np.errstate(all="ignore"):
        for part in parts[1:]:
            OPS[op](result, part.reshape(-1), out=result)
    return result.reshape(shape)


def native_view(values: Array, op: str) -> Array:
    """The same bytes as a dtype that more engines support, if reducing that gives the same bytes.

    Sums of unsigned integers are those of signed ones; sums of complex numbers are those of their two parts.

    >>> native_view(np.array([1, 2], "u4"), "sum").dtype
    dtype('int32')
    """
    if values.dtype.kind == "u" and op in ("prod", "sum"):
        return values.view(f"i{values.dtype.itemsize}")
    if values.dtype.kind == "c" and op == "sum":
        return values.view(f"f{values.dtype.itemsize // 2}")
    return values


# ----------------------------------------------------------------------------
# The fixed-size record that workers exchange before a call, so that mismatched calls do no harm.
#
# When arrays differ in size, bare engines return garbage or end the process. So every worker first says what it is about to
# do; if that differs, all of them see the same records, exchange descriptions of their calls, and raise. A small array
# travels inside the record, and then nothing else has to be sent.
# ----------------------------------------------------------------------------


# magic, version, refused, length of `same`, of `about`, number, bytes, near, path
_HEAD = struct.Struct("<2sBBHHQQQQ")
_VERSION = 2
_SAME, ABOUT = 128, 104
_TEXT_BYTES = 1024
INLINE = 128
"""The largest size in bytes of an array that travels inside the record."""
RECORD = _HEAD.size + _SAME + ABOUT + INLINE
"""The size of a record in bytes."""


@dataclass(frozen=True)
class Purpose:
    """The purpose of a call, for callers that know more than the call itself shows.

    Args:
      text: what has to be equal on all workers, such as "reduce SUM, axis=0".
      given: a description of this worker's values, for messages only.
    """

    text: str
    given: Callable[[], str] = str


@dataclass(frozen=True)
class CallRecord:
    """The call that one worker is about to make.

    Args:
      number: how many calls it has made on this group before.
      same: what has to be equal on all workers, as readable text.
      about: dtype and shape of its own array (`describe`).
      nbytes: how many bytes it will send.
      refused: its call cannot be made, so the others must not wait for it.
      inline: the array itself, if it is small.
      near: that of its `CallSite`, 0 where call sites are not compared.
      path: likewise.
    """

    number: int
    same: str
    about: str = ""
    nbytes: int = 0
    refused: bool = False
    inline: bytes = b""
    near: int = 0
    path: int = 0

    def encode(self) -> Bytes:
        """[RECORD] bytes."""
        same, about = _fit(self.same.encode(), _SAME), _fit(self.about.encode(), ABOUT)
        record = np.zeros(RECORD, np.uint8)
        head = _HEAD.pack(
            b"di", _VERSION, self.refused, len(same), len(about), self.number, self.nbytes, self.near, self.path
        )
        parts = head + same.ljust(_SAME, b"\0") + about.ljust(ABOUT, b"\0") + self.inline
        record[: len(parts)] = np.frombuffer(parts, np.uint8)
        return record

    @classmethod
    def decode(cls, record: Bytes) -> "CallRecord":
        """The record that `encode` wrote on another worker.

        Raises:
          ValueError: the record is of another version of distinput.
        """
        data = record.tobytes()
        magic, version, refused, same, about, number, nbytes, near, path = _HEAD.unpack_from(data)
        if magic != b"di" or version != _VERSION:
            raise ValueError("all workers must run the same version of distinput, got a record of another one")
        at = _HEAD.size
        inline = at + _SAME + ABOUT
        return cls(
            number,
            data[at : at + same].decode(errors="replace"),
            data[at + _SAME : at + _SAME + about].decode(errors="replace"),
            nbytes,
            bool(refused),
            data[inline : inline + nbytes] if nbytes <= INLINE else b"",
            near,
            path,
        )


def _fit(text: bytes, room: int) -> bytes:
    """The text, or its beginning and a digest of all of it, so that different texts stay different."""
    if len(text) <= room:
        return text
    from hashlib import blake2b  # loads OpenSSL

    digest = blake2b(text, digest_size=8).hexdigest().encode()
    return text[: room - len(digest) - 3] + b".. " + digest


def encode_text(text: str) -> Bytes:
    """A text as [1024] bytes, cut off if it is longer."""
    return np.frombuffer(text.encode()[:_TEXT_BYTES].ljust(_TEXT_BYTES, b"\0"), np.uint8)


def decode_text(data: Bytes) -> str:
    """The text that `encode_text` wrote."""
    return data.tobytes().rstrip(b"\0").decode(errors="replace")


def list_by_rank(texts: Sequence[str]) -> str:
    """Lines that say who called what, with equal neighbours in one line.

    >>> print(list_by_rank(["barrier", "barrier", "all_reduce sum <f4 3"]))
      ranks 0-1: barrier
      rank 2: all_reduce sum <f4 3
    """
    lines: list[tuple[int, int, str]] = []
    for rank, text in enumerate(texts):
        if lines and lines[-1][2] == text:
            lines[-1] = (lines[-1][0], rank, text)
        else:
            lines.append((rank, rank, text))
    return "\n".join(f"  rank {a}: {text}" if a == b else f"  ranks {a}-{b}: {text}" for a, b, text in lines)


# ----------------------------------------------------------------------------
# Arrays as bytes, without pickle: a short text that says dtype and shape, and the contents.
#
# Numbers, dates, fixed-width strings and the extension dtypes of `ml_dtypes` travel as they lie in memory; object arrays of
# bytes and str travel as lengths followed by contents. Nothing that is received is executed.
# ----------------------------------------------------------------------------


_TEXT = np.uint64(1 << 63)  # in a length: the contents are str, not bytes


def as_array(value: Any, call: str) -> Array:
    """A value as a C-contiguous array in this machine's byte order that can be sent; 0-d stays 0-d.

    Args:
      value: an array, or what NumPy makes one of.
      call: who sends it, for messages.

    Raises:
      TypeError: it holds Python objects other than bytes and str, or has fields.
    """
    array = np.asarray(value, order="C")  # not ascontiguousarray, which sequence () into (1,)
    if array.dtype.names is not None or (array.dtype.kind == "V" and not _is_extension(array.dtype)):
        raise TypeError(f"{call}: needs numbers, dates, bytes or str, got {array.dtype}; send the fields one by one")
    if array.dtype.kind == "O":
        for item in array.reshape(-1):
            if not isinstance(item, bytes | str):
                raise TypeError(
                    f"{call}: an object array may hold bytes and str only, got {type(item).__name__}; "
                    "turn it into numbers or bytes first"
                )
    if array.dtype.kind == "T":
        return _plain_text(array, call)
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _plain_text(array: Array, call: str) -> Array:
    """Text of variable width without a value for what is missing, which other workers would not know.

    Raises:
      TypeError: some of the text is missing.
    """
    text = array.astype(object)
    for item in text.reshape(-1):
        if not isinstance(item, str):
            raise TypeError(f"{call}: an array of text may hold str only, got {item!r}; replace what is missing first")
    return text.astype("T")


def _is_extension(dtype: np.dtype[np.generic]) -> bool:
    """Whether NumPy finds the dtype by its name, as it does those of `ml_dtypes`."""
    try:
        return np.dtype(dtype.name) == dtype
    except TypeError:
        return False


def family(dtype: np.dtype[np.generic]) -> str:
    """The part of a dtype that all workers must share to gather arrays: everything but the width of strings.

    >>> family(np.dtype("S5")), family(np.dtype("f4"))
    ('bytes', 'float32')
    """
    return {"S": "bytes", "U": "str", "O": "object", "T": "text"}.get(dtype.kind, dtype.name)


def describe(array: Array) -> str:
    """Dtype and shape as text, for `parse`.

    >>> describe(np.zeros((2, 3), "f4"))
    '<f4 2,3'
    """
    return f"{dtype_code(array.dtype)} {','.join(map(str, array.shape))}"


def parse(text: str) -> tuple[np.dtype[np.generic], tuple[int, ...]]:
    """The dtype and shape that `describe` wrote.

    Raises:
      TypeError: this process does not know the dtype.
    """
    code, _, shape = text.partition(" ")
    try:
        dtype = np.dtype(code)
    except TypeError as error:
        raise TypeError(f"broadcast: the dtype {code!r} of the root is not known here; import ml_dtypes") from error
    return dtype, tuple(int(n) for n in shape.split(",") if n)


def to_bytes(array: Array) -> Bytes:
    """The contents of an array from `as_array`; a view where possible."""
    if array.dtype.kind not in "OT":
        return array.reshape(-1).view(np.uint8)
    items = array.reshape(-1).tolist()
    lengths = np.zeros(len(items), np.uint64)
    for i, item in enumerate(items):
        if isinstance(item, str):
            items[i] = item.encode()
            lengths[i] = _TEXT
    lengths |= np.fromiter(map(len, items), np.uint64, len(items))
    return np.frombuffer(lengths.tobytes() + b"".join(items), np.uint8)


def from_bytes(data: Bytes, dtype: np.dtype[np.generic], shape: tuple[int, ...]) -> Array:
    """A new, writable, C-contiguous array from what `to_bytes` returned."""
    if dtype.kind not in "OT":
        array = np.empty(shape, dtype)
        if array.size and dtype.itemsize:
            array.reshape(-1).view(np.uint8)[:] = data
        return array
    count = math.prod(shape)
    lengths = data[: 8 * count].copy().view(np.uint64)
    is_text = (lengths & _TEXT).astype(bool).tolist()
    contents = data[8 * count :].tobytes()
    result = np.empty(count, object)
    at = 0
    for i, length in enumerate((lengths & ~_TEXT).tolist()):
        item = contents[at : at + length]
        result[i] = item.decode() if is_text[i] else item
        at += length
    return result.reshape(shape).astype(dtype, copy=False)


# ---- A small JSON value and several arrays as one array of bytes, to be sent to other workers in one call


def packed(note: Any, arrays: Sequence[Array]) -> Bytes:
    """A JSON value and arrays (of numbers, dates, bytes or str) as bytes [n].

    Raises:
      TypeError: an array holds other objects, or the note is not JSON.

    >>> import numpy as np
    >>> unpacked(packed({"from": 1}, [np.arange(3), np.array([b"a"], dtype=object)]))
    ({'from': 1}, [array([0, 1, 2]), array([b'a'], dtype=object)])
    """
    sent = [as_array(array, "exchange") for array in arrays]
    contents = [to_bytes(array) for array in sent]
    heads = [[describe(array), len(data)] for array, data in zip(sent, contents, strict=True)]
    head = json.dumps({"note": note, "arrays": heads}).encode()
    begin = np.frombuffer(len(head).to_bytes(8, "little") + head, np.uint8)
    return np.concatenate([begin, *contents])


def unpacked(data: Bytes) -> tuple[Any, list[Array]]:
    """The value and the arrays that `packed` was given."""
    at = 8 + int.from_bytes(data[:8].tobytes(), "little")
    head = json.loads(data[8:at].tobytes())
    arrays = []
    for about, nbytes in head["arrays"]:
        arrays.append(from_bytes(data[at : at + nbytes], *parse(about)))
        at += nbytes
    return head["note"], arrays
