# SPDX-License-Identifier: Apache-2.0
"""The counterpart of `tf.random`: the seed that steps without one follow. Functions of `map` draw with `rng=True`."""

from typing import TYPE_CHECKING

from distinput.names.lazy import lazy
from distinput.plan.check import integer
from distinput.plan.families import set_global_seed


def set_seed(seed: int) -> None:
    """Set the global seed. Random steps without a seed draw theirs from it, in the order in which they are made.

    So a program that makes the same datasets has the same orders when it runs again. Calling it again begins again. Steps that
    were made before keep their seeds, and steps with a seed of their own have orders that follow from that alone, where
    TensorFlow's follow from both.

    Args:
      seed: any integer.

    Raises:
      TypeError: it is not an integer.

    >>> import distinput as di
    >>> found = []
    >>> for _ in range(2):
    ...     di.random.set_seed(42)
    ...     found.append([di.data.Dataset.range(9).shuffle(9).to_list() for _ in range(2)])
    >>> found[0] == found[1], found[0][0] == found[0][1]
    (True, False)

    Source: `tf.random.set_seed`.
    """
    set_global_seed(integer("set_seed", "seed", seed))


if not TYPE_CHECKING:  # which would take every name for one that is there
    __getattr__, __dir__, __all__ = lazy(__name__, own=("set_seed",))
