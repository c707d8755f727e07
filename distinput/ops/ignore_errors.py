# SPDX-License-Identifier: Apache-2.0
"""`ignore_errors`: drop elements that fail."""

from dataclasses import dataclass, field
from typing import ClassVar

from distinput.core.failure import Failure, is_defect_within
from distinput.core.rows import Stream
from distinput.core.run import Run
from distinput.core.state import State
from distinput.plan.check import normalized
from distinput.plan.node import INFINITE, UNKNOWN
from distinput.plan.same_elements import SameElements
from distinput.plan.skip_errors import error_classes, is_mistake
from distinput.url_secrets import without_secrets

__all__ = ["IgnoreErrors"]


@dataclass(frozen=True, eq=False)
class IgnoreErrors(SameElements):
    """Drop elements that fail, in whichever step before this one, and go on with the next element.

    What is lost with an error is what TensorFlow drops: after `zip` the whole tuple, after `batch` the elements gathered for
    its batch (the whole batch if a `map` comes directly before it), after damage in a file the rest of that file; of CSV and
    JSON Lines a record that cannot be read is dropped alone. A Python generator that has raised yields nothing more, so its
    elements end there. `stats()` tells how many elements were dropped, and the last error.

    AttributeError, ImportError, NameError and SyntaxError, with their subclasses, are raised: they mostly say that the program
    is wrong, so that every element would be dropped. So is an error of Python's own, such as IndexError, that a decoder or a
    parser of this library raises within a function: it is a defect of the library, and says nothing of the element.

    Shapes and order: unchanged. State: that of the input.

    Args:
      log_warning: send each error to the logger "distinput".
      also: those of these four classes that are to be dropped as well, a class or a tuple of them.

    Raises:
      TypeError: `also` is no class of errors.
      Exception: an error after which nothing can follow, such as a worker process that has died, or an error of your own op if
        the op is not `tolerant`.

    >>> import distinput as di
    >>> import operator
    >>> ds = di.data.Dataset.from_tensor_slices([1.0, 2.0, 0.0, 4.0])
    >>> ds.map(lambda x: operator.truediv(1, float(x))).enumerate().ignore_errors().to_list()
    [(0, 1.0), (1, 0.5), (3, 0.25)]

    Source: `tf.data.Dataset.ignore_errors`.
    """

    passes_states: ClassVar[bool] = True
    thins: ClassVar[bool] = True
    tolerant: ClassVar[bool] = True
    by_element: ClassVar[bool] = True
    harmless: ClassVar[bool] = True
    skips_failures: ClassVar[bool] = True
    keeps_batches: ClassVar[bool] = False  # TensorFlow's search for the batch size stops here
    indifferent: ClassVar[frozenset[str]] = frozenset({"also"})
    log_warning: bool = False
    also: type[Exception] | tuple[type[Exception], ...] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        normalized(self, "also", error_classes("ignore_errors", self.also))

    @property
    def cardinality(self) -> int:
        return INFINITE if self.input.cardinality == INFINITE else UNKNOWN

    @property
    def may_fail(self) -> bool:
        return False

    def start(self, epoch: int) -> State:
        return self.input.start(epoch)

    def stream(self, state: State, run: Run) -> Stream:
        counter = run.counter(self)
        for block, after in self.input.open(state, run.tolerating()):
            if type(block) is Failure:
                error = block.error
                if is_mistake(error, self.also):
                    name = type(error).__name__
                    if is_defect_within(error):
                        error.add_note(
                            "ignore_errors drops no error that is a defect of distinput itself; please report it"
                        )
                    else:
                        error.add_note(f"ignore_errors drops no {name} unless it is told to: also={name}")
                    raise error
                counter.dropped += 1
                counter.error = f"{type(error).__name__}: {error}"
                if self.log_warning:
                    _warn(error)
            else:
                yield block, after


def _warn(error: Exception) -> None:
    import logging

    told = "; ".join([str(error), *getattr(error, "__notes__", [])])
    logging.getLogger("distinput").warning("ignore_errors: %s: %s", type(error).__name__, without_secrets(told))
