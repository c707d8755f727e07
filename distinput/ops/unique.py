# SPDX-License-Identifier: Apache-2.0
"""`unique`: every value once."""

from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np

from distinput.columns.block import Block, Failure
from distinput.columns.column import Column, Dense, Ints
from distinput.columns.rows import Stream
from distinput.columns.state import State
from distinput.errors import ElementTypeError
from distinput.names.lazy import dataclass
from distinput.plan.node import Node
from distinput.run.run import Run
from distinput.values.leaves import STRING, is_ragged
from distinput.values.spec import Spec

_DTYPES = (np.dtype(np.int32), np.dtype(np.int64), STRING)


@dataclass(frozen=True, eq=False)
class Unique(Node):
    """Elements that have not occurred before; elements must have one component.

    Shapes: unchanged. Order: that of first occurrences. State: how many elements of the input have been read; a restart
    reads them again, since a state holds no data.

    Raises:
      TypeError: the element has several components, or is neither int32, int64 nor a string.

    >>> import distinput as di
    >>> di.data.Dataset.from_tensor_slices([1, 37, 2, 37, 2, 1]).unique().to_list()
    [1, 37, 2]

    Source: `tf.data.Dataset.unique`.
    """

    thins = tolerant = harmless = True
    input: Node

    @cached_property
    def spec(self) -> Spec:
        if len(self.input.spec.leaves) != 1:
            raise ElementTypeError(
                f"unique: elements must have a single component, got {self.input.spec.structure}; map it to one first"
            )
        (leaf,) = self.input.spec.tensors("unique")
        if leaf.dtype not in _DTYPES:
            raise TypeError(
                f"unique: elements must be int32, int64 or strings, got {leaf.dtype}; map them to one of these first"
            )
        return self.input.spec

    def __post_init__(self) -> None:
        self.spec  # noqa: B018 - checked now

    def start(self, epoch: int) -> State:
        return {"epoch": epoch, "row": 0}

    def stream(self, state: State, run: Run) -> Stream:
        epoch, done, over = state["epoch"], state["row"], state.get("failures", 0)
        seen: set[Any] = set()
        row = failures = 0

        def here() -> State:
            return {"epoch": epoch, "row": row, **({"failures": failures} if failures else {})}

        for block, _ in self.input.open(self.input.start(epoch), run):
            if type(block) is Failure:
                failures += 1
                if failures > over:
                    yield block, here()
                continue
            fresh = _fresh(block, seen)
            row += block.size
            if row <= done:
                continue
            fresh = fresh[fresh >= done - (row - block.size)]
            if len(fresh):
                yield block.take(fresh), here()


def _fresh(block: Block, seen: set[Any]) -> Ints:
    """Rows of the block whose value is not in `seen`, to which they are added."""
    fresh = []
    for index, key in enumerate(_keys(block.columnar().columns[0])):
        if key not in seen:
            seen.add(key)
            fresh.append(index)
    return np.asarray(fresh, np.int64)


def _keys(column: Column) -> Iterable[Any]:
    """What tells the value of each row from others."""
    if isinstance(column, Dense) and column.array.ndim == 1:
        return column.array.tolist()  # type: ignore[no-any-return]
    return map(_key, column.values())


def _key(value: Any) -> Any:
    if isinstance(value, bytes):
        return value
    if is_ragged(value):
        return value.shape, tuple([splits.tobytes() for splits in value.nested_row_splits]), _key(value.flat_values)
    if value.ndim == 0:
        return value.tolist()
    return value.shape, tuple(value.reshape(-1).tolist()) if value.dtype == object else value.tobytes()
