# SPDX-License-Identifier: Apache-2.0
"""Law 1: a pass gives exactly the elements that plain lists would."""

from collections.abc import Sequence
from typing import Any

from distinput.data.dataset import Dataset
from distinput.testing.elements import matches

__all__ = ["check_same_as"]


def check_same_as(dataset: Dataset, expected: Sequence[Any]) -> None:
    """Law 1: a pass gives exactly these elements.

    Args:
      dataset: any finite pipeline.
      expected: elements as NumPy values, compared in structure, dtype, shape and bits; plain Python numbers and lists of
        them are compared by value alone. A dataset inside an element is compared with the elements it gives.

    Raises:
      AssertionError: the elements differ.

    >>> import distinput as di
    >>> check_same_as(di.data.Dataset.range(4).batch(3), [[0, 1, 2], [3]])
    """
    count = 0
    with iter(dataset) as elements:
        for element in elements:
            if count == len(expected):
                raise AssertionError(f"same as a list: there is an element {count}, expected only {count}: {element!r}")
            if not matches(element, expected[count]):
                raise AssertionError(f"same as a list: element {count} is {element!r}, expected {expected[count]!r}")
            count += 1
    if count != len(expected):
        raise AssertionError(f"same as a list: there are {count} elements, expected {len(expected)}")
