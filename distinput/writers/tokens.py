# SPDX-License-Identifier: Apache-2.0
"""Megatron's indexed datasets: tokens, and beside them an index of sequences, each of which is a document."""

from typing import Any, ClassVar

import numpy as np

from distinput.columns.block import Block
from distinput.columns.column import Ints
from distinput.errors import InvalidArgumentError
from distinput.files.sink import Sink
from distinput.formats.megatron import DTYPES, as_tokens, index_bytes
from distinput.names.lazy import dataclass
from distinput.values.spec import Spec, TensorSpec
from distinput.writers.writer import ShardFile, Writer


@dataclass(frozen=True)
class MegatronWriter(Writer):
    """Elements that are arrays [length] of tokens; files have the bytes that Megatron's builder writes.

    Args:
      dtype: of the tokens, such as "uint16"; a token that does not fit is an error. None: that of the elements.
    """

    name: ClassVar[str] = "megatron"
    suffix: ClassVar[str] = ".bin"
    beside: ClassVar[str] = ".idx"
    dtype: str | None = None

    def __post_init__(self) -> None:
        if self.dtype is not None:
            name = np.dtype(self.dtype).name
            if name not in DTYPES:
                raise InvalidArgumentError(f"write: megatron: dtype must be one of {', '.join(DTYPES)}, got {name}")
            object.__setattr__(self, "dtype", name)

    def check(self, spec: Spec) -> None:
        leaf = spec.leaves[0] if spec.structure.is_leaf else None
        if (
            not isinstance(leaf, TensorSpec)
            or leaf.ragged_rank
            or leaf.shape is None
            or len(leaf.shape) != 1
            or leaf.dtype.kind not in "iuf"
        ):
            raise InvalidArgumentError(
                f"write: a sequence of Megatron is an array [length] of tokens, got {spec.nest}; map them to one, "
                "or see io.write_megatron, which takes documents of several sequences"
            )
        if (self.dtype or leaf.dtype.name) not in DTYPES:
            raise InvalidArgumentError(
                f"write: Megatron has no tokens of {leaf.dtype.name}; give dtype=, one of {', '.join(DTYPES)}"
            )

    def open(self, sink: Sink, spec: Spec, first: int) -> ShardFile:
        (leaf,) = spec.leaves
        assert isinstance(leaf, TensorSpec), "checked"
        return _File(sink, np.dtype(self.dtype or leaf.dtype.name), first)


class _File(ShardFile):
    def __init__(self, sink: Sink, dtype: np.dtype[Any], first: int) -> None:
        self._sink, self._dtype, self._row = sink, dtype, first
        self._sizes: list[Ints] = [np.zeros(0, np.int64)]

    def write(self, block: Block) -> None:
        column: Any = block.materialize().columns[0]  # of numbers, dense or ragged
        sizes = np.broadcast_to(column.lengths(), block.size)
        try:
            tokens = as_tokens("", column.unstack().whole(), self._dtype)
        except InvalidArgumentError:  # by which sequence?
            rows = [
                as_tokens(f"write: element {self._row + place}", row, self._dtype)
                for place, row in enumerate(block.elements())
            ]
            tokens = np.concatenate(rows)
        self._sink.write(tokens.data.cast("B"))
        self._sizes.append(sizes)
        self._row += block.size

    def beside(self) -> bytes:
        sizes = np.concatenate(self._sizes)
        return index_bytes(self._dtype, sizes, np.arange(len(sizes) + 1))
