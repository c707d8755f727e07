# SPDX-License-Identifier: Apache-2.0
"""Why a function is called element by element after all."""

__all__ = ["Refused", "Unfit"]


class Refused(BaseException):
    """The function cannot be called for a whole block; the message says why, as a clause after "since".

    It is no `Exception`, so that no handler of the user's swallows it.
    """


class Unfit(BaseException):
    """The values of this block need calls for each element: a warning, an overflow, a zero whose sign depends on the order.

    The next block is tried again.
    """
