# SPDX-License-Identifier: Apache-2.0
"""The counterpart of `tf.compat.v1.distribute.experimental`."""

from typing import TYPE_CHECKING, Any

from distinput.distribute import experimental
from distinput.names.lazy import lazy


class TPUStrategy(experimental.TPUStrategy):
    """`distribute.TPUStrategy` with the arguments of the oldest name.

    Args:
      tpu_cluster_resolver: as for `distribute.TPUStrategy`.
      steps_per_run: kept, for loops written for estimators.
      device_assignment: where the replicas are.

    Source: `tf.compat.v1.distribute.experimental.TPUStrategy`.
    """

    def __init__(
        self, tpu_cluster_resolver: Any = None, steps_per_run: int | None = None, device_assignment: Any = None
    ) -> None:
        super().__init__(tpu_cluster_resolver, device_assignment, steps_per_run=steps_per_run)


if not TYPE_CHECKING:  # which would take every name for one that is there
    __getattr__, __dir__, __all__ = lazy(__name__, own=("TPUStrategy",))
