# SPDX-License-Identifier: Apache-2.0
"""A step of a distributed dataset once more, without the steps before it where positions can be computed."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any

from distinput.columns.state import State, sealed
from distinput.data.seal import Seal
from distinput.distribute.input.dealing import END, Placeholders
from distinput.distribute.input.dealt_elements import DealtElements
from distinput.distribute.input.delivery import Delivery
from distinput.distribute.input.own_pieces import OwnBatches, OwnPiecesSource
from distinput.distribute.input.source import Steps, StepSource
from distinput.plan.seeds import drawn_seeds, stores, with_drawn_seeds
from distinput.rewrite.rules import Running

__all__ = ["described", "looks_back", "replayed", "resealed", "states_at", "step_from"]


def replayed(source: StepSource, delivery: Delivery, step: int, epoch: int, seeds: Sequence[Sequence[int]] = ()) -> Any:
    """See `DistributedDataset.replay`.

    Args:
      source: where the steps come from.
      delivery: how they are handed over.
      step: of the pass.
      epoch: the pass.
      seeds: those that steps without a seed drew in each pipeline, as a state holds them; none: those drawn here.
    """
    if step < 0:
        raise IndexError(f"replay: steps are numbered from 0 on, got {step}")
    first = step - looks_back(source, step)
    states = states_at(source, first, epoch, seeds)
    if states is None:
        first, states = 0, states_at(source, 0, epoch, seeds)
    assert states is not None, "where a pass begins is known"
    return step_from(source, delivery, states, first, step)


def looks_back(source: StepSource, step: int) -> int:
    """How many steps before it a step has to begin: what stands for missing elements has the shape of the last one seen."""
    return min(step, int(Placeholders(source.spec).watches))


def step_from(source: StepSource, delivery: Delivery, states: Sequence[State], first: int, step: int) -> Any:
    """A step, from the states of the input pipelines before an earlier one, or before itself.

    Raises:
      IndexError: there is no such step.
    """
    with _passes_as_they_are(source):
        steps = delivery.steps(source, source.restore(states, first, None, ()))
        try:
            found = next(islice(_each(steps, source.terms.keeps_partial), step - first, None), END)
        finally:
            steps.close()
    if found is END:
        there = f", there are {source.num_steps}" if source.num_steps >= 0 else ""
        raise IndexError(f"replay: there is no step {step}{there}")
    return found


def _each(steps: Steps, keeps_partial: bool) -> Any:
    while (step := steps.next(keeps_partial)) is not END:
        yield step


def states_at(source: StepSource, step: int, epoch: int, seeds: Sequence[Sequence[int]] = ()) -> list[State] | None:
    """The states of the input pipelines before a step; None if they cannot be computed."""
    datasets = described(source)
    each = source.terms.replicas.count if isinstance(source, DealtElements) and len(datasets) == 1 else 1
    states = []
    for number, dataset in enumerate(datasets):
        kept = stores(dataset.node)
        for store in kept:  # caches keep the first pass
            store.epoch = 0 if store.epoch is None else store.epoch
        running = dataset._runs()
        drawn, given = drawn_seeds(dataset.node), list(seeds[number]) if seeds else []
        tree = running.node
        if given and given != drawn:
            tree, drawn = Running.of(with_drawn_seeds(dataset.node, given), running.rules).node, given
        at = tree.start_at(step * each, epoch) if step else tree.start(epoch)
        if at is None:
            return None
        place: State = {"epoch": epoch, "at": at, "skip": 0}
        if drawn:
            place["seeds"] = drawn
        if kept:
            place["kept"] = [store.epoch for store in kept]
        states.append(Seal(dataset.node, running)(place))
    return states


def resealed(state: State, place: State) -> State:
    """The state of another place in the same pipeline."""
    return sealed(place, state["plan"])


def described(source: StepSource) -> list[Any]:
    """The datasets that the states of a source belong to."""
    return [one.whole if isinstance(one, OwnBatches) else one for one in _datasets(source)]


def _datasets(source: Any) -> list[Any]:
    """What a source reads."""
    if isinstance(source, OwnPiecesSource):
        return [source.batches]
    return list(source.datasets) if isinstance(source, DealtElements) else [source.dataset]


@contextmanager
def _passes_as_they_are(source: StepSource) -> Iterator[None]:
    """The next iteration is the pass that it would have been."""
    passes = [dataset._passes for dataset in _datasets(source)]
    begun = [each.begun for each in passes]
    try:
        yield
    finally:
        for each, number in zip(passes, begun, strict=True):
            each.begun = number
