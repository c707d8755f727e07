# SPDX-License-Identifier: Apache-2.0
"""Calls on a group: numbered, one at a time, and compared before anything is sent."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from distinput.distribute.collectives.channel import ABOUT, Purpose
from distinput.distribute.engines import Collectives, Mismatch
from distinput.distribute.engines.local import open_groups
from distinput.errors import FailedPreconditionError

NOTHING = np.zeros(0, np.uint8)


@pytest.fixture
def groups() -> Iterator[list[Collectives]]:
    groups = open_groups(2, timeout=60)
    yield groups
    for group in groups:
        group.close()


def test_one_thread_at_a_time_is_in_a_call() -> None:
    (group,) = open_groups(1)
    in_a_call = group._sequence.begin("barrier", None)
    with (
        in_a_call,
        pytest.raises(FailedPreconditionError, match="one thread at a time, and another one is in a call; make"),
    ):
        group.barrier()
    group.barrier()
    group.close()


def test_calls_are_numbered_also_those_that_fail() -> None:
    (group,) = open_groups(1)
    group.barrier()
    with pytest.raises(TypeError):
        group.all_reduce(["a"])
    with group._sequence.begin("barrier", None, name="third") as call:
        assert str(call) == "barrier (call 3, name='third')"
    group.close()


def test_what_is_compared_is_learned_from_all(groups: list[Collectives]) -> None:
    def call(group: Collectives) -> list[tuple[str, int, bytes]]:
        mine = np.full(group.rank * 100 + 1, group.rank, np.uint8)
        with group._sequence.begin("gather", None) as call:
            return [
                (peer.about, peer.nbytes, peer.data.tobytes()) for peer in call.compare("same", f"a{group.rank}", mine)
            ]

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(call, groups)
    assert first == second == [("a0", 1, b"\0"), ("a1", 101, b"\1" * 101)]


@pytest.mark.parametrize("about, inline", [(100, True), (200, False)])
def test_large_arrays_do_not_travel_with_the_record(groups: list[Collectives], about: int, inline: bool) -> None:
    def call(group: Collectives) -> list[int]:
        with group._sequence.begin("gather", None) as call:
            return [len(peer.data) for peer in call.compare("same", "", np.zeros(about, np.uint8))]

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(call, groups)) == [[about if inline else 0] * 2] * 2


@pytest.mark.parametrize("kind", ["name", "purpose", "call"])
def test_a_difference_is_told_to_all_and_the_group_goes_on(groups: list[Collectives], kind: str) -> None:
    def call(group: Collectives) -> str:
        mine = f"metric {group.rank}"
        name = mine if kind == "name" else "same"
        purpose = Purpose(mine, lambda: "float32") if kind == "purpose" else None
        with pytest.raises(Mismatch) as caught, group._sequence.begin("reduce", None, name, purpose) as call:
            call.compare(mine if kind == "call" else "sum", "", NOTHING)
        group.barrier()
        return str(caught.value).partition(": ")[2]

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(call, groups)
    assert first == second
    assert "must make the same call" in first
    assert "the group 'distinput' can be used; make the calls equal" in first
    assert all(f"rank {rank}: " in first for rank in (0, 1))
    assert all(f"metric {rank}" in first for rank in (0, 1))


def test_one_that_cannot_make_its_call_tells_the_others_why(groups: list[Collectives]) -> None:
    def call(group: Collectives) -> str:
        array = np.zeros((1,) * (1 if group.rank else 64))
        with pytest.raises(Mismatch if group.rank else ValueError) as caught:
            group.all_reduce(array, name="loss")
        group.barrier()
        return str(caught.value)

    with ThreadPoolExecutor(2) as pool:
        mine, others = pool.map(call, groups)
    refusal = f"all_reduce: dtype and shape must fit into {ABOUT} letters"
    assert mine.startswith(refusal)
    assert "rank 0: all_reduce, name='loss', at test_call_sequence.py" in others
    assert f", refused: {refusal}" in others
