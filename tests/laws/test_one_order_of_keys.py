# SPDX-License-Identifier: Apache-2.0
"""Law: all elements of a dataset have their keys in the order of `element_spec`, whatever order the parts have them in.

`tuple(row.values())` and `for name in row` mean the same for every element, as in TensorFlow, and after every restart.
"""

import json
from collections import OrderedDict
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import distinput as di

Dataset = di.data.Dataset
RANGE = Dataset.range
ONE = Dataset.from_tensor_slices({"x": [1, 2, 3], "y": [10, 20, 30], "a": {"q": [1, 2, 3], "p": [1, 2, 3]}})
OTHER = Dataset.from_tensor_slices({"a": {"p": [7, 8, 9], "q": [7, 8, 9]}, "y": [70, 80, 90], "x": [7, 8, 9]})


def turned(i: Any) -> dict[str, Any]:
    """Keys in an order that depends on the element, as those of parsed JSON may."""
    row = {"x": i, "y": i * 10, "a": {"q": i, "p": i}}
    return dict(reversed(row.items())) if i % 2 else row


def inner(i: Any) -> Dataset:
    return OTHER if i % 2 else ONE


def generated() -> Dataset:
    spec = RANGE(1).map(turned).element_spec
    return Dataset.from_generator(lambda: map(turned, range(5)), output_signature=spec)


def items(spec: Any = None) -> Dataset:
    return Dataset.from_source([turned(i) for i in range(6)], element_spec=spec)


SPEC = {"y": di.TensorSpec([], "int64"), "a": {"p": di.TensorSpec([], "int64"), "q": di.TensorSpec([], "int64")}} | {
    "x": di.TensorSpec([], "int64")
}

DATASETS: dict[str, Callable[[], Dataset]] = {
    "concatenate": lambda: ONE.concatenate(OTHER),
    "concatenate, the other way": lambda: OTHER.concatenate(ONE),
    "concatenate of nothing": lambda: ONE.take(0).concatenate(OTHER),
    "concatenate of maps": lambda: RANGE(2).map(turned).concatenate(RANGE(1, 4).map(turned)),
    "concatenate, batch": lambda: ONE.concatenate(OTHER).batch(2),
    "concatenate, shuffle": lambda: ONE.concatenate(OTHER).shuffle(4, seed=1),
    "concatenate, global_shuffle": lambda: ONE.concatenate(OTHER).global_shuffle(seed=1),
    "concatenate, cache": lambda: ONE.concatenate(OTHER).cache(),
    "zip": lambda: Dataset.zip((ONE.concatenate(OTHER), OTHER.concatenate(ONE))),
    "sample": lambda: Dataset.sample_from_datasets([ONE, OTHER], seed=1),
    "sample of one": lambda: Dataset.sample_from_datasets([ONE, OTHER], [0.0, 1.0], seed=1),
    "sample, balanced": lambda: Dataset.sample_from_datasets(
        [ONE, OTHER.repeat(2)], seed=1, stop_on_empty_dataset=False
    ),
    "choose": lambda: Dataset.choose_from_datasets([ONE, OTHER], Dataset.from_tensor_slices(np.array([1, 0, 1]))),
    "interleave": lambda: RANGE(3).interleave(inner, cycle_length=2),
    "interleave on threads": lambda: RANGE(3).interleave(inner, cycle_length=2, num_parallel_calls=2),
    "flat_map": lambda: RANGE(3).flat_map(inner),
    "group_by_window": lambda: RANGE(4).group_by_window(lambda i: i % 2, lambda k, w: w.map(turned), 2),
    "map": lambda: RANGE(5).map(turned),
    "map on threads": lambda: RANGE(50).map(turned, num_parallel_calls=2),
    "map with a signature": lambda: RANGE(5).map(turned, output_signature=SPEC),
    "map of an odd first": lambda: RANGE(1, 5).map(turned),
    "map, map": lambda: RANGE(5).map(turned).map(lambda row: row),
    "map_rows": lambda: RANGE(5).map_rows(lambda i: {"y": i, "x": i, "a": {"p": i, "q": i}}),
    "scan": lambda: RANGE(5).scan(np.int64(0), lambda s, i: (s, turned(i))),
    "ordered dicts": lambda: RANGE(5).map(lambda i: OrderedDict(turned(i))),
    "an ordered dict now and then": lambda: RANGE(5).map(lambda i: OrderedDict(turned(i)) if i % 2 else turned(i)),
    "from_generator": generated,
    "from_source": items,
    "from_source with a spec": lambda: items(RANGE(1).map(lambda i: turned(int(i))).element_spec),
    "padded_batch": lambda: ONE.concatenate(OTHER).padded_batch(4),
    "rebatch": lambda: ONE.batch(2).concatenate(OTHER.batch(2)).rebatch(3),
    "unbatch": lambda: ONE.batch(2).concatenate(OTHER.batch(2)).unbatch(),
    "group_by_reducer": lambda: RANGE(4).apply(
        di.data.experimental.group_by_reducer(
            lambda i: i, di.data.experimental.Reducer(lambda k: np.int64(k), lambda s, i: s, turned)
        )
    ),
}


def keys(value: Any) -> Any:
    """The keys of all nests in a value, and their classes, in order."""
    if isinstance(value, dict):
        return type(value), [(key, keys(item)) for key, item in value.items()]
    return [keys(item) for item in value] if isinstance(value, tuple) else None


def rest(dataset: Dataset, taken: int) -> Iterator[Any]:
    iterator = iter(dataset)
    list(islice(iterator, taken))
    return dataset.restore(iterator.state())


@pytest.mark.parametrize("name", DATASETS)
def test_keys_come_in_the_order_of_the_spec(name: str) -> None:
    asked = DATASETS[name]()
    wanted = keys(asked.element_spec)
    assert [keys(element) for element in asked] == [wanted] * len(list(asked))
    fresh = DATASETS[name]()  # whose spec is asked for after some elements
    first = next(iter(fresh))
    assert keys(fresh.element_spec) == keys(first)
    unasked = DATASETS[name]()
    assert len({repr(keys(element)) for element in unasked}) == 1


@pytest.mark.parametrize("name", DATASETS)
def test_and_after_every_restart(name: str) -> None:
    dataset = DATASETS[name]()
    wanted = keys(dataset.element_spec)
    for taken in range(4):
        again = DATASETS[name]()
        assert keys(again.element_spec) == wanted
        assert {repr(keys(element)) for element in rest(again, taken)} <= {repr(wanted)}


@pytest.mark.parametrize("name", DATASETS)
def test_and_where_functions_get_them(name: str) -> None:
    dataset = DATASETS[name]()
    wanted = keys(dataset.element_spec)
    seen: list[Any] = []
    list(dataset.map(lambda *x: seen.append(keys(x if len(x) > 1 else x[0])) or 0))
    assert {repr(each) for each in seen} == {repr(wanted)}


def test_values_stay_with_their_keys() -> None:
    assert [tuple(row.values())[:2] for row in ONE.concatenate(OTHER)] == [
        (1, 10),
        (2, 20),
        (3, 30),
        (7, 70),
        (8, 80),
        (9, 90),
    ]


def written(folder: Path, suffix: str) -> list[str]:
    """Two files of the same columns in another order."""
    columns = {"x": np.arange(3), "y": np.arange(3) * 10}
    other = dict(reversed({name: column + 7 for name, column in columns.items()}.items()))
    paths = [str(folder / f"{name}.{suffix}") for name in "ab"]
    for path, given in zip(paths, (columns, other), strict=True):
        if suffix == "npz":
            np.savez(path, **given)
        elif suffix == "parquet":
            pq.write_table(pa.table(given), path)
        elif suffix == "arrow":
            with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, pa.table(given).schema) as writer:
                writer.write_table(pa.table(given))
        elif suffix == "csv":
            rows = zip(*given.values(), strict=True)
            Path(path).write_text("\n".join([",".join(given), *[",".join(map(str, row)) for row in rows]]))
        else:
            rows = [dict(zip(given, map(int, row), strict=True)) for row in zip(*given.values(), strict=True)]
            Path(path).write_text("\n".join(map(json.dumps, rows)))
    return paths


MAKERS: dict[str, Any] = {
    "arrow": di.data.ArrowDataset,
    "csv": di.data.CsvDataset,
    "jsonl": di.data.JsonLinesDataset,
    "npz": di.data.NpzDataset,
    "parquet": di.data.ParquetDataset,
}


@pytest.mark.parametrize("suffix", MAKERS)
def test_of_files_with_columns_in_another_order(suffix: str, tmp_path: Path) -> None:
    dataset = MAKERS[suffix](written(tmp_path, suffix))
    assert list(dataset.element_spec) == ["x", "y"]
    rows = [(0, 0), (1, 10), (2, 20), (7, 7), (8, 17), (9, 27)]
    assert [tuple(map(int, row.values())) for row in dataset] == rows
    assert [tuple(map(int, row.values())) for row in rest(dataset, 4)] == rows[4:]
    assert dataset.map(lambda row: tuple(row.values())).to_list() == rows
    if dataset.node.random_access:
        assert [tuple(map(int, dataset[i].values())) for i in range(6)] == rows
    assert [np.stack(list(batch.values()), 1).tolist() for batch in dataset.batch(4)] == [
        list(map(list, rows[:4])),
        list(map(list, rows[4:])),
    ]
