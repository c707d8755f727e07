# SPDX-License-Identifier: Apache-2.0
"""How fast a dataset gives its elements, what it waits for, and what would change that."""

from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from functools import partial
from itertools import islice
from tempfile import TemporaryDirectory
from time import perf_counter as _clock
from typing import Any, TypeGuard

import numpy as np

from distinput.arrow.expression import is_expression
from distinput.data.dataset import Dataset
from distinput.data.file_datasets.reading import reading
from distinput.data.stats import MANY_CALLS, MANY_READS, SHORT, UNTRIED, WORTH_IT, Stats, of_users
from distinput.errors import InvalidArgumentError
from distinput.kernels.kernel import compiled_first, ready_kernels
from distinput.names.lazy import dataclass
from distinput.names.words import bytes_text, seconds_text
from distinput.ops.batch import Batch
from distinput.ops.filter import Filter
from distinput.ops.map import Map, MapCalls
from distinput.ops.prefetch import Prefetch
from distinput.ops.reader import Reader
from distinput.ops.shuffle import Shuffle
from distinput.plan.check import AUTOTUNE
from distinput.plan.families import Seeded
from distinput.plan.node import INFINITE, Node, walk
from distinput.run.threads import memory
from distinput.values.nest import flatten, structure_of

_BETWEEN = 0.1
"""Seconds between two calls of `watch`."""

_MUCH = 1 / 4
"""Of the memory; so much in a buffer is told."""

_LARGER = 16
"""Times as many rows in a batch."""


@dataclass(frozen=True)
class Bench:
    """What a pass took.

    Args:
      elements: that were delivered.
      seconds: of the pass, until it ended or was broken off.
      ended: whether it came to its end.
      first_seconds: until the first element was there.
      elements_per_second: behind the warm-up; None if it did not last that long, or gave no elements.
      rows_per_second: the same for the rows of batches; None if the elements are not batches.
      bytes_per_second: the same for the bytes of all arrays and strings, estimated from some of the elements.
      slowest: the step that the others wait for; "consumer" if the dataset waits for the loop.
      bottleneck: the same, in a sentence.
      changes: what could be changed in the pipeline, a sentence each.
      stats: of every step.
    """

    elements: int
    seconds: float
    ended: bool
    first_seconds: float | None
    elements_per_second: float | None
    rows_per_second: float | None
    bytes_per_second: float | None
    slowest: str
    bottleneck: str
    changes: tuple[str, ...]
    stats: Stats

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {**vars(self), "stats": dict(self.stats), "changes": list(self.changes)}

    def with_trials(self) -> "Bench":
        """The same for a reader who finds the trials below it: nothing sends him to `distinput bench --try`."""

        def said(text: str) -> str:
            return text.replace(UNTRIED, "The trials below measure the gain.")

        stats = Stats(self.stats, self.stats.slowest, said(self.stats.bottleneck), self.stats.outside)
        return replace(self, bottleneck=said(self.bottleneck), changes=tuple(map(said, self.changes)), stats=stats)


def bench(
    dataset: Dataset[Any],
    seconds: float | None = 5.0,
    elements: int | None = None,
    warm_up: float = 0.5,
    watch: Callable[[int], object] | None = None,
) -> Bench:
    """Make a pass of a dataset, and measure it; nothing is done with the elements.

    Args:
      dataset: what is iterated.
      seconds: when the pass is broken off; None: at its end.
      elements: after how many elements it is broken off; None: after the last one.
      warm_up: seconds after the first element that do not count, in which threads start and loops are compiled. If the pass
        ends within them, it counts from the first element on.
      watch: called with the number of elements so far, a few times a second.

    Raises:
      InvalidArgumentError: nothing would end the pass.

    >>> import distinput as di
    >>> told = bench(di.data.Dataset.range(1000).batch(10), warm_up=0)
    >>> told.elements, told.ended, sorted(told.stats)
    (100, True, ['0:range', '1:batch'])
    """
    if seconds is None and elements is None and dataset.cardinality() == INFINITE:
        raise InvalidArgumentError("bench: the dataset has no end; give seconds or elements, after which it stops")
    marks = _Marks(warm_up, watch, dataset.node.rows_per_batch is not None)
    begin = _clock()
    ended = True
    with iter(dataset) as iterator:
        for element in iterator:
            now = _clock()
            marks.see(element, now - begin)
            if marks.count == elements or (seconds is not None and now - begin >= seconds):
                ended = False
                break
        took = _clock() - begin
        stats = iterator.stats()
    rate = marks.rate(took)
    return Bench(
        marks.count,
        took,
        ended,
        marks.first,
        rate,
        None if rate is None or marks.rows is None else rate * marks.rows,
        None if rate is None else rate * marks.bytes,
        stats.slowest,
        stats.bottleneck,
        tuple(_changes(dataset, stats, marks)),
        stats,
    )


def settled_bench(dataset: Dataset[Any], *given: Any, **options: Any) -> Bench:
    """The same of a pass within which no kernel is compiled, in this process or another: passes before it are not counted.

    Args:
      dataset: what is iterated.
      given: arguments of `bench`.
      options: the same, by name.
    """
    with compiled_first():
        while True:
            ready = ready_kernels()
            told = bench(dataset, *given, **options)
            if ready_kernels() <= ready:
                return told


class _Marks:
    """What is noted of the elements of a pass."""

    def __init__(self, warm_up: float, watch: Callable[[int], object] | None, batches: bool) -> None:
        self.count = 0
        self.first: float | None = None
        self._warm_up, self._watch, self._batches = warm_up, watch, batches
        self._from: tuple[int, float] | None = None  # elements and seconds at the end of the warm-up
        self._watched = 0.0
        self._rows: list[int] = []
        self._bytes: list[int] = []

    def see(self, element: Any, now: float) -> None:
        self.count += 1
        if self.first is None:
            self.first = now
        elif self._from is None and now - self.first >= self._warm_up:
            self._from = self.count, now
        if self.count.bit_count() == 1:  # the first, second, fourth, ...: looking at all would be what is measured
            leaves = flatten(element)
            self._bytes.append(sum(map(_size, leaves)))
            if self._batches:
                self._rows.append(max((len(leaf) for leaf in leaves if hasattr(leaf, "__len__")), default=1))
        if self._watch is not None and now - self._watched >= _BETWEEN:
            self._watched = now
            self._watch(self.count)

    @property
    def rows(self) -> float | None:
        """Rows of an element, where elements are batches."""
        return sum(self._rows) / len(self._rows) if self._rows else None

    @property
    def row_bytes(self) -> float:
        """Bytes of an element that is not in a batch, or of a row of one."""
        return self.bytes / (self.rows or 1.0)

    @property
    def bytes(self) -> float:
        """Bytes of an element."""
        return sum(self._bytes) / len(self._bytes) if self._bytes else 0.0

    def rate(self, took: float) -> float | None:
        """Elements in a second."""
        if self.first is None:
            return None
        for count, at in ([self._from] if self._from is not None else []) + [(1, self.first), (0, 0.0)]:
            if self.count > count and took > at:
                return (self.count - count) / (took - at)
        return None


def _size(leaf: Any) -> int:
    size = getattr(leaf, "nbytes", None)
    return int(size) if size is not None else len(leaf) if isinstance(leaf, bytes | str) else 0


def _changes(dataset: Dataset[Any], stats: Stats, marks: _Marks) -> list[str]:
    """What could be changed, the step that the others wait for first."""
    waits = stats.slowest and (stats.slowest != "consumer" or "larger batches" in stats.bottleneck)
    advice = [stats.bottleneck] if waits else []
    steps = list(walk(dataset._runs().node))
    advised = "prefetch" in stats.bottleneck.rpartition("; ")[2]
    if not any(isinstance(step, Prefetch) for step in steps) and stats.slowest != "consumer" and not advised:
        advice.append(
            "There is no prefetch: a loop that trains waits for each element. prefetch(2) at the end makes them in the "
            "meantime. The gain depends on your loop, which was not measured."
        )
    advice += _of_buffers(steps, stats, marks)
    _, _, slowest = stats.slowest.partition(":")
    # What `explain` notes about the function of the slowest step.
    asked = [step for step in steps if step.op == slowest and (not isinstance(step, MapCalls) or of_users(step))]
    return advice + [f"{step}: {note}" for step in asked for note in step.notes]


def _of_buffers(steps: list[Node], stats: Stats, marks: _Marks) -> Iterator[str]:
    """What is said of each `shuffle` whose buffer of elements delays the first one, or holds much of the memory."""
    numbers = {id(step): number for number, step in enumerate(steps)}
    first, most = marks.first or 0.0, memory()
    for step in steps:
        if not isinstance(step, Shuffle) or step.input.random_access:  # row numbers are shuffled
            continue
        asked = stats.get(f"{numbers[id(step.input)]}:{step.input.op}")
        waiting = 0 if asked is None else min(step.most, asked["rows"])
        if asked is None or waiting < 2:
            continue
        # All that the step did until then, and not what its input did alone: its own work and the wait for threads fill it too.
        took = stats[f"{numbers[id(step)]}:{step.op}"]["seconds"]
        filling = min(first, took * waiting / asked["rows"])
        nbytes = waiting * max(step.spec.row_bytes, marks.row_bytes if _as_they_are(step, steps[-1]) else 0)
        costs = []
        if filling >= max(SHORT, first / 2):
            costs.append(f"the first one is delivered after {seconds_text(first)}")
        if most is not None and nbytes >= _MUCH * most:
            costs.append(f"they take about {bytes_text(nbytes)} of the {bytes_text(most)} of memory")
        if costs:
            fewer = waiting // 10 or 1
            then = seconds_text(first - filling * (1 - fewer / waiting))
            yield (
                f"{step}: {waiting:,} elements wait in its buffer: {', and '.join(costs)}. As measured, buffer_size={fewer} "
                f"would deliver the first one after {then}. Where files can be read in any order, shuffle their names as well."
            )


def _as_they_are(step: Node, last: Node) -> bool:
    """Whether what is delivered are the elements of a step, alone or in batches."""
    while last is not step and isinstance(last, Batch | Prefetch):
        last = last.input
    return last is step


# ----------------------------------------------------------------------------
# Changes of a pipeline that keep its elements, each tried out: how many times as fast would it be?
# ----------------------------------------------------------------------------


@dataclass(frozen=True)
class TriedChange:
    """A change that was tried.

    Args:
      change: what was changed, as one would write it.
      elements_per_second: with it; None if the pass failed.
      times: as fast as without it.
      error: why it failed; "" if it did not.
    """

    change: str
    elements_per_second: float | None = None
    times: float | None = None
    error: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    @property
    def helps(self) -> bool:
        """Whether it is worth making."""
        return self.times is not None and self.times >= WORTH_IT

    def __str__(self) -> str:
        """In a line: only what helps is told as a gain.

        >>> for times in (0.02, 1.0, 2.345, 5471.3):
        ...     print(TriedChange("map(vectorize=True)", 1.0, times))
        map(vectorize=True): slower, it takes 50 times as long
        map(vectorize=True): no gain
        map(vectorize=True): 2.3 times as fast
        map(vectorize=True): 5,500 times as fast
        """
        if self.error or self.times is None:
            return f"{self.change}: {self.error or 'too short to say'}"
        if self.helps:
            return f"{self.change}: {_factor(self.times)} times as fast"
        if self.times * WORTH_IT > 1:
            return f"{self.change}: no gain"
        return f"{self.change}: slower, it takes {_factor(1 / self.times)} times as long"


def _factor(times: float) -> str:
    """With two digits."""
    return f"{float(f'{times:.2g}'):,.0f}" if times >= 10 else f"{times:.2g}"


def trials(dataset: Dataset[Any], told: Bench, seconds: float = 3.0) -> Iterator[TriedChange]:
    """Try changes that apply to a dataset; each of them keeps all elements, and all but the last keep their order.

    A function that is called for whole batches or many rows instead of elements is measured if the first elements stay the
    same. If reading is the slowest step, its records are saved in a folder of temporary files, as many as were read, and read
    from there; and several files are read at a time. If the loop that takes the elements is, batches are made larger, and rows
    are counted.

    Args:
      dataset: what was measured; it is not changed.
      told: the measurement that they are compared with.
      seconds: of each trial.

    >>> import distinput as di
    >>> ds = di.data.Dataset.range(1000).map(lambda x: x + 1)
    >>> [one.change for one in trials(ds, bench(ds, warm_up=0), 0.1)][:1]
    ['map(num_parallel_calls=AUTOTUNE)']
    """
    with TemporaryDirectory() as folder:
        for change, edit in {**CHANGES, **_for_the_slowest(dataset.node, told, folder)}.items():
            try:
                changed = _edited(dataset.node, edit)
                if changed is dataset.node:
                    continue
                if edit in (_after_batch, _in_rows) and not _begin_alike(dataset.node, changed):
                    yield TriedChange(change, error="its elements differ, because the function takes single elements")
                    continue
                if any(isinstance(step, Map) and step.processes for step in walk(changed)):
                    with iter(Dataset(changed)) as iterator:
                        next(iterator, None)  # starts the processes, which are there in all passes but the first
                measured = settled_bench(Dataset(changed), seconds)
                if measured.elements == 1 and not measured.ended:  # processes that took long to start
                    measured = settled_bench(Dataset(changed), seconds + 2 * measured.seconds)
            except Exception as error:  # noqa: BLE001 - a function that cannot be sent to processes, say, is what is to be told
                yield TriedChange(change, error=f"{type(error).__name__}: {error}".splitlines()[0])
                continue
            yield TriedChange(change, measured.elements_per_second, _times(told, measured))


def _times(told: Bench, measured: Bench) -> float | None:
    """As fast as what was measured before.

    Of whole passes, since their first element comes with many others; else of the rows in a second, or of the elements.
    """
    if told.ended and measured.ended:
        return told.seconds / measured.seconds
    now, was = measured.rows_per_second, told.rows_per_second or told.elements_per_second
    if now is None:
        now, was = measured.elements_per_second, told.elements_per_second
    return now / was if now and was else None


_BATCHES = f"batches {_LARGER} times as large (rows are counted)"


def _for_the_slowest(last: Node, told: Bench, folder: str) -> dict[str, Callable[[Node], Node]]:
    """Changes of the part that the others wait for."""
    if told.slowest == "consumer":
        return {_BATCHES: partial(_in_larger_batches, last)}
    _, _, op = told.slowest.partition(":")
    rows = told.stats[told.slowest]["rows"] if told.slowest in told.stats else 0
    return {
        "its records saved on this disk (Dataset.save)": partial(_saved, op, rows, folder),
        f"num_parallel_reads={MANY_READS} (in another order)": partial(_several_at_a_time, op),
    }


def _saved(op: str, rows: int, folder: str, node: Node) -> Node:
    ours = isinstance(node, Reader) or (isinstance(node, Map) and not of_users(node))
    if not ours or node.op != op or not rows:
        return node
    Dataset(node).take(rows).save(folder)
    return Dataset.load(folder).node


def _several_at_a_time(op: str, node: Node) -> Node:
    if not isinstance(node, Reader) or node.op != op or node.input.cardinality == 1:
        return node
    return reading(Dataset(node.input), node.format, MANY_READS, on_error=node.on_error)


def _begin_alike(one: Node, other: Node) -> bool:
    """Whether two pipelines begin with the same elements: two of them, or as many as come in a second, up to a hundred."""
    until = _clock() + 1
    pairs = zip(*[islice(Dataset(_edited(node, _seeded)), 100) for node in (one, other)], strict=True)
    for count, (a, b) in enumerate(pairs, 1):
        if structure_of(a) != structure_of(b) or not all(map(_same, flatten(a), flatten(b))):
            return False
        if count > 1 and _clock() > until:
            break
    return True


def _seeded(node: Node) -> Node:
    """What is random as in any other pass: orders can be compared then."""
    if isinstance(node, Seeded) and node.seed is None:
        return replace(node, seed=0)  # type: ignore[call-arg]  # of its subclasses
    return node


def _same(a: Any, b: Any) -> bool:
    a, b = np.asarray(a), np.asarray(b)
    return a.dtype == b.dtype and bool(np.array_equal(a, b, equal_nan=a.dtype.kind == "f"))


def _vectorized(node: Node) -> Node:
    if _is_free(node) and of_users(node) and node.vectorize is not True and not node.processes:
        return replace(node, vectorize=True)
    return node


def _after_batch(node: Node) -> Node:
    if type(node) is not Batch or not _is_free(node.input) or not of_users(node.input) or node.input.rng:
        return node
    batched = Dataset(replace(node, input=node.input.input))
    return batched.map(node.input.map_func, num_parallel_calls=node.input.num_parallel_calls).node


def _in_rows(node: Node) -> Node:
    if not _is_free(node) or not of_users(node) or node.rng or node.processes:
        return node
    signature = node.output_signature
    return Dataset(node.input).map_rows(node.map_func, output_signature=signature, on_error=node.on_error).node


def _in_many_threads(node: Node) -> Node:
    if _is_free(node) and node.num_parallel_calls in (None, AUTOTUNE) and not node.processes:
        return replace(node, num_parallel_calls=MANY_CALLS)
    return node


def _in_threads(node: Node) -> Node:
    if _is_free(node) and node.num_parallel_calls is None:
        return replace(node, num_parallel_calls=AUTOTUNE)
    return node


def _in_processes(node: Node) -> Node:
    if _is_free(node) and of_users(node) and not node.processes:
        return replace(node, num_parallel_calls=AUTOTUNE, processes=True)
    return node


def _in_larger_batches(last: Node, node: Node) -> Node:
    if type(node) is Batch:
        return replace(node, batch_size=_LARGER * node.batch_size)
    return Batch(node, _LARGER) if node is last and last.rows_per_batch is None else node


def _is_free(node: Node) -> TypeGuard[Map]:
    """Whether it calls a function, and the user has not said where."""
    return isinstance(node, Map) and not node.synchronous and node.executor is None


@dataclass(frozen=True)
class _Asked:
    """The element, and what a predicate says of it."""

    predicate: Callable[..., Any]
    unpacked: bool

    def __call__(self, *element: Any) -> tuple[Any, Any]:
        return element if self.unpacked else element[0], self.predicate(*element)


def _answer(element: Any, kept: Any) -> Any:
    del element
    return kept


def _element(element: Any, kept: Any) -> Any:
    del kept
    return element


def _asked_in_processes(node: Node) -> Node:
    if not isinstance(node, Filter) or is_expression(node.predicate):
        return node
    asked = _Asked(node.predicate, node.input.spec.structure.kind == "tuple")
    told = Dataset(node.input).map(asked, num_parallel_calls=AUTOTUNE, processes=True)
    return told.filter(_answer).map(_element).node


CHANGES: dict[str, Callable[[Node], Node]] = {
    "map(num_parallel_calls=AUTOTUNE)": _in_threads,
    "map(num_parallel_calls=AUTOTUNE, processes=True)": _in_processes,
    f"map(num_parallel_calls={MANY_CALLS})": _in_many_threads,
    "map(vectorize=True)": _vectorized,
    "map after batch": _after_batch,
    "map_rows instead of map": _in_rows,
    "the predicate of filter in map(processes=True)": _asked_in_processes,
}
"""Each change by its name: what becomes of a step."""


def _edited(node: Node, edit: Callable[[Node], Node]) -> Node:
    """The tree with every step edited; the very same tree where nothing changes."""
    return edit(node.with_changed_inputs(lambda source: _edited(source, edit)))
