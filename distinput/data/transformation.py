# SPDX-License-Identifier: Apache-2.0
"""Methods of a dataset that add an op to its pipeline."""

import inspect
from collections.abc import Callable
from types import MethodType
from typing import Any

from distinput.names.words import meant
from distinput.plan.check import taken
from distinput.plan.node import Node
from distinput.values.spec import DatasetSpec

# ----------------------------------------------------------------------------
# The arguments of methods that add an op: which ones users may pass, and the errors for wrong ones.
# ----------------------------------------------------------------------------


_NODE = (Node, "Node")
"""Annotations of fields that are further inputs; strings, where annotations are not evaluated."""

_ELSEWHERE: dict[str, tuple[str, ...]] = {
    "bufsize": ("buffer_size",),
    "concurrency": ("num_parallel_calls",),
    "dataset": ("datasets",),
    "drop_last": ("drop_remainder",),
    "drop_last_batch": ("drop_remainder",),
    "ds": ("dataset",),
    "element_spec": ("output_signature",),
    "epochs": ("count",),
    "f": ("map_func", "predicate", "scan_func", "reduce_func"),
    "filter_fn": ("predicate",),
    "fn": ("map_func", "predicate", "scan_func", "reduce_func"),
    "func": ("map_func", "predicate", "scan_func", "reduce_func"),
    "function": ("map_func", "predicate", "scan_func", "reduce_func"),
    "map_fn": ("map_func",),
    "max_workers": ("num_parallel_calls",),
    "n": ("count", "buffer_size", "batch_size", "size"),
    "num_epochs": ("count",),
    "num_proc": ("num_parallel_calls",),
    "num_replicas": ("num_shards",),
    "num_threads": ("num_parallel_calls",),
    "num_workers": ("num_shards", "num_parallel_calls"),
    "ordered": ("deterministic",),
    "other": ("dataset",),
    "pad_value": ("padding_values",),
    "path": ("filename",),
    "prefetch_factor": ("buffer_size",),
    "random_state": ("seed",),
    "rank": ("index",),
    "reshuffle": ("reshuffle_each_iteration",),
    "size": ("batch_size", "buffer_size", "count"),
    "step": ("shift", "stride"),
    "times": ("count",),
    "workers": ("num_parallel_calls",),
    "world_size": ("num_shards",),
}
"""Arguments of PyTorch, Hugging Face datasets, Grain and the like, and their likely counterparts here, best first."""


class Arguments:
    """The arguments of an op as users give them: those of TensorFlow also by position, ours only by name.

    A keyword-only field of the op that its `repr` leaves out belongs to the library, and is no argument of the method.

    Args:
      op: the method's name.
      node: the op.
    """

    def __init__(self, op: str, node: Callable[..., Node]) -> None:
        signature = inspect.signature(node)
        fields = getattr(node, "__dataclass_fields__", {})
        first, *rest = signature.parameters.values()
        shown = [p for p in rest if p.name == "name" or not (p.kind is p.KEYWORD_ONLY and _is_hidden(fields, p.name))]
        shown = [p.replace(annotation="Dataset") if p.annotation in _NODE else p for p in shown]
        shown = [p.replace(kind=inspect.Parameter.POSITIONAL_OR_KEYWORD) if p.name == "name" else p for p in shown]
        shown.sort(key=lambda p: p.kind)  # stable: `name` comes after the others that have a position
        self.op = op
        self.datasets = {p.name for p in rest if p.annotation in _NODE}
        self.known = [p.name for p in shown]
        self.positional = [p.name for p in shown if p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
        self.required = {p.name for p in shown if p.default is inspect.Parameter.empty}
        myself = inspect.Parameter("self", first.kind)
        self.signature = signature.replace(parameters=[myself, *shown], return_annotation="Dataset")

    def by_name(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The arguments given, by name, with datasets replaced by their nodes.

        Raises:
          TypeError: an argument is unknown, missing, given twice or one too many, or must be a dataset and is not.
        """
        if len(args) > len(self.positional):
            taken = f"{', '.join(self.positional)} by position" if self.positional else "none"
            raise TypeError(f"{self.op}: too many arguments, it takes {taken}; got {len(args)}")
        arguments = dict(zip(self.positional, args, strict=False))
        for name, value in kwargs.items():
            if name in arguments:
                raise TypeError(f"{self.op}: argument {name!r} was given twice, by position and by name")
            if name not in self.known:
                raise TypeError(f"{self.op}: unexpected argument {name!r}, {self._meant(name)}")
            arguments[name] = value
        missing = self.required - arguments.keys()
        if missing:
            names = [name for name in self.known if name in missing]
            raise TypeError(f"{self.op}: needs {' and '.join(names)}")
        for name in self.datasets:
            if name in arguments:
                arguments[name] = self._node(name, arguments[name])
        return arguments

    def _node(self, name: str, value: Any) -> Node:
        if not isinstance(value, DatasetSpec.value_type):
            raise TypeError(
                f"{self.op}: {name} must be a Dataset, got {value!r}; Dataset.from_tensors and Dataset.from_tensor_slices "
                "make one of values"
            )
        node: Node = value.node
        return node

    def _meant(self, name: str) -> str:
        ours = [each for each in _ELSEWHERE.get(name, ()) if each in self.known]
        return f"did you mean {ours[0]}?" if ours else meant(name, self.known, "it takes")


def _is_hidden(fields: dict[str, Any], name: str) -> bool:
    return name in fields and not fields[name].repr


# ----------------------------------------------------------------------------
# Methods that are made of ops when they are first named.
# ----------------------------------------------------------------------------


def transformation(load: Callable[[], Callable[..., Node]], *, reshuffles: bool = False) -> Any:
    """The method that adds an op to a pipeline; name, arguments and documentation are those of the op.

    Args:
      load: imports and returns the op; called when the method is first named.
      reshuffles: True if each pass has another order, so that passes over the result get their own numbers.
    """
    return _Transformation(load, reshuffles)


def adds_an_op(method: Any) -> bool:
    """Whether a method, as it stands in its class, is one that `transformation` made."""
    return isinstance(method, _Transformation) or hasattr(method, "op")


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
    method.op = op  # type: ignore[attr-defined]
    return method


class _Transformation:
    """Takes the place of a method until it is first named."""

    def __init__(self, load: Callable[[], Callable[..., Node]], reshuffles: bool) -> None:
        self.load, self.reshuffles = load, reshuffles

    def __set_name__(self, owner: type[Any], name: str) -> None:
        self.owner, self.name = owner, name

    def __get__(self, dataset: Any, _: type[Any]) -> Callable[..., Any]:
        made = method_of(self.name, self.load(), reshuffles=self.reshuffles)
        setattr(self.owner, self.name, made)
        return made if dataset is None else MethodType(made, dataset)
