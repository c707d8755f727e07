# SPDX-License-Identifier: Apache-2.0
"""From places in a pipeline to states that say which pipeline that is, and back."""

from collections.abc import Collection
from functools import cached_property
from typing import Any

from distinput.core.seal import opened, sealed, start_of
from distinput.core.state import State, alike
from distinput.errors import StateError
from distinput.plan.fingerprint import difference, fingerprint
from distinput.plan.node import Node

__all__ = ["Seal", "place_in"]

_PLACE = {"plan", "epoch", "at", "skip"}
_WHEN = "when the state was saved"


class Seal:
    """Makes states of places in one pipeline, whose files are looked at for the first of them.

    Args:
      plan: the tree as the user described it.
    """

    def __init__(self, plan: Node) -> None:
        self._plan = plan

    @cached_property
    def _facts(self) -> tuple[Any, int]:
        plan = fingerprint(self._plan)
        return plan, start_of(plan)

    def __call__(self, place: State) -> State:
        """The state of a place."""
        return sealed(place, *self._facts)


def place_in(plan: Node, node: Node, state: Any, may_differ: str | Collection[str] = ()) -> State:
    """The place that a state of this pipeline holds.

    Args:
      plan: the tree as the user described it.
      node: the tree that runs.
      state: what a user hands in.
      may_differ: what need not be as it was, of `fingerprint.MAY_DIFFER`.

    Raises:
      StateError: it is no state, or not as it was saved, or of another pipeline or version; the message says what differs.
    """
    if isinstance(state, dict) and state.get("kind") == "distributed":
        raise StateError(
            "restore: this is the state of a distributed iterator; restore it with the distributed dataset"
        )
    found = opened(state, "restore", _PLACE)
    differs = difference(plan, found["plan"], may_differ, when=_WHEN)
    if differs is not None:
        raise StateError(f"restore: the state belongs to another pipeline: {differs}")
    if not alike(found["at"], node.start(found["epoch"])):
        raise StateError(
            f"restore: the pipeline runs in other steps than {_WHEN}: options, num_parallel_calls, prefetch or the release "
            "of distinput differ; restore it as it was then"
        )
    return found
