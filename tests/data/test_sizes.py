# SPDX-License-Identifier: Apache-2.0
"""Numbers, places and codecs that nothing can be made of: the error is one of distinput, and names the argument."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.errors import InvalidArgumentError

Dataset = di.data.Dataset
HUGE = 2**70
COLUMNS = {"a": np.arange(3)}


def sparse(place: Any = 0, shape: Any = (2, 4)) -> Any:
    return di.SparseTensor([[0, place]], [5], list(shape))


def sampled(weights: Any) -> Any:
    return Dataset.sample_from_datasets([Dataset.range(2), Dataset.range(2)], weights=weights)


def parsed(place: int) -> Any:
    features = {"a": di.io.RaggedFeature("int64", "a", partitions=[di.io.RaggedFeature.ValueRowIds("r")])}
    return di.io.parse_single_example(di.io.encode_example({"a": [1, 2], "r": [0, place]}), features)


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "skip": (
        lambda: Dataset.counter().skip(HUGE),
        InvalidArgumentError,
        "skip: count must be at most 9223372036854775807",
    ),
    "repeat": (
        lambda: Dataset.range(3).repeat(-HUGE),
        InvalidArgumentError,
        "repeat: count must be at least -9223372036854775808",
    ),
    "shard": (lambda: Dataset.range(3).shard(HUGE, 0), InvalidArgumentError, "shard: num_shards must be at most"),
    "prefetch": (
        lambda: Dataset.range(3).prefetch(HUGE),
        InvalidArgumentError,
        "prefetch: buffer_size must be at most",
    ),
    "counter": (
        lambda: Dataset.counter(HUGE),
        InvalidArgumentError,
        "counter: start must fit into 64 bits, got 1180591620",
    ),
    "counter step": (
        lambda: Dataset.counter(0, -HUGE),
        InvalidArgumentError,
        "counter: step must fit into 64 bits, got -118",
    ),
    "position": (lambda: Dataset.counter()[HUGE], IndexError, "positions fit into int64"),
    "padded_batch": (
        lambda: Dataset.from_tensors([1]).padded_batch(1, padded_shapes=[HUGE]),
        InvalidArgumentError,
        "padded_batch: each dimension of the padded shape of the element must be at most 9223372036854775807",
    ),
    "num_parallel_reads": (
        lambda: di.data.TextLineDataset("a.txt", num_parallel_reads="3"),
        TypeError,
        "num_parallel_reads must be an integer, got '3'",
    ),
    "auto_shard_dataset": (
        lambda: di.data.experimental.auto_shard_dataset(Dataset.range(3), "3", 0),
        TypeError,
        "auto_shard_dataset: num_workers must be an integer",
    ),
    "per replica": (
        lambda: di.distribute.InputContext(2, 0, 2).get_per_replica_batch_size("3"),
        TypeError,
        "global_batch_size must be an integer",
    ),
    "audio": (lambda: di.data.AudioDataset("a.wav", "3"), InvalidArgumentError, "seconds must be more than 0, got 3"),
    "retries": (
        lambda: di.io.Retries("3"),
        InvalidArgumentError,
        "Retries: deadline must be more than 0 seconds, got '3'",
    ),
    "fixed": (
        lambda: di.io.FixedLenFeature([HUGE], "int64").spec,
        InvalidArgumentError,
        "each dimension must be at most",
    ),
    "uniform": (
        lambda: di.io.RaggedFeature.UniformRowLength(1.5),
        TypeError,
        "UniformRowLength: length must be an integer, got 1.5",
    ),
    "sparse feature": (
        lambda: di.io.SparseFeature("i", "a", "int64", HUGE),
        InvalidArgumentError,
        "SparseFeature: size must be at most",
    ),
    "row ids": (lambda: parsed(10**15), InvalidArgumentError, "ValueRowIds.'r'. must divide all 2 values of record 0"),
    "place": (
        lambda: sparse(4).to_dense(),
        InvalidArgumentError,
        r"inside of the shape \[2, 4\], got \[0, 4\] for value 0",
    ),
    "place below": (lambda: sparse(-1).to_dense(), InvalidArgumentError, r"got \[0, -1\] for value 0"),
    "place of floats": (
        lambda: sparse(1.5).to_dense(),
        InvalidArgumentError,
        "indices and dense_shape must be integers",
    ),
    "shape": (lambda: sparse(shape=(2, -1)).to_dense(), InvalidArgumentError, r"dense_shape \[2, -1\]"),
    "no room": (lambda: sparse(shape=(0, 4)).to_dense(), InvalidArgumentError, "inside of the shape"),
    "weights": (lambda: sampled([[1, 2], 3]), TypeError, r"weights must be numbers .* got \[\[1, 2\], 3\]"),
    "rows": (
        lambda: di.RaggedTensor.from_list([[1]]).take("3"),
        IndexError,
        "RaggedTensor: rows must be integers or booleans for 1 rows, got '3'",
    ),
    "row behind": (
        lambda: di.RaggedTensor.from_list([[1]]).take([2**40]),
        IndexError,
        "for 1 rows, got .1099511627776.",
    ),
    "padded": (
        lambda: di.RaggedTensor.from_list([[1]]).to_padded(shape=[-1, None]),
        InvalidArgumentError,
        "sizes of shape must be at least 0, or None, got",
    ),
    "decode_compressed": (
        lambda: di.io.decode_compressed(b"", ["GZIP"]),
        InvalidArgumentError,
        "compression_type must be one",
    ),
    "write_index": (lambda: di.io.write_index("a.txt", 3), ValueError, "unknown format 3; known are"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_nothing_can_be_made_of_is_refused_by_name(name: str) -> None:
    make, kind, says = REFUSED[name]
    with pytest.raises(kind, match=says):
        make()


@pytest.mark.parametrize("size", [0, -1, HUGE, True, 1.5, "3"])
def test_a_row_group_has_at_least_one_row(size: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    rows = Dataset.from_tensor_slices(COLUMNS)
    kind = TypeError if size is True or isinstance(size, float | str) else InvalidArgumentError
    for who, write in (
        ("write_parquet", lambda: di.io.write_parquet(path, COLUMNS, row_group_size=size)),
        ("write", lambda: rows.write(tmp_path / "rows", "parquet", row_group_size=size)),
    ):
        with pytest.raises(kind, match=f"{who}: row_group_size must be"):
            write()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("codec", ["zip", "gzip9", 3, True, b"GZIP", ["GZIP"]])
def test_a_codec_that_there_is_not_is_refused_by_every_writer(codec: Any, tmp_path: Path) -> None:
    rows, folder = Dataset.from_tensor_slices(COLUMNS), tmp_path / "rows"
    for write in (
        lambda: di.io.write_parquet(tmp_path / "a.parquet", COLUMNS, compression=codec),
        lambda: di.io.write_arrow(tmp_path / "a.arrow", COLUMNS, compression=codec),
        lambda: rows.write(folder, "parquet", compression=codec),
        lambda: rows.write(folder, "arrow", compression=codec),
        lambda: rows.save(folder, compression=codec),
        lambda: rows.snapshot(folder, compression=codec),
    ):
        with pytest.raises(InvalidArgumentError, match=r"compression.* must be .*, got "):
            write()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("codec", ["SNAPPY", "zstd", None, "none"])
def test_codecs_of_pages_in_either_case(codec: Any, tmp_path: Path) -> None:
    di.io.write_parquet(tmp_path / "a.parquet", COLUMNS, compression=codec)
    assert [row["a"] for row in di.data.ParquetDataset(tmp_path / "a.parquet")] == [0, 1, 2]


@pytest.mark.parametrize("row", [2**63 - 2, 2**63 - 1])
def test_numbers_without_an_end_go_on_behind_the_last_position_of_int64(row: int) -> None:
    wrapped = [(row + i + 2**63) % 2**64 - 2**63 for i in range(3)]
    assert Dataset.counter().skip(row).take(3).to_list() == wrapped
    assert Dataset.counter().batch(2).skip(row).take(1).to_list() == [[(2 * row + i) % 2**64 - 2**64 for i in range(2)]]
    assert len(Dataset.random(seed=1).skip(row).take(3).to_list()) == 3
