# SPDX-License-Identifier: Apache-2.0
"""NumPy `.npy` files: elements of one shape and dtype, stacked."""

import contextlib
import io
import os
from tempfile import TemporaryFile
from typing import Any, ClassVar

import numpy as np

from distinput.columns.block import Block
from distinput.columns.column import Dense
from distinput.errors import InvalidArgumentError
from distinput.files.paths import local_path
from distinput.files.sink import Sink
from distinput.files.source import naming
from distinput.values.spec import Spec, TensorSpec
from distinput.writers.writer import ShardFile, Writer, refuse_nulls

_CHUNK = 1 << 20


class NpyWriter(Writer):
    """Arrays [n, ...] of elements [...]: numbers, truth values and times of one known shape.

    How many elements a file has stands at its beginning, so the values wait in a temporary file until it is complete.

    Source: the format is that of `numpy.lib.format`, version 1.
    """

    name: ClassVar[str] = "npy"
    suffix: ClassVar[str] = ".npy"

    def check(self, spec: Spec) -> None:
        refuse_nulls("npy", spec.structure)
        leaf = spec.leaves[0] if spec.structure.is_leaf else None
        if (
            not isinstance(leaf, TensorSpec)
            or leaf.ragged_rank
            or None in (leaf.shape or ())
            or leaf.dtype.kind not in "biufcmM"
        ):
            raise InvalidArgumentError(
                f"write: an npy file is one array of numbers, so elements must be arrays of one known shape, got {spec.nest}; "
                'map them to one, or write format="parquet" or "elements"'
            )

    def open(self, sink: Sink, spec: Spec, first: int) -> ShardFile:
        leaf: Any = spec.leaves[0]
        return _File(sink, leaf.dtype, tuple(leaf.shape))


class _File(ShardFile):
    def __init__(self, sink: Sink, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
        self._sink, self._dtype, self._shape = sink, dtype, shape
        path = local_path(sink.path)
        folder = None if path is None else os.path.dirname(path) or os.curdir  # where there is room for the file itself
        self._rows, self._waiting = 0, TemporaryFile(dir=folder)  # noqa: SIM115 - closed by `finish`, or with the object

    def write(self, block: Block) -> None:
        (column,) = block.materialize().columns
        if not isinstance(column, Dense) or column.array.shape[1:] != self._shape or column.dtype != self._dtype:
            raise InvalidArgumentError(
                f"write: npy: elements must be {self._dtype}{list(self._shape)}, got {column.dtype}{column.inner}"
            )
        with naming(self._sink.path, "writing"):
            self._waiting.write(np.ascontiguousarray(column.array).reshape(-1).view(np.uint8).data)
        self._rows += block.size
        self.held += column.array.nbytes

    def finish(self) -> None:
        head = io.BytesIO()
        described = np.lib.format.dtype_to_descr(self._dtype)
        np.lib.format.write_array_header_1_0(
            head, {"descr": described, "fortran_order": False, "shape": (self._rows, *self._shape)}
        )
        self._sink.write(head.getvalue())
        with naming(self._sink.path, "writing"):
            self._waiting.seek(0)  # writes what is still collected
        while data := self._waiting.read(_CHUNK):
            self._sink.write(data)
        self.discard()

    def discard(self) -> None:
        with contextlib.suppress(OSError):  # it may not be able to write what is still collected
            self._waiting.close()
        self.held = 0
