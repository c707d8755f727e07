# SPDX-License-Identifier: Apache-2.0
"""The lockstep in which workers agree, ahead of time, on whether there is another step."""

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from distinput.columns.state import State
from distinput.distribute.collectives.channel import packed, unpacked
from distinput.errors import AbortedError, CollectiveError, FailedPreconditionError

if TYPE_CHECKING:
    from distinput.distribute.collectives.agreements import Agreement
    from distinput.distribute.collectives.collectives import Collectives


# ----------------------------------------------------------------------------
# Lockstep: workers agree, ahead of time, on whether there is another step and whether any input failed.
#
# While step k is used, the agreement on the steps from k + `AHEAD` on is under way, so a loop hardly waits for it. One
# agreement covers a few steps, since starting one costs more than waiting for it. Every worker takes part in the same
# number of agreements, so that they stay in order.
# ----------------------------------------------------------------------------


AHEAD = 4
"""Steps between the one in use and those that are agreed on meanwhile."""
BLOCK = 4
"""Steps per agreement; the first agreements cover fewer, so that the first step is ready soon."""
_FACTS = 5
"""Values per step: elements, rows, failures, whether rows are lacking, and the square of a size (see `_size_facts`)."""
_LARGEST = 1 << 20  # sizes are compared modulo this number, so that the sums of their squares fit into an agreement


_Drawn = tuple[list[Any], State, Exception | None]
"""What one worker has drawn for one step: an element for each replica that has one, the state after them, an error instead."""


class Lockstep:
    """Iterates steps such that all workers end at the same one.

    Args:
      control: a channel of its own for agreements.
      draw: takes the next elements of this worker's input, none at its end, and returns them with the state after them.
      before: the input's state before the first of them.
      rows_of: counts the rows of elements, to skip steps in which no worker has a row. None keeps every step.
      ahead: how many steps are agreed on before they are needed.
      about: names the input, the same on every worker; called at the first step.
      alike: True if all workers draw the same global batches, so that they must end together, with equal numbers of
        rows.
      hints: harmless differences between the workers, for the error raised if their batches do not match.
      lacks: tells of this worker's elements whether a replica is without rows and has to know their shape from another
        worker; only if workers are not alike.
    """

    def __init__(
        self,
        control: "Collectives",
        draw: Callable[[], tuple[list[Any], State]],
        before: State,
        rows_of: Callable[[list[Any]], int] | None = None,
        ahead: int = AHEAD,
        about: Callable[[], str] = str,
        *,
        alike: bool = False,
        hints: Sequence[str] = (),
        lacks: Callable[[list[Any]], bool] | None = None,
    ) -> None:
        self._control, self._draw, self._rows_of, self._ahead = control, draw, rows_of, ahead
        self._alike, self._hints, self._lacks = alike, hints, lacks
        self._waiting: deque[_Drawn] = deque()
        # The agreements on the waiting steps, without those whose results are already in `_facts`.
        self._agreements: deque[Agreement] = deque()
        self._facts: deque[tuple[int, ...]] = deque()
        self.state = before
        """The input's state after the last step that `next` returned."""
        self.before = before
        """Its state before that step."""
        self._block = 0
        self._failed = False
        self._ended = False
        self.failed = False
        """True if no more steps come because an input failed, or the workers read other elements."""
        self._about: Callable[[], str] | str = about
        self.rows = 0
        """The number of rows of all workers together in the last step that `next` returned."""
        self.lacking = False
        """True if `lacks` was true for some worker in that step."""

    def next(self) -> list[Any] | None:
        """This worker's elements of the next step, an empty list if it has run out; None when all workers have.

        Raises:
          Exception: the error of this worker's input.
          AbortedError: another worker's input failed; the message names the worker and its error.
          FailedPreconditionError: the workers had to draw the same global batches, and did not.
        """
        waiting, facts = self._waiting, self._facts
        self.before = self.state
        while not self._ended:
            while len(waiting) <= self._ahead:
                self._post()
            if not facts:
                facts.extend(zip(*[iter(self._agreements[0].result())] * _FACTS, strict=True))
                self._agreements.popleft()
            parts, state, error = waiting.popleft()
            have, rows, failed, total, squares = facts.popleft()
            if failed:
                self.failed = True
                self._end()
                self._raise(error)
            # All s_i are equal exactly if size * sum(s_i ** 2) is sum(s_i) ** 2.
            if self._alike and self._control.size * squares != total * total:
                self.failed = True
                self._end()
                self._raise_apart(parts)
            if not have:
                self._end()
                break
            self.state, self.rows, self.lacking = state, rows, not self._alike and total > 0
            if rows or self._rows_of is None:
                return parts
        return None

    def close(self) -> None:
        """Wait for the agreements under way, so that those of a later iteration stay in order.

        If the workers have lost one another, the wait ends without an error; the next call between workers raises it.
        """
        if not self._ended:
            with suppress(CollectiveError):
                self._end()

    def _post(self) -> None:
        """Draw the next few steps, and start an agreement on them."""
        self._block = min(self._block + 1, BLOCK)
        facts: list[int] = []
        state = self._waiting[-1][1] if self._waiting else self.state
        for _ in range(self._block):
            parts: list[Any] = []
            rows, error = 0, None
            if not self._failed:
                try:
                    parts, state = self._draw()
                    rows = 0 if self._rows_of is None else self._rows_of(parts)
                except Exception as failure:  # noqa: BLE001 - raised in its step, on all workers
                    error, parts, rows, self._failed = failure, [], 0, True
            self._waiting.append((parts, state, error))
            facts += (len(parts), rows, int(error is not None), *self._size_facts(parts, rows))
        if callable(self._about):
            self._about = self._about()
        self._agreements.append(self._control.agree(facts, self._about))

    def _size_facts(self, parts: list[Any], rows: int) -> tuple[int, int]:
        """A size that must be equal on all workers and its square, if they are alike; else whether rows are lacking."""
        if not self._alike:
            return (int(self._lacks is not None and self._lacks(parts)), 0)
        size = (rows + 1) % _LARGEST if parts else 0
        return size, size * size

    def _end(self) -> None:
        self._ended = True
        self._waiting.clear()
        self._facts.clear()
        while self._agreements:
            self._agreements.popleft().result()

    def _raise(self, error: Exception | None) -> None:
        """Exchange the errors, and raise."""
        said = None if error is None else f"{type(error).__name__}: {_text(error)}"
        notes = [unpacked(data)[0] for data in self._control.all_gather(packed(said, []), name="a failed input")]
        if error is not None:
            raise error
        worker = next(i for i, note in enumerate(notes) if note is not None)
        raise AbortedError(f"the input of worker {worker} of {len(notes)} failed in this step: {notes[worker]}")

    def _raise_apart(self, parts: list[Any]) -> None:
        """Exchange the numbers of rows of this step, and raise an error that names the differences."""
        rows = self._rows_of(parts) if parts and self._rows_of is not None else None
        notes = [unpacked(data)[0] for data in self._control.all_gather(packed(rows, []))]
        had = ["nothing" if n is None else f"a batch of {n} rows" for n in notes]
        raise FailedPreconditionError(
            "the workers do not read the same elements, so records would be lost or delivered twice: in this step "
            + ", ".join([f"worker {worker} has {what}" for worker, what in enumerate(had)])
            + "".join([f"; {hint}" for hint in self._hints])
            + "; build the dataset alike on every worker, of the same data, with functions that decide alike, or use policy OFF"
        )


def _text(error: Exception) -> str:
    return "; ".join([str(error), *getattr(error, "__notes__", [])])
