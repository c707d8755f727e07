# SPDX-License-Identifier: Apache-2.0
"""What an engine has to offer so that `Collectives` can be built on it: bytes of known sizes, and a notice board.

A channel never sees a call that could go wrong: sizes, dtypes and operations have been compared before. It raises
`ChannelLost` for whatever its engine reports, and never waits longer than it is told.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["Array", "Board", "Bytes", "Channel", "Handle"]

Array: TypeAlias = npt.NDArray[Any]
Bytes: TypeAlias = npt.NDArray[np.uint8]


class Handle(Protocol):
    """One operation under way."""

    def wait(self, seconds: float) -> bool:
        """Wait at most this long, 0 for a look; True when the operation is complete.

        Raises:
          ChannelLost: it never will be.
        """
        ...

    def value(self) -> Any:
        """The result, a fresh array; only after `wait` said True."""
        ...


class Board(Protocol):
    """One notice for each worker, which all others can read at any time, also while they wait in an operation.

    Both methods may be called from any thread, return within about a millisecond, and raise ChannelLost when the board
    cannot be reached.
    """

    @property
    def host(self) -> int | None:
        """The worker whose end takes the board away; None when there is no such one."""
        ...

    def write(self, notice: str) -> None:
        """Replace this worker's notice."""
        ...

    def read(self) -> Mapping[int, str]:
        """The newest notices of the others; a worker that never wrote one is left out."""
        ...

    def end(self) -> None:
        """Nobody writes or reads any more."""
        ...


class Channel(Protocol):
    """One stream of operations; every worker starts the same ones in the same order."""

    rank: int
    size: int
    reducible: Mapping[str, frozenset[str]]
    """For each operation the dtypes (`float32`) that `reduce` knows; the others are gathered and folded."""
    adds_at_once: bool
    """Whether `add` takes no longer than waking another thread; otherwise one is given what to add, and looks after it."""

    @property
    def board(self) -> Board:
        """Shared by a channel and all that `dup` made from it."""
        ...

    def gather(self, mine: Bytes) -> Handle:
        """[n] of every worker, n the same on all -> [size, n]."""
        ...

    def gather_uneven(self, mine: Bytes, sizes: Sequence[int]) -> Handle:
        """[sizes[rank]] of every worker -> list of [sizes[i]]."""
        ...

    def reduce(self, values: Array, op: str) -> Handle:
        """[n] of every worker, n, dtype and op the same on all -> [n]."""
        ...

    def broadcast(self, values: Bytes, root: int) -> Handle:
        """[n] of the root, a buffer of the same size on the others -> [n]."""
        ...

    def add(self, values: Array) -> Handle:
        """int64 [n] of every worker, summed -> [n]; apart from the other operations, and never blocking the caller."""
        ...

    def dup(self, name: str, timeout: float) -> "Channel":
        """Another channel between the same workers, whose operations do not meet those of this one.

        Raises:
          ChannelLost: the others did not come.
        """
        ...

    def close(self, *, broken: bool) -> None:
        """Give everything back, without waiting for anybody.

        Args:
          broken: operations may be under way that never end.
        """
        ...
