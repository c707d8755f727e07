# SPDX-License-Identifier: Apache-2.0
"""What can be begun only once loses nothing to a sample that is taken to see what it looks like."""

import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import distinput as di
from distinput.ops.generator import Begun

Dataset = di.data.Dataset


def test_what_a_sample_has_read_comes_with_the_rest_and_only_once() -> None:
    begun, numbers = Begun(), iter(range(5))

    def items(*, sampling: bool) -> Iterator[int]:
        return begun.items(lambda: numbers, int, sampling=sampling)

    for end in (1, 3):  # the second one goes further
        sample = items(sampling=True)
        assert [next(sample) for _ in range(end)] == list(range(end))
        sample.close()  # type: ignore[attr-defined]
    assert list(items(sampling=False)) == [0, 1, 2, 3, 4]
    assert list(items(sampling=False)) == []


def test_a_sample_may_change_what_it_gets() -> None:
    begun = Begun()
    sample = begun.items(lambda: iter([[1], [2]]), list, sampling=True)
    next(sample).append(3)
    sample.close()  # type: ignore[attr-defined]
    assert list(begun.items(lambda: iter(()), list, sampling=False)) == [[1], [2]]


def test_an_error_is_left_to_the_pass() -> None:
    begun, calls = Begun(), list[int]()

    def items() -> Iterator[int]:
        calls.append(1)
        yield 0
        raise ValueError("behind the first")

    with pytest.raises(ValueError, match="behind"):
        list(begun.items(items, int, sampling=True))
    with pytest.raises(ValueError, match="behind"):
        list(begun.items(items, int, sampling=False))
    assert len(calls) == 2


def test_another_process_begins_anew() -> None:
    begun = Begun()
    sample = begun.items(lambda: iter([1]), int, sampling=True)
    assert next(sample) == 1
    sample.close()  # type: ignore[attr-defined]
    assert list(pickle.loads(pickle.dumps(begun)).items(lambda: iter([5]), int, sampling=False)) == [5]


def _words() -> Any:
    stream = iter(["a", "bb", "ccc"])
    return Dataset.from_generator(lambda: stream, output_signature=di.TensorSpec([], di.string))


def _arrow() -> Any:
    schema = pa.schema([("w", pa.string())])
    batches = [pa.record_batch([pa.array([word])], schema) for word in ("a", "bb", "ccc")]
    return Dataset.from_arrow(pa.RecordBatchReader.from_batches(schema, iter(batches))).map(lambda row: row["w"])


USES: dict[str, Callable[[Any, Path], Any]] = {
    "padded_batch": lambda ds, _: ds.map(lambda w: np.frombuffer(w, np.uint8)).padded_batch(1).map(len).to_list(),
    "save": lambda ds, folder: (ds.save(str(folder / "saved")), Dataset.load(str(folder / "saved")).to_list())[1],
    "cache": lambda ds, folder: ds.cache(str(folder / "cache")).to_list(),
    "explain": lambda ds, _: (ds.explain(), ds.explain(), ds.to_list())[2],
    "spec": lambda ds, _: (ds.element_spec, ds.to_list())[1],
    "filter": lambda ds, _: (ds.filter(lambda _: True).map(len).element_spec, ds.to_list())[1],
    "distribution": lambda ds, _: list(
        di.distribute.MirroredStrategy(["CPU:0"]).experimental_distribute_dataset(ds.batch(1))
    ),
    "rebuilt": lambda ds, _: (ds.map(len).element_spec, ds.with_options(di.data.Options()).prefetch(1).to_list())[1],
}


@pytest.mark.parametrize("make", [_words, _arrow])
@pytest.mark.parametrize("use", list(USES))
def test_nothing_is_lost_where_a_spec_is_found_out(use: str, make: Callable[[], Any], tmp_path: Path) -> None:
    assert len(USES[use](make().map(lambda word: word + b"!"), tmp_path)) == 3
