# SPDX-License-Identifier: Apache-2.0
"""A class with the arguments of LanceDB's `StreamingDataset` on a dataset of ours, for LanceDB's own cases of elastic loaders.

One step takes a row for each of `num_splits`; ranks and loader workers share its rows, so any number of them that is not larger
delivers the same rows in the same steps.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from torch.utils.data import IterableDataset, get_worker_info

import distinput as di

__all__ = ["Entrant"]


class Entrant(IterableDataset):  # type: ignore[misc]
    """Rows of a table for one rank.

    Args:
      table: of LanceDB.
      num_splits: rows in a step of all ranks.
      shuffle: whether rows are shuffled.
      shuffle_seed: of the order; None: drawn.
      epoch: the first pass.
      rank: of this process.
      world_size: how many there are.
      columns: to be read; None: all.
      filter: an expression of LanceDB.
      transform: makes rows of a record batch.
      on_transform_error: "raise" or "skip".
      worker_info_override: what tells the loader worker, in place of PyTorch.
      **_: options about speed.
    """

    def __init__(
        self,
        table: Any,
        *,
        num_splits: int | None = None,
        shuffle: bool = True,
        shuffle_seed: int | None = None,
        epoch: int = 0,
        rank: int = 0,
        world_size: int = 1,
        columns: list[str] | None = None,
        filter: str | None = None,
        transform: Callable[[pa.RecordBatch], Any] | None = None,
        on_transform_error: str = "raise",
        worker_info_override: Any = None,
        **_: Any,
    ) -> None:
        drawn = int(np.random.SeedSequence().generate_state(1)[0])
        self.num_splits, self.epoch = num_splits or world_size, epoch
        self.shuffle_seed = drawn if shuffle_seed is None else shuffle_seed
        self._rank, self._world_size, self._worker = rank, world_size, worker_info_override
        rows = table.search().where(filter).to_arrow() if filter else table.to_arrow()
        kept = [name for name in columns or rows.column_names if name != "_rowid"]
        dataset = di.data.Dataset.from_arrow(rows.select(kept))
        if transform is not None:
            skips = di.data.SkipErrors(max_errors=None) if on_transform_error == "skip" else None
            dataset = dataset.map(lambda row: _changed(row, transform), on_error=skips)
        if shuffle:
            dataset = dataset.shuffle(max(1, rows.num_rows), seed=self.shuffle_seed)
        self._steps = dataset.batch(self.num_splits, drop_remainder=True)
        self._saved: dict[str, Any] | None = None
        self._iterator: Any = None

    def __iter__(self) -> Iterator[Any]:
        info = self._worker or get_worker_info()
        number, count = (0, 1) if info is None else (info.id, info.num_workers)
        mine = self._steps.shard_batches(self._world_size * count, self._rank * count + number)
        saved = self._saved
        self._iterator = mine.iter_pass(self.epoch) if saved is None else mine.restore(saved["position"])
        return self._rows()

    def _rows(self) -> Iterator[Any]:
        for step in self._iterator:
            named = step if isinstance(step, dict) else {"": step}
            for place in range(len(next(iter(named.values())))):
                row = {name: _plain(values[place]) for name, values in named.items()}
                yield row if isinstance(step, dict) else row[""]

    def state_dict(self) -> dict[str, Any]:
        """The position after the last row of a step."""
        if self._iterator is not None:
            position = self._iterator.state()
        elif self._saved is not None:
            position = self._saved["position"]
        else:
            position = self._steps.shard_batches(1, 0).iter_pass(self.epoch).state()
        told = {"num_splits": self.num_splits, "shuffle_seed": self.shuffle_seed, "epoch": self.epoch}
        return {"position": position, **told}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue at a position.

        Raises:
          ValueError: it is of other splits, or of another seed.
        """
        for name in ("num_splits", "shuffle_seed"):
            if state.get(name, getattr(self, name)) != getattr(self, name):
                raise ValueError(f"{name} mismatch: {state[name]} was saved, {getattr(self, name)} is here")
        self._saved, self.epoch = state, state.get("epoch", self.epoch)


def _changed(row: dict[str, Any], transform: Callable[[pa.RecordBatch], Any]) -> Any:
    return next(iter(transform(pa.RecordBatch.from_pylist([{name: _plain(value) for name, value in row.items()}]))))


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
