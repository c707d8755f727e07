# SPDX-License-Identifier: Apache-2.0
"""`ignore_errors`: leave out the elements for which a function raises."""

from dataclasses import dataclass

from distinput.core.rows import Stream
from distinput.core.run import Run
from distinput.core.state import State
from distinput.plan.node import INFINITE, UNKNOWN
from distinput.plan.same_elements import SameElements

__all__ = ["IgnoreErrors"]


@dataclass(frozen=True, eq=False)
class IgnoreErrors(SameElements):
    """Leave out the elements for which the function of a `map` or `filter` before this raises.

    Errors of anything else are raised as ever: a damaged file, or elements that cannot be batched. Put it right behind the
    functions: below it they are called one after the other, without threads or processes, and a `shuffle` or another op that
    fetches its elements by position meets their errors itself.

    Shapes and order: unchanged. State: that of the input.

    Args:
      log_warning: tell each error to the logger "distinput".

    >>> import distinput as di
    >>> import operator
    >>> ds = di.data.Dataset.from_tensor_slices([1.0, 2.0, 0.0, 4.0])
    >>> ds.map(lambda x: operator.truediv(1, float(x))).ignore_errors().to_list()
    [1.0, 0.5, 0.25]

    Source: `tf.data.Dataset.ignore_errors`.
    """

    log_warning: bool = False

    @property
    def cardinality(self) -> int:
        return INFINITE if self.input.cardinality == INFINITE else UNKNOWN

    def start(self, epoch: int) -> State:
        return self.input.start(epoch)

    def stream(self, state: State, run: Run) -> Stream:
        return self.input.open(state, run.ignoring(self._told))

    def _told(self, error: Exception) -> None:
        if self.log_warning:
            import logging

            logging.getLogger("distinput").warning(
                "ignore_errors: %s: %s", type(error).__name__, "; ".join([str(error), *error.__notes__])
            )
