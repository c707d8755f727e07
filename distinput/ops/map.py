# SPDX-License-Identifier: Apache-2.0
"""`map`: call a function on every element."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import chain as joined
from typing import TYPE_CHECKING, Any, ClassVar

from distinput.core.block import Block, concat_blocks
from distinput.core.calls import MOST_CALLS, applied, element_text
from distinput.core.column import Ints
from distinput.core.cores import cores
from distinput.core.failure import Failure
from distinput.core.processes import Workforce, check_sendable
from distinput.core.rows import Stream
from distinput.core.run import Counter, Run
from distinput.core.spec import Spec
from distinput.core.state import Mark, State
from distinput.errors import InvalidArgumentError
from distinput.functions.chain import Chain
from distinput.functions.claim import Claim, Made, behind, between, formed, held
from distinput.functions.compiled import Compiled, compiled
from distinput.functions.convention import calling
from distinput.functions.executor_calls import called_by_executor, check_executor
from distinput.functions.generators import WithGenerator
from distinput.functions.inference import infer
from distinput.functions.parts import Note
from distinput.functions.worker_processes import called_in_processes, workforce_of
from distinput.functions.worker_threads import called_as_measured, called_in_threads, trial
from distinput.kernels.row_loop import is_numba
from distinput.ops.on_error import guarded
from distinput.ops.random_keys import RandomKeys
from distinput.plan.check import AUTOTUNE, callable_argument, normalized, parallel_calls
from distinput.plan.fused import Fused, Neighbours
from distinput.plan.node import Node
from distinput.plan.one_for_one import OneForOne
from distinput.plan.skip_errors import SkipErrors
from distinput.streaming.autotune import Trial

if TYPE_CHECKING:
    from distinput.functions.vectorized.verdict import Verdict

__all__ = ["FusedMap", "Map", "fused"]

_FEWEST_ROWS = 64
"""With fewer elements in the first block, "auto" does not even load what makes whole blocks."""


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
      output_signature: a nest of `TensorSpec` for what it returns. Elements are checked against it, and integers become as wide
        as it says. Without it, the spec is found by calling `map_func`: on the first element if it has text, bytes or unknown
        dimensions, otherwise on some numbers. Elements are checked against that spec too.
      processes: call it in `num_parallel_calls` worker processes (one for each core if that is None or AUTOTUNE) instead of
        threads, for a `map_func` that holds the GIL. It must be picklable: a function at the top level of a module, or
        anything if cloudpickle is installed. Workers are fresh interpreters, started by the first pass and kept for later ones
        until the dataset is dropped; arrays go through shared memory.
      on_error: what happens when `map_func` raises: "raise" that error; "skip" the element, up to a budget; `SkipErrors(...)`,
        with the budget and a file for what was left out. None: as `Options.on_error` says, or "raise".
      rng: call it with a `numpy.random.Generator` of the element's own as last argument. Its numbers follow from the seed, the
        pass, the step and the position of the element, so they are the same on any number of threads, processes and workers
        and after a restart, and others in each pass. Files are not dealt to workers below this map (policy FILE).
      seed: with `rng`, any integer; None draws one, which a saved state remembers.
      executor: any `concurrent.futures.Executor` that calls it, such as those of Dask, mpi4py and `ProcessPoolExecutor`; or a
        function that makes one, which is called again when one has broken. Results come in order, `num_parallel_calls` parts
        are under way (two for each worker if that is None), and a part whose worker was lost is sent again.
      vectorize: whether a function of NumPy is called once for a whole block where its results stay the same to the bit; what
        the function returns never depends on it. "auto": for small elements, by rules that are exact by construction. True:
        for all elements, also by rules that are found exact when they are measured. False: never. `explain()` says what
        happens, and why.

    Raises:
      InvalidArgumentError: both `synchronous` and `num_parallel_calls` are given.
      TypeError: `map_func` cannot be called, or cannot be sent to worker processes; at iteration, a result does not fit
        `output_signature`, or is of another kind than the other results.
      UnavailableError: at iteration, a worker process has died, or `executor` is broken.
      DataLossError: at iteration, more elements failed than `on_error` allows.

    >>> import distinput as di
    >>> list(di.data.Dataset.range(3).map(lambda x: x * 10).as_numpy_iterator())
    [np.int64(0), np.int64(10), np.int64(20)]

    Source: `tf.data.Dataset.map`.
    """

    by_element: ClassVar[bool] = True
    tolerant: ClassVar[bool] = True
    # Whether there are random numbers is what the input says.
    indifferent: ClassVar[frozenset[str]] = OneForOne.indifferent | {"executor", "rng", "seed", "vectorize"}
    map_func: Callable[..., Any]
    num_parallel_calls: int | None = None
    deterministic: bool | None = None
    synchronous: bool | None = field(default=None, repr=False)
    use_unbounded_threadpool: bool = field(default=False, repr=False)
    output_signature: Any = field(default=None, kw_only=True)
    processes: bool = field(default=False, kw_only=True)
    claim: Claim = field(default_factory=Claim, kw_only=True, repr=False)
    on_error: str | SkipErrors | None = field(default=None, kw_only=True)
    rng: bool = field(default=False, kw_only=True)
    seed: int | None = field(default=None, kw_only=True)
    executor: Any = field(default=None, kw_only=True)
    vectorize: bool | str = field(default="auto", kw_only=True)

    def __post_init__(self) -> None:
        callable_argument("map", "map_func", self.map_func)
        if self.vectorize not in (True, False, "auto"):
            raise InvalidArgumentError(f'map: vectorize must be True, False or "auto", got {self.vectorize!r}')
        if self.rng and not isinstance(self.map_func, WithGenerator):
            normalized(self, "map_func", WithGenerator(self.map_func))
            normalized(self, "input", RandomKeys(self.input, self.seed, origin=self.origin))
        elif self.seed is not None and not self.rng:
            raise InvalidArgumentError(f"map: seed goes with rng=True, got seed={self.seed} without it")
        parallel_calls("map", self.num_parallel_calls)
        if self.synchronous and self.num_parallel_calls is not None:
            raise InvalidArgumentError(
                "map: synchronous=True does not go with num_parallel_calls, got num_parallel_calls="
                f"{self.num_parallel_calls}; leave one of them out"
            )
        if self.processes:
            check_sendable("map", self.map_func)
        if self.executor is not None:
            if self.processes or self.synchronous:
                raise InvalidArgumentError(
                    "map: executor goes neither with processes nor with synchronous; leave one out"
                )
            check_executor(self.executor)

    @cached_property
    def call(self) -> Callable[[Any], Any]:
        """The function of one element."""
        return calling(self.map_func)

    @cached_property
    def compiled(self) -> Compiled | None:
        """The function as compiled code over blocks, if possible."""
        return compiled(self.map_func, self.input.spec) if is_numba(self.map_func) else None

    def added(self) -> Node:
        return guarded(self, self.on_error)

    @property
    def spec_given(self) -> bool:
        return self.output_signature is not None

    @cached_property
    def signature(self) -> Spec | None:
        """The spec that the user gave, with which elements are compared."""
        return None if self.output_signature is None else Spec.of(self.output_signature)

    @cached_property
    def spec(self) -> Spec:
        if self.compiled is not None:
            return self.signature or self.compiled.spec
        return self.signature or self.claim.asked("map", lambda: infer("map", self.call, self.input, self.map_func))

    def stream(self, state: State, run: Run) -> Stream:
        return _mapped(self, (self,), self.workforce, state, run)

    @cached_property
    def workforce(self) -> Workforce | None:
        """The worker processes, if it has them."""
        return _workforce((self,))

    @cached_property
    def verdict(self) -> "Verdict | None":
        """Whether whole blocks are made; None: it was never asked for."""
        return _verdict((self,))

    @property
    def notes(self) -> tuple[str, ...]:
        return _notes(self, (self,))

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
    """Neighbouring maps that run as one: each element goes through all functions before the next one begins.

    Shapes: those of the last map. State: where the next element stands in the input.

    Args:
      functions: the maps, the first one first; all have the same number of threads or processes.
    """

    def stream(self, state: State, run: Run) -> Stream:
        return _mapped(self, self.functions.steps, self.workforce, state, run)

    @cached_property
    def workforce(self) -> Workforce | None:
        """The worker processes, if it has them."""
        return _workforce(self.functions.steps)

    @cached_property
    def verdict(self) -> "Verdict | None":
        """Whether whole blocks are made; None: it was never asked for."""
        return _verdict(self.functions.steps)

    @property
    def notes(self) -> tuple[str, ...]:
        return _notes(self, self.functions.steps)

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
    """`then` over `first` as one node; None if they are not called in the same way."""
    maps = (first,) if isinstance(first, Map) else first.functions.steps
    if is_numba(maps[0].map_func) or is_numba(then.map_func):
        return None  # these run over blocks
    if then.on_error not in (None, "raise"):
        return None  # errors of the first function are not errors of the second
    if maps[-1].output_signature is not None:
        return None  # its elements are checked before the next function gets them
    if _way(maps[0]) != _way(then):
        return None
    return FusedMap(first.input, Neighbours((*maps, then)), origin=then.origin)


def _way(step: Map) -> tuple[Any, ...]:
    """How its function is called."""
    return step.num_parallel_calls, step.processes, step.vectorize, id(step.executor)


def _chain(maps: Sequence[Map]) -> Chain | Compiled:
    if maps[0].compiled is not None:
        return maps[0].compiled
    before = maps[:-1]
    asks = [partial(getattr, step, "spec") for step in before]
    return Chain([step.map_func for step in maps], [step.claim for step in before], asks)


def _workforce(maps: Sequence[Map]) -> Workforce | None:
    calls = maps[0].num_parallel_calls
    if not maps[0].processes:
        return None
    count = cores() if calls in (None, AUTOTUNE) else int(calls)
    return workforce_of(_chain(maps), count)


def _verdict(maps: Sequence[Map]) -> "Verdict | None":
    """Whether the functions are called for whole blocks, as far as that is known before they are tried."""
    first, chain = maps[0], _chain(maps)
    if first.vectorize is False or isinstance(chain, Compiled):
        return None
    from distinput.functions.vectorized.verdict import Verdict

    reason = None
    if first.processes:
        reason = "processes=True has them called in worker processes"
    elif first.executor is not None:
        reason = "executor= has them called elsewhere"
    elif first.vectorize == "auto" and first.num_parallel_calls not in (None, 1, AUTOTUNE):
        reason = "num_parallel_calls has them called on threads; vectorize=True goes before it"
    return Verdict(chain.functions, chain, measured=first.vectorize is True, reason=reason)


def _notes(node: Map | FusedMap, maps: Sequence[Map]) -> tuple[str, ...]:
    if node.verdict is None:
        return ()
    if node.verdict.blocks or node.verdict.reason is not None:
        return (str(node.verdict),)
    from distinput.functions.vectorized.trial import tried

    trial = _verdict(maps)
    assert trial is not None
    return (tried(trial, node.input),)


def _fetched(node: Map | FusedMap, maps: Sequence[Map], rows: Ints, epoch: int) -> Block:
    """The results of the functions of `maps` for some elements of the input."""
    chain, given, last = _chain(maps), node.input.fetch(rows, epoch), maps[-1]
    if not given.size:
        return Block.of(node.spec.structure, [])
    made: Iterator[Made]
    if isinstance(chain, Compiled):
        made = iter([(chain.block(given), _no_mark, given)])
    else:
        made = _formed(list(chain.results(given)), given, _no_mark, _raised)
    checked = held("map", made, last.claim, _signature(last), lambda: last.spec, lambda _: None, tolerant=False)
    return concat_blocks([block for block, _ in checked])


def _mapped(node: Map | FusedMap, maps: Sequence[Map], workforce: Workforce | None, state: State, run: Run) -> Stream:
    """Blocks of the results of the functions of `maps`, checked against the signature or claim of the last."""
    last = maps[-1]
    if run.resumed:
        for step in maps:  # the first element of all decides, not the first after a restart
            _ = step.spec
    made = _called(node, maps, workforce, state, run)
    note = partial(run.annotate, where=last.where)
    return held("map", made, last.claim, _signature(last), lambda: last.spec, note, tolerant=run.tolerant)


def _signature(step: Map) -> Spec | None:
    """The spec of the results if it is certain: given by the user or by numba."""
    return step.signature or (None if step.compiled is None else step.compiled.spec)


def _called(
    node: Map | FusedMap, maps: Sequence[Map], workforce: Workforce | None, state: State, run: Run
) -> Iterator[Made]:
    """Blocks of the results of the functions of `maps`."""
    chain, counter = _chain(maps), run.counter(node)
    executor = maps[0].executor
    by_block = workforce is not None or executor is not None or isinstance(chain, Compiled)
    several = workforce is not None or executor is not None or (maps[0].num_parallel_calls or 1) > 1
    below = run.one_by_one() if several else run
    upstream = node.input.open(state["input"], below.by_block() if by_block else below)

    def note(error: Exception, index: int, element: str) -> None:
        if element:
            error.add_note(f"on {element}")
        run.annotate(error, maps[index].where)

    if workforce is not None:
        return called_in_processes(upstream, state, workforce, chain, run, counter, note)
    if executor is not None:
        calls = maps[0].num_parallel_calls
        most = None if calls in (None, AUTOTUNE) else int(calls)
        return called_by_executor(upstream, state, executor, most, chain, run, counter, note)
    singly = partial(_called_singly, node, maps, chain, run, counter, note)
    if maps[0].vectorize is False or isinstance(chain, Compiled):
        return singly(upstream, state)
    return _called_by_block(node, maps, chain, run, counter, note, upstream, state, singly)


def _called_by_block(
    node: Map | FusedMap,
    maps: Sequence[Map],
    chain: Chain,
    run: Run,
    counter: Counter,
    note: Note,
    upstream: Stream,
    state: State,
    singly: Callable[[Stream, State], Iterator[Made]],
) -> Iterator[Made]:
    """Blocks of results of calls for whole blocks, as far as those are possible; `singly` makes the others."""
    for pair in upstream:
        every = joined([pair], upstream)
        few = maps[0].vectorize == "auto" and pair[0].size < _FEWEST_ROWS
        if few or node.verdict is None or node.verdict.reason is not None:
            yield from singly(every, state)
            return
        from distinput.functions.vectorized.stream import called_by_block

        yield from called_by_block(every, state, node.verdict, chain, run, counter, note, singly)
        return


def _called_singly(
    node: Map | FusedMap,
    maps: Sequence[Map],
    chain: Chain | Compiled,
    run: Run,
    counter: Counter,
    note: Note,
    upstream: Stream,
    state: State,
) -> Iterator[Made]:
    """Blocks of results of calls for each element."""
    calls = maps[0].num_parallel_calls
    if isinstance(chain, Compiled) and calls in (None, AUTOTUNE, 1):
        return chain.stream(upstream, state, run, lambda error, element: note(error, 0, element_text(element)))
    if calls == AUTOTUNE and run.run_ahead is None:
        return called_as_measured(upstream, state, chain, cores(), run, counter, note, node.found)
    if calls is not None and calls > 1:
        return called_in_threads(upstream, state, chain, int(calls), run, counter, note)
    return _called_here(upstream, state, chain, note, run)


def _called_here(upstream: Stream, state: State, chain: Chain | Compiled, note: Note, run: Run) -> Iterator[Made]:
    def place(error: Exception, element: Any) -> None:
        index, given = chain.place(error, element)
        note(error, index, element_text(given))

    def refused(error: Exception, element: Any) -> Failure:
        note(error, len(chain.functions) - 1, element_text(element))
        if not run.tolerant:
            raise error
        return Failure(error)

    before, most = state, run.at_once(MOST_CALLS)
    for made, rows, first, mark in applied(upstream, state, chain.results, most, place, tolerant=run.tolerant):
        if type(rows) is Failure:
            yield rows, between(before, mark, 0), rows
        else:
            given = rows.rows(first, first + len(made))
            yield from _formed(made, given, between(before, mark, len(made)), refused)
        before = mark


def _formed(
    results: list[Any], given: Block, at: Callable[[int], Mark], refused: Callable[[Exception, Any], Failure]
) -> Iterator[Made]:
    """Results as blocks, with their arguments; `refused` raises, or returns a failure, for a result that is no element."""
    for made, first, end in formed(results):
        if isinstance(made, Block):
            yield made, behind(at, first), given.rows(first, end)
        else:
            yield refused(made, given.row(first)), behind(at, end), given.rows(end, end)


def _no_mark(_: int) -> Mark:
    """No mark: elements that are fetched by position have none."""
    return {}


def _raised(error: Exception, element: Any) -> Failure:
    error.add_note(f"on {element_text(element)}")
    raise error
