# SPDX-License-Identifier: Apache-2.0
"""`scan`: a function that carries a value from element to element."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from distinput.core.block import Block
from distinput.core.calls import applied
from distinput.core.failure import Failure
from distinput.core.nest import Structure, structure_of
from distinput.core.owned import owned
from distinput.core.rows import Stream
from distinput.core.run import Run
from distinput.core.spec import Spec
from distinput.core.state import State, decode_value, encode_value
from distinput.core.values import as_leaf, dtype_of
from distinput.ops.function import infer
from distinput.plan.check import callable_argument
from distinput.plan.node import Node

__all__ = ["Carry", "Scan"]


class Carry:
    """A value that a user function receives and returns; structure and dtypes must not change.

    Args:
      op: the op's name, for messages.
      initial: the first value, any nest.
    """

    def __init__(self, op: str, initial: Any) -> None:
        self.op = op
        self.structure = structure_of(initial)
        leaves = [as_leaf(leaf) for leaf in self.structure.flatten(initial)]
        if any(isinstance(leaf, Node) for leaf in leaves):
            raise TypeError(f"{op}: the carried value must be a nest of arrays, got {initial!r}")
        self.dtypes = [dtype_of(leaf) for leaf in leaves]
        self.initial = self.structure.build(leaves)

    def checked(self, value: Any) -> Any:
        """`value` as the next carried value.

        Raises:
          TypeError: its structure or a dtype is not that of the initial value.
        """
        if type(value) is list and not self.structure.is_leaf:
            value = tuple(value)
        structure = structure_of(value)
        if structure != self.structure:
            raise TypeError(f"{self.op}: the carried value must keep its structure {self.structure}, got {structure}")
        leaves = [as_leaf(leaf) for leaf in structure.flatten(value)]
        for leaf, dtype, path in zip(leaves, self.dtypes, structure.paths, strict=True):
            if dtype_of(leaf) != dtype:
                raise TypeError(
                    f"{self.op}: the carried value{path} must keep its dtype {dtype}, got {dtype_of(leaf)}; give the initial "
                    "value that dtype, for example np.int64(0)"
                )
        return self.structure.build(leaves)


@dataclass(frozen=True, eq=False)
class Scan(Node):
    """Call `scan_func(state, element)` on every element; it returns the next state and an output.

    Shapes: those of the outputs. Order: unchanged. State: the carried value, and where the next element stands.

    Args:
      initial_state: the first value of the state, any nest; a list is an array.
      scan_func: (state, element) -> (state, output); a tuple element is one argument. A list within is an array.

    Raises:
      TypeError: at iteration, when the state changes its structure or a dtype.

    >>> import distinput as di
    >>> import numpy as np
    >>> di.data.Dataset.range(4).scan(np.int64(0), lambda s, x: (s + x, s + x)).to_list()
    [0, 1, 3, 6]

    Source: `tf.data.Dataset.scan`.
    """

    tolerant: ClassVar[bool] = True
    input: Node
    initial_state: Any
    scan_func: Callable[..., Any]

    def __post_init__(self) -> None:
        callable_argument("scan", "scan_func", self.scan_func)
        assert self.carry is not None
        first = self.input.first_in_memory
        if first is not None:
            self._check(*first)

    @cached_property
    def carry(self) -> Carry:
        """The rule of the carried value."""
        return Carry("scan", self.initial_state)

    def _check(self, element: Any) -> None:
        """Refuse a function that does not return (state, output) for the first element, the state as it is."""
        try:
            result = self.scan_func(self.carry.initial, element)
        except Exception:  # noqa: BLE001 - an error of the function belongs to the iteration
            return
        self._parts(result)

    def _step(self, carried: Any, element: Any) -> tuple[Any, Any]:
        return self._parts(self.scan_func(carried, element))

    def _parts(self, result: Any) -> tuple[Any, Any]:
        if not isinstance(result, tuple | list) or len(result) != 2:
            raise TypeError(f"scan: scan_func must return (state, output), got {result!r}")
        return self.carry.checked(result[0]), result[1]

    @cached_property
    def spec(self) -> Spec:
        return infer("scan", lambda element: self._step(self.carry.initial, element)[1], self.input)

    @property
    def cardinality(self) -> int:
        return self.input.cardinality

    def start(self, epoch: int) -> State:
        return {"input": self.input.start(epoch), "skip": 0, "carry": encode_value(self.carry.initial)}

    def stream(self, state: State, run: Run) -> Stream:
        carried = decode_value(state["carry"], self.carry.initial)
        structure: Structure | None = None

        def step(element: Any) -> Any:
            nonlocal carried
            carried, output = self._step(carried, element)
            return output

        def results(rows: Block) -> Iterator[Any]:
            return map(owned, map(step, rows.elements()))

        upstream = self.input.open(state["input"], run)
        for made, rows, _, mark in applied(upstream, state, results, tolerant=run.tolerant):
            if type(rows) is Failure:
                yield rows, {**mark, "carry": encode_value(carried)}
                continue
            if structure is None:
                structure = structure_of(made[0])
            yield Block.of_elements(structure, made), {**mark, "carry": encode_value(carried)}
