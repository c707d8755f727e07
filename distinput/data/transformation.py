# SPDX-License-Identifier: Apache-2.0
"""The methods of a dataset that add an op to its pipeline."""

from collections.abc import Callable
from types import MethodType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, cast

from distinput.data.arguments import Arguments
from distinput.plan.node import Node

if TYPE_CHECKING:
    from distinput.data.dataset import Dataset

__all__ = ["transformation"]

P = ParamSpec("P")


def transformation(
    load: Callable[[], Callable[Concatenate[Node, P], Node]], *, reshuffles: bool = False
) -> Callable[Concatenate["Dataset", P], "Dataset"]:
    """The method that adds an op to a pipeline; name, arguments and documentation are those of the op.

    Args:
      load: gives the op, whose file is loaded thereby: that happens when the method is first named.
      reshuffles: passes over what it makes are numbered anew, since each of them is in another order.
    """
    return cast(Callable[Concatenate["Dataset", P], "Dataset"], _Transformation(load, reshuffles))


class _Transformation:
    """Takes the place of a method until it is first named."""

    def __init__(self, load: Callable[[], Callable[..., Node]], reshuffles: bool) -> None:
        self.load, self.reshuffles = load, reshuffles

    def __set_name__(self, owner: "type[Dataset]", name: str) -> None:
        self.owner, self.name = owner, name

    def __get__(self, dataset: "Dataset | None", _: "type[Dataset]") -> Callable[..., "Dataset"]:
        made = _method(self.owner, self.name, self.load(), self.reshuffles)
        setattr(self.owner, self.name, made)
        return made if dataset is None else MethodType(made, dataset)


def _method(owner: "type[Dataset]", name: str, node: Callable[..., Node], reshuffles: bool) -> Callable[..., "Dataset"]:
    arguments = Arguments(name, node, owner)

    def method(self: "Dataset", /, *args: Any, **kwargs: Any) -> "Dataset":
        given = arguments.by_name(args, kwargs)
        return self._followed_by(node(self.node, **given).added(), reshuffles)

    method.__signature__ = arguments.signature  # type: ignore[attr-defined]
    method.__name__, method.__qualname__, method.__doc__ = name, f"{owner.__name__}.{name}", node.__doc__
    method.__module__ = owner.__module__
    return method
