# SPDX-License-Identifier: Apache-2.0
"""Objects between two processes, over a socket: arrays through shared memory, functions as cloudpickle sends them."""

import importlib.util
import io
import mmap
import os
import pickle
import select
import socket
import struct
import time
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from types import CodeType
from typing import TYPE_CHECKING, Any

import numpy as np

from distinput.names.lazy import later
from distinput.values.buffers import Bytes, alone, counts_are_exact, most_in_caches

if TYPE_CHECKING:
    from distinput.kernels import spans as span_kernels
else:
    span_kernels = later("distinput.kernels.spans")  # for arrays larger than the caches

# ----------------------------------------------------------------------------
# Functions as cloudpickle sends them, with the file that they come from: tracebacks of other processes show its lines.
#
# cloudpickle 3.1.3 writes `<dynamic-code>` in its place.
# ----------------------------------------------------------------------------


@cache
def pickler() -> Any:
    """The pickler of cloudpickle, whose code objects keep the names of their files.

    Raises:
      ImportError: cloudpickle is not installed.
    """
    cloudpickle = import_module("cloudpickle")
    reduced = cloudpickle.Pickler.dispatch_table[CodeType]

    class CodePickler(cloudpickle.Pickler):  # type: ignore[misc, name-defined]
        def reducer_override(self, value: Any) -> Any:
            if type(value) is CodeType:
                return _code, (value.co_filename, *reduced(value)[:2])
            return super().reducer_override(value)

    return CodePickler


def dumps(value: Any, **options: Any) -> bytes:
    """`pickle.dumps` for what plain pickle cannot send, such as lambdas and objects of classes that have no name to import.

    Raises:
      ImportError: cloudpickle is not installed.
      Exception: the value cannot be pickled.
    """
    file = io.BytesIO()
    pickler()(file, **options).dump(value)
    return file.getvalue()


def dumps_with_buffers(value: Any) -> tuple[bytes, list[pickle.PickleBuffer]]:
    """An object for another process that runs no script of its own, and its arrays, which lie beside it.

    Plain pickle names classes; those of the main script, and of functions, are sent whole by cloudpickle if that is installed,
    which finds its own class again in what comes back.

    Raises:
      Exception: whatever pickling raises.
    """
    buffers: list[pickle.PickleBuffer] = []
    try:
        data = pickle.dumps(value, 5, buffer_callback=buffers.append)
    except (AttributeError, pickle.PicklingError):  # a class or function that has no name to import
        if not has_cloudpickle():
            raise
    else:
        if b"__main__" not in data or not has_cloudpickle():
            return data, buffers
    buffers.clear()
    return dumps(value, protocol=5, buffer_callback=buffers.append), buffers


class Packed:
    """A value as bytes.

    Args:
      data: the pickle.
      buffers: large arrays, as they lie in memory.
      kept: what the value refers to elsewhere, which lives as long as this.
      received: True if it came from another process, and so nobody else uses its memory.
    """

    __slots__ = ("buffers", "data", "kept", "received")

    def __init__(self, data: Any, buffers: list[Any], kept: Sequence[Any] = (), *, received: bool = False) -> None:
        self.data, self.buffers, self.kept, self.received = data, buffers, kept, received

    def unpacked(self) -> Any:
        """The value made again; each call makes one of its own, but for a value received, which is used once."""
        buffers = self.buffers if self.received else [bytearray(buffer) for buffer in self.buffers]
        return pickle.loads(self.data, buffers=buffers)

    @property
    def nbytes(self) -> int:
        """Its size."""
        return len(self.data) + sum(len(buffer) for buffer in self.buffers)

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        if protocol < 5:
            return _received, (bytes(self.data), [bytearray(buffer) for buffer in self.buffers])
        # Without a copy into the message that it becomes part of. Between a memoryview and its PickleBuffer stands an array,
        # into which the garbage collector does not look: of a cycle with both it would free the memory first, and Python crash.
        arrays: list[Any] = [np.frombuffer(each, np.uint8) for each in (self.data, *self.buffers)]
        data, *buffers = map(pickle.PickleBuffer, arrays)
        return _received, (data, buffers)


def _received(data: Any, buffers: list[Any]) -> Packed:
    return Packed(data, buffers, received=True)


@cache
def has_cloudpickle() -> bool:
    """Whether cloudpickle is installed."""
    return importlib.util.find_spec("cloudpickle") is not None


def _code(filename: str, make: Callable[..., CodeType], given: tuple[Any, ...]) -> CodeType:
    return make(*given).replace(co_filename=filename)


# ----------------------------------------------------------------------------
# Objects between two processes over a socket, their arrays through shared memory.
#
# A sender copies the arrays of an object into a segment of memory that both processes have mapped, and tells the other one
# where. They come out as views of it, so nothing of them is pickled; what is left of the object is a few bytes, which go
# through the socket. A segment is written again when the receiver holds no view of it any more, which its reference count
# tells, so an array that somebody keeps is never overwritten; where reference counts are not exact, the receiver copies
# instead. Segments have no name: when both processes have gone, nothing is left.
#
# Source: pickle protocol 5 with buffers out of band (PEP 574); descriptors are passed with SCM_RIGHTS.
# ----------------------------------------------------------------------------


_ALIGN = 64
_FEW = 1 << 10
"""Bytes of a pickle that go through the socket; more lie before the arrays, so that no sender has to wait for a reader."""
_LEAST = 1 << 16
_MOST_HELD = 16
"""Segments of the other process of which views may be held; what comes beyond that is copied."""
_BITS = 64
"""Segments whose use is told. While more messages are under way, each further one has a segment of its own, which is used once:
all of these have the number behind the others, the receiver copies what is in them, and nobody keeps them."""
_HEADER = struct.Struct("<qqqQq?")
"""Number of the segment and its size, both 0 for an object without one; messages received from the other process, and its
segments in use; bytes of the pickle that follows; whether a descriptor of the segment does, because it is new."""
_BRIEF, _NAP = 1e-3, 20e-6
"""Seconds. To wake a process that sleeps costs the one that writes to it, in a virtual machine as much as to copy half a
megabyte. So where the last wait was brief, the next one begins with naps, from which nobody has to wake the process."""


class Closed(ConnectionError):
    """The other process has gone."""


class _Segment:
    """Memory shared by two processes."""

    def __init__(self, number: int, descriptor: int, size: int) -> None:
        self.number, self.size = number, size
        self.sent = 0  # the message that it carried last
        mapped = mmap.mmap(descriptor, size)
        self.room = memoryview(mapped)
        self._memory = [np.frombuffer(mapped, np.uint8)]

    @property
    def memory(self) -> Bytes:
        """All of it."""
        return self._memory[0]

    @property
    def held(self) -> bool:
        """Whether an array that looks into it is alive in this process."""
        return not alone(self._memory)


def memory_file(size: int) -> int:
    """A descriptor of `size` bytes that have no name."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("distinput", os.MFD_CLOEXEC)
    else:  # macOS
        import tempfile

        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    try:
        os.ftruncate(descriptor, size)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


class SegmentConnection:
    """One end of a connection between two processes.

    Args:
      connection: a connected Unix socket.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._mine: list[_Segment] = []
        self._theirs: dict[int, _Segment] = {}
        self._sent = self._received = 0
        self._seen = 0  # of the messages sent, how many the other process had received when it wrote last
        self._in_use = 0  # which of `_mine` it held then
        self._brief = False  # whether the last wait was
        self._gives_views = counts_are_exact()
        self._poll = select.poll()
        self._poll.register(connection, select.POLLIN)

    def send(self, value: Any) -> None:
        """Hand over an object.

        Raises:
          Closed: the other process has gone.
          Exception: whatever pickling raises.
        """
        data, buffers = dumps_with_buffers(value)
        parts = [buffer.raw() for buffer in buffers]
        if len(data) > _FEW:
            parts.insert(0, memoryview(data))
            data = b""
        number = size = 0
        descriptor = None
        if parts:
            segment, descriptor = self._written(parts)
            number, size = segment.number, segment.size
        self._sent += 1
        header = _HEADER.pack(number, size, self._received, self._held(), len(data), descriptor is not None)
        try:
            self._socket.sendall(header + data)
            if descriptor is not None:
                socket.send_fds(self._socket, [b"."], [descriptor])
        except OSError as error:
            raise Closed(str(error)) from None
        finally:
            if descriptor is not None:
                os.close(descriptor)

    def receive(self, wait: Callable[[], bool] = lambda: True) -> Any:
        """The next object; its arrays are views of shared memory, unless many of them are held already.

        Args:
          wait: asked from time to time while nothing comes; False gives up.

        Raises:
          Closed: the other process has gone, or `wait` gave up.
        """
        self._await(wait)
        try:
            header = self._exactly(_HEADER.size)
            number, size, self._seen, self._in_use, length, is_new = _HEADER.unpack(header)
            data = self._exactly(length) if length else b""
            if is_new:
                _, descriptors, _, _ = socket.recv_fds(self._socket, 1, 1)
                if not descriptors:
                    raise Closed("the other process has ended")
                try:
                    self._theirs[number] = _Segment(number, descriptors[0], size)
                finally:
                    os.close(descriptors[0])
        except OSError as error:
            raise Closed(str(error)) from None
        self._received += 1
        parts = self._read(self._theirs[number]) if size else []
        self._theirs.pop(_BITS, None)  # used once
        return pickle.loads(data, buffers=parts) if data else pickle.loads(memoryview(parts[0]), buffers=parts[1:])

    @property
    def ready(self) -> bool:
        """Whether something has come."""
        return bool(self._poll.poll(0))

    def close(self) -> None:
        """Close the connection; views of what came stay valid."""
        self._socket.close()
        self._mine.clear()
        self._theirs.clear()

    def _await(self, wait: Callable[[], bool]) -> None:
        """Return when something has come."""
        poll, clock = self._poll.poll, time.perf_counter
        if poll(0):
            return
        begin = clock()
        while self._brief and clock() < begin + _BRIEF:
            time.sleep(_NAP)
            if poll(0):
                return
        while not poll(100):
            if not wait():
                raise Closed("gave up waiting")
        self._brief = clock() < begin + _BRIEF

    def _exactly(self, size: int) -> bytes:
        data = self._socket.recv(size, socket.MSG_WAITALL)
        if len(data) < size:
            raise Closed("the other process has ended")
        return data

    def _held(self) -> int:
        """Which segments of the other process are in use here, as bits."""
        held = 0
        for segment in self._theirs.values():
            if self._gives_views and segment.number < _BITS and segment.held:
                held |= 1 << segment.number
        return held

    def _read(self, segment: _Segment) -> list[Any]:
        many = len(self._theirs) >= _MOST_HELD and sum(other.held for other in self._theirs.values()) >= _MOST_HELD
        copies = many or segment.number >= _BITS or not self._gives_views
        (count,) = struct.unpack_from("<q", segment.room, 0)
        place = aligned(8 + 8 * count)
        parts: list[Any] = []
        for length in struct.unpack_from(f"<{count}q", segment.room, 8):
            part = segment.memory[place : place + length]
            parts.append(part.copy() if copies else part)
            place += aligned(length)
        return parts

    def _written(self, parts: list[memoryview]) -> tuple[_Segment, int | None]:
        """A segment that holds the parts, and its descriptor if the other process does not have it yet."""
        lengths = [part.nbytes for part in parts]
        place = aligned(8 + 8 * len(parts))
        segment, descriptor = self._room(place + sum(map(aligned, lengths)))
        segment.sent = self._sent + 1
        room = segment.room
        struct.pack_into(f"<{1 + len(parts)}q", room, 0, len(parts), *lengths)
        for part, length in zip(parts, lengths, strict=True):
            copy_to_other(room[place : place + length], part)
            place += aligned(length)
        return segment, descriptor

    def _room(self, size: int) -> tuple[_Segment, int | None]:
        """A segment that may be written, and its descriptor if the other process does not have it yet."""
        free = [s for s in self._mine if s.sent <= self._seen and not self._in_use >> s.number & 1]
        for segment in free:
            if segment.size >= size:
                return segment, None
        # One that is free and too small is replaced, by the other process as well when it is told of the new one.
        number = free[0].number if free else len(self._mine)
        capacity = max(_LEAST, 1 << (size - 1).bit_length())
        descriptor = memory_file(capacity)
        try:
            segment = _Segment(number, descriptor, capacity)
        except OSError:
            os.close(descriptor)
            raise
        if number < _BITS:
            self._mine[number : number + 1] = [segment]
        return segment, descriptor


def copy_to_other(out: memoryview, part: memoryview) -> None:
    """Copy bytes to as many that another process reads: past the caches, if these hold less than both and what it reads now."""
    if part.nbytes > most_in_caches() // 2:
        span_kernels.copy_past_caches(np.frombuffer(part, np.uint8), np.frombuffer(out, np.uint8), 0)
    else:
        out[:] = part


def aligned(size: int) -> int:
    """The next size at which an array may begin."""
    return -(-size // _ALIGN) * _ALIGN
