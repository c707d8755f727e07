# SPDX-License-Identifier: Apache-2.0
"""Which rows of a batch a process needs, and the pieces that contain them."""

from types import SimpleNamespace
from typing import Any

import jax
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax.sharding import NamedSharding, PartitionSpec, SingleDeviceSharding

from distinput.interop.jax.batches import device_rows, pieces_of, spans_processes

RANGES = st.lists(st.tuples(st.integers(0, 11), st.integers(1, 12)).filter(lambda pair: pair[0] < pair[1]), min_size=1)


@pytest.mark.parametrize(
    "ranges, pieces, starts",
    [
        ([(0, 8)], 1, (0,)),
        ([(0, 2), (2, 4), (4, 6), (6, 8)], 1, (0,)),
        ([(4, 6), (6, 8), (4, 6)], 2, (4,)),
        ([(0, 2), (4, 6)], 4, (0, 4)),
        ([(2, 4), (6, 8)], 4, (2, 6)),
        ([(2, 6)], 4, (2, 4)),
        ([(0, 1), (2, 3)], 8, (0, 1, 2)),  # not at equal distances through the batch, so what is between is read too
    ],
)
def test_row_ranges_become_pieces(ranges: list[tuple[int, int]], pieces: int, starts: tuple[int, ...]) -> None:
    made = pieces_of(ranges, 8)
    assert made.assignment.pieces == pieces
    assert made.starts == starts


@given(RANGES)
def test_pieces_contain_all_rows_that_are_needed(ranges: list[tuple[int, int]]) -> None:
    made = pieces_of(ranges, 12)
    read = {row for start in made.starts for row in range(start, start + made.size)}
    needed = {row for first, stop in ranges for row in range(first, stop)}
    assert needed <= read <= set(range(min(needed), max(needed) + 1))
    assert made.size * made.assignment.pieces == 12


@pytest.mark.parametrize(
    "axes, spec, found",
    [
        ((8,), ("data",), [(i, i + 1) for i in range(8)]),
        ((4, 2), ("data",), [(0, 2), (0, 2), (2, 4), (2, 4), (4, 6), (4, 6), (6, 8), (6, 8)]),
        ((4, 2), (("data", "model"),), [(i, i + 1) for i in range(8)]),
        ((4, 2), ("model", "data"), [(0, 4), (0, 4), (0, 4), (0, 4), (4, 8), (4, 8), (4, 8), (4, 8)]),
        ((8,), (), [(0, 8)] * 8),
    ],
)
def test_rows_of_devices(axes: tuple[int, ...], spec: tuple[object, ...], found: list[tuple[int, int]]) -> None:
    sharding = NamedSharding(jax.make_mesh(axes, ("data", "model")[: len(axes)]), PartitionSpec(*spec))
    assert sorted(device_rows(sharding, (8, None), "x").values()) == found


def test_one_device_holds_all_rows() -> None:
    device = jax.devices()[3]
    assert device_rows(SingleDeviceSharding(device), (5, 2), "x") == {device: (0, 5)}


@pytest.mark.parametrize("shape", [(10, 8), (16, 3)])
def test_rows_that_cannot_be_divided(shape: tuple[int, ...]) -> None:
    sharding = NamedSharding(jax.make_mesh((4, 2), ("data", "model")), PartitionSpec("data", "model"))
    with pytest.raises(ValueError, match=rf"component \['x'\], of shape \[{shape[0]}, {shape[1]}\], cannot be divided"):
        device_rows(sharding, shape, "component ['x']")


def on_processes(*numbers: int) -> Any:
    """What is asked of a sharding over devices of these processes, by process 0."""
    devices = {Device(process_index=number) for number in numbers}
    return SimpleNamespace(device_set=devices, is_fully_addressable=set(numbers) == {0})


class Device(SimpleNamespace):
    """A device, of which there may be a set."""

    __hash__ = object.__hash__


def test_devices_belong_to_one_process_or_to_all() -> None:
    assert not spans_processes([on_processes(0)], 3, "x")
    assert spans_processes([on_processes(0), on_processes(0, 1, 2)], 3, "x")
    with pytest.raises(
        ValueError, match=r"x: the devices of a sharding must be those of one process or of all 3, got those of"
    ):
        spans_processes([on_processes(0, 2)], 3, "x")
