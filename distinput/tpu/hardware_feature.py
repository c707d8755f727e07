# SPDX-License-Identifier: Apache-2.0
"""What a TPU has besides its cores."""

from dataclasses import dataclass
from enum import Enum
from typing import Any

__all__ = ["HardwareFeature", "HardwareFeatures"]


@dataclass(frozen=True)
class HardwareFeatures:
    """The features of a TPU as numbers, as a serialized topology has them.

    Args:
      embedding_feature: 0 no embedding hardware, 1 its first version, 2 its second one.
      num_embedding_devices_per_chip: how many of these devices a chip has.
    """

    embedding_feature: int = 0
    num_embedding_devices_per_chip: int = 0


class HardwareFeature:
    """What a TPU has besides its cores. JAX says nothing about it, so a topology of JAX's devices has none of it.

    Args:
      tpu_hardware_feature_proto: an object with `embedding_feature` and `num_embedding_devices_per_chip`, such as
        `TPUClusterResolver.tpu_hardware_feature`.

    Raises:
      TypeError: the object lacks them.

    >>> import distinput as di
    >>> from distinput.tpu.hardware_feature import HardwareFeatures
    >>> di.tpu.experimental.HardwareFeature(HardwareFeatures()).embedding_feature.value
    'UNSUPPORTED'

    Source: `tf.tpu.experimental.HardwareFeature`.
    """

    class EmbeddingFeature(Enum):
        """Versions of the embedding hardware."""

        UNSUPPORTED = "UNSUPPORTED"
        V1 = "V1"
        V2 = "V2"

    def __init__(self, tpu_hardware_feature_proto: Any) -> None:
        for name in ("embedding_feature", "num_embedding_devices_per_chip"):
            if not hasattr(tpu_hardware_feature_proto, name):
                raise TypeError(
                    f"HardwareFeature: needs an object with {name}, such as TPUClusterResolver.tpu_hardware_feature, got "
                    f"{tpu_hardware_feature_proto!r}"
                )
        self.tpu_hardware_feature_proto = tpu_hardware_feature_proto

    @property
    def embedding_feature(self) -> "HardwareFeature.EmbeddingFeature":
        """The version of the embedding hardware; a number that is not known counts as none."""
        kinds = list(HardwareFeature.EmbeddingFeature)
        number = int(self.tpu_hardware_feature_proto.embedding_feature)
        return kinds[number] if 0 <= number < len(kinds) else HardwareFeature.EmbeddingFeature.UNSUPPORTED

    @property
    def num_embedding_devices_per_chip(self) -> int:
        """The number of embedding devices of a chip."""
        return int(self.tpu_hardware_feature_proto.num_embedding_devices_per_chip)
