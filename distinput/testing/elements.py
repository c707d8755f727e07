# SPDX-License-Identifier: Apache-2.0
"""What all suites need: elements compared, orders checked, and errors reported under the name of a law."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np

from distinput.names.words import shown
from distinput.values.nest import structure_of
from distinput.values.ragged_tensor import RaggedTensor

# ----------------------------------------------------------------------------
# A law that is being checked: errors are reported under its name.
# ----------------------------------------------------------------------------


Check = TypeVar("Check")


def hold(
    who: str,
    laws: Mapping[str, Check],
    check: Callable[[Check], object],
    leave_out: Collection[str] = (),
) -> tuple[str, ...]:
    """Check laws, one after the other; the names of those that apply.

    Args:
      who: asks for it, for messages.
      laws: by name.
      check: calls the function of a law; False says that the law does not apply.
      leave_out: names of laws not to check.

    Raises:
      AssertionError: a law is broken; the message begins with its name.
      ValueError: an unknown name in `leave_out`.
    """
    unknown = sorted(set(leave_out) - set(laws))
    if unknown:
        raise ValueError(f"{who}: there is no law {unknown[0]!r}; known are {', '.join(laws)}")
    checked = []
    for name, function in laws.items():
        if name not in leave_out:
            with law(name):
                if check(function) is not False:
                    checked.append(name)
    return tuple(checked)


@contextmanager
def law(name: str) -> Iterator[None]:
    """Turn every error inside into an `AssertionError` that begins with the name of the law.

    >>> with law("restart"):
    ...     raise KeyError("input")
    Traceback (most recent call last):
    AssertionError: restart: KeyError('input') was raised
    """
    try:
        yield
    except AssertionError as error:
        raise AssertionError(f"{name}: {error}") from error
    except Exception as error:
        raise AssertionError(f"{name}: {error!r} was raised") from error


# ----------------------------------------------------------------------------
# Elements as values that can be compared and counted: structure, dtype, shape and bits.
# ----------------------------------------------------------------------------


def exact(element: Any) -> Any:
    """A hashable value that is equal for two elements only if structure, dtypes, shapes and bits are.

    A dataset inside an element is equal to a list of its elements.

    >>> exact(np.int64(1)) == exact(np.int32(1))
    False
    """
    structure = structure_of(element)
    if structure.is_leaf:
        return _exact_leaf(element)
    return (structure, tuple([_exact_leaf(leaf) for leaf in structure.flatten(element)]))


def _exact_leaf(leaf: Any) -> Any:
    if isinstance(leaf, bytes):
        return leaf
    if isinstance(leaf, RaggedTensor):
        splits = tuple([tuple(each.tolist()) for each in leaf.nested_row_splits])
        return ("ragged", splits, _exact_leaf(leaf.flat_values))
    if isinstance(leaf, np.ndarray | np.generic):
        kind = "array" if isinstance(leaf, np.ndarray) else "scalar"
        bits = tuple(leaf.reshape(-1).tolist()) if leaf.dtype == object else leaf.tobytes()
        return (kind, leaf.dtype.str, leaf.shape, bits)
    if getattr(leaf, "is_optional", False):
        return ("optional", exact(leaf.get_value()) if leaf.has_value() else None)
    if isinstance(leaf, Iterable) and not isinstance(leaf, str):
        return ("dataset", tuple([exact(inner) for inner in leaf]))
    return ("other", leaf)


def matches(given: Any, expected: Any) -> bool:
    """True when an element is as expected; plain Python numbers, text and lists of them are compared by value alone."""
    if exact(given) == exact(expected):
        return True
    shape, wanted = structure_of(given), structure_of(expected)
    if shape != wanted:
        return False
    return all(map(_leaf_matches, shape.flatten(given), wanted.flatten(expected)))


def _leaf_matches(given: Any, expected: Any) -> bool:
    if getattr(given, "is_optional", False):
        there = given.has_value()
        return there == expected.has_value() and (not there or matches(given.get_value(), expected.get_value()))
    if getattr(given, "nest_leaf", False):
        inner, wanted = list(given), list(expected)
        return len(inner) == len(wanted) and all(map(matches, inner, wanted))
    if isinstance(expected, str):
        return bool(given == expected.encode())
    if isinstance(expected, bool | int | float | list):
        return bool(np.array_equal(np.asarray(given), np.asarray(expected)))
    return bool(exact(given) == exact(expected))


def difference(given: Sequence[Any], expected: Sequence[Any]) -> str | None:
    """Where two sequences of exact elements differ, None when they do not."""
    for index, (a, b) in enumerate(zip(given, expected, strict=False)):
        if a != b:
            return f"element {index} is {shown(a, 300)}, expected {shown(b, 300)}"
    if len(given) != len(expected):
        return f"there are {len(given)} elements, expected {len(expected)}"
    return None


def check_same(what: str, given: Sequence[Any], expected: Sequence[Any]) -> None:
    """Refuse exact elements that are not the expected ones.

    Raises:
      AssertionError: they are not; the message begins with `what`.
    """
    wrong = difference(given, expected)
    if wrong is not None:
        raise AssertionError(f"{what}: {wrong}")


def rows_of(batch: Any) -> list[Any]:
    """The rows of a batch, as exact values."""
    structure = structure_of(batch)
    leaves = structure.flatten(batch)
    return [exact(structure.build([leaf[i] for leaf in leaves])) for i in range(len(leaves[0]))]


# ----------------------------------------------------------------------------
# A check of the order that a shuffle gives.
# ----------------------------------------------------------------------------


def checked_shuffle(before: list[Any], seen: list[Any], buffer_size: int | None) -> list[Any]:
    """`seen`, if it can be the shuffled `before`: the same elements, none of them earlier than the buffer allows.

    Raises:
      AssertionError: an element is missing or new, or came before it could be in the buffer.

    >>> checked_shuffle([b"a", b"b", b"c"], [b"b", b"a", b"c"], buffer_size=2)
    [b'b', b'a', b'c']
    """
    keys, given = [exact(element) for element in before], [exact(element) for element in seen]
    if Counter(keys) != Counter(given):
        raise AssertionError(f"shuffle: {seen!r} are not the elements {before!r} in another order")
    if buffer_size is not None:
        inside: Counter[Any] = Counter(keys[: buffer_size - 1])
        for place, key in enumerate(given):
            inside.update(keys[place + buffer_size - 1 : place + buffer_size])
            if not inside[key]:
                raise AssertionError(f"shuffle: element {place} of {seen!r} was not in a buffer of {buffer_size} yet")
            inside[key] -= 1
    return seen


# ----------------------------------------------------------------------------
# Lists that take turns, as `interleave` and several reads at a time do.
# ----------------------------------------------------------------------------


def interleaved(lists: list[list[Any]], cycle: int, block: int) -> list[Any]:
    """Elements of several lists, `cycle` of which are open and take turns of `block` elements."""
    waiting = iter(lists)
    slots: list[list[Any] | None] = [None] * cycle
    elements: list[Any] = []
    more, turn = True, 0
    while more or any(slot is not None for slot in slots):
        if slots[turn] is None and more:
            following = next(waiting, None)
            more = following is not None
            slots[turn] = None if following is None else list(following)
        slot = slots[turn]
        if slot is not None:
            for _ in range(block):
                if not slot:
                    slots[turn] = None
                    break
                elements.append(slot.pop(0))
        turn = (turn + 1) % cycle
    return elements
