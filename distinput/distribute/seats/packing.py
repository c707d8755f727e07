# SPDX-License-Identifier: Apache-2.0
"""How functions, arguments and results travel to the seats: as they are in one process, as bytes between processes."""

import hashlib
import importlib.util
import io
import pickle
import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import Any

from distinput.distribute.seats.links import pickled_with
from distinput.errors import importing
from distinput.names.lazy import dataclass
from distinput.plan.code import is_library
from distinput.run.segments import Packed, pickler

__all__ = ["AsIs", "Packed", "Pickled", "same_modules", "sources"]

# ---- Which modules of this process can be imported at the seats, where the same functions would be found in them
#
# A function of a module travels as a name where that will do, and else as it is, with what it uses. What was installed and what
# belongs to Python is the same everywhere, or else the job cannot run; a user's own files need not even be there.


def sources(names: Iterable[str]) -> dict[str, str]:
    """The digest of the source of each module of this process; empty where it has none."""
    return {name: _digest(getattr(sys.modules.get(name), "__file__", None)) for name in names}


def same_modules(known: dict[str, str]) -> list[str]:
    """Those modules that can be imported here, with the same source.

    Args:
      known: name -> digest of the source.
    """
    return [name for name, digest in known.items() if digest and _digest(_origin(name)) == digest]


def _origin(name: str) -> str | None:
    try:
        spec = importlib.util.find_spec(name)
    except Exception:  # noqa: BLE001 - importing the package of a module may raise anything; then it cannot be imported
        return None
    return None if spec is None else spec.origin


def _digest(file: str | None) -> str:
    if not file:
        return ""
    try:
        return hashlib.sha256(Path(file).read_bytes()).hexdigest()
    except OSError:
        return ""


# ---- How functions, arguments and results travel to the seats: as they are in one process, as bytes between processes


@dataclass(frozen=True)
class AsIs:
    """The value itself, for seats in this process.

    >>> AsIs().unpack(AsIs().pack(1))
    1
    """

    def pack(self, value: Any) -> Any:
        """The value."""
        return value

    def unpack(self, packed: Any) -> Any:
        """The value."""
        return packed


class Pickled:
    """Bytes made by cloudpickle, which can send lambdas, closures and what is defined in `__main__`.

    Large arrays are not written into the bytes: they follow as buffers of their own. A function or a class of a module
    travels as its name, or, where a seat cannot import the same module, as it is.

    Args:
      same_modules: of modules with the digest of their source, those that can be imported at the seats; None if that cannot
        be said now. Left out at the seats themselves.

    >>> Pickled().unpack(Pickled().pack(lambda: 1))()
    1
    """

    def __init__(self, same_modules: Callable[[dict[str, str]], list[str] | None] | None = None) -> None:
        self._same_modules = same_modules
        self._by_name: set[str] = set()

    def __reduce__(self) -> tuple[Any, ...]:
        return Pickled, ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pickled)

    def __hash__(self) -> int:
        return hash(Pickled)

    def pack(self, value: Any) -> Packed:
        """The bytes, and the buffers of large arrays.

        Raises:
          EngineMissing: cloudpickle is not installed.
          Exception: the value cannot be pickled.
        """
        if self._same_modules is None:
            # At a seat: nearly all results have names for all that they consist of, and plain pickle is many times faster.
            with suppress(Exception):
                return self._packed(pickle.Pickler, value)[0]
        while True:
            packed, pickler = self._packed(_pickler(), value)
            if (
                self._same_modules is None
                or pickler.modules <= self._by_name
                or not self._found_others(pickler.modules)
            ):
                return packed

    def _packed(self, pickler: Any, value: Any) -> tuple[Packed, Any]:
        buffers: list[pickle.PickleBuffer] = []
        file = io.BytesIO()
        with pickled_with() as kept:
            used = pickler(file, protocol=5, buffer_callback=buffers.append)
            used.dump(value)
        # A copy of the arrays, since they may be written to between scheduling and running.
        return Packed(file.getbuffer(), [bytearray(buffer.raw()) for buffer in buffers], kept), used

    def unpack(self, packed: Any) -> Any:
        """The value made again."""
        return packed.unpacked()

    def _found_others(self, names: set[str]) -> bool:
        """True if some modules turn out to be unknown at the seats, so that their functions must travel as they are."""
        with _registering:
            new = {name for name in names - self._by_name if name in sys.modules and name != "__main__"}
            new -= _by_value()
            asked = {name for name in new if not is_library(sys.modules[name])}
            known: list[str] | None = []
            if asked:
                known = self._same_modules(sources(asked)) if self._same_modules else None
                if known is None:  # no worker is there to ask; it will be asked the next time
                    return False
            unknown = asked.difference(known or ())
            self._by_name |= names - unknown
            for name in unknown:
                import_module("cloudpickle").register_pickle_by_value(sys.modules[name])
        return bool(unknown)


_registering = threading.Lock()


def _by_value() -> set[str]:
    found: set[str] = import_module("cloudpickle").list_registry_pickle_by_value()
    return found


@cache
def _pickler() -> Any:
    with importing(
        "functions are sent to other processes with cloudpickle, which is not installed; "
        "run `pip install 'distinput[dask]'`"
    ):
        of_functions = pickler()

    class ModulePickler(of_functions):  # type: ignore[misc, valid-type]
        """Notes the modules of the functions and classes that are pickled."""

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.modules: set[str] = set()

        def reducer_override(self, value: Any) -> Any:
            if id(value) in _BY_NAME:
                return NotImplemented
            reduced = super().reducer_override(value)
            if isinstance(value, FunctionType | type):
                name = value.__module__
                module = sys.modules.get(name) if isinstance(name, str) else None
                if module is None:
                    return reduced
                if reduced is NotImplemented and is_library(module):
                    _BY_NAME[id(value)] = value
                else:
                    self.modules.add(name)
            return reduced

    return ModulePickler


_BY_NAME: dict[int, Any] = {}
"""By `id`, functions and classes that are installed everywhere, and so always travel as their names: most of what is sent."""
