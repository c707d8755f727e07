# SPDX-License-Identifier: Apache-2.0
"""`batch`: consecutive elements stacked."""

from dataclasses import dataclass

from distinput.plan.batching import Stacking
from distinput.plan.check import at_least, parallel_calls

__all__ = ["Batch"]


@dataclass(frozen=True, eq=False)
class Batch(Stacking):
    """Stack `batch_size` consecutive elements into one.

    Shapes: [...] becomes [batch_size, ...]; the last batch may have fewer rows. Order: unchanged. State: where the first
    element of the next batch stands in the input.

    Args:
      batch_size: elements in a batch, at least 1.
      drop_remainder: leave out a last batch that is not full.
      num_parallel_calls, deterministic: accepted as TensorFlow's; stacking is a view and needs no threads.

    Raises:
      InvalidArgumentError: `batch_size` is below 1; at iteration, elements of one batch differ in shape.

    >>> import distinput as di
    >>> list(di.data.Dataset.range(5).batch(2).as_numpy_iterator())
    [array([0, 1]), array([2, 3]), array([4])]

    Source: `tf.data.Dataset.batch`.
    """

    batch_size: int
    drop_remainder: bool = False
    num_parallel_calls: int | None = None
    deterministic: bool | None = None

    def __post_init__(self) -> None:
        at_least("batch", "batch_size", self.batch_size, 1)
        parallel_calls("batch", self.num_parallel_calls)

    @property
    def rows_per_batch(self) -> int | None:
        # In TensorFlow a parallel batch is another op, at which the search for the batch size stops.
        return int(self.batch_size) if self.num_parallel_calls is None else None
