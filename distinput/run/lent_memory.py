# SPDX-License-Identifier: Apache-2.0
"""Arrays for another process of this machine that is reached through a cluster: it maps the memory in which they lie.

One process writes values into rooms, and whoever gets the news of them, however it travels, opens the rooms through `/proc`. A
room has no name and ends with the processes that have it, so nothing stays of one that was killed. A room that nobody reads
any more is written again: new memory costs ten times what a copy into used memory does.
"""

import mmap
import os
import pickle
from collections import OrderedDict, deque
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple
from weakref import finalize

import numpy as np

from distinput.run.segments import aligned, copy_to_other, dumps_with_buffers, memory_file
from distinput.values.buffers import FEWEST_BYTES, Array, Bytes, alone, counts_are_exact

_ROOM, _MOST_KEPT = 4 << 20, 128 << 20
"""Bytes of a room unless an array needs more, and of those that are kept to be written again: what a worker has under way."""

_HEADER = 64
"""Bytes: whether somebody reads the room, and how many messages have ended, each a number of eight."""

_OVER = -1
"""In the place of that number: the room is not written again."""

_SETTLED = 0.01
"""Seconds after which all processors have seen what one has written."""

_FORKS = [0]
"""How often this process was forked: a child has the views of its parent, which nobody counts."""


class UnseenError(LookupError):
    """Memory of another process is gone, or is not to be seen here."""


class Stored(NamedTuple):
    """A value in rooms.

    Args:
      data: its pickle.
      parts: number of the room, offset and length of each of its arrays.
    """

    data: bytes
    parts: list[tuple[int, int, int]]


class RoomPlace(NamedTuple):
    """Where a room is found."""

    process: int
    descriptor: int
    device: int
    inode: int
    size: int


@cache
def machine() -> str:
    """What processes have in common that can lend each other memory; empty where none can."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')} {os.getuid()}" if hasattr(os, "memfd_create") else ""
    except OSError:
        return ""


class _Room:
    """Memory that this process writes."""

    def __init__(self, size: int) -> None:
        self._descriptor = memory_file(size)
        status = os.fstat(self._descriptor)
        self.place = RoomPlace(os.getpid(), self._descriptor, status.st_dev, status.st_ino, size)
        self._mapped = mmap.mmap(self._descriptor, size)
        self.memory = memoryview(self._mapped)
        self.header = np.frombuffer(self._mapped, np.int64, 2)
        # Memory of arrays that were made here, each in a list, so that `alone` can tell.
        self.slots: list[list[Bytes]] = []
        self.retired = 0.0

    def retire(self) -> None:
        """End a message: who comes for it from now on finds another one."""
        self.header[1] += 1
        self.retired = monotonic()

    @property
    def is_free(self) -> bool:
        """Whether nobody reads the last message, and nobody can begin to.

        Who came for it at the moment when it ended may have found it, and his mark may not be seen here yet, since processors
        delay what they write. That is over long before the time that is waited for.
        """
        return not self.header[0] and monotonic() > self.retired + _SETTLED

    @property
    def is_held(self) -> bool:
        """Whether this process itself has an array that was made here."""
        return not all(map(alone, self.slots))

    def __del__(self) -> None:
        if hasattr(self, "header") and self.place.process == os.getpid():  # a child shares what is written
            self.header[1] = _OVER
        if hasattr(self, "_descriptor"):
            os.close(self._descriptor)


_KEPT: deque[_Room] = deque()


def _room_for(size: int) -> _Room:
    for _ in range(len(_KEPT)):
        try:
            room = _KEPT.popleft()
        except IndexError:
            break
        if room.place.size >= size and room.is_free:
            return room
        _KEPT.append(room)
    return _Room(max(_ROOM, 1 << (size - 1).bit_length()))


class Lent:
    """Rooms with values, for whom it was sent to by pickle. They are written again when nobody has this, or views of them."""

    def __init__(self) -> None:
        self._rooms: list[_Room] = []
        self._end = 0
        # Those not put yet by their address, each with its room and offset; apart, those of arrays that nobody drops.
        self._slots: dict[int, tuple[list[Bytes], int, int]] = {}
        self._final: dict[int, tuple[list[Bytes], int, int]] = {}

    def __bool__(self) -> bool:
        return bool(self._rooms)

    def put(self, value: Any) -> Stored:
        """Write the arrays of a value, but for those that lie in memory from `empty`.

        Raises:
          Exception: whatever pickling raises.
        """
        data, buffers = dumps_with_buffers(value)
        return Stored(data, [self._placed(buffer.raw()) for buffer in buffers])

    def _placed(self, part: memoryview) -> tuple[int, int, int]:
        # A slot is given once: of two arrays over the same memory, the reader may change one.
        place = _address(part) if part.nbytes and (self._slots or self._final) else 0
        slot = self._final.pop(place, None) or self._slots.pop(place, None)
        if slot is not None and part.nbytes <= slot[0][0].nbytes:
            return *slot[1:], part.nbytes
        number, begin = self._room_of(part.nbytes)
        copy_to_other(self._rooms[number].memory[begin : begin + part.nbytes], part)
        return number, begin, part.nbytes

    def keep(self, arrays: Iterable[Array], most: int) -> bool:
        """Whether all but `most` bytes of arrays lie in memory from `empty`. If so, they stay there until `put` gets them."""
        left, found = -most, {}
        for array in arrays:
            left += array.nbytes
            place = array.__array_interface__["data"][0]
            if place in self._slots and array.flags.c_contiguous:
                found[place] = array.nbytes
        if left > sum(found.values()):
            return False
        self._final.update({place: self._slots.pop(place) for place in found})
        return True

    def _room_of(self, nbytes: int) -> tuple[int, int]:
        if not self._rooms or self._end + nbytes > self._rooms[-1].place.size:
            self._rooms.append(_room_for(_HEADER + nbytes))
            self._end = _HEADER
        begin = self._end
        self._end += aligned(nbytes)
        return len(self._rooms) - 1, begin

    def empty(self, nbytes: int) -> Bytes | None:
        """Memory for an array that is put later or dropped; None: those that are not put have as much as they may."""
        left = _ROOM
        for held, _, _ in self._slots.values():
            left -= held[0].nbytes
            if nbytes <= held[0].nbytes <= 2 * nbytes and alone(held):
                return held[0]
        if nbytes > left or not counts_are_exact():
            return None
        try:
            number, begin = self._room_of(nbytes)
        except OSError:  # by a limit of files' sizes
            return None
        # Through a memoryview: the base of a view of a view is the array that owns the memory.
        made = [np.frombuffer(self._rooms[number].memory[begin : begin + nbytes], np.uint8)]
        self._slots[_address(made[0])] = made, number, begin
        self._rooms[number].slots.append(made)
        return made[0]

    def remembers(self, buffer: Any) -> bool:
        """Whether this is memory from `empty` that was not put yet."""
        return any(held[0] is buffer for held, _, _ in self._slots.values())

    @property
    def places(self) -> list[tuple[RoomPlace, int]]:
        """Each room, and the number of its message."""
        return [(room.place, int(room.header[1])) for room in self._rooms]

    def __reduce__(self) -> Any:
        return _Borrowed, (self.places,)

    def __del__(self) -> None:
        own = [room for room in self._rooms if room.place.process == os.getpid()]
        for room in own:
            room.retire()
            if not room.is_held:
                room.slots.clear()
                _KEPT.append(room)
        while sum([room.place.size for room in list(_KEPT)]) > _MOST_KEPT:
            try:
                _KEPT.popleft()
            except IndexError:
                break


def _address(part: Any) -> int:
    return int(np.frombuffer(part, np.uint8).__array_interface__["data"][0])


class _Borrowed:
    """What a `Lent` is at another process."""

    def __init__(self, places: list[tuple[RoomPlace, int]]) -> None:
        self.places = places

    def __bool__(self) -> bool:
        return bool(self.places)


class _Mapping:
    """A room of another process."""

    def __init__(self, place: RoomPlace) -> None:
        try:
            descriptor = os.open(f"/proc/{place.process}/fd/{place.descriptor}", os.O_RDWR)
            try:
                status = os.fstat(descriptor)
                if (status.st_dev, status.st_ino, status.st_size) != place[2:]:
                    raise UnseenError("the memory of another process is gone")
                self._mapped = mmap.mmap(descriptor, place.size)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise UnseenError(f"the memory of another process cannot be opened: {error}") from error
        self._header = np.frombuffer(self._mapped, np.int64, 2)

    @property
    def is_over(self) -> bool:
        """Whether no message will come in the room."""
        return bool(self._header[1] == _OVER)

    def taken(self, message: int) -> memoryview:
        """A message, which stays as long as somebody has a view of it."""
        self._header[0] = 1  # before the look at what it is
        if self._header[1] != message:
            raise UnseenError("the memory of another process has another message")
        array: Any = np.frombuffer(self._mapped, np.uint8)
        finalize(array, _give_back, self._header, _FORKS[0]).atexit = False
        return memoryview(array)


def _give_back(header: Any, forks: int) -> None:
    if forks == _FORKS[0]:
        header[0] = 0


class Borrower:
    """Rooms of other processes that are mapped here, the last ones.

    Args:
      most: so many that are still written; the memory of others stays as long as somebody has a view of it.
    """

    def __init__(self, most: int) -> None:
        self._most, self._known = most, OrderedDict[RoomPlace, _Mapping]()

    def taken(self, lent: Any) -> "list[memoryview]":
        """The rooms of a `Lent` that was sent here.

        Raises:
          UnseenError: its process has ended, is elsewhere, or has written something else there.
        """
        for place in [place for place, mapping in self._known.items() if mapping.is_over]:
            del self._known[place]  # else the system would keep their memory
        views = []
        for place, message in lent.places:
            mapping = self._known.pop(place, None) or _Mapping(place)
            self._known[place] = mapping
            if len(self._known) > self._most:
                self._known.popitem(last=False)
            views.append(mapping.taken(message))
        return views


def value_of(stored: Stored, views: Sequence[memoryview]) -> Any:
    """A value in rooms; its large arrays are views of them.

    Small ones are copied: who keeps the labels of all images would keep the images too.
    """
    buffers = [views[room][begin : begin + length] for room, begin, length in stored.parts]
    copied = [bytearray(each) if len(each) < FEWEST_BYTES else each for each in buffers]
    return pickle.loads(stored.data, buffers=copied)


def _before_fork() -> None:
    _FORKS[0] += 1


if hasattr(os, "register_at_fork"):  # there is none on Windows, nor a fork
    os.register_at_fork(before=_before_fork, after_in_child=_KEPT.clear)
