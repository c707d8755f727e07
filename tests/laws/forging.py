# SPDX-License-Identifier: Apache-2.0
"""States and records that nobody saved: real ones of which parts were changed, lost, added or swapped."""

import copy
import json
import random
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["forged"]

Path = tuple[Any, ...]

VALUES: tuple[Any, ...] = (
    0, 1, -1, 2, 7, 10**6, 2**31, 2**63 - 1, 2**63, -(2**63) - 1, 10**30, 10**5000, 0.0, 1.0, 0.5, -2.5, 1e308,
    float("nan"), float("inf"), float("-inf"), True, False, None, "", "0", "x", "range#000000", "\ud800", [], {}, [0],
    [None], {"input": None}, {"row": 0}, [[[]]], b"bytes", (1,), {1, 2}, object, 1j,
    "../victim", "/", "..", "a\0b", "memory://x", {"trusted": True}, {"name": "../victim"},
)  # fmt: skip


def forged(state: Any, others: list[Any], chance: random.Random) -> Any:
    """A state made of this one and of others by one to three changes."""
    made = copy.deepcopy(state)
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        made = chance.choice(CHANGES)(made, others, chance)
    return made


def _places(value: Any, at: Path = ()) -> Iterator[Path]:
    yield at
    if len(at) > 30:  # what was nested deep before
        return
    if isinstance(value, dict):
        for key in value:
            yield from _places(value[key], (*at, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _places(item, (*at, index))


def _at(value: Any, path: Path) -> Any:
    for key in path:
        value = value[key]
    return value


def _put(state: Any, path: Path, value: Any) -> Any:
    if not path:
        return value
    _at(state, path[:-1])[path[-1]] = value
    return state


def _some(state: Any, chance: random.Random, wanted: Callable[[Any], bool] = lambda _: True) -> Path:
    found = [path for path in _places(state) if wanted(_at(state, path))]
    return chance.choice(found) if found else ()


def _number(state: Any, _: list[Any], chance: random.Random) -> Any:
    path = _some(state, chance, lambda value: type(value) is int and abs(value) < 10**300)
    value = _at(state, path)
    if type(value) is not int or abs(value) >= 10**300:  # where nothing else was found, the whole may be such a number
        return state
    return _put(
        state, path, chance.choice((value + 1, value - 1, -value, value * 2, value + 10**9, float(value), str(value)))
    )


def _value(state: Any, _: list[Any], chance: random.Random) -> Any:
    return _put(state, _some(state, chance), chance.choice(VALUES))


def _lost(state: Any, _: list[Any], chance: random.Random) -> Any:
    path = _some(state, chance)
    if path:
        del _at(state, path[:-1])[path[-1]]
    return state


def _added(state: Any, _: list[Any], chance: random.Random) -> Any:
    holder = _at(state, _some(state, chance, lambda value: isinstance(value, dict | list)))
    if isinstance(holder, dict):
        holder[chance.choice(("row", "input", "skip", "seed", "more", "", 3, None))] = chance.choice(VALUES)
    elif isinstance(holder, list):
        holder.insert(chance.randint(0, len(holder)), chance.choice((*VALUES, *holder)))
    return state


def _list(state: Any, _: list[Any], chance: random.Random) -> Any:
    held = _at(state, _some(state, chance, lambda value: isinstance(value, list)))
    if isinstance(held, list):
        held[:] = chance.choice((held[1:], held[:-1], held * 2, held[::-1], []))
    return state


def _swapped(state: Any, _: list[Any], chance: random.Random) -> Any:
    """Two parts change places, one of which is not in the other."""
    a, b = _some(state, chance), _some(state, chance)
    if not a or not b or a[: len(b)] == b or b[: len(a)] == a:
        return state
    left, right = _at(state, a), _at(state, b)
    return _put(_put(state, a, right), b, left)


def _of_another(state: Any, others: list[Any], chance: random.Random) -> Any:
    """A part of a state of another pipeline or place, where it stands there or anywhere."""
    other = copy.deepcopy(chance.choice(others))
    path = _some(state, chance)
    if chance.random() < 0.5:
        return _put(state, path, _at(other, _some(other, chance)))
    try:
        return _put(state, path, _at(other, path))
    except (KeyError, IndexError, TypeError):
        return other


def _text(state: Any, _: list[Any], chance: random.Random) -> Any:
    path = _some(state, chance, lambda value: isinstance(value, str))
    text = _at(state, path)
    if not isinstance(text, str):
        return state
    return _put(state, path, chance.choice((text[:-1], text[1:], text + "=", text[::-1], text.upper(), text * 50)))


def _deep(state: Any, _: list[Any], chance: random.Random) -> Any:
    path, deep = _some(state, chance), chance.choice((10, 200, 5_000))
    value: Any = {}
    for _level in range(deep):
        value = {"input": value} if deep < 5_000 or _level % 2 else [value]
    return _put(state, path, value)


def _characters(state: Any, _: list[Any], chance: random.Random) -> Any:
    """As if a byte of the file had changed."""
    try:
        text = json.dumps(state)
    except (TypeError, ValueError, RecursionError):
        return state
    at = chance.randrange(len(text))
    text = text[:at] + chance.choice('0123456789-.e,:[]{}"nulltruefalse ') + text[at + chance.randint(0, 2) :]
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return state


CHANGES = (_number, _number, _value, _lost, _added, _list, _swapped, _of_another, _text, _deep, _characters)
