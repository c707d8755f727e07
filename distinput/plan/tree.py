# SPDX-License-Identifier: Apache-2.0
"""Trees of frozen dataclasses: the inputs, arguments, name and copies that a step has without saying anything of them."""

import dataclasses
from abc import ABC
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from distinput.core.digest import Digest
from distinput.plan.facts import Facts
from distinput.plan.origin import Origin, caller

if TYPE_CHECKING:
    from distinput.plan.binding import Captured

__all__ = ["Tree"]

N = TypeVar("N", bound="Tree[Any]")


@dataclass(frozen=True, eq=False)
class Tree(Facts, ABC, Generic[N]):
    """A frozen dataclass whose fields are its inputs, which are trees like it or tuples of them, and its arguments.

    Args:
      name: what the user calls the step.
      origin: the line that made it.
      captured: what its functions read from outside and could not take over; None: nothing was taken over yet.
    """

    name: str | None = field(default=None, kw_only=True, repr=False)
    origin: Origin = field(default_factory=caller, kw_only=True, repr=False)
    captured: "Captured | None" = field(default=None, kw_only=True, repr=False)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        _unlock(cls)

    @cached_property
    def inputs(self) -> tuple[N, ...]:
        """The nodes this one reads from."""
        found: list[Any] = []
        for f in dataclasses.fields(self):
            value = getattr(self, f.name)
            if isinstance(value, Tree):
                found.append(value)
            elif isinstance(value, tuple):
                found += [v for v in value if isinstance(v, Tree)]
        return tuple(found)

    def with_inputs(self, inputs: tuple[N, ...]) -> Self:
        """The same step over other inputs; it keeps its spec where theirs are the same."""
        left = list(inputs)
        changes: dict[str, Any] = {}
        for f in dataclasses.fields(self):
            value = getattr(self, f.name)
            if isinstance(value, Tree):
                changes[f.name] = left.pop(0)
            elif isinstance(value, tuple) and any(isinstance(v, Tree) for v in value):
                changes[f.name] = tuple(left.pop(0) if isinstance(v, Tree) else v for v in value)
        made = dataclasses.replace(self, **changes)
        return made.same_as(self) if all(map(_alike, self.inputs, inputs)) else made

    def same_as(self, other: "Tree[Any]") -> Self:
        """Itself, with the spec of a step that gives the same elements, if known, so that no function is called for it."""
        known = vars(other).get("spec")
        if known is not None:
            vars(self).setdefault("spec", known)
        return self

    def arguments(self) -> dict[str, Any]:
        """The arguments that are not inputs, for printing and for the fingerprint."""
        hidden = {"name", "origin", "captured"}
        found = {}
        for f in dataclasses.fields(self):
            value = getattr(self, f.name)
            is_input = isinstance(value, Tree) or (isinstance(value, tuple) and any(isinstance(v, Tree) for v in value))
            if f.name not in hidden and f.repr and not is_input:
                found[f.name] = value
        return found

    @property
    def op(self) -> str:
        """The op's name, as users call it."""
        kind = type(self).__name__
        return "".join("_" + c.lower() if c.isupper() and i else c.lower() for i, c in enumerate(kind))

    def where(self) -> str:
        """The step and the line that made it, for notes on errors."""
        return f"{self}, made at {self.origin}"

    @cached_property
    def identity(self) -> dict[str, Any]:
        """What identifies this step, apart from its inputs: its op, and hashes of its arguments, functions and contents."""
        from distinput.plan.code import PYTHON, ArgumentReader

        reading = ArgumentReader()
        given = {name: reading.argument(v) for name, v in self.arguments().items() if name not in self.indifferent}
        found = {"step": f"{self.op}#{Digest(3).add(sorted(given.items())).word}"}
        if reading.code:
            found["code"] = f"{PYTHON} {Digest().add(reading.code).word} {Digest(3).add(reading.names).word}"
        if reading.held:
            found["held"] = Digest().add(reading.held).word
        if reading.data:
            found["data"] = Digest().add(reading.data).word
        return {**found, **self.contents()}

    def contents(self) -> dict[str, Any]:
        """Hashes of the elements that it holds in memory; computed once."""
        return {}

    def __str__(self) -> str:
        from distinput.plan.describe import given

        label = "" if self.name is None else f"[{self.name}]"
        return f"{self.op}{label}({', '.join(f'{name}={text}' for name, text in given(self).items())})"

    def __getstate__(self) -> dict[str, Any]:
        """Its fields, and its spec if that is known: what else was computed is computed again in another process."""
        kept = [f.name for f in dataclasses.fields(self)] + ["spec"] * ("spec" in vars(self))
        if self.captured is None:
            return {name: vars(self)[name] for name in kept}
        from distinput.plan.binding import by_name

        return {name: by_name(vars(self)[name]) for name in kept}


def _alike(old: Tree[Any], new: Tree[Any]) -> bool:
    """Whether the specs of two nodes are known already, and equal."""
    if old is new:
        return True
    known, found = vars(old).get("spec"), vars(new).get("spec")
    return known is not None and (known is found or known == found)


def _unlock(cls: type) -> None:
    """Let several threads compute cached properties of nodes at the same time.

    Before Python 3.12 all instances of a class share one lock per cached property. A function that is called to infer the spec
    of one pipeline, and waits for a thread that needs the spec of another, would wait forever.
    """
    for value in vars(cls).values():
        if isinstance(value, cached_property) and hasattr(value, "lock"):
            setattr(value, "lock", nullcontext())  # noqa: B010 - newer versions have none


_unlock(Tree)
