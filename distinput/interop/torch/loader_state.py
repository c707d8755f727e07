# SPDX-License-Identifier: Apache-2.0
"""The position in a saved state: of a view, or of a whole `StatefulDataLoader` over one."""

from dataclasses import replace
from typing import Any

from distinput.errors import StateError
from distinput.interop.rank_steps import RankPosition

__all__ = ["position_in"]


def position_in(state: Any, who: str) -> RankPosition:
    """The position in a state.

    A loader with workers saves a position of each of them. The steps went round the workers, so the first step that is not
    delivered is the earliest of those that the workers would deliver next.

    Raises:
      StateError: there is no position of a view in it.
    """
    if (
        not isinstance(state, dict)
        or not {"_snapshot", "_dataset_state", "dataset_state", "fetcher_state"} & state.keys()
    ):
        return RankPosition.of(state, who)
    snapshot = state.get("_snapshot")
    if not isinstance(snapshot, dict):  # of a loader without workers
        return RankPosition.of(_of_view(state, who), who)
    workers = snapshot.get("_worker_snapshots")
    if not isinstance(workers, dict) or not workers:
        raise StateError(f"{who}: the state of a StatefulDataLoader lacks those of its workers")
    found = [RankPosition.of(_of_view(worker, who), who) for worker in workers.values()]
    first = min(found, key=lambda position: position.step)
    since = int(state.get("_steps_since_snapshot", 0))
    return replace(first, step=first.step + since, stride=1)


def _of_view(state: Any, who: str) -> Any:
    """The state of the iterator of a view, in what a loader or one of its workers saved."""
    fetcher = state.get("fetcher_state") or state.get("_fetcher_state") or {}
    found = fetcher.get("dataset_iter_state") or state.get("dataset_state") or state.get("_dataset_state")
    if found is None:
        raise StateError(f"{who}: the state of this StatefulDataLoader holds no state of a view")
    return found
