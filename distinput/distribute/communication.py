# SPDX-License-Identifier: Apache-2.0
"""How workers communicate: TensorFlow's names for the engine, and the options that carry it."""

from dataclasses import dataclass
from enum import Enum

__all__ = [
    "CollectiveCommunication",
    "CollectiveHints",
    "CommunicationImplementation",
    "CommunicationOptions",
]


class CommunicationImplementation(Enum):
    """TensorFlow's choices of how workers communicate; AUTO takes an installed engine, RING and NCCL take "torch".

    Source: `tf.distribute.experimental.CommunicationImplementation`.
    """

    AUTO = "AUTO"
    NCCL = "NCCL"
    RING = "RING"


CollectiveCommunication = CommunicationImplementation


@dataclass(frozen=True)
class CommunicationOptions:
    """How workers communicate; the counterpart of `tf.distribute.experimental.CommunicationOptions`.

    Args:
      bytes_per_pack: accepted for compatibility with TensorFlow, and ignored: arrays are sent whole.
      timeout_seconds: how long a call waits for the other workers; None for 300 seconds.
      implementation: a `CommunicationImplementation` or its name, or the name of an engine: "torch", "mpi", "jax".
      compare_call_sites: True if all workers must call `reduce`, `gather` and the like from the same places in the
        program, so that metrics reduced in a different order are an error; False for workers that run different
        programs.

    Raises:
      ValueError: `bytes_per_pack` is negative, or `timeout_seconds` is not positive.
      TypeError: `implementation` is neither a `CommunicationImplementation` nor a name.

    >>> import distinput as di
    >>> di.distribute.experimental.CommunicationOptions(timeout_seconds=60.0, implementation="RING").implementation
    <CommunicationImplementation.RING: 'RING'>
    """

    bytes_per_pack: int = 0
    timeout_seconds: float | None = None
    implementation: CommunicationImplementation | str = CommunicationImplementation.AUTO
    compare_call_sites: bool = True

    def __post_init__(self) -> None:
        if self.bytes_per_pack < 0:
            raise ValueError(f"CommunicationOptions: bytes_per_pack must be at least 0, got {self.bytes_per_pack}")
        if self.timeout_seconds is not None and self.timeout_seconds <= 0:
            raise ValueError(f"CommunicationOptions: timeout_seconds must be positive, got {self.timeout_seconds}")
        given = self.implementation
        if not isinstance(given, CommunicationImplementation | str):
            raise TypeError(
                "CommunicationOptions: implementation must be a CommunicationImplementation or the name of an engine, "
                f"got {given!r}"
            )
        if isinstance(given, str) and given in CommunicationImplementation.__members__:
            object.__setattr__(self, "implementation", CommunicationImplementation[given])


def CollectiveHints(bytes_per_pack: int = 0, timeout_seconds: float | None = None) -> CommunicationOptions:  # noqa: N802 - TensorFlow's name
    """Make `CommunicationOptions`; the older name of TensorFlow.

    >>> import distinput as di
    >>> di.distribute.experimental.CollectiveHints(timeout_seconds=60.0).timeout_seconds
    60.0

    Source: `tf.distribute.experimental.CollectiveHints`.
    """
    return CommunicationOptions(bytes_per_pack=bytes_per_pack, timeout_seconds=timeout_seconds)
