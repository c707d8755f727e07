# SPDX-License-Identifier: Apache-2.0
"""Groups of elements with the same key that wait until they are full, and the positions from which a restart finds them."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from distinput.columns.block import Block, Failure, concat_blocks
from distinput.columns.column import Ints
from distinput.columns.rows import Stream
from distinput.columns.state import Mark, State
from distinput.kernels.sequence_packing import fill_windows
from distinput.plan.node import Node
from distinput.run.run import note_element

_MOST_SENT = 64
"""Keys whose sent groups a state lists; if there are more, a restart looks at all elements again."""

_MOST_BLOCKS = 16
"""Blocks that a group may keep alive for single rows of them."""


class _Group:
    """The waiting elements of one key: the row number of the first, its mark in the input, and all of them.

    `failures` counts the failures before the first.
    """

    __slots__ = ("failures", "first", "fresh", "mark", "parts")

    def __init__(self, first: int, mark: Mark, failures: int) -> None:
        self.first, self.mark, self.failures = first, mark, failures
        self.parts: list[Block] = []
        self.fresh = 0

    def add(self, rows: Block) -> None:
        """Let rows of a block wait. Spans keep the whole block alive, so they are copied before they keep many alive."""
        self.parts.append(rows)
        self.fresh += 1
        if self.fresh > _MOST_BLOCKS:
            self.parts[-self.fresh :] = [concat_blocks(self.parts[-self.fresh :])]
            self.fresh = 0


class _Parts:
    """The rows of a block sorted by the groups that they join: first those of complete groups, then those that wait.

    Args:
      order: places of rows in the block.
      bounds: where in `order` each part begins, and where the last one ends.
      owners: the number of each part's key.
      behind: for each complete group, the place after its last row.
      waiting: numbers of the keys whose elements waited before this block, so that their first part is not a whole group.
    """

    def __init__(self, order: Ints, bounds: list[int], owners: list[int], behind: list[int], waiting: set[int]) -> None:
        self._order, self.bounds, self.owners, self.behind = order, bounds, owners, behind
        self.complete = len(behind)
        self.opened: list[tuple[int, int]] = []
        """The first place of each group that begins in this block, and its part; the last ones first."""
        waiting, whole = set(waiting), []
        for part, owner in enumerate(owners):
            whole.append(owner not in waiting)
            if whole[-1] and bounds[part + 1] > bounds[part]:
                self.opened.append((int(order[bounds[part]]), part))
            waiting.discard(owner)
        self.opened.sort(reverse=True)
        self._apart = [part for part, is_whole in enumerate(whole[: self.complete]) if not is_whole][::-1]

    def places(self, part: int, end: int) -> Ints:
        """The places of the parts from `part` up to `end`."""
        return self._order[self.bounds[part] : self.bounds[end]]

    def together(self, part: int) -> int:
        """How many complete groups, from this one on, have all their rows in this block; call it with ascending parts."""
        while self._apart and self._apart[-1] < part:
            self._apart.pop()
        return (self._apart[-1] if self._apart else self.complete) - part


class Groups:
    """The waiting elements by key, and the positions from which they can be found again.

    All rows before the oldest one that waits have been sent. So a restart from there only needs to know, for the groups that
    were sent since, up to which row they reached. If these are too many for a state, it restarts from the first row of all.

    Args:
      source: the input.
      state: where to begin.
      results: what the user's function returned for the elements from there on, as `called` yields it.
      key_of: result -> key; raises an error for a result that is no key.
      size_of: key -> number of elements in a group of that key.
      made: (key, its elements, state within the output or None) -> the output for a group.
      keys_of: as `key_of` for many integers at once, if possible.
      made_together: (rows, how many of them belong to each group) -> the output for groups of consecutive rows, in blocks with
        one row for each group; None if groups have to be made one by one.
      tolerant: whether an error becomes a failure in the place of the element, or of the output of a group.
    """

    def __init__(
        self,
        source: Node,
        state: State,
        results: Iterator[tuple[Any, Block, int, Mark]],
        key_of: Callable[[Any], int],
        size_of: Callable[[int], int],
        made: Callable[[int, list[Block], State | None], Stream],
        keys_of: Callable[[Ints], Ints] | None = None,
        made_together: Callable[[Block, Ints], Iterator[Block]] | None = None,
        *,
        tolerant: bool = False,
    ) -> None:
        self.source, self.results = source, results
        self.key_of, self.size_of, self.made, self.keys_of = key_of, size_of, made, keys_of
        self.made_together, self.tolerant = made_together, tolerant
        self.epoch: int = state["epoch"]
        self.saved = state
        self.done: int = state["row"]
        self.flushed: int | None = state["flushed"]
        # Both in ascending order of rows, since dicts keep insertion order.
        self.sent: dict[int, int] = {int(k): n for k, n in state["sent"]}
        self.groups: dict[int, _Group] = {}
        self.row: int = state["from"]
        # Failures counted from the first row of all: those before `mark`, and those that were passed on.
        self.failures, self.known = state.get("failures", (0, 0))
        self.mark: Mark = {"input": state["input"], "skip": state["skip"]}
        # Keys are numbered in the order in which they appear; by number: key, size of a full group, waiting elements.
        self.numbers: dict[int, int] = {}
        self.keys: list[int] = []
        self.sizes: Ints = np.empty(0, np.int64)
        self.waiting: Ints = np.empty(0, np.int64)

    def stream(self) -> Stream:
        """Blocks of the output for full groups, and at the end for the others."""
        inner = self.saved["inner"]
        for results, rows, first, after in self.results:
            if type(rows) is Failure:
                yield from self._lost(rows, after)
            while len(results):
                numbers, error = self._numbered(results)
                size = len(numbers)
                end = after if size == len(results) else None
                # What was sent before the state was saved is collected again without being sent.
                again = min(max(0, self.done - self.row), size)
                if again:
                    yield from self._join(rows, first, numbers[:again], end if again == size else None, replayed=True)
                    if inner is not None and self.row == self.done:
                        yield from self._emit(inner["key"], inner["state"], flush=inner["flush"])
                if size > again:
                    yield from self._join(rows, first + again, numbers[again:], end, replayed=False)
                if error is None:
                    break
                note_element(error, rows.row(first + size))
                if not self.tolerant:
                    raise error
                results, first = results[size + 1 :], first + size + 1
                here = {"input": self.mark["input"], "skip": self.mark["skip"] + 1} if len(results) else after
                yield from self._lost(Failure(error), here)
        for key in sorted(self.groups):
            if self.flushed is None or key > self.flushed:
                yield from self._emit(key, None, flush=True)

    def _lost(self, failure: Failure, after: Mark) -> Stream:
        self.mark, self.failures = after, self.failures + 1
        if self.failures > self.known:
            self.known = self.failures
            yield failure, self._state(None)

    def _numbered(self, results: Any) -> tuple[Ints, Exception | None]:
        """The key numbers of results, up to the first that is an error."""
        if self.keys_of is not None:
            whole = isinstance(results, np.ndarray) or set(map(type, results)) <= {int, np.int32, np.int64}
            given = np.asarray(results) if whole else None
            if given is not None and given.dtype.kind == "i":
                keys = self.keys_of(given.astype(np.int64, copy=False))
                named = [self._number(key) for key in range(int(keys.max()) + 1)]
                return np.asarray(named, np.int64)[keys], None
        numbers: list[int] = []
        try:
            for result in results:
                key = self.key_of(result)
                number = self.numbers.get(key)
                numbers.append(self._number(key) if number is None else number)
        except Exception as error:  # noqa: BLE001 - raised again when what came before it was sent
            return np.asarray(numbers, np.int64), error
        return np.asarray(numbers, np.int64), None

    def _number(self, key: int) -> int:
        number = self.numbers.get(key)
        if number is None:
            size = self.size_of(key)
            number = self.numbers[key] = len(self.keys)
            self.keys.append(key)
            self.sizes = np.append(self.sizes, size)
            self.waiting = np.append(self.waiting, 0)
        return number

    def _join(self, rows: Block, first: int, numbers: Ints, after: Mark | None, *, replayed: bool) -> Stream:
        """Let the rows of a block from `first` on wait in their groups, and send the groups that become full."""
        begin, before, keys, failures = self.mark, self.row, self.keys, self.failures

        def at(place: int) -> Mark:
            if place == len(numbers) and after is not None:
                return after
            return {"input": begin["input"], "skip": begin["skip"] + place}

        def come_to(place: int, part: int) -> None:
            """Advance to `place`: open the groups that begin before it, except those of parts before `part`."""
            while parts.opened and parts.opened[-1][0] < place:
                place_of_first, opened = parts.opened.pop()
                if opened >= part:
                    self.groups[keys[parts.owners[opened]]] = _Group(
                        before + place_of_first, at(place_of_first), failures
                    )
            self.row, self.mark = before + place, at(place)

        parts = self._parted(numbers, replayed=replayed)
        part, alone = 0, -1
        while part < parts.complete:
            key, together = keys[parts.owners[part]], 0 if replayed or part == alone else parts.together(part)
            if self.made_together is not None and together:
                whole = rows.take(parts.places(part, part + together) + first)
                for made in self._made_together(whole, np.diff(parts.bounds[part : part + together + 1])):
                    for _ in range(made.size):
                        self._remove(keys[parts.owners[part]], before + parts.behind[part])
                        part += 1
                    come_to(parts.behind[part - 1], part)
                    yield made, self._state(None)
                    together -= made.size
                alone = part if together else -1  # this group fails, so it is made on its own
                continue
            come_to(parts.behind[part], part)
            self.groups[key].add(rows.take(parts.places(part, part + 1) + first))
            if not replayed:
                yield from self._emit(key, None)
            elif self.saved["inner"] is None or self.row != self.done:
                self._remove(key, self.row)  # it was sent before the state was saved
            part += 1
        come_to(len(numbers), parts.complete)
        for part in range(parts.complete, len(parts.owners)):
            waiting = parts.places(part, part + 1)
            if len(waiting):
                self.groups[keys[parts.owners[part]]].add(rows.take(waiting + first))

    def _parted(self, numbers: Ints, *, replayed: bool) -> "_Parts":
        """The rows from here on, sorted by the groups that they join."""
        places = np.arange(len(numbers))
        if replayed:  # some of these no longer wait
            gone = np.asarray([self.sent.get(key, 0) for key in self.keys], np.int64)
            places = np.flatnonzero(self.row + places >= gone[numbers])
        joining, groups = numbers[places], len(self.keys)
        order, full = np.empty(len(places), np.int64), np.empty(len(places), np.int64)
        ends = np.empty(len(places) + groups, np.int64)
        complete = fill_windows(joining, self.waiting, self.sizes, order, ends, full)
        owners = [*joining[full[:complete]].tolist(), *range(groups)]
        bounds = [0, *ends[: complete + groups].tolist()]
        behind = (places[full[:complete]] + 1).tolist()
        return _Parts(places[order], bounds, owners, behind, {self.numbers[key] for key in self.groups})

    def _remove(self, key: int, row: int) -> None:
        """Note that the group of `key` has been sent, with its elements before this row."""
        self.groups.pop(key, None)  # a group that came and went since the last state is not there
        self.sent.pop(key, None)
        self.sent[key] = row

    def _emit(self, key: int, inner: State | None, *, flush: bool = False) -> Stream:
        """All output for the group of `key`."""
        pending = None
        for block, after in self._made(key, self.groups[key].parts, inner):
            if pending is not None:
                yield pending[0], self._state({"key": key, "state": pending[1], "flush": flush})
            pending = block, after
        # The group is removed before its last block is sent, so that the state after it needs none of its rows.
        if flush:
            self.flushed = key
            del self.groups[key]
        else:
            self._remove(key, self.row)
        if pending is not None:
            yield pending[0], self._state(None)

    def _made_together(self, rows: Block, counts: Ints) -> Iterator[Block]:
        """The output for groups of consecutive rows, up to the first that fails."""
        assert self.made_together is not None
        try:
            yield from self.made_together(rows, counts)
        except Exception:
            if not self.tolerant:
                raise

    def _made(self, key: int, parts: list[Block], inner: State | None) -> Stream:
        """The output for a group; in a tolerant run, a failure if that raises an error."""
        try:
            yield from self.made(key, parts, inner)
        except Exception as error:
            if not self.tolerant:
                raise
            yield Failure(error), {}

    def _state(self, inner: Any) -> State:
        oldest = next(iter(self.groups.values()), None)
        first, mark, failures = self.row, self.mark, self.failures
        if oldest is not None:
            first, mark, failures = oldest.first, oldest.mark, oldest.failures
        while self.sent and next(iter(self.sent.values())) <= first:
            del self.sent[next(iter(self.sent))]
        # A restart from the first row counts the groups again; the last ones are then those that wait.
        far = len(self.sent) > _MOST_SENT
        if far:
            first, mark, failures = 0, {"input": self.source.start(self.epoch), "skip": 0}, 0
        sent = [] if far else list(self.sent.items())
        made = {
            "epoch": self.epoch,
            **mark,
            "from": first,
            "row": self.row,
            "sent": sent,
            "flushed": self.flushed,
            "inner": inner,
        }
        return {**made, "failures": [failures, self.known]} if self.known else made
