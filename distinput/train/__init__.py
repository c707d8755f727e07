# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of variables and iterators, with the names of `tf.train`, and ledgers of what was seen."""

from typing import TYPE_CHECKING

from distinput.names.lazy import lazy

if TYPE_CHECKING:
    from distinput.train.checkpoint import Checkpoint as Checkpoint
    from distinput.train.ledger import Ledger as Ledger
    from distinput.train.ledger import NotedRow as NotedRow
    from distinput.train.manager import CheckpointManager as CheckpointManager
    from distinput.train.manager import latest_checkpoint as latest_checkpoint
    from distinput.train.manager import list_variables as list_variables
    from distinput.train.manager import load_variable as load_variable
else:
    __getattr__, __dir__, __all__ = lazy(__name__)
