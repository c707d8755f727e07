# SPDX-License-Identifier: Apache-2.0
"""`rejection_resample`: leave out elements at random, so that the classes of the others have a wanted distribution."""

from collections.abc import Callable
from dataclasses import field
from functools import cached_property, partial
from typing import Any, ClassVar, TypeAlias

import numpy as np

from distinput.columns.block import ColumnBlock, Failure
from distinput.columns.column import Dense
from distinput.columns.rows import Stream
from distinput.columns.state import Mark, State, is_count
from distinput.errors import InvalidArgumentError
from distinput.functions.chain import calling
from distinput.functions.claim import Claim
from distinput.functions.inference import infer
from distinput.names.lazy import dataclass
from distinput.plan.binding import take_functions
from distinput.plan.check import normalized
from distinput.plan.families import Seeded, uniform_at
from distinput.plan.node import Node
from distinput.run.run import MOST_CALLS, Run, called
from distinput.values.nest import LEAF, structure_of
from distinput.values.spec import Spec

_OP = "rejection_resample"

_SEEN_BEFORE = 10
"""Elements of each class that count as seen before the first one, so that a few elements do not decide."""

_PAIR = structure_of((0, 0))

Floats: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True, eq=False)
class RejectionResample(Seeded):
    """Leave out elements at random so that the classes of those that stay are distributed as `target_dist` says.

    An element stays with the probability `target_dist[c] / initial_dist[c]` of its class `c`, divided by the largest such
    ratio. Whether it does is a function of the seed, the pass, and its position. No element is delivered twice; TensorFlow may
    repeat elements, and delivers others for the same seed.

    Shapes: (class, element), as many as stay. Order: unchanged. State: where the next element stands, its position, and,
    without `initial_dist`, how many elements of each class there were.

    Args:
      class_func: element -> its class, an integer from 0 to `len(target_dist) - 1`.
      target_dist: the wanted share of each class.
      initial_dist: the share that each class has; None: estimated from the elements so far.
      seed: any integer; None draws one, which a saved state remembers.

    Raises:
      InvalidArgumentError: a distribution is no vector of numbers from 0 on, or its sum is 0; they differ in length; a wanted
        class does not occur; at iteration, `class_func` returns a number that is no class.
      TypeError: `class_func` is not callable; at iteration, it returns no integer.

    >>> import distinput as di
    >>> ds = di.data.Dataset.range(1000).rejection_resample(lambda x: np.int32(x % 4 == 0), [0.5, 0.5], [0.75, 0.25], seed=1)
    >>> classes = [int(c) for c, _ in ds]
    >>> 0.45 < sum(classes) / len(classes) < 0.55
    True

    Source: `tf.data.Dataset.rejection_resample`; ADR 0054 says what differs.
    """

    thins = tolerant = True
    reshuffles: ClassVar[bool] = True
    input: Node
    class_func: Callable[..., Any]
    target_dist: Any
    initial_dist: Any = None
    seed: int | None = None
    claim: Claim = field(default_factory=Claim, kw_only=True, repr=False)

    def __post_init__(self) -> None:
        take_functions(self, _OP, "class_func")
        normalized(self, "target_dist", _shares("target_dist", self.target_dist))
        self.check_seed(_OP)
        if self.initial_dist is None:
            return
        normalized(self, "initial_dist", _shares("initial_dist", self.initial_dist))
        if len(self.initial_dist) != len(self.target_dist):
            raise InvalidArgumentError(
                f"{_OP}: initial_dist must have one share for each class of target_dist, got {len(self.initial_dist)} and "
                f"{len(self.target_dist)}"
            )
        missing = [c for c, (t, p) in enumerate(zip(self.target_dist, self.initial_dist, strict=True)) if t and not p]
        if missing:
            raise InvalidArgumentError(
                f"{_OP}: initial_dist must be greater than 0 for every class that target_dist wants, got 0 for class "
                f"{missing[0]}; a class that never occurs cannot be sampled"
            )

    def added(self) -> "RejectionResample":
        first = self.input.first_in_memory
        if first is not None:
            try:
                found = calling(self.class_func)(first[0])
            except Exception:  # noqa: BLE001 - an error of the function belongs to the iteration
                return self
            self._class(found)
        return self

    @cached_property
    def spec(self) -> Spec:
        return self.claim.asked(_OP, self._inferred)

    def _inferred(self) -> Spec:
        classes = infer(
            _OP, lambda element: self._class(calling(self.class_func)(element)), self.input, self.class_func
        )
        source = self.input.spec
        return Spec(_PAIR.graft([LEAF, source.structure]), (*classes.leaves, *source.leaves))

    def start(self, epoch: int) -> State:
        made = {"input": self.input.start(epoch), "skip": 0, **self.seeded(epoch)}
        return made if self.initial_dist is not None else {**made, "seen": [0] * len(self.target_dist)}

    def state_misfit(self, state: State) -> str | None:
        seen = state.get("seen", [0] * len(self.target_dist))
        fits = len(seen) == len(self.target_dist) and all(is_count(n) for n in seen)
        return None if fits else f"{self.op}: 'seen' must hold a number for each class"

    def stream(self, state: State, run: Run) -> Stream:
        target = np.array(self.target_dist)
        counts = None if self.initial_dist is not None else np.array(state["seen"], np.int64)
        rates = None if self.initial_dist is None else _rates(target, np.array(self.initial_dist))
        key, row = self.key_of_pass(state), state["row"]
        upstream = self.input.open(state["input"], run)
        call = partial(_class_of, self._class, calling(self.class_func))

        def after(mark: Mark) -> State:
            counted = {} if counts is None else {"seen": counts.tolist()}
            return {**state, **mark, "row": row, **counted}

        for found, rows, first, mark in called(upstream, state, call, run.at_once(MOST_CALLS), tolerant=run.tolerant):
            if type(rows) is Failure:
                yield rows, after(mark)
                continue
            classes = np.array(found)
            if rates is None:
                assert counts is not None
                chances = _estimated(classes, counts, target)
            else:
                chances = rates[classes]
            kept = np.flatnonzero(uniform_at(key, row, len(classes)) < chances)
            row += len(classes)
            data = rows.take(kept + first).columnar()
            pairs = ColumnBlock(_PAIR.graft([LEAF, data.structure]), [Dense(classes[kept]), *data.columns], len(kept))
            yield pairs, after(mark)

    def _class(self, result: Any) -> Any:
        """What `class_func` returned, as a NumPy integer."""
        found = np.asarray(result)
        if found.ndim or found.dtype.kind not in "iu":
            raise TypeError(f"{_OP}: class_func must return an integer, got {result!r}")
        if not 0 <= found < len(self.target_dist):
            raise InvalidArgumentError(
                f"{_OP}: class_func must return a class from 0 to {len(self.target_dist) - 1}, got {result!r}"
            )
        return np.int32(result) if isinstance(result, int) else found[()]


def _class_of(checked: Callable[[Any], Any], class_func: Callable[[Any], Any], element: Any) -> Any:
    return checked(class_func(element))


def _rates(target: Floats, initial: Floats) -> Floats:
    """The chance of each class to stay: [c], [c] -> [c]."""
    ratios = np.divide(target, initial, out=np.zeros(len(target)), where=initial > 0)
    rates: Floats = ratios / ratios.max()
    return rates


def _estimated(classes: np.ndarray[Any, Any], seen: np.ndarray[Any, Any], target: Floats) -> Floats:
    """The chance of each element to stay, by the classes up to it, which are added to `seen`: [n], [c], [c] -> [n]."""
    chances = np.empty(len(classes))
    counts = (seen + _SEEN_BEFORE).astype(np.float64)
    for place, each in enumerate(classes.tolist()):
        counts[each] += 1
        ratios = target / counts
        chances[place] = ratios[each] / ratios.max()
    seen += np.bincount(classes, minlength=len(seen))
    return chances


def _shares(name: str, given: Any) -> tuple[float, ...]:
    """A distribution as numbers.

    Raises:
      InvalidArgumentError: it is no vector of numbers from 0 on, or its sum is 0.
    """
    found = np.asarray(given)
    if found.ndim != 1 or not found.size or found.dtype.kind not in "fiub":
        raise InvalidArgumentError(f"{_OP}: {name} must be a vector of numbers, one for each class, got {given!r}")
    shares = found.astype(np.float64)
    if not (np.isfinite(shares).all() and (shares >= 0).all() and shares.sum() > 0):
        raise InvalidArgumentError(f"{_OP}: {name} must hold numbers from 0 on, not all of them 0, got {given!r}")
    return tuple(shares.tolist())
