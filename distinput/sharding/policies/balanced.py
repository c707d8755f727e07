# SPDX-License-Identifier: Apache-2.0
"""Policy BALANCED: parts of files and ranges of rows, so that all workers read equally much."""

import dataclasses
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from distinput.errors import NotFoundError
from distinput.files.manifest import FileTable
from distinput.formats.format import Format, Fragments
from distinput.formats.tfrecord import TFRecords
from distinput.functions.dataset_functions import node_of
from distinput.ops.flat_map import FlatMap
from distinput.ops.fragment_reader import FragmentNumbers, FragmentReader
from distinput.ops.interleave import Interleave
from distinput.ops.on_error import OnError
from distinput.ops.reader import FileNames, Reader
from distinput.ops.take import Skip, Take
from distinput.plan.families import Rows, SameElements
from distinput.plan.node import INFINITE, Needs, Node, walk
from distinput.plan.options import Policy, Share
from distinput.run.run import Run
from distinput.sharding.file_assignment import FileAssignment, assign_files, range_of_worker
from distinput.values.spec import Spec

__all__ = ["BALANCED", "PartsOf", "assign_names", "is_of_names", "makes_reader", "names_below"]


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
        return _reader(node, num_workers, worker, tolerant)
    if isinstance(node, FlatMap | Interleave) and is_of_names(node.input):
        made = _readers(node, num_workers, worker, tolerant)
        if made is not None:
            return made
    if node.inputs and node.needs <= Needs.PART:
        lost = isinstance(node, OnError) or (tolerant and isinstance(node, SameElements))
        inputs = [_balanced(source, share, lost) for source in node.inputs]
        return node.with_inputs(tuple(inputs))
    if node.cardinality >= 0 and node.start_at(0, 0) is not None:
        low, high = range_of_worker(node.cardinality, num_workers, worker)
        return Take(Skip(node, low, origin=node.origin), high - low, origin=node.origin)
    raise NotFoundError(
        f"policy BALANCED: {node.op} needs to see all elements, and those it reads cannot be counted; use policy DATA, or put "
        f"{node.op} behind the batch of each worker"
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
    found: list[bytes] = []
    with Run() as run:
        for block, _ in names.open(names.start(0), run):
            found += list(block.elements())
    return FileTable.of([name.decode() for name in found])


def assign_names(names: Node, file_format: Format, num_workers: int, tolerant: bool = False) -> FileAssignment | None:
    """The files below `names` assigned to workers; None if there are none."""
    table = _table(names)
    return assign_files(table, file_format, num_workers, tolerant=tolerant) if len(table) else None


_ASSIGNED: WeakKeyDictionary[Node, dict[tuple[Format, int, bool], FileAssignment | None]] = WeakKeyDictionary()
"""Assignments of the lists of names in use: a plan for 4096 workers asks 4096 times for the same one."""


def _share(
    names: Node, file_format: Format, num_workers: int, worker: int, tolerant: bool
) -> tuple[Fragments, str] | None:
    kept = _ASSIGNED.setdefault(names, {})
    key = file_format, num_workers, tolerant
    if key not in kept:
        kept[key] = assign_names(names, file_format, num_workers, tolerant)
    dealt = kept[key]
    return None if dealt is None else (dealt.share(worker), dealt.files.path(0))


def _reader(node: Reader, num_workers: int, worker: int, tolerant: bool) -> Node:
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


def _readers(node: FlatMap | Interleave, num_workers: int, worker: int, tolerant: bool) -> Node | None:
    """The tree over this worker's parts, if the function reads the file that it is given; otherwise None."""
    if not makes_reader(node):
        return None
    names, above = names_below(node.input)
    table = _table(names)
    if not len(table):
        return node
    reader = _only_reader(node.call(table.path(0).encode()), table.path(0))
    # Files that cannot be cut are assigned whole, for which any format without parts will do.
    file_format = reader.format if reader is not None else TFRecords()
    mine = _share(names, file_format, num_workers, worker, tolerant)
    assert mine is not None
    fragments, example = mine
    parts = PartsOf(node.call, fragments, file_format, example)
    functools.update_wrapper(parts, node.map_func)
    numbers = _rebuilt(FragmentNumbers.of(fragments), above)
    return dataclasses.replace(node, input=numbers, map_func=parts)


def makes_reader(node: FlatMap | Interleave) -> bool:
    """True if the function reads files; it is called on sample names."""
    return any(step.reads_files for made in node.made for step in walk(made))


def _only_reader(node: Node, path: str) -> Reader | None:
    """The reader of `path`, if `node` is a chain of ops over it that treat each record alone; otherwise None."""
    while node.needs <= Needs.EACH:
        node = node.inputs[0]
    if isinstance(node, Reader) and isinstance(node.input, Rows):
        names = list(node.input.block.elements())
        return node if names == [path.encode()] else None
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
        node = node_of("flat_map", self.make(path.encode()))
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
