# SPDX-License-Identifier: Apache-2.0
"""What a plan predicts is what happens."""

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import distinput as di
from distinput.data.dataset import Dataset
from distinput.distribute.rehearsal import rehearse
from distinput.errors import DistinputError, InvalidArgumentError, NotFoundError
from distinput.files import source
from distinput.formats import span_format
from distinput.plan.batch_sizes import BatchSizes
from distinput.plan.options import AutoShardPolicy
from distinput.sharding.own_rows import rebatch_for
from distinput.sharding.policies import auto_shard
from distinput.testing.pipelines import pipelines
from distinput.values.nest import structure_of
from tests.depth import cases
from tests.sharding.counting import bytes_read, put

POLICIES = [
    AutoShardPolicy.AUTO,
    AutoShardPolicy.DATA,
    AutoShardPolicy.BALANCED,
    AutoShardPolicy.FILE,
    AutoShardPolicy.OFF,
]


def line(n: int) -> bytes:
    return b"%d\n" % n


def files_of(kind: str, counts: list[int], folder: str) -> Dataset:
    paths, first = [f"{folder}/{number}" for number in range(len(counts))], 0
    for path, count in zip(paths, counts, strict=True):
        rows = range(first, first + count)
        first += count
        if kind in ("text", "interleaved"):
            Path(path).write_bytes(b"".join(map(line, rows)))
        elif kind == "fixed":
            Path(path).write_bytes(b"".join(b"%04d" % row for row in rows))
        elif kind == "parquet":
            di.io.write_parquet(path, {"a": np.array(rows, np.int64)}, row_group_size=3)
        else:
            with di.io.TFRecordWriter(path) as writer:
                for row in rows:
                    writer.write(line(row))
    makers: dict[str, Callable[[], Dataset]] = {
        "text": lambda: di.data.TextLineDataset(paths),
        "interleaved": lambda: di.data.TextLineDataset(paths, num_parallel_reads=2),
        "fixed": lambda: di.data.FixedLengthRecordDataset(paths, 4),
        "parquet": lambda: di.data.ParquetDataset(paths),
        "tfrecord": lambda: di.data.TFRecordDataset(paths),
    }
    return makers[kind]()


OPS: dict[str, Callable[[Dataset, int], Dataset]] = {
    "shuffle": lambda ds, k: ds.shuffle(k + 1, seed=k),
    "map": lambda ds, k: ds.map(lambda *x: x[0]),
    "filter": lambda ds, k: ds.filter(lambda *x: True),
    "take": lambda ds, k: ds.take(3 * k),
    "skip": lambda ds, k: ds.skip(k),
    "repeat": lambda ds, k: ds.repeat(k % 3),
    "concatenate": lambda ds, k: ds.concatenate(ds.take(k)),
    "shard": lambda ds, k: ds.shard(2, k % 2),
}
steps = st.lists(st.tuples(st.sampled_from(sorted(OPS)), st.integers(0, 5)), max_size=3)
steps_of_batches = st.lists(
    st.tuples(st.sampled_from(["take", "skip", "repeat", "shard"]), st.integers(0, 4)), max_size=2
)


def rows_in(element: Any) -> int:
    leaf = structure_of(element).flatten(element)[0]
    return len(leaf)


class Opened:
    """The files from which bytes were read as records."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.files: set[str] = set()
        opened = source.FileStream.__init__

        def noting(this: Any, path: str, *args: Any, **named: Any) -> None:
            self.files.add(path)
            opened(this, path, *args, **named)

        def noting_small(path: str, most: int) -> Any:
            self.files.add(path)
            return source.read_small(path, most)

        monkeypatch.setattr(source.FileStream, "__init__", noting)
        monkeypatch.setattr(span_format, "read_small", noting_small)


@given(
    kind=st.sampled_from(["text", "interleaved", "fixed", "parquet", "tfrecord", "range"]),
    counts=st.lists(st.integers(0, 12), min_size=1, max_size=5),
    before=steps,
    batch=st.integers(1, 9),
    drop=st.booleans(),
    after=steps_of_batches,
    num_workers=st.integers(1, 5),
    replicas=st.integers(1, 3),
    policy=st.sampled_from(POLICIES),
)
@settings(max_examples=cases(40, 2000))
def test_predicted_files_rows_and_steps_are_those_of_a_run(
    kind: str,
    counts: list[int],
    before: list[tuple[str, int]],
    batch: int,
    drop: bool,
    after: list[tuple[str, int]],
    num_workers: int,
    replicas: int,
    policy: AutoShardPolicy,
) -> None:
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as monkeypatch:
        dataset = di.data.Dataset.range(sum(counts)) if kind == "range" else files_of(kind, counts, folder)
        for name, k in before:
            dataset = OPS[name](dataset, k)
        dataset = dataset.batch(batch, drop)
        for name, k in after:
            dataset = OPS[name](dataset, k)
        node = dataset.node
        try:
            plan = di.data.experimental.shard_plan(dataset, num_workers, replicas, policy)
        except DistinputError as error:
            with pytest.raises(type(error)):
                auto_shard(
                    rebatch_for(node, num_workers, replicas, 0), num_workers, 0, num_workers * replicas, policy=policy
                )
            return
        assert len(plan.workers) == num_workers
        opened = Opened(monkeypatch)
        taken = []
        for worker in plan.workers:
            opened.files.clear()
            tree = auto_shard(
                rebatch_for(node, num_workers, replicas, worker.worker),
                num_workers,
                worker.worker,
                num_workers * replicas,
                policy=policy,
            )
            elements = list(Dataset(tree))
            assert worker.rows in (None, sum(map(rows_in, elements)))
            taken.append(math.ceil(len(elements) / replicas))
            assert worker.steps in (None, taken[-1])
            assert opened.files <= set(worker.files)  # a `take` may end before the last of them
            looks_at_all = not before and not after and not drop and kind not in ("parquet", "fixed")
            if looks_at_all:
                assert opened.files == set(worker.files)
            if kind in ("fixed", "parquet", "range") and not any(name == "filter" for name, _ in before):
                assert worker.rows is not None
        assert plan.steps in (None, max(taken))
        assert json.loads(plan.to_json())["steps"] == plan.steps
        assert str(plan)


@given(pipelines())
def test_what_is_counted_is_what_comes(pipeline: Any) -> None:
    node = pipeline.build().node
    count, sizes = node.count_elements(), node.batch_sizes() if pipeline.batched else None
    assert count in (-2, len(pipeline.elements))
    if sizes is not None:
        assert sizes.flat().tolist() == [rows_in(e) for e in pipeline.elements]


RUNS = st.lists(st.tuples(st.lists(st.integers(0, 9), min_size=1, max_size=4), st.integers(0, 4)), max_size=3)


def flat(sizes: BatchSizes) -> list[int]:
    return [int(size) for size in sizes.flat()]


@given(RUNS, st.integers(0, 20), st.integers(0, 20), st.integers(1, 6), st.integers(0, 5))
def test_patterns_are_what_they_stand_for(runs: Any, start: int, more: int, step: int, index: int) -> None:
    sizes = BatchSizes.of(runs)
    whole = flat(sizes)
    assert (sizes.count, sizes.rows) == (len(whole), sum(whole))
    assert flat(sizes.part(start, start + more)) == whole[start : start + more]
    assert flat(sizes.every(step, index % step)) == whole[index % step :: step]
    repeated = sizes.repeated(step)
    assert repeated is not None
    assert flat(repeated) == whole * step


def test_reasons_are_codes_and_sentences(tmp_path: Path) -> None:
    text = files_of("text", [3, 4], str(tmp_path)).batch(4)
    plan = di.data.experimental.shard_plan

    def why(dataset: Dataset, workers: int, policy: AutoShardPolicy | None = None) -> tuple[str, str, str]:
        made = plan(dataset, workers, 1, policy)
        return made.policy, made.reason, made.reads

    assert why(text, 2) == ("FILE", "enough_files", "own")
    assert why(text, 3) == ("DATA", "too_few_files", "whole files")
    assert why(text, 3, AutoShardPolicy.BALANCED) == ("BALANCED", "asked", "own")
    assert why(text, 2, AutoShardPolicy.OFF) == ("OFF", "asked", "whole files")
    assert why(di.data.Dataset.range(9).batch(3), 2) == ("DATA", "not_files", "memory")
    fixed = di.data.FixedLengthRecordDataset([str(tmp_path / "0")], 2).batch(2)
    assert why(fixed, 2) == ("DATA", "too_few_files", "own")
    assert "policy BALANCED reads only its own parts" in plan(text, 3).sentence
    with pytest.raises(InvalidArgumentError, match="only has 2 file"):
        plan(text, 3, 1, AutoShardPolicy.FILE)
    with pytest.raises(InvalidArgumentError, match="num_workers must be at least 1, got 0"):
        plan(text, 0)
    with pytest.raises(NotFoundError, match="unshardable"):
        plan(di.data.Dataset.range(3).batch(1), 2, 1, AutoShardPolicy.FILE)


def test_more_than_a_million_replicas_are_a_mistake() -> None:
    dataset = Dataset.range(10).batch(4)
    with pytest.raises(
        InvalidArgumentError, match=r"at most 1,048,576 replicas, got 1,099,511,627,776 workers with 1 each"
    ):
        di.data.experimental.shard_plan(dataset, 2**40)
    with pytest.raises(InvalidArgumentError, match=r"got 1,024 workers with 1,025 each"):
        di.data.experimental.shard_plan(dataset, 2**10, 2**10 + 1)


@given(
    kind=st.sampled_from(["text", "fixed", "parquet", "tfrecord"]),
    counts=st.lists(st.integers(0, 4000), min_size=1, max_size=4),
    row_group=st.integers(500, 3000),
    shuffle=st.booleans(),
    batch=st.integers(1, 4000),
    num_workers=st.integers(1, 5),
    replicas=st.integers(1, 3),
    policy=st.sampled_from(POLICIES),
)
@settings(max_examples=cases(25, 1000))
def test_predicted_bytes_are_those_of_a_run(
    kind: str,
    counts: list[int],
    row_group: int,
    shuffle: bool,
    batch: int,
    num_workers: int,
    replicas: int,
    policy: AutoShardPolicy,
) -> None:
    paths = [put_rows(kind, number, rows, row_group) for number, rows in enumerate(counts)]
    dataset = MAKERS[kind](paths)
    dataset = (dataset.shuffle(50, seed=1) if shuffle else dataset).batch(batch)
    try:
        plan = di.data.experimental.shard_plan(dataset, num_workers, replicas, policy)
    except InvalidArgumentError:  # too few files
        return
    predicted = [worker.nbytes for worker in plan.workers]
    for worker, nbytes in enumerate(predicted):
        cut = rebatch_for(dataset.node, num_workers, replicas, worker)
        tree = auto_shard(cut, num_workers, worker, num_workers * replicas, policy=policy)
        bytes_read()
        for _ in Dataset(tree):
            pass
        read = bytes_read()
        assert nbytes is not None
        # The last line of a range of a text may end behind the read that comes to the end of the range, in another one, each of
        # up to 4096 bytes beyond it, and whether a line begins at its beginning is told by the byte before; the footers of
        # Parquet were read for the plan.
        parts = len(plan.workers[worker].parts)
        beside = {
            "text": (2 * 4096 + 1) * parts * (policy == AutoShardPolicy.BALANCED),
            "parquet": nbytes // 10 + 1500 * parts,
        }.get(kind, 0)
        assert abs(read - nbytes) <= beside, (kind, plan.reads)


def put_rows(kind: str, number: int, rows: int, row_group: int) -> str:
    """A file of so many records of 8 bytes in the file system that counts."""
    values = np.random.default_rng(number).integers(0, 10**8, rows)
    name = f"bytes/{kind}/{number}"
    if kind == "parquet":
        path = f"counting://{name}"
        di.io.write_parquet(path, {"a": values}, row_group_size=row_group)
        return path
    records = [b"%08d" % value for value in values]
    if kind == "tfrecord":
        with di.io.TFRecordWriter(f"counting://{name}") as writer:
            for record in records:
                writer.write(record)
        return f"counting://{name}"
    return put(name, b"".join(record + b"\n" * (kind == "text") for record in records))


MAKERS: dict[str, Callable[[list[str]], Dataset]] = {
    "text": lambda paths: di.data.TextLineDataset(paths),
    "fixed": lambda paths: di.data.FixedLengthRecordDataset(paths, 8),
    "parquet": lambda paths: di.data.ParquetDataset(paths),
    "tfrecord": lambda paths: di.data.TFRecordDataset(paths),
}


def test_a_plan_says_what_large_row_groups_cost() -> None:
    """Pieces of 3,086 rows of row groups of 3,000: each worker reads two or three groups for each piece."""
    paths = [put_rows("parquet", number, 20_000, 3_000) for number in range(3)]
    plan = di.data.experimental.shard_plan(di.data.ParquetDataset(paths).batch(12_345), 4)
    assert plan.policy == "DATA"
    assert plan.reads == "own"
    times = sum(worker.nbytes or 0 for worker in plan.workers) / sum(source.size_of(path) for path in paths)
    assert times > 1.5
    assert re.search(
        r"2\.\d+ times as many bytes as its rows take: policy BALANCED, or files with smaller parts", plan.sentence
    )
    smaller = [put_rows("parquet", number, 20_000, 100) for number in range(3)]
    plan = di.data.experimental.shard_plan(di.data.ParquetDataset(smaller).batch(12_345), 4)
    assert plan.sentence.endswith("each worker reads only its own rows")
    assert sum(worker.nbytes or 0 for worker in plan.workers) < 1.05 * sum(map(source.size_of, smaller))


@pytest.mark.parametrize("policy", [policy for policy in POLICIES if policy != AutoShardPolicy.AUTO])
def test_columns_that_are_left_out_are_not_counted(policy: AutoShardPolicy) -> None:
    paths = [f"counting://columns/{number}" for number in range(2)]
    values = np.random.default_rng(0).integers(0, 1 << 60, 20_000)
    for path in paths:
        di.io.write_parquet(path, {"a": values.astype(np.int16), "b": values}, row_group_size=1000)
    dataset = di.data.ParquetDataset(paths, columns=["a"]).batch(5000)
    plan = di.data.experimental.shard_plan(dataset, 2, policy=policy)
    for worker in plan.workers:
        tree = auto_shard(rebatch_for(dataset.node, 2, 1, worker.worker), 2, worker.worker, 2, policy=policy)
        bytes_read()
        rows = sum(len(batch["a"]) for batch in Dataset(tree))
        assert rows == worker.rows
        assert worker.nbytes == pytest.approx(bytes_read(), rel=0.05)


def test_a_plan_says_whether_the_end_is_known(tmp_path: Path) -> None:
    plan = di.data.experimental.shard_plan
    assert plan(files_of("text", [3, 4], str(tmp_path)).batch(2), 2).end == "agreed"
    assert plan(di.data.Dataset.range(7).batch(2), 2).end == "beforehand"
    assert plan(di.data.Dataset.range(7).batch(2).repeat(), 2).end == "endless"


def test_explain_appends_the_plan(tmp_path: Path) -> None:
    dataset = files_of("text", [30, 40, 50], str(tmp_path)).batch(4)
    alone = dataset.explain()
    shown = dataset.explain(num_workers=8, policy=AutoShardPolicy.BALANCED)
    assert shown.startswith(alone + "\nshards: 8 workers with 1 replica each, policy BALANCED\n")
    assert "not known beforehand" in shown
    assert "known" not in alone


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("kind", ["text", "fixed", "tfrecord"])
def test_nothing_is_read_where_names_and_sizes_tell(kind: str, policy: AutoShardPolicy) -> None:
    paths = [put(f"plan/{kind}/{number}", line(number) * 2000) for number in range(4)]
    makers: dict[str, Callable[[], Dataset]] = {
        "text": lambda: di.data.TextLineDataset(paths),
        "fixed": lambda: di.data.FixedLengthRecordDataset(paths, 2),
        "tfrecord": lambda: di.data.TFRecordDataset(paths),
    }
    dataset = makers[kind]().batch(4)
    bytes_read()
    plan = di.data.experimental.shard_plan(dataset, 3, 2, policy)
    assert plan.to_json()
    assert str(plan)
    assert bytes_read() == 0


def test_a_printed_plan_for_very_many_workers_looks_at_a_few() -> None:
    plan = di.data.experimental.shard_plan(
        di.data.Dataset.range(100_000).batch(5000), 5000, policy=AutoShardPolicy.BALANCED
    )
    shown = str(plan)
    assert "20 on the first 16 workers, known beforehand" in shown
    assert "and 4984 workers more" in shown


@pytest.mark.parametrize("number_of_files", [2, 5])
def test_records_that_a_function_reads_are_counted_once(number_of_files: int, tmp_path: Path) -> None:
    names = [str(tmp_path / f"{number}.bin") for number in range(number_of_files)]
    for name in names:
        Path(name).write_bytes(bytes(range(40)))
    files = di.data.Dataset.from_tensor_slices(names)
    dataset = files.flat_map(lambda name: di.data.FixedLengthRecordDataset(name, 4)).batch(5)
    told = di.data.experimental.shard_plan(dataset, 2, policy=AutoShardPolicy.BALANCED)
    assert sum(worker.rows for worker in told.workers) == 10 * number_of_files
    assert told.steps == 2 * number_of_files


def test_the_numbers_of_workers_and_replicas_are_integers_of_any_kind() -> None:
    plan = di.data.experimental.shard_plan
    batches = di.data.Dataset.range(9).batch(4)
    told = plan(batches, np.int64(2), np.int8(3))
    assert str(told) == str(plan(batches, 2, 3))
    assert told.to_json() == plan(batches, 2, 3).to_json()
    with pytest.raises(TypeError, match=r"shard_plan: num_workers must be an integer, got 2\.0"):
        plan(batches, 2.0)
    with pytest.raises(TypeError, match="shard_plan: replicas_per_worker must be an integer, got '2'"):
        plan(batches, 2, "2")


def test_the_number_of_steps_is_not_known_where_workers_leave_out_some_together(tmp_path: Path) -> None:
    """Of a batch of 2 each of 4 replicas gets a row in every other step; where one worker has ended, those without rows go."""
    options = di.data.Options()
    options.experimental_distribute.auto_shard_policy = AutoShardPolicy.FILE
    batches = files_of("parquet", [12, 4], str(tmp_path)).batch(2).with_options(options)

    def steps_of(distributed: Any, _: Any) -> int:
        return sum(1 for _ in distributed)

    assert [rehearse(batches, 2, replicas, steps_of)[0] for replicas in (1, 2)] == [12, 8]
    assert [di.data.experimental.shard_plan(batches, 2, replicas).steps for replicas in (1, 2)] == [12, None]
