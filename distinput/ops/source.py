# SPDX-License-Identifier: Apache-2.0
"""`from_source`: the items of an object that has a length and gives them by position."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np

from distinput.arrow.adopt import adopt, lent
from distinput.columns.block import Block, Failure, balanced_slices, concat_blocks
from distinput.columns.column import Ints
from distinput.columns.rows import Stream, same
from distinput.columns.state import Digest, State, evenly
from distinput.errors import InvalidArgumentError
from distinput.functions.claim import Claim, MadeBlock, held, listed_instead
from distinput.functions.workers import (
    Calling,
    Done,
    Parts,
    Reads,
    called_as_measured,
    called_at_once,
    called_in_processes,
    called_in_threads,
    thread_trial,
    work,
    workforce_of,
)
from distinput.names.lazy import dataclass
from distinput.ops.range import Range
from distinput.ops.slices import from_tensor_slices
from distinput.plan.binding import watch_methods
from distinput.plan.check import AUTOTUNE, parallel_calls
from distinput.plan.families import Signed
from distinput.plan.node import Node, once
from distinput.plan.reach import warn_of_copied_generators
from distinput.run.processes import Workforce, check_sendable
from distinput.run.run import Run, called_once
from distinput.run.threads import cores, mapped
from distinput.values.spec import Spec, merge_specs

_MOST_AT_ONCE = 4096
"""Items that are read before the first of them is handed out, if they are quick to read."""

_ALONE_BYTES = 1 << 18
"""From this size on, items are blocks of their own: putting them side by side would cost more."""

_MOST_HASHED = 4096
"""Items of a list that are hashed to recognise it."""


@dataclass(frozen=True, eq=False)
class Source(Signed):
    """The items of `source` at the positions that the input gives.

    Shapes: those of the items. State: where the next position stands in the input, so a restart goes straight there.

    Args:
      source: has `__len__` and `__getitem__`; `__getitems__`, if it has it, is called with a list of positions.
      length: how many items it has.
      num_parallel_calls: threads that read, or worker processes; AUTOTUNE measures whether threads help.
      output_signature: a nest of `TensorSpec` for an item; integers become as wide as it says. Without it, the spec is that of
        a few items, which are read when it is asked for, and all others are held to it.
      processes: read in worker processes, to which the source is sent once.
      copy: False: the source does not change an array that it has given, so elements may be views.

    Source: distinput's own; what PyTorch calls a map-style dataset, and Grain a `RandomAccessDataSource`.
    """

    by_element = tolerant = True
    op: ClassVar[str] = "from_source"
    source: Any
    length: int
    num_parallel_calls: int | None = None
    output_signature: Any = field(default=None, kw_only=True)
    processes: bool = field(default=False, kw_only=True)
    copy: bool = field(default=True, kw_only=True)
    claim: Claim = field(default_factory=Claim, kw_only=True, repr=False)

    def __post_init__(self) -> None:
        parallel_calls("from_source", self.num_parallel_calls)
        watch_methods(self)
        if self.processes:
            check_sendable("from_source", self.source)

    def arguments(self) -> dict[str, Any]:
        shown: dict[str, Any] = {"source": _Shown(self.source)}
        given = {"num_parallel_calls": self.num_parallel_calls, "processes": self.processes or None}
        shown |= {name: value for name, value in given.items() if value is not None}
        return shown if self.signature is None else {**shown, "element_spec": self.signature.nest}

    def contents(self) -> dict[str, Any]:
        return {"values": Digest(8).add(self.length, _digest(self.source)).word}

    @cached_property
    def reads(self) -> Reads:
        """What reads the items."""
        return Reads(self.source, self.length, copy=self.copy, said=self.signature)

    @cached_property
    def spec(self) -> Spec:
        return self.signature or self.claim.asked("from_source", self._inferred)

    def _inferred(self) -> Spec:
        """The spec that fits a few items: the first two, one after a third and a half, and the last."""
        n = self.length
        if not n:
            raise InvalidArgumentError(
                "from_source: cannot tell what the items look like: the source is empty; pass element_spec="
            )
        indices = sorted({0, min(1, n - 1), n // 3, n // 2, n - 1})
        common: Spec | None = None
        first = 0
        failure: Exception | None = None
        for index in indices:
            try:
                item = called_once(next, self.reads.results(Range(index, index + 1).fetch(np.zeros(1, np.int64), 0)))
                spec = Spec.of_value(adopt(item))
            except Exception as error:  # noqa: BLE001 - raised if no item can be read; otherwise when its turn comes
                failure = failure or _at(error, index)
                continue
            if common is None:
                common, first = spec, index
                continue
            both = merge_specs(common, spec)
            if both is None:
                raise TypeError(
                    f"from_source: the source must give items of one structure and dtype, got {common.nest} at index {first} "
                    f"and {spec.nest} at index {index}; pass element_spec=, or make its items alike"
                )
            common = both
        if common is None:
            assert failure is not None
            raise failure
        return common

    def stream(self, state: State, run: Run) -> Stream:
        self.decide(run)
        return self._held(self._called(state, run), partial(run.annotate, where=self.where), tolerant=run.tolerant)

    def _held(self, made: Iterator[MadeBlock], note: Callable[[Exception], None], *, tolerant: bool) -> Stream:
        made, claim = self._lent(made), self.claim
        return held(self.op, made, claim, self.signature, lambda: self.spec, note, tolerant=tolerant, refused=_unlike)

    def _called(self, state: State, run: Run) -> Iterator[MadeBlock]:
        calls = self.num_parallel_calls
        below = run.by_block() if calls is None and not self.processes else run.one_by_one().by_block()
        upstream = self.input.open(state["input"], below)

        def note(error: Exception, _: int, index: str) -> None:
            if index:
                error.add_note(f"at {index}")
            run.annotate(error, self.where)

        self.reads.check_length()
        inline = calls is None or (calls != AUTOTUNE and calls <= 1)
        calling = Calling(self.reads, run, run.counter(self), note, each=not inline)
        if self.workforce is not None:
            yield from called_in_processes(upstream, state, self.workforce, calling)
        elif calls == AUTOTUNE and run.run_ahead is None:
            yield from called_as_measured(upstream, state, cores(), calling, self.trial)
        elif calls is not None and calls > 1:
            yield from called_in_threads(upstream, state, int(calls), calling)
        else:
            yield from _read_here(Parts(upstream, state, run.at_once(_MOST_AT_ONCE), _ALONE_BYTES), calling)

    def _lent(self, made: Iterator[MadeBlock]) -> Iterator[MadeBlock]:
        if not self.reads.lends or self.workforce is not None:
            return made
        return ((lent(block) if block.size else block, at, given) for block, at, given in made)

    @cached_property
    def workforce(self) -> Workforce | None:
        """The worker processes, if it has them."""
        if not self.processes:
            return None
        calls = self.num_parallel_calls
        return workforce_of(self.reads, cores() if calls in (None, AUTOTUNE) else int(calls))

    trial = once(thread_trial)
    """What AUTOTUNE found out about threads, in all passes."""

    def fetch(self, rows: Ints, epoch: int) -> Block:
        given = self.input.fetch(rows, epoch)
        if not given.size:
            return Block.of(self.spec.structure, [])
        checked = self._held(self._fetched(given), lambda _: None, tolerant=False)
        return concat_blocks([block for block, _ in checked])

    def _fetched(self, given: Block) -> Iterator[MadeBlock]:
        """The items for some positions, read by as many threads or processes as there are."""
        calls = self.num_parallel_calls
        threads = 1 if calls in (None, AUTOTUNE) else min(int(calls), given.size)
        if self.workforce is not None:
            self.reads.check_length()
            made = called_at_once(self.workforce, self.reads, given)
        elif threads > 1:
            parts = [given.rows(part.start, part.stop) for part in balanced_slices(given.size, threads)]
            made = list(zip(parts, mapped(self._read, parts, threads), strict=True))
        else:
            made = [(given, self._read(given))]
        for part, done in made:
            yield from done.delivered(part, partial(same, {}), self._note, tolerant=False)

    def _note(self, error: Exception, _: int, index: str) -> None:
        error.add_note(f"at {index}")
        Run().annotate(error, self.where)

    def _read(self, part: Block) -> Done:
        return work(self.reads, part, None, tolerant=False)


def _read_here(parts: Parts, calling: Calling) -> Iterator[MadeBlock]:
    """Items read in the iterator's thread, as many at a time as take a few milliseconds."""
    while (part := parts.next()) is not None:
        rows, at = part
        if type(rows) is Failure:
            yield rows, at, rows
            continue
        done = calling.work(rows, calling.run.cancelled.is_set)
        parts.took(done)
        yield from calling.delivered(done, rows, at)
    parts.close()


def _unlike(op: str, wanted: str, got: str, given: Any, *, signed: bool) -> TypeError:
    if signed:
        return TypeError(
            f"{op}: the source must give what element_spec says, {wanted}, got {got} at index {int(given)}; change one of them"
        )
    return TypeError(
        f"{op}: the source must give {wanted} at every index, as in the items that were read first, got {got} at "
        f"index {int(given)}; pass element_spec= (with None for a dimension that varies), or make its items alike"
        f"{listed_instead(got)}"
    )


def _at(error: Exception, index: int) -> Exception:
    error.add_note(f"at index {index}")
    return error


class _Shown:
    """A source as an argument: printed as its class, and recognised by what its methods do and its plain attributes say."""

    def __init__(self, source: Any) -> None:
        self.__qualname__ = type(source).__qualname__
        self.__wrapped__ = source.__getitem__

    def __call__(self, index: int) -> Any:
        return self.__wrapped__(index)


def _digest(source: Any) -> Any:
    """What tells one source from another, as far as it says so; other sources are told by their class, code and length."""
    said = getattr(source, "_fingerprint", None)  # of datasets of Hugging Face
    if isinstance(said, str):
        return said
    if isinstance(source, list | tuple):
        items = [source[index] for index in evenly(len(source), _MOST_HASHED).tolist()]
        return [_item_digest(item) for item in items]
    return None


def _item_digest(item: Any) -> Any:
    if isinstance(item, np.ndarray) and item.dtype != object:
        return Digest(8).array(item).word
    if isinstance(item, int | float | complex | str | bytes | np.generic | None):
        return str(item)
    if isinstance(item, list | tuple):
        return [_item_digest(part) for part in item]
    if isinstance(item, Mapping):
        return [(str(key), _item_digest(value)) for key, value in item.items()]
    return type(item).__qualname__


def from_source(
    source: Any,
    element_spec: Any = None,
    num_parallel_calls: int | None = None,
    *,
    processes: bool = False,
    copy: bool = True,
) -> Node:
    """The node of `Dataset.from_source`.

    Raises:
      TypeError: `source` has no length or gives no items by position, or is something that another maker takes.
    """
    kind = type(source).__qualname__
    if getattr(source, "nest_leaf", False):
        raise TypeError(
            f"from_source: the source must be another kind of object, got a {kind}, which is a dataset already"
        )
    if isinstance(source, Mapping | str | bytes) or hasattr(source, "__dataframe__"):
        raise TypeError(
            f"from_source: the source must give rows by position, got a {kind}; use from_arrow for a table, and "
            "from_tensor_slices for a dict of columns and for a list of texts"
        )
    missing = [name for name in ("__len__", "__getitem__") if not hasattr(type(source), name)]
    if missing:
        raise TypeError(
            f"from_source: the source must have __len__ and __getitem__, got a {kind} without {' and '.join(missing)}; use "
            "from_generator for what can only be iterated"
        )
    if getattr(source, "shape", None) == ():
        raise TypeError(f"from_source: the source must have rows, got a {kind} that is one value, without any axis")
    if isinstance(source, np.ndarray) and element_spec is None:
        return from_tensor_slices(source)  # rows of an array are views, which nobody has to read
    length = called_once(len, source)
    node = Source(
        Range(0, length),
        source,
        length,
        num_parallel_calls,
        output_signature=element_spec,
        processes=processes,
        copy=copy,
    )
    if processes:
        cure = "make one for each item in __getitem__: numpy.random.default_rng((seed, index))"
        warn_of_copied_generators(node, [source], cure)
    return node
