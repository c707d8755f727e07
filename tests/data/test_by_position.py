# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import distinput as di
from distinput.formats import parquet_file
from distinput.streaming.by_position import rows_of
from tests.ops.iterating import plain

DATASET = di.data.Dataset
TEN = DATASET.range(10)


class Counting:
    """Items that say which of them were read."""

    def __init__(self, length: int = 1000) -> None:
        self.length = length
        self.read: list[int] = []

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Any:
        self.read.append(index)
        return np.int64(index)


@pytest.fixture
def counted() -> tuple[Counting, Any]:
    source = Counting()
    return source, DATASET.from_source(source, element_spec=di.TensorSpec([], "int64"))


def test_a_key_gives_what_a_list_gives() -> None:
    dataset, elements = TEN.map(lambda x: x * 2), list(range(0, 20, 2))
    for key in (0, 3, -1, -10, np.int64(4), np.array(5)):
        assert dataset[key] == elements[int(key)]
    for part in (slice(2, 5), slice(None), slice(None, None, -3), slice(-4, -1), slice(8, 2), slice(3, 100)):
        assert dataset[part] == elements[part]
    for some in ([3, 1, 2], (0, -1), [], np.array([2, 2, -1], np.int32), range(4)):
        assert dataset[some] == dataset.__getitems__(some) == [elements[i] for i in some]


@pytest.mark.parametrize("key", [10, -11, [0, 10], np.array([-11])])
def test_there_is_no_such_element(key: Any) -> None:
    with pytest.raises(IndexError, match=r"dataset\[key\]: there is no element -?1[01] in a dataset of 10"):
        TEN[key]


@pytest.mark.parametrize("key", [1.5, "a", True, None, [1.5], [[1]], [True, False], {1: 2}])
def test_what_is_no_key(key: Any) -> None:
    with pytest.raises(TypeError, match=r"dataset\[key\]: the key must be an integer, a slice, or a list or array"):
        TEN[key]


def test_an_infinite_dataset_has_no_end_to_count_from() -> None:
    endless = TEN.repeat()
    assert endless[25] == 5
    assert endless[8:12] == [8, 9, 0, 1]
    for key in (-1, [0, -1], slice(None), slice(-2, 5), slice(5, None), slice(5, 0, -1)):
        with pytest.raises(TypeError, match="the dataset is infinite and has no end to count from"):
            endless[key]


@pytest.mark.parametrize(
    "dataset, op",
    [
        (TEN.filter(lambda x: x > 2), "filter"),
        (TEN.filter(lambda x: x > 2).batch(2).map(lambda x: x), "filter"),
        (DATASET.zip(TEN, TEN.scan(np.int64(0), lambda s, x: (s, x))), "scan"),
        (DATASET.from_generator(lambda: iter([1]), output_signature=di.TensorSpec([], "int64")), "generator"),
        (TEN.flat_map(lambda x: DATASET.range(x)), "flat_map"),
        (TEN.ignore_errors(), "ignore_errors"),
    ],
)
def test_a_step_that_can_only_be_iterated_is_named(dataset: Any, op: str) -> None:
    for key in (0, [0], [], slice(2)):
        with pytest.raises(
            TypeError, match=rf"by position: {op} can only be iterated, .*made at .*; iterate .* cache\(\)"
        ):
            dataset[key]


def test_a_cache_makes_elements_reachable() -> None:
    calls: list[int] = []

    def kept(x: Any) -> Any:
        calls.append(int(x))
        return x > 2

    dataset = TEN.filter(kept).cache().batch(2)
    assert [batch.tolist() for batch in dataset[::-1]] == [[9], [7, 8], [5, 6], [3, 4]]
    assert dataset[0].tolist() == [3, 4]
    assert sum(1 for _ in dataset) == 4
    assert calls == list(range(10))


STEPS: dict[str, tuple[Callable[[Any], Any], int]] = {
    "map": (lambda ds: ds.map(lambda x: x + 1), 1),
    "map in threads": (lambda ds: ds.map(lambda x: x + 1, num_parallel_calls=2), 1),
    "batch": (lambda ds: ds.batch(7), 7),
    "batch of batches": (lambda ds: ds.take(980).batch(7).batch(3), 21),
    "padded_batch": (lambda ds: ds.padded_batch(7), 7),
    "rebatch": (lambda ds: ds.batch(7).rebatch(3), 14),
    "rebatch in a cycle": (lambda ds: ds.batch(7).rebatch([2, 5, 1]), 14),
    "unbatch": (lambda ds: ds.batch(7).unbatch(), 7),
    "shard": (lambda ds: ds.shard(3, 1), 1),
    "take and skip": (lambda ds: ds.skip(100).take(500), 1),
    "repeat": (lambda ds: ds.repeat(3), 1),
    "shuffle": (lambda ds: ds.shuffle(50, seed=1), 1),
    "shuffle of all": (lambda ds: ds.shuffle(di.data.UNKNOWN_CARDINALITY, seed=1), 1),
    "global_shuffle": (lambda ds: ds.global_shuffle(seed=1), 1),
    "zip": (lambda ds: DATASET.zip(ds, ds.skip(5)), 2),
    "concatenate": (lambda ds: ds.concatenate(ds.skip(3)), 1),
    "enumerate": (lambda ds: ds.enumerate(), 1),
    "prefetch": (lambda ds: ds.prefetch(2), 1),
    "window": (lambda ds: ds.window(4, 2), 5),
    "for training": (lambda ds: ds.global_shuffle(seed=3).map(lambda x: x * 2).batch(8).prefetch(2), 8),
}


@pytest.mark.parametrize("name", STEPS)
def test_no_more_is_read_than_an_element_needs(name: str, counted: tuple[Counting, Any]) -> None:
    source, dataset = counted
    change, most = STEPS[name]
    changed = change(dataset)
    count = len(list(changed))
    elements = [_shown(element) for element in changed.iter_pass(0)]
    for index in (0, 1, count // 2, count - 1):
        source.read.clear()
        assert _shown(changed[index]) == elements[index]
        assert len(source.read) <= most
    indices = np.random.default_rng(0).permutation(count)[:100]
    source.read.clear()
    assert [_shown(element) for element in changed.__getitems__(indices)] == [elements[index] for index in indices]
    assert len(source.read) <= most * len(indices)


def _shown(element: Any) -> Any:
    return list(element) if isinstance(element, di.data.Dataset) else plain(element)


@pytest.mark.parametrize("parts", [1, 3])
def test_each_fragment_of_a_file_is_read_once(tmp_path: Path, parts: int) -> None:
    paths = [str(tmp_path / f"{part}.parquet") for part in range(parts)]
    for part, path in enumerate(paths):
        table = pa.table({"x": np.arange(500) + 500 * part, "t": [f"t{i}" for i in range(500)]})
        pq.write_table(table, path, row_group_size=50)
    dataset = di.data.ParquetDataset(paths).map(lambda row: {**row, "y": row["x"] * 2})
    indices = np.random.default_rng(1).permutation(500 * parts)[:400]
    groups: list[Any] = []
    real = parquet_file.ParquetReader.row_group

    def noted(self: Any, group: int, *others: Any) -> Any:
        groups.append((self.path, group))
        return real(self, group, *others)

    with mock.patch.object(parquet_file.ParquetReader, "row_group", noted):
        rows = dataset.__getitems__(indices)
    assert [int(row["x"]) for row in rows] == indices.tolist()
    assert rows[0]["t"] == b"t%d" % (indices[0] % 500)
    assert len(groups) == len(set(groups)) <= 10 * parts


def test_records_with_an_index_are_reached(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(20).reshape(10, 2))
    assert di.data.NpyDataset(str(tmp_path / "a.npy"))[[7, 0]][0].tolist() == [14, 15]
    (tmp_path / "a.bin").write_bytes(b"aabbccdd")
    assert di.data.FixedLengthRecordDataset(str(tmp_path / "a.bin"), 2)[-1] == b"dd"
    with di.io.TFRecordWriter(str(tmp_path / "a.tfrecord")) as writer:
        writer.write(b"one")
    with pytest.raises(TypeError, match="by position: tfrecord can only be iterated"):
        di.data.TFRecordDataset(str(tmp_path / "a.tfrecord"))[0]


def test_it_is_always_the_first_pass() -> None:
    dataset = TEN.global_shuffle()
    first, second = list(dataset), list(dataset)
    assert dataset[:] == first != second


def test_errors_are_those_of_the_iteration() -> None:
    dataset = TEN.map(lambda x: 1 // (x - 5))
    assert dataset[6] == 1
    with pytest.raises(ZeroDivisionError):
        dataset.map(lambda x: int(x) // 0)[1]


def test_python_iterates_by_iter() -> None:
    with mock.patch.object(di.data.Dataset, "__getitem__", side_effect=AssertionError("reached")):
        assert list(TEN) == [*TEN] == sorted(TEN) == list(range(10))
        assert 3 in TEN
        assert dict(TEN.enumerate())[9] == 9
        assert bool(TEN)


def test_numpy_takes_a_dataset_for_one_object() -> None:
    for array, shape in ((np.asarray(TEN), ()), (np.array([TEN, TEN]), (2,)), (np.array([TEN], dtype=object), (1,))):
        assert (array.shape, array.dtype) == (shape, object)
        assert array.reshape(-1)[0] is TEN
    filled = np.empty(2, object)
    filled.fill(TEN)
    assert filled[1] is TEN
    assert not hasattr(TEN, "__array__")
    assert not hasattr(TEN, "__array_interface__")


def test_rows_of_unsigned_and_small_integers() -> None:
    assert rows_of(np.array([255], np.uint8), 256).tolist() == [255]
    assert rows_of([], 5).dtype == np.int64


@pytest.mark.parametrize("dataset", [TEN, TEN.repeat()])
@pytest.mark.parametrize("key", [[2**64 - 1], np.array([0, 2**63], np.uint64)])
def test_positions_without_a_sign_count_from_no_end(dataset: Any, key: Any) -> None:
    with pytest.raises(
        IndexError, match=r"dataset\[key\]: there is no element (18446744073709551615|9223372036854775808)"
    ):
        dataset[key]
    assert dataset[np.array([3, 9], np.uint64)] == [3, 9]


def test_a_slice_without_a_step_is_refused_where_there_is_no_end() -> None:
    assert TEN.repeat()[8:12:2] == [8, 0]
    with pytest.raises(ValueError, match="slice step cannot be zero"):
        TEN.repeat()[0:4:0]


@pytest.mark.parametrize("size", [11, 10**12, 2**63 - 1])
def test_a_batch_that_holds_all_costs_what_it_holds(size: int) -> None:
    assert plain(TEN.batch(size)[0]) == plain(TEN.padded_batch(size)[-1]) == list(range(10))
