# SPDX-License-Identifier: Apache-2.0
"""Written tokens and their indices: the bytes of Megatron's own builder, two files that belong together."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.errors import DataLossError, FailedPreconditionError, InvalidArgumentError, NotFoundError
from distinput.inspect import convert
from distinput.writers.manifest import MANIFEST, read_written

Dataset = di.data.Dataset
ROWS = [[number * 97 % 60_000 + place for place in range(number % 5)] for number in range(23)]


def tokens(rows: Any = ROWS, dtype: Any = np.int32) -> Any:
    return Dataset.from_generator(lambda: iter(rows), output_signature=di.TensorSpec([None], dtype))


@pytest.mark.parametrize("rows, options", [(ROWS, {}), (ROWS, {"dtype": "uint16"}), ([], {})])
def test_files_are_those_of_the_other_writer(tmp_path: Path, rows: Any, options: Any) -> None:
    written = tokens(rows).write(tmp_path / "a", "megatron", shard_rows=10, **options)
    for number, path in enumerate(written.paths):
        di.io.write_megatron(tmp_path / "b.bin", rows[number * 10 : number * 10 + 10], **options)
        assert Path(path).read_bytes() == (tmp_path / "b.bin").read_bytes()
        assert Path(path).with_suffix(".idx").read_bytes() == (tmp_path / "b.idx").read_bytes()
    assert di.data.FileDataset(str(tmp_path / "a")).to_list() == rows
    assert di.data.MegatronDataset(str(tmp_path / "a")).to_list() == rows
    assert di.io.verify_files(tmp_path / "a").bytes == sum(
        file.stat().st_size for file in (tmp_path / "a").iterdir() if file.name != MANIFEST
    )


@pytest.mark.needs("megatron")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64", "uint16", "float32", "float64"])
def test_the_bytes_are_those_of_the_builder_of_megatron(tmp_path: Path, dtype: str) -> None:
    import torch
    from megatron.core.datasets.indexed_dataset import IndexedDataset, IndexedDatasetBuilder

    rows = [np.arange(number, 2 * number, dtype=dtype) for number in (3, 0, 7, 1)]
    (path,) = tokens(rows, dtype).write(tmp_path / "a", "megatron").paths
    builder = IndexedDatasetBuilder(str(tmp_path / "b.bin"), np.dtype(dtype).type)
    for row in rows:
        builder.add_item(torch.from_numpy(row))
        builder.end_document()
    builder.finalize(str(tmp_path / "b.idx"))
    assert Path(path).read_bytes() == (tmp_path / "b.bin").read_bytes()
    assert Path(path).with_suffix(".idx").read_bytes() == (tmp_path / "b.idx").read_bytes()
    found = IndexedDataset(path.removesuffix(".bin"))
    assert [row.tolist() for row in found] == [row.tolist() for row in rows]
    # Documents of several sequences, and modes.
    builder = IndexedDatasetBuilder(str(tmp_path / "d.bin"), np.dtype(dtype).type, multimodal=True)
    builder.add_document(torch.from_numpy(np.concatenate(rows[:3])), [3, 0, 7], [0, 1, -1])
    builder.add_document(torch.from_numpy(rows[3]), [1], [5])
    builder.finalize(str(tmp_path / "d.idx"))
    pairs = [list(zip(rows[:3], [0, 1, -1], strict=True)), [(rows[3], 5)]]
    di.io.write_megatron(tmp_path / "e.bin", pairs, dtype=dtype, documents=True, multimodal=True)
    for suffix in (".bin", ".idx"):
        assert (tmp_path / f"e{suffix}").read_bytes() == (tmp_path / f"d{suffix}").read_bytes()


def test_rows_of_one_length_and_views_of_others(tmp_path: Path) -> None:
    array = np.arange(12).reshape(4, 3)
    Dataset.from_tensor_slices(array).shard(2, 1).write(tmp_path / "a", "megatron", dtype="int16")
    assert di.data.FileDataset(str(tmp_path / "a")).to_list() == array[1::2].tolist()
    # Rows of a ragged column, in another order.
    tokens().shuffle(23, seed=1).write(tmp_path / "b", "megatron")
    assert sorted(di.data.FileDataset(str(tmp_path / "b")).to_list()) == sorted(ROWS)


def test_files_are_replaced_removed_and_verified_with_those_beside_them(tmp_path: Path) -> None:
    tokens().write(tmp_path, "megatron", shard_rows=10)
    tokens(ROWS[:3]).write(tmp_path, "megatron", overwrite=True)
    assert sorted(name.rpartition(".")[2] for name in os.listdir(tmp_path)) == ["bin", "idx", "json"]
    (index,) = tmp_path.glob("*.idx")
    whole = index.read_bytes()
    index.write_bytes(bytes([*whole[:-1], whole[-1] ^ 1]))
    with pytest.raises(DataLossError, match=rf"{index.name}: its checksum is .* it was changed after it was written"):
        di.io.verify_files(tmp_path)
    index.unlink()
    with pytest.raises(NotFoundError, match=r"\.idx"):
        di.io.verify_files(tmp_path)


def test_a_file_of_another_that_would_be_overwritten_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "part-00000.idx").write_bytes(b"mine")
    with pytest.raises(FailedPreconditionError, match=r"part-00000\.idx is there already"):
        tokens().write(tmp_path, "megatron")
    assert os.listdir(tmp_path) == ["part-00000.idx"]


@pytest.mark.parametrize(
    "beside", [3, {"name": "../a.idx", "rows": 0, "bytes": 1, "crc32": 1}, {"name": "part-00000.bin"}]
)
def test_a_forged_manifest_is_refused(tmp_path: Path, beside: Any) -> None:
    tokens().write(tmp_path, "megatron")
    made = json.loads((tmp_path / MANIFEST).read_text())
    file = made["files"][0]
    file["beside"] = {**file["beside"], **beside} if isinstance(beside, dict) else beside
    (tmp_path / MANIFEST).write_text(json.dumps(made))
    with pytest.raises(DataLossError, match="not a manifest of written files, or damaged"):
        read_written(str(tmp_path))


def test_files_of_a_store() -> None:
    tokens().write("memory://written/tokens", "megatron", shards=2)
    assert sorted(di.data.FileDataset("memory://written/tokens/").to_list()) == sorted(ROWS)


def test_tables_become_tokens(tmp_path: Path) -> None:
    Dataset.from_tensor_slices({"id": [1, 2], "tokens": [[1, 2, 3], [4, 5, 6]]}).write(tmp_path / "a", "parquet")
    convert(str(tmp_path / "a"), str(tmp_path / "b"), "megatron", value="tokens", dtype="uint16")
    made = di.data.FileDataset(str(tmp_path / "b"))
    assert made.to_list() == [[1, 2, 3], [4, 5, 6]]
    assert made.element_spec == di.TensorSpec([None], np.uint16)


@pytest.mark.parametrize(
    "dataset, options, message",
    [
        (tokens([[1], [70_000]]), {"dtype": "uint16"}, "element 1 holds 70000, which is no uint16; say dtype="),
        (tokens([[1.5]], np.float32), {"dtype": "int32"}, "element 0 holds 1.5, which is no int32"),
        (tokens(dtype=np.uint32), {}, "Megatron has no tokens of uint32; give dtype=, one of uint8, "),
        (tokens(), {"dtype": "uint64"}, "megatron: dtype must be one of uint8, .*, got uint64"),
        (Dataset.range(3), {}, r"an array \[length\] of tokens, got TensorSpec\(shape=\(\), .* see io.write_megatron"),
        (Dataset.from_tensors({"x": [1]}), {}, "map them to one"),
        (Dataset.from_tensor_slices([["a"]]), {}, "map them to one"),
    ],
)
def test_what_cannot_be_written_leaves_nothing(tmp_path: Path, dataset: Any, options: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        dataset.write(tmp_path, "megatron", **options)
    assert os.listdir(tmp_path) == []
