# SPDX-License-Identifier: Apache-2.0
"""`distinput.extend`: what it takes to write an op, a format, a policy, a rule, a backend or an engine, and to make it known.

Each kind has a class to derive from and one line that registers it. A package registers its own in a module that it names as an
entry point of the group `distinput.extensions`: it is imported when somebody first asks for a name that is not known.
`distinput.testing` has a suite for each kind. [Build your own](../extending.md) shows one whole example of each.
"""

from typing import TYPE_CHECKING, Any

from distinput.columns.block import Block as Block
from distinput.columns.column import Column as Column
from distinput.columns.column import Dense as Dense
from distinput.columns.column import Strings as Strings
from distinput.columns.regroup import split as split
from distinput.columns.regroup import stack as stack
from distinput.names.lazy import lazy
from distinput.ops.slices import from_tensor_slices

if TYPE_CHECKING:
    from distinput.columns.block import ColumnBlock as ColumnBlock
    from distinput.columns.ragged import Ragged as Ragged
    from distinput.columns.ragged import RaggedBatches as RaggedBatches
    from distinput.columns.rows import RowQueue as RowQueue
    from distinput.columns.rows import Stream as Stream
    from distinput.columns.rows import passing_over as passing_over
    from distinput.columns.state import State as State
    from distinput.data.registration import dataset_of as dataset_of
    from distinput.data.registration import register_op as register_op
    from distinput.data.registration import step as step
    from distinput.distribute.collectives.channel import Channel as Channel
    from distinput.distribute.collectives.channel import ChannelLost as ChannelLost
    from distinput.distribute.collectives.channel import Handle as Handle
    from distinput.distribute.collectives.collectives import Collectives as Collectives
    from distinput.distribute.devices import Devices as Devices
    from distinput.distribute.devices import register_backend as register_backend
    from distinput.distribute.engines import OpenGroup as OpenGroup
    from distinput.distribute.engines import register_engine as register_engine
    from distinput.formats import register_format as register_format
    from distinput.formats.format import Format as Format
    from distinput.formats.format import Fragment as Fragment
    from distinput.formats.format import Position as Position
    from distinput.formats.span_format import Found as Found
    from distinput.formats.span_format import Piece as Piece
    from distinput.formats.span_format import SpanFormat as SpanFormat
    from distinput.plan.families import Batching as Batching
    from distinput.plan.families import Grouped as Grouped
    from distinput.plan.families import OneForOne as OneForOne
    from distinput.plan.families import SameElements as SameElements
    from distinput.plan.node import INFINITE as INFINITE
    from distinput.plan.node import UNKNOWN as UNKNOWN
    from distinput.plan.node import Needs as Needs
    from distinput.plan.node import Node as Node
    from distinput.plan.node import walk as walk
    from distinput.plan.options import Decision as Decision
    from distinput.plan.options import Policy as Policy
    from distinput.plan.options import Share as Share
    from distinput.rewrite.rules import register_rule as register_rule
    from distinput.run.run import Run as Run
    from distinput.sharding.policies import register_policy as register_policy
    from distinput.values.nest import LEAF as LEAF
    from distinput.values.nest import Structure as Structure
    from distinput.values.nest import structure_of as structure_of
    from distinput.values.spec import Spec as Spec
    from distinput.values.spec import TensorSpec as TensorSpec
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__, own=("Block", "Column", "Dense", "Strings", "arrays_of", "block_of", "split", "stack")
    )


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
