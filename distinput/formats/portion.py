# SPDX-License-Identifier: Apache-2.0
"""A portion: rows of a file that are decoded together, possibly before they are requested."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from distinput.core.block import Block

__all__ = ["Portion"]


@dataclass(frozen=True, slots=True)
class Portion:
    """Rows of a file that are decoded together.

    The work is split into two calls so that the long one can run ahead: `decode` mostly runs without the GIL, on any
    thread; `blocks` is Python code that runs when the rows are requested.

    Args:
      rows: number of rows.
      nbytes: approximate memory of the decoded rows.
      follows: true if the previous portion must be decoded first, because both come from one stream.
      decode: called once; its result is passed to `blocks`. Either may raise errors of the file.
      blocks: yields the rows, each block with the position after it.
      past: of the position of a bad record among these rows, what of the portion is behind it, None if nothing is, and the
        position there; None: nothing behind it can be read.
      waits: true if `decode` mostly waits for a network, so more of them should be under way.
    """

    rows: int
    nbytes: int
    follows: bool
    decode: Callable[[], Any]
    blocks: Callable[[Any], Iterator[tuple[Block, dict[str, Any]]]]
    past: "Callable[[dict[str, Any] | None], tuple[Portion | None, dict[str, Any]]] | None" = None
    waits: bool = False

    def changed(self, change: Callable[[Block], Block]) -> "Portion":
        """The same rows, each block of which is changed."""
        past = self.past
        if past is None:
            behind = None
        else:

            def behind(position: dict[str, Any] | None) -> "tuple[Portion | None, dict[str, Any]]":
                rest, at = past(position)
                return None if rest is None else rest.changed(change), at

        def blocks(decoded: Any) -> Iterator[tuple[Block, dict[str, Any]]]:
            return ((change(block), after) for block, after in self.blocks(decoded))

        return replace(self, blocks=blocks, past=behind)
