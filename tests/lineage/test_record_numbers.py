# SPDX-License-Identifier: Apache-2.0
"""Numbers of records: places are found again, also where files come in another order."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import distinput as di
from distinput.errors import InvalidArgumentError
from distinput.lineage.followed import Followed, _Files
from distinput.lineage.numbered import SOURCE_BITS, numbered
from distinput.sharding.policies import auto_shard
from tests.depth import cases
from tests.lineage.carried import ID, corpus


@settings(max_examples=cases(10, 200))
@given(st.sampled_from([(7, 3, 12), (1, 1, 20, 2), (9, 0, 4)]), st.integers(0, 3))
def test_files_in_another_order_in_each_pass(sizes: tuple[int, ...], epoch: int) -> None:
    files = corpus("parquet", sizes).files
    names = di.data.Dataset.from_tensor_slices(list(files)).shuffle(9, seed=5)
    ds = di.data.ParquetDataset(names).map(lambda row: row["id"])
    found = numbered(ds.node)
    numbers = np.concatenate(found.elements(np.arange(sum(sizes)), epoch))
    file, record = found.places(numbers)
    told = [files.index(found.files[f]) * ID + n for f, n in zip(file, record, strict=True)]
    assert told == [int(x) for x in ds.iter_pass(epoch)]


@settings(max_examples=cases(10, 200))
@given(st.sampled_from([(40,), (7, 3, 12), (1, 1, 20, 2)]), st.integers(1, 4), st.data())
def test_parts_of_files(sizes: tuple[int, ...], workers: int, data: st.DataObject) -> None:
    files = corpus("parquet", sizes).files
    ds = di.data.ParquetDataset(list(files)).map(lambda row: row["id"])
    worker = data.draw(st.integers(0, workers - 1))
    mine = auto_shard(ds.node, workers, worker, policy=di.data.experimental.AutoShardPolicy.BALANCED)
    elements = [int(x) for x in di.data.Dataset(mine).as_numpy_iterator()]
    found = numbered(mine)
    numbers = np.concatenate([np.zeros(0, np.int64), *found.elements(np.arange(len(elements)), 0)])
    file, record = found.places(numbers)
    assert [files.index(found.files[f]) * ID + n for f, n in zip(file, record, strict=True)] == elements
    for number, f, n in zip(numbers.tolist(), file, record, strict=True):
        assert number in found.numbers(found.files[f], int(n))


def test_several_sources_have_numbers_of_their_own() -> None:
    ds = di.data.Dataset.range(3).concatenate(di.data.Dataset.from_tensor_slices(np.arange(2)))
    found = numbered(ds.node)
    numbers = np.concatenate(found.elements(np.arange(5), 0))
    assert numbers.tolist() == [0, 1, 2, 1 << SOURCE_BITS, (1 << SOURCE_BITS) + 1]
    file, record = found.places(numbers)
    assert found.files == ("<range>", "<slices>")
    assert file.tolist() == [0, 0, 0, 1, 1]
    assert record.tolist() == [0, 1, 2, 0, 1]


def images(folder: Path, count: int) -> di.data.ImageFolderDataset:
    image = pytest.importorskip("PIL.Image")
    for number in range(count):
        path = folder / "ab"[number % 2] / f"{number}.png"
        path.parent.mkdir(exist_ok=True)
        image.new("L", (2 + number % 3, 1), number).save(path)
    return di.data.ImageFolderDataset(str(folder), channels=1)


@pytest.mark.parametrize("looked_at", [False, True])
def test_an_image_of_a_folder_is_named_by_its_file(tmp_path: Path, looked_at: bool) -> None:
    ds = images(tmp_path, 9).map(lambda image, label: image[0, 0, 0]).shuffle(9, seed=1)
    ds = ds.filter(lambda number: number != 4).batch(3) if looked_at else ds.batch(3)
    strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    distributed = strategy.experimental_distribute_dataset(ds)
    with di.train.Ledger(str(tmp_path / "ledger")) as ledger, iter(distributed) as iterator:
        steps = [np.concatenate(step.values).tolist() for step in ledger.follow(iterator)]
        for number, step in enumerate(steps):
            places = [*ledger.locate(distributed, number)]
            assert [(Path(place.file).name, place.record) for place in places] == [(f"{n}.png", 0) for n in step]
    if not looked_at:
        (seen,) = distributed.when(str(tmp_path / "b/7.png"), 0)
        assert 7 in steps[seen.step]
        assert distributed.when(str(tmp_path / "b/7.png"), 1) == ()


def test_errors_about_an_image_of_a_folder_name_its_file(tmp_path: Path) -> None:
    ds = images(tmp_path, 4)
    for bad in (ds.batch(4), ds.shuffle(4, seed=1).map(lambda image, label: image[0, 2])):
        with pytest.raises((IndexError, InvalidArgumentError)) as caught:
            list(bad)
        (named,) = [note for note in caught.value.__notes__ if note.startswith("record 0 of ")]
        assert named.endswith(".png")


def test_more_files_than_sources_may_be_met() -> None:
    files = _Files()
    numbers = np.array([files.number(str(name)) + 5 for name in range(100_000)], np.int64)
    assert Followed(None, (), files).places(numbers[-1:])[0].tolist() == [99_999]  # type: ignore[arg-type]
