# SPDX-License-Identifier: Apache-2.0
"""`global_shuffle` finds the same rows by their numbers as through their neighbours."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import distinput as di
from distinput.columns.block import Block
from distinput.columns.column import Ints
from distinput.columns.rows import Stream
from distinput.columns.state import State
from distinput.data.dataset import Dataset
from distinput.ops.global_shuffle import GlobalShuffle
from distinput.ops.shard_batches import ShardBatches
from distinput.plan.families import SameElements
from distinput.plan.node import Node
from distinput.run.run import Run
from distinput.testing.elements import exact
from distinput.testing.pipelines import Pipeline, pipelines


@dataclass(frozen=True, eq=False)
class ThroughNeighbours(SameElements):
    """Its elements can only be reached by reading on from a position."""

    asked = 0

    @property
    def cardinality(self) -> int:
        return self.input.cardinality

    def start(self, epoch: int) -> State:
        return self.input.start(epoch)

    def start_at(self, row: int, epoch: int) -> State | None:
        return self.input.start_at(row, epoch)

    def stream(self, state: State, run: Run) -> Stream:
        type(self).asked += 1
        yield from self.input.open(state, run)


@dataclass(frozen=True, eq=False)
class ByNumber(ThroughNeighbours):
    """Its elements can only be reached by their numbers."""

    @property
    def fetches(self) -> bool:
        return True

    def fetch(self, rows: Ints, epoch: int) -> Block:
        type(self).asked += 1
        return self.input.fetch(rows, epoch)

    def stream(self, state: State, run: Run) -> Stream:
        raise AssertionError("nothing is read in order")
        yield


def shuffled(node: Node, seed: int, group: int) -> list[Any]:
    """The elements of a global shuffle of a node, in batches if the group is larger than 1."""
    dataset = Dataset(GlobalShuffle(node, seed=seed, group=group))
    return [exact(element) for element in dataset]


def check(node: Node, seed: int, group: int = 1) -> None:
    kinds = (ThroughNeighbours, ByNumber)
    before = [kind.asked for kind in kinds]
    ways = [shuffled(kind(node), seed, group) for kind in kinds]
    assert ways[0] == ways[1] == shuffled(node, seed, group)
    assert all(kind.asked > asked for kind, asked in zip(kinds, before, strict=True)), "both ways were gone"


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])  # many pipelines have no positions
@given(pipelines(most_ops=3), st.integers(0, 99), st.sampled_from([1, 1, 3]))
def test_rows_of_random_pipelines(pipeline: Pipeline, seed: int, group: int) -> None:
    node = pipeline.build().node
    assume(node.cardinality > 0 and node.fetches and node.start_at(0, 0) is not None)
    check(node, seed, group)


@pytest.mark.parametrize("index", [0, 1])
def test_shares_of_batches_are_reached_in_either_way(index: int) -> None:
    check(ShardBatches(di.data.Dataset.range(23).batch(3).node, 2, index), 5)


LINES = [b"line %d" % i * (i % 7) + b"." for i in range(5000)]
TABLE = pa.table({"a": np.arange(5000), "s": [line.decode() for line in LINES]})


def records(path: Path) -> Any:
    with di.io.TFRecordWriter(str(path), index=True) as writer:
        for line in LINES:
            writer.write(line)
    return di.data.TFRecordDataset(str(path), index=True)


def text(path: Path) -> Any:
    path.write_bytes(b"\n".join(LINES))
    return di.data.TextLineDataset(str(path), index=True)


def csv(path: Path) -> Any:
    path.write_text("a,s\n" + "".join(f"{i},{line.decode()}\n" for i, line in enumerate(LINES)))
    return di.data.FileDataset(str(path), "csv", index=True)


def parquet(path: Path) -> Any:
    pa.parquet.write_table(TABLE, path, row_group_size=700)
    return di.data.ParquetDataset(str(path))


def arrow(path: Path) -> Any:
    di.io.write_arrow(str(path), {"a": TABLE["a"].to_numpy(), "s": LINES})
    return di.data.ArrowDataset(str(path))


def npy(path: Path) -> Any:
    np.save(path.with_suffix(".npy"), np.arange(15_000.0).reshape(5000, 3))
    return di.data.NpyDataset(str(path.with_suffix(".npy")))


@pytest.mark.parametrize("make", [records, text, csv, parquet, arrow, npy], ids=lambda make: make.__name__)
def test_rows_of_files(make: Callable[[Path], Any], tmp_path: Path) -> None:
    node = make(tmp_path / "file").node
    assert node.fetches
    check(node, seed=5)
