# SPDX-License-Identifier: Apache-2.0
"""`group_by_reducer`: one element for each key, made of all elements of that key."""

from collections.abc import Callable, Iterator
from dataclasses import field
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np

from distinput.arrow.adopt import owned
from distinput.columns.block import Block, Failure, failed
from distinput.columns.rows import Stream, same
from distinput.columns.state import Mark, State
from distinput.functions.chain import calling
from distinput.functions.claim import Claim, MadeBlock, behind, formed, held
from distinput.functions.inference import infer
from distinput.names.lazy import dataclass
from distinput.ops.scan import Carry
from distinput.plan.binding import take_functions
from distinput.plan.check import whole_key
from distinput.plan.node import Node
from distinput.run.run import Run, called, called_once
from distinput.values.leaves import as_leaf
from distinput.values.nest import LEAF
from distinput.values.spec import Spec

_OP = "group_by_reducer"

_NO_KEYS = Block.of_elements(LEAF, [])


@dataclass(frozen=True, eq=False)
class GroupByReducer(Node):
    """Reduce the elements of each key to one, and deliver these in ascending order of the keys, once the input has ended.

    Shapes: those of what `finalize_func` returns. State: how many results were delivered, and how many errors before them; a
    restart reads the input again. The reduced value of every key is kept in memory. An element whose error was raised is left
    out of its group.

    Args:
      key_func: element -> integer; the components of a tuple are its arguments.
      init_func: key -> the first value for that key, any nest.
      reduce_func: (value, element) -> the next value, of the same structure and dtypes; a tuple element is one argument.
      finalize_func: value -> the element to deliver; the components of a tuple are its arguments.

    Raises:
      TypeError: something is not callable; at iteration, `key_func` returns no integer, or the value changes its structure or
        a dtype.
      InvalidArgumentError: at iteration, a key does not fit into int64.

    >>> import distinput as di
    >>> reducer = di.data.experimental.Reducer(lambda key: np.int64(0), lambda total, x: total + x, lambda total: total)
    >>> ds = di.data.Dataset.range(10)
    >>> ds.apply(di.data.experimental.group_by_reducer(lambda x: x % 3, reducer)).to_list()
    [18, 12, 15]

    Source: `tf.data.experimental.group_by_reducer`.
    """

    tolerant: ClassVar[bool] = True
    input: Node
    key_func: Callable[..., Any]
    init_func: Callable[[Any], Any]
    reduce_func: Callable[[Any, Any], Any]
    finalize_func: Callable[..., Any]
    claim: Claim = field(default_factory=Claim, kw_only=True, repr=False)

    def __post_init__(self) -> None:
        take_functions(self, _OP, "key_func", "init_func", "reduce_func", "finalize_func")

    @cached_property
    def spec(self) -> Spec:
        return self.claim.asked(_OP, self._inferred)

    def _inferred(self) -> Spec:
        groups = _Groups(self)  # of all samples, so that results that grow with their groups are seen to grow

        def result(element: Any) -> Any:
            return self._final(groups.values[groups.add(element)][1])

        return infer(_OP, result, self.input, self.key_func, self.init_func, self.reduce_func, self.finalize_func)

    def start(self, epoch: int) -> State:
        return {"input": self.input.start(epoch), "skip": 0, "given": 0}

    def stream(self, state: State, run: Run) -> Stream:
        self.decide(run)
        note = partial(run.annotate, where=self.where)
        return held(_OP, self._made(state, run), self.claim, None, lambda: self.spec, note, tolerant=run.tolerant)

    def _made(self, state: State, run: Run) -> Iterator[MadeBlock]:
        groups = _Groups(self)
        begin = {"input": state["input"], "skip": 0}
        failures, first = 0, state["given"]
        for _, rows, _, _ in called(self.input.open(state["input"], run), begin, groups.add, tolerant=run.tolerant):
            if type(rows) is Failure:
                failures += 1
                if failures > state.get("failed", 0):
                    yield rows, partial(same, {**begin, "given": first, "failed": failures}), _NO_KEYS
        remaining = groups.sorted()[first:]
        if not remaining:
            return
        finals = map(owned, map(self._result, remaining))
        errors = {"failed": failures} if failures else {}

        def at(done: int) -> Mark:
            return {**begin, "given": first + done, **errors}

        done = 0
        keys = [np.int64(key) for key, _ in remaining]
        while done < len(remaining):
            results: list[Any] = []
            failure: Exception | None = None
            try:
                results.extend(finals)  # keeps what was made before an error
            except Exception as error:  # noqa: BLE001 - comes behind that
                failure = error
            for block, place, end in formed(results) if results else ():
                if isinstance(block, Block):
                    yield block, behind(at, done + place), Block.of_elements(LEAF, keys[done + place : done + end])
                else:
                    yield failed(block, tolerant=run.tolerant), behind(at, done + end), _NO_KEYS
            done += len(results)
            if failure is not None:
                done += 1
                yield failed(failure, tolerant=run.tolerant), behind(at, done), _NO_KEYS

    def _result(self, group: tuple[int, Any]) -> Any:
        try:
            return self._final(group[1])
        except Exception as error:
            error.add_note(f"on the value of key {group[0]}")
            raise

    def _final(self, value: Any) -> Any:
        result = called_once(calling(self.finalize_func), value)
        return as_leaf(result) if type(result) is list else result


class _Groups:
    """The values of the keys so far."""

    def __init__(self, node: GroupByReducer) -> None:
        self.node = node
        self.key_func = calling(node.key_func)
        self.values: dict[int, tuple[Carry, Any]] = {}

    def add(self, element: Any) -> int:
        """Reduce one more element; its key."""
        key = whole_key(_OP, self.key_func(element))
        if key not in self.values:
            carry = Carry(_OP, self.node.init_func(np.int64(key)))
            self.values[key] = carry, carry.initial
        carry, value = self.values[key]
        self.values[key] = carry, carry.checked(self.node.reduce_func(value, element))
        return key

    def sorted(self) -> list[tuple[int, Any]]:
        """The keys in ascending order, each with its value."""
        return [(key, self.values[key][1]) for key in sorted(self.values)]
