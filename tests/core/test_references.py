# SPDX-License-Identifier: Apache-2.0
"""Reference counts are believed where they are exact, and nowhere else is memory used again."""

import subprocess
import sys

import numpy as np
import pytest

from distinput.values.buffers import alone, calibrated, counts_are_exact

exact = pytest.mark.skipif(not counts_are_exact(), reason="reference counts are not exact here")


@exact
def test_an_item_is_alone_until_somebody_else_refers_to_it() -> None:
    held = [np.empty(4)]
    assert alone(held)
    view = held[0][1:]
    assert not alone(held)
    del view
    assert alone(held)
    again = held[0]
    assert not alone(held)
    del again
    assert alone(held)


@exact
def test_what_one_call_counts_another_of_the_same_kind_counts_too() -> None:
    def count(array: object) -> int:
        return sys.getrefcount(array)

    assert calibrated(count, lambda _: np.empty(2)) == list(map(count, map(np.empty, [2])))[0]  # noqa: RUF015


@pytest.mark.parametrize(
    "flag, name, expected", [(False, "cpython", False), (True, "pypy", False), (True, "cpython", True)]
)
def test_counts_are_exact_on_cpython_with_its_lock(
    monkeypatch: pytest.MonkeyPatch, flag: bool, name: str, expected: bool
) -> None:
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: flag, raising=False)
    monkeypatch.setattr(sys.implementation, "name", name)
    assert counts_are_exact() is expected
    if not expected:
        assert calibrated(lambda _: 7, lambda _: None) == -1


FREE_THREADED = """
import sys
sys._is_gil_enabled = lambda: False
import tempfile, threading
import numpy as np
import distinput as di
from distinput.arrow import adopt
from distinput.values import buffers
from distinput.files import source

assert not buffers.alone([np.empty(1)])
assert (adopt._ALONE, adopt._AMONG_ITEMS, adopt._OF_VIEW) == (-1, -1, -1)
made = np.zeros(3)
assert list(map(adopt.owned, [made]))[0] is not made

images = np.arange(200_000.0).reshape(200, 1000)
batches = di.data.Dataset.from_tensor_slices(images).global_shuffle(seed=1).batch(50)
kept = [batch for batch in batches]
assert len({batch.__array_interface__["data"][0] for batch in kept}) == 4
for batch in batches:
    pass
assert sorted(np.concatenate(kept)[:, 0].tolist()) == images[:, 0].tolist()
with tempfile.NamedTemporaryFile() as file:
    file.write(bytes(1_000_000))
    file.flush()
    assert len(list(di.data.FixedLengthRecordDataset(file.name, 1000))) == 1000
assert buffers._BUFFERS.nbytes == source._POOL.nbytes == 0

import socket
from distinput.run.segments import SegmentConnection
here, there = map(SegmentConnection, socket.socketpair())
got = []
for number in range(40):
    here.send(np.full(20_000, number))
    got.append(there.receive())
    there.send(None)
    here.receive()
assert [int(array[-1]) for array in got] == list(range(40))
assert len(here._mine) == 1  # the receiver holds copies, so the same segment is written each time
"""


@pytest.mark.fresh_process
def test_without_the_lock_nothing_is_used_again_and_all_comes_out_right() -> None:
    done = subprocess.run([sys.executable, "-c", FREE_THREADED], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
