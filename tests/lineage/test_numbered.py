# SPDX-License-Identifier: Apache-2.0
"""A pipeline over numbers has the elements of the pipeline, or is refused by name."""

from collections.abc import Callable
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
    with pytest.raises(di.errors.UnimplementedError, match=rf"locate: {name}.*test_numbered.py.*; keep a Ledger while"):
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


AT_SEVERAL_PLACES: dict[str, Callable[[Any], Any]] = {
    "zip": lambda ds: di.data.Dataset.zip((ds, ds.skip(1))),
    "concatenate": lambda ds: ds.concatenate(ds).concatenate(ds.take(3)),
    "choose": lambda ds: di.data.Dataset.choose_from_datasets([ds, ds], di.data.Dataset.range(40).map(lambda i: i % 2)),
    "sample": lambda ds: di.data.Dataset.sample_from_datasets([ds, ds.skip(1)], [0.5, 0.5], seed=4),
    "batches": lambda ds: ds.concatenate(ds).batch(4),
    "cached once": lambda ds: _around(ds.cache(), ds),
    "shuffled again": lambda ds: ds.concatenate(ds).shuffle(7, seed=2),
}


ORDERS: dict[str, Callable[[], Any]] = {
    "shuffle": lambda: di.data.Dataset.range(20).shuffle(20, seed=3),
    "small shuffle": lambda: di.data.Dataset.range(20).shuffle(4, seed=3),
    "global_shuffle": lambda: di.data.Dataset.range(20).global_shuffle(seed=3),
    "of a stream": lambda: di.data.Dataset.range(20).batch(3).unbatch().shuffle(4, seed=3),
}


def _around(kept: Any, other: Any) -> Any:
    return kept.concatenate(other).concatenate(kept)


def _flat(element: Any) -> list[int]:
    return [int(x) for leaf in (element if isinstance(element, tuple) else (element,)) for x in np.ravel(leaf)]


@pytest.mark.parametrize("order", sorted(ORDERS))
@pytest.mark.parametrize("name", sorted(AT_SEVERAL_PLACES))
def test_a_step_that_stands_at_several_places_has_the_order_of_each(name: str, order: str) -> None:
    ds = ORDERS[order]()
    made = AT_SEVERAL_PLACES[name](ds)
    passes = []
    for epoch in range(2):
        given = [_flat(element) for element in made.as_numpy_iterator()]
        passes.append(given)
        found = numbered(made.node)
        assert [x.reshape(-1).tolist() for x in found.elements(np.arange(len(given)), epoch)] == given
        if found.stacked is not None:
            size, numbers_at = found.element(1, epoch)
            assert numbers_at(np.arange(size)).tolist() == given[1]
    try:
        first = made[:]
    except TypeError:  # it can only be iterated
        return
    assert [_flat(element) for element in first] == passes[0]


def test_a_pass_over_other_files_than_the_first_one_is_refused() -> None:
    files = di.data.Dataset.from_tensor_slices(list(corpus("text", (7, 3, 12)).files)).shuffle(3, seed=1)
    found = numbered(di.data.TextLineDataset(files.take(1)).node, read=True)
    first = {epoch: next(files.iter_pass(epoch)) for epoch in range(9)}
    assert len(found.elements(np.arange(2), 0)) == 2
    other = next(epoch for epoch, name in first.items() if name != first[0])
    with pytest.raises(di.errors.UnimplementedError, match=f"its files in pass {other} are not those of the first one"):
        found.elements(np.arange(2), other)


def test_files_may_be_named_by_text_of_python() -> None:
    found = corpus("parquet", (7, 3, 12))
    names = di.data.Dataset.from_tensor_slices(list(found.files)).shuffle(3, seed=1)
    plain, made = [numbered(di.data.ParquetDataset(each).node) for each in (names, names.as_text())]
    assert made.elements(np.arange(22), 1)[21].tolist() == plain.elements(np.arange(22), 1)[21].tolist()
