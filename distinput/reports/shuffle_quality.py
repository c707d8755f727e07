# SPDX-License-Identifier: Apache-2.0
"""How far rows travel in a shuffle, beside a shuffle that gives every order with the same chance."""

from itertools import pairwise

import numpy as np

from distinput.columns.column import Ints
from distinput.errors import DistinputError
from distinput.lineage.numbered import numbered
from distinput.names.lazy import dataclass
from distinput.ops.range import Range
from distinput.plan.node import Node, walk
from distinput.run.run import Run

_MOST_ROWS, _LARGEST = 100_000, 20_000_000
"""Rows that are looked at; and the largest input that is shuffled for it, by the numbers of its rows alone."""

_RANGES, _AT_A_TIME = 30, 1024

WHOLE = "whole pipeline"
"""The `step` of the quality of all steps together."""


@dataclass(frozen=True)
class ShuffleQuality:
    """What one shuffle does to the order.

    Attributes:
      step: its key among the steps as described; `WHOLE` for all of them together.
      rows: rows of its input; if these cannot be counted, as many as were looked at.
      counted: False if the input cannot be counted.
      seen: rows that were looked at, the first ones delivered.
      travel: how many places a row is from where it was, on average.
      perfect_travel: the same after a perfect shuffle of so many rows, for the same places.
      early: the most places that a row came early, which a buffer of b rows keeps below b.
      late: the most places that a row came late.
      correlation: of the places before and after: 1 for no shuffle, 0 for a perfect one.
      neighbours: the part of rows that are followed by the row that followed them before.
      shares: the part of rows whose travel lies in each of equal ranges from none to all rows.
      perfect_shares: the same after a perfect shuffle.
    """

    step: str
    rows: int
    counted: bool
    seen: int
    travel: float
    perfect_travel: float
    early: int
    late: int
    correlation: float
    neighbours: float
    shares: tuple[float, ...]
    perfect_shares: tuple[float, ...]

    @property
    def sentence(self) -> str:
        """All of that in words."""
        part = self.travel / self.perfect_travel if self.perfect_travel else 1.0
        advice = (
            ""
            if part > 0.8
            else "; a larger buffer, or global_shuffle where rows can be reached by position, would mix them better"
        )
        return (
            f"Rows travel {self.travel:,.0f} places on average, {part:.0%} of the {self.perfect_travel:,.0f} of a perfect "
            f"shuffle; {self.neighbours:.1%} are still followed by the row that followed them{advice}."
        )


def shuffle_quality(node: Node, epoch: int = 0) -> list[ShuffleQuality]:
    """The quality of each shuffle of a pipeline, found by shuffling row numbers in the same way; no record is read.

    Where there are several, or none although the order is another one, the last one is about the pipeline as a whole: how far
    records are from their places in the files, by name. It is left out where that does not follow from positions, or where
    there are many records.

    Args:
      node: the pipeline as described.
      epoch: the number of the pass.

    >>> import distinput as di
    >>> found, = shuffle_quality(di.data.Dataset.range(10_000).shuffle(100, seed=1).node)
    >>> found.early < 100, found.travel < 200, round(found.perfect_travel)
    (True, True, 3333)
    """
    qualities = []
    steps = set()
    for number, step in enumerate(walk(node)):
        if step.shuffles and id(step) not in steps:
            steps.add(id(step))
            count = step.inputs[0].count_elements()
            n = count if count >= 0 else _MOST_ROWS
            if 1 < n <= _LARGEST:
                qualities.append(_measured(f"{number}:{step.op}", _order(step, n, epoch), n, count >= 0))
    whole = None if len(qualities) == 1 else _whole_order(node, epoch)
    if whole is not None and (qualities or (np.diff(whole) != 1).any()):
        qualities.append(_measured(WHOLE, whole, len(whole), True))
    return qualities


def _whole_order(node: Node, epoch: int) -> Ints | None:
    """For each row delivered, its place among all records of the source, files by name; None if that is not known."""
    try:
        records = numbered(node)
        rows, left = [], _MOST_ROWS
        for start in range(0, max(0, records.node.size), _AT_A_TIME):
            steps = np.arange(start, min(start + _AT_A_TIME, records.node.size))
            for element in records.elements(steps, epoch):
                rows.append(element[:, 0] if element.ndim > 1 else element[:1])
                left -= len(rows[-1])
            if left < 0:
                return None
        if not rows:
            return None
        file, record = records.places(np.concatenate(rows))
    except DistinputError:  # a step looks at what elements hold, or a file is not there
        return None
    rank = np.argsort(np.argsort(records.files, kind="stable"))
    by_name = np.lexsort((record, rank.take(file)))
    places = np.empty_like(by_name)
    places[by_name] = np.arange(len(by_name))
    pairs = np.stack((file, record))
    # Repeated records have several places.
    return places if len(np.unique(pairs, axis=1).T) == len(by_name) > 1 else None


def _order(step: Node, n: int, epoch: int) -> Ints:
    """The numbers of the rows that come first, of n rows."""
    stand_in = step.with_inputs((Range(0, n),))
    parts, left = [], _MOST_ROWS
    with Run(walk(stand_in)) as run:
        stream = stand_in.open(stand_in.start(epoch), run)
        for block, _ in stream:
            numbers = np.fromiter(block.elements(), np.int64, block.size)[:left]
            parts.append(numbers)
            left -= len(numbers)
            if left <= 0:
                break
        stream.close()  # type: ignore[attr-defined]
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def _measured(step: str, order: Ints, n: int, counted: bool) -> ShuffleQuality:
    places = np.arange(len(order))
    distances = places - order
    after, before = places - places.mean(), order - order.mean()
    spread = float(np.sqrt((after**2).sum() * (before**2).sum()))
    # Of a row at place i of n, uniformly drawn: the mean of |i - j| over all j.
    perfect = (places * (places + 1.0) + (n - 1.0 - places) * (n - places)) / (2.0 * n)
    shares = np.histogram(np.abs(distances), _RANGES, (0, n))[0] / max(1, len(order))
    edges = np.linspace(0, n, _RANGES + 1)
    return ShuffleQuality(
        step,
        n,
        counted,
        len(order),
        float(np.abs(distances).mean()),
        float(perfect.mean()),
        max(0, int(-distances.min())),
        max(0, int(distances.max())),
        float((after * before).sum() / spread) if spread else 1.0,
        float((np.diff(order) == 1).mean()) if len(order) > 1 else 1.0,
        tuple(map(float, shares)),
        tuple(map(float, _perfect_shares(places, edges, n))),
    )


def _perfect_shares(places: Ints, edges: "np.ndarray[tuple[int], np.dtype[np.float64]]", n: int) -> list[float]:
    """The part of pairs (i, any j) with |i - j| in each range, for these places i."""
    within = [float((np.minimum(places, edge) + np.minimum(n - places, edge)).clip(0, n).mean()) / n for edge in edges]
    whole = max(within[-1], 1e-9)
    return [(b - a) / whole for a, b in pairwise(within)]
