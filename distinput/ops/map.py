# SPDX-License-Identifier: Apache-2.0
"""`map`: call a function on every element, here, for whole blocks, on threads, in processes or compiled."""

import functools
import inspect
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from functools import cached_property, partial
from itertools import chain as joined
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from distinput.columns.block import Block, ColumnBlock, Failure, concat_blocks
from distinput.columns.column import Dense, Ints
from distinput.columns.rows import Stream, Together, same
from distinput.columns.state import Mark, State
from distinput.errors import InvalidArgumentError
from distinput.functions.chain import Chain, Refills, calling
from distinput.functions.claim import Claim, MadeBlock, behind, between, formed, held
from distinput.functions.inference import infer
from distinput.kernels.kernel import is_numba
from distinput.names.lazy import dataclass, later
from distinput.plan.binding import by_name, take_functions
from distinput.plan.check import AUTOTUNE, normalized, parallel_calls
from distinput.plan.families import Fused, Neighbours, OneForOne, Seeded, Signed, key_of
from distinput.plan.node import Node, above, walk
from distinput.run.run import MOST_CALLS, OpCounters, Run, applied, element_text, stopped
from distinput.run.threads import cores
from distinput.values.nest import structure_of
from distinput.values.spec import Spec, TensorSpec

if TYPE_CHECKING:
    from distinput.functions import compiled as compiling
    from distinput.functions import workers
    from distinput.functions.vectorized import whole_block
    from distinput.functions.vectorized.whole_block import Vectorizer
    from distinput.ops import on_error as failures
    from distinput.plan import reach
    from distinput.plan.options import SkipErrors
    from distinput.run import processes
    from distinput.run.processes import Workforce
    from distinput.streaming import buffered
    from distinput.streaming.buffered import ThreadTrial
else:
    # Most functions are called here, and whole blocks are for those that are called often.
    compiling = later("distinput.functions.compiled")  # few functions are those of numba
    workers = later("distinput.functions.workers")
    whole_block = later("distinput.functions.vectorized.whole_block")
    failures = later("distinput.ops.on_error")
    processes = later("distinput.run.processes")
    reach = later("distinput.plan.reach")
    buffered = later("distinput.streaming.buffered")


# ----------------------------------------------------------------------------
# Keys for the random numbers of elements: what is below a `map` with `rng=True`.
# ----------------------------------------------------------------------------


_PAIR = structure_of((0, 1))


@dataclass(frozen=True, eq=False)
class RandomKeys(Seeded):
    """Each element behind a key, from which its random numbers follow: (key, element).

    A key is two words: one of the seed, the pass and the step, and the position of the element in the whole. So an element
    has the same key however many threads, processes and workers there are, and after a restart.

    Shapes: uint64 [2] beside those of the input. State: the seed, the pass, and the position of the next element.

    Args:
      seed: any integer; None draws one, which a saved state remembers.
      step: which of the steps with random numbers it is, from the source on; None: one more than there are in the input.

    Raises:
      TypeError: `seed` is not an integer.
    """

    by_element = tolerant = harmless = same_count = same_access = True
    chooses: ClassVar[bool] = False  # it says what an element's numbers are, and the input which element comes
    differs_by_place: ClassVar[bool] = True
    input: Node
    seed: int | None = None
    step: int | None = None

    def __post_init__(self) -> None:
        self.check_seed("map")
        if self.step is None:  # kept, since rewrites may move other steps
            steps = sum(isinstance(below, RandomKeys) for below in walk(self.input))
            object.__setattr__(self, "step", steps)

    @cached_property
    def spec(self) -> Spec:
        given = self.input.spec
        return Spec(_PAIR.graft([_KEY.structure, given.structure]), (*_KEY.leaves, *given.leaves))

    def start(self, epoch: int) -> State:
        return {"input": self.input.start(epoch), **self.seeded(epoch)}

    def start_at(self, row: int, epoch: int) -> State | None:
        return above(self.input.start_at(row, epoch), **self.seeded(epoch, row))

    def stream(self, state: State, run: Run) -> Stream:
        row = state["row"]
        for block, after in self.input.open(state["input"], run):
            if type(block) is Failure:  # it has no position
                yield block, {**state, "input": after, "row": row}
                continue
            row += block.size
            made = self._beside(block, np.arange(row - block.size, row), state)
            yield made, {**state, "input": after, "row": row}

    def source_of(self, state: State, ahead: int) -> tuple[State, int] | None:
        return state["input"], ahead

    @property
    def fetches(self) -> bool:
        return self.input.fetches

    def fetch(self, rows: Ints, epoch: int) -> Block:
        return self._beside(self.input.fetch(rows, epoch), rows, self.start(epoch))

    def _beside(self, block: Block, rows: Ints, state: State) -> Block:
        """Elements at these positions, behind their keys."""
        keys = np.empty((len(rows), 2), np.uint64)
        keys[:, 0] = key_of(state["seed"], state["epoch"], self.step or 0)
        keys[:, 1] = rows
        structure = _PAIR.graft([_KEY.structure, block.structure])
        return ColumnBlock(structure, [Dense(keys), *block.columnar().columns], block.size)


_KEY = Spec.of(TensorSpec([2], np.uint64))


# ----------------------------------------------------------------------------
# Functions that get random numbers of their own for each element.
# ----------------------------------------------------------------------------


class WithGenerator:
    """A function of (key, element), which calls another one with the element and a generator as its last argument.

    The generator is NumPy's Philox, whose numbers are a function of its key alone.

    Args:
      function: called with the components of a tuple as arguments, with anything else as one argument; then the generator.

    Raises:
      TypeError: the function takes fewer than two arguments.

    >>> draw = WithGenerator(lambda x, rng: x + rng.integers(100))
    >>> bool(draw(np.array([1, 2], np.uint64), 0) == draw(np.array([1, 2], np.uint64), 0))
    True

    Source: Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3 (SC 2011).
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        _check_takes_generator(function)
        self.function = function
        functools.update_wrapper(self, function, updated=())

    def __reduce__(self) -> tuple[Any, ...]:
        return WithGenerator, (by_name(self.function),)

    def __call__(self, key: Any, element: Any) -> Any:
        rng = generator_of(key)
        return self.function(*element, rng) if type(element) is tuple else self.function(element, rng)


def _check_takes_generator(function: Callable[..., Any]) -> None:
    """Refuse a function that is seen to take one argument alone, where an element and a generator are given.

    Raises:
      TypeError: it does.
    """
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # of C, which does not tell
        return
    if any(each.kind is each.VAR_POSITIONAL for each in parameters):
        return
    taken = [each.name for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    if len(taken) < 2:
        raise TypeError(
            f"map: with rng=True the function is called with a numpy.random.Generator as its last argument, so it must take "
            f"two or more, got {getattr(function, '__name__', function)}({', '.join(taken)}); write "
            f"lambda {', '.join([*taken, 'rng'])}: ..., or leave out rng=True"
        )


@functools.cache
def _generators() -> tuple[Any, Any]:
    """`Generator` and `Philox` of NumPy, for which `KeySeed` is a seed; they are not loaded with NumPy, and take long."""
    from numpy.random.bit_generator import ISpawnableSeedSequence

    ISpawnableSeedSequence.register(KeySeed)
    return np.random.Generator, np.random.Philox


def generator_of(key: Any) -> "np.random.Generator":
    """A generator of a key, uint64 [2]."""
    generator, philox = _generators()
    made: np.random.Generator = generator(philox(KeySeed(key)))
    return made


class KeySeed:
    """What `Philox(key=...)` should be: that asks the operating system for a seed as well.

    Which takes twice as long as all else, and generators that are spawned would follow from that seed.

    Args:
      key: uint64 [2].
    """

    def __init__(self, key: Any) -> None:
        self.key = key
        self._children: np.random.SeedSequence | None = None  # the name in generators that version 0.4.0 has pickled

    def __setstate__(self, state: dict[str, Any]) -> None:
        _generators()  # in another process nobody may have called it
        self.__dict__.update(state)

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> Any:
        """The key, for `Philox`; other bit generators, which a function may make of this seed, need words of their own."""
        return self.key if n_words == 2 and dtype == np.uint64 else self._sequence().generate_state(n_words, dtype)

    def spawn(self, n_children: int) -> Any:
        """Seeds for more generators, others in each call."""
        return self._sequence().spawn(n_children)

    def _sequence(self) -> "np.random.SeedSequence":
        self._children = self._children or np.random.SeedSequence(np.asarray(self.key).tolist())
        return self._children


# ----------------------------------------------------------------------------
# How the functions of maps are called: here, for whole blocks, on threads, in processes, or by an executor of the user's.
# ----------------------------------------------------------------------------


_FEWEST_ROWS = 64
"""With fewer elements in the first block, "auto" does not even load what makes whole blocks."""


class MapCalls(OneForOne):
    """A step that calls the functions of one map, or of several that run as one, on every element.

    How they are called is what the first map says; what they may return is what the last one says.
    """

    @property
    @abstractmethod
    def maps(self) -> "Sequence[Map]":
        """The maps, the first one first; all are called in the same way."""

    @abstractmethod
    def moved_over(self, shuffled: Node) -> Node:
        """The step over its input's elements as a shuffle behind it gives them; its errors stay those of the shuffle."""

    @property
    def fails_in_place(self) -> bool:
        return not self.maps[-1].displaced

    @cached_property
    def workforce(self) -> "Workforce | None":
        """The worker processes, if it has them."""
        first = self.maps[0]
        if not first.processes:
            return None
        calls = first.num_parallel_calls
        return workers.workforce_of(self._chain(), cores() if calls in (None, AUTOTUNE) else int(calls))

    @cached_property
    def verdict(self) -> "Vectorizer | None":
        """Whether whole blocks are made; None: it was never asked for."""
        return self._verdict()

    @cached_property
    def trial(self) -> "ThreadTrial":
        """What AUTOTUNE found out about threads, in all passes."""
        return workers.thread_trial()

    @property
    def notes(self) -> tuple[str, ...]:
        if self.verdict is None:
            return ()
        if self.verdict.blocks or self.verdict.reason is not None:
            return (str(self.verdict),)
        afresh = self._verdict()
        assert afresh is not None
        return (whole_block.tried(afresh, self.input),)

    def fetch(self, rows: Ints, epoch: int) -> Block:
        no_mark = partial(same, {})  # elements that are fetched by position have no marks
        chain, given = self._chain(), self.input.fetch(rows, epoch)
        if not given.size:
            return Block.of(self.spec.structure, [])
        made: Iterator[MadeBlock]
        if not isinstance(chain, Chain):
            made = iter([(chain.block(given), no_mark, given)])
        else:
            results = list(chain.results(given))
            if len(results) < given.size:
                raise stopped()
            made = _formed(results, given, no_mark, _raised, chain.said)
        checked = self._held(made, lambda _: None, tolerant=False)
        return concat_blocks([block for block, _ in checked])

    def stream(self, state: State, run: Run) -> Stream:
        for step in self.maps:
            step.decide(run)
        made = _Pass(self, self.maps, self._chain(), run, run.counter(self)).made(state)
        return self._held(made, partial(run.annotate, where=self.maps[-1].where), tolerant=run.tolerant)

    def _held(self, made: Iterator[MadeBlock], note: Callable[[Exception], None], *, tolerant: bool) -> Stream:
        """Results, checked against the signature or the claim of the last map."""
        last = self.maps[-1]
        certain = last.signature or (None if last.compiled is None else last.compiled.spec)
        return held("map", made, last.claim, certain, lambda: last.spec, note, tolerant=tolerant)

    def _chain(self) -> "Chain | compiling.Compiled":
        """The functions as one."""
        first, before = self.maps[0], self.maps[:-1]
        if first.compiled is not None:
            return first.compiled
        asks = [partial(getattr, step, "spec") for step in before]
        return Chain(
            [step.map_func for step in self.maps], [step.claim for step in before], asks, self.maps[-1].signature
        )

    def _verdict(self) -> "Vectorizer | None":
        """Whether the functions are called for whole blocks, as far as that is known before they are tried."""
        first, chain = self.maps[0], self._chain()
        if first.vectorize is False or not isinstance(chain, Chain):
            return None
        reason = None
        if first.processes:
            reason = "processes=True has them called in worker processes"
        elif first.executor is not None:
            reason = "executor= has them called elsewhere"
        elif first.vectorize == "auto" and first.num_parallel_calls not in (None, 1, AUTOTUNE):
            reason = "num_parallel_calls has them called on threads; vectorize=True goes before it"
        return whole_block.Vectorizer(
            chain.functions, chain, measured=first.vectorize is True, reason=reason, said=chain.said
        )


@dataclass(frozen=True, eq=False)
class _Pass:
    """The calls of one pass.

    Args:
      node: the step.
      maps: its maps.
      chain: their functions as one.
      run: the pass.
      counter: the step's figures in it.
      stalls: whether the next block of the input may wait for what the loop does with those before it.
    """

    node: MapCalls
    maps: "Sequence[Map]"
    chain: "Chain | compiling.Compiled"
    run: Run
    counter: OpCounters
    stalls: Callable[[], bool] = lambda: False

    @property
    def calling(self) -> "workers.Calling":
        """The functions, and the pass."""
        return workers.Calling(self.chain, self.run, self.counter, self.note, self.stalls)

    def made(self, state: State) -> Iterator[MadeBlock]:
        """Blocks of results from a state on, in the order of the elements."""
        node, chain, run = self.node, self.chain, self.run
        first = self.maps[0]
        elsewhere = node.workforce is not None or first.executor is not None
        below = run.one_by_one() if elsewhere or (first.num_parallel_calls or 1) > 1 else run
        by_block = elsewhere or not isinstance(chain, Chain)
        below = below.by_block() if by_block else below
        if elsewhere or first.num_parallel_calls not in (None, 1):
            upstream, stalls = buffered.opened_ahead(node.input, state["input"], below, self.counter)
            return replace(self, stalls=stalls).called(upstream, state)
        return self.called(node.input.open(state["input"], below), state)

    def called(self, upstream: Stream, state: State) -> Iterator[MadeBlock]:
        """Blocks of results for the elements of a stream."""
        chain, first, workforce = self.chain, self.maps[0], self.node.workforce
        if workforce is not None:
            return workers.called_in_processes(upstream, state, workforce, self.calling)
        if first.executor is not None:
            calls = first.num_parallel_calls
            most = None if calls in (None, AUTOTUNE) else int(calls)
            return workers.called_by_executor(upstream, state, first.executor, most, self.calling)
        if first.vectorize is False or not isinstance(chain, Chain):
            return self.singly(upstream, state)
        return self.by_block(chain, upstream, state)

    def by_block(self, chain: Chain, upstream: Stream, state: State) -> Iterator[MadeBlock]:
        """Blocks of results of calls for whole blocks, as far as those are possible."""
        for pair in upstream:
            every = joined(iter([pair]), upstream)
            few = self.maps[0].vectorize == "auto" and pair[0].size < _FEWEST_ROWS
            del pair  # nothing but that iterator, until it is used up, holds its memory
            verdict = None if few else self.node.verdict
            if verdict is None or verdict.reason is not None:
                yield from self.singly(every, state)
                return
            group = self.run.group(self.node)
            yield from whole_block.called_by_block(every, state, verdict, self.calling, self.singly, group)
            return

    def singly(self, upstream: Stream, state: State) -> Iterator[MadeBlock]:
        """Blocks of results of calls for each element."""
        calls, chain, run = self.maps[0].num_parallel_calls, self.chain, self.run
        if not isinstance(chain, Chain) and calls in (None, AUTOTUNE, 1):
            return chain.stream(upstream, state, run, lambda error, element: self.note(error, 0, element_text(element)))
        if calls == AUTOTUNE and run.run_ahead is None:
            return workers.called_as_measured(upstream, state, cores(), self.calling, self.node.trial)
        if calls is not None and calls > 1:
            return workers.called_in_threads(upstream, state, int(calls), self.calling)
        return self.here(upstream, state)

    def here(self, upstream: Stream, state: State) -> Iterator[MadeBlock]:
        """Blocks of results of calls in the iterator's own thread."""
        chain = self.chain

        def place(error: Exception, element: Any) -> None:
            index, given = chain.place(error, element)
            self.note(error, index, element_text(given))

        def refused(error: Exception, element: Any) -> Failure:
            self.note(error, len(chain.functions) - 1, element_text(element))
            if not self.run.tolerant:
                raise error
            return Failure(error)

        before, most, together = state, self.run.at_once(MOST_CALLS), Together(self.run.group(self.node))
        refills = Refills("map", chain.functions, each=False)

        def results(rows: Block) -> Iterator[Any]:
            return chain.results(rows, refills)

        calls = applied(upstream, state, results, most, place, together=together, tolerant=self.run.tolerant)
        for made, rows, first, mark in calls:
            if (filled := refills.error()) is not None:
                self.note(filled, len(chain.functions) - 1, "")
                raise filled
            if type(rows) is Failure:
                yield rows, between(before, mark, 0), rows
            else:
                given = rows.rows(first, first + len(made))
                yield from _formed(made, given, between(before, mark, len(made)), refused, chain.said, together)
            before = mark

    def note(self, error: Exception, index: int, element: str) -> None:
        """Tell which element an error is about, and which map failed on it."""
        if element:
            error.add_note(f"on {element}")
        self.run.annotate(error, self.maps[index].where)


def _formed(
    results: list[Any],
    given: Block,
    at: Callable[[int], Mark],
    refused: Callable[[Exception, Any], Failure],
    said: Spec | None,
    together: Together | None = None,
) -> Iterator[MadeBlock]:
    """Results as blocks, with their arguments; `refused` raises, or returns a failure, for a result that is not an element."""
    for made, first, end in formed(results, said, together):
        if isinstance(made, Block):
            yield made, behind(at, first), given.rows(first, end)
        else:
            yield refused(made, given.row(first)), behind(at, end), given.rows(end, end)


def _raised(error: Exception, element: Any) -> Failure:
    error.add_note(f"on {element_text(element)}")
    raise error


# ----------------------------------------------------------------------------
# `map`: call a function on every element.
# ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Map(MapCalls, Signed):
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
        until the dataset is dropped; arrays go through shared memory. Another worker takes the place of one that was killed,
        and gets its elements again.
      on_error: what happens when `map_func` raises: "raise" that error; "skip" the element, up to a budget; `SkipErrors(...)`,
        with the budget and a file for what was left out. None: as `Options.on_error` says, or "raise".
      rng: call it with a `numpy.random.Generator` of the element's own as last argument. Its numbers follow from the seed, the
        pass, the step and the position of the element, so they are the same on any number of threads, processes and workers
        and after a restart, and others in each pass. Files are not dealt to workers below this map (policy FILE).
      seed: with `rng`, any integer; None draws one, which a saved state remembers.
      executor: any `concurrent.futures.Executor` that calls it, such as those of Dask, mpi4py and `ProcessPoolExecutor`; or a
        function that makes one, which is called again when one has broken. Results come in order. `num_parallel_calls` parts
        are under way (two for each worker if that is None, as far as the executor tells how many it has). A part whose
        worker was lost is sent again, up to four times. A `ProcessPoolExecutor` that broke is replaced by one like it.
      vectorize: whether a function of NumPy is called once for a whole block where its results stay the same to the bit; what
        the function returns never depends on it. "auto": for small elements, by rules that are exact by construction. True:
        for all elements, also by rules that are found exact when they are measured. False: never. `explain()` says what
        happens, and why.

    Raises:
      InvalidArgumentError: both `synchronous` and `num_parallel_calls` are given.
      TypeError: `map_func` cannot be called, or cannot be sent to worker processes; at iteration, a result does not fit
        `output_signature`, or is of another kind than the other results.
      UnavailableError: at iteration, worker processes died each time that they had the same elements, or `executor` is broken.
      DataLossError: at iteration, more elements failed than `on_error` allows.

    >>> import distinput as di
    >>> list(di.data.Dataset.range(3).map(lambda x: x * 10).as_numpy_iterator())
    [np.int64(0), np.int64(10), np.int64(20)]

    Source: `tf.data.Dataset.map`.
    """

    by_element = tolerant = True
    # Whether there are random numbers is what the input says.
    indifferent: ClassVar[frozenset[str]] = MapCalls.indifferent | {"executor", "rng", "seed", "vectorize"}
    map_func: Callable[..., Any]
    num_parallel_calls: int | None = None
    deterministic: bool | None = None
    synchronous: bool | None = field(default=None, repr=False)
    use_unbounded_threadpool: bool = field(default=False, repr=False)
    output_signature: Any = field(default=None, kw_only=True)
    processes: bool = field(default=False, kw_only=True)
    claim: Claim = field(default_factory=Claim, kw_only=True, repr=False)
    on_error: "str | SkipErrors | None" = field(default=None, kw_only=True)
    rng: bool = field(default=False, kw_only=True)
    seed: int | None = field(default=None, kw_only=True)
    executor: Any = field(default=None, kw_only=True)
    vectorize: bool | str = field(default="auto", kw_only=True)
    displaced: bool = field(default=False, kw_only=True, repr=False)
    """Whether it stood below a shuffle, where an error takes no batch with it."""

    def __post_init__(self) -> None:
        take_functions(self, "map", "map_func")
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
            processes.check_sendable("map", self.map_func)
        if self.executor is not None:
            if self.processes or self.synchronous:
                raise InvalidArgumentError(
                    "map: executor goes neither with processes nor with synchronous; leave one out"
                )
            workers.check_executor(self.executor)

    @cached_property
    def call(self) -> Callable[[Any], Any]:
        """The function of one element."""
        return calling(self.map_func)

    @cached_property
    def compiled(self) -> "compiling.Compiled | None":
        """The function as compiled code over blocks, if possible."""
        return compiling.compiled(self.map_func, self.input.spec) if is_numba(self.map_func) else None

    def added(self) -> Node:
        if self.processes or (self.executor is not None and workers.has_processes(self.executor)):
            reach.warn_of_copied_generators(self, [self.map_func], reach.OF_MAP)
        told = self.on_error is not None or any(step.own_options is not None for step in walk(self))
        return failures.guarded(self, self.on_error) if told and not self.raises else self

    @cached_property
    def spec(self) -> Spec:
        if self.compiled is not None:
            return self.signature or self.compiled.spec
        return self.signature or self.claim.asked("map", lambda: infer("map", self.call, self.input, self.map_func))

    @property
    def maps(self) -> tuple["Map", ...]:
        return (self,)

    def moved_over(self, shuffled: Node) -> "Map":
        return replace(self, input=shuffled, displaced=True)


@dataclass(frozen=True, eq=False)
class FusedMap(Fused[Map], MapCalls):
    """Neighbouring maps that run as one: each element goes through all functions before the next one begins.

    Shapes: those of the last map. State: where the next element stands in the input.

    Args:
      functions: the maps, the first one first; all have the same number of threads or processes.
    """

    def moved_over(self, shuffled: Node) -> "FusedMap":
        *maps, last = self.maps
        return replace(self, input=shuffled, functions=Neighbours((*maps, replace(last, displaced=True).same_as(last))))


def fused(first: Map | FusedMap, then: Map) -> FusedMap | None:
    """`then` over `first` as one node; None if they are not called in the same way."""
    maps = first.maps
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
