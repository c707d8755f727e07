# SPDX-License-Identifier: Apache-2.0
"""Before the first step, workers compare what they built and where they begin, and raise if that does not match."""

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from distinput.core.digest import Digest
from distinput.core.random import fresh_seed
from distinput.core.spec import Spec
from distinput.distribute.input.facts import PYTHON, JobFacts, differing_files, file_names, groups, of_pipeline, said
from distinput.distribute.input.names import NameList
from distinput.distribute.input.options import InputOptions
from distinput.distribute.peers import CallDescription, Peers
from distinput.errors import FailedPreconditionError, StateError
from distinput.plan.node import Node
from distinput.sharding.batches import batch_size_of
from distinput.sharding.decision import policy_of

__all__ = ["Beginning", "compare_beginnings", "compare_datasets", "compare_inputs"]

_INFINITE = -1


def compare_datasets(
    peers: Peers,
    dataset: Any,
    refusal: Exception | None,
    options: InputOptions,
    call: str = "experimental_distribute_dataset",
) -> tuple[int, Sequence[str]]:
    """Agree on a seed; return it, with the harmless differences between the workers' datasets of global batches.

    Args:
      peers: the workers.
      dataset: this worker's.
      refusal: the error for which this worker cannot distribute it; raised on all workers.
      options: how it is distributed.
      call: what distributes it, for messages.

    Raises:
      FailedPreconditionError: the workers built different datasets.
    """

    def facts() -> tuple[JobFacts, Node]:
        if refusal is not None:
            raise refusal
        node, policy = dataset.node, policy_of(dataset.node)
        about = {
            **_about([dataset]),
            "policy": policy.name, "balanced_split": options.balanced_split, "tail": options.tail,
        }  # fmt: skip
        may_differ = not policy.divides and not options.balanced_split
        if may_differ:
            about["global batch size"] = batch_size_of(node)
        return _facts(about, None if may_differ else of_pipeline(node)), node

    cure = "Build the dataset alike on every worker, with policy OFF if the data is to differ"
    return _compare(peers, call, facts, cure)


def compare_inputs(peers: Peers, make: Callable[[], Sequence[Any]]) -> None:
    """Check that a user's function made datasets with elements of the same kind on all workers; the data may differ.

    Args:
      peers: the workers.
      make: returns the datasets of this worker; an error that it raises is raised on all workers.

    Raises:
      FailedPreconditionError: the elements differ in kind, or only some of the datasets end.
    """
    cure = "Let the function return datasets of the same elements on every worker"
    _compare(peers, "distribute_datasets_from_function", lambda: (_facts(_about(make()), None), None), cure)


def _about(datasets: Sequence[Any]) -> dict[str, Any]:
    spec = Spec.of(datasets[0].element_spec)
    kinds = [str(getattr(leaf, "dtype", "dataset")) for leaf in spec.leaves]
    named = [f"{path} {kind}".strip() for path, kind in zip(spec.structure.paths, kinds, strict=True)]
    return {
        "distinput": str(sys.modules["distinput"].__version__),
        "elements": ", ".join(named) or "nothing",
        "endless": any(int(dataset.cardinality()) == _INFINITE for dataset in datasets),
    }


def _facts(about: dict[str, Any], steps: list[Any] | None) -> JobFacts:
    return {"about": about, "steps": steps, "python": PYTHON}


def _compare(
    peers: Peers, call: str, make: Callable[[], tuple[JobFacts, Node | None]], cure: str
) -> tuple[int, Sequence[str]]:
    """Compare digests of all facts; if they differ, the facts themselves; and if files differ, their names."""
    made: list[tuple[JobFacts, Node | None]] = []

    def word() -> tuple[Any, Sequence[Any]]:
        made.append(make())
        return [Digest(8).add(json.dumps(made[0][0], sort_keys=True)).word, fresh_seed()], []

    words = [note for note, _ in peers.exchange(CallDescription(f"{call}: the dataset"), word)]
    seed = int(words[0][1])
    if len({word for word, _ in words}) == 1:
        return seed, []
    (mine, node), *_ = made
    facts = [note for note, _ in peers.exchange(CallDescription(f"{call}: what differs"), lambda: (mine, []))]
    names: dict[int, dict[int, NameList]] = {}
    if node is not None and (numbers := differing_files(facts)):
        own = file_names(node, numbers)
        told = [note for note, _ in peers.exchange(CallDescription(f"{call}: the files"), lambda: (own, []))]
        names = {n: {w: NameList(*note[str(n)]) for w, note in enumerate(told)} for n in numbers}
    wrong, hints = said(facts, names)
    if wrong:
        raise FailedPreconditionError(
            f"{call}: the workers do not go together, so records would be lost or delivered twice, or workers wait for one "
            f"another in vain: {'; '.join(wrong)}. {cure}"
        )
    return seed, hints


@dataclass(frozen=True, slots=True)
class Beginning:
    """The place from which a worker takes steps.

    Args:
      step: how many steps were taken before.
      ended: True if there are no more.
      restored: True if it continues from a saved state.
      number: the number of the pass; None if workers may begin different passes.
      seeds: the seeds that were drawn; None if workers may draw different ones.
      skip: the ranges of steps that are left out.
    """

    step: int
    ended: bool
    restored: bool
    number: int | None = None
    seeds: Sequence[int] | None = None
    skip: Sequence[tuple[int, int]] = ()

    def as_json(self) -> list[Any]:
        """The fields as a few short values, which are sent with the call."""
        seeds = None if self.seeds is None else Digest(3).add(list(self.seeds)).word
        skip = Digest(3).add([list(each) for each in self.skip]).word if self.skip else None
        return [self.step, self.ended, self.number, seeds, skip, self.restored]


def compare_beginnings(peers: Peers, beginning: Beginning) -> None:
    """Check that all workers begin at the same place.

    Args:
      peers: the workers.
      beginning: the place of this worker.

    Raises:
      StateError: some workers were restored, and not all of them to the same place.
      FailedPreconditionError: they begin different passes.
    """
    # Named, since one worker may continue from a checkpoint and another begin anew, at different places in the program.
    description = CallDescription("DistributedIterator: where it begins", name="where an iteration begins")
    places = [note for note, _ in peers.exchange(description, lambda: (beginning.as_json(), []), peers.control)]
    first, *others = groups([one[:-1] for one in places])
    if not others:
        return
    there = places[first[0]]
    wrong = []
    for worker in sorted(group[0] for group in others):
        here = places[worker]
        fact = next(i for i, (a, b) in enumerate(zip(here, there, strict=True)) if a != b)
        wrong.append(f"worker {worker} {_place(here, fact)}, worker {first[0]} {_place(there, fact)}")
    restored = any(one[-1] for one in places)
    cure = "restore the same checkpoint on every worker" if restored else "begin as many passes on every worker"
    raise (StateError if restored else FailedPreconditionError)(
        f"DistributedIterator: all workers must be at the same place, but {'; '.join(wrong)}; {cure}"
    )


def _place(place: Sequence[Any], fact: int) -> str:
    """A place in words, with the fact in which it differs from another place."""
    step, ended, number, _, _, restored = place
    return (
        f"{'restores' if restored else 'begins at'} step {step}"
        + (
            "",
            ", the end" if ended else ", not the end",
            f" of pass {number}",
            " of a shuffle with other seeds",
            ", leaving out other steps (skip=)",
        )[fact]
    )
