# SPDX-License-Identifier: Apache-2.0
"""The spec of iterators."""

from dataclasses import dataclass
from typing import ClassVar

from distinput.data.iterator import DatasetIterator
from distinput.values.spec import ElementsSpec

__all__ = ["IteratorSpec"]


@dataclass(frozen=True)
class IteratorSpec(ElementsSpec):
    """The spec of an iterator of a dataset; the counterpart of `tf.data.IteratorSpec`.

    Args:
      element_spec: the spec nest of its elements.

    >>> import distinput as di
    >>> di.data.IteratorSpec.from_value(iter(di.data.Dataset.range(3)))
    IteratorSpec(element_spec=TensorSpec(shape=(), dtype=int64))

    Source: `tf.data.IteratorSpec`.
    """

    value_type: ClassVar[type] = DatasetIterator
    called: ClassVar[str] = "an iterator"
