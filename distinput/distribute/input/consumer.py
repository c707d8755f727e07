# SPDX-License-Identifier: Apache-2.0
"""Who takes the steps of a distributed dataset."""

from dataclasses import dataclass
from typing import Literal

from distinput.distribute.replicas import Replicas

__all__ = ["Consumer"]


@dataclass(frozen=True)
class Consumer:
    """Replicas that are to be fed, and how their strategy wants that.

    Args:
      replicas: which take the steps.
      strategy: theirs, looked at by identity alone: steps are taken where no other one is current.
      name: the name of its class, for messages.
      splits_batches: False to leave global batches whole.
      keeps_partial_steps: False to drop a last step that has no element for some replica, as TensorFlow does there.
      per_replica_input: whether a dataset function makes one dataset for each replica where PER_REPLICA is asked for, one for
        the worker all the same, or none.
    """

    replicas: Replicas
    strategy: object
    name: str
    splits_batches: bool = True
    keeps_partial_steps: bool = True
    per_replica_input: Literal["made", "ignored", "refused"] = "refused"
