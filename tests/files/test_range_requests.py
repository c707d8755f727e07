# SPDX-License-Identifier: Apache-2.0
"""Requests for ranges bring what was asked for, or an error; sizes count where ranges can be read."""

from typing import Any

import fsspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distinput.errors import UnimplementedError
from distinput.files.range_requests import facts_of, ranges_of

DATA = bytes(range(256)) * 4
SPANS = st.lists(st.tuples(st.integers(0, 900), st.integers(0, 120)).map(lambda s: (s[0], s[0] + s[1])), max_size=6)


class Answering:
    """A file system that sends what it is made with, whatever is asked for."""

    def __init__(self, *answers: bytes | Exception) -> None:
        self.answers = answers

    def cat_file(self) -> None:
        """Another one than fsspec's own, which opens the file for each range."""

    def cat_ranges(self, paths: Any, starts: Any, stops: Any, on_error: str) -> list[Any]:
        return list(self.answers)


@given(SPANS)
def test_ranges_are_those_of_the_file(spans: list[tuple[int, int]]) -> None:
    system = fsspec.filesystem("memory")
    system.pipe("/remote_ranges", DATA)
    assert ranges_of(system, "/remote_ranges", spans) == [DATA[start:stop] for start, stop in spans]


def test_a_server_that_sends_whole_files_is_an_error() -> None:
    with pytest.raises(UnimplementedError, match="a: its server ignores requests for a part of a file"):
        ranges_of(Answering(DATA), "a", [(0, 10)])


def test_errors_stand_in_the_place_of_ranges() -> None:
    error = PermissionError("no")
    assert ranges_of(Answering(b"a", error), "a", [(0, 1), (1, 2)]) == [b"a", error]


@pytest.mark.parametrize(
    "info, size",
    [({"size": 7}, 7), ({"size": 0}, 0), ({}, None), ({"size": None}, None), ({"size": 7, "partial": False}, None)],
)
def test_sizes_count_only_where_ranges_can_be_read(info: dict[str, Any], size: int | None) -> None:
    class System:
        def info(self, name: str) -> dict[str, Any]:
            return info

    assert facts_of(System(), "a").size == size
