# SPDX-License-Identifier: Apache-2.0
"""`map`: a function on every element."""

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cached_property
from threading import Event
from typing import Any

from distinput.core.block import Block
from distinput.core.calls import applied, note_element
from distinput.core.column import Ints
from distinput.core.nest import Structure, structure_of
from distinput.core.rows import Stream, passing_over
from distinput.core.run import Run
from distinput.core.spec import Spec
from distinput.core.state import Mark, State
from distinput.ops.chain import Chain
from distinput.ops.function import calling, infer
from distinput.plan.check import AUTOTUNE, callable_argument, parallel_calls
from distinput.plan.node import Node

__all__ = ["FusedMap", "Map", "fused"]


@dataclass(frozen=True, eq=False)
class Map(Node):
    """Call `map_func` on every element.

    Shapes: whatever `map_func` returns: any nest; a list becomes a tuple. Order: unchanged.
    State: where the next element stands in the input.

    Args:
      map_func: called with the components of a tuple as arguments, with anything else as one argument.
      num_parallel_calls: threads that call it, or AUTOTUNE; useful when `map_func` releases the GIL.
      deterministic: accepted as TensorFlow's; the order is kept either way, so that a state stays one position.
      output_signature: a nest of `TensorSpec` for what it returns; otherwise it is found out with made-up elements.

    Raises:
      TypeError: `map_func` cannot be called.

    >>> import distinput as di
    >>> list(di.data.Dataset.range(3).map(lambda x: x * 10).as_numpy_iterator())
    [np.int64(0), np.int64(10), np.int64(20)]

    Source: `tf.data.Dataset.map`.
    """

    input: Node
    map_func: Callable[..., Any]
    num_parallel_calls: int | None = None
    deterministic: bool | None = None
    output_signature: Any = None

    def __post_init__(self) -> None:
        callable_argument("map", "map_func", self.map_func)
        parallel_calls("map", self.num_parallel_calls)

    @cached_property
    def call(self) -> Callable[[Any], Any]:
        """The function of one element."""
        return calling(self.map_func)

    @cached_property
    def spec(self) -> Spec:
        if self.output_signature is not None:
            return Spec.of(self.output_signature)
        return infer("map", self.call, self.input)

    @property
    def cardinality(self) -> int:
        return self.input.cardinality

    def start(self, epoch: int) -> State:
        return {"input": self.input.start(epoch), "skip": 0}

    def start_at(self, row: int, epoch: int) -> State | None:
        at = self.input.start_at(row, epoch)
        return None if at is None else {"input": at, "skip": 0}

    def stream(self, state: State, run: Run) -> Stream:
        return _mapped((self,), self.input.open(state["input"], run), state, run)

    @property
    def random_access(self) -> bool:
        return self.input.random_access

    def fetch(self, rows: Ints, epoch: int) -> Block:
        made = [self.call(element) for element in self.input.fetch(rows, epoch).elements()]
        return Block.of_elements(structure_of(made[0]) if made else self.spec.structure, made)

    @property
    def threads(self) -> int:
        """How many call the function."""
        if self.num_parallel_calls is None:
            return 1
        return (os.cpu_count() or 1) if self.num_parallel_calls == AUTOTUNE else self.num_parallel_calls


@dataclass(frozen=True)
class _Maps:
    """Neighbouring maps; no nodes of the tree, since the data does not go from one to the other in blocks."""

    maps: tuple[Map, ...]

    def __str__(self) -> str:
        return ", ".join(getattr(step.map_func, "__qualname__", type(step.map_func).__name__) for step in self.maps)


@dataclass(frozen=True, eq=False)
class FusedMap(Node):
    """Neighbouring maps run as one: each element goes through all functions before the next one begins.

    Shapes: those of the last map. State: where the next element stands in the input.

    Args:
      functions: the maps, the first one first; all are called by equally many threads.
    """

    input: Node
    functions: _Maps

    @cached_property
    def spec(self) -> Spec:
        return self.functions.maps[-1].spec

    @property
    def cardinality(self) -> int:
        return self.input.cardinality

    def start(self, epoch: int) -> State:
        return {"input": self.input.start(epoch), "skip": 0}

    def start_at(self, row: int, epoch: int) -> State | None:
        at = self.input.start_at(row, epoch)
        return None if at is None else {"input": at, "skip": 0}

    def stream(self, state: State, run: Run) -> Stream:
        return _mapped(self.functions.maps, self.input.open(state["input"], run), state, run)

    @property
    def random_access(self) -> bool:
        return self.input.random_access

    def fetch(self, rows: Ints, epoch: int) -> Block:
        chain = _chain(self.functions.maps)
        made = [_tupled(chain(element)) for element in self.input.fetch(rows, epoch).elements()]
        return Block.of_elements(structure_of(made[0]) if made else self.spec.structure, made)


def fused(first: Map | FusedMap, then: Map) -> FusedMap | None:
    """`then` over `first` as one node; None where they are not called in the same way."""
    maps = (first,) if isinstance(first, Map) else first.functions.maps
    if maps[0].num_parallel_calls != then.num_parallel_calls:
        return None
    return FusedMap(first.input, _Maps((*maps, then)), origin=then.origin)


def _chain(maps: Sequence[Map]) -> Chain:
    return Chain([step.map_func for step in maps])


def _tupled(result: Any) -> Any:
    return tuple(result) if type(result) is list else result


def _mapped(maps: Sequence[Map], upstream: Stream, state: State, run: Run) -> Stream:
    """Blocks of what the functions of `maps` return."""
    chain = _chain(maps)

    def note(error: Exception, element: Any) -> None:
        index, given = chain.place(error, element)
        note_element(error, given)
        run.annotate(error, maps[index].where)

    threads = maps[0].threads
    if threads > 1:
        results = _called_in_threads(upstream, state, chain, threads, run, note)
    else:
        results = ((made, mark) for made, _, _, mark in applied(upstream, state, chain.results, note=note))
    structure: Structure | None = None
    for made, mark in results:
        if list in set(map(type, made)):  # a list that a function returns is a tuple
            made = [_tupled(result) for result in made]
        if structure is None:
            structure = structure_of(made[0])
        yield Block.of_elements(structure, made), mark


def _called_in_threads(
    upstream: Stream,
    state: State,
    call: Callable[[Any], Any],
    threads: int,
    run: Run,
    note: Callable[[Exception, Any], None],
) -> Iterator[tuple[list[Any], Mark]]:
    """`call` on pieces of each block in a pool; the results in order, so that a state is one position."""
    over = Event()
    waiting: deque[tuple[Future[tuple[list[Any], Exception | None]], Callable[[int], Mark]]] = deque()

    def work(elements: list[Any]) -> tuple[list[Any], Exception | None]:
        results: list[Any] = []
        for element in elements:
            if over.is_set() or run.cancelled.is_set():
                break
            try:
                results.append(call(element))
            except Exception as error:  # noqa: BLE001 - raised again in its turn
                note(error, element)
                return results, error
        return results, None

    def finish() -> Iterator[tuple[list[Any], Mark]]:
        future, at = waiting.popleft()
        results, failure = future.result()
        if failure is not None:
            if results:
                yield results, at(len(results))
            raise failure
        yield results, at(len(results))

    with run.pool(threads) as pool:
        try:
            blocks = passing_over(upstream, state)
            failure: Exception | None = None
            while True:
                try:
                    rows, _, _, at = next(blocks)
                except StopIteration:
                    break
                except Exception as error:  # noqa: BLE001 - raised again after the results of what came before it
                    failure = error
                    break
                size = max(1, min(256, -(-rows.size // (4 * threads))))
                for begin in range(0, rows.size, size):
                    part = rows.rows(begin, begin + size)
                    future = pool.submit(work, list(part.elements()))
                    waiting.append((future, _shifted(at, begin)))
                    while len(waiting) > 2 * threads or (waiting and waiting[0][0].done()):
                        yield from finish()
            while waiting:
                yield from finish()
            if failure is not None:
                raise failure
        finally:
            over.set()  # before the pool waits for what is under way


def _shifted(at: Callable[[int], Mark], begin: int) -> Callable[[int], Mark]:
    return lambda done: at(begin + done)
