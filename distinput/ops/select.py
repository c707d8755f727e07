# SPDX-License-Identifier: Apache-2.0
"""`select`: some of the components of dicts."""

from collections.abc import Hashable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from distinput.columns.column import Column
from distinput.errors import InvalidArgumentError
from distinput.names.lazy import dataclass
from distinput.plan.check import normalized
from distinput.plan.families import Restructured
from distinput.values.nest import Structure
from distinput.values.nullable import is_nullable
from distinput.values.spec import Spec

_Wanted = tuple[str | None, str]
"""What is left of a name behind the dicts that it leads through, None for all of what is there; and the name."""


@dataclass(frozen=True, eq=False)
class Select(Restructured):
    """Keep these components of elements that are dicts, in this order.

    Parquet and Arrow files are read without the other columns, whose nulls and damage are then no errors. "messages.role" keeps
    of the dict "messages" its component "role" alone.

    Where a dict or a map may be null, the mark stays with what is kept of it, and "m.value" is the part of this name, as it is
    without nulls. Where nothing in it has this name, that is the value of a `Nullable`, without the mark.

    Shapes: dicts with these keys. Order: unchanged. State: that of the input.

    Args:
      columns: names of components, at least one, with dots in them for parts of inner dicts.

    Raises:
      InvalidArgumentError: elements have no such component, or `columns` is one name, empty, or names one twice.
      TypeError: elements are not dicts.

    >>> import distinput as di
    >>> ds = di.data.Dataset.from_tensor_slices({"x": [1, 2], "y": [3, 4], "z": [5, 6]})
    >>> ds.select(["z", "x"]).to_list()
    [{'z': 5, 'x': 1}, {'z': 6, 'x': 2}]
    >>> ds.map(lambda row: {"all": row, "x": row["x"]}).select(["all.y"]).to_list()
    [{'all': {'y': 3}}, {'all': {'y': 4}}]

    Source: `datasets.Dataset.select_columns`.
    """

    columns: Sequence[str]

    def __post_init__(self) -> None:
        if isinstance(self.columns, str | bytes):
            raise InvalidArgumentError(f"select: columns must be a list of names, got {self.columns!r}")
        normalized(self, "columns", tuple(self.columns))
        if not all(isinstance(name, Hashable) for name in self.columns):
            raise InvalidArgumentError(f"select: columns must be a list of names, got {list(self.columns)!r:.80}")
        if not self.columns or len(set(self.columns)) < len(self.columns):
            raise InvalidArgumentError(
                f"select: columns must be at least one name, each once, got {list(self.columns)}"
            )

    @property
    def whole(self) -> tuple[str, ...]:
        """The components that are chosen, or of which parts are."""
        return self.spec.structure.order

    @cached_property
    def spec(self) -> Spec:
        given = self.input.spec
        if given.structure.kind != "dict":
            raise TypeError(f"select: elements must be dicts, got {given.nest}; use map to choose from other nests")
        structure, places = self._chosen(replace(given.structure, mapping=None), 0, self._wanted)
        return Spec(structure, tuple([given.leaves[place] for place in places]))

    @cached_property
    def _places(self) -> list[int]:
        """The places of the leaves that are kept, in the order of the spec."""
        return self._chosen(self.input.spec.structure, 0, self._wanted)[1]

    @property
    def _wanted(self) -> list[_Wanted]:
        return [(name, name) for name in self.columns]

    def _chosen(self, at: Structure, first: int, wanted: list[_Wanted]) -> tuple[Structure, list[int]]:
        """What is left of a dict whose leaves begin at a place, and their places.

        Args:
          at: the dict.
          first: the place.
          wanted: what is left of names, and the names.
        """
        parts: dict[Any, list[_Wanted]] = {}
        for rest, name in wanted:
            if rest is None:  # all of it
                return at, list(range(first, first + at.num_leaves))
            keys = at.keys if at.kind == "dict" else ()
            key = _key(at, rest)
            if is_nullable(at) and (_names_part(at, "value", rest) or not _reaches(at, rest)):
                parts.setdefault("value", []).append((rest, name))
                parts.setdefault("valid", []).append((None, name))
            elif key is None:
                raise InvalidArgumentError(
                    f"select: elements have no component {name!r}; they have {', '.join(map(str, keys or [str(at)]))}"
                )
            else:
                parts.setdefault(key, []).append((None if rest == key else rest[len(f"{key}.") :], name))
        if at.is_rows:
            raise InvalidArgumentError(
                f"select: {wanted[0][1]!r} is a part of what as_rows makes; select it before as_rows"
            )
        found, places = {}, []
        for key, child in zip(at.keys, at.children, strict=True):
            if key in parts:
                found[key], below = self._chosen(child, first, parts[key])
                places += below
            first += child.num_leaves
        keys = tuple([key for key in at.keys if key in found])
        children = tuple([found[key] for key in keys])
        mapping = at.mapping if keys == at.keys else None
        return replace(at, keys=keys, children=children, order=tuple(parts), mapping=mapping), places

    def _kept(self, columns: Sequence[Column]) -> Sequence[Column]:
        return [columns[place] for place in self._places] if columns else []


def _key(at: Structure, rest: str) -> Any:
    """The component of a dict with which a name begins; None: there is none."""
    keys = at.keys if at.kind == "dict" else ()
    return rest if rest in keys else next((key for key in keys if f"{rest}".startswith(f"{key}.")), None)


def _reaches(at: Structure, rest: str) -> bool:
    """Whether a name is that of a component of a dict, or of a part of one."""
    key = _key(at, rest)
    return key is not None and (rest == key or _names_part(at, key, rest[len(f"{key}.") :]))


def _names_part(at: Structure, key: Any, rest: str) -> bool:
    """Whether a name is that of a part of a component; of a `Nullable` first that of a part of its value.

    A `Nullable` of a map has a `value`, and so has the map: `tools.value` and `tools.value.args` are those of the latter.
    """
    below = at.children[at.keys.index(key)]
    return (is_nullable(below) and _names_part(below, "value", rest)) or _reaches(below, rest)
