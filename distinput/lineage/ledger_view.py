# SPDX-License-Identifier: Apache-2.0
"""What a ledger holds of an iteration, and what it says about a dataset that was built anew."""

from collections.abc import Sequence
from typing import Any

from distinput.columns.column import Ints
from distinput.columns.state import State
from distinput.data.iterator import resumed
from distinput.data.seal import place_in
from distinput.distribute.input.cut_batches import CutBatches
from distinput.distribute.input.dealt_elements import DealtElements
from distinput.distribute.input.distributed_dataset import DistributedDataset
from distinput.distribute.input.distributed_iterator import DistributedIterator, opened_state
from distinput.distribute.input.located import Located
from distinput.distribute.input.source import WHOLE, StepSource
from distinput.errors import UnimplementedError
from distinput.lineage.followed import Followed, followed
from distinput.lineage.history import History, PassSegment
from distinput.lineage.replayed import described, looks_back, replayed, resealed, step_from
from distinput.lineage.step_records import StepRecords, cut_rows, located_part, located_rows
from distinput.plan.node import walk
from distinput.sharding.batches import FrameworkRebatch

__all__ = ["KeptRecords", "LedgerView", "beginning", "places"]

# ---- Which records a step is made of, from the states of the input pipelines that a ledger keeps


class KeptRecords:
    """The records of the steps of one pass: what steps of the pipeline look at is read again, from the state before a step on.

    Args:
      source: where the steps come from.
      epoch: the pass.
    """

    def __init__(self, source: StepSource, epoch: int) -> None:
        self._source, self._epoch = source, epoch
        self._made: dict[int, Followed] = {}

    def locate(self, step: int, replica: int | None, first: int, states: Sequence[State]) -> Located:
        """The records of a step that was delivered.

        Args:
          step: of the pass.
          replica: as for `DistributedDataset.locate`.
          first: an earlier step, or this one.
          states: of the input pipelines before the step `first`.

        Raises:
          IndexError: there is no such replica.
          UnimplementedError: the records cannot be followed; or they are those of another worker.
        """
        source: Any = self._source
        replicas = source.terms.replicas
        if replica is not None and not 0 <= replica < replicas.total:
            raise IndexError(f"locate: there are {replicas.total} replicas, numbered from 0 on, got replica {replica}")
        if not isinstance(source, DealtElements) or source.whole:
            tree, found = self._elements(0, states[0], step - first, 1)
            if not found:
                return Located.empty(step, self._epoch)
            (numbers,) = found
            balanced = isinstance(source, CutBatches) and source.balanced
            at, who, row = cut_rows(len(numbers), replica, replicas.total, replicas.workers, balanced)
            return located_rows(step, self._epoch, who, row, numbers[at], tree, tree.assumes)
        mine = range(replicas.first, replicas.first + replicas.count)
        if replicas.workers > 1 and replica not in mine:
            raise UnimplementedError(
                f"locate: behind steps that look at elements, the ledger of a worker knows the records of its own replicas, "
                f"{mine.start} to {mine.stop - 1}; pass replica=, one of them, and ask the other workers for theirs"
            )
        parts = []
        for number, tree, numbers in self._dealt(source, states, step - first):
            if replica in (None, number):
                parts.append(located_part(step, self._epoch, number, numbers, tree, tree.assumes))
        return Located.joined(parts) if parts else Located.empty(step, self._epoch)

    def _dealt(self, source: DealtElements, states: Sequence[State], ahead: int) -> list[tuple[int, Followed, Ints]]:
        """The replicas of this worker that have an element."""
        first, count = source.terms.replicas.first, source.terms.replicas.count
        if len(states) == 1:
            tree, found = self._elements(0, states[0], ahead * count, count)
            return [(first + local, tree, numbers) for local, numbers in enumerate(found)]
        own = [self._elements(local, state, ahead, 1) for local, state in enumerate(states)]
        return [(first + local, tree, found[0]) for local, (tree, found) in enumerate(own) if found]

    def _elements(self, number: int, state: State, skip: int, count: int) -> tuple[Followed, list[Ints]]:
        """The numbers of the records of elements of a pipeline."""
        dataset = described(self._source)[number]
        place, running = place_in(dataset.node, dataset._runs(), state)
        if number not in self._made:
            _, running = resumed(dataset.node, running, place)
            if self._source.terms.replicas.workers > 1 and any(
                isinstance(step, FrameworkRebatch) and 0 in step.sizes for step in walk(dataset.node)
            ):
                raise UnimplementedError(
                    "locate: some batches have fewer rows than there are replicas, and steps without any row are left out, "
                    "which workers find out together; Ledger.replay gives the step itself"
                )
            self._made[number] = followed(running.node, self._epoch)
        tree = self._made[number]
        return tree, tree.elements(place["at"], place["skip"] + skip, count)


# ---- What a ledger holds of an iteration, and what it says about a dataset that was built anew


def beginning(iterator: DistributedIterator) -> dict[str, Any]:
    """What a ledger holds about an iteration where it begins or goes on."""
    source, step, epoch = iterator._source, iterator.step, iterator.epoch
    replicas, state = source.terms.replicas, iterator.state()
    keeps = any(dataset._runs().node.start_at(0, epoch) is None for dataset in described(source))
    return {
        "epoch": epoch,
        "step": step,
        "at": step,
        "workers": replicas.workers,
        "replicas": replicas.total,
        "rank": replicas.rank,
        "keeps": keeps,
        "writes": replicas.rank == 0 or source.layout != WHOLE,
        "state": state,
        "inputs": places(iterator),
    }


def places(iterator: DistributedIterator) -> list[State]:
    """Where the input pipelines stand, without the identity of the pipelines."""
    return iterator._steps.places()


def _seeds(state: State) -> list[list[int]]:
    return [given.get("seeds", []) for given in state["inputs"]]


class LedgerView:
    """A history, asked about with the dataset that it is of.

    Args:
      dataset: the distributed dataset.
      history: what a model has seen of it.
    """

    def __init__(self, dataset: DistributedDataset, history: History) -> None:
        self._source, self._delivery, self._history = dataset._source, dataset._delivery, history
        self._checked: dict[int, State] = {}
        self._records: dict[tuple[int, bool], StepRecords] = {}
        self._followed: dict[tuple[int, bool], KeptRecords] = {}

    def __len__(self) -> int:
        return len(self._history)

    def locate(self, number: int, replica: int | None, *, read: bool) -> Located:
        """See `Ledger.locate`."""
        part, step = self._history.part_of(number)
        state = self._state_of(part)
        key = id(part.told), read
        if key not in self._records:
            self._records[key] = StepRecords.with_seeds(self._source, _seeds(state), read=read)
        if key not in self._followed:
            try:
                return self._records[key].locate(step, replica, part.epoch)
            except UnimplementedError:
                if not part.told["keeps"]:
                    raise
        kept = self._followed.setdefault(key, KeptRecords(self._source, part.epoch))
        first, states = self._before(part, step)
        return kept.locate(step, replica, first, states)

    def replay(self, number: int) -> Any:
        """See `Ledger.replay`."""
        part, step = self._history.part_of(number)
        state = self._state_of(part)
        if not part.told["keeps"]:
            return replayed(self._source, self._delivery, step, part.epoch, _seeds(state))
        first, states = self._before(part, max(part.began, step - looks_back(self._source, step)))
        return step_from(self._source, self._delivery, states, first, step)

    def _before(self, part: PassSegment, step: int) -> tuple[int, list[State]]:
        """The states that are kept of the last place before a step, and before which step that is."""
        first, kept = part.inputs_before(step)
        pairs = zip(self._state_of(part)["inputs"], kept, strict=True)
        return first, [resealed(given, place) for given, place in pairs]

    def _state_of(self, part: PassSegment) -> State:
        """The state at the beginning of a part.

        Raises:
          StateError: it is of another pipeline or distribution.
        """
        key = id(part.told)
        if key not in self._checked:
            state = opened_state(part.told["state"], self._source.layout, self._source.pipelines)
            for dataset, given in zip(described(self._source), state["inputs"], strict=True):
                place_in(dataset.node, dataset._runs(), given)
            self._checked[key] = state
        return self._checked[key]
