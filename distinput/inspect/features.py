# SPDX-License-Identifier: Apache-2.0
"""The features of `tf.train.Example` messages, found out by looking at them."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from distinput.core.leaves import STRING
from distinput.formats.features import FixedLenFeature, VarLenFeature
from distinput.kernels.example_values import BYTES, FLOAT, INT64, MISSING

__all__ = ["FeatureFound", "as_code", "declaration", "features_in"]


_DTYPES = {BYTES: "string", FLOAT: "float32", INT64: "int64"}


@dataclass
class FeatureFound:
    """What is known of a feature.

    Attributes:
      dtype: "int64", "float32", "string", "none" if no message has a value, or "mixed".
      present: messages that have it.
      fewest: values in a message that has it.
      most: the same.
    """

    dtype: str = "none"
    present: int = 0
    fewest: int = 0
    most: int = 0

    def add(self, values: Any) -> None:
        """Look at the values of a message; None: it has none."""
        if values is None:
            return
        size = len(values)
        kind = "string" if values.dtype == STRING else str(values.dtype)
        if size or self.dtype == "none":
            self.dtype = kind if self.dtype in ("none", kind) else "mixed"
        self.fewest = size if not self.present else min(self.fewest, size)
        self.most = max(self.most, size)
        self.present += 1

    def add_all(self, kinds: Any, counts: Any) -> None:
        """Look at the feature in consecutive messages: kinds [n], `MISSING` where it has none, and counts [n] of values."""
        there = np.flatnonzero(kinds != MISSING)
        if not len(there):
            return
        kinds, counts = kinds[there], counts[there]
        if self.dtype == "none":
            self.dtype = _DTYPES[int(kinds[0])]
        if any(_DTYPES[kind] != self.dtype for kind in np.unique(kinds[counts > 0]).tolist()):
            self.dtype = "mixed"
        least = int(counts.min())
        self.fewest = least if not self.present else min(self.fewest, least)
        self.most = max(self.most, int(counts.max()))
        self.present += len(there)

    def shape(self, messages: int) -> tuple[int | None, ...]:
        """[] where every message has one value, [n] where every one has n, else [None]."""
        if self.present < messages or self.fewest != self.most:
            return (None,)
        return () if self.most == 1 else (self.most,)


def features_in(messages: Iterable[dict[str, Any]]) -> tuple[dict[str, FeatureFound], int]:
    """What the features of decoded messages are, by key in ascending order, and how many messages there were.

    >>> import numpy as np
    >>> found, messages = features_in([{"x": np.array([1, 2])}, {"x": np.array([3])}])
    >>> found["x"], messages
    (FeatureFound(dtype='int64', present=2, fewest=1, most=2), 2)
    """
    found: dict[str, FeatureFound] = {}
    number = 0
    for message in messages:
        for key, values in message.items():
            found.setdefault(key, FeatureFound()).add(values)
        number += 1
    return {key: found[key] for key in sorted(found)}, number


def declaration(feature: FeatureFound, messages: int) -> Any:
    """The declaration of a feature, for `parse_example`.

    >>> declaration(FeatureFound("int64", 2, 1, 1), 2)
    FixedLenFeature(shape=(), dtype=dtype('int64'), default_value=None)
    """
    dtype: Any = "int64" if feature.dtype == "none" else feature.dtype
    shape = feature.shape(messages)
    return (
        VarLenFeature(dtype) if None in shape else FixedLenFeature([size for size in shape if size is not None], dtype)
    )


def as_code(feature: FeatureFound, messages: int) -> str:
    """The declaration as Python has it."""
    made = declaration(feature, messages)
    dtype = "int64" if feature.dtype == "none" else feature.dtype
    if isinstance(made, FixedLenFeature):
        return f'di.io.FixedLenFeature({list(feature.shape(messages))}, "{dtype}")'
    return f'di.io.VarLenFeature("{dtype}")'
