# SPDX-License-Identifier: Apache-2.0
"""What a ledger holds of an iteration, and what it says about a dataset that was built anew."""

from typing import Any

from distinput.core.state import State
from distinput.data.seal import place_in
from distinput.distribute.input.distributed_dataset import DistributedDataset
from distinput.distribute.input.distributed_iterator import DistributedIterator
from distinput.distribute.input.kept_records import KeptRecords
from distinput.distribute.input.replayed import described, looks_back, replayed, resealed, step_from
from distinput.distribute.input.saved import opened_state
from distinput.distribute.input.source import WHOLE
from distinput.distribute.input.step_records import StepRecords
from distinput.errors import UnimplementedError
from distinput.lineage.history import History, PassSegment
from distinput.lineage.located import Located

__all__ = ["LedgerView", "beginning", "places"]


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
