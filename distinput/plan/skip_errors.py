# SPDX-License-Identifier: Apache-2.0
"""`SkipErrors`: how many elements that fail may be left out, and where they are written down."""

import os
from dataclasses import dataclass
from typing import ClassVar

from distinput.columns.failure import is_defect_within
from distinput.errors import InvalidArgumentError

__all__ = ["MISTAKES", "SkipErrors", "as_policy", "error_classes", "is_mistake"]

MISTAKES = (AttributeError, ImportError, NameError, SyntaxError)
"""Errors of a program that is wrong, whatever the data: left out, they would leave an empty dataset and no word."""

_LEAST = 1000
"""Elements of which a share is at least taken: one error among the first three elements says nothing of a share."""


@dataclass(frozen=True)
class SkipErrors:
    """Leave out elements that fail, up to a budget, for `on_error=`.

    `on_error="skip"` is `SkipErrors()`. Each step has a budget of its own, counted from the beginning of each pass; each
    worker of a job counts what it reads itself.

    Args:
      max_errors: how many elements may fail: a number, or a share of all elements between 0 and 1 (of 1,000, as long as there
        were fewer); None: any number. One more ends the run with an error that lists the first ones.
      quarantine: a local file to which a line of JSON is appended for each element that fails; None: none. Several workers may
        share it. An element is written once, however many workers, passes and restarts meet it.
      max_quarantined: how many lines that file may have; what fails beyond them is counted and not written.
      also: a class of errors, or a tuple of them, to leave out although they are mostly mistakes of the program, which are
        raised whatever the budget: AttributeError, ImportError, NameError, SyntaxError, and their subclasses.

    Raises:
      InvalidArgumentError: a negative number, a share above 1, or a quarantine file that is not local.
      TypeError: `also` is no class of errors.

    >>> import distinput as di
    >>> import operator
    >>> ds = di.data.Dataset.from_tensor_slices([1.0, 2.0, 0.0, 4.0])
    >>> ds.map(lambda x: operator.truediv(1, float(x)), on_error=di.data.SkipErrors(max_errors=1)).to_list()
    [1.0, 0.5, 0.25]
    """

    max_errors: int | float | None = 0.01
    quarantine: str | os.PathLike[str] | None = None
    max_quarantined: int = 10_000
    also: type[Exception] | tuple[type[Exception], ...] = ()

    share_of_at_least: ClassVar[int] = _LEAST

    def __post_init__(self) -> None:
        most = self.max_errors
        if most is not None and not (
            (type(most) is int and most >= 0) or (isinstance(most, float) and 0.0 <= most <= 1.0)
        ):
            raise InvalidArgumentError(
                f"SkipErrors: max_errors must be a whole number from 0 on, a share between 0.0 and 1.0, or None, got {most!r}"
            )
        if type(self.max_quarantined) is not int or self.max_quarantined < 0:
            raise InvalidArgumentError(
                f"SkipErrors: max_quarantined must be a whole number from 0 on, got {self.max_quarantined!r}"
            )
        if self.quarantine is not None and "://" in os.fspath(self.quarantine):
            raise InvalidArgumentError(
                f"SkipErrors: quarantine must be a local file, to which lines can be appended, got {self.quarantine!r}"
            )

        object.__setattr__(self, "also", error_classes("SkipErrors", self.also))

    def exceeded(self, errors: int, elements: int) -> bool:
        """Whether so many errors are too many beside so many elements that did not fail.

        >>> SkipErrors(2).exceeded(3, 10**6), SkipErrors(0.01).exceeded(10, 50), SkipErrors(0.01).exceeded(11, 50)
        (True, False, True)
        """
        if self.max_errors is None:
            return False
        if isinstance(self.max_errors, float):
            return errors > self.max_errors * max(_LEAST, errors + elements)
        return errors > self.max_errors

    def __str__(self) -> str:
        return f"max_errors={self.max_errors}"


def error_classes(who: str, given: object) -> tuple[type[Exception], ...]:
    """Classes of errors that an argument `also` names.

    Raises:
      TypeError: it names something else.
    """
    classes = given if isinstance(given, tuple) else (given,)
    for each in classes:
        if not (isinstance(each, type) and issubclass(each, Exception)):
            raise TypeError(
                f"{who}: also must be a class of errors, or a tuple of them, such as AttributeError, got {each!r}"
            )
    return classes


def is_mistake(error: BaseException, also: type[Exception] | tuple[type[Exception], ...]) -> bool:
    """Whether an error says that the program is wrong, and not an element; `also` names classes that say it of elements.

    The program is also wrong where a reader of this library raises an error of Python's own, which `also` does not change.
    """
    return (isinstance(error, MISTAKES) and not isinstance(error, also)) or is_defect_within(error)


def as_policy(op: str, given: object) -> SkipErrors | None:
    """What `on_error=` means: a policy, or None to raise errors.

    Raises:
      InvalidArgumentError: it is none of "raise", "skip" and `SkipErrors(...)`.
    """
    if isinstance(given, SkipErrors):
        return given
    if given == "skip":
        return SkipErrors()
    if given != "raise":
        raise InvalidArgumentError(f'{op}: on_error must be "raise", "skip" or SkipErrors(...), got {given!r}')
    return None
