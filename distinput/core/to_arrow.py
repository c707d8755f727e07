# SPDX-License-Identifier: Apache-2.0
"""Columns as Arrow arrays; without a copy wherever both keep their values the same way. The way back is in `arrow`.

pyarrow is imported when the first function is called.
"""

from typing import Any

import numpy as np

from distinput.core.block import Block
from distinput.core.column import Column
from distinput.core.dense import Dense
from distinput.core.ragged import Ragged
from distinput.core.ragged_batches import RaggedBatches
from distinput.core.ragged_tensor import arrow_rows, fixed_size_lists
from distinput.core.strings import Strings

__all__ = ["column_to_arrow", "to_arrow"]


def to_arrow(block: Block) -> Any:
    """A pyarrow RecordBatch with a column for each leaf, named by its key, or by its path where it lies deeper.

    >>> from distinput.core.nest import structure_of
    >>> elements = [{"x": 1, "y": b"a"}, {"x": 2, "y": b""}]
    >>> to_arrow(Block.of_elements(structure_of(elements[0]), elements)).to_pydict()
    {'x': [1, 2], 'y': [b'a', b'']}
    """
    import pyarrow as pa

    structure = block.structure
    names = [str(key) for key in structure.keys]
    if structure.is_leaf:
        names = ["value"]
    elif len(names) != structure.num_leaves:
        names = list(structure.paths)
    return pa.RecordBatch.from_arrays([column_to_arrow(column) for column in block.columnar().columns], names)


def column_to_arrow(column: Column) -> Any:
    """A column as an Arrow array; rows of more than one dimension become fixed-size lists."""
    import pyarrow as pa

    column = column.materialize()
    if isinstance(column, Dense):
        return arrow_rows(column.array)
    if isinstance(column, Strings):
        return fixed_size_lists(_binary(column), column.starts.shape[1:])
    if isinstance(column, Ragged | RaggedBatches):
        starts, sizes = column.starts, column.sizes
        flat = column.flat
        if len(starts) and (starts[1:] != (starts + sizes)[:-1]).any():
            flat = column.unstack()  # type: ignore[assignment]  # of the same kind
            starts = np.cumsum(sizes) - sizes
        end = starts[-1:] + sizes[-1:] if len(starts) else np.zeros(1, np.int64)
        return pa.LargeListArray.from_arrays(pa.array(np.concatenate((starts, end))), column_to_arrow(flat))
    return pa.array([item.tolist() if isinstance(item, np.ndarray) else item for item in column.values()])


def _binary(column: Strings) -> Any:
    import pyarrow as pa

    starts, sizes = column.starts.reshape(-1), column.sizes.reshape(-1)
    data = column.data
    if len(starts) and (starts[1:] != (starts + sizes)[:-1]).any():
        compact = Strings(data, starts, sizes).compact()
        data, starts = compact.data, compact.starts
    end = starts[-1:] + sizes[-1:] if len(starts) else np.zeros(1, np.int64)
    offsets = np.concatenate((starts, end))
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(data))]
    return pa.Array.from_buffers(pa.large_binary(), len(starts), buffers)
