# SPDX-License-Identifier: Apache-2.0
"""Which of the things that a function reads by name it also changes: lists that it appends to, dicts in which it counts.

What a function changes itself says nothing of what it does: it is where it writes. Found in the code, without running it: by
the methods that it calls, and by assignments to items and attributes.
"""

import functools
import types
from collections.abc import Iterator
from typing import Any

__all__ = ["attributes_changed_by_methods", "changed_names", "with_inner"]

_METHODS = frozenset({
    "acquire", "add", "append", "appendleft", "assign", "assign_add", "assign_sub", "clear", "discard", "emit", "extend",
    "extendleft", "fill", "inc", "increment", "insert", "intersection_update", "move_to_end", "pop", "popitem", "popleft",
    "push", "put", "put_nowait", "remove", "reset", "resize", "reverse", "rotate", "set", "setdefault", "setflags", "sort",
    "subtract", "symmetric_difference_update", "update", "write", "writelines",
})  # fmt: skip
"""Methods that change their object."""

_PUSH_NAME = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF")
_NOTHING = ("RESUME", "CACHE", "NOP", "EXTENDED_ARG", "COPY_FREE_VARS", "MAKE_CELL", "KW_NAMES")
_ONLY_POP = ("POP_", "STORE_", "JUMP_", "RETURN", "FOR_ITER")

_Item = tuple[str | None, str | None]
"""Something on the stack: the variable that it came from, and the attribute of it."""

_UNKNOWN: _Item = (None, None)


@functools.lru_cache(maxsize=1024)
def changed_names(code: types.CodeType) -> tuple[frozenset[str], frozenset[str]]:
    """The variables from outside whose objects a function changes, and the attributes that it assigns or changes.

    >>> def count(x):
    ...     calls.append(x)
    ...     seen.by_key[x] += 1
    >>> [sorted(names) for names in changed_names(count.__code__)]
    [['calls', 'seen'], ['by_key']]
    """
    from dis import get_instructions  # for states, which few first batches come with

    stack = _Stack()
    for step in get_instructions(code):
        stack.take(step)
    return frozenset(stack.names), frozenset(stack.attributes)


def with_inner(code: types.CodeType) -> Iterator[types.CodeType]:
    """The code of a function and of all functions inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from with_inner(constant)


def attributes_changed_by_methods(kind: type) -> set[str]:
    """Attributes that the methods of a class assign, or whose objects they change, after its objects were made."""
    found: set[str] = set()
    for each in kind.__mro__:
        for name, method in vars(each).items():
            if isinstance(method, types.FunctionType) and name not in ("__init__", "__post_init__", "__new__"):
                for code in with_inner(method.__code__):
                    found |= changed_names(code)[1]
    return found


class _Stack:
    """What lies on the stack while code runs from its beginning to its end, as far as that can be told without running it.

    Attributes:
      names: variables whose objects were changed so far.
      attributes: attributes whose objects were.
    """

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.attributes: set[str] = set()
        self._items: list[_Item] = []

    def take(self, step: Any) -> None:
        """Do what an instruction does."""
        name, effect, items = step.opname, _effect(step), self._items
        if name in _PUSH_NAME:
            items += [(str(step.argval), None)] * max(1, effect)
        elif name in ("LOAD_ATTR", "LOAD_METHOD"):
            if step.argval in _METHODS:
                self._changed(self._item(1))
            item: _Item = (self._item(1)[0], str(step.argval))
            del items[-1:]
            items += [item] * max(1, effect + 1)
        elif name in ("STORE_SUBSCR", "DELETE_SUBSCR"):
            self._changed(self._item(2))
            del items[effect:]
        elif name in ("STORE_ATTR", "DELETE_ATTR"):
            self._changed((self._item(1)[0], str(step.argval)))
            del items[effect:]
        elif name == "BINARY_SUBSCR" or (name == "BINARY_OP" and step.argrepr == "[]"):
            item = self._item(2)
            del items[-2:]
            items.append(item)
        else:
            self._move(name, step.arg or 0, effect)

    def _move(self, name: str, arg: int, effect: int) -> None:
        items = self._items
        if name == "COPY":
            items.append(self._item(arg))
        elif name == "SWAP" and 0 < arg <= len(items):
            items[-1], items[-arg] = items[-arg], items[-1]
        elif effect > 0:
            items += [_UNKNOWN] * effect
        elif name not in _NOTHING:
            if effect:
                del items[effect:]
            if items and not name.startswith(_ONLY_POP):
                items[-1] = _UNKNOWN

    def _item(self, depth: int) -> _Item:
        return self._items[-depth] if 0 < depth <= len(self._items) else _UNKNOWN

    def _changed(self, found: _Item) -> None:
        name, attribute = found
        self.names |= set() if name is None else {name}
        self.attributes |= set() if attribute is None else {attribute}


def _effect(step: Any) -> int:
    """How many items more an instruction leaves, where it does not jump."""
    from dis import stack_effect

    try:
        return int(stack_effect(step.opcode, step.arg, jump=False))
    except ValueError:  # an instruction without an argument
        return int(stack_effect(step.opcode, None, jump=False))
