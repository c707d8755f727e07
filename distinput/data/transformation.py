# SPDX-License-Identifier: Apache-2.0
"""Methods of a dataset that add an op to its pipeline."""

from collections.abc import Callable
from types import MethodType
from typing import Any

from distinput.data.arguments import Arguments
from distinput.data.handle import DatasetHandle
from distinput.plan.check import taken
from distinput.plan.node import Node

__all__ = ["method_of", "transformation"]


def transformation(load: Callable[[], Callable[..., Node]], *, reshuffles: bool = False) -> Any:
    """The method that adds an op to a pipeline; name, arguments and documentation are those of the op.

    Args:
      load: imports and returns the op; called when the method is first named.
      reshuffles: True if each pass has another order, so that passes over the result get their own numbers.
    """
    return _Transformation(load, reshuffles)


def method_of(name: str, op: Callable[..., Node], *, reshuffles: bool = False) -> Callable[..., Any]:
    """A function that can be set as a method of `Dataset`.

    Args:
      name: the method's name.
      op: a subclass of `Node` whose first field is its input.
      reshuffles: True if each pass has another order, so that passes over the result get their own numbers.
    """
    arguments = Arguments(name, op)

    def method(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        given = {name: taken(value) for name, value in arguments.by_name(args, kwargs).items()}
        made = op(self.node, **given).with_functions_taken()
        return self._followed_by(made.added(), reshuffles)

    method.__signature__ = arguments.signature  # type: ignore[attr-defined]
    method.__name__, method.__qualname__, method.__doc__ = name, f"Dataset.{name}", op.__doc__
    method.__module__ = "distinput.data.dataset"
    return method


class _Transformation:
    """Takes the place of a method until it is first named."""

    def __init__(self, load: Callable[[], Callable[..., Node]], reshuffles: bool) -> None:
        self.load, self.reshuffles = load, reshuffles

    def __set_name__(self, owner: type[DatasetHandle], name: str) -> None:
        self.owner, self.name = owner, name

    def __get__(self, dataset: DatasetHandle | None, _: type[DatasetHandle]) -> Callable[..., Any]:
        made = method_of(self.name, self.load(), reshuffles=self.reshuffles)
        setattr(self.owner, self.name, made)
        return made if dataset is None else MethodType(made, dataset)
