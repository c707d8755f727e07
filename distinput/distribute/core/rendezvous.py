# SPDX-License-Identifier: Apache-2.0
"""The meeting point of the replicas of one run, and the call sites by which they notice that they make different calls."""

import os
import sys
from _thread import allocate_lock
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from threading import Condition
from types import FrameType
from typing import Any

from distinput.errors import AbortedError, Mismatch
from distinput.names.lazy import dataclass

# ----------------------------------------------------------------------------
# Call sites in the user's program, by which workers notice that they make different calls that look alike.
#
# Two sums of the same shape that two workers make in opposite order differ in nothing but their places. A place is the base
# name of the file, the function and the line, since machines may have the program in different folders.
# ----------------------------------------------------------------------------


_FRAMES = 4
"""How many functions of the user's program are looked at, from the one that makes the call outwards."""
_NEAR = 2
"""How many of these functions have to be the same on all workers."""
_MAX_PATHS = 65536  # so many paths through a program are remembered
_MIX, _WORD = 0x9E3779B97F4A7C15, (1 << 64) - 1

_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


@dataclass(frozen=True, slots=True)
class CallSite:
    """The place in the program where a call is made.

    Args:
      near: a number that stands for the line of the call and the line that calls the function it is in; the same in every
        process, 0 if the place is not known.
      path: likewise for all `places`.
      places: (file, function, line), from the call outwards.
    """

    near: int = 0
    path: int = 0
    places: tuple[tuple[str, str, int], ...] = ()

    def __str__(self) -> str:
        return ", called from ".join(
            f"{os.path.basename(file)}:{line} in {name.rpartition('<locals>.')[2]}" for file, name, line in self.places
        )


UNKNOWN = CallSite()


def call_site() -> CallSite:
    """The place in the user's program that is being executed; UNKNOWN where lines have no lasting names, as in a notebook."""
    places = call_places()
    path = near = 0
    for index, place in enumerate(places):
        path = (path * _MIX ^ _number(place)) & _WORD
        near = path if index < _NEAR else near
    return CallSite(near, path, places) if places else UNKNOWN


def call_places() -> tuple[tuple[str, str, int], ...]:
    """The `places` of `call_site`, without the numbers that stand for them.

    Functions of distinput and of Python's standard library are skipped. A function that distinput calls, such as that of
    `run`, counts as the outermost one, since some replicas run on threads that do not know who called `run`.
    """
    frame: FrameType | None = sys._getframe(1)
    places: list[tuple[str, str, int]] = []
    while frame is not None and len(places) < _FRAMES:
        code = frame.f_code
        file = code.co_filename
        kind = _kinds.get(file)
        if kind is None:
            kind = _kinds[file] = _kind(file, frame)
        if kind is _NAMELESS or (places and kind is _OURS):
            break
        if kind is _USER:
            places.append((file, code.co_qualname, frame.f_lineno))
        frame = frame.f_back
    return tuple(places)


_USER, _OURS, _LIBRARY, _NAMELESS = "user", "ours", "library", "nameless"
_kinds: dict[str, str] = {}


def _kind(file: str, frame: FrameType) -> str:
    """The owner of the code in a file."""
    if file.startswith("<") or "__file__" not in frame.f_globals:  # typed in, a cell of a notebook, or given to exec
        return _NAMELESS
    inside = os.path.abspath(file)
    if inside.startswith(_PACKAGE + os.sep):
        return _USER if inside.startswith(os.path.join(_PACKAGE, "testing") + os.sep) else _OURS
    library = any(inside.startswith(folder + os.sep) for folder in _libraries() if folder)
    return _LIBRARY if library and "-packages" + os.sep not in inside else _USER


@cache
def _libraries() -> set[str]:
    """Where Python's own modules are."""
    import sysconfig  # takes as long as the rest of a strategy

    return {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")}


@lru_cache(maxsize=16384)
def _number(place: tuple[str, str, int]) -> int:
    from hashlib import blake2b  # loads OpenSSL

    file, name, line = place
    text = f"{os.path.basename(file)}\0{name}\0{line}".encode()
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "little") or 1


class CallPaths:
    """The paths through the program by which workers have come to calls that they made together.

    Some may come by one path and others by another, such as the chief from a branch of its own. Then it has to be the same
    workers every time, or they are out of step.

    Args:
      one_place: whether the line that makes the call, and the line that calls the function it is in, must be the same on all
        workers in any case.
    """

    def __init__(self, *, one_place: bool) -> None:
        self._one_place = one_place
        self._known: dict[int, int] = {}

    def difference(self, places: Sequence[tuple[int, int]]) -> str:
        """Why calls that look alike are not the same; empty if they are.

        Args:
          places: `near` and `path` of each worker's call site, zeros where they are not to be compared.
        """
        first = places[0][1]
        if all(path == first for _, path in places):
            paths = {first: (1 << len(places)) - 1}
        else:
            if self._one_place and len({near for near, _ in places if near}) > 1:
                return "made the same call, but at different places of the program"
            paths = {}
            for number, (_, path) in enumerate(places):
                paths[path] = paths.get(path, 0) | 1 << number
        if 0 in paths:
            return ""
        for path, who in paths.items():
            if self._known.get(path, who) != who:
                return "made the same call, but came there by other paths through the program than before"
        if len(self._known) > _MAX_PATHS:
            self._known.clear()
        self._known.update(paths)
        return ""


CURE = "make it at one place, or give it the same name= on all of them"


# ----------------------------------------------------------------------------
# The meeting point of the replicas of one run; no replica waits for one that never arrives.
# ----------------------------------------------------------------------------


# ---- Objects that every replica of a run asks for and replica 0 makes, such as variables created inside of `run`
#
# Replicas do not meet for it: `if self.v is None: self.v = Variable(...)` works although replicas run at the same time, and
# one of them may find the attribute set already and skip the creation.


class Creations:
    """What replica 0 has made so far, under keys from the most to the least precise.

    A replica gets what replica 0 made under the most precise of its keys; the n-th time it asks, the n-th object.

    Args:
      stopped: true while replica 0 makes nothing more: it has ended, or waits for the others.
    """

    def __init__(self, stopped: Callable[[], bool]) -> None:
        self._stopped = stopped
        self._changed = Condition()
        self._made: dict[Any, list[Any]] = {}
        self._asked: dict[tuple[int, Any], int] = {}

    def add(self, keys: Sequence[Any], made: Any) -> None:
        """Note what replica 0 has made."""
        with self._changed:
            for key in keys:
                self._made.setdefault(key, []).append(made)
            self._changed.notify_all()

    def wake(self) -> None:
        """Let those that wait look again whether replica 0 has stopped."""
        with self._changed:
            self._changed.notify_all()

    def find(self, replica: int, keys: Sequence[Any]) -> Any:
        """What replica 0 made, or makes yet, under one of these keys; None if it stopped without."""
        turns = [self._asked.get((replica, key), 0) for key in keys]
        for key, turn in zip(keys, turns, strict=True):
            self._asked[replica, key] = turn + 1
        with self._changed:
            while not self._has(keys[0], turns[0]) and not self._stopped():
                self._changed.wait()
            for key, turn in zip(keys, turns, strict=True):
                if self._has(key, turn):
                    return self._made[key][turn]
        return None

    def _has(self, key: Any, turn: int) -> bool:
        return len(self._made.get(key, ())) > turn


# ---- Where replicas meet

_RUNNING, _WAITING, _ENDED = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Arrival:
    """The call that makes a replica wait for the others; all replicas must make the same one.

    Args:
      what: the method called, with its settings.
      name: given by the user and compared instead of the call site; empty to compare call sites.
      site: the call site.
    """

    what: str
    name: str
    site: CallSite

    @classmethod
    def here(cls, what: str, name: str = "") -> "Arrival":
        """A call made by the running code, with its call site."""
        return cls(what, name, call_site())

    @property
    def place(self) -> tuple[int, int]:
        """The part of the call site that is compared; the same for all named calls."""
        return (0, 0) if self.name else (self.site.near, self.site.path)

    def __str__(self) -> str:
        name = f", name={self.name!r}" if self.name else ""
        return f"{self.what}{name}{f', at {self.site}' if self.site.places else ''}"


class Rendezvous:
    """The replicas of one run; each is running, waiting for the others, or ended.

    Replica 0 runs the merge functions on its own thread. As soon as a replica fails, or ends while others wait for it,
    all waiting replicas are released with an AbortedError, and every later meeting is refused at once.

    Args:
      replicas: how many there are.
    """

    __slots__ = (
        "_arrivals", "_broken", "_creations", "_gates", "_given", "_lock", "_parts", "_states", "_waiting", "_ways",
        "failures", "uneven",
    )  # fmt: skip

    def __init__(self, replicas: int) -> None:
        self._lock = allocate_lock()
        self._states = [_RUNNING] * replicas
        self._waiting = 0
        self._arrivals: list[Arrival | None] = [None] * replicas
        self._ways = CallPaths(one_place=True)
        self._given: list[Any] = [None] * replicas
        self._parts: list[Any] = [None] * replicas
        self._gates: list[Any] = []
        self._broken = False
        self._creations: Creations | None = None
        self.failures: list[tuple[int, BaseException]] = []
        """The replicas that failed, in order of time, without those that were merely released."""
        self.uneven = False
        """True if a replica ended while others waited for it."""

    def meet(self, index: int, arrival: Arrival, given: Any, merge: Callable[[Sequence[Any]], Any]) -> Any:
        """Wait for all replicas, then return the result of replica 0's `merge` of their values, in replica order.

        Raises:
          Mismatch: on replica 0, if the replicas made different calls.
          AbortedError: another replica failed, or ended without making the call.
        """
        with self._lock:
            if not self._broken and _ENDED in self._states:
                self.uneven = True
                self._break()
            if self._broken:
                raise AbortedError(self._reason(index))
            if not self._gates:
                self._gates = [_closed_gate() for _ in self._states]
            self._states[index] = _WAITING
            self._given[index] = given
            self._arrivals[index] = arrival
            self._waiting += 1
            if self._creations is not None and not index:
                self._creations.wake()
            complete = self._waiting == len(self._states)
            if complete and index:
                self._gates[0].release()
        if index or not complete:
            self._gates[index].acquire()
        if self._broken:
            raise AbortedError(self._reason(index))
        if index:
            return self._parts[index]
        return self._meet_all(merge)

    def _meet_all(self, merge: Callable[[Sequence[Any]], Any]) -> Any:
        """Merge on replica 0 while all others wait."""
        given, self._given = self._given, [None] * len(self._states)
        try:
            self._compare([arrival for arrival in self._arrivals if arrival is not None])
            result = merge(given)
        except BaseException as error:
            self.failed(0, error)
            raise
        with self._lock:
            self._waiting = 0
            for i in range(len(self._states)):
                self._states[i] = _RUNNING
                self._parts[i] = result
                if i:
                    self._gates[i].release()
        return result

    def _compare(self, arrivals: Sequence[Arrival]) -> None:
        first = arrivals[0]
        why, cure = "", CURE
        if any((one.what, one.name) != (first.what, first.name) for one in arrivals):
            why, cure = "must make the same call", "make the calls equal"
        elif len(arrivals) > 1:
            why = self._ways.difference([one.place for one in arrivals])
        if why:
            told = "\n".join(f"  replica {index}: {one}" for index, one in enumerate(arrivals))
            raise Mismatch(f"{first.what}: all replicas {why}; they called\n{told}\n{cure}")

    def created(self, index: int, keys: Sequence[Any], what: str, make: Callable[[], Any]) -> Any:
        """The result of `make` on replica 0; the other replicas get the same object, without calling `make`.

        Args:
          index: the replica.
          keys: what the object is recognized by, from the most to the least precise key.
          what: the object in words.
          make: called on replica 0.

        Raises:
          RuntimeError: replica 0 made no such object.
          AbortedError: replica 0 failed.
        """
        with self._lock:
            if self._creations is None:
                self._creations = Creations(lambda: self._states[0] != _RUNNING)
            creations = self._creations
        if not index:
            value = make()
            creations.add(keys, value)
            return value
        value = creations.find(index, keys)
        if value is None:
            if self.failures:
                raise AbortedError(self._reason(index))
            raise RuntimeError(
                f"Tried to create {what} with mismatching name on replica {index}: replica 0 did not create it before it "
                "ended or waited for the others; all replicas must create the same variables"
            )
        return value

    def ended(self, index: int) -> None:
        """Note that replica `index` returned."""
        with self._lock:
            self._states[index] = _ENDED
            if self._creations is not None and not index:
                self._creations.wake()
            if self._waiting and not self._broken:
                self.uneven = True
                self._break()

    def failed(self, index: int, error: BaseException) -> None:
        """Note that replica `index` raised `error`."""
        with self._lock:
            if not (self._broken and isinstance(error, AbortedError)) and all(error is not e for _, e in self.failures):
                self.failures.append((index, error))
            self._states[index] = _ENDED
            if self._creations is not None and not index:
                self._creations.wake()
            if not self._broken:
                self._break()

    def _break(self) -> None:
        """Release all waiting replicas. The caller holds the lock."""
        self._broken = True
        for i, state in enumerate(self._states):
            if state == _WAITING:
                self._states[i] = _RUNNING
                self._gates[i].release()
        self._waiting = 0

    def _reason(self, index: int) -> str:
        if self.failures:
            return f"replica {index} cannot meet the others in merge_call, because replica {self.failures[0][0]} failed"
        return (
            f"replica {index} cannot meet the others in merge_call, because another replica returned without calling it"
        )


def _closed_gate() -> Any:
    gate = allocate_lock()
    gate.acquire()
    return gate
