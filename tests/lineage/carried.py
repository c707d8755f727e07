# SPDX-License-Identifier: Apache-2.0
"""Files whose records carry where they are from, and random pipelines over them."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

import distinput as di
from tests.temporary import temporary_folder

__all__ = ["ID", "Corpus", "corpora", "corpus", "ids", "pipelines", "records_of", "told"]

ID = 1000
"""The id of a record is that of its file times ID, plus its place in the file."""

SIZES = [(7, 3, 12), (5,), (1, 1, 20, 2), (9, 0, 4)]
KINDS = ["parquet", "npz", "text", "tfrecord"]


@dataclass(frozen=True)
class Corpus:
    """Files with ids in them.

    Args:
      kind: the format.
      files: the paths.
      read: whether records have to be read to be counted.
    """

    kind: str
    files: tuple[str, ...]
    read: bool

    def dataset(self) -> Any:
        """Their ids, as integers."""
        if self.kind == "parquet":
            return di.data.ParquetDataset(list(self.files)).map(lambda row: row["id"])
        if self.kind == "npz":
            return di.data.NpzDataset(list(self.files)).map(lambda row: row["id"])
        made: Any = di.data.TextLineDataset if self.kind == "text" else di.data.TFRecordDataset
        return made(list(self.files)).map(lambda line: np.int64(int(line)))


@cache
def corpus(kind: str, sizes: tuple[int, ...]) -> Corpus:
    folder = Path(temporary_folder())
    names = []
    for number, size in enumerate(sizes):
        name = folder / f"n-{number}.{kind}"
        values = number * ID + np.arange(size)
        if kind == "parquet":
            import pyarrow as pa
            import pyarrow.parquet as pq

            pq.write_table(pa.table({"id": values}), name, row_group_size=4)
        elif kind == "npz":
            np.savez(name, id=values)
        elif kind == "text":
            name.write_text("".join(f"{value}\n" for value in values))
        else:
            with di.io.TFRecordWriter(str(name)) as writer:
                for value in values:
                    writer.write(str(value).encode())
        names.append(str(name))
    return Corpus(kind, tuple(names), kind in ("text", "tfrecord"))


corpora = st.builds(corpus, st.sampled_from(KINDS), st.sampled_from(SIZES))


def told(located: Any) -> list[int]:
    """The ids of located rows."""
    return [int(Path(place.file).name.split("-")[1].split(".")[0]) * ID + place.record for place in located]


def ids(parts: Any) -> list[int]:
    """The ids in the parts of some replicas."""
    return [int(x) for part in parts for x in np.asarray(part).reshape(-1)]


def cost(batch: Any) -> Any:
    """What each row of a batch of ids is taken to cost."""
    return np.asarray(batch).reshape(len(batch), -1).sum(1) * 37 % 101


CUTS = st.sampled_from([{}, {"balanced_split": True}, {"balance_replicas": cost}]).map(
    lambda made: di.distribute.InputOptions(**made)
)
"""How the rows of a batch come to replicas."""


def records_of(corpus: Corpus) -> list[tuple[str, int]]:
    """All records."""
    return [(name, int(x) % ID) for name, x in zip_names(corpus)]


def zip_names(corpus: Corpus) -> list[tuple[str, int]]:
    return [(corpus.files[int(x) // ID], int(x)) for x in corpus.dataset().as_numpy_iterator()]


Step = tuple[str, Callable[[Any], Any]]

STEPS: dict[str, Callable[[Any], Any]] = {
    "map": lambda ds: ds.map(lambda x: x),
    "skip": lambda ds: ds.skip(2),
    "take": lambda ds: ds.take(9),
    "repeat": lambda ds: ds.repeat(2),
    "shard": lambda ds: ds.shard(2, 1),
    "prefetch": lambda ds: ds.prefetch(1),
    "cache": lambda ds: ds.cache(),
    "shuffle": lambda ds: ds.shuffle(5, seed=3),
    "same shuffle": lambda ds: ds.shuffle(4, seed=3, reshuffle_each_iteration=False),
    "enumerate": lambda ds: ds.enumerate().map(lambda i, x: x),
    "twice": lambda ds: ds.batch(3).unbatch(),
    "concatenate": lambda ds: ds.concatenate(ds.take(3)),
    "rng": lambda ds: ds.map(lambda x, rng: x, rng=True, seed=1),
    "rebatch": lambda ds: ds.batch(4).rebatch(3).unbatch(),
    "sample": lambda ds: di.data.Dataset.sample_from_datasets([ds, ds.skip(1)], [0.5, 0.5], seed=4),
}


def _ordered(ds: Any, seed: int) -> Any:
    try:
        return ds.global_shuffle(seed=seed)
    except di.errors.InvalidArgumentError:  # records that cannot be counted
        return ds.shuffle(100, seed=seed)


@st.composite
def pipelines(draw: Any) -> tuple[Corpus, Any]:
    """A corpus, and a function that makes a pipeline of batches of its ids."""
    found = draw(corpora)
    names = draw(st.lists(st.sampled_from(sorted(STEPS)), max_size=3))
    shuffled = draw(st.sampled_from([None, 1, 2]))
    size, drop = draw(st.integers(1, 7)), draw(st.booleans())

    def make() -> Any:
        ds = found.dataset()
        if shuffled is not None:
            ds = _ordered(ds, shuffled)
        for name in names:
            ds = STEPS[name](ds)
        return ds.batch(size, drop_remainder=drop)

    return found, make
