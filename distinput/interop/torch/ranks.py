# SPDX-License-Identifier: Apache-2.0
"""The rank of this process and the number of ranks: given, or those of `torch.distributed`, or those of the launcher."""

import os
from dataclasses import dataclass

import torch.distributed

from distinput.cluster.resolve import resolve
from distinput.errors import InvalidArgumentError
from distinput.plan.check import at_least

__all__ = ["Ranks"]


@dataclass(frozen=True)
class Ranks:
    """The rank and the number of ranks as given; what was not given is looked up when it is needed.

    Args:
      rank: the rank of this process, from 0; None: not given.
      world_size: how many ranks there are; None: not given.

    Raises:
      InvalidArgumentError: there is no such rank.
    """

    rank: int | None = None
    world_size: int | None = None

    def __post_init__(self) -> None:
        if self.rank is not None:
            at_least("IterableView", "rank", self.rank, 0)
        if self.world_size is not None:
            at_least("IterableView", "world_size", self.world_size, 1)
        if self.rank is not None and self.world_size is not None:
            _check(self.rank, self.world_size)

    def found(self) -> tuple[int, int]:
        """Rank and number of ranks: those given, else those of an initialized `torch.distributed`, else those of the launcher.

        Raises:
          InvalidArgumentError: they contradict each other; a rank was given, and nothing says of how many.
          ValueError: variables of the launcher contradict each other.
        """
        if self.rank is not None and self.world_size is not None:
            return self.rank, self.world_size
        if self.world_size == 1:
            return 0, 1
        rank, size, source = _here()
        if self.world_size is not None and self.world_size != size:
            raise InvalidArgumentError(
                f"IterableView: world_size={self.world_size} was given, but {source} says {size}; pass "
                "rank= as well, or neither"
            )
        if self.rank is not None and source == _NOBODY:
            raise InvalidArgumentError(
                f"IterableView: rank={self.rank} was given without world_size, and neither torch.distributed nor a launcher "
                "says how many ranks there are, so each would read everything; pass world_size= as well, or neither"
            )
        made = rank if self.rank is None else self.rank
        _check(made, size)
        return made, size


def _check(rank: int, size: int) -> None:
    if rank >= size:
        raise InvalidArgumentError(f"IterableView: rank must be from 0 to {size - 1}, got {rank}")


_NOBODY = "the environment (single)"
"""The source of a process that no launcher started."""


def _here() -> tuple[int, int, str]:
    """Rank, number of ranks, and who says so."""
    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        cluster = resolve()
        return (
            cluster.rank,
            cluster.size,
            _NOBODY if cluster.source == "single" else f"the environment ({cluster.source})",
        )
    rank, size = torch.distributed.get_rank(), torch.distributed.get_world_size()
    told = os.environ.get("RANK", ""), os.environ.get("WORLD_SIZE", "")
    if all(told) and told != (str(rank), str(size)):
        raise InvalidArgumentError(
            f"IterableView: torch.distributed says rank {rank} of {size}, the environment says RANK={told[0]} and "
            f"WORLD_SIZE={told[1]}; pass rank= and world_size= to choose"
        )
    return rank, size, "torch.distributed"
