# SPDX-License-Identifier: Apache-2.0
"""`sample_from_datasets(balanced=True)`: elements of several datasets, mixed so that every prefix has the shares asked for."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property, reduce
from itertools import pairwise
from operator import add
from threading import Lock
from typing import Any, ClassVar, NoReturn, TypeAlias

import numpy as np

from distinput.columns.block import rows_within
from distinput.columns.column import Ints
from distinput.columns.rows import RowQueue, Stream
from distinput.columns.state import Mark, State, is_count
from distinput.errors import FailedPreconditionError, InvalidArgumentError
from distinput.kernels.dealing import LONGEST, MOST_OWED, WHOLE, choose_fairly
from distinput.kernels.kernel import renewed
from distinput.names.lazy import dataclass
from distinput.ops.choose import check_sources, gathered, one_above_zero, sample_from_datasets, shares_of
from distinput.ops.repeat import epoch_of
from distinput.plan.check import integer
from distinput.plan.families import common_spec, in_one_order
from distinput.plan.node import INFINITE, UNKNOWN, Node
from distinput.run.run import Run
from distinput.values.spec import Spec

_ON_END = ("stop", "skip", "repeat")

_MOST = 1024
_MOST_LIVE = 64
"""Turns that are planned at a time: where weights are set while it runs, few, so that they soon hold."""

_MOST_PIECES = 4096

Schedule: TypeAlias = tuple[tuple[int, tuple[float, ...]], ...]


class MixtureWeights:
    """Weights of a mixture that the program sets while the job runs, for example by the loss of each dataset.

    It is given to `sample_from_datasets(datasets, weights, balanced=True)` in the place of weights. `set` decides from which
    step of the mixture on other weights hold, where a step is one element. Decisions are in the states of iterators, so a
    restart gives exactly what would have followed, and in the entries of ledgers, so `replay` does too. Turns are dealt as with
    weights by step, `{0: [...], 1000: [...]}`, but without looking ahead at weights that are still to come.

    Args:
      weights: a number for each dataset, those at the beginning.

    Raises:
      InvalidArgumentError: a weight is negative, or all are 0.

    >>> import distinput as di
    >>> weights = di.data.MixtureWeights([1, 0])
    >>> ones, twos = [di.data.Dataset.from_tensors(n).repeat() for n in (1, 2)]
    >>> mixture = di.data.Dataset.sample_from_datasets([ones, twos], weights, balanced=True)
    >>> elements = iter(mixture)
    >>> next(elements)
    np.int32(1)
    >>> weights.set([0.5, 0.5], step=6)
    6
    >>> [int(next(elements)) for _ in range(10)]
    [1, 1, 1, 1, 1, 1, 2, 1, 2, 1]

    Source: distinput's own; TensorFlow takes a dataset of weights, which is read ahead.
    """

    def __init__(self, weights: Any) -> None:
        self.first = one_above_zero(weights, len(np.asarray(weights).reshape(-1)))
        self.taken = False
        """Whether a mixture has it."""
        self.several = False
        """Whether several workers run the mixture."""
        self._decisions: list[tuple[int, int, tuple[float, ...]]] = []
        self._given_out = 0, 0
        self._lock, self._process = renewed(Lock()), os.getpid()

    def set(self, weights: Any, step: int | None = None) -> int:
        """Decide which weights hold from a step of this pass on.

        Pipelines read ahead, so the first step that can be decided about is behind those that were delivered. On several
        workers all of them set the same weights for the same step: give one that is further ahead than any of them has read.
        Later passes go on with the weights of the last decision.

        Args:
          weights: a number for each dataset.
          step: the number of elements of the mixture before, in this pass; None: the first one that was not drawn yet.

        Returns:
          The step from which on they hold.

        Raises:
          FailedPreconditionError: several workers run the mixture, and `step` is None; or this is the copy of another process.
          InvalidArgumentError: elements of that step were drawn already; there is not one weight for each dataset; or one pass
            has too many decisions.
          TypeError: weights are not numbers, or `step` is not an integer.
        """
        shares = one_above_zero(weights, len(self.first))
        self._check_process()
        with self._lock:
            epoch, drawn = self._given_out
            if step is None and self.several:
                raise FailedPreconditionError(
                    "MixtureWeights.set: several workers run the mixture, and all must change it at the same element; give the "
                    "step, the same on all of them, such as (iterator.step + 100) * global_batch_size"
                )
            first = drawn if step is None else integer("MixtureWeights.set", "step", step)
            if first < drawn:
                raise InvalidArgumentError(
                    f"MixtureWeights.set: the elements before step {drawn:,} of this pass were drawn already, since pipelines "
                    f"read ahead; step must be at least that, got {first:,}"
                )
            if first > LONGEST:  # or no state with it could be restored
                raise InvalidArgumentError(f"MixtureWeights.set: step must be at most {LONGEST:,}, got {first:,}")
            others = [each for each in self._decisions if each[:2] != (epoch, first)]
            if len(others) >= _MOST_PIECES - 1:
                raise InvalidArgumentError(
                    f"MixtureWeights.set: there can be {_MOST_PIECES - 1:,} decisions, which states hold, and there are as "
                    "many; decide less often"
                )
            self._decisions = sorted([*others, (epoch, first, shares)])
        return first

    def schedule(self, epoch: int, step: int, count: int) -> Schedule:
        """The weights of a pass by step; those of the steps before `step + count` cannot be changed after that."""
        self._check_process()
        with self._lock:
            self._given_out = max(self._given_out, (epoch, step + count))
            before = [shares for each, _, shares in self._decisions if each < epoch]
            here = [(first, shares) for each, first, shares in self._decisions if each == epoch]
        return tuple(here) if here and here[0][0] == 0 else ((0, before[-1] if before else self.first), *here)

    @property
    def state(self) -> State:
        """For a state: the decisions, each with its pass, step and weights, and the step before which all is drawn."""
        with self._lock:
            decisions = [[epoch, step, list(shares)] for epoch, step, shares in self._decisions]
            return {"drawn": list(self._given_out), "set": decisions}

    def restore(self, state: State) -> None:
        """Go on with the decisions of a state."""
        with self._lock:
            self._decisions = sorted([(each, step, tuple(shares)) for each, step, shares in state["set"]])
            epoch, step = state["drawn"]
            self._given_out = epoch, step

    def misfit(self, state: Any) -> str | None:
        """The reason why a state cannot hold these weights; None if it can."""
        try:
            epoch, drawn = state["drawn"]
            rows = [(each, step, one_above_zero(shares, len(self.first))) for each, step, shares in state["set"]]
        except (InvalidArgumentError, KeyError, TypeError, ValueError):
            return "it does not hold the decisions about weights"
        places = [(epoch, drawn), *[row[:2] for row in rows]]
        fits = len(rows) < _MOST_PIECES and all(is_count(each) and is_count(step, 0, LONGEST) for each, step in places)
        return None if fits else "a decision about weights has no step"

    def _check_process(self) -> None:
        if os.getpid() != self._process:
            raise FailedPreconditionError(
                "MixtureWeights: this is a copy in another process, where `set` is not seen; run the mixture in the process "
                "that sets its weights, such as a DataLoader with num_workers=0"
            )

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "MixtureWeights: weights that are set while a job runs belong to one process, and cannot be sent to another; run "
            "the mixture in the process that sets them"
        )


@dataclass(frozen=True, eq=False)
class BalancedSample(Node):
    """Elements of several datasets in turn, so that every prefix has the shares asked for.

    After any number of elements, the count of each of k datasets differs from the sum of its shares so far by at most
    1 - 1 / (2k - 2), which no other rule can better. Nothing is random: every pass has the same turns.

    Shapes: the common shape of all. State: where the next element of each dataset stands, how many elements each has given
    since a dataset ended, and which ones have.

    Args:
      sources: the datasets.
      schedule: from which step on which weights hold, ascending from step 0: ((step, weights), ...). A step is one element.
      on_end: what happens when a dataset has no element for its turn. "stop": the sample ends. "skip": the others go on, with
        the shares that they have among themselves, counted anew from there; where none has a weight, the next weights of the
        schedule hold at once. "repeat": it begins its next pass, and the sample
        ends when every dataset that has a weight then or later has ended once; a dataset without elements is skipped.
      live: weights that are set while it runs; None: they are those of `schedule`.

    Source: R. Tijdeman: The chairman assignment problem (Discrete Mathematics 32, 1980).
    """

    tolerant: ClassVar[bool] = True
    op: ClassVar[str] = "sample_from_datasets"
    sources: tuple[Node, ...]
    schedule: Schedule
    on_end: str = "skip"
    live: MixtureWeights | None = field(default=None, kw_only=True, repr=False)

    @cached_property
    def spec(self) -> Spec:
        return common_spec("sample_from_datasets", self.sources)

    @property
    def cardinality(self) -> int:
        sizes = [source.cardinality for source in self.sources]
        if all(size == INFINITE for size in sizes):
            return INFINITE
        if self.on_end != "skip" or self.decides or len(self.schedule) > 1 or UNKNOWN in sizes:
            return UNKNOWN
        return INFINITE if INFINITE in sizes else sum(sizes)

    @property
    def decides(self) -> bool:
        return self.live is not None

    def arguments(self) -> dict[str, Any]:
        return super().arguments() | ({"weights": "as they are set"} if self.decides else {})

    def alike_everywhere(self) -> Node:
        if self.live is not None:
            self.live.several = True
        return self

    def epoch_below(self, epoch: int) -> int:
        return epoch_of(epoch, 0) if self.on_end == "repeat" else epoch

    def start(self, epoch: int) -> State:
        first, k = self.epoch_below(epoch), len(self.sources)
        inputs = [{"input": node.start(first), "skip": 0} for node in self.sources]
        return {"inputs": inputs, "epoch": epoch, "from": 0, "counts": [0] * k, "passes": [0] * k, "over": []}

    def state_misfit(self, state: State) -> str | None:
        k = len(self.sources)
        over = state["over"]
        if not all(is_count(index, 0, k - 1) for index in over):
            return f"{self.op}: 'over' must hold numbers of datasets"
        for name in ("counts", "passes"):
            if len(state[name]) != k or not all(map(is_count, state[name])):
                return f"{self.op}: {name!r} must hold a number for each dataset"
        if not self.decides and self._some_due(state["from"] + sum(state["counts"]), over):
            debts = _Turns(self, state["from"], state["counts"], over).debts
            if np.abs(debts).max(initial=0) > WHOLE:
                return f"{self.op}: 'counts' do not fit the weights"
        return None

    def stream(self, state: State, run: Run) -> Stream:
        queues = [self._queue(n, m, run) for n, m in zip(self.sources, state["inputs"], strict=True)]
        epoch, passes, over = state["epoch"], list(state["passes"]), set(state["over"])
        failures: dict[int, Exception] = {}
        most, limit = 1, _MOST if self.live is None else _MOST_LIVE

        def mark() -> State:
            inputs = [queue.mark() for queue in queues]
            made = {"inputs": inputs, "epoch": epoch, "from": turns.first, "counts": list(turns.counts)}
            return {**made, "passes": list(passes), "over": sorted(over)}

        now = self._as_decided(epoch, state["from"], sum(state["counts"]))
        turns = _Turns(now, state["from"], state["counts"], over)
        while True:
            latest = self._as_decided(epoch, turns.step, most)
            if latest.schedule != now.schedule:
                now = latest
                turns = _Turns(now, turns.first, turns.counts, over)
            if not now._goes_on(turns.step, passes, over):
                return
            values = turns.next(now._until_change(turns.step, most))
            used, block, empty = gathered(queues, values, failures)
            turns.take(used)
            if block is not None:
                most = min(2 * most, rows_within(block.size, block.nbytes, limit))
                yield block, mark()
            if empty is None:
                continue
            if empty in failures:
                raise failures[empty]
            if queues[empty].failure is not None:  # it has taken the turn
                turns.take(1)
                failure = queues[empty].passed()
                yield failure, mark()
                continue
            if self.on_end == "stop":
                return
            if self.on_end == "repeat":
                passes[empty] += 1
                node, begin = self.sources[empty], self.sources[empty].start(epoch_of(epoch, passes[empty]))
                queues[empty] = self._queue(node, {"input": begin, "skip": 0}, run)
                if queues[empty].fill(1) or queues[empty].failure is not None:
                    continue
            over.add(empty)
            turns = _Turns(now, turns.step, [0] * len(self.sources), over)

    def _as_decided(self, epoch: int, step: int, count: int) -> "BalancedSample":
        """The same mixture with the weights that are decided now; those of the next `count` steps stay."""
        if self.live is None:
            return self
        return replace(self, schedule=self.live.schedule(epoch, step, count)).same_as(self)

    def _some_due(self, step: int, over: Any) -> bool:
        """Whether a dataset that goes on has a weight at this step, or later if all weights are known."""
        piece = self._piece(step)
        later = self.schedule[piece : piece + 1 if self.decides else None]
        return any(weight > 0 and index not in over for _, weights in later for index, weight in enumerate(weights))

    def _queue(self, node: Node, mark: Mark, run: Run) -> RowQueue:
        return RowQueue(in_one_order(node.open(mark["input"], run.sharing(len(self.sources))), lambda: self.spec), mark)

    def _goes_on(self, step: int, passes: Sequence[int], over: set[int]) -> bool:
        if not self._some_due(step, over):
            return False
        if self.on_end != "repeat":
            return True
        piece = self._piece(step)
        later = [weights for _, weights in self.schedule[piece : piece + 1 if self.decides else None]]
        open_ones = [index for index, number in enumerate(passes) if not number and index not in over]
        return any(weights[index] > 0 for index in open_ones for weights in later)

    def _until_change(self, step: int, most: int) -> int:
        """Steps before the weights change, at most so many: what ends the sample is looked at when they do."""
        later = self.schedule[self._piece(step) + 1 :]
        return min(most, later[0][0] - step) if later else most

    def _piece(self, step: int) -> int:
        """Which weights hold at a step."""
        return int(np.searchsorted(self._firsts, step, "right")) - 1

    @cached_property
    def _firsts(self) -> Ints:
        return np.array([first for first, _ in self.schedule], np.int64)


class _Turns:
    """Whose turn it is from a step on.

    Args:
      node: the datasets and their weights.
      first: the step from which on counts are compared with shares.
      counts: how many turns each dataset has had since.
      over: datasets that have ended.
    """

    def __init__(self, node: BalancedSample, first: int, counts: Sequence[int], over: Any) -> None:
        self.first, self.counts = first, list(counts)
        self._node = node
        self._open = [index for index in range(len(node.sources)) if index not in over]
        weights = [[weights[index] for index in self._open] for _, weights in node.schedule]
        if not node.decides:  # where only datasets that have ended have a weight, those of the next piece hold already
            for piece in reversed(range(len(weights) - 1)):
                weights[piece] = weights[piece] if any(weights[piece]) else weights[piece + 1]
        rows = [whole(each) for each in weights]
        self._shares = np.array(rows, np.int64).reshape(len(node.schedule), len(self._open))
        self._planned: Ints = np.empty(0, np.int64)
        target = [0] * len(self._open)
        for piece, ((begin, _), (end, _)) in enumerate(pairwise([*node.schedule, (self.step, ())])):
            lasted = max(0, min(end, self.step) - max(begin, first))
            target = [have + lasted * int(share) for have, share in zip(target, self._shares[piece], strict=True)]
        limit = MOST_OWED + 1  # what a damaged state may hold does not fit into 64 bits
        owed = [have - WHOLE * self.counts[index] for have, index in zip(target, self._open, strict=True)]
        self.debts = np.array([max(-limit, min(limit, debt)) for debt in owed], np.int64)

    @property
    def step(self) -> int:
        """Elements sent before."""
        return self.first + sum(self.counts)

    def next(self, most: int) -> Ints:
        """The datasets whose turns are next."""
        self._planned = self._turns(self.debts.copy(), most)
        return self._planned

    def take(self, used: int) -> None:
        """The first so many of the turns that were planned have been taken."""
        self._turns(self.debts, used)
        for index, more in enumerate(np.bincount(self._planned[:used], minlength=len(self.counts)).tolist()):
            self.counts[index] += more
        self._planned = self._planned[used:]

    def _turns(self, debts: Ints, count: int) -> Ints:
        piece = self._node._piece(self.step)
        # Decisions may come at any time, so which of them are known must not matter to the turns before them.
        known = self._node.schedule[: piece + 1] if self._node.decides else self._node.schedule
        ends = [begin for begin, _ in known[piece + 1 :]]
        steps = np.diff([self.step, *ends, (ends or [self.step])[-1] + 1])
        turns = np.empty(count, np.int64)
        choose_fairly(debts, self._shares[piece : len(known)].reshape(-1), steps, turns)
        return np.array(self._open, np.int64)[turns]


def whole(weights: Sequence[float]) -> list[int]:
    """Weights as whole numbers that sum to `WHOLE`; what is lost by rounding goes to the largest. Of zeros, all are equal.

    >>> [share / WHOLE for share in whole([1, 2, 1])]
    [0.25, 0.5, 0.25]
    """
    # `sum` rounds in another way from Python 3.12 on, and the order follows from it.
    total: float = reduce(add, weights, 0)
    if not total:
        return whole([1] * len(weights)) if weights else []
    made = [int(weight / total * WHOLE) for weight in weights]
    largest = max(range(len(made)), key=made.__getitem__)
    made[largest] += WHOLE - sum(made)
    return made


def balanced_sample(datasets: Sequence[Node], weights: Any, on_end: str) -> Node | None:
    """The node of `sample_from_datasets(balanced=True)`; None if no weight is positive.

    Args:
      datasets: at least one.
      weights: a number for each; or a dict from the first step on to such numbers, or `MixtureWeights`; None: all equal.
      on_end: one of `_ON_END`.

    Raises:
      InvalidArgumentError: there is no dataset, or not one weight for each, or the steps are not from 0 on.
      TypeError: the datasets differ in structure or dtype, or the weights are a dataset.
    """
    check_sources("sample_from_datasets", datasets)
    if isinstance(weights, MixtureWeights):
        return _changing(datasets, weights, on_end)
    if isinstance(weights, Node):
        raise TypeError(
            "sample_from_datasets: balanced=True must know the weights in advance, got a dataset of them; give a dict from "
            "steps to weights, such as {0: [0.9, 0.1], 10_000: [0.5, 0.5]}"
        )
    given = {0: [1.0] * len(datasets) if weights is None else weights} if not isinstance(weights, Mapping) else weights
    schedule = sorted([(integer("sample_from_datasets", "a step", step), at) for step, at in given.items()])
    if not schedule or schedule[0][0] != 0 or schedule[-1][0] > LONGEST or len(schedule) > _MOST_PIECES:
        raise InvalidArgumentError(
            f"sample_from_datasets: a dict of weights must have step 0, and at most {_MOST_PIECES} steps below 2**48, got "
            f"{[step for step, _ in schedule][:5]}"
        )
    shares = [(step, tuple(shares_of(at, len(datasets)))) for step, at in schedule]
    for step, at in shares[1:]:
        if not sum(at):
            raise InvalidArgumentError(
                f"sample_from_datasets: one weight must be greater than zero, got {at} for step {step}"
            )
    kept = [number for number in range(len(datasets)) if any(at[number] > 0 for _, at in shares)]
    if not kept or not sum(shares[0][1]):
        return None
    if len(kept) == 1 and len(shares) == 1:
        return datasets[kept[0]]
    return BalancedSample(
        tuple([datasets[number] for number in kept]),
        tuple([(step, tuple([at[number] for number in kept])) for step, at in shares]),
        on_end,
    )


def _changing(datasets: Sequence[Node], weights: MixtureWeights, on_end: str) -> Node:
    if len(weights.first) != len(datasets):
        raise InvalidArgumentError(
            f"sample_from_datasets: there must be one weight for each of the {len(datasets)} datasets, got {len(weights.first)}"
        )
    if weights.taken:
        raise InvalidArgumentError(
            "sample_from_datasets: these MixtureWeights are of another mixture, whose steps they count; make an object for each"
        )
    weights.taken = True
    return BalancedSample(tuple(datasets), ((0, weights.first),), on_end, live=weights)


def sample(
    datasets: Sequence[Node],
    weights: Any,
    seed: int | None,
    stop_on_empty_dataset: bool,
    rerandomize_each_iteration: bool | None,
    *,
    balanced: bool,
    on_end: str | None,
) -> Node | None:
    """The node of `sample_from_datasets`, drawn or balanced; None if no weight is positive.

    Raises:
      InvalidArgumentError: arguments contradict one another.
      TypeError: `weights` is a dict, and `balanced` is not set.
    """
    if on_end not in (None, *_ON_END):
        raise InvalidArgumentError(
            f"sample_from_datasets: on_end must be one of 'stop', 'skip', 'repeat', got {on_end!r}"
        )
    if on_end in ("skip", "repeat") and stop_on_empty_dataset:
        raise InvalidArgumentError(
            f"sample_from_datasets: stop_on_empty_dataset=True is on_end='stop', got on_end={on_end!r} too; leave one out"
        )
    ending = on_end or ("stop" if stop_on_empty_dataset else "skip")
    if balanced:
        if seed is not None or rerandomize_each_iteration is not None:
            raise InvalidArgumentError(
                "sample_from_datasets: balanced=True draws nothing; leave out seed and rerandomize_each_iteration"
            )
        return balanced_sample(datasets, weights, ending)
    if ending == "repeat":
        raise InvalidArgumentError(
            "sample_from_datasets: on_end='repeat' goes with balanced=True; to draw from datasets without an end, repeat() them"
        )
    if isinstance(weights, Mapping | MixtureWeights):
        raise TypeError("sample_from_datasets: weights by step go with balanced=True, or give a dataset of weights")
    return sample_from_datasets(datasets, weights, seed, ending == "stop", rerandomize_each_iteration)
