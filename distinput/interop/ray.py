# SPDX-License-Identifier: Apache-2.0
"""Ray: the share of a dataset for a worker of Ray Train, and datasets of Ray Data as datasets of this library."""

import json
import warnings
from collections.abc import Collection, Iterator, Sequence
from dataclasses import field
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from distinput.arrow.adopt import frozen
from distinput.arrow.tabular import Reading
from distinput.columns.block import Block
from distinput.columns.column import Ints
from distinput.columns.state import State
from distinput.data.dataset import Dataset
from distinput.data.seal import of_text
from distinput.errors import FailedPreconditionError, InputWarning, InvalidArgumentError, importing
from distinput.files.manifest import FileTable
from distinput.formats.format import Format, Fragment, PlacedBlocks, Position, cut_rows
from distinput.interop.rank_steps import (
    RankPosition,
    RankSteps,
    ShardNames,
    ShortSteps,
    StepIterator,
    empty_words,
    number_in,
)
from distinput.names.lazy import dataclass
from distinput.ops.reader import Reader
from distinput.ops.tables import ArrowStream, StreamSource, picked
from distinput.plan.check import at_least
from distinput.plan.fingerprint import allowances
from distinput.plan.node import INFINITE, UNKNOWN
from distinput.values.spec import Spec

with importing("interop.ray: Ray is not installed; `pip install 'distinput[ray]'`"):
    import ray

__all__ = ["WorkerShard", "exact_data_config", "from_ray", "shard"]

_WHO = "interop.ray.shard"
_FILE = "distinput-input.json"
_BLOCK_ROWS = 32768


def shard(
    dataset: Dataset[Any],
    rank: int | None = None,
    world_size: int | None = None,
    *,
    tail: str | None = None,
    batch_size: int | None = None,
    may_differ: str | Collection[str] = (),
) -> "WorkerShard":
    """The steps of this worker of Ray Train: its rows of each batch of `dataset`, which is of global batches.

    All workers have the same number of steps, whatever the data, and every record comes once. If the checkpoint that Ray Train
    starts from holds a position (`WorkerShard.save`), the first pass continues there, also on another number of workers.

    Args:
      dataset: of global batches, built alike on all workers, with seeds in its shuffles.
      rank: of this worker; None: as `ray.train.get_context()` says.
      world_size: of all workers; None: likewise.
      tail: what becomes of a batch with fewer rows than a full one. "partial" delivers it as it is. "pad" makes each step a
        pair `(element, mask)`: every worker has as many rows in every step, the last of them zeros, and `mask` is true for the
        rows that are data. "drop" leaves it out, "error" raises, on all workers at the same step. None: as "partial", and a
        worker that gets no rows warns of it once.
      batch_size: the rows of a full batch, for "pad" and "error", if a function over whole batches hides it.
      may_differ: what may have changed since the position was saved, as for `Dataset.restore`.

    Raises:
      FailedPreconditionError: this process is not a worker of Ray Train, and `rank` or `world_size` was not given.
      InvalidArgumentError: there is no such rank, or no such tail; or workers cannot share these elements: they have no batch
        axis, were sharded before, or their order is random without a seed.

    Warns:
      InputWarning: this worker has no rows in a step, and `tail` is None.

    Source: distinput's own; `ray.train` is the interface.
    """
    if not isinstance(dataset, Dataset):
        raise TypeError(f"{_WHO}: expected a distinput Dataset, got {type(dataset).__name__}; see from_ray")
    if rank is None or world_size is None:
        rank, world_size = _here()
    size = at_least(_WHO, "world_size", world_size, 1)
    if at_least(_WHO, "rank", rank, 0) >= size:
        raise InvalidArgumentError(f"{_WHO}: rank must be from 0 to {size - 1}, got {rank}")
    made = WorkerShard(dataset, rank, size, tail, batch_size, may_differ)
    saved = _checkpoint()
    if saved is not None:
        with saved.as_directory() as folder:
            if (Path(folder) / _FILE).exists():
                made.restore(folder)
    return made


class WorkerShard:
    """What `shard` returns: iterate it once for each epoch.

    Args:
      dataset: of global batches.
      rank: of this worker.
      world_size: of all workers.
      tail: as for `shard`.
      batch_size: as for `shard`.
      may_differ: as for `shard`.
    """

    def __init__(
        self,
        dataset: Dataset[Any],
        rank: int,
        world_size: int,
        tail: str | None = None,
        batch_size: int | None = None,
        may_differ: str | Collection[str] = (),
    ) -> None:
        short = ShortSteps.of(tail, dataset.node, _WHO, batch_size)
        self._count = short.kept(dataset.node).count_elements()
        self._said = empty_words(_WHO, rank, world_size)
        self._steps = RankSteps(dataset, rank, world_size, _WHO, short, self._without_rows)
        self._may_differ = self._may_always_differ = allowances(may_differ)
        self._next = RankPosition(0)
        self._latest: StepIterator | None = None

    def _without_rows(self) -> None:
        """Tell, once, that this worker has no rows in a step."""
        if self._said:
            warnings.warn(self._said, InputWarning, stacklevel=2)
            self._said = ""

    def __iter__(self) -> Iterator[Any]:
        if self._latest is not None:
            self._latest.close()
        steps = self._latest = self._steps.begin(self._next, may_differ=self._may_differ)
        self._next = RankPosition(steps.epoch + 1)
        with steps:
            yield from map(self._steps.finish, steps)
            if self._latest is steps:
                self._latest = None

    def __len__(self) -> int:
        """Steps of a pass, the same on all workers.

        Raises:
          TypeError: the number is unknown, or there is no end.
        """
        if self._count in (INFINITE, UNKNOWN):
            raise TypeError(f"{_WHO}: the dataset is {'infinite' if self._count == INFINITE else 'not counted'}")
        return self._count

    def set_epoch(self, epoch: int) -> None:
        """The pass that begins next has this number, and those after it the following ones.

        If that is the pass in which a loaded position is, it goes on there.
        """
        epoch = at_least("set_epoch", "epoch", epoch, 0)
        if epoch != self._next.epoch:
            self._next = RankPosition(epoch)
        self._latest = None

    def state_dict(self) -> State:
        """The position after the last step delivered: a small JSON value, the same on all workers."""
        return (self._next if self._latest is None else self._latest.position()).to_json()

    def load_state_dict(self, state: State, may_differ: str | Collection[str] = ()) -> None:
        """The next pass continues at a saved position, on any number of workers.

        Args:
          state: a result of `state_dict`.
          may_differ: as for `Dataset.restore`, besides what the shard was made with.

        Raises:
          StateError: it is something else. That it belongs to another pipeline is found when the pass begins.
        """
        self._next, self._latest = RankPosition.of(state, _WHO), None
        self._may_differ = self._may_always_differ | allowances(may_differ)

    def save(self, folder: str | PathLike[str]) -> None:
        """Write the position into the folder of a checkpoint, for `ray.train.Checkpoint.from_directory(folder)`.

        The position is the same on all workers, so it is enough if one of them reports it.
        """
        (Path(folder) / _FILE).write_text(json.dumps(self.state_dict()), encoding="utf-8")

    def restore(self, folder: str | PathLike[str]) -> None:
        """Continue at the position in the folder of a checkpoint, as `shard` does with the checkpoint of Ray Train.

        Raises:
          FileNotFoundError: there is no position in it.
          StateError: it is something else.
        """
        text = (Path(folder) / _FILE).read_bytes()
        self.load_state_dict(of_text(text, f"{_WHO}: {Path(folder) / _FILE}", "save(folder)"))


def from_ray(dataset: Any, *, nulls: Any = None, valid: Any = None) -> Dataset[dict[str, Any]]:
    """The rows of a dataset of Ray Data, as dicts from column name to value; columns are as for `Dataset.from_arrow`.

    A `ray.data.Dataset` is executed once, here, and its blocks stay in Ray's object store: give the result of `materialize()`
    to workers that would execute it again otherwise. Blocks are read where they are, one at a time; their rows are counted,
    sharded by position and restored, exactly: nothing is truncated, unlike what Ray Train deals to its workers.

    A `DataIterator`, which `ray.train.get_dataset_shard` gives, is a stream: it is executed in each pass, its rows are not
    counted, and may come in another order each time, so a restart is not exact. By default Ray truncates it, so that all
    workers have equally many rows; see `exact_data_config`.

    Args:
      dataset: a `ray.data.Dataset` or `ray.data.DataIterator`.
      nulls: what to put in the place of nulls, by column.
      valid: by column, the name of a column that says which rows are not null.

    Raises:
      InvalidArgumentError: something else; a column that no array can hold; nulls that have no replacement.

    Source: distinput's own.
    """
    import ray.data

    reading = Reading.of(nulls, valid, "from_ray")
    if isinstance(dataset, ray.data.DataIterator):
        source = StreamSource(lambda: _reader(dataset), "from_ray", _schema(dataset))
        made = ArrowStream(source, reading)
        made.spec  # noqa: B018 - what cannot be read is refused now
        return Dataset(made)
    if not isinstance(dataset, ray.data.Dataset):
        raise InvalidArgumentError(
            f"from_ray: expected a ray.data.Dataset or a ray.data.DataIterator, got {type(dataset).__name__}"
        )
    schema = _schema(dataset)
    spec = reading.spec(schema)
    kept = dataset.materialize()
    refs = kept.to_arrow_refs()
    counts = np.asarray(ray.get([_counted.remote(ref) for ref in refs]), np.int64)
    full = np.flatnonzero(counts)
    blocks = _Blocks(tuple([refs[place] for place in full.tolist()]), counts[full], schema, spec, reading)
    names = [f"block {number} of {len(full)}" for number in range(len(full))]
    return Dataset(Reader(ShardNames.of(FileTable.of(names, counts[full])), blocks))


def exact_data_config(**options: Any) -> Any:
    """A `ray.train.DataConfig` that gives every row to one worker, where Ray's own drops what would make shards unequal.

    Workers may then have different numbers of rows: `shard(from_ray(dataset))` has equal steps as well.

    Args:
      **options: those of `ray.train.DataConfig`.

    Source: distinput's own; `ray.train.DataConfig.configure` is the interface.
    """
    import ray.train

    class ExactDataConfig(ray.train.DataConfig):  # type: ignore[misc]
        """Splits without truncation."""

        def configure(
            self, datasets: Any, world_size: int, worker_handles: Any, worker_node_ids: Any, **_: Any
        ) -> list[dict[str, Any]]:
            """The split of each dataset for each worker."""
            chosen = options.get("datasets_to_split", "all")
            local = worker_node_ids if options.get("enable_shard_locality", True) else None
            made: list[dict[str, Any]] = [{} for _ in range(world_size)]
            for name, dataset in datasets.items():
                split = chosen == "all" or name in chosen
                if split:
                    parts = dataset.streaming_split(world_size, equal=False, locality_hints=local)
                else:
                    parts = [dataset.iterator() for _ in range(world_size)]
                for worker, part in zip(made, parts, strict=True):
                    worker[name] = part
            return made

    return ExactDataConfig(**options)


def _here() -> tuple[int, int]:
    """Rank and number of workers, as Ray Train says.

    Raises:
      FailedPreconditionError: this process is not a worker of Ray Train.
    """
    try:
        import ray.train

        context = ray.train.get_context()
        return context.get_world_rank(), context.get_world_size()
    except Exception as error:
        raise FailedPreconditionError(
            f"{_WHO}: this process is not a worker of Ray Train ({error}); call it in train_loop_per_worker, or say "
            "rank= and world_size="
        ) from error


def _checkpoint() -> Any:
    """The checkpoint that Ray Train starts from, if it does, and if this is a worker."""
    try:
        import ray.train

        return ray.train.get_checkpoint()
    except Exception:  # noqa: BLE001 - outside of Ray Train there is none
        return None


def _schema(dataset: Any) -> Any:
    """The pyarrow schema of a dataset of Ray Data."""
    import pyarrow as pa

    found = dataset.schema()
    if found is None:
        raise InvalidArgumentError("from_ray: the dataset is empty and has no columns")
    if isinstance(found.base_schema, pa.Schema):
        return found.base_schema
    return pa.schema(list(zip(found.names, found.types, strict=True)))


def _reader(iterator: Any) -> Any:
    import pyarrow as pa

    schema = _schema(iterator)
    tables = iterator.iter_batches(batch_size=None, batch_format="pyarrow", prefetch_batches=1)
    batches = (batch for table in tables for batch in table.cast(schema).to_batches())
    return pa.RecordBatchReader.from_batches(schema, batches)


@ray.remote(num_cpus=0)  # type: ignore[untyped-decorator, unused-ignore]
def _counted(table: Any) -> int:
    """The rows of a block, counted where it is."""
    return int(table.num_rows)


@dataclass(frozen=True, eq=False, repr=False)
class _Blocks(Format):
    """Blocks in Ray's object store, read as if they were files; `path` is "block 3 of 8".

    Args:
      refs: of the blocks, which are pyarrow Tables.
      counts: rows of each.
      schema: of all.
      row_spec: of a row.
      reading: how columns are read.
    """

    name: ClassVar[str] = "ray"
    counts_rows = fetches = states_cardinality = True
    refs: Sequence[Any] = field(repr=False)
    counts: Ints = field(repr=False)
    schema: Any = field(repr=False)
    row_spec: Spec = field(repr=False)
    reading: Reading = field(repr=False)

    def __repr__(self) -> str:
        columns = ", ".join(f"{one.name}: {one.type}" for one in self.schema)
        return f"ray({columns}, {self.reading}, rows={self.counts.tolist()})"

    def spec(self, path: str | None) -> Spec:
        return self.row_spec

    def size(self, path: str) -> int:
        return self.rows(path)

    def rows(self, path: str) -> int:
        return int(self.counts[number_in(path)])

    def seek(self, path: str, row: int) -> Position:
        return {"row": row}

    def fragments(self, path: str) -> list[Fragment]:
        rows = self.rows(path)
        return [Fragment(path, {"row": 0}, {"row": rows}, rows, rows)]

    def part(self, path: str, start: int, stop: int | None) -> Fragment:
        end = self.rows(path) if stop is None else stop
        return Fragment(path, {"row": start}, {"row": end}, end - start, end - start)

    def read(self, path: str, position: Position | None = None) -> PlacedBlocks:
        row, before = (position or self.start())["row"], 0
        for batch in self._table(path).to_batches():
            for first, stop in cut_rows(batch.num_rows, _BLOCK_ROWS):
                begin = max(first, row - before)
                if begin < stop:
                    part = batch.slice(begin, stop - begin)
                    yield frozen(self.reading.block(part, self.row_spec, before + begin)), {"row": before + stop}
            before += batch.num_rows

    def fetch(self, path: str, rows: Ints) -> Block:
        batches = self._table(path).to_batches()
        ends = np.cumsum([0, *[batch.num_rows for batch in batches]])
        return picked(batches, ends, self.reading, self.row_spec, rows)

    def _table(self, path: str) -> Any:
        found: Any = ray.get(self.refs[number_in(path)])
        return found if found.schema == self.schema else found.cast(self.schema)
