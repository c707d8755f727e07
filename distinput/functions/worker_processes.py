# SPDX-License-Identifier: Apache-2.0
"""Call a chain of functions in worker processes, with the results in the order of the elements."""

import pickle
import traceback

from distinput.core.block import Block, ColumnBlock
from distinput.core.column import Column
from distinput.core.dense import Dense
from distinput.core.failure import is_defect_within
from distinput.core.objects import Datasets
from distinput.core.pickled_code import dumps_with_buffers
from distinput.core.processes import Processes, Workforce
from distinput.core.ragged import Ragged
from distinput.core.rows import Stream
from distinput.core.segments import Closed
from distinput.core.sizes import balanced_slices
from distinput.core.state import State
from distinput.core.strings import Strings
from distinput.functions.chain import Kinds
from distinput.functions.in_order import in_order
from distinput.functions.parts import Calling, Calls, Done, Results, Trouble, work

__all__ = ["WorkerTask", "called_at_once", "called_in_processes", "packed", "workforce_of"]


def workforce_of(chain: Calls, count: int, op: str = "map") -> Workforce:
    """`count` workers for the functions of an op, started when they are first needed."""
    task = WorkerTask(chain)
    return Workforce(lambda: Processes(task, count, op))


class WorkerTask:
    """The work of a worker process on a part of the elements.

    Args:
      chain: the functions.
    """

    def __init__(self, chain: Calls) -> None:
        self.chain = chain

    def __repr__(self) -> str:
        return ", ".join(getattr(f, "__qualname__", None) or repr(f) for f in self.chain.functions)

    def __call__(self, given: tuple[Block, Kinds, bool]) -> Done:
        part, kinds, tolerant = given
        self.chain.settle(kinds)
        done = work(self.chain, part, None, tolerant=tolerant)
        done.kinds = self.chain.kinds
        for place, made in enumerate(done.parts):
            if isinstance(made, Trouble):
                is_defect_within(made.error)  # which its traceback tells
                made.trace = "".join(traceback.format_exception(made.error)).rstrip()
                made.error = _sendable(made.error)
            else:
                done.parts[place] = packed(made)
        return done


def called_in_processes(upstream: Stream, state: State, workforce: Workforce, calling: Calling) -> Results:
    """Blocks of the results of functions called in worker processes."""
    parts = calling.parts(upstream, state)
    try:
        with workforce.lent() as workers:
            lanes = _Processes(workers, calling)
            workers.drain(lanes.going_on)
            yield from in_order(parts, calling, lanes)
    except Closed:
        return  # the run was closed while it waited for a worker
    parts.close()


class _Processes:
    """Worker processes, which get parts in turn."""

    def __init__(self, processes: Processes, calling: Calling) -> None:
        self._processes, self._calling = processes, calling
        self.workers = len(processes)
        self._sent = 0

    def send(self, rows: Block) -> int:
        """Hand a part to the next worker, and return its number."""
        worker = self._sent % self.workers
        calling = self._calling
        self._processes.send(worker, (packed(rows), calling.chain.kinds, calling.run.tolerant))
        self._sent += 1
        return worker

    def ready(self, sent: int) -> bool:
        """Whether the worker has results."""
        return self._processes.ready(sent)

    def receive(self, sent: int) -> Done:
        """The next results of the worker.

        Raises:
          Closed: the run was closed.
        """
        done: Done = self._processes.receive(sent, self.going_on)
        _note_traces(done, self._processes.pids[sent])
        return done

    def going_on(self) -> bool:
        """Whether the results are still wanted."""
        return not self._calling.run.cancelled.is_set()


def called_at_once(workforce: Workforce, chain: Calls, given: Block) -> list[tuple[Block, Done]]:
    """The results for all rows of a block, shared out among the worker processes, in order."""
    with workforce.lent() as workers:
        workers.drain(_patiently)
        parts = [given.rows(part.start, part.stop) for part in balanced_slices(given.size, len(workers))]
        parts = [part for part in parts if part.size]
        for worker, part in enumerate(parts):
            workers.send(worker, (packed(part), chain.kinds, False))
        done = [workers.receive(worker, _patiently) for worker in range(len(parts))]
        for worker, each in enumerate(done):
            _note_traces(each, workers.pids[worker])
    return list(zip(parts, done, strict=True))


def _patiently() -> bool:
    return True


def _note_traces(done: Done, pid: int) -> None:
    for made in done.parts:
        if isinstance(made, Trouble):
            made.error.add_note(f"in worker process {pid}:\n{made.trace}")


def _sendable(error: Exception) -> Exception:
    """`error`, or an error with the same message that can be pickled."""
    try:
        copy = pickle.loads(dumps_with_buffers(error)[0])
    except Exception:  # noqa: BLE001 - a class may be pickled wrongly in any way
        copy = None
    if type(copy) is type(error) and str(copy) == str(error):
        return error.with_traceback(None)
    return RuntimeError(f"{type(error).__qualname__}: {error}")


def packed(block: Block) -> Block:
    """The same elements in memory that holds nothing else, so that no more than they are sent."""
    return ColumnBlock(block.structure, [_packed_column(column) for column in block.materialize().columns], block.size)


def _packed_column(column: Column) -> Column:
    if isinstance(column, Dense):
        array = column.array
        return column if array.flags.c_contiguous else Dense(array.copy())
    if isinstance(column, Strings):
        return column.used()
    if isinstance(column, Ragged):
        sizes = column.sizes
        flat = _packed_column(column.unstack())
        assert isinstance(flat, Dense | Strings)
        return Ragged(flat, sizes.cumsum() - sizes, sizes, column.loose)
    if column.ragged_rank is not None:
        return column.copied()
    if isinstance(column, Datasets) and not column.optional:
        raise TypeError(
            "map: elements that hold datasets cannot be sent to worker processes; leave out processes=True or executor="
        )
    return column
