# SPDX-License-Identifier: Apache-2.0
"""States of loaders, by whichever of the usual protocols one has."""

import json
import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

__all__ = ["NoState", "Saved", "begun", "restored", "saved"]

_PROTOCOLS = (("state_dict", "load_state_dict"), ("get_state", "set_state"))


class NoState(TypeError):
    """A loader that has no state."""


@dataclass(frozen=True)
class Saved:
    """A state as it lies in a file.

    Args:
      data: its bytes.
      kind: "JSON", or "pickle" where it is not JSON.
    """

    data: bytes
    kind: str

    @staticmethod
    def of(state: Any) -> "Saved":
        """A state in bytes, so that nothing of it is shared with the loader that goes on."""
        try:
            text = json.dumps(state)
            if json.loads(text) == state:
                return Saved(text.encode(), "JSON")
        except (TypeError, ValueError):
            pass
        return Saved(pickle.dumps(state), "pickle")

    @property
    def state(self) -> Any:
        """The state."""
        return json.loads(self.data) if self.kind == "JSON" else pickle.loads(self.data)


def _protocol(thing: Any) -> tuple[str, str] | None:
    return next((names for names in _PROTOCOLS if all(callable(getattr(thing, name, None)) for name in names)), None)


def begun(loader: Any) -> Iterator[Any]:
    """An iterator of a loader."""
    return iter(loader)


def saved(loader: Any, iterator: Any) -> Saved:
    """The state of a loader that is being iterated: its own, or that of its iterator.

    Raises:
      NoState: neither has `state_dict` and `load_state_dict`, or `get_state` and `set_state`.
    """
    for thing in (loader, iterator):
        names = _protocol(thing)
        if names is not None:
            return Saved.of(getattr(thing, names[0])())
    raise NoState("neither the loader nor its iterator has state_dict and load_state_dict, or get_state and set_state")


def restored(loader: Any, state: Saved) -> Iterator[Any]:
    """An iterator of a new loader that goes on from a state."""
    names = _protocol(loader)
    if names is not None:
        getattr(loader, names[1])(state.state)
        return begun(loader)
    iterator = begun(loader)
    names = _protocol(iterator)
    if names is None:
        raise NoState("the iterator has no state")
    getattr(iterator, names[1])(state.state)
    return iterator
