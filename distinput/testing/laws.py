# SPDX-License-Identifier: Apache-2.0
"""The laws of a pipeline, as functions that raise `AssertionError` with what is broken.

They hold for every pipeline that distinput can describe; call them on your own to see that a new op, format or function
keeps them too.
"""

import contextlib
import gc
import json
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from distinput.core.nest import structure_of
from distinput.core.run import Run
from distinput.core.spec import DatasetSpec, Spec
from distinput.core.state import State
from distinput.core.values import dtype_of, shape_of
from distinput.data.dataset import Dataset
from distinput.data.experimental import auto_shard_dataset, rebatch_for_worker
from distinput.data.iterator import DatasetIterator
from distinput.distribute.strategy import Strategy
from distinput.ops.shard import Shard
from distinput.plan.node import INFINITE, UNKNOWN, Node, walk
from distinput.rewrite import RULES, rewrite
from distinput.testing.block_sizes import small_blocks
from distinput.testing.elements import difference, exact, matches

__all__ = [
    "check_blocks",
    "check_distributed",
    "check_nothing_left",
    "check_positions",
    "check_restart",
    "check_rewrites",
    "check_same_as",
    "check_shards",
    "check_spec",
    "check_workers",
]

MOST = 200
"""Elements looked at of a pipeline that may not end."""


def check_same_as(dataset: Dataset, expected: Sequence[Any]) -> None:
    """Law 1: a pass gives exactly these elements.

    Args:
      dataset: any finite pipeline.
      expected: elements as NumPy values, compared in structure, dtype, shape and bits; plain Python numbers and lists of
        them are compared by value alone. A dataset inside an element is compared with the elements it gives.

    Raises:
      AssertionError: the elements differ.

    >>> import distinput as di
    >>> check_same_as(di.data.Dataset.range(4).batch(3), [[0, 1, 2], [3]])
    """
    count = 0
    with iter(dataset) as elements:
        for element in elements:
            if count == len(expected):
                raise AssertionError(f"same as a list: there is an element {count}, expected only {count}: {element!r}")
            if not matches(element, expected[count]):
                raise AssertionError(f"same as a list: element {count} is {element!r}, expected {expected[count]!r}")
            count += 1
    if count != len(expected):
        raise AssertionError(f"same as a list: there are {count} elements, expected {len(expected)}")


@dataclass
class _Trace:
    """A pass: its elements, the state before each of them and at the end, and the error that ended it."""

    elements: list[Any] = field(default_factory=list)
    states: list[State] = field(default_factory=list)
    failure: str | None = None
    ended: bool = False

    @staticmethod
    def of(iterator: DatasetIterator, most: int, keep: Callable[[int], bool] = lambda _: True) -> "_Trace":
        """Run `iterator` for up to `most` elements."""
        made = _Trace()
        with iterator:
            while len(made.elements) < most:
                made.states.append(iterator.state() if keep(len(made.elements)) else {})
                try:
                    made.elements.append(exact(next(iterator)))
                except StopIteration:
                    made.ended = True
                    made.states.append(iterator.state())
                    break
                except Exception as error:  # noqa: BLE001 - how a pass ends is part of what is compared
                    made.failure = type(error).__name__
                    break
        return made

    def rest(self, position: int) -> list[Any]:
        """What follows a position."""
        return self.elements[position:]


def check_restart(
    dataset: Dataset,
    *,
    fresh: Callable[[], Dataset] | None = None,
    most: int = MOST,
    state_bytes: int = 4096,
) -> None:
    """Law 2: from every state, through JSON, exactly the rest follows.

    Every position of a pass is tried, the first, the one after the last element and the one after the end included, also
    from an iterator that was itself restored; then a second pass, and both passes of a `repeat(2)`.

    Args:
      dataset: any pipeline.
      fresh: makes an equal pipeline anew, as another process would; states are restored into that as well.
      most: elements looked at when the pipeline is endless.
      state_bytes: the most that a state may take as JSON.

    Raises:
      AssertionError: something else follows, or a state is too large or holds data.

    >>> import distinput as di
    >>> check_restart(di.data.Dataset.range(7).shuffle(3).batch(2))
    """
    first = _Trace.of(iter(dataset), most)
    last = len(first.elements)
    for position, state in enumerate(first.states):
        coded = _through_json(state, position, state_bytes)
        _check_rest(dataset, coded, first, position, most, "restart")
    second = _Trace.of(iter(dataset), most)
    for position in {0, last // 2, last}:
        if position < len(second.states):
            coded = _through_json(second.states[position], position, state_bytes)
            _check_rest(dataset, coded, second, position, most, "restart of the second pass")
    if first.ended:
        borders = {0, 1, last - 1, last, last + 1, 2 * last}
        again = dataset.repeat(2)
        both = _Trace.of(iter(again), 2 * most + 1, lambda index: index in borders)
        for position in sorted(borders & set(range(len(both.states)))):
            coded = _through_json(both.states[position], position, state_bytes)
            _check_rest(again, coded, both, position, 2 * most + 1, "restart within repeat(2)")
    if fresh is not None:
        _check_fresh(fresh, most, state_bytes)


def _check_fresh(fresh: Callable[[], Dataset], most: int, state_bytes: int) -> None:
    trace = _Trace.of(iter(fresh()), most)
    for position, state in enumerate(trace.states):
        _check_rest(
            fresh(), _through_json(state, position, state_bytes), trace, position, most, "restart in an equal pipeline"
        )
    if trace.ended:
        last = len(trace.elements)
        borders = {0, 1, last // 2, last - 1, last, last + 1, last + last // 2, 2 * last}
        both = _Trace.of(iter(fresh().repeat(2)), 2 * most + 1, lambda index: index in borders)
        for position in sorted(borders & set(range(len(both.states)))):
            coded = _through_json(both.states[position], position, state_bytes)
            what = "restart in an equal pipeline, within repeat(2)"
            _check_rest(fresh().repeat(2), coded, both, position, 2 * most + 1, what)


def _through_json(state: State, position: int, state_bytes: int) -> State:
    text = json.dumps(state)
    if len(text) > state_bytes:
        raise AssertionError(
            f"restart: the state at {position} takes {len(text)} bytes, more than {state_bytes}: {text[:300]}..."
        )
    _check_no_data(state, position)
    coded: State = json.loads(text)
    return coded


def _check_no_data(state: Any, position: int) -> None:
    """A state is positions: no long text in it, the carried value of `scan` aside."""
    if isinstance(state, dict):
        for key, value in state.items():
            if key != "carry":
                _check_no_data(value, position)
    elif isinstance(state, list):
        for value in state:
            _check_no_data(value, position)
    elif isinstance(state, str) and len(state) > 100:
        raise AssertionError(f"restart: the state at {position} holds data: {state[:100]}...")


def _check_rest(dataset: Dataset, state: State, trace: _Trace, position: int, most: int, what: str) -> None:
    expected = trace.rest(position)
    # Where in the rest the second restart happens: anywhere, but the same in every run.
    again = (7 * position + 3) % (len(expected) + 1)
    restored = _Trace.of(
        dataset.restore(state),
        len(expected) + 1 if trace.ended or trace.failure else len(expected),
        {again}.__contains__,
    )
    wrong = difference(restored.elements, expected)
    if wrong is None and restored.failure != trace.failure:
        wrong = f"it ends with {restored.failure}, expected {trace.failure}"
    if wrong is not None:
        raise AssertionError(f"{what} at {position}: {wrong}; state {json.dumps(state)}")
    if again >= len(restored.states):
        return
    state = json.loads(json.dumps(restored.states[again]))
    with dataset.restore(state) as iterator:
        second = [exact(element) for element in _until_error(iterator, most)][: len(expected) - again]
    wrong = difference(second, expected[again:])
    if wrong is not None:
        raise AssertionError(f"{what} at {position} and again {again} later: {wrong}; state {json.dumps(state)}")


def _until_error(elements: Iterator[Any], most: int) -> Iterator[Any]:
    try:
        yield from islice(elements, most)
    except Exception:  # noqa: BLE001 - that both runs end with the same error was seen before
        return


def check_spec(dataset: Dataset, *, most: int = MOST) -> None:
    """Law 4: every element fits `element_spec`, and the cardinality is true.

    Args:
      dataset: any pipeline.
      most: elements looked at when the pipeline is endless.

    Raises:
      AssertionError: an element does not fit, or there are more or fewer of them than stated.

    >>> import distinput as di
    >>> check_spec(di.data.Dataset.range(5).batch(2))
    """
    spec = Spec.of(dataset.element_spec)
    stated = dataset.cardinality()
    count = 0
    ended = False
    with iter(dataset) as elements:
        while count < most:
            try:
                element = next(elements)
            except StopIteration:
                ended = True
                break
            _check_fits(element, spec, f"element {count}")
            count += 1
    if stated == INFINITE and ended:
        raise AssertionError(f"spec: the cardinality is infinite, but there are {count} elements")
    if stated >= 0 and (count > stated or (ended and count != stated)):
        raise AssertionError(
            f"spec: the cardinality is {stated}, but there are {count} elements{'' if ended else ' or more'}"
        )
    if stated < UNKNOWN:
        raise AssertionError(f"spec: {stated} is no cardinality")
    if stated >= 0 and len(dataset) != stated:
        raise AssertionError(f"spec: the cardinality is {stated}, but len() is {len(dataset)}")


def _check_fits(element: Any, spec: Spec, what: str) -> None:
    structure = structure_of(element)
    if structure != spec.structure:
        raise AssertionError(f"spec: {what} has the structure {structure}, the spec has {spec.structure}")
    for leaf, leaf_spec, path in zip(structure.flatten(element), spec.leaves, structure.paths, strict=True):
        where = f"{what}{path}"
        if isinstance(leaf_spec, DatasetSpec):
            if not isinstance(leaf, Dataset):
                raise AssertionError(f"spec: {where} must be a dataset, got {leaf!r}")  # noqa: TRY004 - a law is broken
            inner = Spec.of(leaf_spec.element_spec)
            for index, member in enumerate(leaf):
                _check_fits(member, inner, f"{where}, its element {index},")
        elif not isinstance(leaf, np.ndarray | np.generic | bytes) or not leaf_spec.fits(
            shape_of(leaf), dtype_of(leaf)
        ):
            raise AssertionError(f"spec: {where} must fit {leaf_spec}, got {leaf!r}")
        elif isinstance(leaf, np.ndarray) and not leaf.ndim:
            raise AssertionError(f"spec: {where} must be a NumPy scalar, got an array of no dimension: {leaf!r}")


def check_rewrites(dataset: Dataset, *, most: int = MOST) -> None:
    """Law 3: rewrites change neither the elements nor what follows a state.

    The pipeline runs as it was described, with all rules, and with each rule alone.

    Args:
      dataset: any pipeline.
      most: elements looked at when the pipeline is endless.

    Raises:
      AssertionError: a rule changes something.

    >>> import distinput as di
    >>> check_rewrites(di.data.Dataset.range(9).take(5).take(3).batch(2).unbatch())
    """
    described = _Trace.of(_iterator(dataset.node, dataset.node), most)
    tried: set[tuple[str, ...]] = {()}
    for rules in (RULES, *[(rule,) for rule in RULES]):
        running, fired = rewrite(dataset.node, rules)
        if tuple(fired) in tried:
            continue
        tried.add(tuple(fired))
        what = f"rewrites ({', '.join(fired)})"
        if exact_spec(running) != exact_spec(dataset.node):
            raise AssertionError(f"{what}: the spec was {dataset.node.spec.nest} and is {running.spec.nest}")
        if dataset.node.cardinality not in (UNKNOWN, running.cardinality):
            raise AssertionError(f"{what}: the cardinality was {dataset.node.cardinality} and is {running.cardinality}")
        trace = _Trace.of(_iterator(dataset.node, running), most)
        wrong = difference(trace.elements, described.elements)
        if wrong is not None or trace.failure != described.failure:
            raise AssertionError(f"{what}: {wrong or f'ends with {trace.failure}, expected {described.failure}'}")
        for position, state in enumerate(trace.states):
            coded = json.loads(json.dumps(state))
            rest = _Trace.of(DatasetIterator(dataset.node, running, coded), most)
            wrong = difference(rest.elements[: most - position], trace.rest(position))
            if wrong is not None:
                raise AssertionError(f"{what}, restart at {position}: {wrong}")


def exact_spec(node: Node) -> Any:
    """The spec of a node as a value that can be compared."""
    return node.spec.structure, node.spec.leaves


def _iterator(plan: Node, running: Node, epoch: int = 0) -> DatasetIterator:
    return DatasetIterator(plan, running, {"at": running.start(epoch), "epoch": epoch, "skip": 0})


def check_positions(dataset: Dataset, *, most: int = 60) -> None:
    """Reaching a row directly is the same as passing over all before it, for every step of the pipeline.

    `start_at(row)`, where it gives a state, is followed by what `skip(row)` gives, and `fetch(rows)`, where there is random
    access, gives the elements at those rows, in two different passes.

    Args:
      dataset: any pipeline.
      most: elements looked at of each step.

    Raises:
      AssertionError: a row is another one.

    >>> import distinput as di
    >>> check_positions(di.data.Dataset.range(9).repeat(2).batch(4))
    """
    for step in walk(dataset.node):
        for epoch in (0, 1):
            elements = _elements(step, step.start(epoch), most)
            _check_start_at(step, epoch, elements, most)
            if step.random_access:
                _check_fetch(step, epoch, elements)


def _check_start_at(step: Node, epoch: int, elements: list[Any], most: int) -> None:
    # Behind the last row seen there may be more of an endless step.
    last = len(elements) if len(elements) < most else most // 2
    for row in range(last + 1):
        state = step.start_at(row, epoch)
        if state is None:
            continue
        wrong = difference(_elements(step, json.loads(json.dumps(state)), len(elements) - row), elements[row:])
        if wrong is not None:
            raise AssertionError(f"start_at({row}, {epoch}) of {step}: {wrong}")
        if len(elements) < most:
            extra = _elements(step, state, most)
            if len(extra) != len(elements) - row:
                raise AssertionError(
                    f"start_at({row}, {epoch}) of {step}: {len(extra)} follow, expected {len(elements) - row}"
                )


def _check_fetch(step: Node, epoch: int, elements: list[Any]) -> None:
    count = len(elements)
    wanted = [
        np.arange(count),
        np.arange(count)[::-1],
        np.arange(0, count, 3),
        np.arange(3 * count) * 7 % max(1, count),
    ]
    for rows in wanted:
        if not len(rows):
            continue
        block = step.fetch(np.ascontiguousarray(rows, np.int64), epoch)
        wrong = difference([exact(element) for element in block.elements()], [elements[row] for row in rows])
        if wrong is not None:
            raise AssertionError(f"fetch({rows.tolist()}, {epoch}) of {step}: {wrong}")


def _elements(step: Node, state: State, most: int) -> list[Any]:
    found: list[Any] = []
    with Run() as run:
        stream = step.open(state, run)
        try:
            for block, _ in stream:
                found += [exact(element) for element in islice(block.elements(), most - len(found))]
                if len(found) >= most:
                    break
        finally:
            run.cancelled.set()
            stream.close()  # type: ignore[attr-defined]
    return found


def check_blocks(fresh: Callable[[], Dataset], *, rows: Sequence[int] = (1, 2, 3), most: int = MOST) -> None:
    """Results do not depend on how many elements travel together: neither elements nor what follows a state.

    Args:
      fresh: makes the pipeline.
      rows: sizes of blocks to try beside the usual one; states taken with one size are restored with the others.
      most: elements looked at when the pipeline is endless.

    Raises:
      AssertionError: a size changes something.

    >>> import distinput as di
    >>> check_blocks(lambda: di.data.Dataset.range(7).filter(lambda x: x % 3 > 0).batch(2))
    """
    dataset = fresh()
    usual = _Trace.of(_iterator(dataset.node, dataset.node), most)
    for size in rows:
        with small_blocks(size):
            small = _Trace.of(_iterator(dataset.node, dataset.node), most)
            wrong = difference(small.elements, usual.elements)
            if wrong is not None or small.failure != usual.failure:
                raise AssertionError(f"blocks of {size}: {wrong or f'ends with {small.failure}'}")
            _check_resumed(dataset, usual, most, f"a state of usual blocks with blocks of {size}")
        _check_resumed(dataset, small, most, f"a state of blocks of {size} with usual blocks")
        with small_blocks(size + 1):
            _check_resumed(dataset, small, most, f"a state of blocks of {size} with blocks of {size + 1}")


def _check_resumed(dataset: Dataset, trace: _Trace, most: int, what: str) -> None:
    for position, state in enumerate(trace.states):
        coded = json.loads(json.dumps(state))
        rest = _Trace.of(DatasetIterator(dataset.node, dataset.node, coded), max(1, most - position))
        wrong = difference(rest.elements, trace.rest(position))
        if wrong is not None or rest.failure != trace.failure:
            raise AssertionError(
                f"{what}, at {position}: {wrong or f'ends with {rest.failure}'}; state {json.dumps(coded)}"
            )


def check_shards(dataset: Dataset, num_shards: int) -> None:
    """The shards of a pipeline are disjoint and complete: element i is in shard i modulo `num_shards`, in order.

    Raises:
      AssertionError: an element is in another shard, in two or in none.

    >>> import distinput as di
    >>> check_shards(di.data.Dataset.range(7), 3)
    """
    node = dataset.node
    whole = _elements(node, node.start(0), MOST)
    for index in range(num_shards):
        part = Shard(node, num_shards, index)
        wrong = difference(_elements(part, part.start(0), MOST), whole[index::num_shards])
        if wrong is not None:
            raise AssertionError(f"shard {index} of {num_shards}: {wrong}")


def check_workers(fresh: Callable[[], Dataset], workers: int, replicas: int, *, even: bool) -> None:
    """Law 9 between machines: the workers' pieces of a batched pipeline hold every row exactly once.

    Args:
      fresh: makes the pipeline of global batches; its policy is in its options and is not OFF.
      workers: how many machines.
      replicas: on each of them.
      even: every worker must have the same number of pieces, as with policy DATA.

    Raises:
      AssertionError: a row is missing or delivered twice, or the workers are out of step.

    >>> import distinput as di
    >>> check_workers(lambda: di.data.Dataset.range(7).batch(3), workers=2, replicas=2, even=True)
    """
    whole = Counter(row for batch in fresh() for row in _rows(batch))
    found: Counter[Any] = Counter()
    pieces = []
    for worker in range(workers):
        cut = rebatch_for_worker(fresh(), workers, replicas, worker)
        part = list(auto_shard_dataset(cut, workers, worker, workers * replicas))
        pieces.append(len(part))
        found.update(row for batch in part for row in _rows(batch))
    if found != whole:
        raise AssertionError(
            f"{workers} workers of {replicas} replicas: missing {list((whole - found).elements())[:5]}, "
            f"too many {list((found - whole).elements())[:5]}"
        )
    if even and len(set(pieces)) > 1:
        raise AssertionError(
            f"{workers} workers of {replicas} replicas: they have {pieces} pieces, which must be equal"
        )


def _rows(batch: Any) -> list[Any]:
    structure = structure_of(batch)
    leaves = structure.flatten(batch)
    return [exact(structure.build([leaf[i] for leaf in leaves])) for i in range(len(leaves[0]))]


def check_distributed(strategy: Strategy, dataset: Dataset, options: Any = None) -> None:
    """Laws 7 and 9 in one process: the replicas' parts are the batches, and so are sums and means over them.

    In each step the rows of all replicas follow each other in order; over all steps they are the rows of the dataset.
    `gather`, SUM and MEAN along axis 0 are those of the rows of the step, each computed by NumPy in one piece. From the state
    at every step exactly the rest follows.

    Args:
      strategy: any strategy of one process.
      dataset: global batches of numbers or strings.
      options: `InputOptions`.

    Raises:
      AssertionError: a row, a number or a restart is wrong.

    >>> import distinput as di
    >>> strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1", "CPU:2"])
    >>> check_distributed(strategy, di.data.Dataset.range(7).batch(4))
    """
    distributed = strategy.experimental_distribute_dataset(dataset, options)
    steps: list[list[Any]] = []
    states: list[State] = []
    with iter(distributed) as iterator:
        states.append(iterator.state())
        for step in iterator:
            parts = list(strategy.experimental_local_results(step))
            steps.append([exact(part) for part in parts])
            _check_step(strategy, step, parts)
            states.append(iterator.state())
        states.append(iterator.state())
    delivered = [row for step in _steps_of(strategy, distributed) for part in step for row in _rows(part)]
    wrong = difference(delivered, [row for batch in dataset for row in _rows(batch)])
    if wrong is not None:
        raise AssertionError(f"distributed over {strategy.num_replicas_in_sync}: {wrong}")
    for position, state in enumerate(states):
        with distributed.restore(json.loads(json.dumps(state))) as iterator:
            rest = [[exact(part) for part in strategy.experimental_local_results(step)] for step in iterator]
        wrong = difference(rest, steps[position:])
        if wrong is not None:
            raise AssertionError(
                f"distributed over {strategy.num_replicas_in_sync}, restart at step {position}: {wrong}"
            )


def _steps_of(strategy: Strategy, distributed: Any) -> Iterator[list[Any]]:
    for step in distributed:
        parts = list(strategy.experimental_local_results(step))
        yield [part for part in parts if len(structure_of(part).flatten(part)[0])]


def _check_step(strategy: Strategy, step: Any, parts: list[Any]) -> None:
    structure = structure_of(parts[0])
    columns = [structure.flatten(part) for part in parts]
    inner = [{leaf.shape[1:] for leaf in leaves} for leaves in zip(*columns, strict=True)]
    if any(len(shapes) > 1 for shapes in inner):
        return  # replicas without rows may not know dimensions that the data decides
    whole = [np.concatenate(leaves) for leaves in zip(*columns, strict=True)]
    gathered = structure.flatten(strategy.gather(step, axis=0))
    for value, expected in zip(gathered, whole, strict=True):
        if exact(value) != exact(expected):
            raise AssertionError(f"gather over {strategy.num_replicas_in_sync}: got {value!r}, expected {expected!r}")
    numbers = [leaf for leaf in structure_of(step).flatten(step) if dtype_of(_first_part(strategy, leaf)).kind in "if"]
    for leaf in numbers:
        rows = np.concatenate(strategy.experimental_local_results(leaf))
        _check_number("SUM", strategy.reduce("SUM", leaf, axis=0), rows.sum(axis=0))
        if len(rows):
            _check_number("MEAN", strategy.reduce("MEAN", leaf, axis=0), rows.astype(np.float64).mean(axis=0))


def _first_part(strategy: Strategy, leaf: Any) -> Any:
    return strategy.experimental_local_results(leaf)[0]


def _check_number(operation: str, given: Any, expected: Any) -> None:
    close = np.allclose(np.asarray(given, np.float64), np.asarray(expected, np.float64), rtol=1e-6, atol=1e-6)
    if np.shape(given) != np.shape(expected) or not close:
        raise AssertionError(f"reduce({operation}, axis=0): got {given!r}, the rows in one piece give {expected!r}")


def check_nothing_left(factory: Callable[[], Dataset], *, seconds: float = 5.0) -> None:
    """Law 8: no thread, process or open file is left behind, however an iteration ends.

    A pass is run to its end (or its error), closed after one element, closed before the first, abandoned after one element,
    and abandoned before the first.

    Args:
      factory: makes the pipeline.
      seconds: how long what ends on its own may take.

    Raises:
      AssertionError: something is left.

    >>> import distinput as di
    >>> check_nothing_left(lambda: di.data.Dataset.range(100).map(lambda x: x, num_parallel_calls=2).prefetch(2))
    """
    _run_out(factory())  # what is loaded once for the whole process is loaded now
    gc.collect()
    gc.freeze()  # all that there is already need not be looked through again and again
    try:
        for how, use in (
            ("the end", _run_out),
            ("close after one element", lambda ds: _close_after(ds, 1)),
            ("close before the first element", lambda ds: _close_after(ds, 0)),
            ("an iterator abandoned after one element", lambda ds: _abandon_after(ds, 1)),
            ("an iterator abandoned before the first element", lambda ds: _abandon_after(ds, 0)),
        ):
            _check_nothing_left_after(how, use, factory, seconds)
    finally:
        gc.unfreeze()


def _check_nothing_left_after(
    how: str, use: Callable[[Dataset], None], factory: Callable[[], Dataset], seconds: float
) -> None:
    threads, files, processes = set(threading.enumerate()), _open_files(), _children()
    use(factory())
    left: list[str] = []
    deadline = time.monotonic() + seconds
    while True:
        gc.collect()
        left = [thread.name for thread in threading.enumerate() if thread not in threads]
        left += list((_open_files() - files).elements())
        left += [f"process {pid}" for pid in _children() - processes]
        if not left:
            return
        if time.monotonic() > deadline:
            raise AssertionError(f"nothing left behind: after {how} there are still {left}")
        time.sleep(0.01)


def _run_out(dataset: Dataset) -> None:
    with iter(dataset) as elements:
        for _ in _until_error(elements, MOST):
            pass


def _close_after(dataset: Dataset, count: int) -> None:
    with iter(dataset) as elements:
        for _ in _until_error(elements, count):
            pass


def _abandon_after(dataset: Dataset, count: int) -> None:
    elements = iter(dataset)
    for _ in _until_error(elements, count):
        pass
    del elements


def _children() -> set[str]:
    """The processes that this one started and that have not ended; nothing where the system does not tell."""
    found: set[str] = set()
    for thread in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError):  # the thread has ended meanwhile
            found.update(thread.read_text().split())
    return found


def _open_files() -> "Counter[str]":
    """What this process has open, by name; nothing where the system does not tell."""
    found: Counter[str] = Counter()
    folder = "/proc/self/fd"
    if not os.path.isdir(folder):
        return found
    for name in os.listdir(folder):
        try:
            target = os.readlink(os.path.join(folder, name))
        except OSError:  # the descriptor of the listing itself
            continue
        found[target] += 1
    return found
