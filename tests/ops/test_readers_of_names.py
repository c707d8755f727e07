# SPDX-License-Identifier: Apache-2.0
"""`flat_map` and `interleave` with a function that reads the file that an element names."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.data.file_datasets import reading
from distinput.run.run import Run
from distinput.testing import check_restart
from tests.ops.iterating import until_error

Dataset = di.data.Dataset
Records = di.data.TFRecordDataset


def called(name: bytes) -> Any:
    return Records(name)


class Counting(Records):  # type: ignore[misc, valid-type]
    made = 0

    def __init__(self, name: bytes) -> None:
        type(self).made += 1
        super().__init__(name)


def _written(folder: Path, numbers: Iterable[int]) -> list[str]:
    """Names of files; every third one is compressed."""
    names = [str(folder / f"{number}.tfrecord{'.gz' * (number % 3 == 2)}") for number in numbers]
    for number, name in enumerate(names):
        with di.io.TFRecordWriter(name, "GZIP" if name.endswith(".gz") else None) as writer:
            for row in range(number % 4 + 1):
                writer.write(f"{number} {row}".encode())
    return names


def _ends(dataset: Any) -> tuple[list[Any], str, list[str]]:
    """The elements before an error, and the error, without the line that made the step."""
    found, error = until_error(dataset)
    return found, f"{type(error).__name__}: {error}", [n for n in error.__notes__ if "made at" not in n]


EACH = pytest.mark.parametrize(
    "read",
    [
        pytest.param(lambda names, of: names.flat_map(of), id="flat_map"),
        pytest.param(lambda names, of: names.interleave(of, 2, num_parallel_calls=2), id="interleave"),
    ],
)
Read = Callable[[Any, Any], Any]


@EACH
def test_the_class_of_a_reader_gives_what_a_function_gives_that_calls_it(read: Read, tmp_path: Path) -> None:
    names = Dataset.from_tensor_slices(_written(tmp_path, range(12)))
    of_class, of_function = read(names, Records), read(names, called)
    assert of_class.to_list() == of_function.to_list()
    check_restart(of_class)


@EACH
def test_either_goes_on_from_the_states_of_the_other(read: Read, tmp_path: Path) -> None:
    names = Dataset.from_tensor_slices(_written(tmp_path, range(12)))
    nodes = [read(names, of).node for of in (Records, called)]

    def rest(node: Any, state: Any) -> list[Any]:
        with Run() as run:
            return [element for block, _ in node.open(state, run) for element in block.elements()]

    for node, other in (nodes, nodes[::-1]):
        wanted, done = rest(node, node.start(0)), 0
        with Run() as run:
            for block, state in node.open(node.start(0), run):
                done += block.size
                assert rest(other, state) == wanted[done:]
        assert done == len(wanted)


@EACH
@pytest.mark.parametrize("fault", ["damaged", "missing", "folder", "pattern"])
def test_the_class_of_a_reader_reads_what_a_function_reads_that_calls_it(
    read: Read, fault: str, tmp_path: Path
) -> None:
    names = _written(tmp_path, range(0, 27, 3))
    other = Path(names[5])
    content = other.read_bytes()
    other.unlink()
    if fault == "damaged":
        other.write_bytes(content[:-3])
    elif fault == "folder":
        other.mkdir()
        _written(other, range(4))
    elif fault == "pattern":
        names[5] = str(tmp_path / "*4.tfrecord")
    Path(names[8]).unlink()
    files = Dataset.from_tensor_slices(names)
    assert _ends(read(files, Records)) == _ends(read(files, called))


@EACH
def test_small_files_need_no_dataset_each(read: Read, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = _written(tmp_path, range(0, 60, 3))
    files = Dataset.from_tensor_slices(names)
    dataset, made, begin = read(files, Records), [], reading.Reader
    wanted = read(files, called).to_list()
    monkeypatch.setattr(reading, "Reader", lambda *args, **rest: made.append(args) or begin(*args, **rest))
    assert dataset.to_list() == wanted
    assert 0 < len(made) <= 2
    assert dataset.to_list() == wanted  # a later pass
    assert len(made) <= 2


@EACH
def test_a_class_with_a_constructor_of_its_own_is_called_for_each_file(read: Read, tmp_path: Path) -> None:
    dataset = read(Dataset.from_tensor_slices(_written(tmp_path, range(0, 30, 3))), Counting)
    before = Counting.made
    assert len(dataset.to_list()) == 23
    assert Counting.made >= before + 10


def test_a_file_behind_another_begins_with_a_large_block(tmp_path: Path) -> None:
    names = [str(tmp_path / name) for name in "ab"]
    for name in names:
        Path(name).write_bytes(b"word\n" * 800_000)
    node = Dataset.from_tensor_slices(names).flat_map(lambda name: di.data.TextLineDataset(name)).node
    with Run() as run:
        sizes = [block.size for block, _ in node.open(node.start(0), run)]
    second = int(np.searchsorted(np.cumsum(sizes), 800_000)) + 1
    assert sum(sizes[second:]) == 800_000
    assert sizes[second] > sizes[0]
