# SPDX-License-Identifier: Apache-2.0
"""Calls on arrays that are on devices are compared before anything is sent."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from distinput.distribute.collectives.collectives import Collectives
from distinput.distribute.engines.local import open_groups
from distinput.errors import Mismatch

torch = pytest.importorskip("torch")
from distinput.distribute.devices.torch import TORCH  # noqa: E402 - needs PyTorch


def on_groups(call: Any) -> list[Any]:
    """What `call(calls, rank)` returned or raised on each of two workers, and the sum that they can compute afterwards."""
    groups = open_groups(2, timeout=60)

    def work(group: Collectives) -> Any:
        calls = group.on_devices(TORCH, torch.device("cpu"))
        assert calls is not None
        try:
            found = call(calls, group.rank)
        except Mismatch as error:
            found = error
        return found, calls.all_reduce(torch.ones(2), "float32", name="after").tolist()

    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(work, groups))
    for group in groups:
        group.close()
    assert [after for _, after in results] == [[2, 2]] * 2
    return [found for found, _ in results]


def test_arrays_of_different_sizes_are_gathered() -> None:
    def gather(calls: Any, rank: int) -> Any:
        return calls.all_gather(torch.arange(3 * rank), [0, 3], "int64", name="rows")

    for parts in on_groups(gather):
        assert [part.tolist() for part in parts] == [[], [0, 1, 2]]


@pytest.mark.parametrize(
    "call",
    [
        lambda calls, rank: calls.all_gather(torch.zeros(2), [2, 2 + rank], "float32", name="x"),
        lambda calls, rank: calls.all_gather(torch.zeros(2), [2, 2], "int32" if rank else "float32", name="x"),
        lambda calls, rank: calls.all_reduce(torch.zeros(2 + rank), "float32", name="x"),
        lambda calls, rank: calls.all_reduce(torch.zeros(2), "float32", name="x" if rank else "y"),
    ],
    ids=["sizes", "dtypes", "lengths", "names"],
)
def test_calls_that_differ_are_refused_and_nothing_is_sent(call: Any) -> None:
    for found in on_groups(call):
        assert isinstance(found, Mismatch)
        assert "on torch devices" in str(found)
        assert "Nothing was sent" in str(found)
