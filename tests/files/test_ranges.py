# SPDX-License-Identifier: Apache-2.0
"""Spans of a file are those of its bytes, wherever it is."""

from pathlib import Path

import fsspec
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from distinput.errors import DataLossError, NotFoundError
from distinput.files.source import read_spans

DATA = bytes(range(256)) * 4


@pytest.fixture(scope="module", params=["local", "memory"])
def path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    if request.param == "memory":
        with fsspec.open("memory://ranges/a.bin", "wb") as file:
            file.write(DATA)
        return "memory://ranges/a.bin"
    made = Path(tmp_path_factory.mktemp("ranges")) / "a.bin"
    made.write_bytes(DATA)
    return str(made)


@given(
    spans=st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 24)), max_size=9), gap=st.sampled_from([0, 9, 4096])
)
@example(spans=[(3, 5), (8, 0), (8, 7)], gap=0)  # nothing is between them
@example(spans=[(0, 5), (3, 2), (9, 4)], gap=9)  # they take as much as what they span
def test_spans_come_one_after_the_other(path: str, spans: list[tuple[int, int]], gap: int) -> None:
    starts, sizes = np.array(spans, np.int64).reshape(-1, 2).T.copy()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("distinput.files.source._GAP", gap)
        found = read_spans(path, starts, sizes)
        out = np.empty(len(found), np.uint8)
        assert read_spans(path, starts, sizes, out) is out
    assert out.tobytes() == found.tobytes()
    assert found.tobytes() == b"".join(DATA[start : start + size] for start, size in spans)


def test_a_file_that_ends_before_is_told(path: str) -> None:
    with pytest.raises(DataLossError, match=r"a\.bin: ends before the last record that was counted"):
        read_spans(path, np.array([1020]), np.array([5]))
    with pytest.raises(NotFoundError):
        read_spans(path + "x", np.array([0]), np.array([1]))


def test_spans_that_follow_each_other_are_asked_for_as_one(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[list[int], list[int]]] = []

    def noted(path: str, starts: list[int], stops: list[int]) -> list[bytes]:
        asked.append((starts, stops))
        return [DATA[start:stop] for start, stop in zip(starts, stops, strict=True)]

    monkeypatch.setattr("distinput.files.source.fetch", noted)
    found = read_spans(path, np.array([3, 7, 9, 9, 2]), np.array([4, 2, 0, 5, 1]))
    assert found.tobytes() == DATA[3:14] + DATA[2:3]
    assert asked == ([] if path.startswith("/") else [([3, 2], [14, 3])])
