# SPDX-License-Identifier: Apache-2.0
"""`from_generator`: elements that a Python generator gives."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from time import perf_counter
from typing import Any

import numpy as np

from distinput.core.block import Block
from distinput.core.nest import Structure, structure_of
from distinput.core.owned import owned
from distinput.core.rows import PACE_SECONDS, Stream
from distinput.core.run import Run
from distinput.core.sizes import MOST_ROWS
from distinput.core.spec import LeafSpec, Spec, TensorSpec, shape_fits
from distinput.core.state import State
from distinput.core.values import STRING, as_leaf, shape_of
from distinput.plan.check import callable_argument
from distinput.plan.node import Node

__all__ = ["Generator", "from_generator"]


@dataclass(frozen=True, eq=False)
class Generator(Node):
    """The elements of `generator(*args)`, which is called anew for each pass.

    Shapes and dtypes: those of the signature; values are cast to its dtypes and must fit its shapes. State: how many elements
    were given; a restart runs the generator again and passes over them.

    Args:
      generator: returns an iterable.
      signature: the spec of an element.
      args: arguments for it.

    Source: `tf.data.Dataset.from_generator`.
    """

    generator: Callable[..., Iterable[Any]]
    signature: Spec
    args: tuple[Any, ...] = ()

    @cached_property
    def spec(self) -> Spec:
        return self.signature

    def arguments(self) -> dict[str, Any]:
        return {"generator": self.generator, "output_signature": self.signature.nest}

    def start(self, epoch: int) -> State:
        return {"row": 0}

    def stream(self, state: State, run: Run) -> Stream:
        row = state["row"]
        iterator = iter(self.generator(*self.args))
        next(islice(iterator, row, row), None)
        iterator = map(owned, iterator)
        held: list[list[Any]] = []
        deadline = perf_counter() + PACE_SECONDS
        failure: BaseException | None = None
        while True:
            try:
                held.append(self._leaves(next(iterator), row + len(held)))
            except StopIteration:
                break
            except Exception as error:  # noqa: BLE001 - what came before it is sent first
                failure = error
                break
            if len(held) >= MOST_ROWS or perf_counter() > deadline:
                row += len(held)
                yield Block.of(self.signature.structure, held), {"row": row}
                held, deadline = [], perf_counter() + PACE_SECONDS
        if held:
            row += len(held)
            yield Block.of(self.signature.structure, held), {"row": row}
        if failure is not None:
            raise failure

    def _leaves(self, element: Any, row: int) -> list[Any]:
        """The element's leaves, cast and checked."""
        structure = self.signature.structure
        kind = type(element)
        alone = kind is np.ndarray and structure.is_leaf
        if alone or (kind is tuple and structure.is_flat_tuple and len(element) == structure.num_leaves):
            leaves = [element] if alone else list(element)
            if all(map(_is_as_said, leaves, self.signature.leaves)):
                return leaves
        try:
            given = structure.flatten(_as_nest(element, structure))
        except TypeError as error:
            raise TypeError(
                f"from_generator: `generator` yielded an element that does not match the expected structure {structure}: "
                f"{error} (element {row})"
            ) from None
        leaves = []
        for leaf, spec in zip(given, self.signature.leaves, strict=True):
            assert isinstance(spec, TensorSpec)
            value = _cast(leaf, spec, row)
            if not shape_fits(shape_of(value), spec.shape):
                raise TypeError(
                    f"from_generator: `generator` yielded an element of shape {shape_of(value)} where an element of shape "
                    f"{spec.shape} was expected (element {row})"
                )
            leaves.append(value)
        return leaves


def _is_as_said(value: Any, leaf: LeafSpec) -> bool:
    """Whether a value needs no cast and no further look, as most arrays do not."""
    if type(value) is not np.ndarray or not value.ndim or not isinstance(leaf, TensorSpec):
        return False
    return value.dtype == leaf.dtype != STRING and shape_fits(value.shape, leaf.shape)


def _as_nest(element: Any, structure: Structure) -> Any:
    """Lists stand for tuples where the signature has tuples."""
    if structure.kind == "tuple" and isinstance(element, list):
        return tuple(element)
    return element


def _cast(leaf: Any, spec: TensorSpec, row: int) -> Any:
    if spec.dtype == STRING:
        value = as_leaf(leaf)
        if not isinstance(value, bytes) and value.dtype != STRING:
            raise TypeError(f"from_generator: element {row} must be text for a signature of strings, got {leaf!r}")
        return value
    try:
        array = np.asarray(leaf).astype(spec.dtype, copy=False)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"from_generator: `generator` yielded an element that could not be converted to the expected type {spec.dtype}: "
            f"{leaf!r} (element {row}; {error})"
        ) from None
    return array if array.ndim else array[()]


def from_generator(
    generator: Callable[..., Iterable[Any]],
    output_types: Any = None,
    output_shapes: Any = None,
    args: tuple[Any, ...] | None = None,
    output_signature: Any = None,
) -> Generator:
    """The node of `tf.data.Dataset.from_generator`.

    Raises:
      TypeError: `generator` cannot be called, or neither or both kinds of signature are given.
    """
    callable_argument("from_generator", "generator", generator)
    if (output_types is None) == (output_signature is None):
        raise TypeError("from_generator: give output_signature, or output_types with output_shapes, and not both")
    if output_signature is not None:
        if output_shapes is not None:
            raise TypeError("from_generator: output_shapes does not go with output_signature")
        return Generator(generator, Spec.of(output_signature), tuple(args or ()))
    types = structure_of(output_types, lists=True)
    dtypes = types.flatten(output_types)
    shapes = [None] * len(dtypes) if output_shapes is None else types.flatten(output_shapes)
    leaves = tuple([TensorSpec(shape, dtype) for shape, dtype in zip(shapes, dtypes, strict=True)])
    return Generator(generator, Spec(types, leaves), tuple(args or ()))
