# SPDX-License-Identifier: Apache-2.0
"""Call sites in the user's program, by which workers notice that they make different calls that look alike.

Two sums of the same shape that two workers make in opposite order differ in nothing but their places. A place is the base
name of the file, the function and the line, since machines may have the program in different folders.
"""

import os
import sys
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from types import FrameType

__all__ = ["CURE", "UNKNOWN", "CallPaths", "CallSite", "call_site"]

_FRAMES = 4
"""How many functions of the user's program are looked at, from the one that makes the call outwards."""
_NEAR = 2
"""How many of these functions have to be the same on all workers."""
_MAX_PATHS = 65536  # so many paths through a program are remembered
_MIX, _WORD = 0x9E3779B97F4A7C15, (1 << 64) - 1

_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_LIBRARIES = tuple({sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")})


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
    """The place in the user's program that is being executed; UNKNOWN where lines have no lasting names, as in a notebook.

    Functions of distinput and of Python's standard library are skipped. A function that distinput calls, such as that of
    `run`, counts as the outermost one, since some replicas run on threads that do not know who called `run`.
    """
    frame: FrameType | None = sys._getframe(1)
    places: list[tuple[str, str, int]] = []
    path = near = 0
    while frame is not None and len(places) < _FRAMES:
        code = frame.f_code
        file = code.co_filename
        kind = _kinds.get(file)
        if kind is None:
            kind = _kinds[file] = _kind(file, frame)
        if kind is _NAMELESS or (places and kind is _OURS):
            break
        if kind is _USER:
            place = (file, code.co_qualname, frame.f_lineno)
            path = (path * _MIX ^ _number(place)) & _WORD
            places.append(place)
            if len(places) <= _NEAR:
                near = path
        frame = frame.f_back
    return CallSite(near, path, tuple(places)) if places else UNKNOWN


_USER, _OURS, _LIBRARY, _NAMELESS = "user", "ours", "library", "nameless"
_kinds: dict[str, str] = {}


def _kind(file: str, frame: FrameType) -> str:
    """The owner of the code in a file."""
    if file.startswith("<") or "__file__" not in frame.f_globals:  # typed in, a cell of a notebook, or given to exec
        return _NAMELESS
    inside = os.path.abspath(file)
    if inside.startswith(_PACKAGE + os.sep):
        return _USER if inside.startswith(os.path.join(_PACKAGE, "testing") + os.sep) else _OURS
    library = any(inside.startswith(folder + os.sep) for folder in _LIBRARIES if folder)
    return _LIBRARY if library and "-packages" + os.sep not in inside else _USER


@lru_cache(maxsize=16384)
def _number(place: tuple[str, str, int]) -> int:
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
