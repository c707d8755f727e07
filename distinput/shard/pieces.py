# SPDX-License-Identifier: Apache-2.0
"""Which rows of the whole data policy DATA gives to one worker, as numbers.

Each global batch of k rows is cut into N pieces of ceil(k / N) rows, of which later ones may be short or empty; piece number
p of all pieces goes to worker p modulo W (tensorflow/core/grappler/optimizers/data/auto_shard.cc: RewriteRebatchV2ToV1).
"""

from dataclasses import dataclass

import numpy as np

from distinput.core.column import Ints

__all__ = ["Pieces"]


@dataclass(frozen=True)
class Pieces:
    """The pieces of one worker.

    Args:
      rows: of the whole data; None: without end.
      batch_size: rows of a global batch.
      drop_remainder: leave out a last batch that is not full.
      pieces: N, of each batch.
      num_workers: W.
      worker: which one, from 0.
    """

    rows: int | None
    batch_size: int
    drop_remainder: bool
    pieces: int
    num_workers: int
    worker: int

    @property
    def count(self) -> int | None:
        """How many pieces this worker has; None: without end.

        >>> Pieces(10, 4, False, 4, 2, 1).count
        6
        """
        if self.rows is None:
            return None
        batches = self.rows // self.batch_size if self.drop_remainder else -(-self.rows // self.batch_size)
        return len(range(self.worker, batches * self.pieces, self.num_workers))

    def bounds(self, first: int, stop: int) -> tuple[Ints, Ints]:
        """Where the worker's pieces `first` to `stop` begin and end among the rows.

        >>> Pieces(10, 4, False, 4, 2, 1).bounds(0, 6)
        (array([ 1,  3,  5,  7,  9, 10]), array([ 2,  4,  6,  8, 10, 10]))
        """
        batch, piece = np.divmod(self.worker + self.num_workers * np.arange(first, stop), self.pieces)
        begin = batch * self.batch_size
        size = self.batch_size if self.rows is None else np.minimum(self.batch_size, self.rows - begin)
        each = -(-size // self.pieces)
        return begin + np.minimum(piece * each, size), begin + np.minimum((piece + 1) * each, size)
