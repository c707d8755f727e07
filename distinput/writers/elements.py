# SPDX-License-Identifier: Apache-2.0
"""Elements of any spec, exactly as they are, in Arrow IPC files; see `formats.elements`."""

from typing import Any, ClassVar

from distinput.arrow.record_batches import arrow_schema
from distinput.columns.block import Block
from distinput.errors import InvalidArgumentError
from distinput.files.sink import Sink
from distinput.formats.elements import layout_of, stored, stored_block
from distinput.names.lazy import dataclass
from distinput.plan.check import normalized
from distinput.values.spec import Spec
from distinput.writers.arrow import TableFile, ipc_codec, target
from distinput.writers.writer import ShardFile, Writer

_CODECS = {"AUTO": None, "GZIP": "ZSTD", "SNAPPY": "LZ4", "LZ4": "LZ4", "ZSTD": "ZSTD", "": None}


def codec_of(who: str, compression: Any) -> str | None:
    """The compression of Arrow that stands for one of TensorFlow.

    Raises:
      InvalidArgumentError: there is none.
    """
    if compression is None:
        return None
    if not isinstance(compression, str) or compression.upper() not in _CODECS:
        raise InvalidArgumentError(
            f"{who}: compression must be None, 'AUTO', 'GZIP', 'SNAPPY', 'LZ4' or 'ZSTD', got {compression!r}"
        )
    return _CODECS[compression.upper()]


@dataclass(frozen=True)
class ElementsWriter(Writer):
    """Elements of any structure, dtype and shape: what `save` writes and `load` reads.

    Args:
      compression: None, "LZ4" or "ZSTD"; only files without one are mapped into memory.

    Raises:
      InvalidArgumentError: the compression is unknown.
    """

    name: ClassVar[str] = "elements"
    suffix: ClassVar[str] = ".arrow"
    codec: str | None = None

    def __init__(self, compression: str | None = None) -> None:
        normalized(self, "codec", ipc_codec(compression))

    def check(self, spec: Spec) -> None:
        layout_of(spec)

    def open(self, sink: Sink, spec: Spec, first: int) -> ShardFile:
        return _File(sink, spec, self.codec)

    def reading(self, spec: Spec) -> dict[str, Any]:
        return {"layout": layout_of(spec)}


class _File(TableFile):
    def __init__(self, sink: Sink, spec: Spec, codec: str | None) -> None:
        from pyarrow import ipc

        schema, options = arrow_schema(stored(spec)), ipc.IpcWriteOptions(compression=codec)
        super().__init__(ipc.new_file(target(sink), schema, options=options), schema)
        self._spec = spec

    def write(self, block: Block) -> None:
        super().write(stored_block(block, self._spec))
