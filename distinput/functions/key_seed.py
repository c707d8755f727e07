# SPDX-License-Identifier: Apache-2.0
"""A key of Philox in the place of a seed."""

from typing import Any

import numpy as np
from numpy.random.bit_generator import ISpawnableSeedSequence

__all__ = ["KeySeed"]


class KeySeed(ISpawnableSeedSequence):
    """What `Philox(key=...)` should be: that asks the operating system for a seed as well.

    Which takes twice as long as all else, and generators that are spawned would follow from that seed.

    Args:
      key: uint64 [2].
    """

    def __init__(self, key: Any) -> None:
        self.key = key
        self._children: np.random.SeedSequence | None = None

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> Any:
        """The key."""
        return self.key

    def spawn(self, n_children: int) -> Any:
        """Seeds for more generators, others in each call."""
        self._children = self._children or np.random.SeedSequence(np.asarray(self.key).tolist())
        return self._children.spawn(n_children)
