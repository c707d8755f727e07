# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

import pytest

import distinput as di
from distinput.errors import InvalidArgumentError
from tests.archives import write_tar


@pytest.fixture
def shards(tmp_path: Path) -> list[str]:
    rows = [(f"{i:02d}", b"%d" % i) for i in range(9)]
    return [
        write_tar(
            tmp_path / f"{k}.tar", [(f"{key}.{name}", text) for key, text in rows[k::3] for name in ("cls", "txt")]
        )
        for k in range(3)
    ]


def test_shards_one_after_the_other_and_in_turns(shards: list[str]) -> None:
    assert [int(row["cls"]) for row in di.data.WebDataset(shards)] == [0, 3, 6, 1, 4, 7, 2, 5, 8]
    assert [int(row["cls"]) for row in di.data.WebDataset(shards, num_parallel_reads=3)] == list(range(9))
    names = di.data.Dataset.list_files(str(Path(shards[0]).parent / "*.tar"), shuffle=False)
    assert [row["txt"] for row in di.data.WebDataset(names, ["txt"]).take(2)] == [b"0", b"3"]


def test_batches_and_restarts(shards: list[str]) -> None:
    made = di.data.WebDataset(shards, ["cls"], num_parallel_reads=2).batch(2)
    iterator = iter(made)
    first = next(iterator)
    assert first["cls"].tolist() == [b"0", b"1"]
    again = made.restore(iterator.state())
    assert [row["cls"].tolist() for row in again] == [row["cls"].tolist() for row in iterator]


def test_samples_without_a_member(tmp_path: Path) -> None:
    path = write_tar(tmp_path / "a.tar", {"0.a": b"1", "0.b": b"2", "1.a": b"3", "2.a": b"4", "2.b": b"5"})
    with pytest.raises(InvalidArgumentError, match=r"sample 1, '1', has no member 'b'"):
        di.data.WebDataset(path).to_list()
    assert di.data.WebDataset(path, missing="skip").to_list() == [
        {"__key__": b"0", "a": b"1", "b": b"2"},
        {"__key__": b"2", "a": b"4", "b": b"5"},
    ]
    assert di.data.WebDataset(path, ["b"], missing={"b": b"?"}).to_list() == [{"b": b"2"}, {"b": b"?"}, {"b": b"5"}]


def test_shards_whose_samples_differ(tmp_path: Path) -> None:
    paths = [write_tar(tmp_path / "a.tar", {"0.a": b"1"}), write_tar(tmp_path / "b.tar", {"0.b": b"1"})]
    with pytest.raises(
        InvalidArgumentError, match=r"b\.tar: its first sample has '__key__', 'b', but that of the first file"
    ):
        di.data.WebDataset(paths).to_list()
    assert di.data.WebDataset(paths, {"x": "a;b"}).to_list() == [{"x": b"1"}, {"x": b"1"}]
