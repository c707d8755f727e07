# SPDX-License-Identifier: Apache-2.0
"""`group_by_window`: elements collected by a key until a window is full."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from distinput.core.block import Block, ColumnBlock, concat_blocks
from distinput.core.calls import called
from distinput.core.failure import Failure
from distinput.core.leaves import STRING
from distinput.core.nest import LEAF
from distinput.core.objects import Datasets
from distinput.core.random import fresh_seed, key_of, unseeded
from distinput.core.rows import Stream
from distinput.core.run import Run
from distinput.core.spec import DatasetSpec, Spec
from distinput.core.state import State
from distinput.errors import InvalidArgumentError
from distinput.functions.claim import Claim, alike
from distinput.functions.convention import calling
from distinput.functions.dataset_functions import hash_of, node_of
from distinput.functions.inference import infer, results_of
from distinput.ops.slices import rows_node
from distinput.plan.binding import take_functions
from distinput.plan.check import at_least
from distinput.plan.keyed import Keyed
from distinput.plan.node import Node
from distinput.plan.seeds import drawn_seeds, with_seed
from distinput.plan.state_form import taken_up
from distinput.streaming.groups import Groups

__all__ = ["GroupByWindow"]


@dataclass(frozen=True, eq=False)
class GroupByWindow(Keyed):
    """Collect elements by key; pass a group that has reached its window size to `reduce_func`, and deliver its dataset.

    At the end the remaining groups follow in ascending order of their keys. Shapes: those of the datasets that
    `reduce_func` returns. State: only positions: where the oldest waiting element stands, and up to which row the elements of
    each key have been delivered; a restart calls `key_func` again from there.

    Args:
      key_func: element -> integer.
      reduce_func: (key, dataset of the group's elements) -> dataset.
      window_size: elements in a group.
      window_size_func: key -> elements in a group of that key.

    Raises:
      InvalidArgumentError: not exactly one of the two sizes is given, or a size is below 1.
      TypeError: at iteration, `key_func` returns no integer or `reduce_func` no dataset.

    >>> import distinput as di
    >>> ds = di.data.Dataset.range(6).group_by_window(lambda x: x % 2, lambda key, group: group.batch(2), window_size=2)
    >>> [batch.tolist() for batch in ds]
    [[0, 2], [1, 3], [4], [5]]

    Source: `tf.data.Dataset.group_by_window`.
    """

    key_func: Callable[..., Any]
    reduce_func: Callable[..., Any]
    window_size: int | None = None
    window_size_func: Callable[..., Any] | None = None
    claim: Claim = field(default_factory=Claim, kw_only=True, repr=False)
    drawn_seed: int = field(default_factory=fresh_seed, kw_only=True, repr=False)

    @property
    def draws(self) -> bool:
        return True  # seeds of datasets that the function makes follow from its own

    def __post_init__(self) -> None:
        sizes = () if self.window_size_func is None else ("window_size_func",)
        take_functions(self, "group_by_window", "key_func", "reduce_func", *sizes)
        if (self.window_size is None) == (self.window_size_func is None):
            raise InvalidArgumentError("group_by_window: give exactly one of window_size and window_size_func")
        if self.window_size is not None:
            at_least("group_by_window", "window_size", self.window_size, 1)

    def _reduced(self, key: int, parts: list[Block]) -> Node:
        window = rows_node(concat_blocks(parts), self.input.spec.leaves)
        with unseeded():
            node = node_of("group_by_window", self.reduce_func(np.int64(key), window.to_user()))
        if not drawn_seeds(node):
            return node
        return with_seed(node, key_of(self.drawn_seed, key, hash_of(parts[0].row(0))))

    def _size(self, key: int) -> int:
        if self.window_size is not None:
            return int(self.window_size)
        assert self.window_size_func is not None
        return at_least("group_by_window", "window_size", np.asarray(self.window_size_func(np.int64(key))), 1)

    def _of_some(self, window: Any) -> Any:
        """The results for a window, which may be made up."""
        key: Any = 0
        for element in window:
            with suppress(Exception):  # the element may be made up
                key = int(calling(self.key_func)(element))
            break
        return self.reduce_func(np.int64(key), window)

    @cached_property
    def made(self) -> tuple[Node, ...]:
        results = results_of(self._of_some, _OneGroup(self.input))
        return tuple([node_of("group_by_window", result) for result in results])

    @cached_property
    def spec(self) -> Spec:
        return self.claim.asked("group_by_window", self._inferred)

    def _inferred(self) -> Spec:
        leaf = infer("group_by_window", self._of_some, _OneGroup(self.input), self.reduce_func).leaves[0]
        if not isinstance(leaf, DatasetSpec):
            raise TypeError("group_by_window: reduce_func must return a dataset")
        return Spec.of(leaf.element_spec)

    def stream(self, state: State, run: Run) -> Stream:
        def number(result: Any) -> int:
            key = np.asarray(result)
            if key.dtype.kind not in "iu" or key.ndim:
                raise TypeError(f"group_by_window: key_func must return an integer, got {key!r}")
            return int(key)

        def made(key: int, parts: list[Block], inner: State | None) -> Stream:
            node = self._reduced(key, parts)
            stream = node.open(taken_up("group_by_window", node, state["epoch"], inner), run)
            return alike("group_by_window", stream, self.claim, lambda: self.spec, np.int64(key), tolerant=run.tolerant)

        self.decide(run)

        upstream = self.input.open(state["input"], run)
        results = called(upstream, state, self.key_func, unpack=True, tolerant=run.tolerant)
        return Groups(self.input, state, results, number, self._size, made, tolerant=run.tolerant).stream()


@dataclass(frozen=True, eq=False)
class _OneGroup(Node):
    """Some elements of the input as one group, to find out what `reduce_func` returns."""

    tolerant: ClassVar[bool] = True
    input: Node

    @cached_property
    def spec(self) -> Spec:
        return Spec(LEAF, (DatasetSpec(self.input.spec.nest),))

    def start(self, epoch: int) -> State:
        return self.input.start(epoch)

    def stream(self, state: State, run: Run) -> Stream:
        for block, after in self.input.open(state, run):
            if type(block) is Failure:  # the elements without errors tell what is returned, as they do in a first pass
                yield block, after
            else:
                group = rows_node(block, self.input.spec.leaves)
                yield ColumnBlock(LEAF, [Datasets([group], STRING)], 1), after
