# SPDX-License-Identifier: Apache-2.0
"""Which replica a value is made for."""

__all__ = ["ValueContext"]


class ValueContext:
    """Which replica a value is made for.

    Args:
      replica_id_in_sync_group: the replica's number among all replicas.
      num_replicas_in_sync: the number of all replicas.

    Source: `tf.distribute.experimental.ValueContext`.
    """

    __slots__ = ("num_replicas_in_sync", "replica_id_in_sync_group")

    def __init__(self, replica_id_in_sync_group: int = 0, num_replicas_in_sync: int = 1) -> None:
        self.replica_id_in_sync_group = replica_id_in_sync_group
        self.num_replicas_in_sync = num_replicas_in_sync

    def __repr__(self) -> str:
        return f"ValueContext(replica id {self.replica_id_in_sync_group}, total: {self.num_replicas_in_sync})"
