# SPDX-License-Identifier: Apache-2.0
"""What a checkpoint saves: the variables, arrays, iterators and numbers in a nest of objects; and what restoring them gave."""

import dataclasses
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from enum import Enum
from functools import partial
from itertools import count
from operator import setitem
from types import FunctionType, MethodType, ModuleType, SimpleNamespace
from typing import Any, Self

from distinput.data import Dataset
from distinput.distribute.core.values import DistributedValues
from distinput.distribute.input.distributed_dataset import DistributedDataset, DistributedDatasetsFromFunction
from distinput.errors import InputWarning, InvalidArgumentError
from distinput.names.lazy import dataclass
from distinput.train.coding import Kind, kind_of
from distinput.values.nest import too_deep

# ----------------------------------------------------------------------------
# What a checkpoint saves: the variables, arrays, iterators and numbers in a nest of containers and objects.
#
# Each has a path such as `model/layers/0/weights`: the keys, numbers and attributes that lead to it, from the names given
# to the checkpoint. Something that several paths lead to is saved once.
# ----------------------------------------------------------------------------


_LIBRARIES = frozenset({"distinput", "jax", "jaxlib", "numpy", "pyarrow", "torch"})
_OTHERS = _LIBRARIES | sys.stdlib_module_names
"""Packages whose objects are not looked into: what they keep in attributes is their own."""

Put = Callable[[Any], None]
"""Replaces a value where it was found."""

Child = tuple[str, Any, Put | None, bool]
"""A name, what it names, what replaces it, and whether it was given to the checkpoint, so that it must be saved."""


@dataclass(eq=False)
class Tracked:
    """One thing to be saved.

    Args:
      paths: all paths that lead to it; it is called by the first.
      value: the thing.
      kind: how it is saved.
      put: each replaces it in one of the places where it was found; empty where it cannot be replaced.
    """

    paths: list[str]
    value: Any
    kind: Kind
    put: list[Put] = field(default_factory=list)

    @property
    def path(self) -> str:
        """The path that it is called by."""
        return self.paths[0]


def tracked(children: Iterable[Child]) -> list[Tracked]:
    """All that is to be saved, in the order in which it is found.

    Args:
      children: what the checkpoint was given.

    Raises:
      InvalidArgumentError: something that was given cannot be saved; the message names it, but for a list that holds itself.

    >>> import numpy as np
    >>> model = {"w": np.zeros(2), "layers": [np.zeros(1)]}
    >>> [each.path for each in tracked([("model", model, None, True), ("step", 3, None, True)])]
    ['model/w', 'model/layers/0', 'step']
    """
    search = _Search()
    try:
        for name, value, put, given in children:
            search.visit(value, escaped(name), put, given=given)
    except RecursionError:
        raise too_deep() from None
    return search.found


class _Search:
    """One walk through everything that a checkpoint was given."""

    def __init__(self) -> None:
        self.found: list[Tracked] = []
        self._seen: dict[int, tuple[Any, Tracked | str]] = {}

    def visit(self, value: Any, path: str, put: Put | None, *, given: bool) -> None:
        """Look at a value and at what is in it.

        Args:
          value: the value.
          path: how it was reached.
          put: replaces it where it was found.
          given: True if it was given to the checkpoint, by itself or in containers; False inside objects, whose
            attributes may be anything.
        """
        if value is None:
            return
        kind = kind_of(value)
        if kind is not None and kind.name in ("value", "jax"):  # equal numbers are one object in Python by chance
            self.found.append(Tracked([path], value, kind, [put] if put else []))
            return
        if id(value) in self._seen:
            first = self._seen[id(value)][1]
            if isinstance(first, Tracked):
                first.paths.append(path)
                first.put += [put] if put else []
            return
        if kind is not None:
            self.found.append(Tracked([path], value, kind, [put] if put else []))
            self._seen[id(value)] = (value, self.found[-1])
            return
        if not _is_fixed(value):  # it cannot contain itself, and is replaced wherever it is
            self._seen[id(value)] = (value, path)
        if isinstance(value, Mapping):
            self._visit_mapping(value, path, put, given=given)
        elif isinstance(value, list):
            for number, item in enumerate(value):
                self.visit(item, f"{path}/{number}", item_setter(value, number), given=given)
        elif isinstance(value, tuple):
            self._visit_tuple(value, path, put, given=given)
        elif hasattr(value, "_checkpoint_children"):
            for name, item, put_item, part_given in value._checkpoint_children():
                self.visit(item, f"{path}/{escaped(name)}", put_item, given=part_given)
        elif (why := _refusal(value)) is None:
            self._visit_object(value, path, put)
        elif given:
            raise InvalidArgumentError(f"Checkpoint: {path!r} is {_named(value)}, which cannot be saved; {why}")

    def _visit_mapping(self, value: Mapping[Any, Any], path: str, put: Put | None, *, given: bool) -> None:
        names: dict[str, Any] = {}
        for key in value:
            if not isinstance(key, str | int) or isinstance(key, bool):
                if not given:
                    continue
                raise InvalidArgumentError(
                    f"Checkpoint: {path!r} has the key {key!r:.60}; keys of what holds variables or arrays must be text or "
                    "whole numbers"
                )
            name = escaped(str(key))
            if name in names:
                raise InvalidArgumentError(
                    f"Checkpoint: {path!r} has the keys {names[name]!r} and {key!r}, which are one name"
                )
            names[name] = key
        parts = [(name, key, value[key]) for name, key in names.items()]
        if hasattr(value, "__setitem__"):
            for name, key, item in parts:
                self.visit(item, f"{path}/{name}", item_setter(value, key), given=given)
        else:
            rebuild: Any = lambda items: type(value)({**value, **items})  # type: ignore[call-arg]  # noqa: E731
            self._visit_fixed(parts, path, rebuild, put, given=given)

    def _visit_tuple(self, value: tuple[Any, ...], path: str, put: Put | None, *, given: bool) -> None:
        def rebuild(items: Mapping[Any, Any]) -> Any:
            every = [items.get(number, item) for number, item in enumerate(value)]
            return value._make(every) if hasattr(value, "_make") else type(value)(every)

        names = getattr(value, "_fields", range(len(value)))
        parts = [(escaped(str(name)), number, item) for number, name, item in zip(count(), names, value, strict=False)]
        self._visit_fixed(parts, path, rebuild, put, given=given)

    def _visit_fixed(
        self,
        parts: Iterable[tuple[str, Any, Any]],
        path: str,
        rebuild: Callable[[Mapping[Any, Any]], Any],
        put: Put | None,
        *,
        given: bool,
    ) -> None:
        """Visit the parts of something that cannot be changed: where one of them is replaced, so is the whole.

        Args:
          parts: the name, the key and the value of each part.
          path: how the whole was reached.
          rebuild: returns a whole in which some parts, by key, are replaced.
          put: replaces the whole.
          given: as for `visit`.
        """
        replaced: dict[Any, Any] = {}

        def setter(key: Any) -> Put | None:
            def replace(item: Any) -> None:
                assert put is not None
                replaced[key] = item
                put(rebuild(replaced))

            return None if put is None else replace

        for name, key, item in parts:
            self.visit(item, f"{path}/{name}", setter(key), given=given)

    def _visit_object(self, value: Any, path: str, put: Put | None) -> None:
        parameters = getattr(type(value), "__dataclass_params__", None)
        if parameters is not None and parameters.frozen:
            names = [each.name for each in dataclasses.fields(value) if each.init]
            parts = [(escaped(name), name, getattr(value, name)) for name in names]
            self._visit_fixed(parts, path, lambda items: dataclasses.replace(value, **items), put, given=False)
            return
        for name, item in _attributes(value):
            self.visit(item, f"{path}/{escaped(name)}", attribute_setter(value, name), given=False)


def check_root(root: Any) -> None:
    """Refuse a root that has no parts with names, or whose attributes are not all that it has to save.

    Raises:
      InvalidArgumentError: so it is.
    """
    if root is None or isinstance(root, Mapping):
        return
    kind, package = kind_of(root), (type(root).__module__ or "").partition(".")[0]
    by_itself = kind is not None and not kind.has_parts
    # The attributes of PyTorch's modules, and of another checkpoint, are all that they have; those of optimizers are not.
    whole = hasattr(root, "named_parameters") or hasattr(root, "_checkpoint_children")
    foreign = _is_foreign(root) and package in _LIBRARIES and not whole
    bare = not (hasattr(root, "__dict__") or hasattr(type(root), "__slots__"))
    if (
        by_itself
        or foreign
        or bare
        or isinstance(root, list | tuple | set | frozenset | type | FunctionType | MethodType)
    ):
        raise InvalidArgumentError(
            f"Checkpoint: root must be a dict or an object whose parts are saved under their own names, got {_named(root)}; "
            "give it by a name, as in Checkpoint(value=value)"
        )


def _is_fixed(value: Any) -> bool:
    parameters = getattr(type(value), "__dataclass_params__", None)
    if isinstance(value, Mapping):
        return not hasattr(value, "__setitem__")
    return isinstance(value, tuple) or (parameters is not None and bool(parameters.frozen))


def attribute_children(value: Any) -> Iterator[Child]:
    """The attributes of an object, as children of a checkpoint whose root it is."""
    fixed = _is_fixed(value)
    for name, item in _attributes(value):
        yield name, item, None if fixed else attribute_setter(value, name), False


def _attributes(value: Any) -> Iterator[tuple[str, Any]]:
    yield from list(vars(value).items()) if hasattr(value, "__dict__") else ()
    for base in type(value).__mro__:
        slots = base.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__"):
                private = name.startswith("__") and not name.endswith("__")
                stored = f"_{base.__name__.lstrip('_')}{name}" if private else name  # as Python names it
                yield stored, getattr(value, stored, None)


def _refusal(value: Any) -> str | None:
    """What to do instead of saving a value; None for an object whose attributes are looked at."""
    if isinstance(value, Dataset | DistributedDataset | DistributedDatasetsFromFunction):
        return "it has no position; give its iterator, iter(dataset)"
    if isinstance(value, DistributedValues):
        return "it belongs to one step; use a Variable, or reduce or gather it first"
    if isinstance(value, type | FunctionType | MethodType | ModuleType) or (callable(value) and _is_foreign(value)):
        return "it has no state; leave it out"
    if isinstance(value, Enum):
        return "save its value"
    if isinstance(value, Iterator) and _is_foreign(value):
        return "its position is unknown; iterate over a Dataset"
    if isinstance(value, SimpleNamespace):
        return None
    if _is_foreign(value) or not (hasattr(value, "__dict__") or hasattr(type(value), "__slots__")):
        return (
            "give Variables, NumPy arrays, tensors, numbers, text, iterators of datasets, objects with state_dict and "
            "load_state_dict, or containers and objects that hold such"
        )
    return None


def _is_foreign(value: Any) -> bool:
    module = type(value).__module__ or ""
    return module.partition(".")[0] in _OTHERS - {"__main__"} and not module.startswith("distinput.cli.")


def _named(value: Any) -> str:
    kind = type(value).__name__
    return f"the {kind} {value.__name__}" if isinstance(value, type | FunctionType) else f"a {kind}"


def item_setter(container: Any, key: Any) -> Put:
    """A function that sets an item."""
    return partial(setitem, container, key)


def attribute_setter(value: Any, name: str) -> Put:
    """A function that sets an attribute."""
    return partial(setattr, value, name)


def escaped(name: str) -> str:
    """A name as a part of a path."""
    return name.replace("%", "%25").replace("/", "%2F")


# ----------------------------------------------------------------------------
# The result of restoring: which names had no counterpart.
# ----------------------------------------------------------------------------


_SHOWN = 10  # names in a message


class RestoreStatus:
    """The result of `Checkpoint.restore`: everything that matched has been restored, and nothing is restored later.

    Call `expect_partial` if differences are intended, or one of the assertions if not. If none of these was called, a
    difference is an `InputWarning` when the status is dropped.

    Args:
      path: the checkpoint.
      restored: how many things were restored.
      missing: the paths of what the program has and the checkpoint has not.
      unused: the paths of what the checkpoint has and the program has not.

    Source: the status objects of `tf.train.Checkpoint.restore`.
    """

    def __init__(self, path: str, restored: int, missing: Sequence[str], unused: Sequence[str]) -> None:
        self.path, self.restored = path, restored
        self.missing, self.unused = tuple(missing), tuple(unused)
        self._looked_at = False

    def assert_consumed(self) -> Self:
        """Check that everything in the checkpoint was restored, and everything in the program.

        Raises:
          AssertionError: not so; the message names the rest.
        """
        return self._held(not self.missing and not self.unused)

    def assert_existing_objects_matched(self) -> Self:
        """Check that everything in the program was restored; the checkpoint may have more.

        Raises:
          AssertionError: not so; the message names the rest.
        """
        return self._held(not self.missing)

    def assert_nontrivial_match(self) -> Self:
        """Check that anything was restored at all.

        Raises:
          AssertionError: nothing in the program has a path that is in the checkpoint.
        """
        return self._held(self.restored > 0)

    def expect_partial(self) -> Self:
        """Allow differences without a warning."""
        return self._held(True)

    def _held(self, holds: bool) -> Self:
        self._looked_at = True
        if not holds:
            raise AssertionError(self._told())
        return self

    def run_restore_ops(self, session: Any = None) -> None:
        """Nothing: `restore` has done it. For programs that were written for graphs."""

    def initialize_or_restore(self, session: Any = None) -> None:
        """Nothing: `restore` has done it. For programs that were written for graphs."""

    def _told(self) -> str:
        parts = []
        if self.missing:
            parts.append(f"the checkpoint has nothing for {_listed(self.missing)}")
        if self.unused:
            parts.append(f"the program has nothing for {_listed(self.unused)}")
        return (
            f"{self.path}: restored {self.restored} values; {', and '.join(parts) or 'the checkpoint is empty'}; make "
            "variables before restoring, give things the same names, or call expect_partial() if that is meant"
        )

    def __del__(self) -> None:
        if not getattr(self, "_looked_at", True) and (self.missing or self.unused):
            warnings.warn(self._told(), InputWarning, stacklevel=2)


class InitializationStatus:
    """The result of `Checkpoint.restore(None)`, which restores nothing."""

    def assert_consumed(self) -> Self:
        """Fail, since nothing was restored.

        Raises:
          AssertionError: always.
        """
        raise AssertionError("No checkpoint specified (save_path=None); nothing is being restored.")

    assert_existing_objects_matched = assert_consumed
    assert_nontrivial_match = assert_consumed

    def expect_partial(self) -> Self:
        """Return the status."""
        return self

    def run_restore_ops(self, session: Any = None) -> None:
        """Fail, since there is nothing to restore.

        Raises:
          AssertionError: always.
        """
        raise AssertionError("No checkpoint specified (save_path=None), so no restore ops are available.")

    def initialize_or_restore(self, session: Any = None) -> None:
        """Nothing: variables have their first values."""


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(map(repr, names[:_SHOWN])) + more
