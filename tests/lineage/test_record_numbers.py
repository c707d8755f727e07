# SPDX-License-Identifier: Apache-2.0
"""Numbers of records: places are found again, also where files come in another order."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import distinput as di
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
