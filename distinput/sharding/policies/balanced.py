# SPDX-License-Identifier: Apache-2.0
"""Policy BALANCED: parts of files and ranges of rows, so that all workers read equally much."""

import dataclasses
import functools
import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeGuard
from weakref import WeakKeyDictionary

import numpy as np

from distinput.columns.column import Ints
from distinput.errors import DataLossError, InvalidArgumentError, NotFoundError
from distinput.files.manifest import FileTable
from distinput.formats.format import END, Format, Fragment, Fragments
from distinput.formats.tfrecord import TFRecords
from distinput.functions.dataset_functions import node_of
from distinput.kernels.dealing import deal_by_size
from distinput.names.lazy import dataclass
from distinput.ops.flat_map import FlatMap
from distinput.ops.fragment_reader import FragmentNumbers, FragmentReader
from distinput.ops.interleave import Interleave
from distinput.ops.on_error import OnError
from distinput.ops.reader import FileNames, Reader, paths_of
from distinput.ops.take import Skip, Take
from distinput.plan.families import Rows, SameElements
from distinput.plan.node import INFINITE, Needs, Node, walk
from distinput.plan.options import Policy, Share
from distinput.values.spec import Spec

# ----------------------------------------------------------------------------
# Policy BALANCED: files, or parts of them, assigned to workers by size, so that all read equally much.
# ----------------------------------------------------------------------------


EVEN = 1.01
"""No smaller parts are needed if the largest load is within this factor of the mean."""

UNREADABLE = (DataLossError, InvalidArgumentError, NotFoundError)
"""Errors of a file that a step may leave out."""

_FEW = 20_000
_ROUNDS = 4  # as many times the rounds that it would take if each gave a part to every worker
_SMALL = 200  # files below this fraction of a worker's mean load are never split


@dataclass(frozen=True, eq=False)
class FileAssignment:
    """Files assigned to workers; the same on every worker.

    Args:
      files: all files.
      loads: [W] bytes of each worker.
      share: what one worker reads, in the order of the files; it takes memory in proportion to that share.
    """

    files: FileTable
    loads: Ints
    share: Callable[[int], Fragments]


def range_of_worker(total: int, num_workers: int, worker: int) -> tuple[int, int]:
    """The worker's stretch of a line of this length; stretches differ in length by at most one.

    >>> [range_of_worker(10, 3, worker) for worker in range(3)]
    [(0, 3), (3, 6), (6, 10)]
    """
    return total * worker // num_workers, total * (worker + 1) // num_workers


def assign_files(files: FileTable, file_format: Format, num_workers: int, *, tolerant: bool = False) -> FileAssignment:
    """Who reads which part of which file.

    Args:
      files: in the order in which one worker alone would read them.
      file_format: of all of them.
      num_workers: W, at least 1.
      tolerant: true if files that cannot be read are left out; then one that cannot be looked into is assigned whole.

    Raises:
      InvalidArgumentError: there is no worker, or a file cannot have the size it has.
      DataLossError: a file that had to be looked into is damaged.
      NotFoundError: a file that had to be looked into is not there.
    """
    if num_workers < 1:
        raise InvalidArgumentError(f"shard: there must be at least 1 worker, got {num_workers}")
    left_out = UNREADABLE if tolerant else ()
    units = None  # files cannot be cut anywhere, or one of those that may be left out cannot be read
    with suppress(*left_out):
        units = file_format.units(files)
    if units is not None and units.any():
        return _laid_in_line(files, file_format, num_workers, units)
    n = len(files)
    rows = np.full(n, -1) if files.rows is None else files.rows
    whole = Fragments(files, np.arange(n), np.zeros(n, np.int64), np.full(n, END), rows, files.sizes)
    dealt = _dealt(whole, num_workers)
    if num_workers == 1 or not file_format.lists_fragments or _even(dealt):
        return dealt
    parts = _taken_apart(whole, file_format, num_workers, left_out)
    return dealt if parts is None else _dealt(parts, num_workers)


def _laid_in_line(files: FileTable, file_format: Format, num_workers: int, units: Ints) -> FileAssignment:
    """Equal stretches of the files laid end to end, each `[n]` units long."""
    ends = np.cumsum(units, dtype=np.int64)  # where each file ends on the line
    total, unit_bytes = int(ends[-1]), file_format.unit_bytes(files)

    def share(worker: int) -> Fragments:
        last = worker == num_workers - 1
        low, high = range_of_worker(total, num_workers, worker)
        # Files that touch [low, high); one without units belongs to the stretch that its place lies in.
        begin = int(np.searchsorted(ends, low, "left"))
        stop = len(ends) if last else int(np.searchsorted(ends, high, "left")) + 1
        near = np.arange(begin, min(stop, len(ends)))
        own = units[near]
        first = ends[near] - own
        a, b = np.maximum(low - first, 0), np.minimum(high - first, own)
        empty = (own == 0) & (first >= low) & ((first < high) | last)
        kept = (b > a) | empty
        near, a, b, own = near[kept], a[kept], b[kept], own[kept]
        return Fragments(
            files.take(near),
            np.arange(len(near)),
            a,
            np.where(b == own, END, b),
            b - a if file_format.counts_rows else np.where(own == 0, 0, -1),
            (b - a) * unit_bytes,
        )

    each, rest = divmod(total, num_workers)
    cuts = rest * np.arange(num_workers + 1) // num_workers  # as `range_of_worker`, in numbers that are not too large
    return FileAssignment(files, (np.diff(cuts) + each) * unit_bytes, share)


def _dealt(parts: Fragments, num_workers: int) -> FileAssignment:
    """Parts assigned by size."""
    # A part of unknown size, or an empty one, must still be opened: without weight, one worker would get all of them.
    weights = np.maximum(parts.nbytes, 1)
    falling = _largest_first(weights)
    owners = np.empty(len(parts), np.int64)
    loads = np.zeros(num_workers, np.int64)
    sizes = weights.take(falling)
    if not deal_in_rounds(sizes, loads, owners):
        # For a few parts, loading the compiled loop would take longer than the plain one.
        deal = deal_by_size if len(parts) > _FEW else deal_by_size.reference
        deal(sizes, loads, owners)
    owner_of = np.empty(len(parts), np.uint16 if num_workers < 1 << 16 else np.int64)
    owner_of[falling] = owners
    # The numbers of the parts, worker after worker; of 16 bits: one pass for each byte. And where those of each worker begin.
    order = np.argsort(owner_of, kind="stable")
    begins = np.zeros(num_workers + 1, np.int64)
    np.cumsum(np.bincount(owner_of, minlength=num_workers), out=begins[1:])
    loads -= np.bincount(owner_of[parts.nbytes == 0], minlength=num_workers)

    def share(worker: int) -> Fragments:
        mine = order[begins[worker] : begins[worker + 1]]
        files, file = np.unique(parts.file.take(mine), return_inverse=True)
        return Fragments(
            parts.files.take(files), file, *[a.take(mine) for a in (parts.start, parts.stop, parts.rows, parts.nbytes)]
        )

    return FileAssignment(parts.files, loads, share)


def deal_in_rounds(sizes: Ints, loads: Ints, owners: Ints) -> bool:
    """`deal_by_size` in rounds, each of a few array operations, in which about every worker gets a part.

    A round gives the next sizes to the workers in the order of their loads, up to the point where one that already got a part
    would be the least loaded again; so the owners are exactly the same.

    Args:
      sizes: [n], positive.
      loads: [w], all 0; out: the sum of each worker's sizes.
      owners: [n]; out: the worker of each size.

    Returns:
      False, with nothing done, if rounds would be short because sizes are very uneven, or if sums would not fit into 64 bits.
    """
    n, workers = len(sizes), len(loads)
    if (float(sizes.sum(dtype=np.float64)) + 1) * workers >= 1 << 62:
        return False
    keys = np.arange(workers)  # load * workers + worker, ascending
    added = sizes * workers
    done, left = 0, _ROUNDS * (n // workers + 16)
    while done < n:
        if not left:
            return False
        left -= 1
        most = min(workers, n - done)
        after = keys[:most] + added[done : done + most]
        again = keys[1:most] > np.minimum.accumulate(after)[:-1]
        stop = int(again.argmax()) + 1 if again.any() else most
        owners[done : done + stop] = keys[:stop] % workers
        keys[:stop] = after[:stop]
        keys.sort()
        done += stop
    loads[keys % workers] = keys // workers
    return True


def _largest_first(weights: Ints) -> Ints:
    """The indices of the weights, largest first; equal ones keep their order."""
    n = len(weights)
    largest = int(weights.max(initial=0))
    if n and (largest + 1) * n < 1 << 63:  # weight and number in one word: sorting words takes a third of the time
        found: Ints = np.sort((largest - weights) * n + np.arange(n)) % n
        return found
    return np.argsort(-weights, kind="stable")


def _even(dealt: FileAssignment) -> bool:
    loads = dealt.loads
    return bool(loads.max() <= EVEN * loads.mean())


def _taken_apart(
    whole: Fragments, file_format: Format, num_workers: int, left_out: tuple[type[Exception], ...]
) -> Fragments | None:
    """The parts of the larger files; None if no file has more than one."""
    files = whole.files
    least = files.sizes.sum() / num_workers / _SMALL
    ranges: list[tuple[int, int, int, int, int]] = []
    apart = False
    for index, size in enumerate(files.sizes.tolist()):
        pieces: list[Fragment] = []
        if size > least:
            with suppress(*left_out):
                pieces = file_format.fragments(files.path(index))
        if len(pieces) < 2:
            ranges.append((index, 0, END, int(whole.rows[index]), size))
            continue
        apart = True
        # A format may count bytes before compression; the load is a fraction of the size of the file.
        inside = max(1, sum(piece.nbytes for piece in pieces))
        for piece in pieces:
            start, stop = int(piece.start["row"]), END if piece.stop is None else int(piece.stop["row"])
            rows = -1 if piece.rows is None else piece.rows
            ranges.append((index, start, stop, rows, piece.nbytes * size // inside))
    if not apart:
        return None
    return Fragments(files, *np.array(ranges, np.int64).T.copy())


def _balanced(node: Node, share: Share, tolerant: bool = False) -> Node:
    """The tree of one worker: its parts of the files, its range of the rows of what can be counted.

    Args:
      node: the tree to divide.
      share: which worker's share.
      tolerant: true if files that the node cannot read are left out.

    Raises:
      NotFoundError: an op needs to see all elements, and what it reads cannot be counted; or the tree is a share already.
    """
    num_workers, worker = share.num_workers, share.index
    if num_workers == 1:
        return node
    if node.about_the_whole:
        return _balanced(node.inputs[0], share)
    if isinstance(node, FragmentReader):
        raise NotFoundError(
            f"policy BALANCED: {node.op} reads the parts of files that one worker was given, and they cannot be divided again; "
            "distribute the dataset of the whole files, or use policy DATA for these records or OFF to have all of them "
            "on every worker"
        )
    if isinstance(node, Reader):
        return _reader_of_parts(node, num_workers, worker, tolerant)
    if makes_readers(node):
        return _readers_of_parts(node, num_workers, worker, tolerant)
    if node.inputs and node.needs <= Needs.PART:
        lost = isinstance(node, OnError) or (tolerant and isinstance(node, SameElements))
        inputs = [_balanced(source, share, lost) for source in node.inputs]
        return node.with_inputs(tuple(inputs))
    if node.cardinality >= 0 and node.start_at(0, 0) is not None:
        low, high = range_of_worker(node.cardinality, num_workers, worker)
        return Take(Skip(node, low, origin=node.origin), high - low, origin=node.origin)
    raise NotFoundError(
        f"policy BALANCED: {node.op} needs to see all elements, and those it reads cannot be counted; use policy DATA, or put "
        f"{node.op} after the batch of each worker"
    )


BALANCED = Policy("BALANCED", "parts of files and ranges of rows of equal size", _balanced)


# --- names of files


def names_below(node: Node) -> tuple[Node, list[Node]]:
    """The node that lists the names, and the ops over it that only repeat or reorder them, the last one first."""
    above: list[Node] = []
    while node.by_position and node.needs <= Needs.PART:
        above.append(node)
        node = node.inputs[0]
    return node, above


def _rebuilt(node: Node, above: list[Node]) -> Node:
    for step in reversed(above):
        node = step.with_inputs((node,))
    return node


def _table(names: Node) -> FileTable:
    """The files that a node names, in order, and their sizes.

    Raises:
      NotFoundError: a file is not there, or there is no end of names.
    """
    if isinstance(names, FileNames):
        return names.table
    if names.cardinality == INFINITE:
        raise NotFoundError(f"policy BALANCED: the names of files must end, but {names.op} has no end")
    return FileTable.of(list(paths_of(names)))


_ASSIGNED: WeakKeyDictionary[Node, dict[tuple[Format, int, bool], FileAssignment | None]] = WeakKeyDictionary()
"""Assignments of the lists of names in use: a plan for 4096 workers asks 4096 times for the same one."""


def _share(
    names: Node, file_format: Format, num_workers: int, worker: int, tolerant: bool
) -> tuple[Fragments, str] | None:
    """The parts of one worker of the files that a node names, and the path of one of the files; None if it names none."""
    kept = _ASSIGNED.setdefault(names, {})
    key = file_format, num_workers, tolerant
    if key not in kept:
        table = _table(names)
        kept[key] = assign_files(table, file_format, num_workers, tolerant=tolerant) if len(table) else None
    dealt = kept[key]
    return None if dealt is None else (dealt.share(worker), dealt.files.path(0))


def _reader_of_parts(node: Reader, num_workers: int, worker: int, tolerant: bool) -> Node:
    names, above = names_below(node.input)
    mine = _share(names, node.format, num_workers, worker, tolerant)
    if mine is None:
        return node
    fragments, example = mine
    numbers = _rebuilt(FragmentNumbers.of(fragments), above)
    on_error = "skip" if tolerant else "raise"
    return FragmentReader(
        numbers, fragments, node.format, example, on_error=on_error, origin=node.origin, name=node.name
    )


# --- functions that make readers


def is_of_names(node: Node) -> bool:
    """True if elements are single strings, as names of files are."""
    return node.spec.structure.is_leaf and node.spec.leaves == _NAME_LEAVES


_NAME_LEAVES = Spec.leaf((), object).leaves


def _readers_of_parts(node: FlatMap | Interleave, num_workers: int, worker: int, tolerant: bool) -> Node:
    names, above = names_below(node.input)
    table = _table(names)
    if not len(table):
        return node
    reader = _only_reader(node.call(os.fsencode(table.path(0))), table.path(0))
    # Files that cannot be cut are assigned whole, for which any format without parts will do.
    file_format = reader.format if reader is not None else TFRecords()
    mine = _share(names, file_format, num_workers, worker, tolerant)
    assert mine is not None
    fragments, example = mine
    parts = PartsOf(node.call, fragments, file_format, example)
    functools.update_wrapper(parts, node.map_func)
    numbers = _rebuilt(FragmentNumbers.of(fragments), above)
    return dataclasses.replace(node, input=numbers, map_func=parts)


def makes_readers(node: Node) -> TypeGuard[FlatMap | Interleave]:
    """True if it calls a function on names of files that makes readers of them; it is called on sample names."""
    return (
        isinstance(node, FlatMap | Interleave)
        and is_of_names(node.input)
        and any(step.reads_files for made in node.made for step in walk(made))
    )


def _only_reader(node: Node, path: str) -> Reader | None:
    """The reader of `path`, if `node` is a chain of ops over it that treat each record alone; otherwise None."""
    while node.needs <= Needs.EACH:
        node = node.inputs[0]
    if isinstance(node, Reader) and isinstance(node.input, Rows):
        names = list(node.input.block.elements())
        return node if names == [os.fsencode(path)] else None
    return None


@dataclass(eq=False)
class PartsOf:
    """A function from the number of a part to what the user's function makes of that part of its file."""

    make: Callable[[Any], Node]
    fragments: Fragments
    format: Format
    example: str

    def __call__(self, number: Any) -> Node:
        index = int(number)
        if not 0 <= index < len(self.fragments):  # a sample: any file shows what elements look like
            return node_of("flat_map", self.make(self.example.encode()))
        path = self.fragments.path(index)
        node = node_of("flat_map", self.make(os.fsencode(path)))
        reader = _only_reader(node, path)
        if reader is None:
            return node
        one = Rows(FragmentNumbers.of(self.fragments).fetch(np.array([index]), 0), f"part {index}")
        part = FragmentReader(one, self.fragments, reader.format, path, origin=reader.origin)
        return _replaced(node, reader, part)


def _replaced(node: Node, old: Node, new: Node) -> Node:
    if node is old:
        return new
    return node.with_inputs((_replaced(node.inputs[0], old, new), *node.inputs[1:]))
