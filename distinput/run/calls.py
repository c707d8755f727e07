# SPDX-License-Identifier: Apache-2.0
"""Calling a Python function on every element of a stream, without making the first element wait for a whole block."""

from collections.abc import Callable, Iterator
from itertools import islice, starmap
from time import perf_counter
from typing import Any

import numpy as np

from distinput.columns.block import MOST_BYTES, Block, Failure, trouble_of
from distinput.columns.rows import PACE_SECONDS, Stream, passing_over
from distinput.columns.state import Mark
from distinput.values.leaves import is_ragged

__all__ = [
    "MOST_CALLS",
    "CalledBlock",
    "applied",
    "bytes_of",
    "called",
    "calls_of",
    "element_text",
    "note_element",
    "stopped",
]

CalledBlock = tuple[list[Any], Block, int, Mark]

MOST_CALLS = 4096
"""Elements of one block of results."""

_RESULT_BYTES = 1 << 20
"""Bytes of results kept for one block: more would be fresh memory each time, and would leave the caches before it is used."""

_STRIDE = 16
"""Quick calls between two looks at the clock."""

_BEHIND_ERROR = 64
"""Elements prepared for calls after one that failed: the more calls fail, the more often they are prepared again."""


_NUMBERS = (np.number, np.bool_, bool, int, float)


def called(
    stream: Stream,
    mark: Mark,
    call: Callable[..., Any],
    most: int = MOST_CALLS,
    *,
    unpack: bool = False,
    tolerant: bool = False,
) -> Iterator[CalledBlock]:
    """`call` on every element: yields (results, block, first row of them, mark after them).

    Results are sent when the block is over, when `most` are there, when `PACE_SECONDS` have passed, and before an error
    of `call` is raised, so that nothing that was made before the error is lost. With `unpack`, the components of a tuple are
    its arguments. A failure of the stream, and with `tolerant` one of `call`, comes as a block without results.
    """
    return applied(stream, mark, lambda rows: calls_of(call, rows, unpack=unpack), most, tolerant=tolerant)


def applied(
    stream: Stream,
    mark: Mark,
    results_of: Callable[[Block], Iterator[Any]],
    most: int = MOST_CALLS,
    note: Callable[[Exception, Any], None] | None = None,
    *,
    tolerant: bool = False,
) -> Iterator[CalledBlock]:
    """As `called`, with the results of each block from `results_of`, one for each element and made when asked for.

    The loop over elements runs inside the interpreter, so a call costs little more than itself; how many calls it makes
    between two looks at the clock depends on how long the last ones took. `note` is told of an error and its element.
    """
    clock = perf_counter
    stride = 1
    for rows, _, _, mark_at in passing_over(stream, mark):
        if type(rows) is Failure:
            yield [], rows, 0, mark_at(0)
            continue
        calls, first, until = results_of(rows), 0, rows.size
        while first < rows.size:
            results: list[Any] = []
            failure: Exception | None = None
            if first == until:
                until = rows.size
                calls = results_of(rows.rows(first, until))
            end = min(until, first + most)
            now, nbytes, number = clock(), 0, None
            deadline = now + PACE_SECONDS
            try:
                while True:
                    begin, wanted = now, min(first + len(results) + stride, end)
                    # `extend` keeps what was made before an error.
                    results.extend(islice(calls, wanted - first - len(results)))
                    if first + len(results) < wanted:
                        raise stopped()
                    if len(results) <= stride:
                        end = min(end, first + max(stride, _RESULT_BYTES // bytes_of(results[0])))
                        number = _number_type(results[0])
                    now, nbytes = clock(), nbytes + stride * _weight(results[-1], number)
                    if now > deadline or wanted == end or nbytes > MOST_BYTES:
                        break
                    if now - begin < PACE_SECONDS / 8:
                        stride = min(2 * stride, _STRIDE)
                    elif now - begin > PACE_SECONDS / 2:
                        stride = max(1, stride // 2)
            except Exception as error:  # noqa: BLE001 - raised again once everything before it has been sent
                trouble_of(error).mark = mark_at(first + len(results))
                (note or note_element)(error, rows.row(first + len(results)))
                failure = error
            if results:
                yield results, rows, first, mark_at(first + len(results))
            first += len(results)
            if failure is not None:
                if not tolerant:
                    raise failure
                first += 1
                yield [], Failure(failure), 0, mark_at(first)
                until = min(first + _BEHIND_ERROR, rows.size)
                calls = results_of(rows.rows(first, until))


def calls_of(call: Callable[..., Any], rows: Block, *, unpack: bool) -> Iterator[Any]:
    """The results of `call` on all rows, made as they are asked for."""
    if unpack and rows.structure.kind == "tuple":
        return starmap(call, rows.elements())
    return map(call, rows.elements())


def _number_type(result: Any) -> type[Any] | None:
    """The type of a number, whose bytes nobody needs to add up; None for anything else."""
    return type(result) if isinstance(result, _NUMBERS) else None


def _weight(result: Any, number: type[Any] | None) -> int:
    """`bytes_of`, in a moment where results are numbers of a type."""
    return 1 if type(result) is number else bytes_of(result)


def stopped() -> RuntimeError:
    """What to raise for a function that raised StopIteration, which would end a loop in silence."""
    return RuntimeError("the function raised StopIteration, which ends no dataset; return a value, or use take_while")


def note_element(error: Exception, element: Any) -> None:
    """Say with the error which element a function was given."""
    error.add_note(f"on {element_text(element)}")


def element_text(element: Any) -> str:
    """An element in a line, cut short."""
    text = repr(element)
    return f"element {text if len(text) <= 200 else text[:200] + '...'}"


def bytes_of(result: Any) -> int:
    """The bytes of the arrays and texts in a result; at least 1.

    >>> bytes_of((np.zeros(3), {"a": b"text", "b": ["more", 1]}))
    32
    """
    if isinstance(result, np.ndarray):
        return max(1, result.nbytes)
    if isinstance(result, bytes | str):
        return max(1, len(result))
    if is_ragged(result):
        return int(result.nbytes)
    items = result if isinstance(result, tuple | list) else result.values() if isinstance(result, dict) else ()
    return max(1, sum([bytes_of(item) for item in items if isinstance(item, _SIZED) or is_ragged(item)]))


_SIZED = (np.ndarray, bytes, str, tuple, list, dict)
