# SPDX-License-Identifier: Apache-2.0
"""The tree that reads elements that were saved: their files one after the other, or as a function of the user's says."""

from collections.abc import Callable
from typing import Any

import numpy as np

from distinput.columns.column import Ints
from distinput.errors import DataLossError
from distinput.files.paths import ask_each
from distinput.files.source import size_of
from distinput.files.table import FileTable
from distinput.formats.elements import Elements
from distinput.ops.files import FileNames
from distinput.ops.reader import Reader
from distinput.ops.slices import from_tensor_slices
from distinput.plan.node import Node
from distinput.values.spec import Spec
from distinput.writers.manifest import MANIFEST, WrittenFiles

__all__ = ["saved_elements"]


def saved_elements(
    found: WrittenFiles, given: Spec | None = None, reader_func: Callable[[Any], Any] | None = None
) -> Node:
    """A reader of saved elements.

    Args:
      found: what was saved.
      given: the spec that they are read as, if it is another one that they fit.
      reader_func: a dataset of a dataset for each file -> the dataset; None: one file after the other, in order.

    Raises:
      NotFoundError: a file is gone.
      DataLossError: a file has another size than when it was written.
      InvalidArgumentError: the elements are not as `given` says.
      TypeError: `reader_func` returns no dataset.
    """
    file_format = Elements(str(found.options.get("layout")), given)
    file_format.spec(None)
    table = found.table()
    sizes = np.fromiter(ask_each(size_of, found.paths), np.int64, len(table))
    for index in np.flatnonzero(sizes != table.sizes)[:1].tolist():
        raise DataLossError(
            f"{table.path(index)}: has {sizes[index]} bytes, and {MANIFEST} says {table.sizes[index]}; it was changed after it "
            "was written"
        )
    if reader_func is None:
        return Reader(FileNames.of(table), file_format, table)
    ends = np.cumsum(found.pieces or [1] * len(table))
    parts = [_some(table, rows, file_format) for rows in np.split(np.arange(len(table)), ends[:-1])]
    made = reader_func(Node.handle(from_tensor_slices(parts)))
    node = getattr(made, "node", None)
    if not isinstance(node, Node):
        raise TypeError(f"reader_func must return a Dataset, got {type(made).__name__}")
    return node


def _some(table: FileTable, rows: Ints, file_format: Elements) -> Node:
    part = table.take(rows)
    return Reader(FileNames.of(part), file_format, part)
