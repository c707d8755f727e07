# SPDX-License-Identifier: Apache-2.0
"""`choose_from_datasets` and `sample_from_datasets`: elements of several datasets, mixed."""

import math
from collections.abc import Collection, Sequence
from dataclasses import field
from functools import cached_property
from time import perf_counter
from typing import Any, ClassVar

import numpy as np

from distinput.columns.block import Block, ColumnBlock, concat_blocks, failed, numbers_of, rows_within
from distinput.columns.column import Dense, Ints
from distinput.columns.picked import places_of_each
from distinput.columns.rows import RowQueue, Stream
from distinput.columns.state import State, is_count
from distinput.errors import InvalidArgumentError
from distinput.names.lazy import dataclass
from distinput.names.words import shown
from distinput.plan.check import integer
from distinput.plan.families import Seeded, common_spec, in_one_order, uniform_at
from distinput.plan.node import INFINITE, UNKNOWN, Node
from distinput.run.run import Run
from distinput.values.nest import LEAF
from distinput.values.spec import Spec, TensorSpec

_MOST, _MOST_QUICK, _QUICK = 1024, 4096, 0.05
"""The most elements of a block, and of one that follows on a block within so many seconds: each part has a fixed cost."""


@dataclass(frozen=True, eq=False)
class Choose(Node):
    """For each number that `selector` gives, the next element of that dataset.

    Shapes: the common shape of all. State: where the next element of each input and of the selector stands, and
    which datasets have run out.

    Args:
      sources: the datasets.
      selector: int64 scalars from 0 to len(sources) - 1.
      stop_on_empty_dataset: end at the first dataset that has run out, rather than skipping its numbers.

    Source: `tf.data.Dataset.choose_from_datasets`.
    """

    tolerant: ClassVar[bool] = True
    sources: tuple[Node, ...]
    selector: Node
    stop_on_empty_dataset: bool = True

    @cached_property
    def spec(self) -> Spec:
        return common_spec("choose_from_datasets", self.sources)

    @property
    def cardinality(self) -> int:
        # TensorFlow says infinite as soon as one source is, even if the selector ends or the other sources are not skipped.
        endless = [source.cardinality == INFINITE for source in self.sources]
        lasting = all(endless) or (isinstance(self.selector, Draw) and any(endless) and not self.stop_on_empty_dataset)
        return INFINITE if lasting and self.selector.cardinality == INFINITE else UNKNOWN

    def start(self, epoch: int) -> State:
        return {"inputs": [{"input": node.start(epoch), "skip": 0} for node in self.inputs], "over": []}

    def state_misfit(self, state: State) -> str | None:
        fits = all(is_count(index, 0, len(self.sources) - 1) for index in state["over"])
        return None if fits else f"{self.op}: 'over' must hold numbers of datasets"

    def stream(self, state: State, run: Run) -> Stream:
        sharing = run.sharing(len(self.sources))
        queues = [
            RowQueue(in_one_order(node.open(mark["input"], sharing), lambda: self.spec), mark)
            for node, mark in zip(self.inputs, state["inputs"], strict=True)
        ]
        *sources, selector = queues
        most, in_vain = 1, 0
        over: set[int] = set(state["over"])
        failures: dict[int, Exception] = {}

        def mark() -> State:
            return {"inputs": [queue.mark() for queue in queues], "over": sorted(over)}

        while selector.fill(1) or selector.failure is not None:
            begin = perf_counter()
            if not selector.size:
                yield selector.passed(), mark()
                continue
            values = numbers_of(selector.peek(min(most, selector.size)))
            bad = np.flatnonzero((values < 0) | (values >= len(sources)))
            sound = values[: bad[0]] if len(bad) else values
            passes = None if self.stop_on_empty_dataset else over
            count, block, empty = gathered(sources, sound, failures, passes)
            selector.skip(count)
            if block is not None:
                room = _MOST_QUICK if perf_counter() - begin < _QUICK else _MOST
                most, in_vain = min(2 * most, rows_within(block.size, block.nbytes, room)), 0
                yield block, mark()
            else:
                most, in_vain = min(2 * most, _MOST), in_vain + count
                if in_vain > _MOST_PASSED:
                    raise self._only_ended(over, in_vain)
            if empty in failures:
                raise failures[empty]
            if empty is not None and sources[empty].failure is not None:
                selector.skip(1)
                yield sources[empty].passed(), mark()
            elif empty is not None or len(over) == len(sources):
                return
            elif len(bad) and count == len(sound):
                error = InvalidArgumentError(
                    f"choose_from_datasets: the selector must give numbers from 0 to {len(sources) - 1}, got {values[bad[0]]}"
                )
                selector.skip(1)
                yield failed(error, tolerant=run.tolerant), mark()

    def _only_ended(self, over: Collection[int], in_vain: int) -> InvalidArgumentError:
        left = [number for number in range(len(self.sources)) if number not in over]
        return InvalidArgumentError(
            f"choose_from_datasets: the last {in_vain:,} numbers of datasets are of those that have ended, "
            f"{shown(sorted(over))}, and none of those that have not, {shown(left)}; give those larger weights, end the "
            "numbers, or have the first end be the end of all: stop_on_empty_dataset=True"
        )


_MOST_PASSED = 100_000_000
"""So many numbers in a row may be of datasets that have ended; more take seconds, and there may be no other forever."""


def gathered(
    sources: Sequence[RowQueue], values: Ints, failures: dict[int, Exception], over: set[int] | None = None
) -> tuple[int, Block | None, int | None]:
    """Elements for as many values as possible: how many, the elements, and the dataset that had none for the next value.

    An error of a dataset is put into `failures`, to be raised once the elements before it have been sent.

    Args:
      sources: the datasets.
      values: numbers of them.
      failures: their errors.
      over: those that have run out, whose numbers are passed over; None: there an end is the end of all.
    """
    num_values = len(values)
    empty = None
    per_source = places_of_each(values)
    for number, places in per_source.items():
        queue, ends = sources[number], False
        if number not in failures and (over is None or number not in over):
            try:
                ends = not queue.fill(len(places)) and queue.failure is None
            except Exception as error:  # noqa: BLE001 - raised when its turn comes
                failures[number] = error
        passed = over is not None and (ends or number in over)
        if not passed and queue.size < len(places) and places[queue.size] < num_values:
            num_values, empty = int(places[queue.size]), number
    parts, kept = [], []
    for number, places in per_source.items():
        queue = sources[number]
        before = len(places) if num_values == len(values) else int(np.searchsorted(places, num_values))
        if over is not None and queue.size < before:
            over.add(number)
        count = min(queue.size, before)
        if count:
            parts += queue.take_parts(count)
            kept.append(places[:count])
    if not parts:
        return num_values, None, empty
    if len(parts) == 1:
        return num_values, parts[0], empty
    together = concat_blocks(parts)
    order = np.full(num_values, -1)  # which of them stands in each place; -1: a number that was passed over
    order[np.concatenate(kept)] = np.arange(together.size)
    return num_values, together.take(order[order >= 0]), empty


@dataclass(frozen=True, eq=False)
class Draw(Seeded):
    """An infinite stream of dataset numbers, drawn by weight.

    Args:
      weights: relative weights, not all 0.
      seed: any integer; None draws one, which the state remembers.
      rerandomize_each_iteration: True draws anew in each pass; otherwise all passes draw the same.

    Source: the selector of `tf.data.Dataset.sample_from_datasets`.
    """

    harmless: ClassVar[bool] = True
    weights: tuple[float, ...]
    seed: int | None = None
    rerandomize_each_iteration: bool | None = None

    @cached_property
    def spec(self) -> Spec:
        return Spec.leaf((), np.int64)

    @property
    def cardinality(self) -> int:
        return INFINITE

    @property
    def reshuffles(self) -> bool:
        return bool(self.rerandomize_each_iteration)

    @property
    def differs_by_place(self) -> bool:
        return self.seed is None or self.reshuffles

    def start(self, epoch: int) -> State:
        return self.seeded(epoch)

    def start_at(self, row: int, epoch: int) -> State | None:
        return self.seeded(epoch, row)

    def stream(self, state: State, run: Run) -> Stream:
        key = self.key_of_pass(state)
        edges = np.cumsum(self.weights) / np.sum(self.weights)
        row = state["row"]
        while True:
            drawn = np.searchsorted(edges[:-1], uniform_at(key, row, _MOST_QUICK), side="right")
            row += _MOST_QUICK
            yield ColumnBlock(LEAF, [Dense(drawn.astype(np.int64))], _MOST_QUICK), {**state, "row": row}


@dataclass(frozen=True, eq=False)
class DrawByWeights(Draw):
    """Dataset numbers, each drawn by the next weights of a dataset, as many as it has.

    Args:
      rows: gives vectors of relative weights, not all 0.

    Source: the selector of `tf.data.Dataset.sample_from_datasets` with a dataset of weights.
    """

    rows: Node = field(kw_only=True)

    @property
    def cardinality(self) -> int:
        return self.rows.cardinality

    def start(self, epoch: int) -> State:
        return {**self.seeded(epoch), "input": self.rows.start(epoch)}

    def start_at(self, row: int, epoch: int) -> State | None:
        at = self.rows.start_at(row, epoch)
        return None if at is None else {**self.seeded(epoch, row), "input": at}

    def stream(self, state: State, run: Run) -> Stream:
        key = self.key_of_pass(state)
        row = state["row"]
        for block, after in self.rows.open(state["input"], run):
            drawn: list[int] = []
            failure: InvalidArgumentError | None = None
            try:
                for weights, place in zip(block.elements(), uniform_at(key, row, block.size), strict=True):
                    drawn.append(self._number(weights, place))
            except InvalidArgumentError as error:
                failure = error
            row += len(drawn)
            if drawn:  # numbers drawn before invalid weights are sent first
                made = ColumnBlock(LEAF, [Dense(np.asarray(drawn, np.int64))], len(drawn))
                yield made, {**state, "row": row, "input": after}
            if failure is not None:
                raise failure

    def _number(self, weights: Any, place: float) -> int:
        shares = one_above_zero(weights, len(self.weights))
        edges = np.cumsum(shares) / np.sum(shares)
        return int(np.searchsorted(edges[:-1], place, side="right"))


def choose_from_datasets(datasets: Sequence[Node], choice_dataset: Node, stop_on_empty_dataset: bool = True) -> Node:
    """The node of `tf.data.Dataset.choose_from_datasets`.

    Raises:
      InvalidArgumentError: there is no dataset.
      TypeError: the selector does not give int64 scalars, or the datasets differ in structure or dtype.
    """
    check_sources("choose_from_datasets", datasets)
    spec = choice_dataset.spec
    if not spec.structure.is_leaf or spec.leaves[0] != Spec.leaf((), np.int64).leaves[0]:
        raise TypeError(f"choose_from_datasets: choice_dataset must give int64 scalars, got {spec.nest}")
    return Choose(tuple(datasets), choice_dataset, stop_on_empty_dataset)


def check_sources(op: str, datasets: Sequence[Node]) -> None:
    """Refuse datasets that cannot be mixed.

    Raises:
      InvalidArgumentError: there are none.
      TypeError: their elements differ.
    """
    if not datasets:
        raise InvalidArgumentError(f"{op}: Invalid `datasets`. `datasets` should not be empty.")
    common_spec(op, tuple(datasets))


def sample_from_datasets(
    datasets: Sequence[Node],
    weights: Any = None,
    seed: int | None = None,
    stop_on_empty_dataset: bool = False,
    rerandomize_each_iteration: bool | None = None,
) -> Node | None:
    """The node of `tf.data.Dataset.sample_from_datasets`; None if no weight is positive.

    Raises:
      InvalidArgumentError: there is no dataset, or not one weight for each.
      TypeError: the datasets differ in structure or dtype, or the seed is not an integer.
    """
    if seed is not None:
        integer("sample_from_datasets", "seed", seed)
    check_sources("sample_from_datasets", datasets)
    if isinstance(weights, Node):
        _check_weights(weights, len(datasets))
        drawn = DrawByWeights((1.0,) * len(datasets), seed, rerandomize_each_iteration, rows=weights)
        return Choose(tuple(datasets), drawn, stop_on_empty_dataset)
    shares = [1.0] * len(datasets) if weights is None else shares_of(weights, len(datasets))
    kept = [(node, share) for node, share in zip(datasets, shares, strict=True) if share > 0]
    if len(kept) < 2:
        return kept[0][0] if kept else None
    draw = Draw(tuple(share for _, share in kept), seed, rerandomize_each_iteration)
    return Choose(tuple(node for node, _ in kept), draw, stop_on_empty_dataset)


def _check_weights(weights: Node, count: int) -> None:
    """Refuse a dataset that does not give vectors of `count` weights.

    Raises:
      TypeError: its elements are not vectors of numbers.
      InvalidArgumentError: they have another length.
    """
    spec = weights.spec
    leaf = spec.leaves[0] if spec.structure.is_leaf else None
    if not isinstance(leaf, TensorSpec) or leaf.dtype.kind not in "fiu":
        raise TypeError(f"sample_from_datasets: a dataset of weights must give vectors of numbers, got {spec.nest}")
    if leaf.shape is not None and not leaf.shape.is_compatible_with([count]):
        raise InvalidArgumentError(
            f"sample_from_datasets: there must be one weight for each of the {count} datasets, got vectors of shape "
            f"{leaf.shape}"
        )


def one_above_zero(weights: Any, count: int) -> tuple[float, ...]:
    """The weights as numbers, at least one of which is greater than zero."""
    shares = tuple(shares_of(weights, count))
    if not sum(shares):
        raise InvalidArgumentError(f"sample_from_datasets: one weight must be greater than zero, got {list(shares)}")
    return shares


def shares_of(weights: Any, count: int) -> list[float]:
    """The weights as numbers.

    Raises:
      TypeError: they are not numbers.
      InvalidArgumentError: there is not one for each dataset, one is negative, all are 0, or they or their sum are infinite.
    """
    try:
        array = np.asarray(weights)
    except ValueError:  # lists of several lengths
        array = np.asarray(weights, object)
    if array.dtype.kind not in "fiub":
        raise TypeError(
            f"sample_from_datasets: weights must be numbers or a dataset of vectors of numbers, got {weights!r}"
        )
    if array.shape != (count,):
        given = len(array) if array.ndim == 1 else array.shape
        raise InvalidArgumentError(
            f"sample_from_datasets: there must be one weight for each of the {count} datasets, got {given}"
        )
    shares = [float(weight) for weight in array]
    if not all(share >= 0 for share in shares):
        raise InvalidArgumentError(f"sample_from_datasets: weights must not be negative, got {shares}")
    if not math.isfinite(sum(shares)):
        raise InvalidArgumentError(f"sample_from_datasets: weights and their sum must be finite, got {shares}")
    return shares
