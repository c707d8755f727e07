# SPDX-License-Identifier: Apache-2.0
"""The UCI hand-written digits, shipped with the package; README.md beside this file says where they come from."""

import gzip
from importlib import resources
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Digits", "load_digits"]

Array = np.ndarray[Any, np.dtype[Any]]


class Digits(NamedTuple):
    """Some of the images, column by column; an image's id is its place in the dataset."""

    id: Array  # [n] int64
    image: Array  # [n, 64] uint8, from 0 to 16
    label: Array  # [n] uint8, from 0 to 9

    def where(self, wanted: Array) -> "Digits":
        """The images for which `wanted`, [n] of bool, is true."""
        return Digits(*[column[wanted] for column in self])


def load_digits() -> Digits:
    """All 1,797 images.

    >>> digits = load_digits()
    >>> digits.image.shape, digits.label[:5]
    ((1797, 64), array([0, 1, 2, 3, 4], dtype=uint8))
    """
    with resources.files(__name__).joinpath("digits.csv.gz").open("rb") as packed, gzip.open(packed) as lines:
        table = np.loadtxt(lines, delimiter=",", dtype=np.uint8)
    return Digits(np.arange(len(table)), table[:, :64], table[:, 64])
