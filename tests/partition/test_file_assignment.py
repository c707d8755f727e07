# SPDX-License-Identifier: Apache-2.0
"""Policy BALANCED: every record exactly once over all workers, evenly, for any files."""

import gzip
import os
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import distinput as di
from distinput.errors import NotFoundError
from distinput.files.manifest import FileTable
from distinput.formats.fixed_length import FixedLengthRecords
from distinput.formats.parquet import Parquet
from distinput.formats.text import TextLines
from distinput.formats.tfrecord import TFRecords
from distinput.kernels.dealing import deal_by_size
from distinput.sharding.policies.balanced import assign_files, deal_in_rounds

BALANCED = di.data.experimental.AutoShardPolicy.BALANCED

lines = st.lists(st.sampled_from([b"", b"a", b"\r", b"bb", b"line \xc3\xa4", b"x" * 40]), max_size=12)
ends = st.sampled_from([b"\n", b"\r\n"])
texts = st.builds(
    lambda parts, end, last: end.join(parts) + (end if last and parts else b""), lines, ends, st.booleans()
)
workers = st.integers(1, 16)


def balanced(dataset: di.data.Dataset) -> di.data.Dataset:
    options = di.data.Options()
    options.experimental_distribute.auto_shard_policy = BALANCED
    return dataset.with_options(options)


def shares(dataset: di.data.Dataset, num_workers: int) -> list[list[Any]]:
    """What each worker delivers."""
    shard = di.data.experimental.auto_shard_dataset
    return [list(shard(balanced(dataset), num_workers, worker)) for worker in range(num_workers)]


def together(parts: list[list[Any]]) -> list[Any]:
    return [element for part in parts for element in part]


def written(folder: str, contents: list[bytes]) -> list[str]:
    paths = [os.path.join(folder, f"{number:03}") for number in range(len(contents))]
    for path, content in zip(paths, contents, strict=True):
        Path(path).write_bytes(content)
    return paths


@given(
    sizes=st.lists(st.one_of(st.integers(1, 3), st.integers(1, 1000), st.integers(1, 1 << 40)), max_size=300),
    num_workers=st.integers(1, 20),
)
def test_dealing_in_rounds_is_dealing_one_by_one(sizes: list[int], num_workers: int) -> None:
    falling = np.array(sorted(sizes, reverse=True), np.int64)
    loads, owners = np.zeros((2, num_workers), np.int64), np.zeros((2, len(sizes)), np.int64)
    deal_by_size.reference(falling, loads[0], owners[0])
    if deal_in_rounds(falling, loads[1], owners[1]):
        assert owners[0].tolist() == owners[1].tolist()
        assert loads[0].tolist() == loads[1].tolist()


def test_rounds_are_given_up_where_they_would_be_short() -> None:
    even = np.sort(np.random.default_rng(0).lognormal(15, 1.5, 20_000).astype(np.int64))[::-1]
    uneven = np.array(
        7 * [1 << 40] + 100_000 * [1], np.int64
    )  # all the small ones go to the one worker without a large one
    huge = np.full(3, 1 << 61)
    for sizes, num_workers, done in ((even, 100, True), (uneven, 8, False), (huge, 2, False)):
        loads, owners = np.zeros(num_workers, np.int64), np.zeros(len(sizes), np.int64)
        assert deal_in_rounds(np.ascontiguousarray(sizes), loads, owners) is done


@given(contents=st.lists(texts, min_size=1, max_size=5), num_workers=workers)
def test_every_line_exactly_once_and_in_order(contents: list[bytes], num_workers: int) -> None:
    with TemporaryDirectory() as folder:
        dataset = di.data.TextLineDataset(written(folder, contents))
        parts = shares(dataset, num_workers)
        # A line is cut into stretches in order, so the workers one after the other give the whole.
        assert together(parts) == list(dataset)


@given(content=texts, cuts=st.lists(st.integers(0, 200), max_size=8))
def test_parts_of_a_text_have_each_line_once_wherever_it_is_cut(content: bytes, cuts: list[int]) -> None:
    with TemporaryDirectory() as folder:
        (path,) = written(folder, [content])
        form = TextLines()
        bounds = [*sorted({min(cut, len(content)) for cut in cuts} | {0}), None]
        found = []
        for start, stop in pairwise(bounds):
            fragment = form.part(path, start, stop)
            pieces = list(form.read_fragment(fragment))
            rows = [row for block, _ in pieces for row in block.elements()]
            found += rows
            done = 0
            for block, after in pieces:
                done += block.size
                again = [row for more, _ in form.read_fragment(fragment, after) for row in more.elements()]
                assert again == rows[done:]
        assert found == list(di.data.TextLineDataset(path))


@given(
    counts=st.lists(st.integers(0, 30), min_size=1, max_size=5),
    header=st.integers(0, 3),
    footer=st.integers(0, 3),
    num_workers=workers,
)
def test_records_of_fixed_length_are_dealt_evenly(
    counts: list[int], header: int, footer: int, num_workers: int
) -> None:
    with TemporaryDirectory() as folder:
        contents = [
            b"H" * header + b"".join(b"%d%03d" % (file, row) for row in range(n)) + b"F" * footer
            for file, n in enumerate(counts)
        ]
        dataset = di.data.FixedLengthRecordDataset(written(folder, contents), 4, header, footer)
        parts = shares(dataset, num_workers)
        assert together(parts) == list(dataset)
        sizes = [len(part) for part in parts]
        assert max(sizes) - min(sizes) <= 1


@given(
    counts=st.lists(st.integers(0, 12), min_size=1, max_size=5),
    group=st.integers(1, 4),
    num_workers=workers,
    batch=st.booleans(),
)
@settings(max_examples=20)
def test_row_groups_are_dealt_each_once(counts: list[int], group: int, num_workers: int, batch: bool) -> None:
    with TemporaryDirectory() as folder:
        paths = [os.path.join(folder, f"{number}.parquet") for number in range(len(counts))]
        first = 0
        for path, n in zip(paths, counts, strict=True):
            di.io.write_parquet(path, {"id": np.arange(first, first + n)}, row_group_size=group)
            first += n
        dataset = di.data.ParquetDataset(paths)
        parts = shares(dataset.batch(3).unbatch() if batch else dataset, num_workers)
        found = [element["id"] for element in together(parts)]
        assert sorted(found) == list(range(first))
        for part in parts:  # each worker keeps the order of the whole
            numbers = [element["id"] for element in part]
            assert numbers == sorted(numbers)


@given(counts=st.lists(st.integers(0, 9), min_size=1, max_size=9), num_workers=workers, compress=st.booleans())
@settings(max_examples=20)
def test_files_that_cannot_be_cut_are_dealt_whole(counts: list[int], num_workers: int, compress: bool) -> None:
    with TemporaryDirectory() as folder:
        contents = [b"".join(b"%d-%d\n" % (file, row) for row in range(n)) for file, n in enumerate(counts)]
        if compress:
            contents = [gzip.compress(content) for content in contents]
            dataset = di.data.TextLineDataset(written(folder, contents), "GZIP")
        else:
            paths = [os.path.join(folder, str(number)) for number in range(len(counts))]
            for path, content in zip(paths, contents, strict=True):
                with di.io.TFRecordWriter(path) as writer:
                    for line in content.splitlines():
                        writer.write(line)
            dataset = di.data.TFRecordDataset(paths)
        parts = shares(dataset, num_workers)
        assert sorted(together(parts)) == sorted(dataset)
        files = [{element.split(b"-")[0] for element in part} for part in parts]
        assert sum(map(len, files)) == len(set().union(*files))  # no file is read by two workers


@given(contents=st.lists(texts, min_size=1, max_size=4), num_workers=workers, cycle=st.integers(1, 3))
def test_readers_made_by_a_function_are_cut_too(contents: list[bytes], num_workers: int, cycle: int) -> None:
    with TemporaryDirectory() as folder:
        names = di.data.Dataset.from_tensor_slices(written(folder, contents))
        dataset = names.interleave(lambda name: di.data.TextLineDataset(name).map(lambda line: line + b"!"), cycle)
        assert sorted(together(shares(dataset, num_workers))) == sorted(dataset)


def test_a_function_that_looks_at_the_whole_file_gets_whole_files(tmp_path: Path) -> None:
    paths = written(str(tmp_path), [b"%d\n" % n * 20 for n in range(5)])
    dataset = di.data.Dataset.from_tensor_slices(paths).flat_map(lambda name: di.data.TextLineDataset(name).take(3))
    parts = shares(dataset, 2)
    assert sorted(together(parts)) == sorted(dataset)
    assert all(len(part) % 3 == 0 for part in parts)


def test_three_files_serve_eight_workers(tmp_path: Path) -> None:
    paths = written(str(tmp_path), [b"".join(b"%d %06d\n" % (n, i) for i in range(5000 * (n + 1))) for n in range(3)])
    parts = shares(di.data.TextLineDataset(paths), 8)
    assert [len(part) for part in parts] == pytest.approx([3750] * 8, abs=1)


@given(
    sizes=st.lists(st.integers(0, 9), min_size=1, max_size=5),
    num_workers=workers,
    build=st.sampled_from(["range", "slices", "take", "enumerate", "concatenate"]),
)
def test_what_can_be_counted_is_cut_by_rows(sizes: list[int], num_workers: int, build: str) -> None:
    n = sum(sizes)
    dataset: Any = di.data.Dataset.range(n)
    if build == "slices":
        dataset = di.data.Dataset.from_tensor_slices(np.arange(n) * 2)
    elif build == "take":
        dataset = dataset.skip(1).take(n // 2)
    elif build == "enumerate":
        dataset = di.data.Dataset.zip(dataset, dataset.map(lambda x: -x))
    elif build == "concatenate":
        dataset = dataset.concatenate(di.data.Dataset.range(100, 105))
    parts = shares(dataset, num_workers)
    assert sorted(together(parts)) == sorted(dataset)
    if build != "concatenate":
        assert together(parts) == list(dataset)


def test_ops_that_need_all_elements_are_refused_with_the_cure(tmp_path: Path) -> None:
    (path,) = written(str(tmp_path), [b"a\nb\n"])
    with pytest.raises(NotFoundError, match=r"BALANCED: take needs to see all elements.*use policy DATA"):
        shares(di.data.TextLineDataset(path).take(1), 2)


def test_a_shuffle_of_names_stays_with_each_worker(tmp_path: Path) -> None:
    paths = written(str(tmp_path), [b"%d\n" % n * 4 for n in range(9)])
    names = di.data.Dataset.list_files(str(tmp_path / "*"), shuffle=True)
    dataset = di.data.TextLineDataset(names)
    assert len(paths) == 9
    assert sorted(together(shares(dataset, 4))) == sorted(dataset)


@given(
    counts=st.lists(st.integers(0, 9), min_size=1, max_size=4),
    num_workers=workers,
    repeats=st.integers(1, 3),
    at=st.integers(0, 9),
)
def test_a_worker_goes_on_where_it_stood(counts: list[int], num_workers: int, repeats: int, at: int) -> None:
    with TemporaryDirectory() as folder:
        contents = [b"".join(b"%d-%d\n" % (file, row) for row in range(n)) for file, n in enumerate(counts)]
        dataset = balanced(di.data.TextLineDataset(written(folder, contents)).repeat(repeats))
        for worker in range(num_workers):
            mine = di.data.experimental.auto_shard_dataset(dataset, num_workers, worker)
            elements = list(mine)
            with iter(mine) as iterator:
                for _ in range(min(at, len(elements))):
                    next(iterator)
                state = iterator.state()
            assert list(mine.restore(state)) == elements[at:]


SIZES = st.lists(st.one_of(st.integers(0, 50), st.integers(0, 10**9)), min_size=1, max_size=300)


@given(sizes=SIZES, num_workers=st.integers(1, 40))
def test_dealt_parts_cover_every_file_once(sizes: list[int], num_workers: int) -> None:
    files = FileTable.of([f"f{n}" for n in range(len(sizes))], sizes)
    for form, whole in ((TFRecords(), True), (TextLines(), False), (FixedLengthRecords(1), False)):
        dealt = assign_files(files, form, num_workers)
        covered = [0] * len(sizes)
        seen = np.zeros(len(sizes), int)
        loads = []
        for worker in range(num_workers):
            share = dealt.share(worker)
            loads.append(int(share.nbytes.sum()))
            for number in range(len(share)):
                index = int(share.path(number)[1:])
                start = int(share.start[number])
                stop = sizes[index] if share.stop[number] == -1 else int(share.stop[number])
                covered[index] += stop - start
                seen[index] += 1
        assert covered == sizes
        assert (seen >= 1).all()
        assert not whole or (seen == 1).all()
        assert loads == dealt.loads.tolist()
        if not whole and sum(sizes):
            assert max(loads) - min(loads) <= 1


@given(st.integers(0, 2**32), st.integers(2, 64))
@settings(max_examples=10)
def test_many_sizes_come_out_within_a_hundredth(seed: int, num_workers: int) -> None:
    sizes = (np.random.default_rng(seed).lognormal(15, 1.5, 20_000)).astype(int)
    loads = assign_files(FileTable.of(["f"] * len(sizes), sizes), TFRecords(), num_workers).loads
    assert loads.max() <= max(1.01 * loads.mean(), sizes.max())  # a single file may be larger than a fair share


def test_the_largest_row_groups_are_only_looked_up_where_that_helps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [str(tmp_path / f"{number}.parquet") for number in range(64)]
    for path in paths:
        di.io.write_parquet(path, {"id": np.arange(100)}, row_group_size=10)
    looked: list[str] = []
    fragments = Parquet.fragments
    monkeypatch.setattr(Parquet, "fragments", lambda self, path: looked.append(path) or fragments(self, path))
    assert assign_files(FileTable.of(paths), Parquet(), 8).loads.std() < 1
    assert looked == []
    uneven = assign_files(FileTable.of(paths[:3]), Parquet(), 8)
    assert len(looked) == 3
    assert uneven.loads.max() <= 1.1 * uneven.loads.mean()  # 30 row groups: some workers have 4, some 3


def test_parts_are_not_dealt_again(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"".join(b"%04d\n" % number for number in range(40)))
    again = di.data.experimental.auto_shard_dataset
    part = again(balanced(di.data.TextLineDataset([str(path)])), 2, 1)
    assert list(again(part, 1, 0)) == [b"%04d" % number for number in range(20, 40)]
    with pytest.raises(NotFoundError, match=r"text reads the parts of files that one worker was given.*policy DATA"):
        again(part, 2, 0)
    other = di.data.Options()
    other.experimental_distribute.auto_shard_policy = di.data.experimental.AutoShardPolicy.DATA
    assert len(list(again(part.with_options(other), 2, 0))) == 10
