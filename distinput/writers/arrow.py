# SPDX-License-Identifier: Apache-2.0
"""Arrow IPC files: a column for each component, for any reader of Arrow."""

from dataclasses import dataclass
from typing import Any, ClassVar

from distinput.core.record_batches import Text
from distinput.core.spec import Spec
from distinput.errors import InvalidArgumentError
from distinput.files.sink import Sink
from distinput.plan.check import normalized
from distinput.writers.tables import TableFile, as_text, check_table, target
from distinput.writers.writer import ShardFile, Writer

__all__ = ["ArrowWriter", "ipc_codec"]


def ipc_codec(compression: Any) -> str | None:
    """The codec of Arrow for a compression.

    Raises:
      InvalidArgumentError: there is none.
    """
    known = {None: None, "": None, "LZ4": "lz4", "ZSTD": "zstd"}
    name = compression.upper() if isinstance(compression, str) else compression
    if name not in known:
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
