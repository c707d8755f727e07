# SPDX-License-Identifier: Apache-2.0
"""`map`: a function on every element."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, ClassVar

from distinput.core.block import Block
from distinput.core.calls import applied, element_text
from distinput.core.column import Ints
from distinput.core.failure import Failure
from distinput.core.nest import Structure
from distinput.core.processes import Workforce, check_sendable
from distinput.core.rows import Stream
from distinput.core.run import Run
from distinput.core.spec import Spec
from distinput.core.state import State
from distinput.errors import InvalidArgumentError
from distinput.kernels.rows import is_numba
from distinput.ops.autotune import Trial
from distinput.ops.chain import Chain
from distinput.ops.compiled import Compiled, compiled
from distinput.ops.function import calling, infer
from distinput.ops.parallel import Note, block_of, blocks_of, called_as_measured, called_in_threads, trial
from distinput.ops.signature import check_signature, fitting
from distinput.ops.worker_processes import called_in_processes, workforce_of
from distinput.plan.check import AUTOTUNE, callable_argument, parallel_calls
from distinput.plan.fused import Fused, Neighbours
from distinput.plan.one_for_one import OneForOne

__all__ = ["FusedMap", "Map", "fused"]


@dataclass(frozen=True, eq=False)
class Map(OneForOne):
    """Call `map_func` on every element.

    Shapes: whatever `map_func` returns: any nest; a list becomes a tuple. Order: unchanged.
    State: where the next element stands in the input.

    A function compiled with numba (`njit`) that takes and returns numbers, or tuples of them, is called in compiled code, a
    block at a time; its results have the types that numba infers.

    Args:
      map_func: called with the components of a tuple as arguments, with anything else as one argument.
      num_parallel_calls: threads that call it, useful when `map_func` releases the GIL; AUTOTUNE measures whether they are.
      deterministic: accepted as TensorFlow's; the order is kept either way, so that a state stays one position.
      synchronous: accepted as TensorFlow's, for a map without `num_parallel_calls`: it is called in the iterator's thread.
      use_unbounded_threadpool: accepted as TensorFlow's; there are `num_parallel_calls` threads.
      output_signature: a nest of `TensorSpec` for what it returns; otherwise it is found out with made-up elements. Elements
        are checked against it, and whole numbers become as wide as it says.
      processes: call it in `num_parallel_calls` worker processes (one for each core when that is None or AUTOTUNE) instead
        of threads, for a `map_func` that holds the GIL. It must be picklable: a function at the top level of a module, or
        anything where cloudpickle is installed. Workers are fresh interpreters, started by the first pass and kept for the
        next ones until the data set is dropped; arrays go through shared memory.

    Raises:
      InvalidArgumentError: `synchronous` and `num_parallel_calls`.
      TypeError: `map_func` cannot be called, or cannot be sent to worker processes; at iteration, when what it returns does
        not fit `output_signature`.
      UnavailableError: at iteration, when a worker process has ended.

    >>> import distinput as di
    >>> list(di.data.Dataset.range(3).map(lambda x: x * 10).as_numpy_iterator())
    [np.int64(0), np.int64(10), np.int64(20)]

    Source: `tf.data.Dataset.map`.
    """

    by_element: ClassVar[bool] = True
    tolerant: ClassVar[bool] = True
    map_func: Callable[..., Any]
    num_parallel_calls: int | None = None
    deterministic: bool | None = None
    synchronous: bool | None = field(default=None, repr=False)
    use_unbounded_threadpool: bool = field(default=False, repr=False)
    output_signature: Any = field(default=None, kw_only=True)
    processes: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        callable_argument("map", "map_func", self.map_func)
        parallel_calls("map", self.num_parallel_calls)
        if self.synchronous and self.num_parallel_calls is not None:
            raise InvalidArgumentError(
                "map: synchronous=True does not go with num_parallel_calls, got num_parallel_calls="
                f"{self.num_parallel_calls}; leave one of them out"
            )
        if self.processes:
            check_sendable("map", self.map_func)

    @cached_property
    def call(self) -> Callable[[Any], Any]:
        """The function of one element."""
        return calling(self.map_func)

    @cached_property
    def compiled(self) -> Compiled | None:
        """The function as compiled code over blocks, if it can be that."""
        return compiled(self.map_func, self.input.spec) if is_numba(self.map_func) else None

    @cached_property
    def signature(self) -> Spec | None:
        """What elements are checked against."""
        return None if self.output_signature is None else Spec.of(self.output_signature)

    @cached_property
    def spec(self) -> Spec:
        if self.compiled is not None:
            return self.compiled.spec
        return self.signature or infer("map", self.call, self.input)

    def stream(self, state: State, run: Run) -> Stream:
        return _mapped(self, (self,), self.workforce, state, run)

    @cached_property
    def workforce(self) -> Workforce | None:
        """The worker processes, if it has them."""
        return _workforce((self,))

    @cached_property
    def found(self) -> Trial:
        """What AUTOTUNE found out about threads, in all passes."""
        return trial()

    @property
    def fails_in_place(self) -> bool:
        return True

    def fetch(self, rows: Ints, epoch: int) -> Block:
        return _fetched(self, (self,), rows, epoch)


@dataclass(frozen=True, eq=False)
class FusedMap(Fused[Map]):
    """Neighbouring maps run as one: each element goes through all functions before the next one begins.

    Shapes: those of the last map. State: where the next element stands in the input.

    Args:
      functions: the maps, the first one first; all are called by equally many threads or processes.
    """

    def stream(self, state: State, run: Run) -> Stream:
        return _mapped(self, self.functions.steps, self.workforce, state, run)

    @cached_property
    def workforce(self) -> Workforce | None:
        """The worker processes, if it has them."""
        return _workforce(self.functions.steps)

    @cached_property
    def found(self) -> Trial:
        """What AUTOTUNE found out about threads, in all passes."""
        return trial()

    @property
    def fails_in_place(self) -> bool:
        return True

    def fetch(self, rows: Ints, epoch: int) -> Block:
        return _fetched(self, self.functions.steps, rows, epoch)


def fused(first: Map | FusedMap, then: Map) -> FusedMap | None:
    """`then` over `first` as one node; None where they are not called in the same way."""
    maps = (first,) if isinstance(first, Map) else first.functions.steps
    if is_numba(maps[0].map_func) or is_numba(then.map_func):
        return None  # these run over blocks
    if maps[-1].output_signature is not None:
        return None  # its elements are looked at before the next function gets them
    if (maps[0].num_parallel_calls, maps[0].processes) != (then.num_parallel_calls, then.processes):
        return None
    return FusedMap(first.input, Neighbours((*maps, then)), origin=then.origin)


def _chain(maps: Sequence[Map]) -> Chain | Compiled:
    return maps[0].compiled or Chain([step.map_func for step in maps])


def _workforce(maps: Sequence[Map]) -> Workforce | None:
    calls = maps[0].num_parallel_calls
    if not maps[0].processes:
        return None
    count = _cores() if calls in (None, AUTOTUNE) else int(calls)
    return workforce_of(_chain(maps), count)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _fetched(node: Map | FusedMap, maps: Sequence[Map], rows: Ints, epoch: int) -> Block:
    """What the functions of `maps` return for some elements of the input."""
    chain, given = _chain(maps), node.input.fetch(rows, epoch)
    if isinstance(chain, Compiled):
        made = chain.block(given)
    else:
        results = list(chain.results(given))
        made = block_of(results, None if results else node.spec.structure)
    signature = maps[-1].signature
    return made if signature is None else check_signature("map", made, signature)


def _mapped(node: Map | FusedMap, maps: Sequence[Map], workforce: Workforce | None, state: State, run: Run) -> Stream:
    """Blocks of what the functions of `maps` return, which are checked against the signature of the last."""
    stream, last = _called(node, maps, workforce, state, run), maps[-1]
    if last.signature is None:
        return stream
    note = partial(run.annotate, where=last.where)
    return fitting("map", stream, state, last.signature, note, tolerant=run.tolerant)


def _called(node: Map | FusedMap, maps: Sequence[Map], workforce: Workforce | None, state: State, run: Run) -> Stream:
    """Blocks of what the functions of `maps` return."""
    chain, counter = _chain(maps), run.counter(node)
    by_block = workforce is not None or isinstance(chain, Compiled)
    upstream = node.input.open(state["input"], run.by_block() if by_block else run)

    def note(error: Exception, index: int, element: str) -> None:
        if element:
            error.add_note(f"on {element}")
        run.annotate(error, maps[index].where)

    calls = maps[0].num_parallel_calls
    if workforce is not None:
        return called_in_processes(upstream, state, workforce, run, counter, note)
    if isinstance(chain, Compiled) and calls in (None, AUTOTUNE, 1):
        return chain.stream(upstream, state, run, lambda error, element: note(error, 0, element_text(element)))
    if calls == AUTOTUNE:
        return called_as_measured(upstream, state, chain, _cores(), run, counter, note, node.found)
    if calls is not None and calls > 1:
        return called_in_threads(upstream, state, chain, int(calls), run, counter, note)
    return _called_here(upstream, state, chain, note, tolerant=run.tolerant)


def _called_here(upstream: Stream, state: State, chain: Chain | Compiled, note: Note, *, tolerant: bool) -> Stream:
    def place(error: Exception, element: Any) -> None:
        index, given = chain.place(error, element)
        note(error, index, element_text(given))

    structure: Structure | None = None
    before = state
    for made, rows, _, mark in applied(upstream, state, chain.results, note=place, tolerant=tolerant):
        if type(rows) is Failure:
            yield rows, mark
        else:
            for block, done in blocks_of(made, structure, tolerant=tolerant):
                structure = structure or block.structure
                yield block, mark if done == len(made) else {**before, "skip": before["skip"] + done}
        before = mark
