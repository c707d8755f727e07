# SPDX-License-Identifier: Apache-2.0
"""All replicas take part in adding: around a ring, or in two halves."""

from collections.abc import Sequence
from typing import Any, ClassVar

from distinput.distribute.communication import CommunicationOptions
from distinput.distribute.cross_device.cross_device_ops import CrossDeviceOps, library_of, mirrored_at
from distinput.distribute.cross_device.orders import Array, in_halves, in_ring, packed
from distinput.distribute.devices.arrays import ArrayOps
from distinput.distribute.reduce_op import ReduceOp
from distinput.distribute.values import DistributedValues, Mirrored

__all__ = ["AllReduce", "HierarchicalCopyAllReduce", "NcclAllReduce"]


class AllReduce(CrossDeviceOps):
    """The base of `NcclAllReduce` and `HierarchicalCopyAllReduce`."""

    _who: ClassVar[str]

    def __init__(self, num_packs: int = 1) -> None:
        if num_packs < 0:
            raise ValueError(f"{self._who} requires num_packs >= 0, but {num_packs} is specified")
        self._num_packs = num_packs

    def reduce_implementation(
        self,
        reduce_op: ReduceOp,
        per_replica_value: DistributedValues,
        destinations: Any,
        options: CommunicationOptions,
    ) -> Mirrored:
        return self.batch_reduce_implementation(reduce_op, [(per_replica_value, destinations)], options)[0]

    def batch_reduce_implementation(
        self,
        reduce_op: ReduceOp,
        value_destination_pairs: Sequence[tuple[DistributedValues, Any]],
        options: CommunicationOptions,
    ) -> list[Mirrored]:
        values = [value.values for value, _ in value_destination_pairs]
        ops = library_of(*[value for value, _ in value_destination_pairs])
        made = packed(reduce_op, values, self._add, self._num_packs, ops)
        return [mirrored_at(total, where) for total, (_, where) in zip(made, value_destination_pairs, strict=True)]

    @staticmethod
    def _add(parts: Sequence[Array], ops: ArrayOps) -> Array:
        raise NotImplementedError


class NcclAllReduce(AllReduce):
    """Adds in the order of a ring, as NCCL does: chunk c of n begins at replica c and goes round.

    There is no NCCL underneath: what the class chooses is the order of additions, and so the last bits of sums of floats.

    Args:
      num_packs: values reduced together are laid end to end and cut into this many packs, each of which goes round by
        itself; 0 sends each value by itself.

    Raises:
      ValueError: `num_packs` is negative.

    >>> import distinput as di
    >>> strategy = di.distribute.MirroredStrategy(["GPU:0", "GPU:1"], cross_device_ops=di.distribute.NcclAllReduce())
    >>> strategy.reduce("MEAN", di.distribute.PerReplica([1.0, 3.0]), axis=None)
    np.float64(2.0)

    Source: `tf.distribute.NcclAllReduce`.
    """

    _who = "NCCL all-reduce"
    _add = staticmethod(in_ring)


class HierarchicalCopyAllReduce(AllReduce):
    """Adds the replicas of each half among themselves, then the two sums: (0 + 1) + (2 + 3).

    Args:
      num_packs: accepted for compatibility with TensorFlow; packs do not change the order of these additions.

    Raises:
      ValueError: `num_packs` is negative.

    >>> import distinput as di
    >>> ops = di.distribute.HierarchicalCopyAllReduce(num_packs=2)
    >>> strategy = di.distribute.MirroredStrategy(["GPU:0", "GPU:1"], cross_device_ops=ops)
    >>> strategy.reduce("SUM", di.distribute.PerReplica([1.0, 3.0]), axis=None)
    np.float64(4.0)

    Source: `tf.distribute.HierarchicalCopyAllReduce`, which loses the last replica if their number is odd.
    """

    _who = "HierarchicalCopy"
    _add = staticmethod(in_halves)
