# SPDX-License-Identifier: Apache-2.0
"""Policy DATA pushed into the source gives what the plain one gives, and reads only its own rows."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import distinput as di
from distinput.columns.column import Strings
from distinput.data.dataset import Dataset
from distinput.ops.rebatch import LegacyRebatch
from distinput.ops.shard import Shard
from distinput.ops.shard_batches import OwnRows
from distinput.plan.node import Node, walk
from distinput.sharding.own_rows import own_rows, own_steps, rebatch_for
from distinput.sharding.planning import worker_tree
from distinput.sharding.policies import auto_shard, decide
from tests.depth import cases
from tests.ops.iterating import until_error
from tests.sharding.counting import bytes_read, put

DATA = di.data.experimental.AutoShardPolicy.DATA


def same(a: Any, b: Any) -> None:
    """The same nests of the same arrays, shapes and dtypes included."""
    if isinstance(a, dict):
        assert a.keys() == b.keys()
        for key in a:
            same(a[key], b[key])
    elif isinstance(a, tuple):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            same(x, y)
    else:
        x, y = np.asarray(a), np.asarray(b)
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        assert x.tolist() == y.tolist()


def pushed(plain: Node) -> Node | None:
    """The tree that reads only its own rows, for the plain tree of a worker."""
    return own_rows(plain) if isinstance(plain, Shard) else None


def source(kind: str, counts: list[int], folder: str) -> Dataset:
    n = sum(counts)
    if kind == "range":
        return Dataset.range(n)
    if kind == "slices":
        return Dataset.from_tensor_slices(
            {"a": np.arange(2 * n).reshape(n, 2), "b": [f"t{i}" for i in range(n)] or np.empty(0, object)}
        )
    paths, first = [os.path.join(folder, str(number)) for number in range(len(counts))], 0
    for path, count in zip(paths, counts, strict=True):
        rows = range(first, first + count)
        first += count
        if kind == "fixed":
            Path(path).write_bytes(b"H" + b"".join(b"%04d" % row for row in rows) + b"FF")
            continue
        columns = {"a": np.array(rows, np.int64), "b": Strings.of([b"%d" % row for row in rows])}
        if kind == "npy":
            with open(path, "wb") as file:
                np.save(file, np.stack([columns["a"], columns["a"]], axis=1))
        elif kind == "arrow":
            di.io.write_arrow(path, columns, 2)
        else:
            di.io.write_parquet(path, columns, row_group_size=2)
    if kind == "fixed":
        return di.data.FixedLengthRecordDataset(paths, 4, 1, 2)
    if kind == "npy":
        return di.data.NpyDataset(paths)
    return di.data.ArrowDataset(paths) if kind == "arrow" else di.data.ParquetDataset(paths)


def twice(*element: Any, **named: Any) -> Any:
    return element[0] if len(element) == 1 else element


OPS = {
    "map": lambda ds, k: ds.map(twice),
    "map_rows": lambda ds, k: ds.map_rows(twice),
    "threads": lambda ds, k: ds.map(twice, num_parallel_calls=2),
    "shuffle": lambda ds, k: ds.shuffle(k + 1, seed=k),
    "once": lambda ds, k: ds.shuffle(k + 1, seed=k, reshuffle_each_iteration=False),
    "global": lambda ds, k: ds.global_shuffle(seed=k),
    "take": lambda ds, k: ds.take(3 * k),
    "skip": lambda ds, k: ds.skip(k),
    "repeat": lambda ds, k: ds.repeat(k % 3),
    "shard": lambda ds, k: ds.shard(2, k % 2),
    "prefetch": lambda ds, k: ds.prefetch(2),
}
OPS_OF_BATCHES = {name: OPS[name] for name in ("take", "skip", "repeat", "prefetch")}
steps = st.lists(st.tuples(st.sampled_from(sorted(OPS)), st.integers(0, 7)), max_size=4)
steps_of_batches = st.lists(st.tuples(st.sampled_from(sorted(OPS_OF_BATCHES)), st.integers(0, 3)), max_size=2)


@given(
    kind=st.sampled_from(["range", "slices", "fixed", "parquet", "arrow", "npy"]),
    counts=st.lists(st.integers(0, 14), min_size=1, max_size=3),
    before=steps,
    batch=st.one_of(st.none(), st.integers(1, 9)),
    drop=st.booleans(),
    after=steps_of_batches,
    num_workers=st.integers(2, 5),
    each=st.integers(1, 3),
    cut=st.booleans(),
    at=st.integers(0, 12),
)
@settings(max_examples=cases(50, 2000))
def test_the_same_records_in_the_same_steps(
    kind: str,
    counts: list[int],
    before: list[tuple[str, int]],
    batch: int | None,
    drop: bool,
    after: list[tuple[str, int]],
    num_workers: int,
    each: int,
    cut: bool,
    at: int,
) -> None:
    with TemporaryDirectory() as folder:
        dataset = source(kind, counts, folder)
        for name, k in before:
            if name == "global" and dataset.cardinality() < 0:
                continue
            dataset = OPS[name](dataset, k)
        if batch is not None:
            dataset = dataset.batch(batch, drop)
            for name, k in after:
                dataset = OPS_OF_BATCHES[name](dataset, k)
        node = dataset.node
        if cut and batch is not None:
            node = LegacyRebatch(node, num_workers * each)
        for worker in range(num_workers):
            plain = Shard(node, num_workers, worker)
            made = pushed(plain)
            if made is None:
                continue
            assert made.spec == plain.spec
            expected, mine = list(Dataset(plain)), Dataset(made)
            for a, b in zip(expected, list(mine), strict=True):
                same(a, b)
            assert mine.cardinality() in (len(expected), -2)
            mine = Dataset(made)  # its first pass, as the one above
            with iter(mine) as iterator:
                for _ in range(min(at, len(expected))):
                    next(iterator)
                state = iterator.state()
            for a, b in zip(expected[at:], list(mine.restore(state)), strict=True):
                same(a, b)


def test_what_is_pushed_and_what_is_not(tmp_path: Path) -> None:
    counted = di.data.Dataset.range(100).map(lambda x: x + 1).shuffle(10, seed=1).batch(8).repeat(2)
    for dataset, expected in (
        (counted, True),
        (source("fixed", [40], str(tmp_path)).batch(8), True),
        (di.data.Dataset.range(100).filter(lambda x: x > 3).batch(8), False),
        (di.data.Dataset.range(100).batch(8).map(lambda x: x[:5]), False),
        (
            di.data.Dataset.range(100)
            .map(lambda x: np.zeros(x % 3), output_signature=di.TensorSpec([None], "float64"))
            .batch(8),
            False,
        ),
    ):
        made = own_rows(Shard(LegacyRebatch(dataset.node, 4), 2, 0))
        assert (made is not None) == expected, dataset


def test_auto_shard_pushes_where_it_can() -> None:
    node = di.data.Dataset.range(100).batch(8).node
    made = auto_shard(rebatch_for(node, 2, 2, 1), 2, 1, 4)
    assert any(isinstance(step, OwnRows) for step in walk(made))


def test_a_function_is_called_for_own_rows_only() -> None:
    called: list[int] = []

    def note(x: Any) -> Any:
        called.append(int(x))
        return x

    dataset = di.data.Dataset.range(64).map(note, output_signature=di.TensorSpec([], "int64")).batch(16)
    options = di.data.Options()
    options.experimental_distribute.auto_shard_policy = DATA
    node = dataset.with_options(options).node
    for worker in range(4):
        called.clear()
        given_rows = [
            int(x) for piece in Dataset(auto_shard(rebatch_for(node, 4, 1, worker), 4, worker, 4)) for x in piece
        ]
        assert called == given_rows
        assert len(called) == 16


def read_by_workers(dataset: Dataset, num_workers: int) -> tuple[int, int]:
    """Bytes read over all workers, and rows delivered."""
    bytes_read()
    rows = 0
    for worker in range(num_workers):
        node = auto_shard(rebatch_for(dataset.node, num_workers, 1, worker), num_workers, worker, num_workers)
        rows += sum(len(next(iter(piece.values())) if isinstance(piece, dict) else piece) for piece in Dataset(node))
    return bytes_read(), rows


def data_policy(dataset: Dataset) -> Dataset:
    options = di.data.Options()
    options.experimental_distribute.auto_shard_policy = DATA
    return dataset.with_options(options)


@pytest.mark.parametrize("shuffled", [False, True])
def test_eight_workers_read_fixed_length_records_once(shuffled: bool) -> None:
    n = 30_000
    paths = [put(f"fixed-{i}.bin", np.arange(i * n, (i + 1) * n).tobytes()) for i in range(3)]
    dataset: Dataset = di.data.FixedLengthRecordDataset(paths, 8)
    dataset = dataset.shuffle(1000, seed=2) if shuffled else dataset
    read, rows = read_by_workers(data_policy(dataset.batch(96)), 8)
    assert rows == 3 * n
    assert read <= 1.05 * 3 * n * 8


def test_parquet_reads_whole_row_groups(tmp_path: Path) -> None:
    """A row group is the least that can be read, so pushing pays where a piece is larger than one, and is left out else."""
    n, group = 64_000, 500
    path = tmp_path / "rows.parquet"
    di.io.write_parquet(str(path), {"x": np.random.default_rng(0).integers(0, 2**60, n)}, row_group_size=group)
    url = put("rows.parquet", path.read_bytes())
    size = path.stat().st_size
    large, rows = read_by_workers(data_policy(di.data.ParquetDataset(url).batch(32_000)), 8)
    assert rows == n
    assert large <= 1.2 * size  # pieces of 4000 rows: eight row groups each
    small, rows = read_by_workers(data_policy(di.data.ParquetDataset(url).batch(800)), 8)
    assert rows == n
    assert small <= 8.2 * size  # pieces of 100 rows: every worker needs every row group


@given(
    st.integers(0, 30), st.integers(1, 5), st.integers(1, 4), st.integers(1, 3), st.sampled_from(["batches", "mapped", "rows"]),
    st.data(),
)  # fmt: skip
def test_every_nth_step_of_a_rank_is_read_alone(
    n: int, size: int, ranks: int, count: int, kind: str, data: st.DataObject
) -> None:
    rows = Dataset.range(n).shuffle(5, seed=1)
    batches = rows.batch(size).map_rows(lambda block: block) if kind == "mapped" else rows.batch(size)
    rank, index = data.draw(st.integers(0, ranks - 1)), data.draw(st.integers(0, count - 1))
    whole = rows if kind == "rows" else batches.shard_batches(ranks, rank)
    found = own_steps(whole.node, index, count)
    if found is None:
        assert kind == "mapped"
        return
    for a, b in zip(Dataset(found), list(whole)[index::count], strict=True):
        same(a, b)
    at = data.draw(st.integers(0, Dataset(found).cardinality()))
    state = found.start_at(at, 0)
    assert state is not None
    assert any(isinstance(step, OwnRows) for step in walk(found))


def test_steps_whose_rows_cannot_be_reached_are_not_read_alone() -> None:
    assert own_steps(Dataset.range(9).filter(lambda x: x > 1).batch(2).shard_batches(2, 0).node, 0, 2) is None
    assert own_steps(Dataset.range(9).batch(2).map(lambda x: x).shard_batches(2, 0).node, 0, 2) is None
    assert own_steps(Dataset.range(9).batch(2).repeat(2).shard_batches(2, 0).node, 0, 2) is None


def test_an_error_names_the_record_where_only_a_short_last_batch_has_rows_of_a_worker(tmp_path: Path) -> None:
    path = tmp_path / "records"
    path.write_bytes(b"".join(b"%02d" % number for number in range(11)))

    def fails(record: bytes) -> int:
        raise ValueError(record)

    records = di.data.FixedLengthRecordDataset(str(path), 2).map(fails, output_signature=di.TensorSpec([], "int64"))
    node = records.batch(4).node
    worker = worker_tree(node, 3, 1, 2, decide(node, 3, DATA))  # 4 rows make pieces of 2, 2 and 0, and 3 of 1 each
    _, error = until_error(Dataset(worker))
    assert error.args == (b"10",)
    assert f"record 10 of {path}" in error.__notes__
