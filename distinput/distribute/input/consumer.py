# SPDX-License-Identifier: Apache-2.0
"""The consumer of a distributed dataset: the replicas that take its steps."""

from dataclasses import dataclass
from typing import Literal

from distinput.distribute.replicas import Replicas

__all__ = ["Consumer"]


@dataclass(frozen=True)
class Consumer:
    """The replicas that take the steps of a distributed dataset, and what their strategy requires of the steps.

    Args:
      replicas: the replicas.
      strategy: their strategy, compared by identity only: steps are not taken while another one is current.
      name: the name of its class, for messages.
      splits_batches: False to leave global batches whole.
      keeps_partial_steps: False to drop a last step that has no element for some replica, as TensorFlow does there.
      per_replica_input: what PER_REPLICA does to a dataset function: "made" calls it for each replica, "ignored" calls
        it once for the worker, "refused" raises.
      only_numbers: True if steps that are put on devices must consist of numbers.
    """

    replicas: Replicas
    strategy: object
    name: str
    splits_batches: bool = True
    keeps_partial_steps: bool = True
    per_replica_input: Literal["made", "ignored", "refused"] = "refused"
    only_numbers: bool = False
