# SPDX-License-Identifier: Apache-2.0
"""What a method that adds an op can be given, and what is said where it is given something else."""

import inspect
from collections.abc import Callable
from typing import Any

from distinput.plan.node import Node

__all__ = ["Arguments"]

_INTERNAL = ("claim", "common_cycle", "drawn_seed", "group", "origin", "store")
"""Arguments of ops that users do not give."""

_ALIKE = 0.5
"""How alike a name must be to one that is known to be taken for it: `drop_last` and `drop_remainder` just are."""


class Arguments:
    """The arguments of an op as users give them: those of TensorFlow by position too, ours by name alone.

    Args:
      op: its name.
      node: the op.
      dataset: what the input and other datasets are called in the signature.
    """

    def __init__(self, op: str, node: Callable[..., Node], dataset: str) -> None:
        made = inspect.signature(node)
        first, *rest = made.parameters.values()
        shown = [p for p in rest if p.name not in _INTERNAL]
        shown = [p.replace(annotation=dataset) if p.annotation is Node else p for p in shown]
        shown = [p.replace(kind=inspect.Parameter.POSITIONAL_OR_KEYWORD) if p.name == "name" else p for p in shown]
        shown.sort(key=lambda p: p.kind)  # stable: `name` comes after the others that have a position
        self.op = op
        self.datasets = {p.name for p in rest if p.annotation is Node}
        self.known = [p.name for p in shown]
        self.positional = [p.name for p in shown if p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
        self.required = {p.name for p in shown if p.default is inspect.Parameter.empty}
        myself = inspect.Parameter("self", first.kind)
        self.signature = made.replace(parameters=[myself, *shown], return_annotation=dataset)

    def by_name(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """What was given, by name.

        Raises:
          TypeError: an argument is not known, missing, given twice or one too many.
        """
        if len(args) > len(self.positional):
            taken = f"{', '.join(self.positional)} by position" if self.positional else "none"
            raise TypeError(f"{self.op}: too many arguments, it takes {taken}; got {len(args)}")
        given = dict(zip(self.positional, args, strict=False))
        for name, value in kwargs.items():
            if name in given:
                raise TypeError(f"{self.op}: argument {name!r} was given twice, by position and by name")
            if name not in self.known:
                raise TypeError(f"{self.op}: unexpected argument {name!r}, {self._meant(name)}")
            given[name] = value
        missing = self.required - given.keys()
        if missing:
            names = [name for name in self.known if name in missing]
            raise TypeError(f"{self.op}: needs {' and '.join(names)}")
        return given

    def _meant(self, name: str) -> str:
        from difflib import get_close_matches  # for this message alone

        near = get_close_matches(name, self.known, 1, _ALIKE)
        return f"did you mean {near[0]}?" if near else f"it takes {', '.join(self.known)}"
