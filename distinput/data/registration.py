# SPDX-License-Identifier: Apache-2.0
"""Ops defined outside this library: registered methods of `Dataset`, and steps added without a method."""

import inspect
from collections.abc import Callable
from typing import Any

from distinput.data.dataset import Dataset, transformation
from distinput.names.lazy import Registry
from distinput.plan.node import Node

OPS: Registry[Callable[..., Node]] = Registry("op", {})
"""The registered ops by name."""


def register_op(name: str, op: Any = None, *, reshuffles: bool = False) -> Any:
    """Make an op a method of every dataset: `dataset.name(...)`, with the arguments and the documentation of the op.

    The fields of the op after the first one, its input, are the arguments; fields annotated as `Node` accept datasets.

    Args:
      name: the name of the method: lower-case letters, digits and underscores.
      op: a subclass of `Node` that is a frozen dataclass, or `package.module:attribute` of one, which is imported when the
        method is first named. Left out: `register_op(name)` is a decorator for the class.
      reshuffles: True if each pass has another order, so that passes over the result get their own numbers.

    Returns:
      `op`, or the decorator.

    Raises:
      ValueError: the name or the place is malformed, or a method or another op has the name; the message says which.
      TypeError: `op` is not an op.

    >>> from dataclasses import dataclass
    >>> import distinput as di
    >>> from distinput.extend import Node, register_op
    >>> @register_op("every_second")
    ... @dataclass(frozen=True, eq=False)
    ... class EverySecond(Node):
    ...     '''Every second element. State: that of the input, and how many rows to pass over.'''
    ...
    ...     input: Node
    ...
    ...     @property
    ...     def spec(self):
    ...         return self.input.spec
    ...
    ...     def start(self, epoch):
    ...         return {"input": self.input.start(epoch), "over": 0}
    ...
    ...     def stream(self, state, run):
    ...         over = state["over"]
    ...         for block, after in self.input.open(state["input"], run):
    ...             kept = block.rows(over, block.size, 2)
    ...             over = (over - block.size) % 2
    ...             if kept.size:
    ...                 yield kept, {"input": after, "over": over}
    >>> di.data.Dataset.range(7).every_second().to_list()
    [0, 2, 4, 6]
    """
    if op is None:
        return lambda made: register_op(name, made, reshuffles=reshuffles)
    if not isinstance(op, str):
        _check(name, op)
    there = inspect.getattr_static(Dataset, name, None) if isinstance(name, str) else None
    if there is not None and name not in OPS:
        raise ValueError(f"op {name!r}: the name is taken by Dataset.{name}, so {_place(op)} needs another one")
    OPS.register(name, op)
    method = transformation(lambda: _found(name), reshuffles=reshuffles)
    setattr(Dataset, name, method)
    method.__set_name__(Dataset, name)
    return op


def dataset_of(node: Node) -> Dataset:
    """The dataset of a node: for a source of your own, or a tree that you built.

    Args:
      node: the last step of the pipeline.

    Raises:
      TypeError: it is not a node.

    >>> import distinput as di
    >>> from distinput.ops.take import Take
    >>> dataset_of(Take(di.data.Dataset.range(5).node, 2)).to_list()
    [0, 1]
    """
    if not isinstance(node, Node):
        raise TypeError(f"dataset_of: needs a Node, got {node!r}")
    return Dataset(node)


def step(op: Callable[..., Node], /, *args: Any, **kwargs: Any) -> Callable[[Dataset], Dataset]:
    """For `Dataset.apply`: a step with an op that is not registered.

    Args:
      op: a subclass of `Node` whose first field is its input.
      *args: its arguments; datasets stand for their nodes.
      **kwargs: its named arguments, likewise.

    Raises:
      TypeError: `op` does not make a node.

    >>> import distinput as di
    >>> from distinput.ops.take import Take
    >>> di.data.Dataset.range(5).apply(step(Take, 2)).to_list()
    [0, 1]
    """

    def add(dataset: Dataset) -> Dataset:
        made = op(dataset.node, *map(_node, args), **{key: _node(value) for key, value in kwargs.items()})
        if not isinstance(made, Node):
            raise TypeError(f"step: needs a subclass of Node, got {op!r}, which makes {made!r}")
        return dataset._followed_by(made.with_functions_taken().added())

    return add


def _node(value: Any) -> Any:
    return value.node if isinstance(value, Dataset) else value


def _found(name: str) -> Callable[..., Node]:
    op = OPS.find(name)
    _check(name, op)
    return op


def _check(name: str, op: Any) -> None:
    if not callable(op) or (inspect.isclass(op) and not issubclass(op, Node)):
        raise TypeError(f"op {name!r}: needs a subclass of Node, got {op!r}")
    if inspect.isclass(op) and "__dataclass_fields__" not in vars(op) and "__annotations__" in vars(op):
        raise TypeError(
            f"op {name!r}: {op.__qualname__} has fields but is not a dataclass; put @dataclass(frozen=True, eq=False) before it"
        )
    if inspect.isclass(op) and set(getattr(op, "__dataclass_fields__", ())) == set(Node.__dataclass_fields__):
        raise TypeError(
            f"op {name!r}: {op.__qualname__} has no field for its input; a source is used by dataset_of({op.__qualname__}(...))"
        )


def _place(op: Any) -> str:
    return op if isinstance(op, str) else f"{op.__module__}:{getattr(op, '__qualname__', op)}"
