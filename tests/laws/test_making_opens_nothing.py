# SPDX-License-Identifier: Apache-2.0
"""Law: a dataset of files is made without opening one; the first element, or the first question about them, looks, once."""

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import distinput as di
from distinput.data import file_datasets
from distinput.errors import NotFoundError
from distinput.formats import FORMATS

data = di.data
URL = "counted://there/"


class CountedFiles(fsspec.AbstractFileSystem):  # type: ignore[misc]
    """Files in memory that note what is asked of them."""

    cachable = False

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.asked = fsspec.filesystem("memory"), []

    def __getattribute__(self, name: str) -> Any:
        if name in ("info", "ls", "cat_file", "_open", "ukey", "exists", "isdir", "find", "glob", "walk", "open"):
            self.asked.append(name)
            return getattr(self.inner, name)
        return super().__getattribute__(name)


@pytest.fixture
def files() -> Iterator[CountedFiles]:
    found = CountedFiles()
    di.io.mount("counted://", found)
    found.asked.clear()
    yield found
    di.io.unmount("counted://")
    found.inner.store.clear()


_OPTIONS: dict[str, Any] = {"record_bytes": 2, "record_defaults": [0], "format": "parquet"}
"""What has no default."""


def made(kind: Any, **options: Any) -> Callable[[], Any]:
    needed = {
        name: _OPTIONS[name]
        for name, parameter in inspect.signature(kind).parameters.items()
        if name in _OPTIONS and (parameter.default is parameter.empty or name == "format")
    }
    return lambda: kind([f"{URL}a.x", f"{URL}b.x"], **needed, **options)


_NO_LOOK = {"ImageFolderDataset": "lists its folder", "Dataset": "is none of files"}
_ALL = {
    name: made(getattr(data, name))
    for name in sorted([*vars(file_datasets), *dir(data)])
    if name.endswith("Dataset") and name not in _NO_LOOK
}
_MORE: dict[str, Callable[[], Any]] = {
    "CSV without types": lambda: data.CsvDataset([f"{URL}a.csv"]),
    "CSV with names": lambda: data.CsvDataset([f"{URL}a.csv"], [0], header=True, select_cols=["x"]),
    "union": made(data.ParquetDataset, schema="union"),
    "nulls beside": made(data.ArrowDataset, nulls="valid"),
    "in turn": made(data.ParquetDataset, num_parallel_reads=2),
    "text in turn": made(data.JsonLinesDataset, num_parallel_reads=-1),
    "index": made(data.JsonLinesDataset, index=True),
    "skip": made(data.ParquetDataset, on_error="skip"),
    "partitions": lambda: data.ParquetDataset([f"{URL}k=1/a.parquet", f"{URL}k=2/a.parquet"]),
    "dataset of names": lambda: data.ParquetDataset(data.Dataset.from_tensor_slices([f"{URL}a.parquet"])),
    "steps": lambda: (
        data.JsonLinesDataset(f"{URL}a.jsonl")
        .filter(lambda row: True)
        .map(lambda row: row)
        .shuffle(9)
        .batch(2)
        .repeat()
    ),
    "columns": lambda: data.ParquetDataset(f"{URL}a.parquet").select(["x"]).as_text().take(3).prefetch(1),
    "zip": lambda: data.Dataset.zip((data.ParquetDataset(f"{URL}a.parquet"), data.CsvDataset(f"{URL}a.csv"))),
    "repr": lambda: repr(data.CsvDataset(f"{URL}a.csv").batch(2)),
}


@pytest.mark.parametrize("make", [*_ALL.values(), *_MORE.values()], ids=[*_ALL, *_MORE])
def test_making_a_dataset_asks_for_nothing(make: Callable[[], Any], files: CountedFiles) -> None:
    make()
    assert files.asked == []


STEPS: dict[str, Callable[[Any], Any]] = {
    "skip": lambda ds: ds.skip(1),
    "take": lambda ds: ds.take(3),
    "shard": lambda ds: ds.shard(2, 0),
    "repeat": lambda ds: ds.repeat(3),
    "enumerate": lambda ds: ds.enumerate(),
    "window": lambda ds: ds.window(2, 1),
    "batch": lambda ds: ds.batch(2, drop_remainder=True),
    "ragged_batch": lambda ds: ds.ragged_batch(2),
    "rebatch": lambda ds: ds.batch(2).rebatch(3),
    "unbatch": lambda ds: ds.batch(2).unbatch(),
    "cache": lambda ds: ds.cache(),
    "prefetch": lambda ds: ds.prefetch(-1),
    "shuffle": lambda ds: ds.shuffle(5, seed=1),
    "concatenate": lambda ds: ds.concatenate(ds),
    "map": lambda ds: ds.map(lambda row: row, num_parallel_calls=2),
    "filter": lambda ds: ds.filter(lambda row: True),
    "take_while": lambda ds: ds.take_while(lambda row: True),
    "ignore_errors": lambda ds: ds.ignore_errors(),
    "assert_cardinality": lambda ds: ds.apply(data.experimental.assert_cardinality(3)),
    "split": lambda ds: ds.split(0.5, seed=1),
    "as_text": lambda ds: ds.as_text(),
}
"""All but those that compare specs, or call their function, when they are made: `flat_map`, `interleave`, `scan`, mixtures."""


@pytest.mark.parametrize("kind, name", [(data.ParquetDataset, "a.parquet"), (data.JsonLinesDataset, "a.jsonl")])
@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_a_step_behind_it_asks_for_nothing(
    step: Callable[[Any], Any], kind: Any, name: str, files: CountedFiles
) -> None:
    step(kind(f"{URL}{name}"))
    assert files.asked == []


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_so_does_any_format(name: str, files: CountedFiles) -> None:
    options = {"record_bytes": 2} if name == "fixed_length" else {}
    try:
        data.FileDataset([f"{URL}a.x"], name, **options)
    except TypeError as error:  # an option has no default
        pytest.skip(str(error))
    assert files.asked == []


def _parquet() -> bytes:
    made = pa.BufferOutputStream()
    pq.write_table(pa.table({"x": [1, None]}), made)
    return made.getvalue().to_pybytes()


@pytest.mark.parametrize(
    "kind, name, content",
    [
        (data.ParquetDataset, "a.parquet", _parquet()),
        (data.JsonLinesDataset, "a.jsonl", b'{"x": 1}\n{"x": null}\n'),
        (data.CsvDataset, "a.csv", b"x,y\n1,2\n,3\n"),
    ],
)
@pytest.mark.parametrize("reads", [None, 2])
def test_errors_of_the_look_are_not_kept_and_what_it_finds_is(
    kind: Any, name: str, content: bytes, reads: int | None, files: CountedFiles
) -> None:
    dataset = kind(URL + name, num_parallel_reads=reads)
    for _ in range(2):
        with pytest.raises(NotFoundError):
            _ = dataset.element_spec
    files.inner.pipe(f"/there/{name}", content)
    assert set(dataset.element_spec["x"]) == {"value", "valid"}
    assert [row["x"] for row in dataset] == [{"value": 1, "valid": True}, {"value": 0, "valid": False}]
    files.asked.clear()
    _ = dataset.element_spec, dataset.batch(2).element_spec
    assert files.asked == []
