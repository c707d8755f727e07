# SPDX-License-Identifier: Apache-2.0
"""A pass over a dataset in blocks, with states from which another process goes on: what writing reads."""

from collections.abc import Iterator
from typing import Any

from distinput.core.block import Block
from distinput.core.sizes import rows_within
from distinput.core.state import State
from distinput.data.handle import DatasetHandle
from distinput.data.iteration import Iteration
from distinput.data.iterator import resumed, run_of
from distinput.data.seal import Seal, place_in
from distinput.plan.seeds import drawn_seeds, stores

__all__ = ["BlockPass"]


class BlockPass:
    """One pass in blocks.

    Args:
      dataset: what is read.
      state: of `state`, from which the pass goes on; None: a new pass.

    Raises:
      StateError: the state is of another pipeline.
    """

    def __init__(self, dataset: DatasetHandle[Any], state: State | None = None) -> None:
        plan, running = dataset.node, dataset._runs()
        if state is None:
            epoch = dataset._passes.begin(plan)
            place: State = {"at": running.node.start(epoch), "epoch": epoch, "skip": 0}
        else:
            place, running = place_in(plan, running, state)
            plan, running = resumed(plan, running, place)
            dataset._passes.goes_on(place["epoch"])
        self._seal, self._epoch = Seal(plan, running), place["epoch"]
        self._at, self._over = place["at"], place["skip"]
        self._before, self._skipped = self._at, 0
        self._seeds, self._stores = drawn_seeds(plan), stores(plan)
        self._iteration = Iteration(running.node, self._at, run_of(running.node))

    def blocks(self) -> Iterator[Block]:
        """The elements that are left, in blocks of a few MiB."""
        for found, after in self._iteration.stream:
            over, self._over = self._over, max(0, self._over - found.size)
            block = found.materialize()
            step = rows_within(block.size, block.nbytes)
            for self._skipped in range(over, block.size, step):
                yield block.rows(self._skipped, self._skipped + step)
            self._before, self._skipped = after, 0

    def state(self, rows: int) -> State:
        """The state after so many rows of the block that came last."""
        place: State = {"epoch": self._epoch, "at": self._before, "skip": self._skipped + rows}
        if self._seeds:
            place["seeds"] = self._seeds
        if self._stores:
            place["kept"] = [store.epoch for store in self._stores]
        return self._seal(place)

    def close(self) -> None:
        """End the pass and its threads."""
        self._iteration.close()
