# SPDX-License-Identifier: Apache-2.0
"""Tar files as WebDataset has them, which Python's tarfile reads."""

import gzip
import io
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.errors import InvalidArgumentError

Dataset = di.data.Dataset


def members(path: str) -> dict[str, bytes]:
    with tarfile.open(path) as archive:
        return {entry.name: archive.extractfile(entry).read() for entry in archive}  # type: ignore[union-attr]


def test_parts_of_an_element_are_files_of_one_name(tmp_path: Path) -> None:
    data = {
        "__key__": ["a/x", "a/y"],
        "jpg": [b"\xff\xd8", b""],
        "cls": [3, -1],
        "left.npy": np.arange(4.0).reshape(2, 2),
    }
    (path,) = Dataset.from_tensor_slices(data).write(str(tmp_path), "tar").paths
    found = members(path)
    assert list(found) == ["a/x.cls", "a/x.jpg", "a/x.left.npy", "a/y.cls", "a/y.jpg", "a/y.left.npy"]
    assert (found["a/x.jpg"], found["a/y.cls"]) == (b"\xff\xd8", b"-1")
    assert np.load(io.BytesIO(found["a/y.left.npy"]), allow_pickle=False).tolist() == [2, 3]


def test_elements_without_a_key_are_numbered_over_all_files(tmp_path: Path) -> None:
    made = Dataset.range(3).map(lambda x: {"cls": x}).write(str(tmp_path / "a"), "tar", shard_rows=2)
    assert [list(members(path)) for path in made.paths] == [["000000000.cls", "000000001.cls"], ["000000002.cls"]]
    (path,) = Dataset.from_tensors({"txt": "a" * 5}).write(str(tmp_path / "b"), "tar", compression="GZIP").paths
    assert gzip.decompress(Path(path).read_bytes())
    assert members(path) == {"000000000.txt": b"aaaaa"}


@pytest.mark.parametrize(
    "data, says",
    [
        ([1], "tar takes dicts from extension to contents"),
        ({"__key__": ["a"]}, "elements have no file"),
        ({"a/b": ["a"]}, "'a/b' cannot be the suffix"),
        ({"jpg": np.zeros((1, 2))}, r"TensorSpec\(shape=\(2,.* cannot become the file 'jpg'"),
        (
            {"__key__": ["../a"], "txt": ["a"]},
            r"'__key__' must be a relative name without dots in its last part, got '\.\./a'",
        ),
        ({"__key__": ["/a"], "txt": ["a"]}, "must be a relative name"),
        ({"__key__": ["a.b"], "txt": ["a"]}, r"got 'a\.b'"),
        ({"__key__": [b"\xff"], "txt": ["a"]}, "'__key__' must be UTF-8"),
        ({"__key__": ["a", "a"], "txt": ["a", "b"]}, "two elements in a row have the key 'a'"),
        ({"__key__": ["__x__/b"], "txt": ["a"]}, r"'__x__/b\.txt' would be passed over by readers"),
        ({"__key__": ["__b"], "y__": ["a"]}, r"'__b\.y__' would be passed over by readers"),
        ({"jpg": ["a"], "JPG": ["b"]}, r"\['JPG', 'jpg'\] has one of them twice"),
    ],
)
def test_what_would_be_read_as_something_else_is_refused(tmp_path: Path, data: Any, says: str) -> None:
    with pytest.raises(InvalidArgumentError, match=says):
        Dataset.from_tensor_slices(data).write(str(tmp_path), "tar")


@pytest.mark.parametrize("key", [False, True])
@pytest.mark.parametrize("counted", [False, True])
def test_no_elements_are_read_as_such(tmp_path: Path, key: bool, counted: bool) -> None:
    def dataset(size: int) -> Any:
        made = Dataset.range(size).map(lambda x: {"cls": x, "seg.PNG": b"", **({"__key__": b"k"} if key else {})})
        return made if counted else made.filter(lambda _: True)

    for size in (0, 1):
        dataset(size).write(tmp_path / str(size), "tar", shards=2)
    empty, full = (di.data.FileDataset(tmp_path / name) for name in "01")
    assert (empty.to_list(), len(full.to_list())) == ([], 1)
    assert empty.element_spec == full.element_spec


def test_letters_that_are_not_ascii_stay_as_they_are(tmp_path: Path) -> None:
    Dataset.from_tensor_slices({"TXT.É": [b"a", b"b"]}).write(str(tmp_path), "tar")
    assert [sample["txt.É"] for sample in di.data.FileDataset(str(tmp_path))] == [b"a", b"b"]
    (path,) = tmp_path.glob("*.tar")
    assert [sample["txt.É"] for sample in di.data.WebDataset(str(path), ["txt.É"])] == [b"a", b"b"]
    assert [sample["x"] for sample in di.data.WebDataset(str(path), {"x": "TXT.É"})] == [b"a", b"b"]
