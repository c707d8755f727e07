# SPDX-License-Identifier: Apache-2.0
"""Snapshots: a folder for each pipeline, written and read as functions say."""

import os
from pathlib import Path
from typing import Any

import fsspec
import pytest

import distinput as di
from distinput.errors import InvalidArgumentError
from distinput.writers import open_file
from distinput.writers.stage import Stage

RANGE = di.data.Dataset.range


def test_each_pipeline_has_its_own_folder(tmp_path: Path) -> None:
    for _ in range(2):
        assert RANGE(5).snapshot(tmp_path).to_list() == [0, 1, 2, 3, 4]
        assert RANGE(3).snapshot(tmp_path).to_list() == [0, 1, 2]
    assert len(os.listdir(tmp_path)) == 2


def test_a_shuffle_is_kept(tmp_path: Path) -> None:
    kept = RANGE(50).shuffle(50).snapshot(tmp_path)
    assert kept.to_list() == kept.to_list() == RANGE(50).shuffle(50).snapshot(tmp_path).to_list()


def test_functions_say_how_it_is_written_and_read(tmp_path: Path) -> None:
    def read(files: Any) -> Any:
        return files.shuffle(4, seed=1).flat_map(lambda file: file)

    kept = RANGE(8).snapshot(tmp_path, "GZIP", read, lambda x: x % 4)
    assert kept.to_list() == list(range(8))  # as it is made
    later = [kept.to_list() for _ in range(2)]
    assert sorted(later[0]) == sorted(later[1]) == list(range(8))
    assert later[0] != later[1]  # the order of the files is drawn in each pass
    with iter(kept) as elements:
        seen = [int(next(elements)) for _ in range(3)]
        rest = [int(x) for x in kept.restore(elements.state())]
    assert sorted(seen + rest) == list(range(8))
    assert rest == [int(x) for x in kept.iter_pass(3)][3:]


def test_a_pass_that_was_killed_goes_on_though_a_function_deals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_file, "SHARD_BYTES", 1)
    calls: list[int] = []

    def made() -> Any:
        parts = RANGE(4).concatenate(RANGE(4, 8)).concatenate(RANGE(8, 12)).concatenate(RANGE(12, 16))
        noted = parts.map(lambda x: (calls.append(int(x)), x)[1], output_signature=di.TensorSpec([], "int64"))
        return noted.snapshot(tmp_path, "LZ4", lambda files: files.flat_map(lambda file: file), lambda x: x % 3)

    with monkeypatch.context() as patched:
        patched.setattr(Stage, "discard", Stage.release)  # as if the process had ended
        with iter(made()) as elements:
            assert [int(next(elements)) for _ in range(10)] == list(range(10))
    (folder,) = tmp_path.iterdir()
    assert [name for name in os.listdir(folder) if not name.startswith(".")] == []
    assert made().skip(3).to_list() == list(range(3, 16))
    assert calls.count(0) == 1  # the first ones were not made again
    assert made().to_list() == [*range(0, 16, 3), *range(1, 16, 3), *range(2, 16, 3)]
    found = di.io.verify_files(str(folder))
    assert sorted(os.listdir(folder)) == sorted(["distinput-manifest.json", *[file.name for file in found.files]])


def test_nothing_is_spooled_in_a_store_of_objects() -> None:
    kept = RANGE(6).snapshot("memory://spooled", shard_func=lambda x: x % 2)
    assert kept.to_list() == list(range(6))
    assert kept.to_list() == [0, 2, 4, 1, 3, 5]
    (folder,) = fsspec.filesystem("memory").ls("/spooled", detail=False)
    names = [name.rpartition("/")[2] for name in fsspec.filesystem("memory").ls(folder, detail=False)]
    assert len(names) == 3, names


@pytest.mark.parametrize(
    "arguments, error, says",
    [
        ({"compression": "BZ2"}, InvalidArgumentError, "snapshot: compression must be None, 'AUTO'"),
        ({"reader_func": 3}, TypeError, "snapshot: reader_func must be a function, got 3"),
        ({"shard_func": 3}, TypeError, "snapshot: shard_func must be a function, got 3"),
    ],
)
def test_arguments_are_checked(tmp_path: Path, arguments: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        RANGE(3).snapshot(tmp_path, **arguments)


def test_a_function_that_returns_no_number_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="shard_func must return the number of a file"):
        RANGE(3).snapshot(tmp_path, shard_func=lambda _: -1).to_list()
    (folder,) = os.listdir(tmp_path)
    assert os.listdir(tmp_path / folder) == []
