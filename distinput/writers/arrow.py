# SPDX-License-Identifier: Apache-2.0
"""Arrow IPC files: a column for each component, for any reader of Arrow."""

from typing import Any, ClassVar

from distinput.arrow.record_batches import Text, arrow_schema, record_batch
from distinput.columns.block import Block
from distinput.errors import InvalidArgumentError
from distinput.files.sink import WRITTEN_ALONE, Sink
from distinput.names.lazy import dataclass
from distinput.plan.check import normalized
from distinput.values.nest import Structure, component
from distinput.values.spec import Spec
from distinput.writers.writer import ShardFile, Writer

# ----------------------------------------------------------------------------
# What the writers of tables share: elements as record batches of one schema, and pyarrow's writers over a `Sink`.
# ----------------------------------------------------------------------------


class TableFile(ShardFile):
    """A file that a pyarrow writer writes.

    Args:
      writer: has `write_batch` and `close`.
      schema: of the record batches.
    """

    def __init__(self, writer: Any, schema: Any) -> None:
        self._writer, self._schema = writer, schema

    def write(self, block: Block) -> None:
        self._writer.write_batch(record_batch(block, self._schema))

    def finish(self) -> None:
        self._writer.close()


def target(sink: Sink) -> Any:
    """A file object for pyarrow that writes to a sink."""
    import pyarrow as pa

    return pa.PythonFile(_Copied(sink), mode="w")


class _Copied:
    """Copies what is small: some writers of pyarrow use the memory again, while a sink collects it."""

    closed = False

    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        self._sink.write(view if view.nbytes >= WRITTEN_ALONE else bytes(view))
        return view.nbytes

    def flush(self) -> None:
        """Nothing: who opened the sink flushes it."""

    def close(self) -> None:
        """Nothing: who opened the sink closes it."""


def as_text(text: Any) -> Text:
    """The option `text` in a form that can be compared: True, False, or names of columns."""
    return text if isinstance(text, bool | str) else tuple(text)


def check_table(spec: Spec, text: Text) -> Any:
    """The schema of a table of these elements.

    Raises:
      InvalidArgumentError: a component is None, or has no Arrow type.
    """
    refuse_none(spec.structure)
    try:
        return arrow_schema(spec, text)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(str(error).replace("to_arrow:", "write:", 1)) from None


def refuse_none(structure: Structure, path: str = "") -> None:
    """Refuse a component that is None in every element: no column could hold it, and readers would miss it.

    Raises:
      InvalidArgumentError: there is one.
    """
    if structure.kind == "none":
        raise InvalidArgumentError(
            f"write: a table has no column for {component(path)}, which is None in every element; leave it out with map, or "
            'write format="elements"'
        )
    for key, child in structure.members:
        refuse_none(child, f"{path}[{key!r}]")


def ipc_codec(compression: Any) -> str | None:
    """The codec of Arrow for a compression.

    Raises:
      InvalidArgumentError: there is none.
    """
    known = {None: None, "": None, "LZ4": "lz4", "ZSTD": "zstd"}
    name = compression.upper() if isinstance(compression, str) else compression
    if not isinstance(name, str | None) or name not in known:
        raise InvalidArgumentError(
            f"write: compression of Arrow files must be None, 'LZ4' or 'ZSTD', got {compression!r}"
        )
    return known[name]


@dataclass(frozen=True)
class ArrowWriter(Writer):
    """Rows of Arrow IPC files; `distinput.data.ArrowDataset` and any other reader of Arrow read them.

    Args:
      compression: None, "LZ4" or "ZSTD"; only files without one are mapped into memory.
      text: columns whose byte strings are UTF-8 and become strings: True for all, or a list of names.

    Raises:
      InvalidArgumentError: the compression is unknown.
    """

    name: ClassVar[str] = "arrow"
    suffix: ClassVar[str] = ".arrow"
    codec: str | None = None
    text: Text = False

    def __init__(self, compression: str | None = None, text: Any = False) -> None:
        normalized(self, "codec", ipc_codec(compression))
        normalized(self, "text", as_text(text))

    def check(self, spec: Spec) -> None:
        check_table(spec, self.text)

    def open(self, sink: Sink, spec: Spec, first: int) -> ShardFile:
        from pyarrow import ipc

        schema = check_table(spec, self.text)
        options = ipc.IpcWriteOptions(compression=self.codec)
        return TableFile(ipc.new_file(target(sink), schema, options=options), schema)
