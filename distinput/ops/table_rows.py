# SPDX-License-Identifier: Apache-2.0
"""`table_rows`: the rows of a table in memory, as dicts of its columns."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from distinput.core.block import Block, ColumnBlock
from distinput.core.column import Ints
from distinput.core.digest import Digest, evenly
from distinput.core.owned import frozen
from distinput.core.row_order import put_in_order
from distinput.core.rows import Stream
from distinput.core.run import Run
from distinput.core.sizes import MOST_ROWS, block_rows
from distinput.core.spec import Spec
from distinput.core.state import State
from distinput.core.table_reading import Reading
from distinput.plan.in_memory import InMemory

__all__ = ["TableRows"]

_MOST_HASHED = 64
"""Batches of a table, at equal distances, whose contents a saved state identifies."""


@dataclass(frozen=True, eq=False)
class TableRows(InMemory):
    """The rows of a table in several chunks, which are not joined; only requested rows are converted.

    Shapes: those of the table's rows. State: the next row.

    Args:
      batches: pyarrow RecordBatches.
      row_spec: of a row.
      reading: how columns are read.
      order: numbers of the rows to give, in this order; None: all of them.
    """

    batches: Sequence[Any] = field(repr=False)
    row_spec: Spec = field(repr=False)
    reading: Reading = field(default=Reading(), repr=False)
    order: Ints | None = field(default=None, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        # Pickled one by one, slices of a chunk would bring along the whole chunk each.
        return {**super().__getstate__(), "batches": _packed(self.batches)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, batches=_unpacked(state["batches"]))

    @cached_property
    def ends(self) -> Ints:
        """The rows before each batch, and of all."""
        return np.cumsum([0, *[batch.num_rows for batch in self.batches]], dtype=np.int64)

    @cached_property
    def spec(self) -> Spec:
        return self.row_spec

    @property
    def cardinality(self) -> int:
        return int(self.ends[-1]) if self.order is None else len(self.order)

    @property
    def op(self) -> str:
        return "table"

    def arguments(self) -> dict[str, Any]:
        return {"elements": f"{self.cardinality} rows of {', '.join(map(str, self.spec.structure.keys))}"}

    def contents(self) -> dict[str, Any]:
        digest = Digest().add(len(self.batches), int(self.ends[-1]))
        for number in evenly(len(self.batches), _MOST_HASHED).tolist():
            for column in self.reading.block(self.batches[number], self.spec, int(self.ends[number])).columns:
                digest.column(column)
        if self.order is not None:
            digest.array(self.order)
        return {"values": digest.word}

    def start(self, epoch: int) -> State:
        return {"row": 0}

    def start_at(self, row: int, epoch: int) -> State:
        return {"row": row}

    def stream(self, state: State, run: Run) -> Stream:
        row = state["row"]
        if self.order is not None:
            most = block_rows(self.spec.row_bytes)
            while row < len(self.order):
                stop = min(row + most, len(self.order))
                yield frozen(self._rows(self.order[row:stop])), {"row": stop}
                row = stop
            return
        for number in range(int(np.searchsorted(self.ends, row, "right")) - 1, len(self.batches)):
            begin, batch = int(self.ends[number]), self.batches[number]
            most = min(MOST_ROWS, block_rows(batch.nbytes / max(1, batch.num_rows)))
            while row < begin + batch.num_rows:
                part = batch.slice(row - begin, most)
                block = frozen(self.reading.block(part, self.spec, row))
                row += part.num_rows
                yield block, {"row": row}

    @property
    def random_access(self) -> bool:
        return True

    def fetch(self, rows: Ints, epoch: int) -> Block:
        return self._rows(rows if self.order is None else self.order.take(rows))

    def _rows(self, rows: Ints) -> Block:
        """The rows of the table with these numbers."""
        import pyarrow as pa

        numbers = np.searchsorted(self.ends, rows, "right") - 1
        order = np.argsort(numbers, kind="stable")
        used, begins = np.unique(numbers[order], return_index=True)
        parts: list[ColumnBlock] = []
        places = []
        for number, (a, b) in zip(used.tolist(), pairwise([*begins.tolist(), len(rows)]), strict=True):
            place = order[a:b]
            local = rows[place] - self.ends[number]
            try:
                chosen = self.batches[number].take(pa.array(local))
                parts.append(self.reading.block(chosen, self.spec, rows[place]))
            except pa.ArrowNotImplementedError:  # views below lists, for example
                parts.append(self.reading.block(self.batches[number], self.spec, int(self.ends[number])).take(local))
            places.append(place)
        if not parts:
            return self.reading.block(self.batches[0].slice(0, 0), self.spec, 0)
        return put_in_order(parts, places)

    def rows_of(self, numbers: Sequence[int]) -> Sequence[int] | Ints:
        return ()


def _packed(batches: Sequence[Any]) -> Any:
    """Record batches as a buffer that holds their rows alone, in Arrow's stream format."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return sink.getvalue()


def _unpacked(packed: Any) -> tuple[Any, ...]:
    import pyarrow as pa

    with pa.ipc.open_stream(packed) as reader:
        return tuple(reader)
