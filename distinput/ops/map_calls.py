# SPDX-License-Identifier: Apache-2.0
"""How the functions of maps are called: here, for whole blocks, on threads, in processes, or by an executor of the user's."""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain as joined
from typing import TYPE_CHECKING, Any, Protocol

from distinput.columns.block import Block, concat_blocks
from distinput.columns.column import Ints
from distinput.columns.failure import Failure
from distinput.columns.rows import Stream
from distinput.columns.state import Mark, State
from distinput.functions.chain import Chain
from distinput.functions.claim import Claim, MadeBlock, behind, between, formed, held
from distinput.functions.compiled import Compiled
from distinput.functions.executor_calls import called_by_executor
from distinput.functions.parts import Calling
from distinput.functions.workers import called_as_measured, called_in_processes, called_in_threads, trial, workforce_of
from distinput.names.lazy import later
from distinput.plan.check import AUTOTUNE
from distinput.plan.families import OneForOne
from distinput.run.calls import MOST_CALLS, applied, element_text
from distinput.run.cores import cores
from distinput.run.processes import Workforce
from distinput.run.run import OpCounters, Run
from distinput.streaming.buffered import ThreadTrial
from distinput.values.spec import Spec

if TYPE_CHECKING:
    from distinput.functions.vectorized import whole_block
    from distinput.functions.vectorized.whole_block import Vectorizer
else:
    # Whole blocks are for functions that are called often.
    whole_block = later("distinput.functions.vectorized.whole_block")

__all__ = ["Called", "MapCalls"]

_FEWEST_ROWS = 64
"""With fewer elements in the first block, "auto" does not even load what makes whole blocks."""


class Called(Protocol):
    """What a map says of its calls; `Map` has the meaning of each."""

    @property
    def map_func(self) -> Callable[..., Any]: ...
    @property
    def num_parallel_calls(self) -> int | None: ...
    @property
    def processes(self) -> bool: ...
    @property
    def executor(self) -> Any: ...
    @property
    def vectorize(self) -> bool | str: ...
    @property
    def claim(self) -> Claim: ...
    @property
    def compiled(self) -> Compiled | None: ...
    @property
    def signature(self) -> Spec | None: ...
    @property
    def spec(self) -> Spec: ...
    def where(self) -> str: ...
    def decide(self, run: Run) -> None: ...


@dataclass(frozen=True, eq=False)
class MapCalls(OneForOne):
    """A step that calls the functions of one map, or of several that run as one, on every element.

    How they are called is what the first map says; what they may return is what the last one says.
    """

    @property
    @abstractmethod
    def maps(self) -> Sequence[Called]:
        """The maps, the first one first; all are called in the same way."""

    @property
    def fails_in_place(self) -> bool:
        return True

    @cached_property
    def workforce(self) -> Workforce | None:
        """The worker processes, if it has them."""
        first = self.maps[0]
        if not first.processes:
            return None
        calls = first.num_parallel_calls
        return workforce_of(self._chain(), cores() if calls in (None, AUTOTUNE) else int(calls))

    @cached_property
    def verdict(self) -> "Vectorizer | None":
        """Whether whole blocks are made; None: it was never asked for."""
        return self._verdict()

    @cached_property
    def found(self) -> ThreadTrial:
        """What AUTOTUNE found out about threads, in all passes."""
        return trial()

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
        chain, given = self._chain(), self.input.fetch(rows, epoch)
        if not given.size:
            return Block.of(self.spec.structure, [])
        made: Iterator[MadeBlock]
        if isinstance(chain, Compiled):
            made = iter([(chain.block(given), _no_mark, given)])
        else:
            made = _formed(list(chain.results(given)), given, _no_mark, _raised, chain.said)
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

    def _chain(self) -> Chain | Compiled:
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
        if first.vectorize is False or isinstance(chain, Compiled):
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
    """

    node: MapCalls
    maps: Sequence[Called]
    chain: Chain | Compiled
    run: Run
    counter: OpCounters

    @property
    def calling(self) -> Calling:
        """The functions, and the pass."""
        return Calling(self.chain, self.run, self.counter, self.note)

    def made(self, state: State) -> Iterator[MadeBlock]:
        """Blocks of results from a state on, in the order of the elements."""
        node, chain, run = self.node, self.chain, self.run
        first, workforce = self.maps[0], node.workforce
        elsewhere = workforce is not None or first.executor is not None
        below = run.one_by_one() if elsewhere or (first.num_parallel_calls or 1) > 1 else run
        by_block = elsewhere or isinstance(chain, Compiled)
        upstream = node.input.open(state["input"], below.by_block() if by_block else below)
        if workforce is not None:
            return called_in_processes(upstream, state, workforce, self.calling)
        if first.executor is not None:
            calls = first.num_parallel_calls
            most = None if calls in (None, AUTOTUNE) else int(calls)
            return called_by_executor(upstream, state, first.executor, most, self.calling)
        if first.vectorize is False or isinstance(chain, Compiled):
            return self.singly(upstream, state)
        return self.by_block(chain, upstream, state)

    def by_block(self, chain: Chain, upstream: Stream, state: State) -> Iterator[MadeBlock]:
        """Blocks of results of calls for whole blocks, as far as those are possible."""
        for pair in upstream:
            every = joined([pair], upstream)
            few = self.maps[0].vectorize == "auto" and pair[0].size < _FEWEST_ROWS
            verdict = None if few else self.node.verdict
            if verdict is None or verdict.reason is not None:
                yield from self.singly(every, state)
                return
            yield from whole_block.called_by_block(every, state, verdict, self.calling, self.singly)
            return

    def singly(self, upstream: Stream, state: State) -> Iterator[MadeBlock]:
        """Blocks of results of calls for each element."""
        calls, chain, run = self.maps[0].num_parallel_calls, self.chain, self.run
        if isinstance(chain, Compiled) and calls in (None, AUTOTUNE, 1):
            return chain.stream(upstream, state, run, lambda error, element: self.note(error, 0, element_text(element)))
        if calls == AUTOTUNE and run.run_ahead is None:
            return called_as_measured(upstream, state, cores(), self.calling, self.node.found)
        if calls is not None and calls > 1:
            return called_in_threads(upstream, state, int(calls), self.calling)
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

        before, most = state, self.run.at_once(MOST_CALLS)
        for made, rows, first, mark in applied(upstream, state, chain.results, most, place, tolerant=self.run.tolerant):
            if type(rows) is Failure:
                yield rows, between(before, mark, 0), rows
            else:
                given = rows.rows(first, first + len(made))
                yield from _formed(made, given, between(before, mark, len(made)), refused, chain.said)
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
) -> Iterator[MadeBlock]:
    """Results as blocks, with their arguments; `refused` raises, or returns a failure, for a result that is no element."""
    for made, first, end in formed(results, said):
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
