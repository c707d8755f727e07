# SPDX-License-Identifier: Apache-2.0
"""`distinput.extend`: what it takes to write an op, a format, a policy, a rule, a backend or an engine, and to make it known.

Each kind has a class to derive from and one line that registers it. A package registers its own in a module that it names as an
entry point of the group `distinput.extensions`: it is imported when somebody first asks for a name that is not known.
`distinput.testing` has a suite for each kind. [Build your own](../extending.md) shows one whole example of each.
"""

import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any

from distinput.columns.block import Block, ColumnBlock
from distinput.columns.column import Column, Dense, Strings
from distinput.columns.ragged import Ragged, RaggedBatches
from distinput.columns.regroup import split, stack
from distinput.columns.rows import RowQueue, Stream, passing_over
from distinput.columns.state import State
from distinput.data.registration import dataset_of, register_op, step
from distinput.distribute.collectives.channel import Channel, ChannelLost, Handle
from distinput.distribute.collectives.collectives import Collectives
from distinput.distribute.devices import Devices, register_backend
from distinput.distribute.engines import OpenGroup, register_engine
from distinput.formats import register_format
from distinput.formats.format import Format, Fragment, Position
from distinput.formats.span_format import Found, Piece, SpanFormat
from distinput.ops.slices import from_tensor_slices
from distinput.plan.families import Batching, Grouped, OneForOne, SameElements
from distinput.plan.node import INFINITE, UNKNOWN, Needs, Node, walk
from distinput.plan.options import Decision, Policy, Share
from distinput.rewrite.rules import register_rule
from distinput.run.run import Run
from distinput.sharding.policies import register_policy
from distinput.values.nest import LEAF, Structure, structure_of
from distinput.values.spec import Spec, TensorSpec

__all__ = [
    "INFINITE",
    "LEAF",
    "UNKNOWN",
    "Batching",
    "Block",
    "Channel",
    "ChannelLost",
    "Collectives",
    "Column",
    "ColumnBlock",
    "Decision",
    "Dense",
    "Devices",
    "Format",
    "Found",
    "Fragment",
    "Grouped",
    "Handle",
    "Needs",
    "Node",
    "OneForOne",
    "OpenGroup",
    "Piece",
    "Policy",
    "Position",
    "Ragged",
    "RaggedBatches",
    "RowQueue",
    "Run",
    "SameElements",
    "Share",
    "SpanFormat",
    "Spec",
    "State",
    "Stream",
    "Strings",
    "Structure",
    "TensorSpec",
    "arrays_of",
    "block_of",
    "dataset_of",
    "passing_over",
    "register_backend",
    "register_engine",
    "register_format",
    "register_op",
    "register_policy",
    "register_rule",
    "split",
    "stack",
    "step",
    "structure_of",
    "walk",
]


def block_of(rows: Any) -> Block:
    """A block from arrays with a first axis of rows.

    Args:
      rows: a nest of arrays, [n, ...] each, or of lists; text as lists of bytes or arrays of objects.

    Raises:
      InvalidArgumentError: an array has no first axis, or they differ in it.

    >>> import numpy as np
    >>> block = block_of({"x": np.arange(3), "name": ["a", "b", "c"]})
    >>> block.size, list(block.elements())[1]
    (3, {'x': np.int64(1), 'name': b'b'})
    """
    return from_tensor_slices(rows).block


def arrays_of(block: Block) -> Any:
    """The rows of a block as a nest of arrays, [n, ...] each; text as arrays of bytes objects.

    The arrays must not be written to: others may have the same memory.

    Args:
      block: whose rows have one shape.

    Raises:
      TypeError: rows of a component differ in shape; take the block's `elements` one by one.

    >>> import numpy as np
    >>> arrays_of(block_of({"x": np.arange(3)}))
    {'x': array([0, 1, 2])}
    """
    leaves = []
    for column in block.materialize().columns:
        if isinstance(column, Dense):
            leaves.append(column.array)
        elif isinstance(column, Strings):
            leaves.append(column.objects())
        else:
            raise TypeError(
                f"arrays_of: the rows differ in shape, so they cannot be one array: {column.dtype}; use block.elements()"
            )
    return block.structure.build(leaves)


def _as_method(function: Callable[..., Column]) -> Callable[..., Column]:
    """A function of columns as the method of `Column` that it was, for one release."""

    @wraps(function)
    def method(self: Column, *args: Any, **kwargs: Any) -> Column:
        name = function.__name__
        warnings.warn(
            f"Column.{name} goes with the next release; write distinput.extend.{name}(column, ...)",
            DeprecationWarning,
            stacklevel=2,
        )
        return function(self, *args, **kwargs)

    return method


for _function in (split, stack):  # here, above both, since columns of one kind do not know those that are made of them
    setattr(Column, _function.__name__, _as_method(_function))
