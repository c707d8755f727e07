# SPDX-License-Identifier: Apache-2.0
"""The `ShardPlan` of a tree, built from the very trees that workers run, so that it tells what will happen."""

import numpy as np

from distinput.columns.column import Ints
from distinput.errors import InvalidArgumentError
from distinput.files.source import size_of
from distinput.formats.fixed_length import FixedLengthRecords
from distinput.formats.format import END, Format, Fragments
from distinput.ops.flat_map import FlatMap
from distinput.ops.fragment_reader import FragmentReader
from distinput.ops.interleave import Interleave
from distinput.ops.reader import Reader, paths_of
from distinput.ops.shard_batches import OwnRows, RowReader, fetches
from distinput.plan.check import integer
from distinput.plan.node import INFINITE, UNKNOWN, Node, walk
from distinput.plan.options import AutoShardPolicy, Decision, Policy
from distinput.sharding.own_rows import (
    FrameworkLegacyRebatch,
    FrameworkRebatch,
    has_batches,
    leaves_out_steps,
    rebatch_for,
)
from distinput.sharding.policies import auto_shard, decide
from distinput.sharding.policies.balanced import PartsOf, makes_readers, names_below
from distinput.sharding.shard_plan import FileRange, ShardPlan, WorkerPlan, Workers

_EVEN = 1.05
"""Reading up to so many times the bytes of a worker's own rows is not worth mentioning."""


_MOST_REPLICAS = 1 << 20
"""The most replicas that a plan is made for: the sizes of a batch are a list of as many numbers."""


def shard_plan(
    node: Node, num_workers: int, replicas_per_worker: int = 1, policy: AutoShardPolicy | Policy | None = None
) -> ShardPlan:
    """Which worker reads which part of a pipeline.

    Args:
      node: the pipeline, batched by the global batch size.
      num_workers: W, at least 1.
      replicas_per_worker: R, at least 1.
      policy: the policy to ask about; None: the one in the pipeline's options.

    Raises:
      InvalidArgumentError: fewer than one worker or replica, or more than a million; or, with policy FILE, fewer files than
        workers.
      TypeError: their numbers are no integers.
      NotFoundError: a file is not there, or the policy does not work for this pipeline.
    """
    num_workers = integer("shard_plan", "num_workers", num_workers)
    replicas_per_worker = integer("shard_plan", "replicas_per_worker", replicas_per_worker)
    for name, value in (("num_workers", num_workers), ("replicas_per_worker", replicas_per_worker)):
        if value < 1:
            raise InvalidArgumentError(f"shard_plan: {name} must be at least 1, got {value}")
    if num_workers * replicas_per_worker > _MOST_REPLICAS:
        raise InvalidArgumentError(
            f"shard_plan: a plan is for at most {_MOST_REPLICAS:,} replicas, got {num_workers:,} workers with "
            f"{replicas_per_worker:,} each; give fewer"
        )
    decision = decide(node, num_workers, policy)
    applied, sentence = decision.applied, decision.sentence

    first = worker_tree(node, num_workers, replicas_per_worker, 0, decision)
    reads = _reads(first, applied, num_workers)
    if applied.name == AutoShardPolicy.DATA.name and num_workers > 1:
        sentence += {"own": _own_in_words(first), "memory": ""}.get(
            reads,
            "; each worker reads everything and keeps its own, since rows cannot be reached by position at less cost: "
            "policy BALANCED reads only its own parts",
        )

    def plan(worker: int) -> WorkerPlan:
        own = first if worker == 0 else worker_tree(node, num_workers, replicas_per_worker, worker, decision)
        agreed = num_workers > 1 and leaves_out_steps(own, replicas_per_worker)  # those in which no worker has a row
        return _worker_plan(own, worker, replicas_per_worker, agreed=agreed)

    return ShardPlan(
        applied.name, decision.asked.name, decision.reason, sentence, num_workers, replicas_per_worker, _tail(first, node),
        reads, Workers(plan, num_workers),
    )  # fmt: skip


def worker_tree(node: Node, num_workers: int, replicas_per_worker: int, worker: int, decision: Decision) -> Node:
    """What one worker runs of a pipeline that is batched by the global batch size: the tree that its plan is made from.

    Raises:
      NotFoundError: as for `shard_plan`.
    """
    cut = rebatch_for(node, num_workers, replicas_per_worker, worker) if has_batches(node) else node
    return auto_shard(cut, num_workers, worker, num_workers * replicas_per_worker, decision=decision)


def _reads(tree: Node, applied: Policy, num_workers: int) -> str:
    steps = list(walk(tree))
    if not any(isinstance(step, Reader | FragmentReader) or _parts_of(step) or makes_readers(step) for step in steps):
        return "memory"
    everything = applied.reads_everything and num_workers > 1
    return "whole files" if everything and not any(isinstance(step, OwnRows) for step in steps) else "own"


def _own_in_words(tree: Node) -> str:
    """What workers read that read their own rows, judging by the first one."""
    readers = [step for step in walk(tree) if isinstance(step, RowReader)]
    own = [step for step in walk(tree) if isinstance(step, OwnRows)]
    if len(readers) == 1 and readers[0].counts and readers[0].reads_fragments and own[0].input is readers[0]:
        names, ends = readers[0].counts
        mine = (
            sum(readers[0].format.bytes_read(name, readers[0].format.size(name)) for name in names)
            * own[0].cardinality
            / max(1, int(ends[-1]))
        )
        times = int(_whole_fragments(readers[0], own[0]).sum()) / max(1.0, mine)
        if times > _EVEN:
            return (
                f"; each worker reads the parts of files that hold its own rows, the first one {times:.2f} times as many bytes "
                "as its rows take: policy BALANCED, or files with smaller parts (row groups), read less"
            )
    return "; each worker reads only its own rows"


def _parts_of(step: Node) -> PartsOf | None:
    """The function of a step that was given parts of files; None for other steps."""
    function = step.map_func if isinstance(step, FlatMap | Interleave) else None
    return function if isinstance(function, PartsOf) else None


def _tail(tree: Node, node: Node) -> str:
    drops = any(step.drops_rows for step in walk(node))
    full = "a last batch that is not full is left out by drop_remainder; " if drops else ""
    for step in walk(tree):
        if isinstance(step, FrameworkLegacyRebatch):
            break
        if isinstance(step, FrameworkRebatch):
            return (
                full
                + "rows are counted through, so a last batch that is not full fills the first replicas; others get no rows"
            )
    else:
        if not any(isinstance(step, OwnRows) for step in walk(tree)):
            return full + "elements are delivered as they are; where they run out, replicas get no rows"
    return (
        full
        + "each batch is cut on its own into equal pieces, rounded up; of a short one, the last replicas may get no rows"
    )


# --- one worker


def _worker_plan(tree: Node, worker: int, replicas_per_worker: int, *, agreed: bool) -> WorkerPlan:
    parts = tuple(_parts(tree))
    sizes = tree.batch_sizes()
    elements = tree.count_elements() if sizes is None else sizes.count
    scalar = not has_batches(tree)
    rows: int | None
    steps: int | None
    if elements == INFINITE:
        rows = steps = INFINITE
    else:
        rows = sizes.rows if sizes is not None and not scalar else elements if scalar and elements >= 0 else None
        steps = None if agreed or elements == UNKNOWN else -(-elements // replicas_per_worker)
    return WorkerPlan(worker, parts, rows, _bytes(tree, parts), steps)


def _bytes(tree: Node, parts: tuple[FileRange, ...]) -> int | None:
    """The bytes that it takes to read all parts once."""
    known = [part.nbytes for part in parts if part.nbytes is not None]
    if len(known) == len(parts):
        return sum(known)
    own = [step for step in walk(tree) if isinstance(step, OwnRows)]
    records = [_record_bytes(step) for step in walk(tree) if isinstance(step, RowReader)]
    # In another order it is not known which rows of a file are read, only how many in all.
    if len(own) == len(records) == 1 and records[0] and own[0].cardinality >= 0:
        return own[0].cardinality * records[0]
    return None


def _record_bytes(reader: RowReader) -> int:
    """Bytes of a record if all are equally long, else 0."""
    return reader.format.record_bytes if isinstance(reader.format, FixedLengthRecords) else 0


def _parts(tree: Node) -> list[FileRange]:
    """What a tree reads from files, its sources in order."""
    ranges: list[FileRange] = []
    own = [step for step in walk(tree) if isinstance(step, OwnRows)]
    for step in dict.fromkeys(walk(tree)):
        if isinstance(step, FragmentReader):
            ranges += _of_fragments(step.fragments, step.format)
        elif isinstance(step, RowReader):
            ranges += _of_rows(step, own[0])
        elif isinstance(step, Reader):
            ranges += _of_files(step.input, step.format)
        elif (function := _parts_of(step)) is not None:
            ranges += _of_fragments(function.fragments, function.format)
        elif makes_readers(step):
            ranges += _of_files(step.input, None)
    return ranges


def _of_fragments(fragments: Fragments, file_format: Format) -> list[FileRange]:
    ranges = []
    for i in range(len(fragments)):
        path, rows = fragments.path(i), int(fragments.rows[i])
        start, stop = int(fragments.start[i]), int(fragments.stop[i])
        whole = start == 0 and stop == END
        size = max(1, int(fragments.files.sizes[fragments.file[i]]))
        nbytes = int(fragments.nbytes[i]) * file_format.bytes_read(path, size) // size
        ranges.append(
            FileRange(path, None if whole else start, None if stop == END else stop, None if rows < 0 else rows, nbytes)
        )
    return ranges


def _of_files(names: Node, file_format: Format | None) -> list[FileRange]:
    """Whole files; of a format that is not known, None, nobody can tell how many rows they have."""
    names, _ = names_below(names)
    if names.cardinality == INFINITE:
        return []
    ranges = []
    for path in paths_of(names):
        if file_format is None:
            ranges.append(FileRange(path, nbytes=size_of(path)))
        else:
            size, rows = file_format.size(path), file_format.rows(path) if file_format.counts_rows else None
            ranges.append(FileRange(path, rows=rows, nbytes=file_format.bytes_read(path, size)))
    return ranges


def _of_rows(reader: RowReader, own: OwnRows) -> list[FileRange]:
    """The files from which a worker reads its own rows; which rows of each only if the order is that of the files."""
    counts = reader.counts
    assert counts is not None
    names, ends = counts
    if own.input is not reader or own.pieces.count is None:
        return [FileRange(name) for name, a, b in zip(names, ends, ends[1:], strict=False) if b > a]
    starts, stops = own.pieces.bounds(0, own.pieces.count)
    rows = np.diff(_before(starts, stops, ends))
    nbytes: list[int | None] = [None] * len(names)
    if record := _record_bytes(reader):
        nbytes = [int(n) * record for n in rows]
    elif reader.reads_fragments:
        nbytes = [int(n) for n in _whole_fragments(reader, own)]
    return [FileRange(name, rows=int(n), nbytes=size) for name, n, size in zip(names, rows, nbytes, strict=True) if n]


def _whole_fragments(reader: RowReader, own: OwnRows) -> Ints:
    """[files] bytes read from each, if a fetch reads every fragment that holds one of its rows."""
    counts = reader.counts
    assert counts is not None
    sizes: list[int] = []
    nbytes: list[int] = []
    file: list[int] = []
    for number, path in enumerate(counts[0]):
        fragments = reader.format.fragments(path)
        # A format may count bytes before compression.
        inside = max(1, sum(fragment.nbytes for fragment in fragments))
        size = reader.format.bytes_read(path, reader.format.size(path))
        sizes += [fragment.rows or 0 for fragment in fragments]
        nbytes += [fragment.nbytes * size // inside for fragment in fragments]
        file += [number] * len(fragments)
    ends = np.cumsum(sizes, dtype=np.int64)
    # Where reading begins and ends, so that sums of it are times of reading.
    changes = np.zeros(len(ends) + 1, np.int64)
    for starts, stops, _ in fetches(own.pieces, 0, own.row_bytes):
        some = stops > starts
        first, last = np.searchsorted(ends, starts[some], "right"), np.searchsorted(ends, stops[some] - 1, "right")
        first[1:] += first[1:] == last[:-1]  # one fetch reads a fragment once
        np.add.at(changes, first, 1)
        np.subtract.at(changes, last + 1, 1)
    read = np.cumsum(changes)[:-1] * np.asarray(nbytes, np.int64)
    found = np.zeros(len(counts[0]), np.int64)
    np.add.at(found, file, read)
    return found


def _before(starts: np.ndarray, stops: np.ndarray, places: np.ndarray) -> np.ndarray:
    """How many rows of ascending ranges come before each place."""
    sizes = np.concatenate(([0], np.cumsum(stops - starts)))
    index = np.searchsorted(starts, places, "left")
    over = np.where(
        index > 0, np.maximum(stops.take(np.maximum(index - 1, 0), mode="clip") - places, 0) if len(stops) else 0, 0
    )
    return sizes[index] - over
