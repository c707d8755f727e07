# SPDX-License-Identifier: Apache-2.0
"""A law that is being checked: errors are reported under its name."""

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["law"]


@contextmanager
def law(name: str) -> Iterator[None]:
    """Turn every error inside into an `AssertionError` that begins with the name of the law.

    >>> with law("restart"):
    ...     raise KeyError("input")
    Traceback (most recent call last):
    AssertionError: restart: KeyError('input') was raised
    """
    try:
        yield
    except AssertionError as error:
        raise AssertionError(f"{name}: {error}") from error
    except Exception as error:
        raise AssertionError(f"{name}: {error!r} was raised") from error
