# SPDX-License-Identifier: Apache-2.0
"""Files that are not mapped: the same rows and states, and no page of them that may be gone."""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import distinput as di

ROWS = 2000


def write_npy(path: Path) -> None:
    np.save(path, np.arange(ROWS * 40).reshape(ROWS, 40))


def write_arrow(path: Path) -> None:
    di.io.write_arrow(path, {"x": np.arange(ROWS * 40).reshape(ROWS, 40)}, batch_rows=200)


def write_npz(path: Path) -> None:
    np.savez(path, x=np.arange(ROWS * 40).reshape(ROWS, 40))


KINDS: dict[str, tuple[Callable[[Path], None], Callable[..., Any]]] = {
    "npy": (write_npy, di.data.NpyDataset),
    "arrow": (write_arrow, di.data.ArrowDataset),
    "npz": (write_npz, di.data.NpzDataset),
}


@pytest.fixture(scope="module", params=KINDS)
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Callable[..., Any]]:
    write, dataset = KINDS[request.param]
    path = tmp_path_factory.mktemp("mapped") / f"a.{request.param}"
    write(path)
    return str(path), dataset


@given(st.data())
def test_rows_and_states_are_those_of_the_mapped_file(
    made: tuple[str, Callable[..., Any]], data: st.DataObject
) -> None:
    path, dataset = made
    shuffled, batch = data.draw(st.booleans()), data.draw(st.integers(40, ROWS))

    def pipeline(memory_map: bool) -> Any:
        rows = dataset(path, memory_map=memory_map)
        return (rows.global_shuffle(seed=3) if shuffled else rows).batch(batch)

    mapped, read = pipeline(True), pipeline(False)
    stop = data.draw(st.integers(0, -(-ROWS // batch)))
    iterator = iter(mapped)
    for _ in range(stop):
        next(iterator)
    rest = list(read.restore(iterator.state()))
    expected = list(iterator)
    assert len(rest) == len(expected)
    for a, b in zip(rest, expected, strict=True):
        np.testing.assert_equal(a, b)


def values(batch: Any) -> Any:
    return batch["x"] if isinstance(batch, dict) else batch


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shuffled", [False, True])
def test_a_file_that_is_cut_short_does_not_end_the_process(tmp_path: Path, kind: str, shuffled: bool) -> None:
    write, dataset = KINDS[kind]
    path = tmp_path / f"a.{kind}"
    write(path)
    rows = dataset(str(path), memory_map=False)
    iterator = iter((rows.global_shuffle(seed=3) if shuffled else rows).batch(400))
    found = [next(iterator)]
    os.truncate(path, path.stat().st_size // 50)
    with suppress(di.errors.DataLossError):  # unless all of it had been read
        found += iterator
        assert sum(len(values(batch)) for batch in found) == ROWS
    got = np.concatenate([values(batch) for batch in found])  # rows of a mapped file would end the process here
    order = np.argsort(got[:, 0])
    assert np.array_equal(np.diff(got[order], axis=1), np.ones((len(got), 39)))
    assert len(np.unique(got[:, 0])) == len(got)


def test_what_was_not_read_yet_is_missed(tmp_path: Path) -> None:
    path = str(tmp_path / "large.npy")
    np.save(path, np.zeros((64, 1 << 18), np.uint8))
    iterator = iter(di.data.NpyDataset(path, memory_map=False).batch(1))
    next(iterator)
    os.truncate(path, 1 << 20)
    with pytest.raises(di.errors.DataLossError, match=r"large\.npy"):
        list(iterator)
