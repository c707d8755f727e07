# SPDX-License-Identifier: Apache-2.0
"""`Vectorizer`: whether the functions of a `map` are called for whole blocks, and if not, why not."""

from collections.abc import Callable, Sequence
from contextvars import copy_context
from typing import Any

import numpy as np

from distinput.core.block import Block
from distinput.core.spec import Spec
from distinput.functions.vectorized.refusal import Refused, Unfit
from distinput.functions.vectorized.whole_block import WholeBlock

__all__ = ["Vectorizer"]

_MOST_MISSES = 8
"""Blocks in a row that need calls for each element, after which it is not tried any more."""

_MOST_ROW_BYTES = 1 << 14
""""auto" leaves out larger elements: there a call costs little besides its work."""


class Vectorizer:
    """Calls functions for whole blocks as long as that works.

    Args:
      functions: the user's; the first one gets the elements.
      call: all functions, for one element.
      measured: whether operations that are not exact by construction are measured, and whole blocks are tried for few and for
        large elements too.
      reason: why whole blocks are not even tried.
      said: what the user says about the results.

    Attributes:
      reason: why the functions are called element by element, as a clause after "since"; None while they are not.
      blocks: how many whole blocks were made.
    """

    def __init__(
        self,
        functions: Sequence[Callable[..., Any]],
        call: Callable[[Any], Any],
        *,
        measured: bool,
        reason: str | None = None,
        said: Spec | None = None,
    ) -> None:
        self.reason = reason
        self._said = said
        self.blocks = 0
        self._functions, self._call, self._measured = functions, call, measured
        self._whole: WholeBlock | None = None
        self._misses = 0

    def refuses(self, row_bytes: float) -> bool:
        """Whether calls for each element are to be made, for elements of this size."""
        if self.reason is None and not self._measured and not self.blocks and row_bytes > _MOST_ROW_BYTES:
            self.reason = f"elements of {row_bytes:,.0f} bytes gain little; vectorize=True takes them too"
        return self.reason is not None

    def __str__(self) -> str:
        if self.reason is not None:
            return f"element by element, since {self.reason}"
        return "whole blocks" if self.blocks else "whole blocks are tried"

    def made(self, rows: Block) -> Block | None:
        """The results for these rows; None: call the functions for each of them."""
        if self.reason is not None:
            return None
        try:
            # In a context of its own, since an interrupt may come before errstate has restored the one that it found.
            block = copy_context().run(self._strictly, rows)
        except Refused as refusal:
            self.reason = str(refusal)
            return None
        except (Unfit, Exception):  # noqa: BLE001 - calls for each element say which one is at fault, and why
            self._misses += 1
            if self._misses >= _MOST_MISSES:
                self.reason = f"the values of {_MOST_MISSES} blocks in a row raised errors or warnings"
            return None
        self._misses = 0
        self.blocks += 1
        return block

    def _strictly(self, rows: Block) -> Block:
        with np.errstate(**_strict()):
            if self._whole is None:
                self._whole = WholeBlock(self._functions, measured=self._measured, said=self._said)
            made = self._whole(rows)
            self._whole.compared(rows, made, self._call)
            return made


def _strict() -> dict[str, Any]:
    """Floating-point errors of a block are raised, so that calls for each element give the warnings they always gave."""
    return {name: "ignore" if how == "ignore" else "raise" for name, how in np.geterr().items()}
