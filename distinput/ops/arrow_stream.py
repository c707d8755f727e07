# SPDX-License-Identifier: Apache-2.0
"""`arrow_stream`: the rows of an Arrow stream that is opened in each pass."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar
from weakref import WeakSet

from distinput.core.begun import Begun
from distinput.core.owned import frozen
from distinput.core.rows import Stream
from distinput.core.run import Run
from distinput.core.sizes import block_rows
from distinput.core.spec import Spec
from distinput.core.state import State
from distinput.core.table_reading import Reading
from distinput.core.tabular import is_stream, table_of
from distinput.errors import DataLossError, InvalidArgumentError
from distinput.plan.node import Node

__all__ = ["ArrowStream", "StreamSource"]


class StreamSource:
    """Opens an Arrow stream, once for each pass.

    Args:
      given: an object that exports a stream, or a function that returns one.
      who: the caller, for error messages.
      schema: of the stream; None: it is opened to see.

    Raises:
      InvalidArgumentError: the stream cannot be opened.
    """

    def __init__(self, given: Any, who: str, schema: Any = None) -> None:
        self.given, self.who = given, who
        self.once = not callable(given) and (hasattr(given, "__next__") or hasattr(given, "read_next_batch"))
        self.left: Any = None
        self.begun = Begun()
        if self.once:
            if given in _TAKEN:
                raise self.consumed()
            _TAKEN.add(given)
            self.left = self._opened()
            self.schema = self.left.schema
        elif schema is not None:
            self.schema = schema
        else:
            reader = self._opened()
            self.schema = reader.schema
            reader.close()  # a connection may serve one open result at a time

    def open(self) -> Any:
        """A reader from the first row on.

        Raises:
          InvalidArgumentError: the stream can be read once, and was; or it cannot be opened; or its columns changed.
        """
        if self.once:
            reader, self.left = self.left, None
            if reader is None:
                raise self.consumed()
            return reader
        reader = self._opened()
        if reader.schema != self.schema:
            raise InvalidArgumentError(
                f"{self.who}: the stream had the columns {_told(self.schema)} when the dataset was made, and has now "
                f"{_told(reader.schema)}"
            )
        return reader

    def consumed(self) -> InvalidArgumentError:
        """The error for a stream that is read a second time."""
        return InvalidArgumentError(
            f"{self.who}: this {type(self.given).__name__} can be read once, and another pass or dataset has it; give a "
            "function that opens it anew, such as from_arrow(lambda: connection.sql(query)), or its table"
        )

    def _opened(self) -> Any:
        import pyarrow as pa

        found = self.given() if callable(self.given) and not is_stream(self.given) else self.given
        try:
            if not hasattr(found, "__arrow_c_stream__"):
                return table_of(found).to_reader()
            return pa.RecordBatchReader.from_stream(found)
        except Exception as error:  # each library has errors of its own
            raise InvalidArgumentError(
                f"{self.who}: cannot open the stream of a {type(found).__name__}: {error}"
            ) from error


_TAKEN: "WeakSet[Any]" = WeakSet()
"""Single-use streams that belong to a dataset."""


def _told(schema: Any) -> str:
    return ", ".join(f"{one.name}: {one.type}" for one in schema)


@dataclass(frozen=True, eq=False)
class ArrowStream(Node):
    """The rows of an Arrow stream, which is opened in each pass and read a batch at a time.

    Shapes: those of the schema. State: the next row; a restart reads and drops the rows before it.

    Args:
      source: opens the stream.
      reading: how columns are read.
    """

    view_only: ClassVar[bool] = False
    source: StreamSource = field(repr=False)
    reading: Reading = field(default=Reading(), repr=False)

    @property
    def op(self) -> str:
        return "arrow_stream"

    @cached_property
    def spec(self) -> Spec:
        return self.reading.spec(self.source.schema)

    def arguments(self) -> dict[str, Any]:
        return {"columns": _told(self.source.schema)}

    def start(self, epoch: int) -> State:
        return {"row": 0}

    def stream(self, state: State, run: Run) -> Stream:
        begin, row = state["row"], 0
        for batch in self._batches(run):
            over = min(max(0, begin - row), batch.num_rows)
            row += over
            most = block_rows(batch.nbytes / max(1, batch.num_rows))
            for first in range(over, batch.num_rows, most):
                part = batch.slice(first, most)
                block = frozen(self.reading.block(part, self.spec, row))
                row += part.num_rows
                yield block, {"row": row}
        if begin > row:
            raise DataLossError(
                f"{self.reading.who}: the stream has {row} rows, but reading was to go on at row {begin}; it changed"
            )

    def _batches(self, run: Run) -> Iterator[Any]:
        source = self.source
        if not source.once:
            return _batches(source.open(), self.reading.who)
        return source.begun.items(
            lambda: _batches(source.open(), self.reading.who), lambda batch: batch, sampling=run.sampling
        )


def _batches(reader: Any, who: str) -> Iterator[Any]:
    import pyarrow as pa

    try:
        while True:
            try:
                batch = reader.read_next_batch()
            except StopIteration:
                return
            except (pa.ArrowException, OSError) as error:
                raise DataLossError(f"{who}: the stream ended with an error: {error}") from error
            yield batch
    finally:
        reader.close()
