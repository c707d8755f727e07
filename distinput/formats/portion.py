# SPDX-License-Identifier: Apache-2.0
"""A portion: rows of a file that are decoded at once, and may be decoded before they are wanted."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from distinput.core.block import Block

__all__ = ["Portion"]


@dataclass(frozen=True, slots=True)
class Portion:
    """Rows of a file that are decoded at once.

    The two calls are apart so that the long one can be made ahead: `decode` spends its time without Python's lock, on any
    thread; `blocks` is Python's work, done when the rows are wanted.

    Args:
      rows: how many it gives.
      nbytes: about the memory that they take once they are decoded.
      follows: true when the portion before it must have been decoded, as where both come from one stream.
      decode: called once; what it gives is for `blocks`. Errors of the file are raised by either.
      blocks: the rows, each block with the position behind it.
    """

    rows: int
    nbytes: int
    follows: bool
    decode: Callable[[], Any]
    blocks: Callable[[Any], Iterator[tuple[Block, dict[str, Any]]]]
