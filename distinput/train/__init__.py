# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of variables and iterators, with the names of `tf.train`, and ledgers of what was seen."""

from distinput.train.checkpoint import Checkpoint
from distinput.train.ledger import Ledger
from distinput.train.manager import CheckpointManager, latest_checkpoint, list_variables, load_variable

__all__ = ["Checkpoint", "CheckpointManager", "Ledger", "latest_checkpoint", "list_variables", "load_variable"]
