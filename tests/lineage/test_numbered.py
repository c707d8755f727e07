# SPDX-License-Identifier: Apache-2.0
"""A pipeline over numbers has the elements of the pipeline, or is refused by name."""

from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.lineage.numbered import numbered
from tests.lineage.carried import corpus

FILTERED = {
    "filter": lambda ds: ds.filter(lambda x: x > 3),
    "take_while": lambda ds: ds.take_while(lambda x: x < 3),
    "flat_map": lambda ds: ds.flat_map(lambda x: di.data.Dataset.range(x)),
    "unique": lambda ds: ds.unique(),
    "ignore_errors": lambda ds: ds.ignore_errors(),
    "interleave": lambda ds: ds.interleave(lambda x: di.data.Dataset.range(x)),
    "window": lambda ds: ds.window(2),
    "scan": lambda ds: ds.scan(0, lambda s, x: (s, x)),
}


@pytest.mark.parametrize("name", sorted(FILTERED))
def test_steps_that_look_at_elements_are_refused_by_name(name: str) -> None:
    ds = FILTERED[name](di.data.Dataset.range(9))
    with pytest.raises(di.errors.UnimplementedError, match=rf"locate: {name}.*test_numbered.py.*Ledger"):
        numbered(ds.node)


def test_sources_that_cannot_be_counted_need_a_number() -> None:
    def made(n: int) -> Any:
        return di.data.Dataset.from_generator(lambda: iter(range(n)), output_signature=di.TensorSpec((), np.int64))

    with pytest.raises(di.errors.UnimplementedError, match="assert_cardinality"):
        numbered(made(4).node)
    assert numbered(made(4).apply(di.data.experimental.assert_cardinality(4)).node).node.size == 4


def test_records_are_counted_by_a_manifest_or_by_reading() -> None:
    found = corpus("text", (7, 3, 12))
    ds = di.data.TextLineDataset(list(found.files))
    with pytest.raises(di.errors.UnimplementedError, match="read=True"):
        numbered(ds.node)
    assert numbered(ds.node, read=True).node.size == 22


def test_the_numbers_of_enumerate_are_no_records() -> None:
    ds = corpus("parquet", (7, 3, 12)).dataset().enumerate(3)
    found = numbered(ds.node)
    assert len(found.sources) == 1
    assert found.elements(np.array([8]), 0)[0].tolist() == [8]


def test_a_file_that_is_not_read_has_no_numbers() -> None:
    with pytest.raises(KeyError):
        numbered(di.data.Dataset.range(3).node).numbers("other", 0)


def test_batches_of_batches_of_several_sizes_are_filled_up() -> None:
    ds = di.data.Dataset.range(5).batch(2).padded_batch(3)
    (rows,) = numbered(ds.node).elements(np.array([0]), 0)
    assert rows.tolist() == [[0, 1], [2, 3], [4, -1]]
