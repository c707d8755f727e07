# SPDX-License-Identifier: Apache-2.0
"""Results of functions that are called for whole blocks, in pieces that stay in a core's cache."""

from collections.abc import Callable, Iterator
from itertools import chain as joined

from distinput.core.block import Block
from distinput.core.failure import Failure
from distinput.core.rows import PACE_SECONDS, Stream, passing_over
from distinput.core.run import Run
from distinput.core.state import State
from distinput.functions.claim import MadeBlock, behind
from distinput.functions.parts import Calling
from distinput.functions.vectorized.verdict import Vectorizer

__all__ = ["called_by_block"]

_PIECE_BYTES = 1 << 18
"""Bytes of the elements, or of the results, of one piece."""

_FIRST, _FEWEST, _MOST = 64, 16, 32768
"""Elements of the first piece, whose time tells how many the next ones may have; and the fewest and the most of a piece."""


def called_by_block(
    upstream: Stream,
    state: State,
    verdict: Vectorizer,
    calling: Calling,
    by_element: Callable[[Stream, State], Iterator[MadeBlock]],
) -> Iterator[MadeBlock]:
    """Blocks of results; `by_element` takes over with the first element for which the verdict is against whole blocks."""
    run, counter = calling.run, calling.counter
    latest: list[tuple[Block, State]] = []

    def kept() -> Stream:
        for pair in upstream:
            latest[:] = [pair]
            yield pair

    most = run.at_once(_FIRST)
    for rows, _, _, mark_at in passing_over(kept(), state):
        if type(rows) is Failure:
            yield rows, mark_at, rows
            continue
        first = 0
        row_bytes = rows.nbytes / max(1, rows.size)
        while first < rows.size:
            if most < _FEWEST or verdict.refuses(row_bytes):
                counter.choice = ""
                yield from by_element(joined(latest, upstream), mark_at(first))
                return
            part = rows.rows(first, first + most)
            begin = Run.clock()
            made = verdict.made(part)
            counter.choice = "whole blocks" if made is not None else "element by element"
            if made is not None:
                yield made, behind(mark_at, first), part
                row_bytes = max(row_bytes, made.nbytes / made.size)
            elif verdict.reason is None:
                done = calling.work(part, None)
                yield from calling.delivered(done, part, behind(mark_at, first))
            else:
                continue
            pace = PACE_SECONDS * part.size / max(Run.clock() - begin, 1e-9)
            piece = max(_FEWEST, _PIECE_BYTES / max(1.0, row_bytes))
            most = run.at_once(int(max(_FEWEST, min(pace, 8 * part.size, piece, _MOST))))
            first += part.size
