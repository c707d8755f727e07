# SPDX-License-Identifier: Apache-2.0
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes

import distinput as di
from distinput.errors import DataLossError, InvalidArgumentError, NotFoundError, UnimplementedError
from distinput.files.manifest import FileTable
from distinput.files.sink import Sink
from distinput.files.whole_files import mapped
from distinput.formats.npy import Npy
from distinput.values.spec import TensorSpec
from tests.formats.reading import check_positions, cut_short, flipped, records, records_until_error


def save(path: str, array: Any, version: tuple[int, int] | None = None) -> None:
    with Sink(path) as sink:
        np.lib.format.write_array(sink, array, version)  # type: ignore[arg-type]


@given(
    shape=array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=6),
    dtype=st.sampled_from(["?", "i1", ">i4", "<u8", "f2", ">f8", "c8", "M8[s]", "m8[ns]"]),
    version=st.sampled_from([(1, 0), (2, 0), (3, 0)]),
    place=st.sampled_from(["memory://npy/", ""]),
)
def test_rows_of_any_array(
    tmp_path_factory: pytest.TempPathFactory, shape: tuple[int, ...], dtype: str, version: tuple[int, int], place: str
) -> None:
    path = (place or str(tmp_path_factory.getbasetemp()) + "/") + "any.npy"
    array = np.arange(int(np.prod(shape))).reshape(shape).astype(dtype)
    save(path, array, version)
    check_positions(Npy(), path, array.tolist())
    spec = Npy().spec(path)
    assert spec.leaves == (TensorSpec(shape[1:], np.dtype(dtype).newbyteorder("=")),)
    for block, _ in Npy().read(path):
        assert block.columns[0].dtype == spec.leaves[0].dtype
    rows = np.arange(2 * len(array)) * 7 % max(1, len(array))
    found = Npy().fetch(path, rows)
    assert found.columns[0].dtype == np.dtype(dtype).newbyteorder("=")
    assert [np.asarray(row).tolist() for row in found.elements()] == array[rows].tolist()


@given(st.integers(0, 50), st.integers(1, 9), st.integers(0, 8))
def test_blocks_end_where_groups_do(
    tmp_path_factory: pytest.TempPathFactory, rows: int, size: int, given_before: int
) -> None:
    for path in (str(tmp_path_factory.getbasetemp() / "groups.npy"), "memory://npy/groups.npy"):
        save(path, np.zeros((rows, 1 << 17)).view("u1")[:, : 1 << 17] + np.arange(rows, dtype="u1")[:, None])
        ends = []
        done = 0
        for block, position in Npy().read_groups(path, None, size, given_before % size):
            assert block.materialize().columns[0].array[:, 5].tolist() == list(range(done, done + block.size))  # type: ignore[attr-defined]
            done += block.size
            assert position == {"row": done}
            ends.append((given_before % size + done) % size)
        assert done == rows
        assert not any(ends[:-1])


def test_rows_are_views_of_the_file(tmp_path: Path) -> None:
    path = str(tmp_path / "a.npy")
    np.save(path, np.arange(100_000.0).reshape(-1, 10))
    whole = mapped(path)
    for block, _ in Npy().read(path):
        array = block.materialize().columns[0].array  # type: ignore[attr-defined]
        assert array.__array_interface__["data"][0] - whole.__array_interface__["data"][0] in range(len(whole))
        assert not array.flags.writeable


def test_it_is_cut_between_any_rows(tmp_path: Path) -> None:
    paths = [str(tmp_path / f"{i}.npy") for i in range(3)]
    for i, path in enumerate(paths):
        np.save(path, np.full((10 * i, 3), i, np.int32))
    table = FileTable.of(paths)
    units = Npy().units(table)
    assert units is not None
    assert units.tolist() == [0, 10, 20]
    assert Npy().unit_bytes(table) == 12
    part = Npy().part(paths[2], 5, 8)
    assert [block.size for block, _ in Npy().read_fragment(part)] == [3]


def test_fetch_of_a_row_that_is_not_there(tmp_path: Path) -> None:
    path = str(tmp_path / "a.npy")
    np.save(path, np.arange(5))
    for row in (-1, 5):
        with pytest.raises(InvalidArgumentError, match="rows must be from 0 to 4"):
            Npy().fetch(path, np.array([row]))


def test_a_changed_file_is_read_anew(tmp_path: Path) -> None:
    for path in (str(tmp_path / "a.npy"), "memory://npy/changed.npy"):
        save(path, np.arange(2))
        assert Npy().rows(path) == 2
        save(path, np.arange(3))
        assert Npy().rows(path) == 3
        with pytest.raises(DataLossError, match="has 3 rows, but reading must continue at row 4; the file has changed"):
            records(Npy(), path, {"row": 4})


def test_a_file_cut_short_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    np.save(path, np.arange(6))
    for damaged in cut_short(path.read_bytes()):
        path.write_bytes(damaged)
        for memory_map in (True, False):
            found, error = records_until_error(Npy(memory_map), path)
            assert found == list(range(max(0, len(damaged) - 128) // 8))  # the whole rows that are there
            assert isinstance(error, DataLossError)
            assert str(path) in str(error)


@pytest.mark.parametrize("place", ["memory://npy/", ""])
def test_a_second_array_behind_the_first_one_is_an_error(tmp_path: Path, place: str) -> None:
    path = (place or f"{tmp_path}/") + "both.npy"
    with Sink(path) as sink:
        for first in (0, 3):
            np.lib.format.write_array(sink, np.arange(first, first + 3))  # type: ignore[arg-type]
    says = r"both\.npy: another array begins at byte 152, behind the 3 rows of the first one"
    with pytest.raises(DataLossError, match=says):
        di.data.NpyDataset(path).to_list()
    with pytest.raises(DataLossError, match=says):
        len(di.data.NpyDataset(path))
    if not place:  # others may write rows behind the array while it is read, before its header counts them
        Path(path).write_bytes(Path(path).read_bytes()[:152] + np.arange(3).tobytes())
        assert di.data.NpyDataset(path).to_list() == [0, 1, 2]


def test_a_file_cut_short_is_counted_by_nobody_and_says_what_it_had(tmp_path: Path) -> None:
    path = str(tmp_path / "a.npy")
    np.save(path, np.zeros((6, 2)))
    os.truncate(path, os.path.getsize(path) - 17)
    assert (Npy().rows(path), Npy().stated_rows(path), Npy().gathers(path)) == (None, 6, False)
    assert Npy().units(FileTable.of([path])) is None
    with pytest.raises(DataLossError, match="it was cut short, and 2 of its 6 rows are missing"):
        records(Npy(), path, {"row": 4})
    for memory_map in (True, False):
        with pytest.raises(DataLossError, match="it was cut short"):
            Npy(memory_map).fetch(path, np.array([0]))


def test_a_flipped_bit_of_the_header_is_an_error_or_another_array(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    np.save(path, np.arange(3, dtype="i1"))
    for bit, damaged in enumerate(flipped(path.read_bytes())):
        path.write_bytes(damaged)
        _, error = records_until_error(Npy(), path)
        if error is not None:
            assert isinstance(error, DataLossError | InvalidArgumentError | UnimplementedError), (bit, error)
            assert str(path) in str(error)


def test_missing_and_other_files(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="No such file or directory"):
        records(Npy(), tmp_path / "no.npy")
    (tmp_path / "a.txt").write_bytes(b"hello, world")
    with pytest.raises(DataLossError, match=r"a\.txt: not a \.npy file"):
        Npy().rows(str(tmp_path / "a.txt"))
    with pytest.raises(InvalidArgumentError, match="name at least one file"):
        Npy().spec(None)


@pytest.mark.parametrize(
    "array, says",
    [
        (np.array(["a"]), "dtype <U1, which cannot be read row by row"),
        (np.array([None]), "dtype object, which cannot be read row by row"),
        (np.zeros(2, [("a", "i4")]), "each field of a structured array as a file of its own"),
        (np.asfortranarray(np.zeros((2, 3))), "stored column by column"),
    ],
)
def test_arrays_that_have_no_rows_to_read(tmp_path: Path, array: Any, says: str) -> None:
    path = str(tmp_path / "a.npy")
    np.save(path, array)
    with pytest.raises(UnimplementedError, match=says):
        Npy().spec(path)


def test_a_scalar_has_no_rows(tmp_path: Path) -> None:
    path = str(tmp_path / "a.npy")
    np.save(path, np.float32(1))
    with pytest.raises(InvalidArgumentError, match="holds a scalar"):
        Npy().spec(path)


def test_images_and_labels_are_shuffled_together(tmp_path: Path) -> None:
    images, labels = str(tmp_path / "images.npy"), str(tmp_path / "labels.npy")
    np.save(images, np.arange(3000).reshape(1000, 3))
    np.save(labels, np.arange(1000) * 3)
    pairs = di.data.Dataset.zip(di.data.NpyDataset(images), di.data.NpyDataset(labels))
    assert pairs.node.random_access
    seen = []
    for image, label in pairs.global_shuffle(seed=1).batch(64):
        assert image[:, 0].tolist() == label.tolist()
        seen += label.tolist()
    assert sorted(seen) == list(range(0, 3000, 3))
    assert seen != sorted(seen)
