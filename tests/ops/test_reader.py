# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock
from weakref import ref

import numpy as np
import pytest

import distinput as di
from distinput.columns.block import ColumnBlock
from distinput.columns.column import Dense
from distinput.errors import DataLossError, NotFoundError
from distinput.run.run import Run
from distinput.values.buffers import Array, Buffers
from distinput.values.nest import LEAF
from tests.ops.iterating import until_error


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    (tmp_path / "b.txt").write_text("")
    (tmp_path / "c.txt").write_text("three")
    return tmp_path


def test_files_are_read_one_after_the_other(folder: Path) -> None:
    names = [str(folder / name) for name in ("c.txt", "b.txt", "a.txt")]
    assert di.data.TextLineDataset(names).to_list() == [b"three", b"one", b"two"]


def test_names_may_come_from_a_data_set(folder: Path) -> None:
    names = di.data.Dataset.list_files(str(folder / "*.txt"), shuffle=False)
    assert di.data.TextLineDataset(names).to_list() == [b"one", b"two", b"three"]


def test_names_may_be_text_of_python(folder: Path) -> None:
    names = di.data.Dataset.from_tensor_slices([str(folder / name) for name in ("c.txt", "a.txt")]).as_text()
    for dataset in (di.data.TextLineDataset(names), names.interleave(di.data.TextLineDataset, cycle_length=1)):
        assert dataset.to_list() == [b"three", b"one", b"two"]


def test_the_first_block_of_a_file_is_not_held_while_the_rest_is_read(folder: Path) -> None:
    reader = di.data.TextLineDataset(str(folder / "a.txt")).node
    made: list[Callable[[], Any]] = []

    def blocks(*_: Any) -> Iterator[Any]:
        for row in range(3):
            array = np.arange(row, row + 4)
            made.append(ref(array))
            yield ColumnBlock(LEAF, [Dense(array)], 4), {"row": row + 4}
            del array

    with mock.patch.object(type(reader.format), "read_groups", side_effect=blocks):
        place: Any = {"path": str(folder / "a.txt"), "position": None, "stamp": None}
        reading = reader._blocks(Run(memory_budget=1 << 20))(place)
        for _ in range(3):
            next(reading)
    assert [array() is None for array in made[:2]] == [True] * 2


def test_names_must_be_strings() -> None:
    with pytest.raises(TypeError, match=r"text: filenames must be strings, got TensorSpec.*int64"):
        di.data.TextLineDataset(di.data.Dataset.range(3))


def test_a_file_that_is_not_there_is_named_after_the_records_before_it(folder: Path) -> None:
    before, error = until_error(di.data.TextLineDataset([str(folder / "a.txt"), str(folder / "gone.txt")]))
    assert before == [b"one", b"two"]
    assert isinstance(error, NotFoundError)
    assert "gone.txt" in str(error)


def test_a_restart_goes_on_inside_a_file(folder: Path) -> None:
    dataset = di.data.TextLineDataset([str(folder / "a.txt"), str(folder / "c.txt")])
    it = iter(dataset)
    next(it)
    assert list(dataset.restore(it.state())) == [b"two", b"three"]


def test_no_file_tells_what_parquet_rows_look_like() -> None:
    with pytest.raises(NotFoundError, match="parquet: there is no file that shows what its records look like"):
        di.data.ParquetDataset([]).element_spec  # asking is the act  # noqa: B018


@pytest.mark.parametrize(
    "maker", ["ArrowDataset", "NpyDataset", "ParquetDataset", "TFRecordDataset", "TextLineDataset"]
)
def test_no_files_have_no_records(maker: str) -> None:
    dataset = getattr(di.data, maker)([])
    assert dataset.to_list() == []
    assert dataset.take(2).to_list() == []
    assert dataset.cardinality() in (0, di.data.UNKNOWN_CARDINALITY)


def test_rows_that_can_be_counted_are_reached_at_once(tmp_path: Path) -> None:
    for index in range(3):
        di.io.write_parquet(str(tmp_path / f"{index}.parquet"), {"x": np.arange(4) + 4 * index})
    dataset = di.data.ParquetDataset([str(tmp_path / f"{index}.parquet") for index in range(3)])
    assert len(dataset) == 12
    assert dataset.skip(7).take(2).to_list() == [{"x": 7}, {"x": 8}]


@pytest.mark.parametrize("kind", ["arrow", "npy", "parquet"])
def test_files_whose_records_differ_are_refused(kind: str, tmp_path: Path) -> None:
    paths = [str(tmp_path / f"{number}.npy") for number in range(2)]
    for path, dtype in zip(paths, ("f4", "f8"), strict=True):
        values = np.arange(4, dtype=dtype)
        if kind == "npy":
            np.save(path, values)
        else:
            {"arrow": di.io.write_arrow, "parquet": di.io.write_parquet}[kind](path, {"x": values})
    maker = {"arrow": di.data.ArrowDataset, "npy": di.data.NpyDataset, "parquet": di.data.ParquetDataset}[kind]
    cure = (
        "make" if kind == "npy" else r'bring the files together with schema="union" or schema=\{column: type\}, or make'
    )
    says = (
        rf"1\.npy: its records are .*float64.*, but those of the first file are .*float32.*; {cure} a dataset of each"
    )
    elements = iter(maker(paths))
    for _ in range(4):
        next(elements)
    with pytest.raises(di.errors.InvalidArgumentError, match=says):
        next(elements)
    with pytest.raises(di.errors.InvalidArgumentError, match=says):
        list(maker(paths).global_shuffle(seed=1))
    options = di.data.Options()
    options.experimental_distribute.auto_shard_policy = di.data.experimental.AutoShardPolicy.BALANCED
    with pytest.raises(di.errors.InvalidArgumentError, match="its records are"):
        list(di.data.experimental.auto_shard_dataset(maker(paths).with_options(options), 1, 0, 1))
    if kind != "npy":
        assert maker(paths, schema="union").batch(8).element_spec["x"].dtype == di.float64


def test_a_file_that_grew_after_it_was_counted_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("1\n2\n3\n4\n")
    counted, fresh = [di.data.TextLineDataset(str(path), index=True) for _ in range(2)]
    assert len(counted) == 4
    path.write_text("1\n2\n3\n4\n5\n")
    for read in (counted, counted.skip(1), counted.batch(2)):
        with pytest.raises(
            DataLossError, match=r"a\.txt: had 4 records when they were counted, and has 5: it was changed; "
        ):
            list(read)
    assert len(list(fresh)) == len(fresh) == 5


def test_batches_of_several_small_files_are_not_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [str(tmp_path / str(number)) for number in range(8)]
    texts = [[b"%d of %d " % (row, number) * (number + 1) * 100 for row in range(5)] for number in range(8)]
    for name, each in zip(names, texts, strict=True):
        with di.io.TFRecordWriter(name) as writer:
            for text in each:
                writer.write(text)
    batches = iter(di.data.TFRecordDataset(names[::-1]).batch(10))
    found = [next(batches).tolist()]
    with monkeypatch.context() as patch:
        patch.setattr("distinput.columns.regroup.concatenated", mock.Mock(side_effect=AssertionError("copied")))
        found += [batch.tolist() for batch in batches]
    assert [text for batch in found for text in batch] == [text for each in texts[::-1] for text in each]


def test_buffers_have_the_size_of_a_group_where_files_end_within_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names, most = [str(tmp_path / str(number)) for number in range(40)], []
    for name in names:
        with di.io.TFRecordWriter(name) as writer:
            for _ in range(3):
                writer.write(bytes(30_000))
    pool = Buffers(step_bits=0)
    monkeypatch.setattr("distinput.files.source._POOL", mock.Mock(empty=lambda *args: noted(pool.empty(*args))))

    def noted(array: Array) -> Array:
        most.append(array.nbytes)
        return array

    assert [len(batch) for batch in di.data.TFRecordDataset(names).batch(8)] == [8] * 15
    assert max(most) < 4 * 100_000  # three files hold a group
