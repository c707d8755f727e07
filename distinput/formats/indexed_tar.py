# SPDX-License-Identifier: Apache-2.0
"""Tar archives with an index, so that samples can be counted and accessed by number."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from distinput.core.block import Block
from distinput.core.buffers import Bytes
from distinput.core.column import Ints
from distinput.core.strings import Strings
from distinput.formats.indexed import Indexed
from distinput.formats.tar import TarSamples
from distinput.formats.tar_spans import TarSpans

__all__ = ["IndexedTarSamples"]


@dataclass(frozen=True, kw_only=True)
class IndexedTarSamples(Indexed, TarSamples):
    """`TarSamples` for archives with an index; compressed archives have none.

    Args:
      index_folder: where indices are kept; None: beside each file.
    """

    name: ClassVar[str] = "indexed_tar"

    def __post_init__(self) -> None:
        if self.compression == "AUTO":
            object.__setattr__(self, "compression_type", None)
        TarSamples.__post_init__(self)
        Indexed.__post_init__(self)

    @property
    def _options(self) -> str:
        return str(self.max_sample_bytes)

    def offsets(self, path: str) -> Iterator[Ints]:
        end = 0
        for block, after in TarSpans._read(self, path, self.start(), None):
            (spans,) = block.columnar().columns
            assert isinstance(spans, Strings)
            end = after["byte"]
            yield end - np.cumsum(spans.sizes[::-1])[::-1]
        yield np.array([end])

    def parse_rows(self, path: str, data: Bytes, ends: Ints, rows: Ints) -> Block:
        starts = np.append(0, ends[:-1]) if len(ends) else ends
        table = self._table(path)
        if table is None:
            raise self.misplaced(path, 0)
        found, error = table.columns(path, Strings(data, starts, ends - starts), {"row": len(rows)})
        if error is not None:
            error.add_note(f"sample {int(rows[found.size])} of {path}")
            raise error
        return found
